import { SaxesParser } from 'saxes';
import type { Format, ParseOptions } from '../../config/vocabulary.js';
import { measureText } from '../../learn/measure.js';
import type { Measured } from '../../learn/measured.js';
import { measureRecords, measureSheets, measureTree } from '../../learn/trees.js';
import type { FileRecord } from '../../model.js';
import { readRecord } from '../extract/lines.js';
import { readLabelled, readTree } from '../extract/tree-facts.js';
import type { Line } from '../lines.js';
import type { OpenFile } from '../source.js';
import { cutAt, firstLines, loadWhole, namedIn, openText, readDelimited } from './delimited.js';
import { looksLikeJson, readJson, readXml } from './documents.js';
import { readJcamp } from './jcamp.js';
import { delimitersIn, readRecords } from './records.js';
import { openSheets, readWorkbook, sheetLines } from './workbook.js';

/** What labfeed does with one kind of file. A new kind is one more of these. */
export interface FormatReader {
  /** Reads a file as the options say. */
  read(file: OpenFile, options: ParseOptions): Promise<FileRecord>;
  /**
   * Says how a file is to be read, in the words of a mapping, as far as the file itself tells.
   * `read` tries a mapping on the file.
   */
  measure(file: OpenFile, options: ParseOptions, read: TryMapping): Promise<Measured>;
  /** The lines among which `when` looks, where they are not those of its text. */
  lines?(file: OpenFile, options: ParseOptions): Promise<() => AsyncIterable<readonly Line[]>>;
}

type TryMapping = Parameters<typeof measureText>[0]['read'];

/** More lines tell nothing new about how a file is written. */
const MEASURED_LINES = 20_000;

const delimited: FormatReader = {
  read: readDelimited,
  async measure(file, options, read) {
    const texts = await firstLines(await openText(file, options), MEASURED_LINES);
    return measureText({ ...file, name: file.source.name, texts, read });
  },
};

/** Places within places: facts and tables are paths into a tree. */
const nested = (format: 'json' | 'xml', readNested: typeof readJson): FormatReader => ({
  async read(file, options) {
    const tree = await readNested(await loadWhole(file, options), options);
    return readTree(tree, await namedIn(file, options), options);
  },
  async measure(file, options, read) {
    const tree = await readNested(await loadWhole(file, options), options);
    return measureTree(format, tree, { ...file, name: file.source.name, read });
  },
});

const records: FormatReader = {
  async read(file, options) {
    const { tree, lines } = await readRecords(await loadWhole(file, options), options);
    return readTree(tree, await namedIn(file, options, lines), options);
  },
  async measure(file, options, read) {
    const found = await readRecords(await loadWhole(file, options), options);
    return measureRecords(found, { ...file, name: file.source.name, read });
  },
};

const jcamp: FormatReader = {
  async read(file, options) {
    const labelled = await readJcamp(await loadWhole(file, options), options);
    return readLabelled(labelled, await namedIn(file, options), options);
  },
  measure: async () => selfEvident('jcamp'),
};

const xlsx: FormatReader = {
  read: readWorkbook,
  async measure(file, options, read) {
    return measureSheets(await openSheets(file, options), { ...file, name: file.source.name, read });
  },
  async lines(file, options) {
    const sheets = await openSheets(file, options);
    return () => sheetLines(sheets, options);
  },
};

const none: FormatReader = {
  read: readNone,
  measure: async () => selfEvident('none'),
};

/** Such files need no more of a mapping than the name of their format. */
const selfEvident = (format: 'jcamp' | 'none'): Measured => ({
  ...{ mapping: { format }, likely: { format }, doubts: [], refusal: undefined },
});

/** One for each word that `format` knows. Plain text is delimited text that is cut only where the mapping says. */
export const FORMATS: Readonly<Record<Format, FormatReader>> = {
  ...{ delimited, text: delimited, records, jcamp, xlsx, none },
  json: nested('json', readJson),
  xml: nested('xml', readXml),
};

/** What kind of file it is; or why it is none that can be read. */
type Recognised = { readonly format: Format } | { readonly unreadable: string };

/** Enough of a file to know it by. */
export const HEAD_BYTES = 64 * 1024;

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

/** Does not read the file: what is known of it stands in its name and path. */
async function readNone(file: OpenFile, options: ParseOptions): Promise<FileRecord> {
  const { source, refuse, pace } = file;
  return readRecord({
    lines: nothing,
    context: {
      ...{
        options: { ...options, tables: {} },
        refuse,
        pace,
        sheets: [],
        maxKeptCells: 0,
        isNameEnough: true,
      },
      ...{ path: source.path, name: source.name, cut: cutAt(undefined, 'none') },
    },
  });
}

async function* nothing(): AsyncGenerator<never> {}
