import type { Where } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { Table } from '../../model.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import type { Facts } from '../read/facts.js';
import type { Refuse } from '../refuse.js';
import { createTableBuilder } from '../table/build.js';
import { compileConditions } from '../table/conditions.js';
import type { DateOptions } from '../values/date.js';
import type { ValueReader } from '../values/value.js';

/** A table as it stands in a file that has no lines: names, and the text of every cell. */
export interface TextTable {
  readonly columns: readonly TextColumn[];
  readonly rows: readonly TextRow[];
}

export interface TextColumn {
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
  readonly pace: Pace;
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
  const { values, dates, pace } = context;
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
    if (n % 512 === 0 && pace.due()) await pace.rest();
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
export const conditionOn = (
  wanted: NonNullable<TableOptions['where']>[string],
  values: ValueReader,
): ((text: string) => boolean) => compileConditions(wanted, values);
