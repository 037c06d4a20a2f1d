import type { Table, Value } from '../../model.js';
import type { Line } from '../lines.js';
import type { Pace } from '../pace.js';
import { EMPTY, type ValueReader } from '../values/value.js';
import { findColumn, type PlannedColumn, planColumns } from './columns.js';
import type { Context } from './context.js';
import { type Facts, requireFact } from './facts.js';
import { compileConditions } from './filter.js';
import type { Claims, LocatedTable } from './locate.js';
import { createUniqueNames } from './names.js';
import { fillDown, gatherRows, type RawRow, type RawTable } from './rows.js';
import { type ColumnReader, type ReadColumn, readColumn } from './values.js';

/** Reads a table whose lines were found: rows, then fill, columns and where, as the mapping orders them. */
export async function readTable(
  located: LocatedTable,
  facts: Facts,
  claims: Claims,
  context: Context,
): Promise<Table> {
  const { options } = located;
  const reader: ColumnReader = { options, facts, context };
  const raw = gatherRows(located, facts.values.numbers, context);
  const header = located.blocks[0]?.header[0];
  requireCount(located, raw, reader);

  const filled = (options.fill ?? []).map(
    (name) => findColumn(name, raw.columns, options, header, context).cell,
  );
  const rows = filled.length > 0 ? fillDown(raw.rows, filled) : raw.rows;
  const planned = planColumns(raw.columns, rows, options, header, context);
  const kept = keepRows(rows, planned, raw, header, reader);

  const columns: ReadColumn[] = [];
  for (const plan of planned) columns.push(await readColumn(plan, kept, reader));
  refuseMoreRows(located, columns, kept, claims, reader);
  return assemble(located.name, columns, kept.length, context.pace);
}

function requireCount(
  { options, name }: LocatedTable,
  { rows }: RawTable,
  { facts, context }: ColumnReader,
): void {
  const { count } = options;
  if (count === undefined) return;
  const fact = typeof count === 'number' ? undefined : requireFact(count, facts, context);
  const wanted = fact ? fact.value.value : count;
  if (wanted === rows.length) return;
  throw context.refuse(`table ${name} has ${rows.length} rows, and there must be ${fact?.text ?? count}`, {
    line: rows.at(-1)?.line ?? fact?.line,
    hint: 'the file may be cut short; else correct `count`, `until` or `skip` in the mapping',
  });
}

/** The rows that `where` keeps, by your names for columns or the file's. */
function keepRows(
  rows: readonly RawRow[],
  planned: readonly PlannedColumn[],
  raw: RawTable,
  header: Line | undefined,
  { options, facts, context }: ColumnReader,
): readonly RawRow[] {
  const tests = Object.entries(options.where ?? {}).map(([name, wanted]) => {
    const plan = planned.find(({ given }) => given === name);
    const cell = plan ? 0 : findColumn(name, raw.columns, options, header, context).cell;
    const text = plan?.text ?? ((row: RawRow) => row.cells[cell] ?? '');
    const test = compileConditions(wanted, facts.values);
    return (row: RawRow) => test(text(row));
  });
  return tests.length === 0 ? rows : rows.filter((row) => tests.every((test) => test(row)));
}

/** A blank line ended the table, and what follows looks like more of it: then it was not the end. */
function refuseMoreRows(
  { afterBlank, name }: LocatedTable,
  columns: readonly ReadColumn[],
  rows: readonly RawRow[],
  claims: Claims,
  { facts, context }: ColumnReader,
): void {
  if (!afterBlank || claims[afterBlank.index] === 1) return;
  if (!fits(afterBlank.line, columns, rows, facts.values)) return;
  throw context.refuse(`this line fits the columns of table ${name}, which a blank line ended`, {
    line: afterBlank.line,
    hint: 'if the table goes on after blank lines: `until: eof`; else say where it ends: `until: "…"`',
  });
}

function fits(
  { cells }: Line,
  columns: readonly ReadColumn[],
  rows: readonly RawRow[],
  values: ValueReader,
): boolean {
  const isAsLong = rows.length === 0 || rows.some((row) => row.line.cells.length === cells.length);
  if (!isAsLong || cells.length < 2) return false;
  return columns.every(({ plan, isNumeric }) => {
    const text = plan.column ? (cells[plan.column.cell] ?? '') : '';
    if (text === '' || isNumeric === false) return true;
    return values.numbers.isSuspect(text) || typeof (values.read(text).value ?? 0) === 'number';
  });
}

/** Where cells have a text but no value, that text stands in a column beside them. */
async function assemble(
  name: string,
  read: readonly ReadColumn[],
  length: number,
  pace: Pace,
): Promise<Table> {
  const unique = createUniqueNames();
  const columns = read.flatMap((column) => {
    const { values, unit } = column;
    const own = { name: unique(column.name), ...(unit !== undefined && { unit }), values };
    const texts = values.some(isUnvalued)
      ? [{ name: unique(`${own.name} text`), values: values.map(textOf) }]
      : [];
    return [own, ...texts];
  });
  const rows: Value[][] = [];
  for (let n = 0; n < length; n++) {
    rows.push(columns.map(({ values }) => values[n] ?? EMPTY));
    if (n % 512 === 0 && pace.due()) await pace.rest();
  }
  return { name, columns: columns.map(({ values: _, ...column }) => column), rows, count: length };
}

const isUnvalued = ({ value, text }: Value): boolean => value === null && text !== '';

const textOf = (value: Value): Value => (isUnvalued(value) ? { value: value.text, text: value.text } : EMPTY);
