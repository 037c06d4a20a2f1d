import type { Column, Table } from '../model.js';
import { withoutIdleColumns } from './tables.js';

/** A microplate: a table with one row per well. */
export interface Plate {
  /** The index of the column that names the wells. */
  readonly wells: number;
  /** `A` to `H` or `P`. */
  readonly letters: readonly string[];
  /** 1 to 12 or 24. */
  readonly numbers: readonly number[];
  /** The index of the table's row for a well; undefined if it has none. */
  rowOf(letter: string, number: number): number | undefined;
}

/** A table as people see it: without idle columns, and what plate it is, if it is one. */
export interface ShownTable {
  readonly shown: Table;
  readonly plate: Plate | undefined;
}

export type ShowTable = (table: Table) => ShownTable;

/** Looks at each table only once: the comments and the body show the same tables. */
export function createShowTable(): ShowTable {
  const known = new Map<Table, ShownTable>();
  return (table) => {
    const before = known.get(table);
    if (before) return before;
    const shown = withoutIdleColumns(table);
    const made = { shown, plate: plateOf(shown) };
    known.set(table, made);
    return made;
  };
}

const WELL = /^([A-P])0?([1-9]|1[0-9]|2[0-4])$/;

/** With fewer wells, a list is easier to read than a grid that is nearly empty. */
const MIN_WELLS = 12;

const FORMATS = [
  { letters: [...'ABCDEFGH'], columns: 12 },
  { letters: [...'ABCDEFGHIJKLMNOP'], columns: 24 },
] as const;

/**
 * Whether these are wells of one plate: several rows and columns of it, at least half of them used. `H2`, `N2` and `O2`
 * are gases, and `C1` to `C6` are channels.
 */
export function areWells(names: readonly string[]): boolean {
  const wells = new Set(names.map(normalise));
  if (wells.size < names.length || !names.every((name) => WELL.test(name))) return false;
  const letters = [...wells].map((well) => well.charCodeAt(0));
  const numbers = [...wells].map((well) => Number(well.slice(1)));
  const span = (all: readonly number[]) => Math.max(...all) - Math.min(...all) + 1;
  const [height, width] = [span(letters), span(numbers)];
  return height > 1 && width > 1 && 2 * wells.size >= height * width;
}

/** Undefined unless one column names a different well in each row. */
function plateOf({ columns, rows, count }: Pick<Table, 'columns' | 'rows' | 'count'>): Plate | undefined {
  if (rows.length < count || count < MIN_WELLS || count > 384) return undefined;
  const wells = columns.findIndex((_: Column, at) => rows.every((row) => WELL.test(row[at]?.text ?? '')));
  if (wells < 0) return undefined;
  const rowOf = new Map<string, number>();
  for (const row of rows) {
    const well = normalise(row[wells]?.text ?? '');
    if (rowOf.has(well)) return undefined;
    rowOf.set(well, rowOf.size);
  }
  if (!areWells([...rowOf.keys()])) return undefined;
  const format = FORMATS.find(({ letters, columns: most }) =>
    [...rowOf.keys()].every((well) => letters.includes(well.charAt(0)) && Number(well.slice(1)) <= most),
  );
  if (!format) return undefined;
  return {
    wells,
    letters: format.letters,
    numbers: Array.from({ length: format.columns }, (_, n) => n + 1),
    rowOf: (letter, number) => rowOf.get(`${letter}${number}`),
  };
}

/** `A01` as `A1`. */
const normalise = (well: string): string => (well[1] === '0' ? well.charAt(0) + well.slice(2) : well);
