import type { Line } from '../parse/lines.js';
import { DATE_NAME } from './date-roles.js';
import {
  areSamples,
  type Body,
  type CellKind,
  filledCells,
  isMeasure,
  isQuantity,
  isSubject,
  isWord,
  kindOf,
} from './kinds.js';

/** Numbers as names of columns: wavelengths, channels, masses, wells, or simply 1, 2, 3. */

/**
 * A header of wavelengths, channels or wells: a word, then different numbers. Above units, the word may be missing, and there
 * may be others among the numbers.
 */
export function areNumericNames({ cells }: Line, columns: readonly CellKind[], hasUnits = false): boolean {
  const [first = '', ...others] = cells;
  // A single number behind a word is a fact, unless it is on an axis.
  const least = !hasUnits ? 3 : /axis/i.test(first) ? 1 : 2;
  if (others.length < least || cells.length !== columns.length || columns[0] === 'text') return false;
  if (kindOf(first) !== 'text' && !(hasUnits && first === '')) return false;
  if (new Set(others).size < others.length) return false;
  const isNumbered = (cell: string): boolean => /^\d+(?:\.\d+)?$/.test(cell);
  if (!hasUnits) return others.every(isNumbered);
  return others.some(isNumbered) && others.every((cell) => isNumbered(cell) || (cell !== '' && isWord(cell)));
}

const AXIS_UNIT = /\d ?(\p{L}+)$/u;

const withoutUnit = (cell: string, unit: string): string => cell.slice(0, cell.length - unit.length).trimEnd();

/** A header of words and of numbers that grow or fall, above rows of other numbers: `Sample,450,500,550`. */
export function isAxis(line: Line, { from, to, kinds }: Body, lines: readonly Line[]): boolean {
  const { cells } = line;
  if (areWordsAndNumbers(line, kinds) || areCounted(line, { from, to, kinds }, lines)) return true;
  if (cells.length !== kinds.length || (kinds[0] === 'number' && !isWord(cells[0] ?? ''))) return false;
  const inNumbers = cells.filter((cell, n) => kinds[n] === 'number' && cell !== '');
  if (areDurations(inNumbers))
    return cells.every((cell, n) => cell === '' || kinds[n] === 'number' || isWord(cell)) && !hasDuration(lines[from]);
  const unit = AXIS_UNIT.exec(inNumbers.at(-1) ?? '')?.[1] ?? '';
  const isOnAxis = (cell: string): boolean => cell.endsWith(unit) && PLAIN_NUMBER.test(withoutUnit(cell, unit));
  const axis = inNumbers.filter(isOnAxis).map((cell) => Number(withoutUnit(cell, unit)));
  if (axis.length < 3 || !isMonotonic(axis)) return false;
  const words = cells.filter((cell, n) => cell !== '' && !(kinds[n] === 'number' && isOnAxis(cell)));
  if (!words.every(isWord)) return false;
  // `400nm`, `420nm` above numbers without a unit.
  if (unit !== '')
    return !lines
      .slice(from, Math.min(to, from + MAX_AXIS_ROWS))
      .some((row) => row !== line && row.cells.some((cell) => cell.endsWith(unit)));
  // A word in a column of numbers is its name. Without one, the axis counts the columns, or differs from all rows.
  if (axis.length < inNumbers.length) return true;
  if (isSubject(cells[0] ?? '') && areSamples(cells.slice(1))) return true;
  if (!axis.every(Number.isInteger)) return false;
  // The line is above the rows, or the first of them.
  const at = lines.lastIndexOf(line, from);
  const above = lines[at - 1];
  // At most a fact is directly above.
  if (axis.every((number, n) => number === n + 1) && (!above || mayBeFact(above, kinds.length))) return true;
  const below = lines.slice(Math.max(from, at + 1), Math.min(to, from + MAX_AXIS_ROWS));
  const valuesOf = (row: Line) => row.cells.filter((cell, n) => kinds[n] === 'number' && cell !== '');
  const hasFraction = (row: Line) => valuesOf(row).some((cell) => /[.,]\d/.test(cell));
  const most = () => Math.max(...below.flatMap((row) => valuesOf(row).map(Number)));
  return below.length > 0 && below.every(hasFraction) && Math.min(...axis) > most();
}

/** `0 h`, `0 h 30 min`, `1 h`: when each column was measured. */
const DURATION = /^(?=\d)(?:(\d+) ?h)?(?: ?(\d+) ?min)?(?: ?(\d+(?:\.\d+)?) ?s)?$/;

function areDurations(cells: readonly string[]): boolean {
  const [first = ''] = cells;
  if (cells.length < 2 || !DURATION.test(first)) return false;
  const seconds = cells.map((cell) => {
    const [, h = 0, min = 0, s = 0] = DURATION.exec(cell) ?? [undefined, Number.NaN];
    return (Number(h) * 60 + Number(min)) * 60 + Number(s);
  });
  return isMonotonic(seconds);
}

const hasDuration = (line: Line | undefined): boolean => line?.cells.some((cell) => DURATION.test(cell)) ?? false;

/** A name, its value and perhaps its unit, in a line that can have more cells. */
const mayBeFact = (line: Line, width: number): boolean => filledCells(line).length < (width > 4 ? 4 : 3);

/** The rows below a header of numbers. The facts above that may be padded with empty cells, so they look like rows. */
export function belowAxis(lines: readonly Line[], rows: Body): Body {
  const isFact = (line: Line) => mayBeFact(line, rows.kinds.length);
  const facts = Math.max(
    0,
    lines.slice(rows.from, rows.to).findIndex((line) => !isFact(line)),
  );
  const from = rows.from + facts;
  const first = lines[from];
  return first && isAxis(first, { ...rows, from }, lines) ? { ...rows, from: from + 1 } : rows;
}

/** A few numbers among different words, above columns of numbers: `Sample,Ca,Mg,208,Sr`. */
function areWordsAndNumbers({ cells }: Line, kinds: readonly CellKind[]): boolean {
  if (cells.length !== kinds.length || new Set(cells).size < cells.length) return false;
  const names = cells.filter((_, n) => kinds[n] === 'number');
  const words = names.filter(isWord).length;
  if (words < 3 || words === names.length || words < 2 * (names.length - words)) return false;
  return cells.every((cell, n) => cell !== '' && (isWord(cell) || (kinds[n] === 'number' && PLAIN_NUMBER.test(cell))));
}

/** Even a single whole number, beside a word that says what the rows are, above numbers with decimals: `Sample,260,280`. */
function areCounted(line: Line, { from, to, kinds }: Body, lines: readonly Line[]): boolean {
  const { cells } = line;
  const [first = ''] = cells;
  const columns = kinds.flatMap((kind, n) => (n === 0 || (kind === 'any' && !cells[n]) ? [] : [n]));
  const numbered = columns.filter((n) => /^[1-9]\d*$/.test(cells[n] ?? ''));
  // A word and a number is a fact.
  if (columns.length < 2 || numbered.length === 0 || numbered.some((n) => kinds[n] !== 'number')) return false;
  const names = [first, ...columns.map((n) => cells[n] ?? '')];
  if (new Set(names).size < names.length || !names.every((name) => /^\d+$/.test(name) || (name !== '' && isWord(name))))
    return false;
  const isOfRows = isSubject(first) || (isMeasure(kinds[0]) && (isQuantity(first) || DATE_NAME.test(first)));
  const at = lines.lastIndexOf(line, from);
  const below = lines.slice(Math.max(from, at + 1), Math.min(to, from + MAX_AXIS_ROWS));
  const isDecimal = (row: Line) => numbered.every((n) => !/^\d+$/.test(row.cells[n] ?? ''));
  return isOfRows && below.length > 0 && below.every(isDecimal);
}

export const PLAIN_NUMBER = /^\d+(?:\.\d+)?$/;

const MAX_AXIS_ROWS = 100;

export const isMonotonic = (numbers: readonly number[]): boolean => {
  const steps = numbers.slice(1).map((number, n) => number - (numbers[n] ?? 0));
  return steps.every((step) => step > 0) || steps.every((step) => step < 0);
};
