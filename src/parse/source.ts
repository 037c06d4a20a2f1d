import { isAscii } from 'node:buffer';
import iconv from 'iconv-lite';
import type { ParseOptions } from '../config/vocabulary.js';
import { createRefuse, createTimeSlice, type Refuse, type TimeSlice } from './lines.js';

/** A file as the caller has it: its bytes, or a way to read them, from the beginning each time. */
export interface Source {
  /** For people: places in errors, and `in: path`. */
  readonly path: string;
  /** The file's own name, for `in: name`. */
  readonly name: string;
  /** In bytes, where it is known beforehand: a file that is too large is then not even opened. */
  readonly size?: number;
  readonly content: Uint8Array | (() => AsyncIterable<Uint8Array>);
  /** The files of a run of several; it has no content of its own then. */
  readonly parts?: readonly Part[] | undefined;
}

export interface Part extends Source {
  /** Its name seen from the run's folder. */
  readonly relativePath: string;
}

/** The bytes of a file in pieces, unless they are too many: a long file is never in memory as a whole. */
export async function* readChunks(
  { content, size }: Source,
  maxBytes: number,
  refuse: Refuse,
): AsyncGenerator<Uint8Array> {
  const refuseMore = (bytes: number) => {
    if (bytes <= maxBytes) return;
    throw refuse(`the file has ${megabytes(bytes)}, more than the ${megabytes(maxBytes)} that are read`, {
      hint: `if such files are to be read, allow more: \`limits: { bytes: ${Math.ceil(bytes / 2 ** 20)}MB }\``,
    });
  };
  if (content instanceof Uint8Array) {
    refuseMore(content.byteLength);
    yield content;
    return;
  }
  refuseMore(size ?? 0);
  let bytes = 0;
  for await (const piece of content()) {
    bytes += piece.byteLength;
    refuseMore(bytes);
    yield piece;
  }
}

/** All bytes of a file at once, for formats that cannot be read piece by piece. */
async function load(source: Source, maxBytes: number, refuse: Refuse): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  for await (const piece of readChunks(source, maxBytes, refuse)) pieces.push(piece);
  return pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
}

/** The first bytes of a file, to see what it is. */
export async function readHead(
  source: Source,
  bytes: number,
  maxBytes: number,
  refuse: Refuse,
): Promise<Uint8Array> {
  const pieces: Uint8Array[] = [];
  let length = 0;
  for await (const piece of readChunks(source, maxBytes, refuse)) {
    pieces.push(piece);
    length += piece.byteLength;
    if (length >= bytes) break;
  }
  const head = pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);
  return head.subarray(0, bytes);
}

const megabytes = (bytes: number): string =>
  bytes < 2 ** 20 ? `${bytes} bytes` : `${(bytes / 2 ** 20).toFixed(1)} MB`;

/** A file that is being read, and what reading it needs. */
export interface OpenFile {
  readonly source: Source;
  /** Whether there are further mappings to try where this one is not for the file. */
  readonly hasAlternatives?: boolean;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
  readonly signal?: AbortSignal | undefined;
}

/** `limits.maxMs` holds for everything that is done with the file until it is opened again. */
export function openFile(
  source: Source,
  { limits }: Pick<ParseOptions, 'limits'>,
  signal?: AbortSignal,
): OpenFile {
  const refuse = createRefuse(source.path);
  return { source, refuse, slice: createTimeSlice({ maxMs: limits.maxMs, signal, refuse }), signal };
}

/** A file that must be held as a whole before anything can be said of it, unlike lines. */
export interface WholeFile {
  readonly bytes: Uint8Array;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
}

const MAX_WHOLE_BYTES = 32 * 2 ** 20;

/** The whole of a file, for formats that cannot be read piece by piece. */
export async function loadWhole(
  { source, refuse, slice: pace }: OpenFile,
  { limits }: ParseOptions,
): Promise<WholeFile> {
  return { bytes: await load(source, limits.maxBytes ?? MAX_WHOLE_BYTES, refuse), refuse, slice: pace };
}

/** Refuses a file that takes too much memory as a whole. */
export function refuseTooLarge(
  { bytes, refuse }: Pick<WholeFile, 'bytes' | 'refuse'>,
  { limits }: Pick<ParseOptions, 'limits'>,
): void {
  const most = limits.maxBytes ?? MAX_WHOLE_BYTES;
  if (bytes.byteLength <= most) return;
  const megabytes = Math.ceil(bytes.byteLength / 2 ** 20);
  throw refuse(
    `the file has ${bytes.byteLength} bytes, more than the ${most} that are read of such a format`,
    {
      hint: `if such files are to be read, allow more: \`limits: { bytes: ${megabytes}MB }\``,
    },
  );
}

/** The text of a whole file. */
export async function readText(
  file: WholeFile,
  options: Pick<ParseOptions, 'limits' | 'encoding'>,
): Promise<string> {
  refuseTooLarge(file, options);
  const pieces: string[] = [];
  for await (const piece of decodeWhole(file, options.encoding)) {
    pieces.push(piece);
    if (file.slice.isOver()) await file.slice.renew();
  }
  return pieces.join('');
}

/** The text of a whole file, piece by piece. */
export async function* decodeWhole({ bytes, refuse }: WholeFile, encoding: string): AsyncGenerator<string> {
  const name = encoding === 'auto' ? await findEncoding([bytes]) : encoding;
  yield* decode([bytes], name, refuse);
}

/** Large enough to be quick, small enough that others need not wait for it. */
const CHUNK_BYTES = 256 * 1024;
const HEAD_BYTES = 64 * 1024;

/** The text of a file, piece by piece: a long file is never one string. */
export async function* decode(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  encoding: string,
  refuse: Refuse,
): AsyncGenerator<string> {
  const decoder = iconv.getDecoder(encoding, { stripBOM: true });
  let isFirst = true;
  for await (const piece of withHead(pieces)) {
    const whole = Buffer.from(piece.buffer, piece.byteOffset, piece.byteLength);
    for (let at = 0; at < whole.length; at += CHUNK_BYTES) {
      const text = decoder.write(whole.subarray(at, at + CHUNK_BYTES));
      if (isFirst) refuseBinary(whole, text, refuse);
      isFirst = false;
      yield clean(text);
    }
  }
  if (isFirst) throw refuse('the file is empty');
  // An odd byte at the end of UTF-16 is half a character: nothing.
  const rest = decoder.end() ?? '';
  yield clean(isWide(encoding) ? rest.replace(/\ufffd$/, '') : rest);
}

/** The same bytes, of which the first piece is long enough to tell what they are, however they come. */
async function* withHead(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): AsyncGenerator<Uint8Array> {
  let head: Uint8Array[] | undefined = [];
  let length = 0;
  for await (const piece of pieces) {
    length += piece.byteLength;
    if (!head) yield piece;
    else if (head.push(piece) && length >= HEAD_BYTES) {
      yield joined(head);
      head = undefined;
    }
  }
  if (head && length > 0) yield joined(head);
}

const joined = (pieces: Uint8Array[]): Uint8Array =>
  pieces.length === 1 && pieces[0] ? pieces[0] : Buffer.concat(pieces);

/** The byte order mark; else UTF-8, if it is that throughout; else windows-1252. */
export async function findEncoding(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
): Promise<string> {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  let isFirst = true;
  let isPlain = true;
  for await (const piece of withHead(pieces)) {
    const [first, second] = piece;
    if (isFirst && first === 0xff && second === 0xfe) return 'utf-16le';
    if (isFirst && first === 0xfe && second === 0xff) return 'utf-16be';
    isFirst = false;
    // Bytes below 128 need no proof; once others came, a character may go on in the next piece.
    isPlain &&= isAscii(piece);
    if (!isPlain && !isFurtherUtf8(utf8, piece)) return 'windows-1252';
  }
  return isPlain || isFurtherUtf8(utf8) ? 'utf-8' : 'windows-1252';
}

/** Without a piece: whether it ended with a whole character. */
function isFurtherUtf8(decoder: InstanceType<typeof TextDecoder>, piece?: Uint8Array): boolean {
  try {
    decoder.decode(piece, { stream: piece !== undefined });
    return true;
  } catch {
    return false;
  }
}

const isWide = (encoding: string): boolean => /^(utf-?16|ucs-?2)/i.test(encoding);

/** Marks that stray into the text, and the zeros that some instruments pad it with, mean nothing. */
const clean = (text: string): string =>
  text.includes('\0') || text.includes('\ufeff') ? text.replace(/[\0\ufeff]/g, '') : text;

const KNOWN_BINARY: readonly [bytes: readonly number[], what: string][] = [
  [[0x50, 0x4b, 0x03, 0x04], 'a zip archive or an .xlsx workbook'],
  [[0xd0, 0xcf, 0x11, 0xe0], 'an .xls workbook'],
  [[0x25, 0x50, 0x44, 0x46], 'a PDF document'],
  [[0x1f, 0x8b], 'a gzip archive'],
];

/** What is known not to be text; and more than a stray control character or two is nothing that anybody wrote. */
function refuseBinary(bytes: Uint8Array, text: string, refuse: Refuse): void {
  const known = KNOWN_BINARY.find(([start]) => start.every((byte, at) => bytes[at] === byte));
  if (known) throw refuse(`the file is not text: it is ${known[1]}`, { isMismatch: true });
  const look = text.slice(0, HEAD_BYTES);
  let controls = 0;
  for (let at = 0; at < look.length; at++) if (isControl(look.charCodeAt(at))) controls++;
  if (controls < 3 || controls * 20 <= look.length) return;
  const wide = wideEncoding(bytes.subarray(0, HEAD_BYTES));
  throw refuse('the file is not text', {
    ...(wide && { hint: `if it is text, try: \`encoding: ${wide}\`` }),
    isMismatch: true,
  });
}

const isControl = (code: number): boolean =>
  (code < 32 && (code < 9 || code > 13) && code !== 0x1b) || code === 0x7f || code === 0xfffd;

/** Every other byte a zero is what UTF-16 without a byte order mark looks like. */
function wideEncoding(bytes: Uint8Array): 'utf-16le' | 'utf-16be' | undefined {
  const zeros = [0, 0];
  bytes.forEach((byte, at) => {
    if (byte === 0) zeros[at % 2] = (zeros[at % 2] ?? 0) + 1;
  });
  const [even = 0, odd = 0] = zeros;
  if (odd > bytes.length / 4 && even < odd / 4) return 'utf-16le';
  return even > bytes.length / 4 && odd < even / 4 ? 'utf-16be' : undefined;
}
