import { isAscii } from 'node:buffer';
import iconv from 'iconv-lite';
import type { Format, ParseOptions } from '../config/vocabulary.js';
import type { FileError } from '../errors.js';
import type { Unread } from '../model.js';
import { detectEncoding } from './encoding.js';
import {
  createRefuse,
  createTimeSlice,
  type Line,
  maxMsFor,
  type Refuse,
  raiseLimit,
  type TimeSlice,
} from './lines.js';

/** A file as the caller has it: its bytes, or a function that reads them from the beginning. */
export interface Source {
  /** For locations in messages and `in: path`. */
  readonly path: string;
  /** The file name, for `in: name`. */
  readonly name: string;
  /** In bytes, if known: a file that is too large is then not opened. */
  readonly size?: number;
  /** Shows which dates are possible. */
  readonly modifiedMs?: number;
  readonly content: Uint8Array | (() => AsyncIterable<Uint8Array>);
  /** The files of a run of several, which then has no content of its own. */
  readonly parts?: readonly Part[] | undefined;
}

export interface Part extends Source {
  /** Relative to the run's folder. */
  readonly relativePath: string;
}

export interface OpenFile {
  readonly source: Source;
  readonly options: ParseOptions;
  /** Whether further mappings are tried if this one does not match the file. */
  readonly hasAlternatives?: boolean;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  readonly signal?: AbortSignal | undefined;
  /** What was found out about the content: without a mapping, a file is measured and then read. */
  readonly known: {
    format?: Format;
    encoding?: string;
    text?: KnownText;
    split?: KnownSplit;
    workbook?: KnownWorkbook;
  };
}

/** A sheet as lines of cells, at their places in the spreadsheet, without empty cells and lines at the ends. */
export interface Sheet {
  readonly name: string;
  readonly lines: readonly (readonly string[])[];
}

export interface Workbook {
  readonly sheets: readonly Sheet[];
  /** What it has beside cells with values: pictures, charts, notes. */
  readonly extras: readonly Unread[];
}

/** Its numbers are written with a decimal mark. */
interface KnownWorkbook extends Workbook {
  readonly decimal: string;
}

/** The lines of a file whose bytes are in memory. */
interface KnownText {
  readonly encoding: string;
  /** How many lines it has. */
  readonly count: number;
  readonly lines: () => Iterable<readonly string[]>;
}

/** The first lines of a file, or all of them, split into cells. */
interface KnownSplit {
  readonly delimiter: string | undefined;
  /** How many lines of text these are. */
  readonly count: number;
  readonly lines: readonly Line[];
}

/** The time limit covers everything that is done with the opened file. */
export function openFile(source: Source, options: ParseOptions, signal?: AbortSignal): OpenFile {
  const refuse = createRefuse(source.path);
  const slice = createTimeSlice(maxMsFor(options, source.size), refuse, signal);
  return { source, options, refuse, slice, signal, known: {} };
}

/** The bytes of a file in chunks, so that a long file is never in memory as a whole. Refuses more than `maxBytes`. */
export async function* readChunks(
  { source: { content, size }, refuse }: OpenFile,
  maxBytes: number,
): AsyncGenerator<Uint8Array> {
  const check = (bytes: number) => {
    if (bytes > maxBytes) throw tooLarge(bytes, maxBytes, refuse);
  };
  if (content instanceof Uint8Array) {
    check(content.byteLength);
    yield content;
    return;
  }
  check(size ?? 0);
  let bytes = 0;
  for await (const chunk of content()) {
    bytes += chunk.byteLength;
    check(bytes);
    yield chunk;
  }
}

const tooLarge = (bytes: number, maxBytes: number, refuse: Refuse): FileError =>
  refuse(`the file is too large: ${inMegabytes(bytes)}, the limit is ${inMegabytes(maxBytes)}`, {
    hint: raiseLimit('bytes', `${Math.ceil(bytes / 2 ** 20)}MB`),
  });

export const MAX_TEXT_BYTES = 2 ** 30;

/** Why a file of this size cannot be read by any of these mappings, found out before it is opened. */
export function refuseSize(
  { path, size }: { readonly path: string; readonly size: number },
  alternatives: readonly Pick<ParseOptions, 'format' | 'limits' | 'also'>[],
): FileError | undefined {
  const maxBytes = largestOf(alternatives);
  return size > maxBytes ? tooLarge(size, maxBytes, createRefuse(path)) : undefined;
}

const largestOf = (alternatives: readonly Pick<ParseOptions, 'format' | 'limits' | 'also'>[]): number =>
  Math.max(
    ...alternatives.flatMap(({ format, limits, also = {} }) => [
      format === 'none' ? Number.POSITIVE_INFINITY : (limits.maxBytes ?? MAX_TEXT_BYTES),
      ...Object.values(also).map(largestOf),
    ]),
  );

/** As in `limits: { bytes: 64MB }`. */
const inMegabytes = (bytes: number): string =>
  bytes < 2 ** 20 ? `${bytes} bytes` : `${(bytes / 2 ** 20).toFixed(1)} MB`;

export async function readHead(file: OpenFile, bytes: number, maxBytes: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of readChunks(file, maxBytes)) {
    chunks.push(chunk);
    length += chunk.byteLength;
    if (length >= bytes) break;
  }
  return concat(chunks).subarray(0, bytes);
}

const concat = (chunks: readonly Uint8Array[]): Uint8Array =>
  chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);

const MAX_WHOLE_BYTES = 32 * 2 ** 20;

/** All bytes of a file, for formats that cannot be read in chunks. */
export const loadWhole = (file: OpenFile): Promise<Uint8Array> =>
  readHead(file, Number.POSITIVE_INFINITY, file.options.limits.maxBytes ?? MAX_WHOLE_BYTES);

export const loadText = async (file: OpenFile): Promise<string> => decodeText(await loadWhole(file), file);

export async function decodeText(bytes: Uint8Array, { options, refuse, slice }: OpenFile): Promise<string> {
  const texts: string[] = [];
  for await (const text of decode([bytes], await knownEncoding([bytes], options.encoding, refuse), refuse)) {
    texts.push(text);
    if (slice.isOver()) await slice.renew();
  }
  return texts.join('');
}

type Chunks = AsyncIterable<Uint8Array> | Iterable<Uint8Array>;

/** Large enough to be fast, small enough not to block the event loop. */
const CHUNK_BYTES = 256 * 1024;
const HEAD_BYTES = 64 * 1024;

/** The text of a file in chunks. */
export async function* decode(chunks: Chunks, encoding: string, refuse: Refuse): AsyncGenerator<string> {
  const decoder = iconv.getDecoder(encoding, { stripBOM: true });
  let isFirst = true;
  for await (const chunk of joinHead(chunks)) {
    const whole = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength);
    for (let at = 0; at < whole.length; at += CHUNK_BYTES) {
      const text = decoder.write(whole.subarray(at, at + CHUNK_BYTES));
      if (isFirst) refuseBinary(whole, text, refuse);
      isFirst = false;
      yield clean(text);
    }
  }
  if (isFirst) throw refuse('the file is empty');
  // An odd byte at the end of UTF-16 is half a character and is dropped.
  const rest = decoder.end() ?? '';
  yield clean(/^(utf-?16|ucs-?2)/i.test(encoding) ? rest.replace(/\ufffd$/, '') : rest);
}

/** Stray byte order marks, and the NUL characters with which some instruments pad text. */
const clean = (text: string): string =>
  text.includes('\0') || text.includes('\ufeff') ? text.replace(/[\0\ufeff]/g, '') : text;

/** Joins the first chunks into one that is long enough to recognise the content. */
async function* joinHead(chunks: Chunks): AsyncGenerator<Uint8Array> {
  let head: Uint8Array[] | undefined = [];
  let length = 0;
  for await (const chunk of chunks) {
    length += chunk.byteLength;
    if (!head) yield chunk;
    else if (head.push(chunk) && length >= HEAD_BYTES) {
      yield concat(head);
      head = undefined;
    }
  }
  if (head && length > 0) yield concat(head);
}

/**
 * The encoding of the mapping; with `auto`: by byte order mark, else UTF-8 if valid, else what gives plausible text,
 * windows-1252 first. Refuses a file whose encoding is unclear.
 */
export async function knownEncoding(chunks: Chunks, encoding: string, refuse: Refuse): Promise<string> {
  if (encoding !== 'auto') return encoding;
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  const strange: Uint8Array[] = [];
  let isFirst = true;
  let isPlain = true;
  let isUtf8 = true;
  for await (const chunk of joinHead(chunks)) {
    const [first, second] = chunk;
    if (isFirst && first === 0xff && second === 0xfe) return 'utf-16le';
    if (isFirst && first === 0xfe && second === 0xff) return 'utf-16be';
    const utf16 = isFirst && chunk.includes(0) ? utf16WithoutMark(chunk.subarray(0, HEAD_BYTES)) : undefined;
    if (utf16 !== undefined) return utf16;
    if (isFirst && binaryKind(chunk) !== undefined) return 'windows-1252';
    isFirst = false;
    // After the first byte above 127, a character may continue in the next chunk.
    isPlain &&= isAscii(chunk);
    isUtf8 &&= isPlain || isValidUtf8(utf8, chunk);
    if (!isPlain && strange.length < MAX_STRANGE) collectStrange(chunk, strange);
    if (!isUtf8 && strange.length >= MAX_STRANGE) break;
  }
  if (isPlain || (isUtf8 && isValidUtf8(utf8))) return 'utf-8';
  const sample = Buffer.concat(strange);
  // The bytes are not text; decoding reports that.
  if (sample.includes(0)) return 'windows-1252';
  const { encoding: found, possible } = detectEncoding(sample);
  if (found !== undefined) return found;
  const lines = possible.map((name) => `\`encoding: ${name}\``);
  throw refuse('the encoding of the file is unclear: it is not UTF-8, and windows-1252 gives no plausible text', {
    hint: `write ${lines.join(' or ')} under parse`,
  });
}

/** More lines would not show more of the encoding. */
const MAX_STRANGE = 2000;
const MAX_STRANGE_BYTES = 4000;

/** The lines that are not ASCII. */
function collectStrange(chunk: Uint8Array, strange: Uint8Array[]): void {
  for (let at = 0; at < chunk.length && strange.length < MAX_STRANGE; ) {
    const next = chunk.indexOf(0x0a, at);
    const end = next < 0 ? chunk.length : next + 1;
    const line = chunk.subarray(at, end);
    if (!isAscii(line) && line.length <= MAX_STRANGE_BYTES) strange.push(line);
    at = end;
  }
}

/** Without a chunk: whether the last character is complete. */
function isValidUtf8(decoder: InstanceType<typeof TextDecoder>, chunk?: Uint8Array): boolean {
  try {
    decoder.decode(chunk, { stream: chunk !== undefined });
    return true;
  } catch {
    return false;
  }
}

const SIGNATURES: readonly [start: string, what: string][] = [
  ['PK\x03\x04', 'a zip archive or an .xlsx workbook'],
  ['\xd0\xcf\x11\xe0', 'an .xls workbook'],
  ['%PDF', 'a PDF document'],
  ['\x1f\x8b', 'a gzip archive'],
  ['BZh', 'a bzip2 archive'],
  ['\xfd7zXZ', 'an xz archive'],
  ['7z\xbc\xaf\x27\x1c', 'a 7z archive'],
  ['Rar!\x1a', 'a rar archive'],
  ['\x89PNG', 'an image'],
  ['\xff\xd8\xff', 'an image'],
  ['II*\0', 'an image'],
  ['MM\0*', 'an image'],
  ['\x89HDF', 'an HDF5 file'],
  ['CDF\x01', 'a NetCDF file'],
  ['CDF\x02', 'a NetCDF file'],
  ['SQLite format 3\0', 'a database'],
  ['MATLAB 5.0 MAT-file', 'a MATLAB file'],
];

/** The kind of a file that starts with the signature of a binary format. */
export function binaryKind(bytes: Uint8Array): string | undefined {
  const start = Buffer.from(bytes.subarray(0, 20)).toString('latin1');
  return SIGNATURES.find(([signature]) => start.startsWith(signature))?.[1];
}

/** What to do with a file that is not text. */
export const NOT_READ = 'to file it without reading it: `parse: { format: none }`';

/** Refuses known binary formats, and text with more than a few control characters. */
function refuseBinary(bytes: Uint8Array, text: string, refuse: Refuse): void {
  const kind = binaryKind(bytes);
  if (kind !== undefined) throw refuse(`the file is not text: it is ${kind}`, { hint: NOT_READ, isMismatch: true });
  const head = text.slice(0, HEAD_BYTES);
  const controls = head.match(CONTROLS)?.length ?? 0;
  if (controls < 3 || controls * 20 <= head.length) return;
  throw refuse('the file is not text', { hint: NOT_READ, isMismatch: true });
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for.
const CONTROLS = /[\0-\x08\x0e-\x1a\x1c-\x1f\x7f\ufffd]/g;

/** UTF-16 without a byte order mark has a zero in every other byte. */
function utf16WithoutMark(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const zeros = [0, 0];
  bytes.forEach((byte, at) => {
    if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  });
  const [even = 0, odd = 0] = zeros;
  if (odd > bytes.length / 4 && even < odd / 4) return 'utf-16le';
  return even > bytes.length / 4 && odd < even / 4 ? 'utf-16be' : undefined;
}
