import type { ParseMapping } from '../config/vocabulary.js';
import { letterAt } from '../parse/extract/grid.js';
import { isBlank, type Line } from '../parse/lines.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { unitsOf, widthOf } from './header.js';
import { type CellKind, isFactName, isMeasure, isWord, kindOf } from './kinds.js';

/** Facts beside readings, in the same lines. */

type TableMapping = NonNullable<ParseMapping['table']>;

export interface FoundBeside {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly CellKind[];
  readonly mapping: TableMapping;
  /** Undefined if the cells beside the readings are not read. */
  readonly meta?: Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]> | undefined;
}

const MIN_LINES = 10;
/** Fewer could be names of groups of rows. */
const MIN_FACTS = 4;
/** A name, a value, a unit and an empty column. */
const MAX_FACT_CELLS = 4;

/**
 * To the left of readings without names at the start of the file, as oscilloscopes write them:
 * `Record Length,2500,,-0.005,0.02`.
 */
export function findFactsLeft(lines: readonly Line[]): FoundBeside | undefined {
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

/** Indexes of cells, up to but not including `to`. */
interface Span {
  readonly from: number;
  readonly to: number;
}

/** What is beside the names or one row. */
interface Pair {
  readonly name: string;
  readonly value: string;
  readonly unit: string;
}

const MIN_ROWS = 3;
const MIN_PAIRS = 3;

/** Beside tables whose columns have names: a name and a value in each of the first lines, `0.1,1.2,,Speed,5.0`. */
export function findPairsBeside(lines: readonly Line[], isTaken: (line: Line) => boolean): FoundBeside[] {
  const found: FoundBeside[] = [];
  for (let from = 0; from < lines.length; from++) {
    let to = from;
    for (let line = lines[to]; line && !isBlank(line) && !isTaken(line); line = lines[to]) to++;
    const beside =
      to - from > MIN_ROWS ? (findInBlock(lines, from, to, false) ?? findInBlock(lines, from, to, true)) : undefined;
    if (beside) found.push(beside);
    from = Math.max(from, to);
  }
  return found;
}

function findInBlock(lines: readonly Line[], top: number, to: number, isLeft: boolean): FoundBeside | undefined {
  const last = lines[to - 1];
  const span = last && readingsIn(last, isLeft);
  if (!span) return undefined;
  const own = ({ cells }: Line) => cells.slice(span.from, span.to);
  const isRow = (line: Line) => own(line).length === span.to - span.from && own(line).every(isMeasured);
  let from = to - 1;
  for (let line = lines[from - 1]; from > top && line && isRow(line); line = lines[from - 1]) from--;
  const areUnits = (line: Line | undefined) => line && own(line).every((cell) => isUnit(bareUnit(cell) ?? ''));
  const at = from - (areUnits(lines[from - 1]) ? 2 : 1);
  const names = lines[at];
  if (!names || at < top || to - from < MIN_ROWS || !areNames(own(names))) return undefined;
  const facts = findPairs(lines.slice(at, to), span, isLeft);
  if (!facts || !arePairs(facts, to - from)) return undefined;
  const area = areaOf(facts.area);
  const isOutside = (line: Line, n: number) =>
    (n < at || n >= to) && line.cells.slice(facts.area.from, facts.area.to).some((cell) => cell !== '');
  const header = own(names).join('\t');
  const isFirst = !lines.slice(0, at).some((line) => own(line).join('\t').startsWith(header));
  const kinds = last.cells.map((_, n): CellKind => (n >= span.from && n < span.to ? 'number' : 'any'));
  const list = facts.heading && LIST.test(facts.heading.name) ? { except: facts.heading.name } : {};
  return {
    ...{ from: at, to, kinds },
    mapping: {
      ...{ header: isFirst ? header : names.number, area: areaOf(span) },
      ...unitsBelow(names, lines.slice(at, from), span, kinds),
    },
    // Its columns have something else in other lines.
    meta: lines.some(isOutside)
      ? undefined
      : {
          ...{ area, separator: facts.isSigned ? ':' : 'tab', ...list },
          ...(facts.pairs.some(({ unit }) => unit !== '') && { value: 2, unit: 3 }),
        },
  };
}

const isMeasured = (cell: string): boolean => isMeasure(kindOf(cell));

const areaOf = ({ from, to }: Span): string => `${letterAt(from)}:${letterAt(to - 1)}`;

const areNames = (cells: readonly string[]): boolean =>
  cells.every((cell) => cell !== '' && isWord(cell)) && new Set(cells).size === cells.length;

/** The numbers at the start or at the end of a row. The first two cells can be a name and its value. */
function readingsIn(row: Line, isLeft: boolean): Span | undefined {
  const width = widthOf(row);
  const isOther = (cell: string) => !isMeasured(cell);
  const end = row.cells.findIndex(isOther);
  const span = isLeft
    ? { from: Math.max(2, row.cells.slice(0, width).findLastIndex(isOther) + 1), to: width }
    : { from: 0, to: end < 0 ? width : end };
  return span.to - span.from < 2 ? undefined : span;
}

function unitsBelow(names: Line, head: readonly Line[], { from, to }: Span, kinds: readonly CellKind[]): TableMapping {
  if (head.length > 1) return { units: 'nextRow' };
  const units = unitsOf(
    { ...names, cells: names.cells.slice(from, to) },
    { from: 0, to: 0, kinds: kinds.slice(from, to) },
  );
  return units === 'inHeader' ? {} : { units };
}

interface Pairs {
  readonly area: Span;
  /** Beside the rows. */
  readonly pairs: readonly Pair[];
  /** Beside the names. */
  readonly heading: Pair | undefined;
  /** Name and value are in one cell: `Speed: 5.0`. */
  readonly isSigned: boolean;
  readonly hasGap: boolean;
}

/** `lines`: the names, perhaps units, and the rows. Undefined if more than one pair is beside one of them. */
function findPairs(lines: readonly Line[], span: Span, isLeft: boolean): Pairs | undefined {
  const beside = lines.map(({ cells }) => (isLeft ? cells.slice(0, span.from) : cells.slice(span.to)));
  const filled = beside.filter((cells) => cells.some((cell) => cell !== ''));
  const start = Math.min(...filled.map((cells) => cells.findIndex((cell) => cell !== '')));
  const end = Math.max(...filled.map((cells) => cells.findLastIndex((cell) => cell !== ''))) + 1;
  if (filled.length < MIN_PAIRS || end - start > 3) return undefined;
  const pairs = beside.map((cells): Pair | undefined => {
    const [name = '', value = '', unit = ''] = cells.slice(start, end);
    const [, before = name, after = value] = end - start === 1 ? (SIGNED.exec(name) ?? []) : [];
    return name === '' ? undefined : { name: before, value: after, unit };
  });
  const [heading, ...others] = pairs;
  const first = isLeft ? 0 : span.to + start;
  return {
    area: { from: first, to: first + end - start },
    pairs: others.filter((pair) => pair !== undefined),
    heading,
    isSigned: end - start === 1,
    hasGap: isLeft ? end < span.from : start > 0 || !/[\t,;|]/.test(lines[0]?.text ?? ''),
  };
}

const SIGNED = /^(\p{L}[^:=]{0,40}?)\s?:\s+(\S.*)$/u;
/** What a list of facts calls its names. */
const LIST = /^(?:parameters?|propert(?:y|ies)|settings?|facts?|info(?:rmation)?|items?|fields?|keys?|attributes?)$/i;

/** A different name in each line. The list is shorter than the table, or some of its values are words. */
function arePairs({ pairs, heading, hasGap, isSigned }: Pairs, rows: number): boolean {
  const names = pairs.map(({ name }) => name);
  const isName = (name: string) => isWord(name) && /\p{L}{2}/u.test(name) && !isUnit(name);
  if (names.length < MIN_PAIRS || new Set(names).size < names.length || !names.every(isName)) return false;
  if (pairs.some(({ value, unit }) => value === '' || (unit !== '' && !isUnit(bareUnit(unit) ?? '')))) return false;
  const isShort = pairs.length < rows;
  const isMixed = new Set(pairs.map(({ value }) => isMeasured(value))).size > 1;
  if (!heading) return isMixed || (isShort && hasGap) || isSigned;
  if (LIST.test(heading.name) || isSigned) return true;
  return (isShort || isMixed) && (/\d/.test(heading.value) || isFactName(heading.name));
}
