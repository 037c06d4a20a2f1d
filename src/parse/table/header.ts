import type { Line } from '../lines.js';
import type { Refuse } from '../refuse.js';
import type { NumberReader } from '../values/number.js';
import { bareUnit } from '../values/unit.js';
import { cleanName, createUniqueNames } from './names.js';

/** A column as the file has it. */
export interface FileColumn {
  /** The file's own name for it, with the unit that may stand in it. */
  readonly name: string;
  /** What the row of units says. */
  readonly unit: string | undefined;
  /** Where it stands in a row, from 0. */
  readonly cell: number;
  /** False where the file has no name for it and we count. */
  readonly isNamed: boolean;
}

/** The lines above a stretch of rows. */
export interface Head {
  /** Lines with the names, without comment marks; none where the file has none. */
  readonly header: readonly Line[];
  readonly units: Line | undefined;
}

/** The names of a table's columns, from its header or, where there is none, by counting. */
export function readHeader({ header, units }: Head): FileColumn[] {
  const unique = createUniqueNames();
  const width = Math.max(0, ...[...header, ...(units ? [units] : [])].map(({ cells }) => cells.length));
  return Array.from({ length: width }, (_, cell) => {
    const name = cleanName(joinDown(header, cell));
    const unit = bareUnit(units?.cells[cell]);
    return name === ''
      ? { ...unnamed(cell), name: unique(unnamed(cell).name), unit }
      : { name: unique(name), unit, cell, isNamed: true };
  });
}

export const unnamed = (cell: number): FileColumn => ({
  name: `column ${cell + 1}`,
  unit: undefined,
  cell,
  isNamed: false,
});

/** Names that go on in the next line of the header; what a merged cell repeats is said once. */
function joinDown(header: readonly Line[], cell: number): string {
  const parts = header.map(({ cells }) => cells[cell] ?? '').filter((part) => part !== '');
  return parts.filter((part, n) => parts.indexOf(part) === n).join(' ');
}

/** A header of numbers is a row that was taken for one. */
export function refuseNumbers({ header }: Head, numbers: NumberReader, refuse: Refuse): void {
  const names = header.flatMap(({ cells }) => cells).filter((cell) => cell !== '');
  const isNumber = (name: string) => numbers.read(name) !== undefined || numbers.isSuspect(name);
  if (names.length === 0 || !names.every(isNumber)) return;
  throw refuse('the header is all numbers', {
    line: header[0],
    hint: 'if the file has no header: `table: { header: none }`; else say how it begins: `header: "…"`',
  });
}
