import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import type { FileError } from '../../errors.js';
import type { Column, Table, Value } from '../../model.js';
import { plural } from '../../text.js';
import { type Line, raiseLimit } from '../lines.js';
import { bareUnit, isHemisphere, isMark, isUnit, unitAsName } from '../values/unit.js';
import { EMPTY, type ValueReader } from '../values/value.js';
import {
  addCell,
  addPivoted,
  type ColumnValues,
  claimColumn,
  createSummary,
  createUnpivot,
  isNumeric,
  type KeptRows,
  openColumn,
  refuseAmbiguous,
  summaryOf,
  unpivotRow,
  withoutMarks,
} from './column-values.js';
import {
  type Cells,
  type ColumnPlanning,
  columnPatterns,
  createUniqueNames,
  type FileColumn,
  findColumn,
  isByPosition,
  namedColumn,
  type PlannedColumn,
  planColumns,
  planFurther,
  splitUnit,
  textOf,
  unnamedColumn,
  withUnitsOfBlocks,
} from './columns.js';
import type { Context } from './context.js';
import { type Facts, requireFact, requireNumber, unitOf } from './facts.js';
import { addUnread } from './unread.js';

/** One table of a file while its rows are read. Order: rows, fill, columns, where, unpivot. */
export type TableBuilder = ReturnType<typeof openTable>;

export const openTable = (name: string, options: TableOptions, captureNames: readonly string[], context: Context) => ({
  name,
  options,
  context,
  /** Columns that the lines which start a block can fill. */
  captureNames,
  captured: [] as readonly string[],
  patterns: columnPatterns(options),
  columns: captureNames.map((captured, n) => namedColumn(captured, -1 - n)),
  header: undefined as Line | undefined,
  /** The cells of the columns that a header names. */
  cellOf: new Map<string, number>(),
  /** The numbers of cells that rows have. */
  widths: new Set<number>(),
  /** Set when the first block starts. */
  rows: undefined as Rows | undefined,
  /** For a block with a header of its own: the cell of the table for each of its cells. */
  order: undefined as number[] | undefined,
  /** If the mapping lists the columns: which cells have a text in any row. */
  isFilled: [] as boolean[],
  count: 0,
  last: undefined as Line | undefined,
});

const widthOf = ({ columns, captureNames }: TableBuilder): number => columns.length - captureNames.length;

/** Starts a block: its columns, and the values that it has for all of its rows. */
export function beginBlock(
  table: TableBuilder,
  columns: readonly FileColumn[],
  captured: readonly string[],
  header: Line | undefined,
): void {
  table.captured = captured;
  refuseTooWide(table, columns.length, header);
  if (!table.rows) {
    table.header = header;
    for (const column of columns) table.columns.push(column);
    for (const { name, cell } of columns) table.cellOf.set(name, cell);
    table.rows = openRows(table);
    return;
  }
  const order = columns.map((column) => table.cellOf.get(column.name) ?? addColumn(table, column));
  const isSame = order.length === widthOf(table) && order.every((cell, n) => cell === n);
  table.order = isSame ? undefined : order;
}

export function refuseTooWide(
  { name, context }: Pick<TableBuilder, 'name' | 'context'>,
  width: number,
  line?: Line | undefined,
): void {
  const { maxColumns } = context.options.limits;
  if (width <= maxColumns) return;
  throw context.refuse(`table ${name} has ${width} columns, more than ${maxColumns}`, {
    line,
    hint: raiseLimit('columns', width),
  });
}

/** Adds a column that appears after the first header, and returns its cell. */
function addColumn(table: TableBuilder, column: FileColumn): number {
  const cell = widthOf(table);
  refuseTooWide(table, cell + 1);
  const added = { ...column, cell };
  table.columns.push(added);
  table.cellOf.set(column.name, cell);
  if (table.rows) for (const plan of planFurther(added, table)) addPlanned(table.rows, plan);
  return cell;
}

export function addRow(table: TableBuilder, cells: Cells, line: Line | undefined): void {
  const { rows, order, widths } = table;
  if (!rows) return;
  const own = order ? reorder(table, cells, order, line) : cells;
  if (own.length > widthOf(table)) widen(table, own, line);
  if (widths.size < 1000) widths.add(cells.length);
  if (Array.isArray(table.options.columns)) noteFilled(table, own);
  table.count++;
  table.last = line;
  takeRow(rows, own, line);
}

function noteFilled({ isFilled }: TableBuilder, cells: Cells): void {
  for (let n = 0; n < cells.length; n++) isFilled[n] ||= cells[n] !== undefined && cells[n] !== '';
}

/** Counts a row that the caller leaves out. */
export function skipRow(table: TableBuilder): void {
  table.count++;
}

/** Moves the cells of a block with a header of its own to the columns of the table. */
function reorder(table: TableBuilder, cells: Cells, order: number[], line: Line | undefined): string[] {
  const ordered: string[] = [];
  for (let n = 0; n < cells.length; n++) {
    const text = cells[n] ?? '';
    if (text === '') continue;
    if (order[n] === undefined && !isByPosition(table.options)) throw tooLong(table, cells, order.length, line);
    const column = unnamedColumn(n);
    order[n] ??= table.cellOf.get(column.name) ?? addColumn(table, column);
    ordered[order[n] ?? n] = text;
  }
  return ordered;
}

/** Adds columns if there is no header. Trailing delimiters, which leave empty cells, add none. */
function widen(table: TableBuilder, cells: Cells, line: Line | undefined): void {
  let width = cells.length;
  while (width > widthOf(table) && cells[width - 1] === '') width--;
  if (width > widthOf(table) && !isByPosition(table.options)) throw tooLong(table, cells, widthOf(table), line);
  refuseTooWide(table, width, line);
  while (widthOf(table) < width) addColumn(table, unnamedColumn(widthOf(table)));
}

/** Its cells cannot be assigned to columns: one of them may be in the wrong place. */
function tooLong({ name, context }: TableBuilder, cells: Cells, width: number, line: Line | undefined): FileError {
  const start = startOf(line?.text ?? cells.find((cell) => cell !== '') ?? '');
  return context.refuse(`this row of table ${name} has ${cells.length} cells, but the header has ${width}`, {
    line,
    hint: `if it is not a row: \`skip: ${start}\`; if the header lacks names: \`header: none\`, and all names in \`columns\``,
  });
}

/** The start of a line, by which a mapping can recognise it. */
export const startOf = (text: string): string => JSON.stringify(text.trim().slice(0, 30));

/** The first of these lines that looks like a row of the table. */
export function firstFitting({ rows, count, widths }: TableBuilder, lines: readonly Line[]): Line | undefined {
  if (!rows) return undefined;
  const { values } = rows.context;
  return lines
    .filter(({ cells: { length } }) => length >= 2 && (count === 0 || widths.has(length)))
    .find(({ cells }) => rows.columns.every((column) => mayHold(column, cells, values)));
}

/** Whether a column may hold the cell: a numeric column only numbers. */
function mayHold(column: ColumnValues, cells: Cells, { numbers, read }: ValueReader): boolean {
  const text = cells[column.plan.column?.cell ?? -1] ?? '';
  if (text === '' || isNumeric(column) === false) return true;
  return numbers.isAmbiguous(text) || typeof (read(text).value ?? 0) === 'number';
}

export function finishTable(table: TableBuilder, facts: Facts): Table {
  requireCount(table, facts);
  const { name, options, context, count, last, rows } = table;
  if (count > 0 && Array.isArray(options.columns) && isByPosition(options)) {
    const [wanted, width] = [options.columns.length, widthOf(table)];
    if (wanted > width) {
      throw context.refuse(`the rows have ${width} cells, but \`columns\` has ${wanted} names`, { line: last });
    }
  }
  const left = columnsLeftOut(table);
  if (left.length > 0) context.unread.columns.push({ kind: 'left out', table: name, columns: left });
  return rows ? assemble(name, rows, facts) : { name, columns: [], rows: [], count: 0 };
}

/** The columns of the file that a list in the mapping does not name. */
function columnsLeftOut({ options, columns, rows, isFilled }: TableBuilder): string[] {
  if (!Array.isArray(options.columns) || !rows) return [];
  const taken = new Set(rows.columns.map(({ plan }) => plan.column?.cell));
  const pivoted = new Set(rows.unpivot?.pivoted.map(({ plan }) => plan.column?.cell));
  return columns
    .filter(({ cell }) => !taken.has(cell) && !pivoted.has(cell) && (cell < 0 || isFilled[cell] === true))
    .map(({ name }) => name);
}

function requireCount({ name, options, count, last, context }: TableBuilder, facts: Facts): void {
  if (options.count === undefined) return;
  const fact = typeof options.count === 'number' ? undefined : requireFact(facts, options.count);
  const expected = fact ? fact.value.value : options.count;
  if (expected === count) return;
  throw context.refuse(`table ${name} has ${plural(count, 'row')} instead of ${fact?.text ?? options.count}`, {
    line: last ?? fact?.line,
    hint: `the file may be truncated; if it is complete, ${fact ? 'correct `count`' : `write \`count: ${count}\``} or correct \`until\` or \`skip\``,
  });
}

/** The rows of a table, once its columns are known. */
type Rows = ReturnType<typeof openRows>;

/** Numbers that the summaries of all columns keep together, 8 bytes each. */
const SAMPLED_NUMBERS = 300_000;

function openRows(table: ColumnPlanning) {
  const { options, context } = table;
  const planned = planColumns(table);
  const columns: ColumnValues[] = [];
  const kept: KeptRows = [];
  let opened = 0;
  const open = (plan: PlannedColumn) => {
    const share = Math.floor(SAMPLED_NUMBERS / (Math.max(planned.length, columns.length) + 1));
    const unit = plan.column && (plan.column.unit ?? splitUnit(plan.column.name, options.units, true).unit);
    return openColumn(plan, context, kept, opened++, Math.max(1000, Math.min(100_000, share)), unit);
  };
  const rows = {
    options,
    context,
    columns,
    open,
    lastOrigin: 0,
    taken: 0,
    count: 0,
    kept,
    unpivot: options.unpivot === undefined ? undefined : createUnpivot(options.unpivot, options.units, open),
    fill: options.fill && createFill(options.fill.map((name) => findColumn(name, table))),
    conditions: Object.entries(options.where ?? {}).map(([name, wanted]) => {
      const test = compileConditions(wanted, context.values);
      const known = planned.find(({ given }) => given === name);
      const text = known?.text ?? textOf(findColumn(name, table), table);
      return (cells: Cells) => test(text(cells));
    }),
    unitFor: createUnitColumns(table),
    hasAxis: planned.some(({ spec }) => spec.start !== undefined),
    /** For each kept row, the number of its row in the file: rows can be left out, or become several. */
    origins: [] as number[],
  };
  for (const plan of planned) addPlanned(rows, plan);
  return rows;
}

function addPlanned(rows: Pick<Rows, 'columns' | 'unpivot' | 'open'>, plan: PlannedColumn): void {
  if (!rows.unpivot || !claimColumn(rows.unpivot, plan)) rows.columns.push(rows.open(plan));
}

function takeRow(rows: Rows, cells: Cells, line: Line | undefined): void {
  const { fill, conditions, unpivot, context } = rows;
  const origin = rows.taken++;
  const filled = fill ? fill(cells) : cells;
  if (!conditions.every((isMet) => isMet(filled))) {
    if (line) addUnread(context.unread, line, 'left out');
    return;
  }
  context.countRow(line);
  if (!unpivot) putRow(rows, filled, line, origin);
  else {
    for (const pivoted of unpivotRow(unpivot, filled)) {
      const row = putRow(rows, filled, line, origin);
      addPivoted(unpivot, pivoted, row, line);
    }
  }
}

/** Adds one row of the record, and returns it if it is kept. */
function putRow(rows: Rows, cells: Cells, line: Line | undefined, origin: number): Value[] | undefined {
  const { kept } = rows;
  const n = rows.count++;
  const width = rowWidth(rows);
  if (kept.length === n && (n + 1) * width <= rows.context.maxKeptCells) kept.push(emptyRow(width));
  const row = kept[n];
  rows.lastOrigin = origin;
  if (rows.hasAxis && row) rows.origins.push(origin);
  for (const column of rows.columns) {
    // If each block has its own columns, most cells of a row are missing.
    const text = column.plan.text(cells);
    if (text !== '') addCell(column, row, text, line, rows.unitFor?.(column.plan, cells));
  }
  return row;
}

/** `fill` takes several times as long. */
function emptyRow(width: number): Value[] {
  const row = new Array<Value>(width);
  for (let n = 0; n < width; n++) row[n] = EMPTY;
  return row;
}

const rowWidth = ({ columns, unpivot }: Rows): number =>
  columns.length + (unpivot ? unpivot.groups.length + unpivot.values.size : 0);

/** Columns that were added later can leave less room than the kept rows take. */
const keptRows = (rows: Rows): KeptRows =>
  rows.kept.slice(0, Math.floor(rows.context.maxKeptCells / Math.max(1, rowWidth(rows))));

const originOf = ({ origins }: Rows, row: number): number => origins[row] ?? row;

/** In these columns, an empty cell takes the value above. */
function createFill(columns: readonly FileColumn[]): (cells: Cells) => Cells {
  const above = new Map<number, string>();
  return (cells) => {
    const filled = [...cells];
    for (const { cell } of columns) {
      if (filled[cell]) above.set(cell, filled[cell]);
      else filled[cell] = above.get(cell) ?? '';
    }
    return filled;
  };
}

/** `units: { column: Unit }`: columns of that name have the units of the numbers to their left. */
function createUnitColumns(table: ColumnPlanning) {
  const { units } = table.options;
  if (typeof units !== 'object') return undefined;
  const texts = new Map<number, (cells: Cells) => string>();
  const { columns } = table.options;
  const placeOf = (name: string) => (Array.isArray(columns) ? undefined : columns?.[name]?.from?.[0]) ?? name;
  for (const name of units.column)
    for (const column of [
      findColumn(placeOf(name), table),
      ...table.columns.filter((other) => isRepeated(other.name, name)),
    ])
      texts.set(column.cell - 1, textOf(column, table));
  return (plan: PlannedColumn, cells: Cells) => {
    const text = plan.column && texts.get(plan.column.cell)?.(cells);
    return text !== undefined && /[\p{L}%‰°]/u.test(text) ? bareUnit(text) : undefined;
  };
}

/** `Unit (2)` */
const isRepeated = (name: string, first: string): boolean =>
  name.startsWith(`${first} (`) && /^\(\d+\)$/.test(name.slice(first.length + 1));

type Condition = string | number | boolean;

/** Tests a cell against the conditions of `where`, one of which must be met. */
export function compileConditions(wanted: readonly Condition[], values: ValueReader): (text: string) => boolean {
  const tests = wanted.map((condition) => compileCondition(condition, values));
  return (text) => tests.some((test) => test(text));
}

function compileCondition(condition: Condition, { read, missing }: ValueReader): (text: string) => boolean {
  if (condition === 'any') return (text) => text !== '' && !missing.has(text);
  if (typeof condition === 'number') return (text) => read(text).value === condition;
  if (typeof condition === 'boolean') return (text) => text.toLowerCase() === String(condition);
  const source = regexSource(condition);
  if (source === undefined) return (text) => text === condition;
  const regex = new RegExp(source);
  return (text) => regex.test(text);
}

interface Assembled {
  readonly column: Column;
  /** The index of its values in the kept rows, or the value of a kept row. */
  readonly value: number | ((row: readonly Value[], n: number) => Value);
}

/** More columns would take long to compare. */
const MAX_COMPARED = 200;

/** Names the columns, gives them units, and adds a text column beside those with texts but no values. */
function assemble(name: string, rows: Rows, facts: Facts): Table {
  const { count, unpivot } = rows;
  const kept = keptRows(rows);
  const unique = createUniqueNames();
  const names = rows.columns.slice(0, MAX_COMPARED).flatMap(({ plan }) => plan.column?.name ?? []);
  const columns = [...rows.columns, ...(unpivot ? [...unpivot.groups, ...unpivot.values.values()] : [])]
    .filter(({ plan, isEmpty }) => plan.given !== undefined || plan.column?.isNamed || !isEmpty)
    .flatMap((column): Assembled[] => {
      if (column.plan.spec.start !== undefined) return [axis(column.plan, rows, unique, facts)];
      const own = describe(column, rows, kept.length < count, facts, names);
      const value = withoutMarks(column, own.name);
      const named = { column: { ...own, name: unique(own.name) }, value };
      if (!column.hasTexts) return [named];
      const name = unique(`${named.column.name} text`);
      return [named, { column: { name, invented: 'column' }, value: (row) => textOnly(row[column.at]) }];
    });
  const isAsKept = columns.every(({ value }, n) => value === n);
  const toCells = (row: Value[], n: number): Value[] => {
    if (!isAsKept) return columns.map(({ value }) => (typeof value === 'number' ? row[value] : value(row, n)) ?? EMPTY);
    while (row.length < columns.length) row.push(EMPTY);
    // Without the last columns, if they have neither a name nor a value.
    row.length = columns.length;
    return row;
  };
  return { name, columns: withUnitsOfBlocks(columns.map(({ column }) => column)), rows: kept.map(toCells), count };
}

/**
 * Only numbers have units: in a text column, brackets after the name are part of the name, and a word in the row of
 * units is another name.
 */
function describe(
  column: ColumnValues,
  { columns, options: { units } }: Rows,
  isCut: boolean,
  facts: Facts,
  names: readonly string[],
): Column {
  const { plan } = column;
  const isNumber = isNumeric(column);
  if (isNumber) refuseAmbiguous(column);
  const split = plan.column ? splitUnit(plan.column.name, units, isNumber ?? true) : undefined;
  // `Area %` beside `Area`.
  const isTaken =
    / [°%‰]$/.test(plan.column?.name ?? '') && columns.some((other) => other.plan.column?.name === split?.name);
  const own = isTaken && plan.column ? { name: plan.column.name, unit: undefined } : split;
  const below = plan.column?.unit;
  const isName = isNumber === false && /^[\p{L}\p{N}]+$/u.test(below ?? '') && !isUnit(below ?? '');
  const name = plan.given ?? own?.name ?? '';
  const isLabel = column.hasLabels && /^[A-Z]$/.test(column.unit ?? '');
  const beside = isLabel || isMark(column.unit, name) ? undefined : column.unit;
  const stated = unitOf(facts, plan.spec) ?? (isName ? undefined : below) ?? own?.unit ?? beside;
  const isOwnName = isNumber && plan.given === undefined && /^(?:inHeader|slash)$/.test(String(units));
  const unit = stated ?? (isOwnName ? unitAsName(name, names) : undefined);
  const isPlace = isHemisphere(column.unit, name);
  const summary = isNumber && !isPlace && (isCut || column.summary) ? summaryOf(column).finish() : undefined;
  const invented = plan.given === undefined && plan.column?.isNamed === false ? { invented: 'name' as const } : {};
  return { name, ...(unit !== undefined && { unit }), ...invented, ...(summary && { summary }) };
}

/** The text of a cell that has no value. */
const textOnly = ({ value, text }: Value = EMPTY): Value =>
  value === null && text !== '' ? { value: text, text } : EMPTY;

/** A computed column: `start`, and `step` more in each row. */
function axis(plan: PlannedColumn, rows: Rows, unique: (name: string) => string, facts: Facts): Assembled {
  const { count, lastOrigin } = rows;
  const start = requireNumber(facts, plan.spec.start);
  const step = requireNumber(facts, plan.spec.step);
  const unit = unitOf(facts, plan.spec);
  // A number has about 15 significant digits; further ones are rounding errors of the sum.
  const at = (origin: number): Value => {
    const number = Number((start + origin * step).toPrecision(15));
    return { value: number, text: String(number) };
  };
  const ends = createSummary([at(originOf(rows, 0)), at(lastOrigin)], 2).finish();
  const isCut = keptRows(rows).length < count;
  const column = {
    name: unique(plan.given ?? ''),
    ...(unit !== undefined && { unit }),
    // The median of the two ends is that of all rows if no row was left out.
    ...(isCut && ends && { summary: { ...ends, n: count, isMedianExact: lastOrigin === count - 1 } }),
  };
  return { column, value: (_, n) => at(originOf(rows, n)) };
}
