import { type Column, medianOf, type Table, type Value } from '../model.js';
import { formatCount, plural, singleLine } from '../text.js';

/** A table, or some rows of one: then `count` is how many these are. */
export type TableRows = Pick<Table, 'columns' | 'rows' | 'count'>;

const HEADINGS: readonly Column[] = ['column', 'unit', 'n', 'min', 'median', 'max'].map((name) => ({ name }));
const NOTHING: Value = { value: null, text: '' };

/** What each column of a table comes to, as a table. Least and greatest are as the file writes them. */
export function figuresOf(table: TableRows, which: 'all columns' | 'numeric columns'): TableRows {
  const rows = table.columns.flatMap((column, i) => {
    const figures = isCut(table) ? givenFigures(column) : countFigures(table.rows, i);
    if (figures.min === NOTHING && which === 'numeric columns') return [];
    const { name, unit = '' } = column;
    const { n, min, median, max } = figures;
    return [[{ value: name, text: name }, { value: unit, text: unit }, n, min, median, max]];
  });
  return { columns: HEADINGS, rows, count: rows.length };
}

/** How many, least, middle and greatest. Of a column without numbers: how many texts, where that is known. */
interface Figures {
  readonly n: Value;
  readonly min: Value;
  readonly median: Value;
  readonly max: Value;
}

const withoutNumbers = (n: Value): Figures => ({ n, min: NOTHING, median: NOTHING, max: NOTHING });

/** Whoever read all rows has counted. How many texts there are, nobody has. */
function givenFigures({ summary }: Column): Figures {
  if (!summary) return withoutNumbers(NOTHING);
  const { n, min, median, isMedianExact, max } = summary;
  const written = writeLike([min, max], median, isMedianExact ? 12 : 6);
  return {
    n: counted(n),
    min,
    median: isMedianExact ? written : { ...written, text: `≈ ${written.text}` },
    max,
  };
}

function countFigures(rows: TableRows['rows'], at: number): Figures {
  const numbers = new Float64Array(rows.length);
  let n = 0;
  let filled = 0;
  for (const row of rows) {
    const value = row[at]?.value;
    if (value !== null && value !== undefined && value !== '') filled++;
    if (typeof value === 'number' && Number.isFinite(value)) numbers[n++] = value;
  }
  if (n === 0) return withoutNumbers(counted(filled));
  const sorted = numbers.subarray(0, n).sort();
  const written = (number: number): Value | undefined => rows.find((row) => row[at]?.value === number)?.[at];
  const [min = NOTHING, max = NOTHING] = [written(sorted[0] ?? 0), written(sorted[n - 1] ?? 0)];
  const median = medianOf(sorted);
  return { n: counted(n), min, median: written(median) ?? writeLike([min, max], median, 12), max };
}

const counted = (n: number): Value => ({ value: n, text: formatCount(n) });

/** A number that stands nowhere in the file, with the decimal mark of those that do. */
function writeLike(neighbours: readonly Value[], number: number, digits: number): Value {
  const text = String(Number(number.toPrecision(digits)));
  const hasComma = neighbours.some(
    ({ value, text }) => text.includes(',') && Number(text.replace(',', '.')) === value,
  );
  return { value: number, text: hasComma ? text.replace('.', ',') : text };
}

/** A template asked for a row that the file has and that was not kept. */
export class RowNotKept extends Error {
  readonly table: Table;
  /** Counted from 1. */
  readonly row: number;

  constructor(table: Table, row: number) {
    super(`row ${row} of ${table.name} was not kept`);
    this.table = table;
    this.row = row;
  }
}

/** Whether the file has more rows than are kept. */
export const isCut = ({ rows, count }: Pick<Table, 'rows' | 'count'>): boolean => rows.length < count;

/**
 * The rows of a cut table, as an array as long as the file has rows, that makes each when it is first asked for.
 * Who asks for one that was not kept is refused: the sum of the first rows is a wrong sum.
 */
export function cutRows<Row extends object>(
  table: Table,
  see: (cells: Table['rows'][number]) => Row,
): readonly Row[] {
  const seen: Row[] = [];
  return lazyArray(0, table.count, (index) => {
    const cells = table.rows[index];
    if (!cells) throw new RowNotKept(table, index + 1);
    seen[index] ??= see(cells);
    return seen[index];
  });
}

/** The items from one index to before another. An array to whoever asks, since nothing but an array is one to Liquid. */
function lazyArray<Item extends object>(
  from: number,
  to: number,
  itemAt: (index: number) => Item,
): readonly Item[] {
  const length = Math.max(0, to - from);
  const itemOf = (key: string | symbol): Item | undefined =>
    indexIn(key) < length ? itemAt(from + indexIn(key)) : undefined;
  // Liquid slices by `offset` first and by `limit` then: the first must not ask for what the second leaves out.
  const slice = (begin = 0, end = length): readonly Item[] =>
    lazyArray(from + inside(begin, length), from + inside(end, length), itemAt);
  return new Proxy<Item[]>([], {
    get(target, key) {
      if (key === 'length') return length;
      return key === 'slice' ? slice : (itemOf(key) ?? Reflect.get(target, key));
    },
    has: (target, key) => indexIn(key) < length || Reflect.has(target, key),
    getOwnPropertyDescriptor(target, key) {
      const value = itemOf(key);
      return value === undefined
        ? Reflect.getOwnPropertyDescriptor(target, key)
        : { value, writable: false, enumerable: true, configurable: true };
    },
  });
}

/** Not a number where the key is no index. */
const indexIn = (key: string | symbol): number =>
  typeof key === 'string' && /^\d+$/.test(key) ? Number(key) : Number.NaN;

/** As `slice` reads its arguments: from the end where negative, and never outside. */
function inside(at: number, length: number): number {
  const index = Math.trunc(Number(at)) || 0;
  return Math.min(Math.max(index < 0 ? length + index : index, 0), length);
}

/** More columns than that are not summed up below a table. */
const MAX_SUMMED_UP = 100;

interface CutTable {
  /** How many of its rows are shown. */
  readonly shown: number;
  /** What is said below them where that is not all: how many there are, where they are, and what they come to. */
  readonly rest?: { readonly note: string; readonly figures: TableRows };
}

/** Never some of the rows without a word about the others. */
export function cutTable(table: TableRows, maxRows: number, whereAll: WhereAll): CutTable {
  const { rows, count } = table;
  const shown = Math.min(rows.length, maxRows);
  if (shown === count) return { shown };
  const figures = figuresOf(table, 'numeric columns');
  const first = figures.rows.slice(0, MAX_SUMMED_UP);
  const notes = [
    `${shown > 0 ? `First ${formatCount(shown)} of ` : ''}${plural(count, 'row')}; all are in the ${whereAll}.`,
  ];
  if (first.length < figures.count) {
    notes.push(
      `Summary of all rows, for the first ${first.length} of ${formatCount(figures.count)} numeric columns:`,
    );
  } else if (first.length > 0) notes.push('Summary of all rows:');
  return {
    shown,
    rest: { note: notes.join(' '), figures: { ...figures, rows: first, count: first.length } },
  };
}

/** A cell longer than this stands out of its column, rather than widening every row. */
const MAX_WIDTH = 32;

interface AlignedTable {
  /** The headings, and a rule below them. */
  readonly head: string;
  line(cells: readonly Value[]): string;
}

/** A table for people who read plain text: a line a row, columns that stand below each other, numbers to the right. */
export function alignTable(columns: readonly Column[], rows: readonly (readonly Value[])[]): AlignedTable {
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
  const put = (text: string, i: number): string =>
    numeric[i] ? text.padStart(widths[i] ?? 0) : text.padEnd(widths[i] ?? 0);
  return {
    head: `${headings.map(put).join(' | ').trimEnd()}\n${widths.map((width) => '-'.repeat(width)).join('-|-')}`,
    line(cells) {
      let line = '';
      for (let i = 0; i < cells.length; i++)
        line += (i > 0 ? ' | ' : '') + put(singleLine(cells[i]?.text ?? ''), i);
      // A blank line would end the table for who reads it.
      return line.trimEnd() || '|';
    },
  };
}

/** `name: value unit`, a line each. */
export const listLine = (name: string, value: Value): string => singleLine(`${name}: ${withUnit(value)}`);

/** How body and comments put things, so that both put them alike. */

export const headingOf = ({ name, unit }: Column): string => (unit ? `${name} (${unit})` : name);

/** As written; the unit too, where it was not written with the number. */
export const withUnit = ({ text, unit }: Value): string =>
  unit && text !== '' && !text.endsWith(unit) ? `${text} ${unit}` : text;

/** Where a reader finds the rows that a table leaves out. */
export type WhereAll = 'comments' | 'file';
