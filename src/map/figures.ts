import { type Column, medianOf, type Table, type Value } from '../model.js';
import { isCut } from './rows.js';
import { countOf } from './wording.js';

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

const counted = (n: number): Value => ({ value: n, text: countOf(n) });

/** A number that stands nowhere in the file, with the decimal mark of those that do. */
function writeLike(neighbours: readonly Value[], number: number, digits: number): Value {
  const text = String(Number(number.toPrecision(digits)));
  const hasComma = neighbours.some(
    ({ value, text }) => text.includes(',') && Number(text.replace(',', '.')) === value,
  );
  return { value: number, text: hasComma ? text.replace('.', ',') : text };
}
