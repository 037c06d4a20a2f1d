import type { TableOptions } from '../../config/vocabulary.js';
import type { Table } from '../../model.js';
import type { Line } from '../lines.js';
import type { Facts } from '../read/facts.js';
import type { Refuse } from '../refuse.js';
import type { DateOptions } from '../values/date.js';
import type { ValueReader } from '../values/value.js';
import { assemble } from './assemble.js';
import {
  type Cells,
  capturedColumn,
  findColumn,
  isByPosition,
  type PlanDeps,
  type PlannedColumn,
  planColumns,
  planFurther,
  textOf,
} from './columns.js';
import { compileConditions } from './conditions.js';
import { createEmitter, type Emitter } from './emit.js';
import { createFill } from './fill.js';
import { type FileColumn, unnamed } from './header.js';

/** Takes the rows of a table one by one, in the order in which the file has them. */
export interface TableBuilder {
  /** A block begins: its columns, and what is said once for all of its rows. */
  begin(columns: readonly FileColumn[], captured: readonly string[], header: Line | undefined): void;
  row(cells: Cells, line: Line | undefined): void;
  /** The first of these lines that looks like one more row. */
  firstFitting(lines: readonly Line[]): Line | undefined;
  finish(facts: Facts): Table;
}

export interface BuilderDeps {
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
  return values.numbers.isSuspect(text) || typeof (values.read(text).value ?? 0) === 'number';
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
