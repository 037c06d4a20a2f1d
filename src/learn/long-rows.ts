import { isBlank, type Line } from '../parse/lines.js';
import type { Body, Header, Range } from './header.js';
import { isMeasure, kindsOf } from './kinds.js';

/** Rows that have more or fewer cells than their header names. */

/** One of its values may be in the wrong column. */
export interface LongRow {
  readonly at: number;
  readonly line: Line;
  /** How many columns the header names. */
  readonly columns: number;
  readonly body: Body;
}

/** Searches from the header to the line directly below the rows. */
export function findLongRow(lines: readonly Line[], body: Body, header: Header, region: Range): LongRow | undefined {
  const columns = Math.max(...header.names.map(widthOf));
  if (columns < 2) return undefined;
  for (let at = header.from + header.rows; at <= body.to && at < region.to; at++) {
    const line = lines[at];
    if (!line || widthOf(line) <= columns || isBlank(line)) continue;
    if (kindsOf(line).some((kind, n) => n < columns && isMeasure(kind) && kind === body.kinds[n]))
      return { at, line, columns, body };
  }
  return findShiftedRow(lines, body, columns);
}

/** A row without one of its cells, other than the last: its last number is like those of the next column. */
function findShiftedRow(lines: readonly Line[], body: Body, columns: number): LongRow | undefined {
  const isShort = ({ cells }: Line) => cells.length > 1 && cells.length < columns;
  const at = lines.slice(body.from, body.to).findIndex((line) => isShort(line) && !isBlank(line));
  if (at < 0) return undefined;
  const whole = lines.slice(body.from, Math.min(body.to, body.from + MAX_WHOLE_ROWS)).filter((row) => !isShort(row));
  const ranges = new Map<number, NumberRange | undefined>();
  const rangeOf = (column: number) => {
    if (!ranges.has(column)) ranges.set(column, numberRange(whole, column));
    return ranges.get(column);
  };
  for (let index = body.from + at; index < body.to; index++) {
    const line = lines[index];
    if (!line || !isShort(line) || isBlank(line)) continue;
    const last = line.cells.length - 1;
    const value = toNumber(line.cells[last]);
    if (!isInRange(value, rangeOf(last)) && isInRange(value, rangeOf(last + 1)))
      return { at: index, line, columns, body };
  }
  return undefined;
}

/** More rows would not change the range much. */
const MAX_WHOLE_ROWS = 1000;

interface NumberRange {
  readonly least: number;
  readonly most: number;
}

const toNumber = (cell: string | undefined): number => Number.parseFloat((cell ?? '').replace(',', '.'));

/** The numbers of a column, with a margin. Undefined if there are too few. */
function numberRange(rows: readonly Line[], column: number): NumberRange | undefined {
  const values = rows.map(({ cells }) => toNumber(cells[column])).filter(Number.isFinite);
  if (values.length < 2) return undefined;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const margin = Math.max(most - least, Math.abs(most) / 2, Math.abs(least) / 2);
  return { least: least - margin, most: most + margin };
}

/** Whether a number is about as large as those of a column. Without numbers to compare it with, it is. */
const isInRange = (value: number, range: NumberRange | undefined): boolean =>
  !Number.isFinite(value) || !range || (value >= range.least && value <= range.most);

/** Without the empty cells that trailing delimiters leave. */
export const widthOf = ({ cells }: Line): number => cells.findLastIndex((cell) => cell !== '') + 1;
