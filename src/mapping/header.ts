import { isUtf8 } from 'node:buffer';
import { createHash } from 'node:crypto';
import { FileError } from '../errors.js';
import { type FileRecord, shapeOf } from '../model.js';
import { lineEndOf } from '../watch/growing.js';
import type { Mapping } from './mapping.js';
import { type SentError, sendError } from './reading.js';

/** The lines of a growing file that its appended lines are parsed with. */
export interface Header {
  /** The lines before the first reading, and some readings. */
  readonly bytes: Uint8Array;
  /** Where the first reading begins in it. */
  readonly end: number;
  /** The hash of the lines up to the first reading. */
  readonly start: string;
}

/** `reason`: there is no reading in these lines, as far as they can be read. */
export type FoundHeader =
  | { readonly header: Header; readonly reason?: never }
  | { readonly header?: never; readonly reason: SentError };

/** How much of the beginning of a file may describe its readings. */
export const MAX_LEAD_BYTES = 64 * 1024;
const MAX_HEADER_BYTES = 16 * 1024;
/** Enough readings to recognise a layout without a mapping. */
const HEADER_ROWS = 20;

export interface HeaderTask {
  readonly path: string;
  /** The first complete lines of the file. */
  readonly lead: Uint8Array;
  readonly encoding: string;
  readonly minRows: number;
}

/** Among more lines, the first reading is not looked for. */
const MAX_DESCRIBING = 300;

/**
 * Finds the first reading: the fewest lines that are read like the whole. Without a mapping, a layout is recognised from
 * several readings: `minRows`.
 */
export async function findHeader(
  { path, lead, encoding, minRows }: HeaderTask,
  mapping: Pick<Mapping, 'parse'>,
): Promise<FoundHeader> {
  const lines = splitLines(lead, encoding);
  const read = (n: number) => parseLines(path, lines.slice(0, n), mapping);
  try {
    const whole = await readMost(lines.length, read);
    if (rowsIn(whole) < minRows) throw new FileError('the file has too few readings yet', { where: { file: path } });
    const shape = JSON.stringify(shapeOf(whole));
    for (let n = 1; n <= Math.min(lines.length, MAX_DESCRIBING); n++) {
      const record = await read(n).catch(() => undefined);
      if (record && rowsIn(record) > 0 && JSON.stringify(shapeOf(record)) === shape)
        return { header: await makeHeader(lines, n, (some) => parseLines(path, some, mapping)) };
    }
    throw new FileError('labfeed cannot see where the header of the file ends and its readings begin', {
      where: { file: path },
    });
  } catch (error) {
    return { reason: sendError(error) };
  }
}

/** A line that cannot be read must not keep those before it from being recognised. */
async function readMost(lines: number, read: (n: number) => Promise<FileRecord>): Promise<FileRecord> {
  try {
    return await read(lines);
  } catch (error) {
    for (let n = lines >> 1; n > 0; n >>= 1) {
      const record = await read(n).catch(() => undefined);
      if (record && rowsIn(record) > 0) return record;
    }
    throw error;
  }
}

async function makeHeader(
  lines: readonly Uint8Array[],
  n: number,
  read: (lines: readonly Uint8Array[]) => Promise<FileRecord>,
): Promise<Header> {
  const first = Buffer.concat(lines.slice(0, n));
  const start = createHash('sha256').update(first).digest('hex');
  const end = first.length - (lines[n - 1]?.length ?? 0);
  const rows = lines.slice(n, n + HEADER_ROWS).filter((line) => !isBlank(line));
  const more = Buffer.concat([first, ...rows]);
  const isReadable =
    more.length <= MAX_HEADER_BYTES && (await read([...lines.slice(0, n), ...rows]).catch(() => undefined));
  return { bytes: Uint8Array.from(isReadable ? more : first), end, start };
}

export function splitLines(bytes: Uint8Array, encoding: string): Uint8Array[] {
  const lineEnd = lineEndOf(bytes, encoding);
  const lines: Uint8Array[] = [];
  const [first = 0x0a, second] = lineEnd;
  for (let from = 0; from < bytes.length; ) {
    let at = bytes.indexOf(first, from);
    if (second !== undefined)
      while (at >= 0 && ((at - from) % 2 !== 0 || bytes[at + 1] !== second)) at = bytes.indexOf(first, at + 1);
    const to = at < 0 ? bytes.length : at + lineEnd.length;
    lines.push(bytes.subarray(from, to));
    from = to;
  }
  return lines;
}

export const parseLines = (
  path: string,
  lines: readonly Uint8Array[],
  mapping: Pick<Mapping, 'parse'>,
): Promise<FileRecord> => {
  const content = Buffer.concat(lines);
  const file = { path, location: path, size: content.length, mtimeNs: 0n, inode: 0n, sha256: '', content };
  return mapping.parse(file);
};

export const rowsIn = ({ tables }: FileRecord): number => tables.reduce((sum, { count }) => sum + count, 0);

export const textOf = (line: Uint8Array = new Uint8Array(), encoding: string): string => {
  const [first, second] = lineEndOf(line, encoding);
  const name = second !== undefined ? (first === 0 ? 'utf-16be' : 'utf-16le') : isUtf8(line) ? 'utf-8' : 'windows-1252';
  return new TextDecoder(name)
    .decode(line)
    .replace(/[\0\ufeff]/g, '')
    .trimEnd();
};

interface Lines {
  readonly path: string;
  readonly header: Header;
  readonly encoding: string;
}

/** The lines that repeat the header: a logger writes it again when it is restarted. */
export function findAgain(all: readonly Uint8Array[], from: number, { header, encoding }: Lines): Set<number> {
  const describing = splitLines(header.bytes.subarray(0, header.end), encoding)
    .map((line) => textOf(line, encoding))
    .filter((text) => text.trim() !== '');
  const last = describing.at(-1);
  const again = new Set<number>();
  if (last === undefined) return again;
  const known = new Set(describing);
  const keys = new Set(describing.slice(0, -1).flatMap((text) => keyOf(text) ?? []));
  const isWords = !/\d/.test(last);
  for (let n = from; n < all.length; n++) {
    // Nearly every reading has a digit, which is found sooner than its text.
    if ((isWords && hasDigit(all[n])) || textOf(all[n], encoding) !== last) continue;
    again.add(n);
    // The facts above it may have other values.
    for (let above = n - 1; above >= Math.max(from, n - describing.length + 1); above--) {
      const text = textOf(all[above], encoding);
      if (!known.has(text) && !keys.has(keyOf(text) ?? '')) break;
      again.add(above);
    }
  }
  return again;
}

/** The name of a fact. A time of day has a colon, too. */
const keyOf = (text: string): string | undefined => /^\s*([^:=]*\p{L}[^:=]*)[:=]/u.exec(text.slice(0, 80))?.[1]?.trim();

/** How many lines are read to find out whether they are a table of their own. */
const MAX_TRIED_LINES = 200;
/** A log of words has many lines without digits. */
const MAX_TRIES = 20;

/**
 * The first line of another header, with other columns: what follows it is a run of its own. Without one, the number of
 * lines. Only a line without digits can be one, in a file whose readings have digits.
 */
export async function findBreak(
  all: readonly Uint8Array[],
  from: number,
  again: ReadonlySet<number>,
  { path, header, encoding }: Lines,
  mapping: Mapping,
): Promise<number> {
  const reading = textOf(splitLines(header.bytes.subarray(header.end), encoding)[0], encoding);
  if (header.end === 0 || !/\d/.test(reading)) return all.length;
  for (let n = from, tries = 0; n < all.length && tries < MAX_TRIES; n++) {
    const line = all[n] ?? new Uint8Array();
    if (again.has(n) || hasDigit(line) || isBlank(line)) continue;
    tries += 1;
    const tried = await parseLines(path, all.slice(n, n + MAX_TRIED_LINES), mapping).catch(() => undefined);
    if (!tried || rowsIn(tried) === 0) continue;
    const head = splitLines(header.bytes, encoding);
    const known = await parseLines(path, head, mapping);
    if (JSON.stringify(shapeOf(tried)) === JSON.stringify(shapeOf(known))) continue;
    if (sharesColumn(tried, known)) return n;
    // A message such as `ERROR,sensor lost` is not a header: the readings continue.
    const next = all.slice(n + 1).find((one) => !isBlank(one)) ?? new Uint8Array();
    const read = await parseLines(path, [...head, next], mapping).catch(() => known);
    if (rowsIn(read) === rowsIn(known)) return n;
  }
  return all.length;
}

const columnsIn = ({ tables }: FileRecord): string[] =>
  tables.flatMap(({ columns }) => columns.map(({ name }) => name));

function sharesColumn(a: FileRecord, b: FileRecord): boolean {
  const names = new Set(columnsIn(a));
  return columnsIn(b).some((name) => names.has(name));
}

/** Nothing but delimiters and NUL characters. A table ends at such a line, but a growing file continues. */
export const isBlank = (line: Uint8Array): boolean => line.every((byte) => byte <= 0x20 || BLANK_BYTES.has(byte));

const BLANK_BYTES: ReadonlySet<number> = new Set(Buffer.from(',;|'));

const hasDigit = (line: Uint8Array | undefined): boolean => line?.some((byte) => byte >= 0x30 && byte <= 0x39) === true;
