import type { Line } from '../lines.js';
import type { NumberReader } from '../values/number.js';
import { bareUnit } from '../values/unit.js';
import type { Context } from './context.js';
import type { Block, LocatedTable } from './locate.js';
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

/** The names of a table's columns, from its header or, where there is none, by counting. */
export function readHeader({ header, units }: Block, width: number): FileColumn[] {
  const unique = createUniqueNames();
  return Array.from({ length: width }, (_, cell) => {
    const name = cleanName(joinDown(header, cell));
    return {
      name: unique(name === '' ? `column ${cell + 1}` : name),
      unit: bareUnit(units?.cells[cell]),
      cell,
      isNamed: name !== '',
    };
  });
}

/** Names that go on in the next line of the header; what a merged cell repeats is said once. */
function joinDown(header: readonly Line[], cell: number): string {
  const parts = header.map(({ cells }) => cells[cell] ?? '').filter((part) => part !== '');
  return parts.filter((part, n) => parts.indexOf(part) === n).join(' ');
}

/** A header of numbers is a row that was taken for one, unless the mapping gives the very text of it. */
export function refuseNumbers(
  { options, blocks }: LocatedTable,
  numbers: NumberReader,
  { refuse }: Context,
): void {
  if (options.header.some((form) => typeof form === 'string' && form !== 'first')) return;
  for (const { header } of blocks) {
    const names = header.flatMap(({ cells }) => cells).filter((cell) => cell !== '');
    const isNumber = (name: string) => numbers.read(name) !== undefined || numbers.isSuspect(name);
    if (names.length === 0 || !names.every(isNumber)) continue;
    throw refuse('the header is all numbers', {
      line: header[0],
      hint: 'if the file has no header: `table: { header: none }`; else say how it begins: `header: "…"`',
    });
  }
}

/** How many cells the widest line of a table has. Trailing delimiters make no cell of a row. */
export function widthOf({ blocks }: LocatedTable): number {
  let width = 0;
  for (const { header, rows } of blocks) {
    for (const { cells } of header) width = Math.max(width, cells.length);
    for (const { cells } of rows) {
      let last = cells.length;
      while (last > width && cells[last - 1] === '') last--;
      width = Math.max(width, last);
    }
  }
  return width;
}
