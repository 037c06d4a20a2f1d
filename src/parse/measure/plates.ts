import { isBlank, isEmpty, type Line } from '../lines.js';

/** A plate as it is printed: the line with 1, 2, 3 …, and the rows below it. */
export interface FoundPlate {
  readonly kind: 'plate';
  /** The line with the numbers. */
  readonly from: number;
  readonly to: number;
  /** Whether empty lines stand within it, between one reading of the plate and the next. */
  readonly hasGaps: boolean;
}

const FEWEST_COLUMNS = 3;
/** Below a word, a short row of numbers is just a row. */
const USUAL_COLUMNS = 6;

/** All plates of a file. */
export function findPlates(lines: readonly Line[]): FoundPlate[] {
  const plates: FoundPlate[] = [];
  for (let index = 0; index < lines.length; index++) {
    const width = plateWidth(lines[index]);
    if (width === undefined || plateWidth(lines[index + 1]) !== undefined) continue;
    const { to, hasGaps } = endOf(lines, index + 1, width);
    if (to > index + 1) plates.push({ kind: 'plate', from: index, to, hasGaps });
    index = Math.max(index, to - 1);
  }
  return plates;
}

/** How many cells a plate's rows reach to, where the line holds 1, 2, 3 … and no number or name before them. */
function plateWidth(line: Line | undefined): number | undefined {
  const start = line?.cells.findIndex((cell) => cell === '1' || cell === '01') ?? -1;
  const left = line?.cells.slice(0, Math.max(0, start)) ?? [];
  if (!line || start < 1 || left.some((cell) => /\d/.test(cell) || /^[A-Z]{1,2}$/.test(cell)))
    return undefined;
  let end = start;
  while (Number(line.cells[end]) === end - start + 1 && line.cells[end] !== '') end++;
  return end - start >= (left[0] === '' ? FEWEST_COLUMNS : USUAL_COLUMNS) ? end : undefined;
}

/** A plate ends where a line is no row of it; an empty line within it only where rows go on below. */
function endOf(lines: readonly Line[], from: number, width: number): { to: number; hasGaps: boolean } {
  let to = from;
  let hasGaps = false;
  for (let index = from; index < lines.length; index++) {
    const line = lines[index];
    if (!line) break;
    if (isEmpty(line)) {
      const next = lines[index + 1];
      if (!next || !isRow(next, width) || isBlank(next)) break;
      hasGaps = true;
      continue;
    }
    if (!isRow(line, width)) break;
    to = index + 1;
  }
  return { to, hasGaps };
}

const isRow = (line: Line, width: number): boolean =>
  plateWidth(line) === undefined &&
  line.cells.length > Math.min(3, width - 1) &&
  line.cells.length + 12 >= width;
