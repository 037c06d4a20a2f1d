import type { Where } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { nearest } from '../../text.js';
import type { Line, Refuse } from '../lines.js';
import { bareUnit, unitAfterSlash, unitInBrackets } from '../values/unit.js';
import type { NumberReader } from '../values/value.js';

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
    throw refuse(`there is no cell ${name} in the rows`, { line: header, isMismatch: true });
  const names = columns.map((column) => column.name);
  const near = nearest(
    name,
    names.map((known) => known.slice(0, 80)),
  );
  throw refuse(`there is no column ${JSON.stringify(name)}`, {
    line: header,
    isMismatch: true,
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
  const isNumber = (name: string) => numbers.read(name) !== undefined || numbers.isAmbiguous(name);
  if (names.length === 0 || !names.every(isNumber)) return;
  throw refuse('the header is all numbers', {
    line: header[0],
    hint: 'if the file has no header: `table: { header: none }`; else say how it begins: `header: "…"`',
  });
}

/** A name as people use it: the file's own, on one line, without the `:` `=` `?` that only end it. */
export function cleanName(written: string): string {
  const name = written.includes('\n')
    ? written
        .split('\n')
        .map((part) => part.trim())
        .join(' ')
    : written;
  // By hand: a pattern for the end of a text is tried at each of its characters, and a line can be long.
  let end = name.length;
  while (end > 0 && ENDINGS.has(name.charAt(end - 1))) end--;
  return name.slice(0, end).trim();
}

const ENDINGS = new Set([' ', '\t', '\u00a0', ':', '=', '?']);

/** Gives each name once: one that comes again gets ` (2)`. */
export function createUniqueNames(): (name: string) => string {
  const taken = new Set<string>();
  const times = new Map<string, number>();
  return (name) => {
    let unique = name;
    let n = times.get(name) ?? 1;
    while (taken.has(unique)) unique = `${name} (${++n})`;
    times.set(name, n);
    taken.add(unique);
    return unique;
  };
}
