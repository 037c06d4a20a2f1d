import type { Where } from '../../config/grammar.js';
import type { ParseOptions, TableOptions } from '../../config/vocabulary.js';
import type { Table } from '../../model.js';
import { NO_SPLIT } from '../grammar/split.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import { compileConditions } from '../read/filter.js';
import { readTable } from '../read/table.js';
import type { Refuse } from '../refuse.js';
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
  const { values, dates, refuse, pace } = context;
  const lines = rows.map((row): Line => ({ number: row.line, text: '', cells: row.cells }));
  const header: Line = { number: rows[0]?.line ?? 1, text: '', cells: columns.map((column) => column.name) };
  const units: Line = { number: header.number, text: '', cells: columns.map(({ unit }) => unit ?? '') };
  const specs = columns.flatMap(({ name: given, spec }, cell) =>
    spec ? [[given, spec.start === undefined ? { ...spec, from: [cell + 1] } : spec] as const] : [],
  );
  const located = {
    name,
    options: { ...options, ...OTHERWISE, ...(specs.length > 0 && { columns: Object.fromEntries(specs) }) },
    blocks: [{ header: [header], units, rows: lines, captures: new Map<string, string>() }],
    afterBlank: undefined,
  };
  return readTable(located, { meta: new Map(), known: new Map(), values, dates }, new Uint8Array(0), {
    ...{
      lines,
      options: context.options,
      cut: { split: NO_SPLIT, quote: undefined },
      path: '',
      name: '',
      pace,
    },
    // A cell of ours has no column in the file.
    refuse: (message, refusal) => refuse(message, { ...refusal, cell: undefined }),
  });
}

/** What was heeded already, or does not apply. The names are not to be doubted: they are the mapping's or the file's. */
const OTHERWISE = { header: ['as given'], rows: undefined, count: undefined };

/** Whether a cell is as `where` wants it. */
export const conditionOn = (
  wanted: NonNullable<TableOptions['where']>[string],
  values: ValueReader,
): ((text: string) => boolean) => compileConditions(wanted, values);
