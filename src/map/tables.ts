import { type Column, medianOf, NO_VALUE, type Table, type Value } from '../model.js';
import { formatCount, headingOf, plural, singleLine } from '../text.js';

/** A table or a selection of its rows; `count` is the number of rows in either case. */
export type TableRows = Pick<Table, 'columns' | 'rows' | 'count'>;

/** Whether the file has more rows than were kept in memory. */
export const isPartial = ({ rows, count }: Pick<Table, 'rows' | 'count'>): boolean => rows.length < count;

/** Where readers find the rows that a shortened table leaves out. */
export type RowsLocation = 'comments' | 'file';

/** The value as written, followed by its unit unless that was written with it. */
export const withUnit = ({ text, unit }: Pick<Value, 'text' | 'unit'>): string => followedBy(text, unit);

const followedBy = (text: string, unit: string | undefined): string =>
  unit && text !== '' && !text.replace(/[\])]$/, '').endsWith(unit) ? `${text} ${unit}` : text;

const DIGIT = /\d/;

/** The cell as written, followed by the unit of its column if it contains a number and no unit of its own. */
export const cellWithUnit = (cell: Value, column: Column): string => {
  if (cell.unit !== undefined || column.unit === undefined) return withUnit(cell);
  return typeof cell.value === 'number' || DIGIT.test(cell.text) ? followedBy(cell.text, column.unit) : cell.text;
};

/**
 * Without columns that are empty in all rows, and without those that only repeat others: the texts of the column before
 * it where that has no values (`OVRFLW`), or a day and a time of day in one cell.
 */
export function withoutIdleColumns<T extends TableRows>(table: T): T {
  if (isPartial(table)) return table;
  const { columns, rows } = table;
  const textAt = (row: readonly Value[], at: number): string => row[at]?.text ?? '';
  const isIdle = ({ name }: Column, at: number): boolean => {
    const isRepeated = at > 0 && name === `${columns[at - 1]?.name} text`;
    return (
      rows.every((row) => textAt(row, at) === '' || (isRepeated && textAt(row, at) === textAt(row, at - 1))) ||
      isJoinOfOthers(at)
    );
  };
  const isJoinOfOthers = (at: number): boolean => {
    const [first = []] = rows;
    const text = textAt(first, at);
    if (!text.includes(' ')) return false;
    const day = columns.findIndex(
      (_, other) => textAt(first, other) !== '' && text.startsWith(`${textAt(first, other)} `),
    );
    if (day < 0) return false;
    const time = columns.findIndex((_, other) => text === `${textAt(first, day)} ${textAt(first, other)}`);
    return time >= 0 && rows.every((row) => textAt(row, at) === `${textAt(row, day)} ${textAt(row, time)}`);
  };
  const kept = columns.flatMap((column, at) => (isIdle(column, at) ? [] : [at]));
  if (kept.length === columns.length || kept.length === 0) return table;
  const pick = <Item>(items: readonly Item[]): Item[] => kept.flatMap((at) => items[at] ?? []);
  return { ...table, columns: pick(columns), rows: rows.map((row) => kept.map((at) => row[at] ?? NO_VALUE)) };
}

/** `name: value unit`. */
export const factLine = (name: string, value: Value): string => singleLine(`${name}: ${withUnit(value)}`);

/** Summaries below a shortened table list at most this many columns. */
export const MAX_SUMMARISED_COLUMNS = 100;

interface ShortenedTable {
  /** How many rows to show. */
  readonly shown: number;
  /** If rows are left out: how many there are and where they are, and a summary of all of them. */
  readonly rest?: { readonly note: string; readonly summary: TableRows };
}

/** A shortened table always says how many rows it leaves out. */
export function shortenTable(table: TableRows, maxRows: number, allRowsIn: RowsLocation): ShortenedTable {
  const { rows, count } = table;
  const shown = Math.min(rows.length, maxRows);
  if (shown === count) return { shown };
  const summary = summariseColumns(table, 'numeric columns');
  const first = summary.rows.slice(0, MAX_SUMMARISED_COLUMNS);
  const notes = [
    `${shown > 0 ? `First ${formatCount(shown)} of ` : ''}${plural(count, 'row')}; all are in the ${allRowsIn}.`,
  ];
  if (first.length < summary.count) {
    const columns = `the first ${first.length} of ${formatCount(summary.count)} numeric columns`;
    notes.push(`Summary of all rows, for ${columns}:`);
  } else if (first.length > 0) notes.push('Summary of all rows:');
  const rest = { note: notes.join(' '), summary: { ...summary, rows: first, count: first.length } };
  return { shown, rest };
}

const SUMMARY_COLUMNS: readonly Column[] = ['column', 'unit', 'n', 'min', 'median', 'max'].map((name) => ({ name }));

/** One row per column: count, minimum, median and maximum. Minimum and maximum are as written in the file. */
export function summariseColumns(table: TableRows, which: 'all columns' | 'numeric columns'): TableRows {
  const rows = table.columns.flatMap((column, i) => {
    const { name, unit = '' } = column;
    const { n, min, median, max } = isPartial(table) ? figuresOfSummary(column) : computeFigures(table.rows, i);
    if (min === NO_VALUE && which === 'numeric columns') return [];
    return [[{ value: name, text: name }, { value: unit, text: unit }, n, min, median, max]];
  });
  return { columns: SUMMARY_COLUMNS, rows, count: rows.length };
}

interface Figures {
  /** How many numbers; in a column without numbers, how many non-empty cells, if known. */
  readonly n: Value;
  readonly min: Value;
  readonly median: Value;
  readonly max: Value;
}

const noNumbers = (n: Value): Figures => ({ n, min: NO_VALUE, median: NO_VALUE, max: NO_VALUE });

/** From the summary that parsing made of all rows. It covers numbers only. */
function figuresOfSummary({ summary }: Column): Figures {
  if (!summary) return noNumbers(NO_VALUE);
  const { n, min, median, isMedianExact, max } = summary;
  const written = writeLike([min, max], median, isMedianExact ? 12 : 6);
  const shown = isMedianExact ? written : { ...written, text: `≈ ${written.text}` };
  return { n: countValue(n), min, median: shown, max };
}

function computeFigures(rows: TableRows['rows'], at: number): Figures {
  const numbers: number[] = [];
  let filled = 0;
  let min = NO_VALUE;
  let max = NO_VALUE;
  for (const row of rows) {
    const cell = row[at];
    const value = cell?.value;
    if (value !== null && value !== undefined && value !== '') filled++;
    if (typeof value !== 'number' || !cell || !Number.isFinite(value)) continue;
    if (numbers.length === 0 || value < Number(min.value)) min = cell;
    if (numbers.length === 0 || value > Number(max.value)) max = cell;
    numbers.push(value);
  }
  if (numbers.length === 0) return noNumbers(countValue(filled));
  const median = medianOf(new Float64Array(numbers).sort());
  const written = rows.find((row) => row[at]?.value === median)?.[at];
  return { n: countValue(numbers.length), min, median: written ?? writeLike([min, max], median, 12), max };
}

const countValue = (n: number): Value => ({ value: n, text: formatCount(n) });

/** A calculated number, written with the decimal mark of the file's own numbers. */
function writeLike(neighbours: readonly Value[], number: number, digits: number): Value {
  const text = String(Number(number.toPrecision(digits)));
  const hasComma = neighbours.some(({ value, text }) => text.includes(',') && Number(text.replace(',', '.')) === value);
  return { value: number, text: hasComma ? text.replace('.', ',') : text };
}

/** A template asked for a row that the file has but that was not kept in memory. */
export class RowNotKept extends Error {
  readonly table: Table;
  /** From 1. */
  readonly row: number;

  constructor(table: Table, row: number) {
    super(`row ${row} of ${table.name} was not kept`);
    this.table = table;
    this.row = row;
  }
}

/**
 * The rows of a partial table: an array with the length of the whole table that creates each row on first access.
 * Access to a row that was not kept throws, because the sum of only the first rows would be a wrong sum.
 */
export function partialRows<Row extends object>(
  table: Table,
  toRow: (cells: Table['rows'][number]) => Row,
): readonly Row[] {
  const made: Row[] = [];
  return lazyArray(0, table.count, (index) => {
    const cells = table.rows[index];
    if (!cells) throw new RowNotKept(table, index + 1);
    made[index] ??= toRow(cells);
    return made[index];
  });
}

/** All rows of a table, made together when the first of them is used: `readings.size` needs none of them. */
export function lazyRows<Row extends object>(count: number, make: () => readonly Row[]): readonly Row[] {
  const rows: Row[] = [];
  const rowsFor = (key: string | symbol): Row[] => {
    const isUsed = key in Array.prototype || toIndex(key) < count;
    if (isUsed && rows.length < count) for (const row of make()) rows.push(row);
    return rows;
  };
  return new Proxy(rows, {
    get(_, key) {
      if (key === 'length') return count;
      const value: unknown = Reflect.get(rowsFor(key), key);
      // On a Proxy, the methods of an array are slow.
      return typeof value === 'function' ? value.bind(rows) : value;
    },
    has: (_, key) => Reflect.has(rowsFor(key), key),
    getOwnPropertyDescriptor: (_, key) => Reflect.getOwnPropertyDescriptor(rowsFor(key), key),
    ownKeys: () => Reflect.ownKeys(rowsFor('length')),
  });
}

/** A Proxy of an array, because Liquid treats nothing else as one. */
function lazyArray<Item extends object>(from: number, to: number, itemAt: (index: number) => Item): readonly Item[] {
  const length = Math.max(0, to - from);
  const itemOf = (key: string | symbol): Item | undefined =>
    toIndex(key) < length ? itemAt(from + toIndex(key)) : undefined;
  // Liquid applies `offset` before `limit`, each as a slice: the first slice must not read rows the second leaves out.
  const slice = (begin = 0, end = length): readonly Item[] =>
    lazyArray(from + clampIndex(begin, length), from + clampIndex(end, length), itemAt);
  return new Proxy<Item[]>([], {
    get(target, key) {
      if (key === 'length') return length;
      return key === 'slice' ? slice : (itemOf(key) ?? Reflect.get(target, key));
    },
    has: (target, key) => toIndex(key) < length || Reflect.has(target, key),
    getOwnPropertyDescriptor(target, key) {
      const value = itemOf(key);
      return value === undefined
        ? Reflect.getOwnPropertyDescriptor(target, key)
        : { value, writable: false, enumerable: true, configurable: true };
    },
  });
}

/** NaN if the key is not an array index. */
const toIndex = (key: string | symbol): number =>
  typeof key === 'string' && /^\d+$/.test(key) ? Number(key) : Number.NaN;

/** As Array.prototype.slice interprets its arguments. */
function clampIndex(at: number, length: number): number {
  const index = Math.trunc(Number(at)) || 0;
  return Math.min(Math.max(index < 0 ? length + index : index, 0), length);
}

/** A longer cell overflows its column instead of widening every row. */
const MAX_WIDTH = 32;

/** A table in plain text: one line per row, aligned columns, numbers to the right. */
export function alignTable(columns: readonly Column[], rows: readonly (readonly Value[])[]) {
  const headings = columns.map((column) => singleLine(headingOf(column)));
  const widths = headings.map((heading) => Math.min(heading.length, MAX_WIDTH));
  const numeric = columns.map(() => false);
  for (const cells of rows) {
    for (let i = 0; i < widths.length; i++) {
      const cell = cells[i];
      if (!cell) continue;
      if (typeof cell.value === 'number') numeric[i] = true;
      const width = Math.min(cell.text.length, MAX_WIDTH);
      if (width > (widths[i] ?? 0)) widths[i] = width;
    }
  }
  const pad = (text: string, i: number): string =>
    numeric[i] ? text.padStart(widths[i] ?? 0) : text.padEnd(widths[i] ?? 0);
  return {
    /** The headings and the rule below them. */
    head: `${headings.map(pad).join(' | ').trimEnd()}\n${widths.map((width) => '-'.repeat(width)).join('-|-')}`,
    line(cells: readonly Value[]): string {
      let line = '';
      for (let i = 0; i < cells.length; i++) line += (i > 0 ? ' | ' : '') + pad(singleLine(cells[i]?.text ?? ''), i);
      // A blank line would look like the end of the table.
      return line.trimEnd() || '|';
    },
  };
}
