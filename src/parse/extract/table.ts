import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import type { Column, Table, Value } from '../../model.js';
import type { Line, Refuse } from '../lines.js';
import type { DateOptions } from '../values/date.js';
import { bareUnit } from '../values/unit.js';
import { EMPTY, type ValueReader } from '../values/value.js';
import {
  type CollectDeps,
  type CollectedColumn,
  type ColumnCollector,
  createCollector,
  createSummary,
  createUnpivot,
} from './collect.js';
import {
  type Cells,
  capturedColumn,
  createUniqueNames,
  type FileColumn,
  findColumn,
  isByPosition,
  type PlanDeps,
  type PlannedColumn,
  planColumns,
  planFurther,
  splitUnit,
  textOf,
  unnamed,
} from './columns.js';
import type { Facts } from './facts.js';

/** Takes the rows of a table one by one, in the order in which the file has them. */
export interface TableBuilder {
  /** A block begins: its columns, and what is said once for all of its rows. */
  begin(columns: readonly FileColumn[], captured: readonly string[], header: Line | undefined): void;
  row(cells: Cells, line: Line | undefined): void;
  /** The first of these lines that looks like one more row. */
  firstFitting(lines: readonly Line[]): Line | undefined;
  finish(facts: Facts): Table;
}

interface BuilderDeps {
  readonly name: string;
  readonly options: TableOptions;
  /** Columns that the lines which begin a block can fill. */
  readonly captureNames: readonly string[];
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly maxColumns: number;
  readonly maxKeptCells: number;
  readonly refuse: Refuse;
  /** Called for every row, and throws where there are too many of them. */
  countRow(line: Line | undefined): void;
  fixed(name: string): (() => string) | undefined;
}

/** Builds a table: rows, fill, columns, where, unpivot, as the mapping orders them. */
export function createTableBuilder(deps: BuilderDeps): TableBuilder {
  const { options, name, refuse } = deps;
  const captured: string[] = [];
  const columns: FileColumn[] = deps.captureNames.map(capturedColumn);
  /** Where the columns that a header named stand. */
  const places = new Map<string, number>();
  const widths = new Set<number>();
  let plan: RowPlan | undefined;
  let order: number[] | undefined;
  let count = 0;
  let last: Line | undefined;

  const widthOf = () => columns.length - deps.captureNames.length;

  function addColumn(column: FileColumn): number {
    const cell = widthOf();
    columns.push({ ...column, cell });
    refuseTooMany(cell + 1, undefined);
    return cell;
  }

  function refuseTooMany(width: number, line: Line | undefined): void {
    if (width <= deps.maxColumns) return;
    throw refuse(`table ${name} has ${width} columns, more than are read`, {
      line,
      hint: `if such tables are to be read, allow more: \`limits: { columns: ${width} }\``,
    });
  }

  /** Cells beyond the header, unless they are empty: trailing delimiters make no column. */
  function widen(cells: Cells, rows: RowPlan, line: Line | undefined): void {
    let width = cells.length;
    while (width > widthOf() && cells[width - 1] === '') width--;
    refuseTooMany(width, line);
    while (widthOf() < width) {
      const column = unnamed(widthOf());
      columns.push(column);
      places.set(column.name, column.cell);
      rows.addColumn(column);
    }
  }

  return {
    begin(own, values, header) {
      captured.splice(0, captured.length, ...values);
      refuseTooMany(own.length, header);
      if (!plan) {
        for (const column of own) columns.push(column);
        for (const { name: known, cell } of own) places.set(known, cell);
        plan = createRowPlan({ ...deps, columns, captured, header });
        return;
      }
      const found = own.map((column) => places.get(column.name) ?? addLater(column));
      const isSame = found.length === widthOf() && found.every((place, n) => place === n);
      order = isSame ? undefined : found;
    },
    row(cells, line) {
      if (!plan) return;
      const own = order ? reorder(cells, order, placeBeyond) : cells;
      if (own.length > widthOf()) widen(own, plan, line);
      if (widths.size < 1000) widths.add(cells.length);
      count++;
      last = line;
      plan.take(own, line);
    },
    firstFitting(lines) {
      const wide = lines.filter(
        ({ cells: { length } }) => length >= 2 && (count === 0 || widths.has(length)),
      );
      return wide.length === 0 ? undefined : plan?.firstFitting(wide);
    },
    finish(facts) {
      requireCount({ name, options, count, last }, facts, refuse);
      if (count > 0 && Array.isArray(options.columns) && isByPosition(options))
        requireWidth(options.columns, widthOf(), last, refuse);
      return assemble(name, options, plan?.emitter, facts, refuse);
    },
  };

  function addLater(column: FileColumn): number {
    const cell = addColumn(column);
    places.set(column.name, cell);
    const added = columns.at(-1);
    if (added) plan?.addColumn(added);
    return cell;
  }

  /** Where a cell goes that the header of a later block has no name for. */
  function placeBeyond(n: number): number {
    const column = unnamed(n);
    return places.get(column.name) ?? addLater(column);
  }
}

/** The cells of a block with a header of its own, in the order of the table's columns. */
function reorder(cells: Cells, order: number[], placeBeyond: (n: number) => number): string[] {
  const ordered: string[] = [];
  for (let n = 0; n < cells.length; n++) {
    const text = cells[n] ?? '';
    if (text === '') continue;
    order[n] ??= placeBeyond(n);
    ordered[order[n] ?? n] = text;
  }
  return ordered;
}

interface RowPlan {
  readonly emitter: Emitter;
  addColumn(column: FileColumn): void;
  take(cells: Cells, line: Line | undefined): void;
  firstFitting(lines: readonly Line[]): Line | undefined;
}

/** What is done to each row, once the columns are known. */
function createRowPlan(deps: BuilderDeps & PlanDeps): RowPlan {
  const { options, values } = deps;
  const planned = planColumns(deps);
  const fill = options.fill && createFill(options.fill.map((name) => findColumn(name, deps)));
  const tests = Object.entries(options.where ?? {}).map(([name, wanted]) => {
    const test = compileConditions(wanted, values);
    const text = planned.find(({ given }) => given === name)?.text ?? textOf(findColumn(name, deps), deps);
    return (cells: Cells) => test(text(cells));
  });
  const emitter = createEmitter(planned, deps);
  let taken = 0;
  return {
    emitter,
    addColumn(column) {
      for (const further of planFurther(column, deps)) emitter.addColumn(further);
    },
    take(cells, line) {
      const origin = taken++;
      const filled = fill ? fill(cells) : cells;
      for (const test of tests) if (!test(filled)) return;
      deps.countRow(line);
      emitter.emit(filled, line, origin);
    },
    firstFitting(lines) {
      const columns = emitter.collected();
      return lines.find(({ cells }) =>
        columns.every(({ plan, isNumeric }) => isLike(plan, isNumeric, cells, values)),
      );
    },
  };
}

function isLike(
  { column }: PlannedColumn,
  isNumeric: boolean | undefined,
  cells: Cells,
  values: ValueReader,
): boolean {
  const text = column ? (cells[column.cell] ?? '') : '';
  if (text === '' || isNumeric === false) return true;
  return values.numbers.isAmbiguous(text) || typeof (values.read(text).value ?? 0) === 'number';
}

function requireCount(
  {
    name,
    options,
    count,
    last,
  }: { name: string; options: TableOptions; count: number; last: Line | undefined },
  facts: Facts,
  refuse: Refuse,
): void {
  if (options.count === undefined) return;
  const fact = typeof options.count === 'number' ? undefined : facts.require(options.count);
  const wanted = fact ? fact.value.value : options.count;
  if (wanted === count) return;
  throw refuse(`table ${name} has ${count} rows, and there must be ${fact?.text ?? options.count}`, {
    line: last ?? fact?.line,
    hint: 'the file may be cut short; else correct `count`, `until` or `skip` in the mapping',
  });
}

function requireWidth(names: readonly string[], width: number, line: Line | undefined, refuse: Refuse): void {
  if (names.length <= width) return;
  throw refuse(`the rows have ${width} cells, and \`columns\` names ${names.length}`, { line });
}

/** Gives the cells of each row to their columns. */
interface Emitter {
  /** How many rows the record will have. */
  readonly count: number;
  /** How many of them are kept. */
  readonly kept: number;
  /** Which row of the file a kept row was, from 0: rows are dropped, and one can become several. */
  originOf(row: number): number;
  /** The same of the last row, kept or not. */
  readonly lastOrigin: number;
  addColumn(column: PlannedColumn): void;
  emit(cells: Cells, line: Line | undefined, origin: number): void;
  collected(): CollectedColumn[];
}

interface EmitDeps extends PlanDeps, Omit<CollectDeps, 'sampleSize'> {
  /** Of longer tables the first rows are kept, and all of them are counted and summed up. */
  readonly maxKeptCells: number;
}

/** Numbers, 8 bytes each, of all columns together. */
const SAMPLED_NUMBERS = 300_000;

function createEmitter(planned: readonly PlannedColumn[], deps: EmitDeps): Emitter {
  const own: ColumnCollector[] = [];
  const collect = (plan: PlannedColumn) => {
    const share = Math.floor(SAMPLED_NUMBERS / (Math.max(planned.length, own.length) + 1));
    return createCollector(plan, { ...deps, sampleSize: Math.max(1000, Math.min(100_000, share)) });
  };
  const unpivot =
    deps.options.unpivot === undefined
      ? undefined
      : createUnpivot(deps.options.unpivot, deps.options.units, collect);
  const unitFor = createUnitColumn(deps.options, deps);
  const hasAxis = planned.some(({ spec }) => spec.start !== undefined);
  const origins: number[] = [];
  let lastOrigin = 0;
  let count = 0;
  let kept = 0;

  function addColumn(plan: PlannedColumn): void {
    if (!unpivot?.claims(plan)) own.push(collect(plan));
  }

  const width = () => own.length + (unpivot?.width() ?? 0);

  /** Columns that came late may be more than there is room for in the rows that were kept before. */
  const keptInTheEnd = () => Math.min(kept, Math.floor(deps.maxKeptCells / Math.max(1, width())));

  /** One row of the record. */
  function put(cells: Cells, line: Line | undefined, origin: number): number {
    const row = count++;
    if (kept === row && (row + 1) * width() <= deps.maxKeptCells) kept++;
    const isKept = row < kept;
    lastOrigin = origin;
    if (hasAxis && isKept) origins.push(origin);
    for (const column of own) {
      // Where each block has columns of its own, most cells of a row are not there.
      const text = column.plan.text(cells);
      if (text !== '') column.add(row, text, line, isKept, unitFor?.(column.plan, cells));
    }
    return row;
  }

  for (const plan of planned) addColumn(plan);
  return {
    get count() {
      return count;
    },
    get kept() {
      return keptInTheEnd();
    },
    addColumn,
    originOf: (row) => origins[row] ?? row,
    get lastOrigin() {
      return lastOrigin;
    },
    emit(cells, line, origin) {
      if (!unpivot) put(cells, line, origin);
      else for (const add of unpivot.rowsOf(cells, line)) add(put(cells, line, origin), count <= kept);
    },
    collected() {
      const isCut = keptInTheEnd() < count;
      return [...own, ...(unpivot?.columns() ?? [])].map((column) => column.finish(isCut));
    },
  };
}

/** `units: { column: Unit }`: what stands there is the unit of the number to the left of it. */
function createUnitColumn(
  { units }: TableOptions,
  deps: PlanDeps,
): ((plan: PlannedColumn, cells: Cells) => string | undefined) | undefined {
  if (typeof units !== 'object') return undefined;
  const column = findColumn(units.column, deps);
  const text = textOf(column, deps);
  return (plan, cells) => (plan.column?.cell === column.cell - 1 ? bareUnit(text(cells)) : undefined);
}

interface Assembled extends Column {
  readonly value: (row: number) => Value;
}

/** Puts the columns together: their names, their units, and beside each the texts that are no values. */
function assemble(
  name: string,
  options: TableOptions,
  emitter: Emitter | undefined,
  facts: Facts,
  refuse: Refuse,
): Table {
  if (!emitter) return { name, columns: [], rows: [], count: 0 };
  const { count, kept } = emitter;
  const unique = createUniqueNames();
  const columns = emitter
    .collected()
    .filter(({ plan, isEmpty }) => plan.given !== undefined || plan.column?.isNamed || !isEmpty)
    .flatMap((column): Assembled[] => {
      if (column.plan.spec.start !== undefined) return [axis(column, unique, emitter, facts, refuse)];
      const own = describe(column, options, unique, facts);
      const texts = column.hasTexts ? [{ name: unique(`${own.name} text`), value: textAt(column) }] : [];
      return [{ ...own, value: (row) => column.values[row] ?? EMPTY }, ...texts];
    });
  const rows = Array.from({ length: kept }, () => new Array<Value>(columns.length).fill(EMPTY));
  // Column by column: with thousands of them, going from one to the next for each cell takes several times as long.
  for (const [n, { value }] of columns.entries())
    for (const [row, cells] of rows.entries()) cells[n] = value(row);
  return { name, columns: columns.map(({ value: _, ...column }) => column), rows, count };
}

/** A unit belongs to numbers only: what stands in brackets after the name of a text is part of the name. */
function describe(
  { plan, isNumeric, commonUnit, summary }: CollectedColumn,
  { units }: TableOptions,
  unique: (name: string) => string,
  facts: Facts,
): Column {
  const own = plan.column ? splitUnit(plan.column.name, units, isNumeric ?? true) : undefined;
  const unit = facts.unitOf(plan.spec) ?? plan.column?.unit ?? own?.unit ?? commonUnit;
  return {
    name: unique(plan.given ?? own?.name ?? ''),
    ...(unit !== undefined && { unit }),
    ...(summary && { summary }),
  };
}

/** Where cells have a text but no value, that text stands in a column beside them. */
const textAt =
  ({ values }: CollectedColumn) =>
  (row: number): Value => {
    const { value, text } = values[row] ?? EMPTY;
    return value === null && text !== '' ? { value: text, text } : EMPTY;
  };

/** An axis that the file does not write out: where it starts, and what each row adds. */
function axis(
  { plan }: CollectedColumn,
  unique: (name: string) => string,
  { count, kept, originOf, lastOrigin }: Emitter,
  facts: Facts,
  refuse: Refuse,
): Assembled {
  const start = numberOf(plan.spec.start, facts, refuse);
  const step = numberOf(plan.spec.step, facts, refuse);
  const unit = facts.unitOf(plan.spec);
  // Fifteen digits are what a number holds; what is beyond them comes from the adding.
  const at = (origin: number): Value => {
    const number = Number((start + origin * step).toPrecision(15));
    return { value: number, text: String(number) };
  };
  const ends = createSummary([at(originOf(0)), at(lastOrigin)], 2).finish();
  // The middle of both ends is that of all where no row was dropped.
  const isMedianExact = lastOrigin === count - 1;
  return {
    name: unique(plan.given ?? ''),
    ...(unit !== undefined && { unit }),
    ...(kept < count && ends && { summary: { ...ends, n: count, isMedianExact } }),
    value: (row) => at(originOf(row)),
  };
}

function numberOf(written: string | number | undefined, facts: Facts, refuse: Refuse): number {
  if (typeof written === 'number') return written;
  const fact = facts.require(written ?? '');
  if (typeof fact.value.value === 'number') return fact.value.value;
  throw refuse(`the fact ${JSON.stringify(written)} is no number: ${JSON.stringify(fact.text)}`, {
    line: fact.line,
  });
}

/** In these columns, an empty cell takes the one above. */
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

type Condition = string | number | boolean;

/** Whether a cell is as `where` wants it: any of the listed conditions will do. */
export function compileConditions(
  wanted: readonly Condition[],
  values: ValueReader,
): (text: string) => boolean {
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
