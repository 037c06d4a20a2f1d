import { SaxesParser } from 'saxes';
import type { Format } from '../../config/vocabulary.js';
import { looksLikeJson } from './json.js';
import { delimitersIn } from './records/dialects.js';

/** What kind of file it is; or why it is none that can be read. */
export type Recognised = { readonly format: Format } | { readonly unreadable: string };

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
