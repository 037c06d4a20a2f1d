import { DateTime } from 'luxon';

/** How long, as people say it: in the one unit that fits. */
export function spokenDuration(ms: number): string {
  if (ms < 1000) return `${Math.max(0, Math.round(ms))} ms`;
  if (ms < 100_000) return `${Math.floor(ms / 1000)} s`;
  if (ms < 100 * 60_000) return `${Math.floor(ms / 60_000)} min`;
  if (ms < 48 * 3_600_000) return `${Math.floor(ms / 3_600_000)} h`;
  return `${Math.floor(ms / 86_400_000)} days`;
}

/** A reason that begins with the place of the mistake, where the file is named already: its line and column stay. */
export function withoutPath(reason: string, path: string): string {
  if (path === '' || !reason.startsWith(path)) return reason;
  const rest = reason.slice(path.length);
  const [, line, column] = /^:(\d+)(?::(\d+))?: /.exec(rest) ?? [];
  const told = rest.replace(/^(?::\d+){0,2}: /, '');
  if (line === undefined) return told;
  return `line ${line}${column === undefined ? '' : `, column ${column}`}: ${told}`;
}

/** `1 run`, `2 runs`. */
export const spokenCount = (n: number, what: string): string => `${n} ${what}${n === 1 ? '' : 's'}`;

/** A time as people of this place read it, to the second. */
export const atTime = (ms: number): string => DateTime.fromMillis(ms).toFormat('yyyy-MM-dd HH:mm:ss');

/** To the minute, for lists; the year is left out where it is this one. */
export function atMinute(ms: number, now: number): string {
  const time = DateTime.fromMillis(ms);
  return time.toFormat(time.year === DateTime.fromMillis(now).year ? 'MM-dd HH:mm' : 'yyyy-MM-dd HH:mm');
}

/** `5 minutes ago`, `in 12 seconds`. */
export function fromNow(ms: number, now: number): string {
  if (Math.abs(ms - now) < 1000) return 'just now';
  const base = DateTime.fromMillis(now);
  return DateTime.fromMillis(ms).toRelative({ base, locale: 'en' }) ?? atTime(ms);
}

/** The known name that a mistyped one was most likely meant to be; nothing where none is near. */
export function nearest(name: string, known: Iterable<string>): string | undefined {
  const wanted = fold(name);
  let best: string | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of known) {
    const distance = distanceBetween(wanted, fold(candidate));
    if (distance < least) [best, least] = [candidate, distance];
  }
  return best;
}

/** Case, blanks and the signs that stand for blanks are not what a name is remembered by. */
const fold = (name: string): string => name.toLowerCase().replace(/[\s_-]+/g, '');

/** Infinite where the names have too little in common to be taken for each other. */
function distanceBetween(a: string, b: string): number {
  const [short, long] = a.length < b.length ? [a, b] : [b, a];
  const bearable = Math.floor(long.length / 3);
  const edits = long.length - short.length > bearable ? Number.POSITIVE_INFINITY : countEdits(a, b);
  if (edits <= bearable) return edits;
  // `Sample` was meant to be `Sample Name`, unless a mere slip of the finger explains it better.
  return short.length >= 3 && long.includes(short) ? long.length : Number.POSITIVE_INFINITY;
}

/** Letters added, left out, replaced or swapped with their neighbour (optimal string alignment). */
function countEdits(a: string, b: string): number {
  let before: number[] = [];
  let above = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    for (let j = 1; j <= b.length; j++) {
      const replaced = cell(above, j - 1) + (a[i - 1] === b[j - 1] ? 0 : 1);
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      row[j] = Math.min(
        replaced,
        cell(above, j) + 1,
        cell(row, j - 1) + 1,
        swapped ? cell(before, j - 2) + 1 : Number.POSITIVE_INFINITY,
      );
    }
    [before, above] = [above, row];
  }
  return cell(above, b.length);
}

const cell = (row: readonly number[], j: number): number => row[j] ?? Number.POSITIVE_INFINITY;

/** Text from files and names of files, on somebody's terminal: nothing in it may move the cursor or turn the text. */

/** On one line. */
export const printableLine = (text: string): string => text.replace(/[\p{Cc}\p{Cf}\u2028\u2029]+/gu, ' ');

/** Line breaks and tabs stay. */
export const printableLines = (text: string): string =>
  text.replace(/\r\n?/g, '\n').replace(/[^\P{Cc}\n\t]|\p{Cf}/gu, '\ufffd');

export const indent = (text: string, by = '  '): string => text.replace(/^/gm, by);

/** Text from files, made fit for where it goes. Files hold control characters and halves of characters. */

const ODD = /[\p{Cc}\p{Cs}\u2028\u2029]/u;
const ODD_IN_LINES = /[^\P{Cc}\n\t]|\p{Cs}/u;
const BREAKS = /[\p{Cc}\u2028\u2029]/gu;
const CONTROL_IN_LINES = /[^\P{Cc}\n\t]/gu;
const HALVES = /\p{Cs}/gu;

/** As one line. Each control character becomes one blank, so that the length stays what it was. */
export function oneLine(text: string): string {
  return ODD.test(text) ? text.replace(BREAKS, ' ').replace(HALVES, '\ufffd') : text;
}

/** Line breaks and tabs stay. */
export function manyLines(text: string): string {
  if (!ODD_IN_LINES.test(text)) return text;
  return text.replace(/\r\n?/g, '\n').replace(CONTROL_IN_LINES, ' ').replace(HALVES, '\ufffd');
}

/** The text cut into pieces of at most so many bytes of UTF-8, four at least, between characters. */
export function* piecesOf(text: string, maxBytes: number): Generator<string> {
  if (Buffer.byteLength(text) <= maxBytes) {
    yield text;
    return;
  }
  const bytes = Buffer.from(text);
  const most = Math.max(4, Math.floor(maxBytes));
  for (let from = 0; from < bytes.length; ) {
    let to = Math.min(from + most, bytes.length);
    while (to > from && isContinuation(bytes[to])) to--;
    yield bytes.toString('utf8', from, to);
    from = to;
  }
}

const isContinuation = (byte: number | undefined): boolean => byte !== undefined && (byte & 0xc0) === 0x80;

const CUT = '…';
const CUT_BYTES = Buffer.byteLength(CUT);

/** At most so many bytes of UTF-8; what is cut off is seen to be. */
export function cutBytes(text: string, maxBytes: number): string {
  if (Buffer.byteLength(text) <= maxBytes) return text;
  const [start = ''] = piecesOf(text, maxBytes - CUT_BYTES);
  return start + CUT;
}
