import type { Column, FileRecord, Table, Value } from '../model.js';
import { nearest } from '../text.js';

/** The file lacks what a test speaks of. */
export interface Lack {
  readonly message: string;
  readonly hint?: string;
}

/** Something of the record, or that the record lacks it. */
export type Found<T> = { readonly it: T } | { readonly lack: Lack };

export function findFact({ meta }: FileRecord, name: string): Found<Value> {
  const fact = meta.get(name);
  return fact ? { it: fact } : { lack: lacks('fact', name, [...meta.keys()]) };
}

/** The table of this name; without a name, the first one. */
export function findTable({ tables }: FileRecord, name: string | undefined): Found<Table> {
  const table = name === undefined ? tables[0] : tables.find((one) => one.name === name);
  if (table) return { it: table };
  if (name === undefined) return { lack: { message: 'the file has no table' } };
  const names = tables.map((one) => one.name);
  return { lack: lacks('table', name, names) };
}

export function findColumn({ columns }: Table, name: string): Found<{ column: Column; index: number }> {
  const index = columns.findIndex((one) => one.name === name);
  const column = columns[index];
  if (column) return { it: { column, index } };
  return {
    lack: lacks(
      'column',
      name,
      columns.map((one) => one.name),
    ),
  };
}

/** The value in a row, which counts from 0, or from -1 at the end. */
export function findCell(table: Table, row: number, name: string): Found<Value> {
  const found = findColumn(table, name);
  if ('lack' in found) return found;
  const { rows, count } = table;
  const at = row < 0 ? count + row : row;
  if (at < 0 || at >= count) {
    const hint = count > 0 ? `they are [0] to [${count - 1}]; the last one is also [-1]` : undefined;
    return { lack: { message: `there is no such row: the table has ${count}`, ...(hint && { hint }) } };
  }
  const cell = rows[at]?.[found.it.index];
  if (cell) return { it: cell };
  const message =
    at < rows.length
      ? 'the row ends before this column'
      : `of the ${count} rows only the first ${rows.length} are kept`;
  return { lack: { message } };
}

const SHOWN = 20;

function lacks(what: string, name: string, known: readonly string[]): Lack {
  const guess = nearest(name, known);
  const list = known
    .slice(0, SHOWN)
    .map((one) => JSON.stringify(one))
    .join(', ');
  const rest = known.length > SHOWN ? ` and ${known.length - SHOWN} more` : '';
  return {
    message: `the file has no ${what} ${JSON.stringify(name)}`,
    hint: guess
      ? `did you mean ${JSON.stringify(guess)}?`
      : known.length > 0
        ? `it has ${list}${rest}`
        : `it has no ${what} at all`,
  };
}
