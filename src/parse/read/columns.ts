import { cellReference, type Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { nearest } from '../../nearest.js';
import type { Line } from '../lines.js';
import { unitAfterSlash, unitInBrackets } from '../values/unit.js';
import type { Context } from './context.js';
import { cellAt } from './facts.js';
import type { FileColumn } from './header.js';
import { cleanName } from './names.js';
import type { RawRow } from './rows.js';

/** A column as the record will have it: where its text comes from, and what the mapping says of it. */
export interface PlannedColumn {
  /** Your name for it; undefined where it keeps the file's own. */
  readonly given: string | undefined;
  /** The column of the file, where it is made of one. */
  readonly column: FileColumn | undefined;
  readonly spec: Where;
  text(row: RawRow): string;
}

/** Decides which columns the record has: the file's own, as the mapping renames, types, adds or picks them. */
export function planColumns(
  columns: readonly FileColumn[],
  rows: readonly RawRow[],
  options: TableOptions,
  header: Line | undefined,
  context: Context,
): PlannedColumn[] {
  const wanted = options.columns;
  const find = (name: string | number) => findColumn(name, columns, options, header, context);
  if (Array.isArray(wanted)) {
    const isByPosition = options.header[0] === 'none' && options.rows === undefined;
    const picked = isByPosition
      ? byPosition(wanted, columns, rows, context)
      : wanted.filter((name) => name !== '_').map(find);
    return picked.map((column) => keep(column, isByPosition ? wanted[column.cell] : undefined));
  }
  const planned = columns
    .filter((column) => column.isNamed || hasContent(column, rows))
    .map((column) => keep(column));
  for (const [given, spec] of Object.entries(wanted ?? {})) place(planned, plan(given, spec, find, context));
  return planned;
}

const keep = (column: FileColumn, given?: string): PlannedColumn => ({
  given,
  column,
  spec: {},
  text: ({ cells }) => cells[column.cell] ?? '',
});

const hasContent = ({ cell }: FileColumn, rows: readonly RawRow[]): boolean =>
  rows.some(({ cells }) => cells[cell] !== undefined && cells[cell] !== '');

function byPosition(
  names: readonly string[],
  columns: readonly FileColumn[],
  rows: readonly RawRow[],
  { refuse }: Context,
): FileColumn[] {
  if (rows.length > 0 && names.length > columns.length) {
    throw refuse(`the rows have ${columns.length} cells, and \`columns\` names ${names.length}`, {
      line: rows[0]?.line,
    });
  }
  return columns.filter((column) => names[column.cell] !== undefined && names[column.cell] !== '_');
}

function plan(
  given: string,
  spec: Where,
  find: (name: string | number) => FileColumn,
  context: Context,
): PlannedColumn {
  const parts = (spec.from ?? [given]).map((part): ((row: RawRow) => string) | FileColumn => {
    const fixed = typeof part === 'string' && cellReference(part) ? cellAt(part, context) : undefined;
    return fixed === undefined ? find(part) : () => fixed;
  });
  const texts = parts.map((part) => (typeof part === 'function' ? part : keep(part).text));
  const [only] = parts;
  return {
    given,
    column: parts.length === 1 && typeof only === 'object' ? only : undefined,
    spec,
    text: (row) =>
      texts
        .map((text) => text(row))
        .filter((text) => text !== '')
        .join(' '),
  };
}

/** A renamed column stays in its place; one that is added, or used a second time, goes to the end. */
function place(planned: PlannedColumn[], column: PlannedColumn): void {
  const at = planned.findIndex((other) => other.given === undefined && other.column === column.column);
  if (column.column === undefined || at < 0) planned.push(column);
  else planned[at] = column;
}

/** A column of the file by its name (with or without the unit in it) or by its place, from 1. */
export function findColumn(
  name: string | number,
  columns: readonly FileColumn[],
  { units }: TableOptions,
  header: Line | undefined,
  { refuse }: Context,
): FileColumn {
  const found =
    typeof name === 'number'
      ? columns.find(({ cell }) => cell === name - 1)
      : (columns.find((column) => column.name === name) ??
        columns.find((column) => splitUnit(column.name, units, true).name === name) ??
        columns.find((column) => column.name === cleanName(name)));
  if (found) return found;
  if (typeof name === 'number') throw refuse(`there is no cell ${name} in the rows`, { line: header });
  const names = columns.map((column) => column.name);
  const near = nearest(
    name,
    names.map((known) => known.slice(0, 80)),
  );
  throw refuse(`there is no column ${JSON.stringify(name)}`, {
    line: header,
    hint:
      near === undefined
        ? `the columns are: ${names.slice(0, 20).join(', ')}`
        : `did you mean ${JSON.stringify(near)}?`,
  });
}

/** A column's name and the unit that stands in it, as the mapping says that units stand there. */
export function splitUnit(
  name: string,
  units: TableOptions['units'],
  isNumeric: boolean,
): { name: string; unit?: string } {
  switch (typeof units === 'object' ? 'none' : units) {
    case 'inHeader':
      return (isNumeric ? unitInBrackets(name) : undefined) ?? { name };
    case 'slash':
      return unitAfterSlash(name, isNumeric) ?? { name };
    case 'nextRow':
    case 'none':
      return { name };
  }
}
