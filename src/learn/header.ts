import { alignCells } from '../parse/extract/aligned.js';
import { isUnitsLabel, repeatedIn, withGroups } from '../parse/extract/columns.js';
import { isBlank, isRule, type Line } from '../parse/lines.js';
import { bareUnit, isHemisphere, isUnit, unitAfterSlash, unitInName } from '../parse/values/unit.js';
import { isAlike, isBelowSettings } from './channel-settings.js';
import { DATE_NAME } from './date-roles.js';
import {
  type Body,
  filledCells,
  isBetweenRows,
  isMeasure,
  isQuantity,
  isSubject,
  isWord,
  kindsOf,
  mergeKinds,
  type Range,
} from './kinds.js';
import { areNumericNames, isAxis } from './numbered-names.js';

/** The lines above rows: names, units, and what else describes the columns. */

/** The lines above the rows: names, and possibly units. */
export interface Header {
  /** The first line with names; without names, the first row. */
  readonly from: number;
  /** How many lines have names. */
  readonly rows: number;
  readonly units: 'inHeader' | 'slash' | 'nextRow' | 'firstRow';
  readonly names: readonly Line[];
  /** Lines between the names and the rows that are neither. */
  readonly skip: readonly Line[];
  /** Lines between the names and the rows that describe the columns: `Serial number,8451,8452`. */
  readonly properties: readonly Line[];
  /** The last of those, if it is a title of the rows below it. */
  readonly title?: Line | undefined;
  /** The names that lines above list, one by one. */
  readonly listed?: ListedNames;
}

export const NO_HEADER = { rows: 0, units: 'inHeader', names: [], skip: [], properties: [] } as const;

/** The names of columns without a header, in lines above the rows: `# name 0 = Depth [m]`, `# Labels: energy rate`. */
export interface ListedNames {
  /** A pattern for these lines. */
  readonly header: string;
  readonly lines: readonly Line[];
}

/** Searches above the rows for their names. */
export function findHeader(lines: readonly Line[], body: Body, top: number): Header {
  if (!body.kinds.some(isMeasure)) {
    // In a table of words, only the first line can be the header.
    const [first, ...rows] = lines.slice(body.from, body.to);
    const isLog = startsWithTime(first) && rows.filter(startsWithTime).length * 2 > rows.length;
    if (isLog) return { ...NO_HEADER, from: body.from };
    const names = first ? [first] : [];
    return { from: body.from, rows: 1, units: 'inHeader', names, skip: [], properties: [] };
  }
  const direct = findDirectHeader(lines, body, top);
  const below = direct.units === 'inHeader' ? findBelowTitle(lines, body, top) : undefined;
  return below && (direct.rows === 0 || below.units === 'nextRow') ? below : direct;
}

/** Names above a line of a few words, such as the first group of rows. In two columns, they could be a fact. */
function findBelowTitle(lines: readonly Line[], body: Body, top: number): Header | undefined {
  const title = lines[body.from - 1];
  if (!title || body.from - 1 <= top || countColumns(body) < 3 || !isBetweenRows(title, body.kinds)) return undefined;
  const others = lines.toSpliced(body.from - 1, 1);
  const header = findDirectHeader(others, { ...body, from: body.from - 1, to: body.to - 1 }, top);
  const isFull = header.names.some(({ cells }) => cells.length === body.kinds.length);
  // Facts, of which the last one could be names.
  const isFact = header.rows !== 1 || header.names.some(({ text }) => /[:=]\s*\S/.test(text));
  return isFull && !isFact ? { ...header, skip: [...header.skip, title], title } : undefined;
}

function findDirectHeader(lines: readonly Line[], body: Body, top: number): Header {
  const described = findPropertyHeader(lines, body, top);
  if (described) return described;
  if (isBelowSettings(lines, body.from, top)) return { ...NO_HEADER, from: body.from };
  const reduced = findReducedHeader(lines, body, top);
  if (reduced) return reduced;
  const stacked = findStackedHeader(lines, body, top);
  if (stacked) return stacked;
  const [nearest, ...others] = namesAbove(lines, body, top);
  if (nearest === undefined) return findCountedHeader(lines, body, top) ?? findDistantHeader(lines, body, top);
  const split = others[0] === undefined ? findSplitHeader(lines, nearest, body, top) : undefined;
  if (split) return split;
  const isForSome = isUnitRow(lines[nearest]) && !isNames(lines[nearest], body.kinds.length, 0.5);
  if (others[0] === undefined && isForSome) return findDistantHeader(lines, body, top);
  const hasUnits = others[0] !== undefined && isUnitRow(lines[nearest]);
  const names = hasUnits ? others : [nearest, ...others];
  const isUnitsFirst = !hasUnits && names.length > 1 && isUnitsAbove(lines[names.at(-1) ?? nearest], body);
  if (!isUnitsFirst) names.push(...groupRowsAbove(lines, names, top));
  return {
    from: names.at(-1) ?? nearest,
    rows: names.length,
    units: isUnitsFirst ? 'firstRow' : hasUnits ? 'nextRow' : unitsOf(lines[nearest], body),
    names: names.toReversed().flatMap((index) => lines[index] ?? []),
    skip: [],
    properties: [],
  };
}

/** A line of a log, which is no header: `2021-10-26 09:14:07> Start; done`. */
const startsWithTime = (line: Line | undefined): boolean =>
  /^\W*(?:\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}[ T]+)?\d{1,2}:\d\d:\d\d/.test(line?.text ?? '');

/**
 * Indexes of the lines with names of groups above names that repeat, nearest first: `Area,,,RT,,` above
 * `H2,O2,N2,H2,O2,N2`. Only if all names differ with them.
 */
function groupRowsAbove(lines: readonly Line[], names: readonly number[], top: number): number[] {
  const header = names.toReversed().flatMap((index) => lines[index] ?? []);
  const own = header.at(-1)?.cells ?? [];
  const isUnclear = (rows: readonly Line[]) => repeatedIn(withGroups(rows, own)).size > 0;
  if (!isUnclear(header)) return [];
  const rows: number[] = [];
  for (let index = (names.at(-1) ?? 0) - 1; index >= top && rows.length < MAX_GROUP_ROWS; index--) {
    const line = lines[index];
    if (!line || line.cells.length !== own.length || !isNames(line, 0, 0) || hasFacts(line)) break;
    header.unshift(line);
    rows.push(index);
    if (!isUnclear(header)) return rows;
  }
  return [];
}

const MAX_GROUP_ROWS = 2;

/** Names of the first columns only, above rows that are counted: `No.,Result,,,`. */
function findCountedHeader(lines: readonly Line[], body: Body, top: number): Header | undefined {
  const line = body.from > top ? lines[body.from - 1] : undefined;
  if (!line || body.kinds[0] !== 'number' || line.cells.length !== body.kinds.length) return undefined;
  if (!isNames(line, 0, 0) || !COUNT.test(line.cells[0] ?? '')) return undefined;
  return { from: body.from - 1, rows: 1, units: unitsOf(line, body), names: [line], skip: [], properties: [] };
}

const COUNT = /^(?:(?:no|nr|n°|row|line|index)\.?(?: ?#)?|#)$/i;

/**
 * Names, a second line that continues some of them or is a title, units. In lines split at spaces, the continuations
 * cannot be assigned to names, so they are left out.
 */
function findSplitHeader(lines: readonly Line[], units: number, body: Body, top: number): Header | undefined {
  const [names, words] = [lines[units - 2], lines[units - 1]];
  if (!names || !words || units - 2 < top || !isUnitRow(lines[units])) return undefined;
  const isTitle = filledCells(words).length === 1 && isNames(names, body.kinds.length, 1);
  if (!isNames(names, body.kinds.length, 0.75) || !(isTitle || isNames(words, body.kinds.length, 0))) return undefined;
  const isAligned = words.cells.length === names.cells.length && words.cells.includes('');
  return {
    ...{ from: units - 2, units: 'nextRow', properties: [] },
    ...(isAligned ? { rows: 2, names: [names, words], skip: [] } : { rows: 1, names: [names], skip: [words] }),
  };
}

/** Names, units, and how each reading was reduced: `AirT_Avg,RH`, `deg C,%`, `Avg,Smp`. */
function findReducedHeader(lines: readonly Line[], body: Body, top: number): Header | undefined {
  const from = body.from - 3;
  const [names, units, words] = lines.slice(Math.max(from, 0), body.from);
  if (from < top || !names || !units || !words || isRule(words) || body.kinds.length < 3) return undefined;
  const isAligned = ({ cells }: Line) => cells.length === body.kinds.length;
  if (![names, units, words].every(isAligned) || isUnitRow(words)) return undefined;
  // Dates and counts are not reduced, and what stands below their names is not a unit: `TS,RN,mg/L`.
  if (!isUnitRow({ ...units, cells: units.cells.filter((_, n) => words.cells[n] !== '') })) return undefined;
  if (!isNames(names, body.kinds.length, 1) || !isNames(words, 0, 0) || hasFacts(names)) return undefined;
  return { from, rows: 1, units: 'nextRow', names: [names], skip: [words], properties: [] };
}

/**
 * Two lines of which each has names that the other lacks: `,,Li,Pb` above `Sample,Label,,`. Or names of groups above
 * names that are the same in each group: `UV,,Conductivity,` above `mL,AU,mL,mS`.
 */
function findStackedHeader(lines: readonly Line[], body: Body, top: number): Header | undefined {
  const [upper, lower] = [lines[body.from - 2], lines[body.from - 1]];
  if (!upper || !lower || body.from - 2 < top || body.kinds.length < 3) return undefined;
  const isAligned = ({ cells }: Line) => cells.length === body.kinds.length;
  if (![upper, lower].every((line) => isAligned(line) && isNames(line, 0, 0) && !hasFacts(line))) return undefined;
  const [above, below] = [upper.cells, lower.cells].map((cells) => cells.map((cell) => cell !== ''));
  const columns = body.kinds.flatMap((kind, n) => (kind === 'any' ? [] : [n]));
  const isDivided = columns.every((n) => above?.[n] !== below?.[n]);
  const starts = columns.filter((n) => above?.[n]);
  const areGroups =
    columns.every((n) => below?.[n]) &&
    starts.every((n) => above?.[n + 1] !== true) &&
    new Set(starts.map((n) => lower.cells[n])).size === 1;
  if (!isDivided && !areGroups) return undefined;
  return {
    ...{ from: body.from - 2, rows: 2, units: unitsOf(lower, body), names: [upper, lower] },
    ...{ skip: [], properties: [] },
  };
}

/**
 * Names, then lines that describe the columns, then rows that start with a number or date: `Date,T1,T2`,
 * `Serial number,8451,8452`. All have the same number of cells, and at least one of those lines has a number.
 */
function findPropertyHeader(lines: readonly Line[], body: Body, top: number): Header | undefined {
  if (!isMeasure(body.kinds[0])) return undefined;
  let from = body.from;
  const isAbove = (line: Line | undefined): line is Line =>
    line?.cells.length === body.kinds.length && !isMeasure(kindsOf(line)[0]) && filledCells(line).length > 1;
  while (from > top && isAbove(lines[from - 1])) from--;
  const [names, ...between] = lines.slice(from, body.from);
  if (!names || !between.some((line) => kindsOf(line).some(isMeasure))) return undefined;
  // Sensors can be numbered: `,Time,1,2`.
  const isNumbered = names.cells[0] === '' && new Set(names.cells).size === names.cells.length;
  if (!isNames(names, body.kinds.length - 1, 1) && !(isNumbered && names.cells.slice(1).every(isNumberedName)))
    return undefined;
  // Between names of two columns and their rows, names with a value are facts, and so are the names.
  if (countColumns(body) < 3 && between.length > 1 && !isQuantity(names.cells[0] ?? '')) return undefined;
  // A list of facts above the names has other cells in each line.
  if (!between.every((line) => isWord(line.cells[0] ?? '') && line.cells[0] !== '')) return undefined;
  const units = between.find(isUnitRow);
  // Names of the rows themselves: those above are names of facts.
  const isOther = (line: Line, n: number) => n > 0 && line !== units && new Set(line.cells).size === line.cells.length;
  const last = between.findLastIndex((line, n) => isOther(line, n) && isNames(line, body.kinds.length, 1));
  if (between.slice(0, Math.max(last, 0)).some((line) => kindsOf(line).some(isMeasure))) return undefined;
  return {
    from,
    rows: 1,
    units: units ? 'nextRow' : unitsOf(names, body),
    names: [names],
    skip: [],
    properties: between.filter((line) => line !== units),
  };
}

const isNumberedName = (cell: string): boolean => /^\d$/.test(cell) || (cell !== '' && isWord(cell));

/** Names up to three lines above the rows, with a line such as `[Data]` in between. */
function findDistantHeader(lines: readonly Line[], body: Body, top: number): Header {
  const above = lines
    .slice(top, body.from)
    .filter((line) => !isBlank(line))
    .slice(-3)
    .reverse();
  const isFull = (line: Line) => isNames(line, countColumns(body), 1) && line.cells.length === body.kinds.length;
  // A line of `in`, `in`, `out` describes columns whose names are further up.
  const distinct = above.findIndex((line) => isFull(line) && new Set(line.cells).size * 2 > line.cells.length);
  const n = distinct < 0 ? above.findIndex(isFull) : distinct;
  const names = above[n];
  // Facts, of which the last one could be names: `Signal1 Time (min)`, `Signal2 Weight (mg)`.
  // Between names of two columns and their rows, a name and its value is a fact, and so are the names.
  const isAmongFacts =
    body.kinds.length < 4 && above.slice(0, Math.max(n, 0)).some((line) => kindsOf(line)[1] === 'number');
  const isBelowFacts =
    names !== undefined && countColumns(body) < 3 && countPairs(lines, lines.indexOf(names), top) > 2;
  const isListed =
    names !== undefined && n > 0 && (isAmongFacts || isBelowFacts || above.slice(n + 1, n + 2).some(isFull));
  if (!names || isListed) return { ...NO_HEADER, from: body.from };
  return {
    from: lines.indexOf(names),
    rows: 1,
    units: unitsOf(names, body),
    names: [names],
    skip: above.slice(0, n).reverse(),
    properties: [],
    title: above[0],
  };
}

/** How many of the lines directly above are a name and its value. */
const countPairs = (lines: readonly Line[], at: number, top: number): number =>
  lines.slice(Math.max(top, at - 6), at).filter((line) => filledCells(line).length === 2 && isWord(line.cells[0] ?? ''))
    .length;

/** Indexes of the lines directly above that can be names, nearest first: words only, about one for each column. */
function namesAbove(lines: readonly Line[], body: Body, top: number): number[] {
  const found: number[] = [];
  // Rows may be padded with empty cells.
  const width = body.kinds.findLastIndex((kind) => kind !== 'any') + 1;
  for (let index = body.from - 1; index >= top && found.length < 3; index--) {
    const written = lines[index];
    if (!written) break;
    const line = withoutLabel(written, body);
    if (isRule(line)) continue;
    const isBelowNames = found.length === 0 || (found.length === 1 && isUnitRow(lines[found[0] ?? 0]));
    // Blank lines may separate rows, units and names, but not two lines of names.
    if (isBlank(line) && isBelowNames) continue;
    if (found.length === 0 && (areNumericNames(line, body.kinds) || isAxis(line, body, lines))) return [index];
    if (found.length === 1 && isBelowNames && areNumericNames(line, body.kinds, true)) return [...found, index];
    const isNearest = found.length === 0;
    const isPart = !isNearest && isPartOfNames(line, lines[index + 1], body);
    if (
      !isPart &&
      !isNames(line, width, isNearest ? 0.5 : 0.75) &&
      !(isNearest && isNames(line, 0, 0) && areUnits(line))
    )
      break;
    if (found.length > 0 && (hasFacts(line) || isAlike(line))) break;
    // Fewer names without a gap: any of the columns could be the one that has none.
    if (!isBelowNames && !line.cells.includes('') && line.cells.length < (lines[found[0] ?? 0]?.cells.length ?? 0))
      break;
    // Lines of two cells above a header are facts.
    if (!isPart && found.length > 0 && width < 3 && !isUnitRow(lines[found[0] ?? 0]) && !areUnits(line)) break;
    found.push(index);
  }
  return found;
}

/** Words or units directly above names, with an empty cell above the first: `,,Storage` above `Time,Weight,Modulus`. */
const isPartOfNames = (line: Line, below: Line | undefined, { kinds }: Body): boolean =>
  kinds[0] !== 'any' &&
  line.cells.length === kinds.length &&
  below?.cells.length === kinds.length &&
  /^[-–—]?$/.test(line.cells[0] ?? '') &&
  filledCells(line).every((cell) => isWord(cell) && !/[:=]/.test(cell));

/** `Interval data:,Point No.,Torque`: what stands to the left of all columns is not a name. */
const withoutLabel = (line: Line, { kinds }: Body): Line =>
  kinds[0] === 'any' && line.cells.length === kinds.length && line.cells[0]?.endsWith(':')
    ? { ...line, cells: ['', ...line.cells.slice(1)] }
    : line;

/** Words with single blanks between them that are no names: `Tungsten lamp test`, `measured by Ada`. */
const isTitle = ({ text, cells }: Line): boolean =>
  TITLE.test(text) && text.trim().split(' ').length === cells.length && !/\s\s|[,;|\t]/.test(text.trim());

const TITLE =
  /\s(?:scan|test|run|spectrum|measurement|report)\s*$|(?:^|\s)(?:by|of|the|for|with|from|and|using|made|created|measured|recorded|exported|generated|saved)\s/i;

function isNames(line: Line | undefined, width: number, share: number): boolean {
  if (!line || isTitle(line)) return false;
  const filled = filledCells(line);
  // A colon separates a name from a value, unless it is behind all names, or behind that of the rows: `Sample:`.
  const colons = filled.filter((cell) => cell.endsWith(':')).length;
  const isFirst =
    colons === 1 &&
    filled.length >= Math.max(3, width) &&
    !line.cells.slice(0, -1).includes('') &&
    /:$/.test(filled[0] ?? '') &&
    isSubject(filled[0] ?? '');
  if (colons > 0 && colons < filled.length && !isFirst) return false;
  // The same code in all cells, such as `6:0`, says how the numbers are written.
  if (filled.length > 2 && new Set(filled).size === 1 && /\d/.test(filled[0] ?? '')) return false;
  return filled.length >= Math.max(2, share * width) && filled.every((cell) => isWord(cell) && !VALUE.test(cell));
}

/** A path or a time of day: the line is a fact above rows that look like a table. */
const VALUE = /^[A-Za-z]:\\|^\\\\\w|\d:\d\d:\d\d/;

/** A line of facts above the names: `Sample: X1`, `Operator: Ada`. */
const hasFacts = (line: Line): boolean => {
  const cells = filledCells(line);
  return cells.filter((cell) => /:(?:\s|$)/.test(cell)).length * 2 >= cells.length;
};

/** A dash stands for no unit. The first cell can be a label of the row, or the name of its column. */
function isUnitRow(line: Line | undefined): boolean {
  if (!line || DATE_NAME.test(line.cells[0] ?? '')) return false;
  const cells = filledCells(line);
  const written = cells.filter((cell) => !/^[-–—]$/.test(cell) && !(cell === line.cells[0] && isUnitsLabel(cell)));
  return cells.length > 0 && written.filter(isUnitCell).length * 2 >= written.length + Number(written.length > 0);
}

const isUnitCell = (cell: string): boolean => /^[[(].*[\])]$/.test(cell) || isUnit(bareUnit(cell) ?? '');

/** A unit above the name of each column of numbers, or of most columns if empty cells show which. */
const isUnitsAbove = (line: Line | undefined, { kinds }: Body): boolean =>
  line?.cells.length === kinds.length &&
  areUnits(line) &&
  (filledCells(line).length * 2 > kinds.length ||
    kinds.every((kind, n) => n === 0 || kind !== 'number' || line.cells[n] !== ''));

/** Units of some columns: nothing else is in the line. */
const areUnits = (line: Line): boolean => filledCells(line).every((cell) => /^[-–—]$/.test(cell) || isUnitCell(cell));

export function unitsOf(line: Line | undefined, { kinds }: Body): 'slash' | 'inHeader' {
  const names = line?.cells.filter((name, n) => kinds[n] === 'number' && !isSubject(name)) ?? [];
  // `Slope V/s`: perhaps the symbol of a slope and its unit, perhaps the unit.
  const isQuotient = (name: string): boolean =>
    / \S+\/\S+$/.test(name) && isUnit(name.slice(name.lastIndexOf(' ') + 1));
  const slashes = names.filter((name) => unitAfterSlash(name, false) && !isQuotient(name));
  const isSlash =
    slashes.length * 2 > names.length &&
    names.every((name) => !unitInName(name) || isQuotient(name) || slashes.includes(name));
  return isSlash ? 'slash' : 'inHeader';
}

/**
 * Columns without a name whose cells are the units of the numbers to their left: `Glucose,,Lactate,` above
 * `1.2,g/L,3.4,mmol/L`.
 */
export function unitColumnsOf(
  lines: readonly Line[],
  { from, to, kinds }: Body,
  { names }: Header,
  isBeside = true,
): number[] {
  const rows = lines.slice(from, Math.min(to, from + MAX_UNIT_ROWS));
  const columns = kinds.flatMap((kind, n) => {
    if (kind !== 'text' || names.some(({ cells }) => cells[n])) return [];
    if (isBeside && kinds[n - 1] !== 'number') return [];
    const texts = rows.flatMap(({ cells }) => cells[n] || []);
    const name = names.at(-1)?.cells[n - 1] ?? '';
    return texts.every((text) => isUnit(bareUnit(text) ?? '') && !isHemisphere(text, name)) ? [{ n, texts }] : [];
  });
  // A name, a value and a unit below a name and a value are facts.
  const least = kinds.length - Number(columns.length > 1);
  if (names.some(({ cells }) => cells.length < least)) return [];
  // A letter can be a flag.
  const all = columns.flatMap(({ texts }) => texts);
  return all.length > 1 && all.some(({ length }) => length > 1) ? columns.map(({ n }) => n) : [];
}

/** More rows would add nothing. */
export const MAX_UNIT_ROWS = 200;

const counts = new WeakMap<Body['kinds'], number>();

/** Remembered, because the widest rows are compared with all lines. */
export function countColumns({ kinds }: Body): number {
  const known = counts.get(kinds) ?? kinds.filter((kind) => kind !== 'any').length;
  counts.set(kinds, known);
  return known;
}

/** Rows that have more or fewer cells than their header names. */

/** One of its values may be in the wrong column. */
export interface LongRow {
  readonly at: number;
  readonly line: Line;
  /** How many columns the header names; without one, how many the other rows have. */
  readonly columns: number;
  readonly isAboveRows?: boolean;
  readonly body: Body;
}

/** Searches from the header to the line directly below the rows. */
export function findLongRow(lines: readonly Line[], body: Body, header: Header, region: Range): LongRow | undefined {
  // A delimiter behind the last name is for a column without one.
  const columns = Math.max(...header.names.map(({ cells }) => cells.length));
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
    if (alignCells(line, whole.slice(0, MAX_ALIGNED))?.length === columns) continue;
    const last = line.cells.length - 1;
    const value = toNumber(line.cells[last]);
    if (!isInRange(value, rangeOf(last)) && isInRange(value, rangeOf(last + 1)))
      return { at: index, line, columns, body };
  }
  return undefined;
}

const MAX_ALIGNED = 20;
/** More rows would not change the range much. */
const MAX_WHOLE_ROWS = 1000;

interface NumberRange {
  readonly least: number;
  readonly most: number;
}

export const toNumber = (cell: string | undefined): number => Number.parseFloat((cell ?? '').replace(',', '.'));

/** The numbers of a column, with a margin. Undefined if there are too few. */
export function numberRange(rows: readonly Line[], column: number): NumberRange | undefined {
  const values = rows.map(({ cells }) => toNumber(cells[column])).filter(Number.isFinite);
  if (values.length < 2) return undefined;
  const [least, most] = [Math.min(...values), Math.max(...values)];
  const margin = Math.max(most - least, Math.abs(most) / 2, Math.abs(least) / 2);
  return { least: least - margin, most: most + margin };
}

/** Whether a number is about as large as those of a column. Without numbers to compare it with, it is. */
export const isInRange = (value: number, range: NumberRange | undefined): boolean =>
  !Number.isFinite(value) || !range || (value >= range.least && value <= range.most);

/** Without the empty cells that trailing delimiters leave. */
export const widthOf = ({ cells }: Line): number => cells.findLastIndex((cell) => cell !== '') + 1;

/** Whether a line has the same kinds of cells as the rows. Names of rows are also those of facts, so they do not count. */
export function fitsBody(line: Line, { kinds }: Body): boolean {
  if (isBlank(line) || !isMeasure(kinds[0]) || line.cells.length !== kinds.length) return false;
  const own = kindsOf(line);
  return own[0] === kinds[0] && mergeKinds(kinds, own) !== undefined;
}
