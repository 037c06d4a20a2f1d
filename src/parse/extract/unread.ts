import { regexSource } from '../../config/grammar.js';
import type { Unread } from '../../model.js';
import { isBlank, isRule, type Line, saysNothing } from '../lines.js';
import { isUnit } from '../values/unit.js';

/** The lines of a file that are in neither facts nor tables. Blank lines, drawn lines and headings say nothing. */
export type UnreadLines = ReturnType<typeof openUnreadLines>;

interface Range {
  readonly kind: Unread['kind'];
  readonly sheet: number;
  readonly from: number;
  to: number;
  /** How many of the lines look like readings, and how many cells those have. */
  readings: number;
  readonly width: number;
}

/** The last of more ranges than this spans the rest of the file. */
const MAX_RANGES = 1000;

export const openUnreadLines = () => ({
  ranges: [] as Range[],
  /** By number of cells: how many unused lines look like readings. */
  widths: new Map<number, number>(),
  tableLines: 0,
  /** The sheets that something was read from. */
  usedSheets: new Set<number>(),
  /** Columns that the mapping leaves out. */
  columns: [] as Unread[],
});

/** `width`: the number of cells of a line that looks like a reading, otherwise 0. */
export function addUnread({ ranges }: Pick<UnreadLines, 'ranges'>, line: Line, kind: Unread['kind'], width = 0): void {
  if (isBlank(line) || isRule(line) || (kind === 'unread' && saysNothing(line))) return;
  // A quoted cell can span lines.
  const { sheet = 0, number: from, count = line.text.includes('\n') ? line.text.split('\n').length : 1 } = line;
  const to = from + count - 1;
  const last = ranges.at(-1);
  const readings = width === 0 ? 0 : 1;
  const isLike = last?.kind === kind && last.sheet === sheet && last.width === width;
  const isNext = isLike && from <= last.to + 1 && from >= last.from;
  if (last && (isNext || ranges.length >= MAX_RANGES)) {
    last.to = Math.max(last.to, to);
    last.readings += readings;
  } else ranges.push({ kind, sheet, from, to, readings, width });
}

/** What became of a line that no table has: `texts` were read from it. `isPlaced`: as facts that can begin with a number. */
export function judgeLine(
  unread: UnreadLines,
  line: Line,
  texts: readonly string[],
  { isSkipped, isPlaced }: { readonly isSkipped: boolean; readonly isPlaced: boolean },
): void {
  if (texts.length > 0) unread.usedSheets.add(line.sheet ?? 0);
  const isWhole = texts.length > 0 && covers(line.text, texts);
  const width = isPlaced ? 0 : readingWidth(line, texts.length > 0, isWhole);
  if (width !== 0) unread.widths.set(width, (unread.widths.get(width) ?? 0) + 1);
  if (texts.length === 0) addUnread(unread, line, isSkipped ? 'left out' : 'unread', width);
  else if (!isWhole) addUnread(unread, line, 'partly read', width);
  else if (width !== 0) addUnread(unread, line, 'only facts', width);
}

const MAX_CELLS = 1000;
const MAX_CHARACTERS = 10_000;
const NUMBER = /^[<>~±]?\s*[+-]?(?:\d+(?:[.,' ]\d+)*|[.,]\d+)(?:e[+-]?\d+)?\s?%?$/i;
/** Dates, times and missing values occur in rows of readings, but a row of nothing else is not a reading. */
const NEUTRAL =
  /^(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}|[\d-]+T[\d:.]+\S*|\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?|[-*?]+|nan|n\/a|inf|ovrflw)$/i;
/** The name of a sample or well. */
const LABEL = /^[\w-]*\d[\w-]*$/;
/** What people compute from readings, below them or beside them. */
const STATISTIC =
  /^(?:mean|average|avg|median|min|max|minimum|maximum|s\.?d\.?|std\S*|stdev|cv|%?cv%?|rsd|%?rsd%?|sum|total|count|mittelwert|moyenne)\b/i;

/** Of a calibration: they are settings. */
const COEFFICIENT = /coef|koeff|polynom/i;
/** How much smaller the coefficient of the next power is. */
const FALL = 20;
/** Readings also fall, down to zero or to the noise, but rarely to so little. */
const MAX_LAST = 1e-3;

const arePowers = (numbers: readonly number[]): boolean =>
  numbers.length > 2 &&
  numbers.every((number, n) => number !== 0 && Math.abs(number) * FALL <= Math.abs(numbers[n - 1] ?? Infinity)) &&
  Math.abs(numbers.at(-1) ?? 0) < MAX_LAST;

/**
 * The number of cells of a line that looks like a reading: numbers are most of its cells, or it is one number with a unit;
 * 0 for any other line. A line that was read as a fact must begin with a number, which is not a name for a fact, or have
 * several numbers and not be read as a whole. It can also be a row that was split in the wrong place, such as
 * `S-01  2,6233`: its width is negative, because a few facts may look like that, too.
 */
function readingWidth({ text, cells }: Line, isFact: boolean, isWhole: boolean): number {
  if (!/\d/.test(text) && text !== '') return 0;
  const filled = cells.filter((cell) => cell !== '');
  if (!isFact && isWeighing(text)) return 2;
  const own = filled.length > 1 ? widthOf(filled, isFact) : 0;
  if (isFact && !isWhole && own === 0 && filled.filter((cell) => NUMBER.test(cell)).length > 1)
    return widthOf(filled, false);
  return (
    own ||
    widthOf(
      text
        .slice(0, MAX_CHARACTERS)
        .split(/[\t;|]+|,?\s+/)
        .filter(Boolean),
      isFact,
    )
  );
}

/** `N  +  12.3456 g`: as balances print it. */
function isWeighing(text: string): boolean {
  const [, unit = ''] = /^\s*(?:[\p{L}#]\S{0,11}\s+)?[-+]?\s*\d[\d.,]*\s+([^\s\d]\S{0,11})\s*$/u.exec(text) ?? [];
  return unit !== '' && isUnit(unit);
}

function widthOf(parts: readonly string[], isFact: boolean): number {
  const [first = '', ...others] = parts;
  if (STATISTIC.test(first) || COEFFICIENT.test(first)) return 0;
  if (isFact && !NUMBER.test(first)) {
    const isRow = LABEL.test(first) && others.length > 0 && others.every((part) => NUMBER.test(part));
    return isRow && !arePowers(others.map((part) => Number(part.replace(',', '.')))) ? -parts.length : 0;
  }
  let numbers = 0;
  let neutral = 0;
  for (const part of parts.slice(0, MAX_CELLS)) {
    if (NUMBER.test(part)) numbers++;
    else if (NEUTRAL.test(part)) neutral++;
  }
  const all = Math.min(parts.length, MAX_CELLS);
  return numbers > 0 && 2 * (numbers + neutral) > all && (all > 1 || !isFact) ? all : 0;
}

/** `late`: lines that turned out to belong to a table after they were judged. */
export function finishUnread(unread: UnreadLines, sheets: readonly string[], late: readonly Line[]): Unread[] {
  const lateLines = new Set(late.map(({ sheet = 0, number }) => `${sheet} ${number}`));
  const ranges = unread.ranges.flatMap((range) => (lateLines.size === 0 ? [range] : without(range, lateLines)));
  const isWhole = (sheet: number) => sheets.length > 0 && !unread.usedSheets.has(sheet);
  const joined = joinRanges(ranges.map((range) => ({ ...range, readings: countReadings(unread, range) })));
  const whole = [...new Set(joined.map(({ sheet }) => sheet))].filter(isWhole);
  const counted = (readings: number) => (readings > 0 ? { readings } : {});
  return [
    ...joined
      .filter(({ sheet }) => !isWhole(sheet))
      .map(({ kind, sheet, from, to, readings }) => ({
        kind,
        ...named(sheets[sheet]),
        from,
        to,
        ...counted(readings),
      })),
    ...whole.map((sheet) => ({
      kind: 'unread' as const,
      ...named(sheets[sheet]),
      ...counted(joined.reduce((sum, range) => sum + (range.sheet === sheet ? range.readings : 0), 0)),
    })),
    ...unread.columns,
  ];
}

/** Fewer lines of one width are not readings: most files have a line or two of numbers. */
const MIN_ROWS = 3;
/** The same limit for lines with one number, with or without a label. */
export const MIN_SHORT_ROWS = 10;

const countReadings = ({ widths }: UnreadLines, { width, readings }: Range): number =>
  (widths.get(width) ?? 0) < (Math.abs(width) < 3 && width < 2 ? MIN_SHORT_ROWS : MIN_ROWS) ? 0 : readings;

/** Sorted; neighbours that are alike are one range. */
function joinRanges(ranges: readonly Range[]): Range[] {
  const joined: Range[] = [];
  for (const range of ranges.toSorted((a, b) => a.sheet - b.sheet || a.from - b.from)) {
    const { kind, sheet, from, to, readings } = range;
    // All of these lines were read.
    if (kind === 'only facts' && readings === 0) continue;
    const last = joined.at(-1);
    const isLike = last?.kind === kind && last.sheet === sheet && last.readings > 0 === readings > 0;
    if (isLike && from <= last.to + 1) {
      last.to = Math.max(last.to, to);
      last.readings += readings;
    } else joined.push(range);
  }
  return joined;
}

const named = (sheet: string | undefined) => (sheet === undefined ? {} : { sheet });

function without(range: Range, lines: ReadonlySet<string>): Range[] {
  const kept: Range[] = [];
  for (let line = range.from; line <= range.to; line++) {
    if (lines.has(`${range.sheet} ${line}`)) continue;
    const last = kept.at(-1);
    if (last?.to === line - 1) last.to = line;
    else kept.push({ ...range, from: line, to: line });
  }
  return kept.map((part) => ({ ...part, readings: Math.min(range.readings, part.to - part.from + 1) }));
}

/** The lines of a value, from the first to the last. */
export interface LineRange {
  readonly from: number;
  readonly to: number;
}

/** From the first to the last of these lines. */
export function spanOf(lines: readonly LineRange[]): LineRange {
  let [from, last] = [Number.POSITIVE_INFINITY, 0];
  for (const line of lines) [from, last] = [Math.min(from, line.from), Math.max(last, line.to)];
  return { from, to: last };
}

/** The lines of these values, joined to ranges. */
export function toRanges(lines: readonly LineRange[], kind: Unread['kind']): Unread[] {
  const ranges: { kind: Unread['kind']; from: number; to: number }[] = [];
  for (const { from, to } of lines.toSorted((a, b) => a.from - b.from)) {
    const last = ranges.at(-1);
    if (last && (from <= last.to + 1 || ranges.length >= MAX_RANGES)) last.to = Math.max(last.to, to);
    else ranges.push({ kind, from, to });
  }
  return ranges;
}

/** A number whatever the mapping says. The unit of any other value may be dropped, because only numbers have units. */
export const isPlainNumber = (text: string | undefined): boolean =>
  /^[+-]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?$/.test(text?.trim() ?? '');

const WORD = /[\p{L}\p{N}]+/gu;

/** Whether every word and number of a text is in one of the others, as often as in the text. */
export function covers(text: string, others: readonly string[]): boolean {
  const left = new Map<string, number>();
  for (const other of others) for (const word of other.match(WORD) ?? []) left.set(word, (left.get(word) ?? 0) + 1);
  for (const word of text.match(WORD) ?? []) {
    const times = left.get(word) ?? 0;
    if (times === 0) return false;
    left.set(word, times - 1);
  }
  return true;
}

/** The words of a pattern itself. A line that a pattern finds says no more if it has only these and what is captured. */
export const wordsOf = (pattern: string | number): string => {
  const source = typeof pattern === 'number' ? '' : (regexSource(pattern) ?? undefined);
  return source === undefined ? String(pattern) : source.replace(/\(\?<[^>]*>|\\[a-zA-Z]/g, ' ');
};
