import { posix } from 'node:path';
import { FileChangedError, FileError } from '../errors.js';
import type { DiskFile, FileStamp } from '../model.js';
import { entriesOf, statAll } from '../system/disk.js';
import type { Guard } from './guard.js';
import { FileBusyError, type ReadBytes, readParts, stampOf } from './identify.js';

/**
 * What identifies a file that keeps growing. Hashing all of it at each look would read a gigabyte for a new line, so two
 * blocks are compared instead: its first bytes, which another file at this path rarely shares beyond the header, and
 * those just before the offset, which a file that was rewritten or truncated and grew again does not have there. They
 * are kept as they are and not as hashes, because they also tell where a file that became shorter differs.
 */
export interface Followed {
  readonly inode: bigint;
  /** Where the lines of this generation begin. */
  readonly base: number;
  /** Up to here, its lines were taken. */
  readonly offset: number;
  readonly head: Uint8Array;
  readonly tail: Uint8Array;
  /** The end of the lines that only describe the readings: without these, nothing of the file is left. */
  readonly headerEnd: number;
  /** The smallest size since it became shorter than the offset. */
  readonly low: number | undefined;
}

const HEAD_BYTES = 16 * 1024;
const TAIL_BYTES = 4 * 1024;

/** Lines are read in batches of this size: a gigabyte at first sight never is in memory as a whole. */
const MAX_BATCH_BYTES = 4 * 2 ** 20;

/** How another file, or other content, took the place of what was followed. */
export type Replacement = 'replaced' | 'truncated' | 'rewritten';

export type Look =
  | {
      readonly kind: 'lines';
      /** Complete lines only; perhaps none. */
      readonly bytes: Buffer;
      readonly isLast: boolean;
      /** The size of the line at the end that is not finished. */
      readonly unfinished: number;
      readonly stamp: FileStamp;
      readonly head: Uint8Array;
      readonly tail: Uint8Array;
    }
  /** It is shorter than what was taken, and begins as before. */
  | { readonly kind: 'shorter'; readonly stamp: FileStamp; readonly low: number }
  /** `from`: where the lines begin that were not taken. */
  | { readonly kind: 'other'; readonly how: Replacement; readonly stamp: FileStamp; readonly from: number };

export interface LookOptions {
  readonly guard?: Guard | undefined;
  readonly maxBytes?: number;
  /** Of the mapping: UTF-16 has line ends of two bytes. */
  readonly encoding?: string | undefined;
}

/** Reads the complete lines after the offset, unless the file is not the one that was followed. */
export const look = (file: DiskFile, known: Followed, options: LookOptions = {}): Promise<Look> =>
  readParts(file, options.guard, async (read, stamp) => {
    const { size, inode } = stamp;
    const { offset, head, tail, headerEnd } = known;
    const other = (from = 0): Look => {
      const how = inode !== known.inode ? 'replaced' : size < offset ? 'truncated' : 'rewritten';
      return { kind: 'other', how, stamp, from };
    };
    const start = await read(0, Math.min(HEAD_BYTES, size));
    const low = Math.min(known.low ?? Number.POSITIVE_INFINITY, size);
    const same = commonLength(start, head);
    if (same < Math.min(head.length, low)) {
      // A file that begins with the same readings was changed after them.
      const from = inode === known.inode ? await lineStart(same, read, start, options) : 0;
      return other(from > headerEnd ? from : 0);
    }
    if (size < offset && inode !== known.inode) return other();
    if (size < offset) return shorter(known, low, { read, stamp, other, ...options });
    const sameTail = commonLength(await read(offset - tail.length, tail.length), tail);
    if (sameTail < tail.length) return other(await differsFrom(known, sameTail, { read, stamp, start, ...options }));
    const seen = await readLines(known, { read, stamp, start, ...options });
    // If it was truncated and written again meanwhile, these are parts of two contents.
    if (!(await read(offset - tail.length, tail.length)).equals(tail))
      throw new FileChangedError('the file was truncated while it was read', { where: { file: file.path } });
    return seen;
  });

/**
 * Where the lines begin that are not as they were taken: those at the end were written again while the file was shorter,
 * or lost to a power failure. 0 if it is not known that those before are as they were.
 */
async function differsFrom(
  { offset, tail, low, headerEnd }: Followed,
  same: number,
  { read, start, ...options }: StartReading,
): Promise<number> {
  const tailFrom = offset - tail.length;
  const from = await lineStart(Math.min(low ?? Number.POSITIVE_INFINITY, tailFrom + same), read, start, options);
  // Of a longer file, a complete line before it must be as it was.
  const isSame = tailFrom === 0 || (await lineStart(from - 1, read, start, options)) > tailFrom;
  return from > headerEnd && (low !== undefined || isSame) ? from : 0;
}

/** How many bytes two texts have in common from their beginning. */
function commonLength(a: Uint8Array, b: Uint8Array): number {
  const length = Math.min(a.length, b.length);
  for (let at = 0; at < length; at++) if (a[at] !== b[at]) return at;
  return length;
}

interface Reading extends LookOptions {
  readonly read: ReadBytes;
  readonly stamp: FileStamp;
}

type StartReading = Reading & { readonly start: Buffer };

async function shorter(
  { headerEnd, offset, tail }: Followed,
  low: number,
  { read, stamp, other, ...options }: Reading & { other(from?: number): Look },
): Promise<Look> {
  // Nothing but the header is left, or comes again: it was truncated.
  if (low <= headerEnd) return other();
  const start = await read(0, Math.min(HEAD_BYTES, stamp.size));
  const from = await lineStart(low, read, start, options);
  const after = await read(from, Math.min(MAX_BATCH_BYTES, stamp.size - from));
  const lines = after.subarray(0, endOfLines(after, lineEndOf(start, options.encoding)));
  // Lines that are as they were taken may be part of the same content, which is being written again.
  const tailFrom = offset - tail.length;
  const before = from >= tailFrom ? tail.subarray(from - tailFrom, from - tailFrom + lines.length) : undefined;
  return lines.length === 0 || (before && lines.equals(before)) ? { kind: 'shorter', stamp, low } : other(from);
}

async function readLines(
  { offset, tail }: Followed,
  { read, stamp, start, encoding, maxBytes = MAX_BATCH_BYTES }: StartReading,
): Promise<Look> {
  const left = stamp.size - offset;
  const all = await read(offset, Math.min(left, maxBytes));
  const bytes = all.subarray(0, endOfLines(all, lineEndOf(start, encoding)));
  // It may have been truncated while it was read; the next look shows how.
  const isLast = all.length === left || all.length < maxBytes;
  if (bytes.length === 0 && !isLast) throw new FileError(`a line is longer than ${maxBytes / 2 ** 20} MB`);
  const end = offset + bytes.length;
  return {
    ...{ kind: 'lines', bytes, isLast, unfinished: isLast ? all.length - bytes.length : 0, stamp },
    head: Uint8Array.from(start.subarray(0, Math.min(HEAD_BYTES, end))),
    tail: tailOf(tail, bytes),
  };
}

export function tailOf(before: Uint8Array, lines: Uint8Array): Uint8Array {
  const joined = lines.length >= TAIL_BYTES ? lines : Buffer.concat([before, lines]);
  return Uint8Array.from(joined.subarray(Math.max(0, joined.length - TAIL_BYTES)));
}

/** The bytes of a line end, by the byte order mark or the mapping. */
export function lineEndOf(start: Uint8Array, encoding = 'auto'): readonly number[] {
  const [first, second] = start;
  if (/^utf-?16-?le$|^ucs-?2$/i.test(encoding) || (first === 0xff && second === 0xfe)) return [0x0a, 0];
  if (/^utf-?16-?be$/i.test(encoding) || (first === 0xfe && second === 0xff)) return [0, 0x0a];
  return [0x0a];
}

/** Where the last complete line ends. In no other supported encoding is the byte LF part of another character. */
export function endOfLines(bytes: Uint8Array, lineEnd: readonly number[]): number {
  const [first = 0, second] = lineEnd;
  if (second === undefined) return bytes.lastIndexOf(first) + 1;
  for (let at = (bytes.length & ~1) - 2; at >= 0; at -= 2)
    if (bytes[at] === first && bytes[at + 1] === second) return at + 2;
  return 0;
}

/** The start of the line that this place is in. */
async function lineStart(at: number, read: ReadBytes, start: Uint8Array, { encoding }: LookOptions): Promise<number> {
  const lineEnd = lineEndOf(start, encoding);
  // Both bytes of a line end of UTF-16 are in the same block.
  for (let to = at - (at % lineEnd.length); to > 0; ) {
    const from = Math.max(0, to - TAIL_BYTES);
    const end = endOfLines(await read(from, to - from), lineEnd);
    if (end > 0) return from + end;
    to = from;
  }
  return 0;
}

/** The start of the line that this place of a file is in. */
export const startOfLine = (file: DiskFile, at: number, options: LookOptions = {}): Promise<number> =>
  readParts(file, options.guard, async (read, { size }) =>
    lineStart(Math.min(at, size), read, await read(0, Math.min(2, size)), options),
  );

/** The encoding of a file, as far as it matters for line ends. */
export const encodingOf = (start: Uint8Array, configured: string): string => {
  const [first, second] = lineEndOf(start, configured);
  return second === undefined ? configured : first === 0 ? 'utf-16be' : 'utf-16le';
};

/** The blocks that identify a file of which the lines up to this offset were taken. */
export const readBlocks = (file: DiskFile, offset: number, { guard }: LookOptions = {}) =>
  readParts(file, guard, async (read, { inode }) => {
    const from = Math.max(0, offset - TAIL_BYTES);
    return { inode, head: await read(0, Math.min(HEAD_BYTES, offset)), tail: await read(from, offset - from) };
  });

/** The first complete lines of a generation, among which are those that describe its readings. */
export const readLead = (file: DiskFile, from: number, bytes: number, options: LookOptions = {}): Promise<Buffer> =>
  readParts(file, options.guard, async (read, { size }) => {
    const all = await read(from, Math.min(bytes, Math.max(0, size - from)));
    const start = await read(0, Math.min(2, size));
    return all.subarray(0, endOfLines(all, lineEndOf(start, options.encoding)));
  });

/** What is at the end of a file after the last complete line. */
export const readRest = (file: DiskFile, from: number, options: LookOptions = {}): Promise<Buffer> =>
  readParts(file, options.guard, (read, { size }) => read(from, Math.min(MAX_REST_BYTES, Math.max(0, size - from))));

const MAX_REST_BYTES = 64 * 1024;

/**
 * Whether a file has all that was taken of the one that was followed: it was renamed, or is a copy of it. Another file
 * that cannot be read is none; the same one is tried again.
 */
export async function continues(file: DiskFile, known: Followed, guard?: Guard): Promise<boolean> {
  const { offset, head, tail } = known;
  if (file.size < offset || offset === 0) return false;
  return readParts(file, guard, async (read) => {
    if (!(await read(0, head.length)).equals(head)) return false;
    return (await read(offset - tail.length, tail.length)).equals(tail);
  }).catch((error: unknown) => {
    if (file.inode === known.inode && error instanceof FileBusyError) throw error;
    return false;
  });
}

/** Whether two files begin alike, beyond the lines that describe their readings. */
export async function beginAlike(a: DiskFile, b: DiskFile, headerEnd: number, guard?: Guard): Promise<boolean> {
  const [first, second] = await Promise.all(
    [a, b].map((file) => readParts(file, guard, (read, { size }) => read(0, Math.min(HEAD_BYTES, size)))),
  );
  const length = Math.min(first?.length ?? 0, second?.length ?? 0);
  return length <= headerEnd || commonLength(first ?? EMPTY, second ?? EMPTY) === length;
}

const EMPTY = new Uint8Array();

/** Whether a folder has any file: that of a share which is not mounted has none, which says nothing about its files. */
export const hasFiles = async (folder: string): Promise<boolean> => (await namesIn(folder)).length > 0;

const namesIn = async (folder: string): Promise<string[]> =>
  (await entriesOf(folder).catch(() => [])).map(({ name }) => String(name));

/** `log.1`, `log-20260304`, `log.2026-03-04.1` or `temp-20260304.csv`, but not `temp-2.csv`: that is another file. */
export function isRotationOf(path: string, of: string): boolean {
  const [name, { base, name: stem, ext }] = [posix.basename(path), posix.parse(of)];
  if (name.startsWith(base)) return /^[.\-_]\d[\d.\-_T]*$/.test(name.slice(base.length));
  const middle = name.slice(stem.length, name.length - ext.length);
  return name.startsWith(stem) && name.endsWith(ext) && /^[.\-_]\d{4}[\d.\-_T]{2,}$/.test(middle);
}

/** Of a folder with more files, the others are not compared. */
const MAX_SIBLINGS = 100;

/** The files beside this one that may be earlier generations of it, newest first: `log.1`, `log-20260304`. */
export async function siblingsOf(file: DiskFile): Promise<DiskFile[]> {
  if (typeof file.location !== 'string') return [];
  const { dir, base, name } = posix.parse(file.location);
  const names = (await namesIn(dir)).filter(
    (one) => one !== base && (one.startsWith(base) || one.startsWith(`${name}.`) || one.startsWith(`${name}-`)),
  );
  const folder = posix.dirname(file.path);
  const places = names.slice(0, 10 * MAX_SIBLINGS).map((one) => posix.join(dir, one));
  const results = await statAll(places);
  return places
    .flatMap((location, n): DiskFile[] => {
      const stats = results[n];
      if (stats === undefined || stats instanceof Error || !stats.isFile()) return [];
      return [{ path: posix.join(folder, posix.basename(location)), location, ...stampOf(stats) }];
    })
    .sort((a, b) => (a.mtimeNs < b.mtimeNs ? 1 : -1))
    .slice(0, MAX_SIBLINGS);
}
