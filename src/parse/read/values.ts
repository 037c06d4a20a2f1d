import type { TableOptions } from '../../config/vocabulary.js';
import type { Column, Value } from '../../model.js';
import { createDateReader } from '../values/date.js';
import { doubtfulNumber, isUnreadable, readTyped } from '../values/typed.js';
import { type PlannedColumn, splitUnit } from './columns.js';
import type { Context } from './context.js';
import { type Facts, unitOf } from './facts.js';
import type { RawRow } from './rows.js';

/** A column with what its cells mean. */
export interface ReadColumn extends Column {
  readonly values: readonly Value[];
  readonly plan: PlannedColumn;
  /** Undefined where all cells are empty and nothing can be said. */
  readonly isNumeric: boolean | undefined;
}

/** What reading the columns of a table needs to know. */
export interface ColumnReader {
  readonly options: TableOptions;
  readonly facts: Facts;
  readonly context: Context;
}

/** Reads all cells of a column, and from them what the column is: its unit belongs to numbers only. */
export async function readColumn(
  plan: PlannedColumn,
  rows: readonly RawRow[],
  reader: ColumnReader,
): Promise<ReadColumn> {
  const { values, isNumeric } = await readCells(plan, rows, reader);
  const own = plan.column ? splitUnit(plan.column.name, reader.options.units, isNumeric ?? true) : undefined;
  const unit =
    unitOf(plan.spec, reader.facts, reader.context) ?? plan.column?.unit ?? own?.unit ?? commonUnit(values);
  return {
    name: plan.given ?? own?.name ?? '',
    ...(unit !== undefined && { unit }),
    values,
    plan,
    isNumeric,
  };
}

async function readCells(
  plan: PlannedColumn,
  rows: readonly RawRow[],
  reader: ColumnReader,
): Promise<{ values: Value[]; isNumeric: boolean | undefined }> {
  const { pace } = reader.context;
  const read = cellReader(plan, reader);
  const { isSuspect } = reader.facts.values.numbers;
  const values: Value[] = [];
  let numbers = 0;
  let others = 0;
  let suspect: RawRow | undefined;
  for (const row of rows) {
    const value = read(row);
    values.push(value);
    if (typeof value.value === 'number') numbers++;
    else if (value.value === value.text && plan.spec.type === undefined && isSuspect(value.text)) {
      numbers++;
      suspect ??= row;
    } else if (value.value !== null) others++;
    if (values.length % 512 === 0 && pace.due()) await pace.rest();
  }
  const isNumeric = numbers + others === 0 ? undefined : numbers >= others;
  if (isNumeric && suspect) refuseSuspect(plan, suspect, reader.context);
  return { values, isNumeric };
}

/** One cell as the mapping types it, or by its looks. */
function cellReader({ spec, text, column }: PlannedColumn, reader: ColumnReader): (row: RawRow) => Value {
  const { facts, context } = reader;
  const { values } = facts;
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  if (type === undefined) return (row) => values.read(text(row));
  const dates = spec.format ? createDateReader({ ...facts.dates, format: spec.format }) : values.dates;
  return (row) => {
    const read = readTyped(text(row), type, values, dates);
    if (isUnreadable(read))
      throw context.refuse(read.problem, { line: row.line, cell: column?.cell, hint: read.hint });
    return read;
  };
}

/** In a column of numbers, what would be one only under other marks is not passed on as text, nor guessed. */
function refuseSuspect(plan: PlannedColumn, row: RawRow, { refuse }: Context): never {
  const { problem, hint } = doubtfulNumber(plan.text(row));
  const name = plan.given ?? plan.column?.name;
  throw refuse(`${problem}, in the numeric column ${JSON.stringify(name)}`, {
    line: row.line,
    cell: plan.column?.cell,
    hint,
  });
}

/** The unit that all numbers of a column carry themselves: `12.4 mg`, `3.1 mg`. */
function commonUnit(values: readonly Value[]): string | undefined {
  const numbers = values.filter(({ value }) => typeof value === 'number');
  const unit = numbers[0]?.unit;
  return unit !== undefined && numbers.every((value) => value.unit === unit) ? unit : undefined;
}
