import type { FileRecord } from './model.js';
import { nearest } from './nearest.js';

/** What the runs of an instrument have in common: their tables, with the names and units of the columns. */
export interface Shape {
  readonly tables: readonly TableShape[];
}

interface TableShape {
  readonly name: string;
  readonly columns: readonly { readonly name: string; readonly unit?: string | undefined }[];
}

export const shapeOf = ({ tables }: FileRecord): Shape => ({
  tables: tables.map(({ name, columns }) => ({
    name,
    columns: columns.map((column) => ({
      name: column.name,
      ...(column.unit !== undefined && { unit: column.unit }),
    })),
  })),
});

/** What of an earlier shape is gone or has another unit, in words. What was added is no change. */
export function changesBetween(before: Shape, now: Shape): string[] {
  const several = before.tables.length > 1 || now.tables.length > 1;
  return before.tables.flatMap((table) => {
    const same = now.tables.find(({ name }) => name === table.name);
    if (!same) return [`the table ${quote(table.name)} is gone`];
    return columnChanges(table, same, several ? ` of the table ${quote(table.name)}` : '');
  });
}

function columnChanges(before: TableShape, now: TableShape, ofTable: string): string[] {
  const units = new Map(now.columns.map(({ name, unit }) => [name, unit]));
  const known = new Set(before.columns.map(({ name }) => name));
  const added = now.columns.map(({ name }) => name).filter((name) => !known.has(name));
  return before.columns.flatMap(({ name, unit }) => {
    if (!units.has(name)) {
      const renamed = nearest(name, added);
      const guess = renamed === undefined ? '' : ` (or is it ${quote(renamed)} now?)`;
      return [`the column ${quote(name)}${ofTable} is gone${guess}`];
    }
    const unitNow = units.get(name);
    if (unitNow === unit) return [];
    return [`the unit of ${quote(name)}${ofTable} was ${unit ?? 'none'} and is now ${unitNow ?? 'none'}`];
  });
}

const quote = (name: string): string => JSON.stringify(name);
