import { SaxesParser } from 'saxes';
import type { Format, ParseOptions } from '../../config/vocabulary.js';
import type { FileRecord } from '../../model.js';
import { lineFormat, openLines } from '../cells.js';
import { readRecord } from '../extract/lines.js';
import { namedIn, readLabelled, readTree } from '../extract/tree-facts.js';
import type { Line } from '../lines.js';
import { loadWhole, type OpenFile, readHead, type Source } from '../source.js';
import { looksLikeJson, readJson, readXml } from './documents.js';
import { readJcamp } from './jcamp.js';
import { delimitersIn, readRecords } from './records.js';
import { openSheets, readWorkbook, sheetLines } from './workbook.js';

/** How files of one format are read. */
export interface FormatReader {
  read(file: OpenFile, options: ParseOptions): Promise<FileRecord>;
  /** The lines that `when` searches, if they are not the lines of the file's text. */
  lines?(file: OpenFile, options: ParseOptions): Promise<() => AsyncIterable<readonly Line[]>>;
}

/** Plain text is delimited text that is split only where the mapping says so. */
export const FORMATS: Readonly<Record<Format, FormatReader>> = {
  delimited: { read: readDelimited },
  text: { read: readDelimited },
  json: {
    async read(file, options) {
      const tree = await readJson(await loadWhole(file, options), options);
      return readTree(tree, await namedIn(file, options), options);
    },
  },
  xml: {
    async read(file, options) {
      const tree = await readXml(await loadWhole(file, options), options);
      return readTree(tree, await namedIn(file, options), options);
    },
  },
  records: {
    async read(file, options) {
      const { tree, lines } = await readRecords(await loadWhole(file, options), options);
      return readTree(tree, await namedIn(file, options, lines), options);
    },
  },
  jcamp: {
    async read(file, options) {
      const labelled = await readJcamp(await loadWhole(file, options), options);
      return readLabelled(labelled, await namedIn(file, options), options);
    },
  },
  xlsx: {
    read: readWorkbook,
    async lines(file, options) {
      const sheets = await openSheets(file, options);
      return () => sheetLines(sheets, options);
    },
  },
  none: { read: readNone },
};

/** The format that the mapping names; with `auto`, the one that the file is recognised by. */
export async function formatOf(
  { source, refuse }: OpenFile,
  { format, limits }: ParseOptions,
): Promise<Format> {
  if (format !== 'auto') return format;
  const most = limits.maxBytes ?? Number.POSITIVE_INFINITY;
  const recognised = recognise(await readHead(source, HEAD_BYTES, most, refuse), source.name);
  if ('format' in recognised) return recognised.format;
  throw refuse(`the file is not text: it is ${recognised.unreadable}`, {
    hint: 'to file it without reading it: `parse: { format: none }`',
    isMismatch: true,
  });
}

/** What kind of file it is; or why it is none that can be read. */
type Recognised = { readonly format: Format } | { readonly unreadable: string };

/** Enough of a file to know it by. */
const HEAD_BYTES = 64 * 1024;

const BINARY: readonly [start: string, what: string][] = [
  ['%PDF', 'a PDF document'],
  ['\x1f\x8b', 'a gzip archive'],
  ['BZh', 'a bzip2 archive'],
  ['\xfd7zXZ', 'an xz archive'],
  ['7z\xbc\xaf\x27\x1c', 'a 7z archive'],
  ['Rar!\x1a', 'a rar archive'],
  ['\x89PNG', 'a picture'],
  ['\xff\xd8\xff', 'a picture'],
  ['II*\0', 'a picture'],
  ['MM\0*', 'a picture'],
  ['\x89HDF', 'an HDF5 file'],
  ['CDF\x01', 'a NetCDF file'],
  ['CDF\x02', 'a NetCDF file'],
  ['SQLite format 3\0', 'a database'],
  ['MATLAB 5.0 MAT-file', 'a MATLAB file'],
];

/**
 * Recognises a file by how it begins, and by its name where that does not say it:
 * an .xls can be text, and a .csv a workbook.
 */
export function recognise(head: Uint8Array, name: string): Recognised {
  const bytes = Buffer.from(head.buffer, head.byteOffset, Math.min(head.byteLength, HEAD_BYTES));
  const raw = bytes.toString('latin1');
  if (raw.startsWith('PK\x03\x04')) return archive(raw);
  if (raw.startsWith('\xd0\xcf\x11\xe0')) return { format: 'xlsx' };
  const known = BINARY.find(([start]) => raw.startsWith(start));
  if (known) return { unreadable: known[1] };
  const text = textOf(bytes);
  // Some programs call a web page with a table in it .xls.
  if (/^\s*<(?:!doctype\s+)?html\b/i.test(text)) return { unreadable: 'a web page: save it as .xlsx' };
  return { format: textFormat(text, name) };
}

/** The names of the parts stand in the archive as they are. */
function archive(raw: string): Recognised {
  if (/\bxl\//.test(raw)) return { format: 'xlsx' };
  if (/\bword\//.test(raw)) return { unreadable: 'a text document (.docx)' };
  if (/opendocument\.spreadsheet/.test(raw)) return { unreadable: 'an .ods workbook: save it as .xlsx' };
  // The head of a large workbook may hold no more than its first part.
  return /\[Content_Types\]\.xml|_rels\//.test(raw) ? { format: 'xlsx' } : { unreadable: 'a zip archive' };
}

function textOf(bytes: Buffer): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return bytes.toString('utf16le', 2);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) return swapped(bytes).toString('utf16le', 2);
  return bytes.toString('utf8').replace(/^\ufeff/, '');
}

const swapped = (bytes: Buffer): Buffer => Buffer.from(bytes.subarray(0, bytes.length & ~1)).swap16();

function textFormat(text: string, name: string): Format {
  const start = text.trimStart();
  if (start.startsWith('<')) return /\.xml$/i.test(name) || looksLikeXml(start) ? 'xml' : 'delimited';
  if (start.startsWith('{') || start.startsWith('[')) {
    return /\.json$/i.test(name) || looksLikeJson(text) ? 'json' : 'delimited';
  }
  if (/^(?:\$\$[^\n]*\n\s*)*##\s*(?:TITLE|JCAMP)/i.test(start)) return 'jcamp';
  return isRecords(text) ? 'records' : 'delimited';
}

/** Whether it begins with an element, and has no mistake up to where the head ends. */
function looksLikeXml(start: string): boolean {
  if (start.startsWith('<?xml')) return true;
  const parser = new SaxesParser();
  let isWellFormed = /^<[\p{L}_!?]/u.test(start);
  parser.on('error', () => {
    isWellFormed = false;
  });
  parser.write(start);
  return isWellFormed;
}

/** The header of an ASTM or HL7 message, also where it is still in the frame in which it was sent. */
function isRecords(text: string): boolean {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what frames are made of.
  const start = text.replace(/^[\s\x02\x05\x0b]+/, '');
  const [line = ''] = start.slice(0, 200).split(/[\r\n]/);
  return (
    delimitersIn(line) !== undefined || (/^[0-7]H/.test(line) && delimitersIn(line.slice(1)) !== undefined)
  );
}

/** Reads delimited text, as the options say. */
async function readDelimited(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, hasAlternatives: isAlternative, refuse, slice: pace } = file;
  const { cut, lines } = await openLines(file, options);
  const { path, name } = source;
  const maxKeptCells = keptCellsOf(source);
  return readRecord({
    lines,
    context: {
      options,
      lineFormat: cut,
      path,
      name,
      sheets: [],
      maxKeptCells,
      hasAlternatives: isAlternative,
      refuse,
      slice: pace,
    },
  });
}

/** Small files are kept as they are; what is so large that it is read in a stream must not fill the memory. */
const keptCellsOf = ({ content }: Source): number => (content instanceof Uint8Array ? 2_000_000 : 40_000);

/** Does not read the file: what is known of it stands in its name and path. */
async function readNone(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, refuse, slice: pace } = file;
  return readRecord({
    lines: nothing,
    context: {
      ...{
        options: { ...options, tables: {} },
        refuse,
        slice: pace,
        sheets: [],
        maxKeptCells: 0,
        isNameEnough: true,
      },
      ...{ path: source.path, name: source.name, lineFormat: lineFormat(undefined, 'none') },
    },
  });
}

async function* nothing(): AsyncGenerator<never> {}
