import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { type ColumnSummary, medianOf, type Value } from '../../model.js';
import type { Line } from '../lines.js';
import { isMeasuredIn, isOfKnownUnit } from '../values/quantity.js';
import { isFlag, isHemisphere, isMark, isUnit } from '../values/unit.js';
import { ambiguousNumber, EMPTY, EXPONENT_ONLY, isCodeName, isLongPadded, isUnreadable } from '../values/value.js';
import { type Cells, type PlannedColumn, splitUnit } from './columns.js';
import { type Context, groupNames, namedGroups } from './context.js';

/** The values of one column while its rows are read. */
export type ColumnValues = ReturnType<typeof openColumn>;

/** The rows that are kept. Those before a new column are shorter than the others. */
export type KeptRows = Value[][];

/** One literal, because there can be thousands: objects made by spreading are several times slower here. */
export const openColumn = (
  plan: PlannedColumn,
  context: Context,
  kept: KeptRows,
  at: number,
  sampleSize: number,
  unit?: string,
) => ({
  plan,
  context,
  read: context.values.typed(plan.spec),
  /** Whether `1E5` is not a number. */
  hasCodes: plan.spec.type === undefined && isCodeName(plan.column?.name ?? ''),
  /** Whether `0012` is a number. */
  isReading: plan.spec.type === undefined && isReadingIn(plan.column?.name ?? '', unit),
  kept,
  /** The index of its values in the kept rows. */
  at,
  /** How many numbers the summary keeps. */
  sampleSize,
  summary: undefined as Summary | undefined,
  numbers: 0,
  others: 0,
  isEmpty: true,
  /** Whether cells have a text but no value. */
  hasTexts: false,
  ambiguous: undefined as { readonly text: string; readonly line: Line | undefined } | undefined,
  /** The unit that all numbers have: `12.4 mg`, `3.1 mg`. */
  unit: undefined as string | undefined,
  /** Whether some numbers have no unit, and some have one. */
  hasBare: false,
  hasUnits: false,
  /** Whether some cells are a number with a letter that is not a unit: beside `1 R`, `1 M` is a label too. */
  hasLabels: false,
});

/** `row`: undefined if it is not kept, so that its cells count only in the summary. `unit`: from the row itself. */
export function addCell(
  column: ColumnValues,
  row: Value[] | undefined,
  text: string,
  line: Line | undefined,
  unit?: string,
): void {
  const read = column.read(text);
  if (isUnreadable(read)) {
    const cell = column.plan.column?.cell;
    throw column.context.refuse(read.problem, { line, cell, hint: read.hint });
  }
  const own = inColumn(column, read);
  const value = unit && typeof own.value === 'number' ? { ...own, unit } : own;
  if (value.text !== '') column.isEmpty = false;
  countValue(column, value, line);
  if (row) {
    while (row.length < column.at) row.push(EMPTY);
    row[column.at] = value;
  } else summaryOf(column).add(value);
}

/** A text that is a number, or a number that is a text, because of what its column is called. */
function inColumn({ hasCodes, isReading, plan, context }: ColumnValues, read: Value): Value {
  const { value, text } = read;
  if (typeof value === 'number') return hasCodes && EXPONENT_ONLY.test(text) ? { value: text, text } : read;
  if (value !== text || hasCodes || !PADDED.test(text)) return read;
  const isCertain = isReading || (isLongPadded(text) && isNamedReading(plan.column?.name ?? ''));
  const number = isCertain ? context.values.numbers.readPadded(text) : undefined;
  return number === undefined ? read : { value: number, text };
}

const PADDED = /^[+\-−]?0\d/;

/** A time of day can be written as `0915` or `09.15`. */
export const isReadingIn = (name: string, unit: string | undefined): boolean =>
  unit !== undefined && isUnit(unit) && !/^h/i.test(unit) && !isCodeName(name);

const isNamedReading = (name: string): boolean =>
  /^(?:readings?|values?|results?|measured)$/i.test(name) || (isOfKnownUnit(name) && !isMeasuredIn(name, 's'));

function countValue(column: ColumnValues, value: Value, line: Line | undefined): void {
  if (typeof value.value === 'number') {
    if (column.numbers++ === 0) column.unit = value.unit;
    else if (column.unit !== value.unit) column.unit = undefined;
    if (value.unit === undefined) column.hasBare = true;
    else column.hasUnits = true;
    return;
  }
  if (value.text === '') return;
  if (value.value === null) column.hasTexts = true;
  else if (
    column.plan.spec.type === undefined &&
    value.value === value.text &&
    column.context.values.numbers.isAmbiguous(value.text)
  ) {
    column.numbers++;
    column.unit = undefined;
    column.ambiguous ??= { text: value.text, line };
  } else {
    column.others++;
    if (value.text.length < 7 && LABELLED.test(value.text)) column.hasLabels = true;
  }
}

const LABELLED = /^\d{1,4} ?[A-Z]$/;

/**
 * The index of the column's values in a row, or the value of a row if some have letters that are no units: `12.4 H` among
 * numbers without a unit, `1 M` among labels, `48.1 N` of a latitude. The text keeps them. A label is not a number, nor is
 * a latitude without its hemisphere.
 */
export function withoutMarks({ at, hasBare, hasUnits, hasLabels, unit: common }: ColumnValues, name: string) {
  if (!hasUnits || !(hasBare || hasLabels || common === undefined || isMark(common, name))) return at;
  return (row: readonly Value[]): Value => {
    const { value, text, unit, ...others } = row[at] ?? EMPTY;
    if (unit === undefined || !/^[A-Z]$/.test(unit) || !text.endsWith(unit)) return row[at] ?? EMPTY;
    if (isHemisphere(unit, name) || (hasLabels && !isFlag(unit, name))) return { value: text, text };
    return hasBare || isFlag(unit, name) ? { value, text } : { value, text, unit, ...others };
  };
}

/** Undefined if all cells are empty. */
export const isNumeric = ({ numbers, others }: ColumnValues): boolean | undefined =>
  numbers + others === 0 ? undefined : numbers >= others;

/** In a numeric column, a number that is ambiguous is neither guessed nor kept as text. */
export function refuseAmbiguous({ ambiguous, plan: { given, column }, context }: ColumnValues): void {
  if (!ambiguous) return;
  const { problem, hint } = ambiguousNumber(ambiguous.text);
  throw context.refuse(`${problem}, in the numeric column ${JSON.stringify(given ?? column?.name)}`, {
    line: ambiguous.line,
    cell: column?.cell,
    hint,
  });
}

export const summaryOf = (column: ColumnValues): Summary => {
  column.summary ??= createSummary(
    column.kept.map((row) => row[column.at] ?? EMPTY),
    column.sampleSize,
  );
  return column.summary;
};

/** Summarises a column of which not all values are kept. */
export interface Summary {
  add(value: Value): void;
  /** Undefined if there was no number. */
  finish(): ColumnSummary | undefined;
}

/**
 * Minimum and maximum are exact. With more than `sampleSize` numbers, the median is that of a random sample.
 * The sample depends only on the count of numbers, so that a file always yields the same summary.
 */
export function createSummary(earlier: readonly Value[], sampleSize: number): Summary {
  // Grown as needed: there can be thousands of columns with few numbers.
  let sample = new Float64Array(Math.min(16, sampleSize));
  const random = createRandom();
  let n = 0;
  let min: Value | undefined;
  let max: Value | undefined;

  function add(value: Value): void {
    const number = value.value;
    if (typeof number !== 'number') return;
    if (min === undefined || number < Number(min.value)) min = value;
    if (max === undefined || number > Number(max.value)) max = value;
    const index = n < sampleSize ? n : Math.floor(random() * (n + 1));
    if (index >= sample.length && index < sampleSize) sample = grow(sample, sampleSize);
    if (index < sampleSize) sample[index] = number;
    n++;
  }

  earlier.forEach(add);
  return {
    add,
    finish() {
      if (!min || !max) return undefined;
      const median = medianOf(sample.subarray(0, Math.min(n, sampleSize)).sort());
      return { n, min, median, isMedianExact: n <= sampleSize, max };
    },
  };
}

function grow(numbers: Float64Array, maxLength: number): Float64Array<ArrayBuffer> {
  const grown = new Float64Array(Math.min(2 * numbers.length, maxLength));
  grown.set(numbers);
  return grown;
}

/** Good enough for sampling, and the same for every read (linear congruential, Numerical Recipes). */
function createRandom(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Turns columns that are one quantity under many names, `A1`, `A2`, …, into rows. */
type Unpivot = ReturnType<typeof createUnpivot>;

interface PivotedColumn {
  readonly plan: PlannedColumn;
  readonly groups: ReadonlyMap<string, string>;
  /** The name of the column for its cells. */
  readonly value: string;
  readonly unit: string | undefined;
}

export function createUnpivot(
  pattern: string,
  units: TableOptions['units'],
  open: (plan: PlannedColumn) => ColumnValues,
) {
  const names = groupNames([pattern]).filter((name) => name !== 'value');
  return {
    ...{ names, units, open, pivoted: [] as PivotedColumn[] },
    regex: new RegExp(regexSource(pattern) ?? pattern),
    /** The groups of the pattern, which become columns. */
    groups: names.map((name) => open(addedColumn(name, undefined))),
    /** Columns for the cells: `value`, or what a group of that name captures. */
    values: new Map<string, ColumnValues>(),
  };
}

/** Whether the column becomes rows. */
export function claimColumn({ regex, units, pivoted }: Unpivot, plan: PlannedColumn): boolean {
  const name = plan.given ?? plan.column?.name ?? '';
  const split = splitUnit(plan.column?.name ?? '', units, true);
  const match = regex.exec(name) ?? regex.exec(plan.given ?? split.name);
  if (!match || plan.spec.start !== undefined) return false;
  const groups = namedGroups(match);
  const given = typeof plan.spec.unit === 'string' ? plan.spec.unit : undefined;
  const unit = given ?? plan.column?.unit ?? split.unit;
  pivoted.push({ plan, groups, value: groups.get('value') ?? 'value', unit });
  return true;
}

/** The cells of one row of the file, by the row of the record that they go to. */
export function unpivotRow(unpivot: Unpivot, cells: Cells): (readonly [PivotedColumn, string])[][] {
  const rows = new Map<string, [PivotedColumn, string][]>();
  for (const column of unpivot.pivoted) {
    const text = column.plan.text(cells);
    if (text === '') continue;
    const key = JSON.stringify(unpivot.names.map((name) => column.groups.get(name) ?? ''));
    const row = rows.get(key);
    if (row) row.push([column, text]);
    else rows.set(key, [[column, text]]);
  }
  return [...rows.values()];
}

export function addPivoted(
  { names, groups, values, open }: Unpivot,
  pivoted: readonly (readonly [PivotedColumn, string])[],
  row: Value[] | undefined,
  line: Line | undefined,
): void {
  const [first] = pivoted;
  for (const [n, group] of groups.entries()) addCell(group, row, first?.[0].groups.get(names[n] ?? '') ?? '', line);
  for (const [{ value, plan, unit }, text] of pivoted) {
    const column = values.get(value) ?? open(addedColumn(value, plan));
    values.set(value, column);
    addCell(column, row, text, line, unit);
  }
}

/** A column that the file does not have. Its cells carry the units, which may differ between the pivoted columns. */
function addedColumn(given: string, of: PlannedColumn | undefined): PlannedColumn {
  const { unit, ...spec } = of?.spec ?? {};
  return { given, column: undefined, spec: typeof unit === 'object' ? { ...spec, unit } : spec, text: () => '' };
}
