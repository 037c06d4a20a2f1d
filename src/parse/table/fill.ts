import type { Cells } from './columns.js';
import type { FileColumn } from './header.js';

/** In these columns, an empty cell takes the one above. */
export function createFill(columns: readonly FileColumn[]): (cells: Cells) => Cells {
  const above = new Map<number, string>();
  return (cells) => {
    const filled = [...cells];
    for (const { cell } of columns) {
      if (filled[cell]) above.set(cell, filled[cell]);
      else filled[cell] = above.get(cell) ?? '';
    }
    return filled;
  };
}
