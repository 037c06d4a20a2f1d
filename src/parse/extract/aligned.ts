import type { Line } from '../lines.js';

/** Which columns the cells of a row belong to if blanks separate them, and a cell that is missing leaves only more blanks. */

/** The first and the last character of a cell. */
interface Extent {
  readonly from: number;
  readonly to: number;
}

/** Fewer lines can look aligned by chance. */
const MIN_LINES = 2;
const MIN_LINES_TO_REFUSE = 4;

/**
 * The cells of a row with too few of them, each below its column, and empty ones between them. The other lines are the
 * names and rows with all cells. Undefined if a cell is not below one column. If the lines are not aligned, only the last
 * cells can be missing.
 */
export function alignCells(line: Line, others: readonly Line[]): readonly string[] | undefined {
  const columns = line.text.includes('\t') ? undefined : columnsOf(others);
  if (!columns) return line.cells;
  const placed: string[] = columns.map(() => '');
  let last = -1;
  for (const [n, cell] of extentsOf(line).entries()) {
    const below = columns.flatMap((column, at) => (column.from <= cell.to && cell.from <= column.to ? [at] : []));
    const [at = -1] = below;
    if (below.length !== 1 || at <= last) {
      const isUnclear = others.length >= MIN_LINES_TO_REFUSE && line.cells.length > 1;
      return isUnclear ? undefined : line.cells;
    }
    placed[at] = line.cells[n] ?? '';
    last = at;
  }
  return placed;
}

/** Undefined if the lines are not aligned. */
function columnsOf(lines: readonly Line[]): Extent[] | undefined {
  const [first, ...others] = lines.map(extentsOf);
  if (!first || lines.length < MIN_LINES) return undefined;
  const columns = first.map((extent, n) => ({
    from: Math.min(extent.from, ...others.map((each) => each[n]?.from ?? extent.from)),
    to: Math.max(extent.to, ...others.map((each) => each[n]?.to ?? extent.to)),
  }));
  return columns.every(({ to }, n) => to < (columns[n + 1]?.from ?? Number.POSITIVE_INFINITY)) ? columns : undefined;
}

function extentsOf({ text, cells }: Line): Extent[] {
  let end = 0;
  return cells.map((cell) => {
    const from = Math.max(end, text.indexOf(cell, end));
    end = from + cell.length;
    return { from, to: end - 1 };
  });
}
