import type { Where } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { Table } from '../../model.js';
import type { Line, Refuse, TimeSlice } from '../lines.js';
import type { DateOptions } from '../values/date.js';
import type { ValueReader } from '../values/value.js';
import { createUniqueNames } from './columns.js';
import type { Facts } from './facts.js';
import { compileConditions, createTableBuilder } from './table.js';
import type { Found, Row, Tree } from './tree.js';

/** A column whose cells were found, with a unit each. */
interface FoundColumn {
  readonly name: string;
  /** What the mapping says of it; undefined where the column is the file's own. */
  readonly spec: Where | undefined;
  readonly cells: readonly (Found | undefined)[];
}

interface FoundTable {
  readonly columns: readonly FoundColumn[];
  /** The line of each row. */
  readonly lines: readonly number[];
  /** Whether `where` keeps a row, as far as it asks for what is no column. */
  keeps(row: number): boolean;
}

/** Something that the mapping refers to beyond the table; what is not there is refused. */
type RequireFact = (from: string | number) => Found;

/** Finds the cells of a table in a tree: a row for each hit of `rows`, else lists that stand beside each other. */
export async function readTreeTable(
  name: string,
  options: TableOptions,
  tree: Tree,
  fact: RequireFact,
  context: CellContext,
): Promise<TextTable> {
  const found =
    options.rows === undefined
      ? readLists(name, options, tree, context)
      : await readRows(options.rows, options, tree, context);
  requireCount(name, options, found.lines.length, fact, context);
  const columns = found.columns.flatMap((column) => textColumns(column, fact, context));
  const rows: TextRow[] = [];
  for (const [n, line] of found.lines.entries()) {
    if (found.keeps(n)) rows.push({ line, cells: columns.map(({ texts }) => texts[n] ?? '') });
    if (n % 512 === 0 && context.slice.isOver()) await context.slice.renew();
  }
  return { columns, rows };
}

function requireCount(
  name: string,
  { count }: TableOptions,
  rows: number,
  fact: RequireFact,
  { refuse, values }: CellContext,
): void {
  if (count === undefined) return;
  const said = typeof count === 'number' ? undefined : fact(count);
  const wanted = said ? values.numbers.read(said.text) : count;
  if (wanted === rows) return;
  throw refuse(`table ${name} has ${rows} rows, and there must be ${said?.text ?? count}`, {
    at: said && { line: said.line },
    hint: 'the file may be cut short; else correct `count` in the mapping',
  });
}

type Texts = TextColumn & { readonly texts: readonly string[] };

/** One column; and its units beside it, where they are not the same in all rows. */
function textColumns({ name, spec, cells }: FoundColumn, fact: RequireFact, context: CellContext): Texts[] {
  const texts = cells.map((cell) => cell?.text ?? '');
  const units = new Set(cells.filter((cell) => cell && cell.text !== '').map((cell) => cell?.unit));
  const [only] = units;
  const given =
    typeof spec?.unit === 'object' && units.size <= 1 && !only ? fact(spec.unit.from).text : spec?.unit;
  const unit = typeof given === 'string' ? given : units.size === 1 ? only : undefined;
  const column = { name, unit, spec: spec && plainSpec(spec, fact, context), texts };
  if (units.size < 2 || typeof given === 'string') return [column];
  const beside = cells.map((cell) => cell?.unit ?? '');
  return [column, { name: `${name} unit`, unit: undefined, spec: spec && { type: 'text' }, texts: beside }];
}

/** Without what was heeded already; start and step of an axis are numbers by now. */
function plainSpec({ type, format, start, step }: Where, fact: RequireFact, context: CellContext): Where {
  const number = (from: string | number): number => {
    if (typeof from === 'number') return from;
    const { text, line } = fact(from);
    const value = context.values.read(text).value;
    if (typeof value === 'number') return value;
    throw context.refuse(`${JSON.stringify(text)} is no number that an axis could begin or go on with`, {
      at: { line },
      hint: `correct \`start\` or \`step\`: ${from}`,
    });
  };
  const axis = start === undefined || step === undefined ? {} : { start: number(start), step: number(step) };
  return { ...(type && { type }), ...(format && { format }), ...axis };
}

/** A table with a row for each hit of a path, or for each record of a type. */
async function readRows(
  path: string,
  options: TableOptions,
  tree: Tree,
  context: CellContext,
): Promise<FoundTable> {
  const rows = tree.rows(path);
  if (!rows) {
    const { message, hint, line } = tree.explainMissing(path);
    throw context.refuse(`nothing fits \`rows: ${path}\`: ${message}`, {
      hint,
      at: line ? { line } : undefined,
    });
  }
  const columns = options.columns
    ? await wantedColumns(options.columns, rows, tree, context)
    : await ownColumns(rows, tree, context);
  const tests: ((row: number) => boolean)[] = [];
  for (const [name, conditions] of Object.entries(options.where ?? {})) {
    if (columns.some((column) => column.name === name)) continue;
    const cells = await cellsAt(name, rows, tree, context);
    const test = conditionOn(conditions, context.values);
    tests.push((row) => test(cells[row]?.text ?? ''));
  }
  return {
    columns,
    lines: rows.map(({ line }) => line),
    keeps: (row) => tests.every((test) => test(row)),
  };
}

async function wantedColumns(
  wanted: NonNullable<TableOptions['columns']>,
  rows: readonly Row[],
  tree: Tree,
  context: CellContext,
): Promise<FoundColumn[]> {
  const specs: [string, Where | undefined][] = Array.isArray(wanted)
    ? wanted.filter((name) => name !== '_').map((name) => [name, undefined])
    : Object.entries(wanted);
  const columns: FoundColumn[] = [];
  for (const [name, spec] of specs) {
    const cells = spec?.start === undefined ? await joinedCells(name, spec, rows, tree, context) : [];
    columns.push({ name, spec, cells });
  }
  return columns;
}

/** `[Date, Time]` are joined by a blank. A unit that stands in each row goes with its value. */
async function joinedCells(
  name: string,
  spec: Where | undefined,
  rows: readonly Row[],
  tree: Tree,
  context: CellContext,
): Promise<(Found | undefined)[]> {
  const parts: (Found | undefined)[][] = [];
  for (const part of spec?.from ?? [name]) parts.push(await cellsAt(part, rows, tree, context));
  const joined = rows.map((_, n) => join(parts.map((part) => part[n])));
  if (typeof spec?.unit !== 'object') return joined;
  const unitOf = tree.lookup(spec.unit.from);
  return joined.map((cell, n) => {
    const unit = cell && unitOf(rows[n])?.text;
    return cell && unit ? { ...cell, unit } : cell;
  });
}

function join(parts: readonly (Found | undefined)[]): Found | undefined {
  const [first] = parts;
  if (parts.length === 1) return first;
  const there = parts.filter((part) => part !== undefined && part.text !== '');
  const [found] = there;
  return found && { ...found, unit: undefined, text: there.map((part) => part?.text).join(' ') };
}

/** What a path yields in each row. It must be there in one of them. */
async function cellsAt(
  path: string | number,
  rows: readonly Row[],
  tree: Tree,
  { refuse, slice: pace }: CellContext,
): Promise<(Found | undefined)[]> {
  const lookup = tree.lookup(path);
  const cells: (Found | undefined)[] = [];
  let isThere = rows.length === 0;
  for (const row of rows) {
    const cell = lookup(row);
    isThere ||= cell !== undefined;
    cells.push(cell);
    if (cells.length % 512 === 0 && pace.isOver()) await pace.renew();
  }
  if (isThere) return cells;
  const { message, hint, line } = tree.explainMissing(path, rows[0]);
  throw refuse(`${message} in any row`, { hint, at: { line: line ?? rows[0]?.line ?? 1 } });
}

/** The values that stand right in the rows, in the order in which they first come. */
async function ownColumns(rows: readonly Row[], tree: Tree, context: CellContext): Promise<FoundColumn[]> {
  const unique = createUniqueNames();
  const columns = new Map<string, { name: string; spec: undefined; cells: (Found | undefined)[] }>();
  for (const [n, row] of rows.entries()) {
    const times = new Map<string, number>();
    for (const [name, found] of tree.values(row)) {
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      const key = `${time} ${name}`;
      const column = columns.get(key) ?? { name: unique(name), spec: undefined, cells: [] };
      column.cells[n] = found;
      columns.set(key, column);
    }
    refuseWide(columns.size, rows.length, row, tree, context);
    if (n % 512 === 0 && context.slice.isOver()) await context.slice.renew();
  }
  return [...columns.values()];
}

/** Rows that have hardly a name in common would make a table that is mostly empty, and of any size. */
function refuseWide(
  width: number,
  rows: number,
  row: Row,
  tree: Tree,
  { options, refuse }: CellContext,
): void {
  const isSparse = width * rows > 1_000_000 + 4 * tree.size;
  if (width <= options.limits.maxColumns && !isSparse) return;
  throw refuse(`the rows have ${width} columns, more than are read`, {
    at: { line: row.line },
    hint: 'name those that are wanted: `columns: [ … ]`',
  });
}

/** A table whose columns are lists of their own, and whose n-th row is the n-th of each. */
function readLists(
  name: string,
  { columns: wanted }: TableOptions,
  tree: Tree,
  context: CellContext,
): FoundTable {
  const { refuse } = context;
  if (!wanted || Array.isArray(wanted)) {
    throw refuse(`it is not said where the rows of table ${name} are`, {
      hint: `say where: \`rows: //Reading\`, or a list for each column: \`columns: { time: //times, signal: //values }\``,
    });
  }
  const columns = Object.entries(wanted).map(
    ([given, spec]): FoundColumn => ({
      name: given,
      spec,
      cells: spec.start === undefined ? cellsOf(spec.from ?? [given], tree, context) : [],
    }),
  );
  const lists = columns.filter(({ spec }) => spec?.start === undefined);
  const [first, ...others] = lists;
  const other = others.find(({ cells }) => cells.length !== first?.cells.length);
  if (other) {
    throw refuse(
      `the lists of table ${name} differ: ${first?.name} has ${first?.cells.length}, ${other.name} has ${other.cells.length}`,
      {
        at: placeOf(other.cells),
        hint: 'lists side by side must be equally long; else make a table of each',
      },
    );
  }
  return { columns, lines: (first?.cells ?? []).map((cell) => cell?.line ?? 1), keeps: () => true };
}

const placeOf = ([first]: FoundColumn['cells']) => first && { line: first.line };

/** Several lists of one column are joined item by item. */
function cellsOf(paths: readonly (string | number)[], tree: Tree, { refuse }: CellContext): readonly Found[] {
  const [first = [], ...others] = paths.map((path) => {
    const list = tree.list(path);
    if ('items' in list) return list.items;
    const { message, hint, line } = list;
    throw refuse(message, { hint, at: line === undefined ? undefined : { line } });
  });
  if (others.length === 0) return first;
  if (others.some((other) => other.length !== first.length)) {
    throw refuse(`lists that are to be joined differ in length: ${paths.join(', ')}`, { at: placeOf(first) });
  }
  return first.map((item, n) => {
    const texts = [item, ...others.map((other) => other[n])].map((found) => found?.text ?? '');
    return { ...item, text: texts.filter((text) => text !== '').join(' ') };
  });
}

/** A table as it stands in a file that has no lines: names, and the text of every cell. */
export interface TextTable {
  readonly columns: readonly TextColumn[];
  readonly rows: readonly TextRow[];
}

interface TextColumn {
  readonly name: string;
  readonly unit: string | undefined;
  /** What the mapping says of it; undefined where the column is the file's own. */
  readonly spec: Where | undefined;
}

export interface TextRow {
  readonly line: number;
  readonly cells: readonly string[];
}

/** What reading cells needs to know of the file. */
export interface CellContext {
  readonly options: ParseOptions;
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly refuse: Refuse;
  readonly slice: TimeSlice;
}

/**
 * What the cells mean: types, units, `fill`, `where`, `unpivot`, texts beside nulls, by the same code as for lines.
 * It sees a header and lines of cells; everything that says where they come from was heeded before.
 */
export async function tableFrom(
  name: string,
  options: TableOptions,
  { columns, rows }: TextTable,
  context: CellContext,
): Promise<Table> {
  const { values, dates, slice: pace } = context;
  const specs = columns.flatMap(({ name: given, spec }, cell) =>
    spec ? [[given, spec.start === undefined ? { ...spec, from: [cell + 1] } : spec] as const] : [],
  );
  const builder = createTableBuilder({
    ...{ name, values, dates, captureNames: [], maxKeptCells: MOST_CELLS },
    maxColumns: context.options.limits.maxColumns,
    options: { ...options, ...OTHERWISE, ...(specs.length > 0 && { columns: Object.fromEntries(specs) }) },
    // A cell of ours has no column in the file.
    refuse: (message, refusal) => context.refuse(message, { ...refusal, cell: undefined }),
    countRow: () => undefined,
    fixed: () => undefined,
  });
  const own = columns.map(({ name: written, unit }, cell) => ({ name: written, unit, cell, isNamed: true }));
  builder.begin(own, [], rows[0] && asLine(rows[0]));
  for (const [n, row] of rows.entries()) {
    builder.row(row.cells, asLine(row));
    if (n % 512 === 0 && pace.isOver()) await pace.renew();
  }
  return builder.finish(SETTLED);
}

/** What is held as a tree already is kept as a table, too. */
const MOST_CELLS = 2_000_000;

const asLine = ({ line, cells }: TextRow): Line => ({ number: line, text: '', cells });

/** Whatever a table refers to beyond itself was looked up when its cells were found. */
const SETTLED: Facts = {
  meta: new Map(),
  require(name) {
    throw new Error(`${name} is to be looked up with the cells of the table`);
  },
  unitOf: ({ unit }) => (typeof unit === 'string' ? unit : undefined),
};

/** What was heeded already, or does not apply. The names are not to be doubted: they are the mapping's or the file's. */
const OTHERWISE = { header: ['as given'], rows: undefined, count: undefined };

/** Whether a cell is as `where` wants it. */
const conditionOn = (
  wanted: NonNullable<TableOptions['where']>[string],
  values: ValueReader,
): ((text: string) => boolean) => compileConditions(wanted, values);
