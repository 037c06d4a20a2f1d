import iconv from 'iconv-lite';
import { SaxesParser } from 'saxes';
import type { Format } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { lineFormat, openLines } from '../cells.js';
import { MAX_KEPT_CELLS } from '../extract/context.js';
import { readLines } from '../extract/read-lines.js';
import { readLabelled, readTree } from '../extract/read-tree.js';
import type { Line } from '../lines.js';
import { binaryKind, NOT_READ, type OpenFile, readHead } from '../source.js';
import { looksLikeJson, readJson, readXml } from './documents.js';
import { readJcamp } from './jcamp.js';
import { delimitersIn, readRecords } from './records.js';
import { openSheets, readWorkbook, sheetLines } from './workbook.js';

export interface FormatReader {
  read(file: OpenFile): Promise<FileRecord>;
  /** The lines that `when` searches, if they are not the lines of the file's text. */
  lines?(file: OpenFile): Promise<() => AsyncIterable<readonly Line[]>>;
}

/** Plain text is delimited text that is split only where the mapping says so. */
export const FORMATS: Readonly<Record<Format, FormatReader>> = {
  delimited: { read: readDelimited },
  text: { read: readDelimited },
  json: { read: async (file) => readTree(file, await readJson(file)) },
  xml: { read: async (file) => readTree(file, await readXml(file)) },
  jcamp: { read: async (file) => readLabelled(file, await readJcamp(file)) },
  records: {
    async read(file) {
      const { tree, lines } = await readRecords(file);
      return readTree(file, tree, lines);
    },
  },
  xlsx: {
    read: readWorkbook,
    async lines(file) {
      const { sheets } = await openSheets(file);
      return () => sheetLines(sheets, file.options);
    },
  },
  none: { read: readNothing },
};

/** A streamed file is larger than one in memory, so fewer of its cells are kept. */
const MAX_STREAM_CELLS = 40_000;

async function readDelimited(file: OpenFile): Promise<FileRecord> {
  const maxKeptCells = file.source.content instanceof Uint8Array ? MAX_KEPT_CELLS : MAX_STREAM_CELLS;
  return readLines(file, { sheets: [], maxKeptCells, ...(await openLines(file)) });
}

/** `format: none`: only the file name and path are read. */
async function readNothing(file: OpenFile): Promise<FileRecord> {
  const source = { lines: () => [], lineFormat: lineFormat(undefined, 'none'), sheets: [], maxKeptCells: 0 };
  const record = await readLines({ ...file, options: { ...file.options, format: 'none', tables: {} } }, source);
  return { ...record, unread: [{ kind: 'left out' }] };
}

/** Enough bytes to recognise the format of a file. */
const HEAD_BYTES = 64 * 1024;

/** The format in the mapping; with `auto`, the one that is recognised. */
export async function formatOf(file: OpenFile): Promise<Format> {
  const { format, limits } = file.options;
  if (format !== 'auto') return format;
  if (file.known.format) return file.known.format;
  const head = await readHead(file, HEAD_BYTES, limits.maxBytes ?? Number.POSITIVE_INFINITY);
  const recognised = recognise(head, file.source.name);
  if ('format' in recognised) {
    file.known.format = recognised.format;
    return recognised.format;
  }
  throw file.refuse(`the file is not text: it is ${recognised.unreadable}`, {
    hint: NOT_READ,
    isMismatch: true,
  });
}

/** The format of a file, or what kind of unreadable file it is. */
type Recognised = { readonly format: Format } | { readonly unreadable: string };

/** Recognises a file by its content, then by its name: an .xls can be text, and a .csv a workbook. */
export function recognise(head: Uint8Array, name: string): Recognised {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, HEAD_BYTES));
  const raw = bytes.toString('latin1');
  if (raw.startsWith('PK\x03\x04')) return archive(raw);
  if (raw.startsWith('\xd0\xcf\x11\xe0')) return { format: 'xlsx' };
  const unreadable = binaryKind(bytes);
  if (unreadable !== undefined) return { unreadable };
  const isUtf16 = /^(?:\xff\xfe|\xfe\xff)/.test(raw);
  const text = iconv.decode(bytes, isUtf16 ? 'utf-16' : 'utf-8');
  // Some programs write a table as a web page and name it .xls.
  if (/^\s*<(?:!doctype\s+)?html\b/i.test(text)) return { unreadable: 'a web page: save it as .xlsx' };
  return { format: textFormat(text, name) };
}

/** The names of an archive's parts are not compressed. */
function archive(raw: string): Recognised {
  if (/\bxl\//.test(raw)) return { format: 'xlsx' };
  if (/\bword\//.test(raw)) return { unreadable: 'a Word document (.docx)' };
  if (/opendocument\.spreadsheet/.test(raw)) return { unreadable: 'an .ods workbook: save it as .xlsx' };
  // The head of a large workbook may contain only its first part.
  return /\[Content_Types\]\.xml|_rels\//.test(raw) ? { format: 'xlsx' } : { unreadable: 'a zip archive' };
}

function textFormat(text: string, name: string): Format {
  const start = text.trimStart();
  if (start.startsWith('<')) return /\.xml$/i.test(name) || looksLikeXml(start) ? 'xml' : 'delimited';
  if (start.startsWith('{') || start.startsWith('[')) {
    return /\.json$/i.test(name) || looksLikeJson(text) ? 'json' : 'delimited';
  }
  if (/^(?:\$\$[^\n]*\n\s*)*##\s*(?:TITLE|JCAMP)/i.test(start) && JCAMP_LABEL.test(start)) return 'jcamp';
  return isRecords(text) ? 'records' : 'delimited';
}

/** Other programs also write a title that starts with ##. Only JCAMP-DX has a version, data and an end. */
const JCAMP_LABEL = /^\s*##\s*(?:JCAMP|END\s*=|DATA[ _-]?(?:TYPE|TABLE)|XY ?DATA|XY ?POINTS|PEAK ?TABLE|NTUPLES)/im;

/** Whether the text starts with an element and is well-formed up to its end. */
function looksLikeXml(start: string): boolean {
  if (start.startsWith('<?xml')) return true;
  // `<Identifier>: 12` is a name and a value.
  if (/^<[^<>]*>\s*[:=]/.test(start)) return false;
  // Names on lines of their own, each above its value.
  if (/^<[^<>]*>\s*[^<>\s][^<>]*</.test(start) && !/<\/|\/>/.test(start)) return false;
  const parser = new SaxesParser();
  let isWellFormed = /^<[\p{L}_!?]/u.test(start);
  parser.on('error', () => {
    isWellFormed = false;
  });
  parser.write(start);
  return isWellFormed;
}

/** The header of an ASTM or HL7 message, possibly inside a transmission frame. */
function isRecords(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: frames start with control characters.
  const start = text.replace(/^[\s\x02\x05\x0b]+/, '');
  const [line = ''] = start.slice(0, 200).split(/[\r\n]/);
  return delimitersIn(line) !== undefined || (/^[0-7]H/.test(line) && delimitersIn(line.slice(1)) !== undefined);
}
