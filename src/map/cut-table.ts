import { figuresOf, type TableRows } from './figures.js';
import { amountOf, countOf, type WhereAll } from './wording.js';

/** More columns than that are not summed up below a table. */
const MAX_SUMMED_UP = 100;

export interface CutTable {
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
    `${shown > 0 ? `First ${countOf(shown)} of ` : ''}${amountOf(count, 'row')}; all are in the ${whereAll}.`,
  ];
  if (first.length < figures.count) {
    notes.push(
      `Summary of all rows, for the first ${first.length} of ${countOf(figures.count)} numeric columns:`,
    );
  } else if (first.length > 0) notes.push('Summary of all rows:');
  return {
    shown,
    rest: { note: notes.join(' '), figures: { ...figures, rows: first, count: first.length } },
  };
}
