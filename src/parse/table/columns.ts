import type { Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { nearest } from '../../text.js';
import type { Line } from '../lines.js';
import type { Refuse } from '../refuse.js';
import { unitAfterSlash, unitInBrackets } from '../values/unit.js';
import { type FileColumn, unnamed } from './header.js';
import { cleanName } from './names.js';

/** A row as the file has it: cells in the order of the table's file columns. */
export type Cells = readonly string[];

/** A column as the record will have it: where its text comes from, and what the mapping says of it. */
export interface PlannedColumn {
  /** Your name for it; undefined where it keeps the file's own. */
  readonly given: string | undefined;
  /** The column of the file, where it is made of one. */
  readonly column: FileColumn | undefined;
  readonly spec: Where;
  text(cells: Cells): string;
}

export interface PlanDeps {
  readonly options: TableOptions;
  /** The file's columns; those that only rows have are added as rows show them. */
  readonly columns: FileColumn[];
  readonly header: Line | undefined;
  readonly refuse: Refuse;
  /** Gives the text of a cell outside of the rows, where `name` is one: `=C3`. */
  fixed(name: string): (() => string) | undefined;
  /** What the line that begins the present block says about all of its rows. */
  readonly captured: readonly string[];
}

/** A column that is said once for a whole block stands in no cell of its rows: its place is counted downwards from -1. */
export const capturedColumn = (name: string, n: number): FileColumn => ({
  ...{ name, unit: undefined, isNamed: true },
  cell: -1 - n,
});

/** How the text of a file's column is had from a row. */
export const textOf = ({ cell }: FileColumn, { captured }: Pick<PlanDeps, 'captured'>) =>
  cell < 0 ? () => captured[-1 - cell] ?? '' : (cells: Cells) => cells[cell] ?? '';

/** Decides which columns the record has: the file's own, as the mapping renames, types, adds or picks them. */
export function planColumns(deps: PlanDeps): PlannedColumn[] {
  const { options, columns } = deps;
  const wanted = options.columns;
  if (Array.isArray(wanted)) {
    return isByPosition(options)
      ? columns.flatMap((column) => planFurther(column, deps))
      : wanted.filter((name) => name !== '_').map((name) => keep(findColumn(name, deps), deps));
  }
  const planned = Object.entries(wanted ?? {}).map(([given, spec]) => plan(given, spec, deps));
  const axes = planned.filter(({ spec }) => spec.start !== undefined);
  const own = columns.map((column) => keep(column, deps));
  for (const column of planned) if (!axes.includes(column)) place(own, column);
  return [...axes, ...own];
}

/** How a column that only the rows show is taken in. */
export function planFurther(column: FileColumn, deps: PlanDeps): PlannedColumn[] {
  const { columns } = deps.options;
  if (!Array.isArray(columns)) return [keep(column, deps)];
  if (column.cell < 0) return [keep(column, deps)];
  const name = isByPosition(deps.options) ? columns[column.cell] : undefined;
  return name === undefined || name === '_' ? [] : [keep(column, deps, name)];
}

export const isByPosition = ({ header, rows }: Pick<TableOptions, 'header' | 'rows'>): boolean =>
  header[0] === 'none' && rows === undefined;

const keep = (column: FileColumn, deps: PlanDeps, given?: string): PlannedColumn => ({
  given,
  column,
  spec: {},
  text: textOf(column, deps),
});

function plan(given: string, spec: Where, deps: PlanDeps): PlannedColumn {
  if (spec.start !== undefined) return { given, column: undefined, spec, text: () => '' };
  const parts = (spec.from ?? [given]).map((part): ((cells: Cells) => string) | FileColumn => {
    const fixed = typeof part === 'string' ? deps.fixed(part) : undefined;
    return fixed ?? findColumn(part, deps);
  });
  const [only] = parts;
  if (parts.length === 1 && typeof only === 'object') return { ...keep(only, deps, given), spec };
  const texts = parts.map((part) => (typeof part === 'function' ? part : textOf(part, deps)));
  const text = (cells: Cells) =>
    texts
      .map((part) => part(cells))
      .filter((part) => part !== '')
      .join(' ');
  return { given, column: undefined, spec, text };
}

/** A renamed column stays in its place; one that is added, or used a second time, goes to the end. */
function place(planned: PlannedColumn[], column: PlannedColumn): void {
  const at = planned.findIndex((other) => other.given === undefined && other.column === column.column);
  if (column.column === undefined || at < 0) planned.push(column);
  else planned[at] = column;
}

/** A column of the file by its name (with or without the unit in it) or by its place, from 1. */
export function findColumn(name: string | number, deps: PlanDeps): FileColumn {
  const { columns, options, header, refuse } = deps;
  const found = typeof name === 'number' ? columnAt(name - 1, deps) : columnNamed(name, columns, options);
  if (found) return found;
  if (typeof name === 'number')
    throw refuse(`there is no cell ${name} in the rows`, { line: header, isAbsent: true });
  const names = columns.map((column) => column.name);
  const near = nearest(
    name,
    names.map((known) => known.slice(0, 80)),
  );
  throw refuse(`there is no column ${JSON.stringify(name)}`, {
    line: header,
    isAbsent: true,
    hint:
      near === undefined
        ? `the columns are: ${names.slice(0, 20).join(', ')}`
        : `did you mean ${JSON.stringify(near)}?`,
  });
}

const columnNamed = (name: string, columns: readonly FileColumn[], { units }: TableOptions) =>
  columns.find((column) => column.name === name) ??
  columns.find((column) => splitUnit(column.name, units, true).name === name) ??
  columns.find((column) => column.name === cleanName(name));

/** Where no header tells how many cells there are, the rows will. */
function columnAt(cell: number, { columns, options }: PlanDeps): FileColumn | undefined {
  const found = columns.find((column) => column.cell === cell);
  if (found || !isByPosition(options)) return found;
  const width = columns.filter((column) => column.cell >= 0).length;
  for (let next = width; next <= cell; next++) columns.push(unnamed(next));
  return columns.at(-1);
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
