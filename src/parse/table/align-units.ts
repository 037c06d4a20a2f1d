import type { Line } from '../lines.js';

/**
 * Where lines are cut at blanks, a column without a unit leaves no cell behind, and the units after it would
 * move to the left. They stand below their names: that tells which is whose, and where it does not, none is given.
 */
export function alignUnits(units: Line, names: Line): Line {
  if (units.cells.length >= names.cells.length) return units;
  const columns = placesOf(names);
  const cells = names.cells.map(() => '');
  for (const { from, to, cell } of placesOf(units)) {
    const above = columns.flatMap((column, n) => (column.from < to && from < column.to ? [n] : []));
    const [only, ...others] = above;
    if (only === undefined || others.length > 0 || cells[only] !== '') return { ...units, cells: [] };
    cells[only] = cell;
  }
  return { ...units, cells };
}

interface Place {
  readonly from: number;
  readonly to: number;
  readonly cell: string;
}

/** Where in its line each cell stands. */
function placesOf({ text, cells }: Line): Place[] {
  let end = 0;
  return cells.map((cell) => {
    const from = text.indexOf(cell, end);
    end = from + cell.length;
    return { from, to: end, cell };
  });
}
