import { letterAt } from '../parse/extract/grid.js';
import { isBlank, type Line } from '../parse/lines.js';
import type { FoundBeside } from './beside.js';
import { isInRange, type LongRow, numberRange, toNumber, widthOf } from './header.js';
import { type Body, type CellKind, isMeasure, isWord, kindsOf } from './kinds.js';
import { isMonotonic } from './numbered-names.js';

/** Settings directly above readings: a line of numbers that is not a row, or values behind the units. */

/** Fewer rows do not show what is odd. More add little. */
const [MIN_ROWS, MAX_ROWS] = [5, 1000];

/**
 * Whether the first of some rows without names is a line of settings, such as start, step and end. It has more or fewer
 * numbers than the rows, or breaks the order of their first column, and another number is not like those of its column.
 * `unclear`: it has more numbers, but those that it shares with the rows are like theirs.
 */
export function judgeFirstRow(lines: readonly Line[], { from, to, kinds }: Body): 'row' | 'settings' | 'unclear' {
  const [first, ...rows] = lines.slice(from, Math.min(to, from + MAX_ROWS)).filter((line) => !isBlank(line));
  const width = rows[0] ? widthOf(rows[0]) : 0;
  if (!first || rows.length < MIN_ROWS || rows.some((row) => widthOf(row) !== width)) return 'row';
  if (!kinds.every((kind) => kind === 'number' || kind === 'any') || !isMeasure(kinds[0])) return 'row';
  const numbers = rows.map(({ cells }) => toNumber(cells[0]));
  const isOutOfOrder = isMonotonic(numbers) && !isMonotonic([toNumber(first.cells[0]), ...numbers]);
  const others = first.cells.slice(1, Math.min(width, widthOf(first)));
  const isOdd = others.some((cell, n) => !isInRange(toNumber(cell), numberRange(rows, n + 1)));
  if (widthOf(first) === width) return isOutOfOrder && isOdd ? 'settings' : 'row';
  if (isOutOfOrder || isOdd) return 'settings';
  return widthOf(first) > width ? 'unclear' : 'row';
}

/** The rows without the line of settings above them. */
export function belowSettings(lines: readonly Line[], { from, to, kinds }: Body): Body {
  const width = Math.max(...lines.slice(from + 1, to).map((line) => line.cells.length));
  return { from: from + 1, to, kinds: kinds.slice(0, width) };
}

/** A row that no header explains. */
export const unclearRow = (lines: readonly Line[], body: Body): LongRow[] =>
  lines.slice(body.from, body.from + 1).map((line) => ({
    ...{ at: body.from, line, body },
    columns: widthOf(lines[body.from + 1] ?? line),
    isAboveRows: true,
  }));

/**
 * Names, then units of the first columns and values of the others, then rows of those first columns only, as
 * oscilloscopes write them: `X,CH1,Start,Increment`, `Second,Volt,-0.5,0.001`, `0,1.25`.
 */
export function findSingleValues(lines: readonly Line[]): FoundBeside | undefined {
  const from = lines.findIndex((line, n) => areSingleValues(line, lines[n + 1], lines[n + 2]));
  const [names, units, first] = lines.slice(from, from + 3);
  if (from < 0 || !names || !units || !first) return undefined;
  const columns = widthOf(first);
  let to = from + 2;
  for (let line = lines[to]; line && !isBlank(line); line = lines[++to])
    if (widthOf(line) > columns || !kindsOf(line).slice(0, columns).every(isNumberOrNone)) return undefined;
  if (to - from < MIN_ROWS) return undefined;
  const places = names.cells.slice(columns, widthOf(names)).map((name, n) => [name, columns + n + 1]);
  const [one = '', two = ''] = names.cells;
  const start = names.text.slice(0, names.text.indexOf(two, one.length) + two.length).trimStart();
  return {
    ...{ from, to, kinds: first.cells.slice(0, columns).map((): CellKind => 'number') },
    mapping: {
      // The cells of an area have tabs between them.
      ...(from > 0 && { header: `${one}\t${two}` }),
      ...{ units: 'nextRow', area: `A:${letterAt(columns - 1)}` },
    },
    meta: { after: start, cells: Object.fromEntries(places) },
  };
}

const isNumberOrNone = (kind: CellKind): boolean => kind === 'number' || kind === 'any';

/** A word for each of the first columns, a number for each of the others, and fewer cells in the row below. */
function areSingleValues(names: Line, units: Line | undefined, row: Line | undefined): boolean {
  if (!units || !row) return false;
  const width = widthOf(names);
  const columns = widthOf(row);
  if (columns < 2 || columns >= width || widthOf(units) !== width) return false;
  const cells = names.cells.slice(0, width);
  return (
    new Set(cells).size === width &&
    cells.every((cell) => cell !== '' && isWord(cell)) &&
    units.cells.slice(0, columns).every((cell) => cell !== '' && isWord(cell)) &&
    kindsOf(units).slice(columns, width).every(isMeasure) &&
    kindsOf(row)
      .slice(0, columns)
      .every((kind) => kind === 'number')
  );
}
