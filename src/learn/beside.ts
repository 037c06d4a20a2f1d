import type { ParseMapping } from '../config/vocabulary.js';
import { letterAt } from '../parse/extract/grid.js';
import { isBlank, type Line } from '../parse/lines.js';
import { type CellKind, isMeasure, isWord, kindOf } from './kinds.js';

/** Facts to the left of readings, in the same lines, as oscilloscopes write them: `Record Length,2500,,-0.005,0.02`. */
export interface FoundBeside {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly CellKind[];
  readonly mapping: NonNullable<ParseMapping['table']>;
  readonly meta: Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]>;
}

const MIN_LINES = 10;
/** Fewer could be names of groups of rows. */
const MIN_FACTS = 4;
/** A name, a value, a unit and an empty column. */
const MAX_FACT_CELLS = 4;

/** Only at the start of the file, and without names above the readings. */
export function findBeside(lines: readonly Line[]): FoundBeside | undefined {
  const from = lines.findIndex((line) => !isBlank(line));
  const end = lines.findIndex((line, n) => n > from && isBlank(line));
  const block = from < 0 ? [] : lines.slice(from, end < 0 ? undefined : end);
  if (block.length < MIN_LINES) return undefined;
  for (let start = 2; start <= MAX_FACT_CELLS; start++) {
    const columns = readingColumns(block, start);
    if (columns === 0 || !areFacts(block, start)) continue;
    const facts = block.filter(({ cells }) => cells[0] !== '');
    const hasUnits = start > 2 && facts.some(({ cells }) => cells[2] !== '');
    const kinds = Array.from({ length: start + columns }, (_, n): CellKind => (n < start ? 'any' : 'number'));
    return {
      ...{ from, to: from + block.length, kinds },
      mapping: { header: 'none', area: `${letterAt(start)}:${letterAt(start + columns - 1)}` },
      meta: { area: `A:${letterAt(start - 1)}`, separator: 'tab', ...(hasUnits && { value: 2, unit: 3 }) },
    };
  }
  return undefined;
}

/** How many columns from `start` on are numbers in all lines; 0 if there is anything else. */
function readingColumns(block: readonly Line[], start: number): number {
  const [first] = block;
  const columns = first ? first.cells.slice(start).findLastIndex((cell) => cell !== '') + 1 : 0;
  const isRow = ({ cells }: Line) =>
    cells.slice(start, start + columns).every((cell) => isMeasure(kindOf(cell))) &&
    cells.slice(start + columns).every((cell) => cell === '');
  return columns >= 1 && block.every((line) => line.cells.length >= start + columns && isRow(line)) ? columns : 0;
}

/** Different names with values beside some of the lines. Some values are words, or an empty column is between. */
function areFacts(block: readonly Line[], start: number): boolean {
  const left = block.map(({ cells }) => cells.slice(0, start)).filter((cells) => cells.some((cell) => cell !== ''));
  if (left.length < MIN_FACTS || left.length === block.length) return false;
  const names = left.map(([name = '']) => name);
  const values = left.map(([, value = '']) => value);
  const areNames = names.every((name) => isWord(name) && /\p{L}{3}/u.test(name));
  const hasGap = left.every((cells) => cells.length > 2 && cells.at(-1) === '');
  const areValues = hasGap || values.some((value) => value !== '' && isWord(value));
  return areNames && new Set(names).size === names.length && areValues;
}
