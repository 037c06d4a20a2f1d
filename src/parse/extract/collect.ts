import { regexSource } from '../../config/grammar.js';
import type { TableOptions } from '../../config/vocabulary.js';
import { type ColumnSummary, medianOf, type Value } from '../../model.js';
import type { Line, Refuse } from '../lines.js';
import { createDateReader, type DateOptions } from '../values/date.js';
import { ambiguousNumber, isUnreadable, readTyped, type ValueReader } from '../values/value.js';
import { type Cells, type PlannedColumn, splitUnit } from './columns.js';
import { groupNames, namedGroups } from './context.js';

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
  const { isAmbiguous: isSuspect } = deps.values.numbers;
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
  const { problem, hint } = ambiguousNumber(text);
  return refuse(`${problem}, in the numeric column ${JSON.stringify(given ?? column?.name)}`, {
    line,
    cell: column?.cell,
    hint,
  });
}

/** Counts the numbers of a column of which not all are kept. */
interface Summary {
  add(value: Value): void;
  /** Undefined where there was no number. */
  finish(): ColumnSummary | undefined;
}

/**
 * Least and greatest are exact. The middle one is that of a fair sample once there are more numbers than
 * `sampleSize`; which ones are in it depends on nothing but their count, so one file always gives one summary.
 */
export function createSummary(earlier: readonly Value[], sampleSize: number): Summary {
  // It grows with the numbers: of ten thousand columns, most may have a few only.
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
    const place = n < sampleSize ? n : Math.floor(random() * (n + 1));
    if (place >= sample.length && place < sampleSize) sample = grown(sample, sampleSize);
    if (place < sampleSize) sample[place] = number;
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

function grown(numbers: Float64Array, most: number): Float64Array<ArrayBuffer> {
  const more = new Float64Array(Math.min(2 * numbers.length, most));
  more.set(numbers);
  return more;
}

/** Even enough for a sample, and the same every time (a linear congruential generator, Numerical Recipes). */
function createRandom(): () => number {
  let state = 1;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

/** Columns that are one quantity under many names, `A1`, `A2`, …, become rows. */
interface Unpivot {
  /** Whether a column is one of those. */
  claims(plan: PlannedColumn): boolean;
  /** For each row that a row of the file becomes: what puts its own cells in. */
  rowsOf(cells: Cells, line: Line | undefined): ((row: number, isKept: boolean) => void)[];
  columns(): ColumnCollector[];
  /** How many columns there are by now. */
  width(): number;
}

interface Pivoted {
  readonly plan: PlannedColumn;
  readonly groups: ReadonlyMap<string, string>;
  /** The name of the column that its cells go to. */
  readonly value: string;
  readonly unit: string | undefined;
}

/** The groups of the pattern become columns; the cell goes to `value`, or to what a group of that name says. */
export function createUnpivot(
  pattern: string,
  units: TableOptions['units'],
  collect: (plan: PlannedColumn) => ColumnCollector,
): Unpivot {
  const regex = new RegExp(regexSource(pattern) ?? pattern);
  const names = groupNames([pattern]).filter((name) => name !== 'value');
  const groups = names.map((name) => collect(madeUp(name, undefined)));
  const values = new Map<string, ColumnCollector>();
  const pivoted: Pivoted[] = [];

  function valueColumn({ value, plan }: Pivoted): ColumnCollector {
    const known = values.get(value) ?? collect(madeUp(value, plan));
    values.set(value, known);
    return known;
  }

  return {
    claims(plan) {
      const name = plan.given ?? plan.column?.name ?? '';
      const split = splitUnit(plan.column?.name ?? '', units, true);
      const match = regex.exec(name) ?? regex.exec(plan.given ?? split.name);
      if (!match || plan.spec.start !== undefined) return false;
      const found = namedGroups(match);
      const value = found.get('value') ?? 'value';
      const given = typeof plan.spec.unit === 'string' ? plan.spec.unit : undefined;
      pivoted.push({ plan, groups: found, value, unit: given ?? plan.column?.unit ?? split.unit });
      return true;
    },
    rowsOf(cells, line) {
      const rows = new Map<string, { first: Pivoted; cells: [Pivoted, string][] }>();
      for (const column of pivoted) {
        const text = column.plan.text(cells);
        if (text === '') continue;
        const key = JSON.stringify(names.map((name) => column.groups.get(name) ?? ''));
        const row = rows.get(key) ?? { first: column, cells: [] };
        row.cells.push([column, text]);
        rows.set(key, row);
      }
      return [...rows.values()].map((made) => (row, isKept) => {
        for (const [n, group] of groups.entries())
          group.add(row, made.first.groups.get(names[n] ?? '') ?? '', line, isKept);
        for (const [column, text] of made.cells)
          valueColumn(column).add(row, text, line, isKept, column.unit);
      });
    },
    columns: () => [...groups, ...values.values()],
    width: () => groups.length + values.size,
  };
}

/** A column that the file does not have. Its unit is in its cells: the columns that it is made of may differ in it. */
function madeUp(name: string, of: PlannedColumn | undefined): PlannedColumn {
  const { unit, ...spec } = of?.spec ?? {};
  return {
    given: name,
    column: undefined,
    spec: typeof unit === 'object' ? { ...spec, unit } : spec,
    text: () => '',
  };
}
