import type { Where } from '../../config/grammar.js';
import { type TableOptions, tableSchema } from '../../config/vocabulary.js';
import type { FileRecord, Table, Value } from '../../model.js';
import { lineFormat } from '../cells.js';
import { joinTexts, type Line } from '../lines.js';
import type { OpenFile } from '../source.js';
import { createUniqueNames, namedColumn, unnamedColumn } from './columns.js';
import { type Context, type FileLayout, MAX_KEPT_CELLS } from './context.js';
import { type Facts, type NamedFact, requireFact } from './facts.js';
import { requireContent, scan } from './read-lines.js';
import { addRow, beginBlock, compileConditions, finishTable, openTable, refuseTooWide, skipRow } from './table.js';
import type { Found, Missing, Row, Tree } from './tree.js';
import { addUnread, finishUnread, type LineRange, toRanges } from './unread.js';

/** Reads JSON, XML or records: facts and tables by their paths. `lines`: of records, for `meta` and cells. */
export async function readTree(file: OpenFile, tree: Tree, lines: readonly Line[] = []): Promise<FileRecord> {
  const { facts } = await scan(file, { ...layoutOf(file), lines: () => [lines], contents: { tree } });
  const reading = { ...facts, tree };
  const tables: Table[] = [];
  for (const [name, table] of Object.entries(file.options.tables)) {
    tables.push(await readTreeTable(name, table, reading));
  }
  const hint = 'specify their paths: `facts: { sample: //Sample }`, `table: { rows: //Reading }`';
  const { others, readings, used } = tree.unread();
  const unread = [
    ...toRanges(others, 'left out'),
    ...readings.map(({ path, count, from, to }) => ({
      kind: 'unread' as const,
      from,
      to,
      what: path,
      readings: count,
    })),
    ...finishUnread(facts.context.unread, [], []),
  ];
  return requireContent({ meta: facts.meta, tables, unread, tableLines: used }, facts.context, hint);
}

const layoutOf = ({ options: { delimiter, quote } }: OpenFile): FileLayout => ({
  lineFormat: lineFormat(delimiter ?? 'tab', quote),
  ...{ sheets: [], maxKeptCells: MAX_KEPT_CELLS },
});

/** The facts of a file whose tables are read next. */
interface Reading extends Facts {
  readonly tree: Tree;
}

/** A column whose cells are found. `spec`: as in the mapping; undefined if the file names the column. */
interface FoundColumn {
  readonly name: string;
  readonly spec: Where | undefined;
  readonly cells: readonly (Found | undefined)[];
  /** If the column is an array in each row: those arrays. */
  readonly arrays?: readonly (readonly Found[] | undefined)[] | undefined;
}

interface FoundTable {
  readonly columns: readonly FoundColumn[];
  /** The line of each row. */
  readonly lines: readonly number[];
  /** Conditions of `where` on paths that are not columns. */
  keeps(row: number): boolean;
  /** The other conditions. */
  readonly where: TableOptions['where'];
}

/** A row for each match of `rows`; without `rows`, each column is an array, and the arrays are zipped. */
async function readTreeTable(name: string, options: TableOptions, reading: Reading): Promise<Table> {
  // Before their cells are looked up, which could take minutes.
  refuseTooWide({ name, context: reading.context }, Object.keys(options.columns ?? {}).length);
  const {
    columns: found,
    lines,
    keeps,
    where,
  } = options.rows === undefined ? zipLists(name, options, reading) : await findRows(options.rows, options, reading);
  const columns = found.flatMap((column) => textColumns(column, reading));
  function* rows(): Generator<Line | undefined> {
    for (const [n, number] of lines.entries()) {
      if (!keeps(n)) addUnread(reading.context.unread, { number, text: 'row', cells: ['row'] }, 'left out');
      yield keeps(n) ? { number, text: '', cells: columns.map(({ texts }) => texts[n] ?? '') } : undefined;
    }
  }
  const axes = found.filter(({ spec }) => spec?.start !== undefined);
  const specs = [...axes, ...columns].flatMap(({ name: given, spec }, n) =>
    spec ? [[given, spec.start === undefined ? { ...spec, from: [n - axes.length + 1] } : spec] as const] : [],
  );
  const own = { ...options, where, columns: specs.length > 0 ? Object.fromEntries(specs) : undefined };
  return buildTable(name, own, { columns, rows: rows() }, reading);
}

interface TextColumn {
  readonly name: string;
  readonly unit: string | undefined;
  readonly spec?: Where | undefined;
}

type Texts = TextColumn & { readonly texts: readonly string[] };

/** One column, with its units in a column beside it if they differ between the rows. None for a computed axis. */
function textColumns({ name, spec, cells }: FoundColumn, facts: Facts): Texts[] {
  if (spec?.start !== undefined) return [];
  const texts = cells.map((cell) => cell?.text ?? '');
  const units = new Set(cells.filter((cell) => cell && cell.text !== '').map((cell) => cell?.unit));
  const [only] = units;
  const isElsewhere = typeof spec?.unit === 'object' && units.size <= 1 && only === undefined;
  const given = isElsewhere ? requireFact(facts, spec.unit.from).text : spec?.unit;
  const unit = typeof given === 'string' ? given : units.size === 1 ? only || undefined : undefined;
  const column = { name, unit, texts, spec: spec && { type: spec.type, format: spec.format } };
  if (units.size < 2 || typeof given === 'string') return [column];
  const beside = cells.map((cell) => cell?.unit ?? '');
  return [column, { name: `${name} unit`, unit: undefined, spec: spec && { type: 'text' }, texts: beside }];
}

/** Reads the values of a table with the code that also reads tables of lines. Undefined is an omitted row. */
async function buildTable(
  name: string,
  options: TableOptions,
  { columns, rows }: { columns: readonly TextColumn[]; rows: Iterable<Line | undefined> },
  facts: Facts,
): Promise<Table> {
  const { context } = facts;
  const { slice } = context;
  // The columns are named already, by the mapping or the file.
  const table = openTable(name, { ...options, header: ['first'] }, [], context);
  const own = columns.map(({ name, unit, spec }, cell) => ({
    ...namedColumn(name, cell, unit),
    // An array has no names for its items.
    isNamed: spec !== undefined || name !== unnamedColumn(cell).name,
  }));
  let n = 0;
  for (const row of rows) {
    if (n === 0) beginBlock(table, own, [], row);
    if (row) addRow(table, row.cells, row);
    else skipRow(table);
    if (++n % 512 === 0 && slice.isOver()) await slice.renew();
  }
  if (n === 0) beginBlock(table, own, [], undefined);
  return finishTable(table, facts);
}

function refuseMissing({ message, hint, line }: Missing, { context }: Facts): Error {
  return context.refuse(message, { hint, line, isMismatch: true });
}

async function findRows(path: string, options: TableOptions, reading: Reading): Promise<FoundTable> {
  const { tree } = reading;
  const rows = tree.rows(path);
  if (!rows) {
    const missing = tree.explainMissing(path);
    throw refuseMissing({ ...missing, message: `nothing matches \`rows: ${path}\`: ${missing.message}` }, reading);
  }
  const selected = options.columns
    ? await selectColumns(options.columns, rows, reading)
    : await ownColumns(rows, reading);
  const { columns, origins } = spreadArrays(selected, rows, reading);
  const tests: ((row: number) => boolean)[] = [];
  const where: NonNullable<TableOptions['where']> = {};
  for (const [name, conditions] of Object.entries(options.where ?? {})) {
    if (columns.some((column) => column.name === name)) where[name] = conditions;
    else {
      const cells = await cellsAt(name, rows, reading);
      reading.context.unread.columns.push({ kind: 'left out', columns: [name] });
      const test = compileConditions(conditions, reading.context.values);
      tests.push((row) => test(cells[row]?.text ?? ''));
    }
  }
  const lines = origins.map(
    (origin, n) => columns.find(({ arrays }) => arrays)?.cells[n]?.line ?? rows[origin]?.line ?? 1,
  );
  return { columns, lines, where, keeps: (row) => tests.every((test) => test(origins[row] ?? row)) };
}

/** The items of the arrays of a row are rows of their own, in which the single values repeat. Without items, it is one row. */
function spreadArrays(columns: readonly FoundColumn[], rows: readonly Row[], { context }: Reading) {
  const arrays = columns.filter((column) => column.arrays);
  const [first, ...others] = arrays;
  if (!first) return { columns, origins: [...rows.keys()] };
  const origins: number[] = [];
  const lengthIn = ({ arrays: lists }: FoundColumn, row: number) => lists?.[row]?.length ?? 0;
  for (const [n, { line }] of rows.entries()) {
    const length = lengthIn(first, n);
    const other = others.find((column) => lengthIn(column, n) !== length);
    if (other) {
      const lengths = `${first.name} has ${length} values, ${other.name} has ${lengthIn(other, n)}`;
      const hint = 'define a separate table for each array';
      throw context.refuse(`the arrays of this row differ in length: ${lengths}`, { line, hint });
    }
    for (let item = 0; item < Math.max(1, length); item++) origins.push(n);
  }
  const spread = columns.map((column) => ({
    ...column,
    cells: column.arrays
      ? column.arrays.flatMap((list): (Found | undefined)[] => (list && list.length > 0 ? [...list] : [undefined]))
      : origins.map((origin) => column.cells[origin]),
  }));
  return { columns: spread, origins };
}

async function selectColumns(wanted: NonNullable<TableOptions['columns']>, rows: readonly Row[], reading: Reading) {
  const specs: [string, Where | undefined][] = Array.isArray(wanted)
    ? wanted.filter((name) => name !== '_').map((name) => [name, undefined])
    : Object.entries(wanted);
  const columns: FoundColumn[] = [];
  for (const [name, spec] of specs) {
    const arrays = arraysAt(name, spec, rows, reading);
    const cells = arrays || spec?.start !== undefined ? [] : await joinedCells(name, spec, rows, reading);
    columns.push({ name, spec, cells, arrays });
  }
  return columns;
}

/**
 * The arrays of a column in the rows; undefined if none is an array. Some programs write an array of one value as a
 * single value. Numbers in texts are arrays only if no row has another text.
 */
function arraysAt(name: string, spec: Where | undefined, rows: readonly Row[], { tree }: Reading) {
  const [path = name, ...others] = spec?.from ?? [];
  const at = others.length > 0 || spec?.start !== undefined ? undefined : tree.items?.(path);
  if (!at) return undefined;
  const found = rows.map(at);
  const filled = found.filter((each) => each && each.items.length > 0);
  const areTexts = filled.length > 0 && filled.every((each) => each?.isArray === 'text');
  if (!areTexts && !filled.some((each) => each?.isArray === true)) return undefined;
  const unitAt = typeof spec?.unit === 'object' ? tree.lookup(spec.unit.from) : undefined;
  return found.map((each, n) => {
    each?.take();
    const unit = unitAt?.(rows[n])?.text;
    return unit ? each?.items.map((item) => ({ ...item, unit })) : each?.items;
  });
}

/** Joins `[Date, Time]` with a space. `unit: { from }` is looked up in each row, where it can be empty. */
async function joinedCells(name: string, spec: Where | undefined, rows: readonly Row[], reading: Reading) {
  const parts: (Found | undefined)[][] = [];
  for (const part of spec?.from ?? [name]) parts.push(await cellsAt(part, rows, reading));
  const joined = rows.map((_, n) => join(parts.map((part) => part[n])));
  if (typeof spec?.unit !== 'object') return joined;
  const unitAt = reading.tree.lookup(spec.unit.from);
  return joined.map((cell, n) => {
    const unit = cell && unitAt(rows[n]);
    return cell && unit ? { ...cell, unit: unit.text } : cell;
  });
}

function join(parts: readonly (Found | undefined)[]): Found | undefined {
  if (parts.length === 1) return parts[0];
  const first = parts.find((part) => part && part.text !== '');
  return first && { ...first, unit: undefined, text: joinTexts(parts.map((part) => part?.text)) };
}

/** The value of a path in each row. At least one row must have it. */
async function cellsAt(path: string | number, rows: readonly Row[], reading: Reading): Promise<(Found | undefined)[]> {
  const { tree } = reading;
  const { slice } = reading.context;
  const lookup = tree.lookup(path);
  const cells: (Found | undefined)[] = [];
  let isFound = rows.length === 0;
  for (const row of rows) {
    const cell = lookup(row);
    isFound ||= cell !== undefined;
    cells.push(cell);
    if (cells.length % 512 === 0 && slice.isOver()) await slice.renew();
  }
  if (isFound) return cells;
  const { message, hint, line } = tree.explainMissing(path, rows[0]);
  throw refuseMissing({ message: `${message} in any row`, hint, line: line ?? rows[0]?.line }, reading);
}

/** The plain values of the rows, in the order in which their names first occur. */
async function ownColumns(rows: readonly Row[], reading: Reading): Promise<FoundColumn[]> {
  const { slice } = reading.context;
  const unique = createUniqueNames();
  const columns = new Map<string, { name: string; spec: undefined; cells: (Found | undefined)[] }>();
  for (const [n, row] of rows.entries()) {
    const times = new Map<string, number>();
    for (const [name, found] of reading.tree.values(row)) {
      const time = (times.get(name) ?? 0) + 1;
      times.set(name, time);
      const key = `${time} ${name}`;
      const column = columns.get(key) ?? { name: unique(name), spec: undefined, cells: [] };
      column.cells[n] = found;
      columns.set(key, column);
    }
    refuseSparse(columns.size, rows.length, row, reading);
    if (n % 512 === 0 && slice.isOver()) await slice.renew();
  }
  return [...columns.values()];
}

/** Rows with few names in common would make a table that is mostly empty and has no limit in size. */
function refuseSparse(width: number, rows: number, row: Row, { tree, context }: Reading): void {
  const { maxColumns } = context.options.limits;
  const isSparse = width * rows > 1_000_000 + 4 * tree.size;
  if (width <= maxColumns && !isSparse) return;
  const problem = isSparse ? `few columns in common, and ${width} in all` : `more than ${maxColumns} columns`;
  throw context.refuse(`the rows have ${problem}`, { line: row.line, hint: 'select the columns: `columns: [ … ]`' });
}

/** A table whose columns are arrays. */
function zipLists(name: string, { columns: wanted, where }: TableOptions, reading: Reading): FoundTable {
  const { refuse } = reading.context;
  if (!wanted || Array.isArray(wanted)) {
    throw refuse(`the mapping does not say where the rows of table ${name} are`, {
      hint: 'specify their path, `rows: //Reading`, or an array for each column: `columns: { time: //times, signal: //values }`',
    });
  }
  const columns = Object.entries(wanted).map(([given, spec]): FoundColumn => {
    const cells = spec.start === undefined ? itemsOf(spec.from ?? [given], reading) : [];
    return { name: given, spec, cells };
  });
  const [first, ...others] = columns.filter(({ spec }) => spec?.start === undefined);
  const other = others.find(({ cells }) => cells.length !== first?.cells.length);
  if (first && other) {
    throw refuse(
      `the arrays of table ${name} differ in length: ${first.name} has ${first.cells.length} values, ${other.name} has ${other.cells.length}`,
      { line: other.cells[0]?.line, hint: 'define a separate table for each array' },
    );
  }
  const lines = (first?.cells ?? []).map((cell) => cell?.line ?? 1);
  return { columns, lines, where, keeps: () => true };
}

/** The items of a list. Several lists are joined item by item. */
function itemsOf(paths: readonly (string | number)[], reading: Reading): readonly Found[] {
  const [first = [], ...others] = paths.map((path) => {
    const list = reading.tree.list(path);
    if ('items' in list) return list.items;
    throw refuseMissing(list, reading);
  });
  if (others.length === 0) return first;
  if (others.some((other) => other.length !== first.length)) {
    throw reading.context.refuse(`the arrays to be joined differ in length: ${paths.join(', ')}`, {
      line: first[0]?.line,
    });
  }
  const textAt = (n: number) => joinTexts([first, ...others].map((list) => list[n]?.text));
  return first.map((item, n) => ({ ...item, text: textAt(n) }));
}

/** A file of labels and data that needs no mapping, such as JCAMP-DX. */
export interface LabelledFile {
  readonly labels: readonly NamedFact[];
  readonly tables: readonly LabelledTable[];
  /** The lines that are neither: comments, and what is outside of all blocks. */
  readonly unread: readonly LineRange[];
}

export interface LabelledTable {
  readonly columns: readonly TextColumn[];
  readonly rows: readonly Line[];
  /** The number of rows that the file declares. */
  readonly declared: number | undefined;
}

/** A mapping can name facts and, in file order, tables and their columns. */
export async function readLabelled(
  file: OpenFile,
  { labels, tables: data, unread }: LabelledFile,
): Promise<FileRecord> {
  const { facts } = await scan(file, { ...layoutOf(file), lines: () => [], contents: { labels } });
  const { meta, context } = facts;
  const date = meta.has('date') ? undefined : dateIn(labels, context);
  if (date) meta.set('date', date);
  const wanted = Object.entries(file.options.tables);
  const [extra] = wanted[data.length] ?? [];
  if (extra !== undefined) {
    throw file.refuse(`there are no data for table ${extra}: the file has ${data.length} tables`, {
      hint: 'name at most as many tables as the file has, in its order',
    });
  }
  const unique = createUniqueNames();
  const tables: Table[] = [];
  for (const [n, { columns, rows, declared }] of data.entries()) {
    const [name, own] = wanted[n] ?? ['readings', tableSchema.parse({})];
    const count = own.count ?? declared;
    tables.push(await buildTable(unique(name), { ...own, count }, { columns, rows }, facts));
  }
  return { meta, tables, unread: [...toRanges(unread, 'unread'), ...finishUnread(context.unread, [], [])] };
}

/** The date by the file's own labels, if it is unambiguous. */
function dateIn(labels: readonly NamedFact[], context: Context): Value | undefined {
  const textOf = (key: string) => labels.find(({ name }) => name.replace(/[\s\-_/]/g, '').toUpperCase() === key)?.text;
  const [long, day, time] = [textOf('LONGDATE'), textOf('DATE'), textOf('TIME')];
  for (const text of [long, day && time && `${day} ${time}`, day]) {
    const iso = text ? context.values.dates.readAsDate(text) : undefined;
    if (text && iso !== undefined) return { value: iso, text };
  }
  return undefined;
}
