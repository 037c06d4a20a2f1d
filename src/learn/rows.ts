import { isBlank, type Line, type TimeSlice } from '../parse/lines.js';
import { countColumns } from './header.js';
import {
  type Body,
  type CellKind,
  filledCells,
  isBetweenRows,
  isMeasure,
  isPaddedPair,
  isSimilarWidth,
  isWord,
  kindsOf,
  mergeKinds,
  type Range,
} from './kinds.js';
import { areNumericNames, isAxis } from './numbered-names.js';

/** Which lines are the rows of one table. */

/** A fact has at most name, value, unit and limits. */
export const MAX_FACT_CELLS = 5;

/** The lines of a region that most clearly are rows of one table. */
export async function findBody(
  lines: readonly Line[],
  { from, to }: Range,
  slice: TimeSlice,
): Promise<Body | undefined> {
  const isSpaced = isDoubleSpaced(lines.slice(from, to));
  let best: Body | undefined;
  let open: { from: number; to: number; kinds: Body['kinds']; between?: Line[] } | undefined;
  let most = 0;
  // More rows never weigh less, so only complete bodies are compared.
  const compare = () => {
    if (open && isTitle(lines, open, to)) open.to -= 1;
    if (weight(open) > most) [best, most] = [open, weight(open)];
  };
  for (let index = from; index < to; index++) {
    if (index % 256 === 0 && slice.isOver()) await slice.renew();
    const line = lines[index];
    const row = !line || isBlank(line) || isPaddedPair(line) ? undefined : kindsOf(line);
    if (isSpaced && !row) continue;
    const kinds = open && row ? mergeKinds(open.kinds, row) : undefined;
    if (open && kinds) {
      open.to = index + 1;
      open.kinds = kinds;
    } else if (open && line && row && isFollowed(lines, index, to, open.kinds)) {
      open.between = [...(open.between ?? []), line];
    } else {
      compare();
      open = row && { from: index, to: index + 1, kinds: row };
    }
  }
  compare();
  return best && extend(best, lines, { from, to });
}

/** Whether the last row is the title of other columns: words before empty cells, directly above a line of names. */
function isTitle(lines: readonly Line[], { from, to, kinds }: Body, end: number): boolean {
  const [last, next] = [lines[to - 1], to < end ? lines[to] : undefined];
  if (!last || !next || to - from < 3 || kinds.length < 3 || last.cells.length !== next.cells.length) return false;
  const isAlone = filledCells(last).length === 1 && kindsOf(last)[0] === 'text';
  return isAlone && filledCells(next).length > 2 && filledCells(next).every(isWord);
}

/** Whether the line is between rows: another one follows directly, or two if they are single numbers. Facts have one value each. */
function isFollowed(lines: readonly Line[], index: number, to: number, kinds: readonly CellKind[]): boolean {
  const [line, next] = [lines[index], index + 1 < to ? lines[index + 1] : undefined];
  if (!line || !next || isBlank(next) || !(isMeasure(kinds[0]) || kinds.filter(isMeasure).length > 1)) return false;
  const isLike = (row: Line | undefined) => row !== undefined && mergeKinds(kinds, kindsOf(row)) !== undefined;
  if (!isBetweenRows(line, kinds) || !isLike(next)) return false;
  if (kinds.length === 1 && !(index + 2 < to && isLike(lines[index + 2]))) return false;
  // Numbers can be the names of the next table.
  return !areNumericNames(next, kinds) && !isAxis(next, { from: index + 2, to, kinds }, lines);
}

/** Some instruments write a blank line after every line. */
const isDoubleSpaced = (lines: readonly Line[]): boolean =>
  lines.length > 4 && lines.filter(isBlank).length * 5 >= lines.length * 2;

/** Grows with the number of rows and columns, and with numbers. A single column counts little. */
function weight(body: Body | undefined): number {
  if (!body) return 0;
  const columns = countColumns(body);
  const area = (body.to - body.from) * (columns > 1 ? columns - 0.5 : 0.1);
  return body.kinds.some(isMeasure) ? area : area / 4;
}

/** Adds adjacent rows that have a stray word in a column of numbers, and rows beyond a repeated header. */
function extend(body: Body, lines: readonly Line[], region: Range): Body {
  let { from, to } = body;
  const isHeader = (line: Line | undefined) =>
    line !== undefined && (areNumericNames(line, body.kinds) || isAxis(line, body, lines));
  const above = () => lines[from - 1];
  while (from > region.from && isRow(above(), body) && startsAlike(above(), body) && !isHeader(above())) from--;
  const header = lines[from - 1]?.text.trim();
  const isRepeated = (line: Line | undefined) => line !== undefined && header !== '' && line.text.trim() === header;
  for (let at = from - 2; at >= region.from; at--) {
    if (isRepeated(lines[at])) from = at + 1;
    else if (!isRow(lines[at], body)) break;
  }
  // A line that only partly looks like a row is one if rows follow it.
  for (let at = to; at < region.to; at++) {
    const line = lines[at];
    if (isRepeated(line) || (isRow(line, body) && startsAlike(line, body)) || isTrimmedRow(line, body)) to = at + 1;
    else if (!isRow(line, body) && !isShortRow(line, body)) break;
  }
  return { ...body, from, to };
}

/** Whether an adjacent line belongs to the rows: most cells are of the right kind, at least one is a number. */
function isRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || isBlank(line) || kinds.length < 2) return false;
  if (!isSimilarWidth(line.cells.length, kinds.length)) return false;
  const own = kindsOf(line);
  // `Total area: 12.5` is a fact.
  if (line.cells.some((cell, n) => isMeasure(kinds[n]) && cell.endsWith(':'))) return false;
  const filled = own.filter((kind) => kind !== 'any').length;
  const matching = own.filter((kind, n) => kind !== 'any' && kind === kinds[n]);
  if (!matching.some(isMeasure)) return false;
  // A row of another kind: times below numbers are no stray words.
  if (own.filter((kind, n) => isMeasure(kind) && isMeasure(kinds[n]) && kind !== kinds[n]).length > 2) return false;
  // An axis above rows that start with a date.
  if (own[0] === 'number' && kinds[0] === 'date') return false;
  return matching.length * 2 > filled || own[0] === kinds[0];
}

/** A word where rows have a number or date is the name of a property or statistic. */
const startsAlike = (line: Line | undefined, { kinds }: Body): boolean =>
  line === undefined || !isMeasure(kinds[0]) || kindsOf(line)[0] !== 'text';

/** The first cells of a row: an instrument may leave out the others. */
function isShortRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || !isMeasure(kinds[0]) || line.cells.length < 2 || line.cells.length >= kinds.length) return false;
  const own = kindsOf(line);
  return isMeasure(own[0]) && own.every((kind, n) => kind === 'any' || kind === kinds[n]);
}

/** More cells than a fact has, all of the kinds of their columns. Only the last cells of the row are missing. */
function isTrimmedRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || line.cells.length <= MAX_FACT_CELLS || line.cells.length >= kinds.length) return false;
  const own = kindsOf(line);
  const matching = own.filter((kind, n) => isMeasure(kind) && kind === kinds[n]).length;
  return matching >= 3 && own.every((kind, n) => kind === 'any' || kinds[n] === 'any' || kind === kinds[n]);
}

/** `0:30,150,00,300,00` below `Time,A,B`: after the labels, each name has a number and as many digits in each row. */
export function areCutNumbers(rows: readonly Line[], names: number): boolean {
  const width = rows[0]?.cells.length ?? 0;
  const labels = 2 * names - width;
  const isPart = ({ cells }: Line, n: number) =>
    /^-?\d+$/.test(cells[n] ?? '') &&
    /^\d+$/.test(cells[n + 1] ?? '') &&
    cells[n + 1]?.length === rows[0]?.cells[n + 1]?.length;
  const places = Array.from({ length: names - labels }, (_, n) => labels + 2 * n);
  return (
    labels >= 0 &&
    places.length > 0 &&
    rows.every((line) => line.cells.length === width && places.every((n) => isPart(line, n)))
  );
}
