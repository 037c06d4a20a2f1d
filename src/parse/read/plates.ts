import type { Line } from '../lines.js';

/** Where a plate stands in its lines. */
export interface Plate {
  /** The cell of plate column 1, and how many columns there are. */
  readonly from: number;
  readonly columns: number;
}

/** Where 1, 2, 3 … stand in a header; plates side by side begin anew at 1. */
export function platesIn(header: Line | undefined): Plate[] {
  const plates: { from: number; columns: number }[] = [];
  header?.cells.forEach((cell, at) => {
    const open = plates.at(-1);
    if (cell === '1' || cell === '01') plates.push({ from: at, columns: 1 });
    else if (open && open.from + open.columns === at && Number(cell) === open.columns + 1) open.columns++;
  });
  return plates;
}

/** A, B … Z, AA, AB …, as plates count their rows. */
export function letterAt(n: number): string {
  const letter = String.fromCharCode(65 + (n % 26));
  return n < 26 ? letter : letterAt(Math.floor(n / 26) - 1) + letter;
}
