import type { TableOptions } from '../../config/vocabulary.js';
import type { Column, Table, Value } from '../../model.js';
import type { Facts } from '../read/facts.js';
import type { Refuse } from '../refuse.js';
import { EMPTY } from '../values/value.js';
import type { CollectedColumn } from './collect.js';
import { splitUnit } from './columns.js';
import type { Emitter } from './emit.js';
import { createUniqueNames } from './names.js';
import { createSummary } from './summary.js';

interface Assembled extends Column {
  readonly value: (row: number) => Value;
}

/** Puts the columns together: their names, their units, and beside each the texts that are no values. */
export function assemble(
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
