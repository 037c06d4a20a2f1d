import type { ColumnSummary, Value } from '../../model.js';
import type { Line } from '../lines.js';
import type { Refuse } from '../refuse.js';
import { createDateReader, type DateOptions } from '../values/date.js';
import { doubtfulNumber, isUnreadable, readTyped } from '../values/typed.js';
import type { ValueReader } from '../values/value.js';
import type { PlannedColumn } from './columns.js';
import { createSummary } from './summary.js';

/** Reads the cells of one column, and from them what the column is. */
export interface ColumnCollector {
  readonly plan: PlannedColumn;
  /** `unit`: what the row itself says of it. Cells of rows that are not kept only go into the summary. */
  add(row: number, text: string, line: Line | undefined, isKept: boolean, unit?: string): void;
  /** `isCut`: not all rows of the table are kept, so what there is has to be summed up. */
  finish(isCut: boolean): CollectedColumn;
}

export interface CollectedColumn {
  readonly plan: PlannedColumn;
  /** By row; a row that had no such cell has a hole. */
  readonly values: readonly Value[];
  readonly isEmpty: boolean;
  /** Undefined where all cells are empty and nothing can be said. */
  readonly isNumeric: boolean | undefined;
  /** Whether some cells have a text but no value. */
  readonly hasTexts: boolean;
  /** The unit that all numbers carry themselves: `12.4 mg`, `3.1 mg`. */
  readonly commonUnit: string | undefined;
  readonly summary: ColumnSummary | undefined;
}

export interface CollectDeps {
  readonly values: ValueReader;
  readonly dates: DateOptions;
  readonly refuse: Refuse;
  /** How many numbers a summary may keep. */
  readonly sampleSize: number;
}

export function createCollector(plan: PlannedColumn, deps: CollectDeps): ColumnCollector {
  const read = cellReader(plan, deps);
  const { isSuspect } = deps.values.numbers;
  const isByLooks = plan.spec.type === undefined;
  const values: Value[] = [];
  let summary: ReturnType<typeof createSummary> | undefined;
  let [numbers, others, isEmpty, hasTexts] = [0, 0, true, false];
  let suspect: { text: string; line: Line | undefined } | undefined;
  let unit: string | undefined;

  function note(value: Value, line: Line | undefined): void {
    if (typeof value.value === 'number') {
      if (numbers++ === 0) unit = value.unit;
      else if (unit !== value.unit) unit = undefined;
      return;
    }
    if (value.text === '') return;
    if (value.value === null) hasTexts = true;
    else if (isByLooks && value.value === value.text && isSuspect(value.text)) {
      numbers++;
      unit = undefined;
      suspect ??= { text: value.text, line };
    } else others++;
  }

  return {
    plan,
    add(row, text, line, isKept, own) {
      const bare = read(text, line);
      const value = own && typeof bare.value === 'number' ? { ...bare, unit: own } : bare;
      if (value.text !== '') isEmpty = false;
      note(value, line);
      if (isKept) {
        values[row] = value;
        return;
      }
      summary ??= createSummary(values, deps.sampleSize);
      summary.add(value);
    },
    finish(isCut) {
      const isNumeric = numbers + others === 0 ? undefined : numbers >= others;
      if (isNumeric && suspect) throw refuseSuspect(plan, suspect, deps.refuse);
      if (isCut) summary ??= createSummary(values, deps.sampleSize);
      return {
        ...{ plan, values, isEmpty, isNumeric, hasTexts },
        commonUnit: unit,
        summary: isNumeric ? summary?.finish() : undefined,
      };
    },
  };
}

/** One cell as the mapping types it, or by its looks. */
function cellReader(
  { spec, column }: PlannedColumn,
  { values, dates, refuse }: CollectDeps,
): (text: string, line: Line | undefined) => Value {
  const type = spec.type ?? (spec.format ? 'date' : undefined);
  if (type === undefined) return values.read;
  const reader = spec.format ? createDateReader({ ...dates, format: spec.format }) : values.dates;
  return (text, line) => {
    const read = readTyped(text, type, values, reader);
    if (isUnreadable(read)) throw refuse(read.problem, { line, cell: column?.cell, hint: read.hint });
    return read;
  };
}

/** In a column of numbers, what would be one only under other marks is not passed on as text, nor guessed. */
function refuseSuspect(
  { given, column }: PlannedColumn,
  { text, line }: { text: string; line: Line | undefined },
  refuse: Refuse,
): Error {
  const { problem, hint } = doubtfulNumber(text);
  return refuse(`${problem}, in the numeric column ${JSON.stringify(given ?? column?.name)}`, {
    line,
    cell: column?.cell,
    hint,
  });
}
