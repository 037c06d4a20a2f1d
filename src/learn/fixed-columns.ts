import { compileSplit } from '../parse/cells.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { isWord, kindOf } from './kinds.js';

/** Columns that are found by the positions of their characters. */

/**
 * Columns of fixed width that touch (`340.0-19.58`) or have empty cells. Blanks do not separate these, but each number
 * ends where those above and below it end, or dashes below the names show the columns.
 */
export interface FixedColumns {
  /** Indexes of lines: that of the names, up to but not including the one after the last row. */
  readonly from: number;
  readonly to: number;
  readonly firstRow: number;
  /** Where further cells start, in characters from 1. */
  readonly at: number[];
}

const MIN_ROWS = 4;
/** More rows would show no other columns. */
const MAX_ROWS = 500;

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`;
const ROW = /^(?=.*\d)[\s\d.+\-eE]+$/;
/** A number and nothing else. */
export const WHOLE = new RegExp(`^${NUMBER}$`);
const TOKEN = /\S+/g;
/** Where one number ends and the next starts with a sign. */
const INNER = /\d(?=[-+]\d)/g;

export function findFixedColumns(texts: readonly string[]): FixedColumns[] {
  const found: FixedColumns[] = [];
  for (let from = 0; from < texts.length; from++) {
    const ruled = RULER.test(texts[from] ?? '') ? columnsBelow(texts, from) : undefined;
    if (ruled) found.push(ruled);
    if (!ROW.test(texts[from] ?? '')) continue;
    let to = from;
    while (to < texts.length && ROW.test(texts[to] ?? '')) to++;
    const rows = texts.slice(from, Math.min(to, from + MAX_ROWS));
    const columns = rows.length < MIN_ROWS ? undefined : columnsOf(rows, texts[from - 1] ?? '', texts[from - 2] ?? '');
    if (columns) found.push({ from: from - columns.headerRows, to, firstRow: from, at: columns.at });
    from = to;
  }
  return found;
}

/** A group of dashes for each column: `----|-------|----`, `-----  ------  ---`. */
const RULER = /^ *[-=]{2,}(?:(?:[|+]| +)[-=]{2,}){2,}[|+]? *$/;
/** Names can take three lines, one of them units. Words can go beyond their dashes by a few characters. */
const [MAX_NAMES, MAX_SHIFT] = [3, 3];

/** Blank lines and other rules end the names above and the rows below. */
const isContent = (text: string | undefined): boolean => text !== undefined && /[\p{L}\p{N}]/u.test(text);

function columnsBelow(texts: readonly string[], ruler: number): FixedColumns | undefined {
  let from = ruler;
  while (from > 0 && ruler - from < MAX_NAMES && isContent(texts[from - 1])) from--;
  let to = ruler + 1;
  while (isContent(texts[to])) to++;
  const all = [...texts.slice(from, ruler), ...texts.slice(ruler + 1, Math.min(to, ruler + MAX_ROWS))];
  if (from === ruler || to < ruler + 2 || all.some((text) => text.includes('\t'))) return undefined;
  const groups = [...(texts[ruler] ?? '').matchAll(/[-=]+/g)];
  const at = groups
    .slice(1)
    .map(({ index }) =>
      Array.from({ length: 2 * MAX_SHIFT }, (_, n) => index + (n % 2 === 0 ? -n / 2 : (n + 1) / 2)).find((place) =>
        all.every((text) => / |^.?$/.test(text.slice(place - 1, place + 1))),
      ),
    );
  const places = at.flatMap((place) => (place === undefined ? [] : [place + 1]));
  const isSplit = places.length === at.length && places.every((place, n) => n === 0 || place > (places[n - 1] ?? 0));
  return isSplit ? { from, to, firstRow: ruler + 1, at: places } : undefined;
}

function columnsOf(rows: readonly string[], above: string, upper: string) {
  if (rows.some((row) => row.includes('\t'))) return undefined;
  const counts = new Set(rows.map((row) => compileSplit('whitespace').all(row).length));
  // As many numbers in each row, and all of them separated: blanks are enough.
  if (counts.size === 1 && !rows.some(hasGlued)) return undefined;
  const ends = [...new Set(rows.flatMap(endsOf))].sort((a, b) => a - b);
  const cellsIn = (text: string) => ends.map((end, n) => text.slice(ends[n - 1] ?? 0, end).trim());
  const isFixed = rows.every((row) => cellsIn(row).every((cell) => cell === '' || WHOLE.test(cell)));
  if (ends.length < 2 || !isFixed) return undefined;
  const areNames = (text: string) => isUncut(text, ends) && cellsIn(text).every((cell) => cell !== '' && isWord(cell));
  const isPart = (text: string) => isUncut(text, ends) && cellsIn(text).every((cell) => cell === '' || isWord(cell));
  const headerRows = areNames(above) ? 1 : areNames(upper) && isPart(above) ? 2 : 0;
  return headerRows === 0 ? undefined : { headerRows, at: ends.slice(0, -1).map((end) => end + 1) };
}

const hasGlued = (row: string): boolean => (row.match(TOKEN) ?? []).some((token) => !WHOLE.test(token));

/** Where numbers end. Of two without a sign between them, only the second is certain. */
function endsOf(row: string): number[] {
  return [...row.matchAll(TOKEN)].flatMap(({ 0: token, index }) => [
    ...[...token.matchAll(INNER)].map((inner) => index + inner.index + 1),
    index + token.length,
  ]);
}

/** No word goes beyond its column. */
const isUncut = (text: string, ends: readonly number[]): boolean =>
  text.trimEnd().length <= (ends.at(-1) ?? 0) &&
  ends.every((end) => text.slice(end - 1, end + 1).length < 2 || /\s/.test(text.slice(end - 1, end + 1)));

/** Each of them takes another search of all lines. */
const MAX_ALIGNED = 20;

/** More than one number, so the line is no fact. */
const isRow = (text: string | undefined): boolean =>
  text !== undefined && !/[\t;|]|[:=] /.test(text) && (text.match(READING) ?? []).length > 1;

const READING = /(?<!\S)[-+<>]?\d+(?:[.,]\d*)?(?:[eE][-+]?\d+)?\*?(?!\S)/g;

/**
 * Rows below names that contain blanks, or of which the first has none: each cell ends where those above and below it
 * end, and so do the names. `isKnown`: whether a line is in a table that has names.
 */
export function findAlignedColumns(texts: readonly string[], isKnown: (index: number) => boolean): FixedColumns[] {
  const found: FixedColumns[] = [];
  for (let from = 1; from < texts.length && found.length < MAX_ALIGNED; from++) {
    if (!isRow(texts[from]) || isKnown(from)) continue;
    let to = from + 1;
    // A few words between rows.
    while (isRow(texts[to]) || (isContent(texts[to]) && isRow(texts[to + 1]))) to++;
    const rows = texts.slice(from, Math.min(to, from + MAX_ROWS)).filter(isRow);
    const above = texts[from - 1]?.trim() === '' ? from - 2 : from - 1;
    const isUnits = (texts[above]?.match(TOKEN) ?? []).every((token) => token === '-' || isUnit(bareUnit(token) ?? ''));
    const first = isUnits && isContent(texts[above - 1]) ? above - 1 : above;
    // The names may start in the line above, and would be cut.
    const isCut = WORDS.test(texts[first - 1] ?? '');
    const at = isCut ? undefined : gapsOf(rows, texts.slice(first, above + 1));
    if (at) found.push({ from: first, to, firstRow: from, at });
    from = to;
  }
  return found;
}

/** Three words that are no fact. */
const WORDS = /^[^:=\d]*\S\s+[^:=\d]*\S\s+[^:=\d]+$/;

/** Where further cells start, if there is a gap in all lines behind each column of the rows, and a name above it. */
function gapsOf(rows: readonly string[], names: readonly string[]): number[] | undefined {
  const ends = rows.map((row) => new Set([...row.matchAll(TOKEN)].map(({ 0: token, index }) => index + token.length)));
  const common = [...(ends[0] ?? [])].filter((end) => ends.every((each) => each.has(end))).sort((a, b) => a - b);
  const labels = rows.map((row) => /^(.*\S)\s+\S+$/.exec(row.slice(0, common[0]))?.[1]);
  // Labels of different lengths end in different places.
  const isLabelled = labels.every((label) => label !== undefined);
  const columns = isLabelled ? [Math.max(...labels.map((label) => label?.length ?? 0)), ...common] : common;
  const isFree = (place: number) => names.every((text) => (text[place] ?? ' ') === ' ');
  const isNamed = (end: number) => names.some((text) => /\S(?!\S)/.test(text.slice(end - 1, end + 1)));
  // A single row proves the columns only where the names end with it.
  if (rows.length < 2 && !common.slice(isLabelled ? 0 : 1).every(isNamed)) return undefined;
  const at: number[] = [];
  for (const [n, end] of columns.slice(0, -1).entries()) {
    const next = Math.min(...rows.map((row) => end + row.slice(end).search(/\S/)));
    let from = end;
    while (from < next && !isFree(from)) from++;
    let to = from;
    while (to < next && isFree(to)) to++;
    if (from === next) return undefined;
    const hasName = names.some((text) => text.slice(to, columns[n + 1]).trim() !== '');
    const areDates = rows.every((row) => kindOf(row.slice(0, columns[n + 1]).trim()) === 'date');
    // The middle: cells of other files may be longer.
    if (hasName || !areDates) at.push(Math.ceil((from + to) / 2) + 1);
  }
  return at.length < 2 ? undefined : at;
}
