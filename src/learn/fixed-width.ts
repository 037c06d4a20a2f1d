import { compileSplit } from '../parse/cells.js';
import { isWord } from './kinds.js';

/**
 * Columns of fixed width that touch (`340.0-19.58`) or have empty cells. Blanks do not separate these, but each number
 * ends where those above and below it end.
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
const WHOLE = new RegExp(`^${NUMBER}$`);
const TOKEN = /\S+/g;
/** Where one number ends and the next starts with a sign. */
const INNER = /\d(?=[-+]\d)/g;

export function findFixedColumns(texts: readonly string[]): FixedColumns[] {
  const found: FixedColumns[] = [];
  for (let from = 0; from < texts.length; from++) {
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
