import {
  type Column,
  type ColumnSummary,
  type FileRecord,
  medianOf,
  type Table,
  type Unread,
  type Value,
} from '../model.js';

/** So many first rows are kept for templates, and so many in even distances for medians and plots. */
const MAX_FIRST = 100;
const MAX_SAMPLE = 1000;
/** Of lines that were not read. */
const MAX_RANGES = 100;

/** What is kept of all readings of a growing run: its size does not depend on their number. */
export interface Accumulation {
  readonly meta: readonly (readonly [string, Value])[];
  readonly tables: readonly AccumulatedTable[];
  readonly unread: readonly Unread[];
  /** Whether the comments have all of the readings. */
  readonly isWhole: boolean;
  /** The day of its first reading. */
  readonly day: string;
}

interface AccumulatedTable {
  readonly name: string;
  readonly columns: readonly (Pick<Column, 'name' | 'unit'> & { readonly figures?: Figures | undefined })[];
  readonly count: number;
  readonly first: Table['rows'];
  /** One row of so many. */
  readonly stride: number;
  readonly sample: Table['rows'];
}

type Figures = Pick<ColumnSummary, 'n' | 'min' | 'max'>;

/** All readings so far, with those of one more batch. */
export function accumulate(before: Accumulation | undefined, { meta, tables, unread }: FileRecord): Accumulation {
  const known = before?.tables ?? [];
  const names = new Set(known.map(({ name }) => name));
  return {
    meta: before && before.meta.length > 0 ? before.meta : [...meta],
    tables: [
      ...known.map((table) =>
        addRows(
          table,
          tables.find(({ name }) => name === table.name),
        ),
      ),
      ...tables.filter(({ name }) => !names.has(name)).map((table) => addRows(undefined, table)),
    ],
    unread: [...(before?.unread ?? []), ...unread].slice(0, MAX_RANGES),
    isWhole: before?.isWhole ?? true,
    day: before?.day ?? '',
  };
}

function addRows(before: AccumulatedTable | undefined, added: Table | undefined): AccumulatedTable {
  const known: AccumulatedTable = before ?? {
    ...{ name: added?.name ?? '', columns: [], count: 0, first: [], stride: 1, sample: [] },
  };
  if (!added) return known;
  // A changed mapping can name the columns differently.
  const further = added.columns.filter(({ name }) => !known.columns.some((column) => column.name === name));
  const columns: AccumulatedTable['columns'] = [
    ...known.columns,
    ...further.map(({ name, unit }) => ({ name, ...(unit !== undefined && { unit }) })),
  ];
  const places = columns.map(({ name }) => added.columns.findIndex((column) => column.name === name));
  const rows = added.rows.map((row) => places.map((at) => row[at] ?? NO_VALUE));
  return {
    name: known.name,
    columns: columns.map((column, at) => ({ ...column, figures: figuresOf(column.figures, rows, at) })),
    count: known.count + rows.length,
    first: [...known.first, ...rows.slice(0, MAX_FIRST - known.first.length)],
    ...sampleOf(known, rows),
  };
}

const NO_VALUE: Value = { value: null, text: '' };

function figuresOf(before: Figures | undefined, rows: Table['rows'], at: number): Figures | undefined {
  let [n, min, max] = [before?.n ?? 0, before?.min, before?.max];
  for (const row of rows) {
    const cell = row[at];
    if (typeof cell?.value !== 'number' || !Number.isFinite(cell.value)) continue;
    n += 1;
    if (min === undefined || cell.value < Number(min.value)) min = cell;
    if (max === undefined || cell.value > Number(max.value)) max = cell;
  }
  return min && max && { n, min, max };
}

function sampleOf({ sample, stride, count }: AccumulatedTable, rows: Table['rows']) {
  let kept = [...sample];
  let every = stride;
  for (const [n, row] of rows.entries()) {
    if ((count + n) % every === 0) kept.push(row);
    if (kept.length <= MAX_SAMPLE) continue;
    kept = kept.filter((_, index) => index % 2 === 0);
    every *= 2;
  }
  return { sample: kept, stride: every };
}

/** The readings so far, for the body. */
export const toRecord = ({ meta, tables, unread }: Accumulation, dates: FileRecord['dates']): FileRecord => ({
  meta: new Map(meta),
  tables: tables.map(({ name, columns, count, first, sample, stride }) => ({
    ...{ name, count, rows: first },
    columns: columns.map(({ figures, ...column }, at) =>
      figures && count > first.length
        ? { ...column, summary: { ...figures, ...medianIn(sample, at, stride) } }
        : column,
    ),
  })),
  unread,
  ...(dates && { dates }),
});

function medianIn(rows: Table['rows'], at: number, stride: number): Pick<ColumnSummary, 'median' | 'isMedianExact'> {
  const numbers = rows.flatMap((row) => {
    const value = row[at]?.value;
    return typeof value === 'number' && Number.isFinite(value) ? [value] : [];
  });
  return { median: medianOf(Float64Array.from(numbers).sort()), isMedianExact: stride === 1 };
}

/** The readings for the plot. `note`: which of them, if not all. */
export function toPlotted({ meta, tables }: Accumulation): { record: FileRecord; note: string | undefined } {
  const stride = Math.max(1, ...tables.map((table) => table.stride));
  const record = {
    meta: new Map(meta),
    tables: tables.map(({ name, columns, sample }) => ({
      ...{ name, rows: sample, count: sample.length },
      columns: columns.map(({ figures: _, ...column }) => column),
    })),
    unread: [],
  };
  return { record, note: stride === 1 ? undefined : `One of ${stride} readings is shown` };
}
