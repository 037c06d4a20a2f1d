import type { SplitWord } from '../config/grammar.js';
import { isBlank, isEmpty, isRule, type Line, type TimeSlice } from '../parse/lines.js';
import { bareUnit, isUnit, unitAfterSlash, unitInBrackets } from '../parse/values/unit.js';
import { type CellKind, isMeasure, isSimilarWidth, kindOf, kindsOf, mergeKinds } from './kinds.js';

/** Where the tables of a file are: which lines are rows, which are headers, which are plates. */

/** Indexes of lines: `from` up to but not including `to`. */
interface Range {
  readonly from: number;
  readonly to: number;
}

/** `delimiter`: if it is not that of the file. */
interface Found extends Range {
  readonly delimiter?: SplitWord;
}

export type FoundTable = FoundRows | FoundPlate;

export type Layout = Awaited<ReturnType<typeof findLayout>>;

export interface FoundRows extends Found {
  readonly kind: 'rows';
  readonly body: Body;
  readonly header: Header;
}

/** A plate as printed: the line with 1, 2, 3 …, and the rows below it. */
export interface FoundPlate extends Found {
  readonly kind: 'plate';
  /** Whether empty lines separate the readings within it. */
  readonly hasGaps: boolean;
}

/** Consecutive rows with the same kinds of cells in the same columns. */
export interface Body extends Range {
  readonly kinds: readonly CellKind[];
}

/** The lines above the rows: names, and possibly units. */
interface Header {
  /** The first line with names; without names, the first row. */
  readonly from: number;
  /** How many lines have names. */
  readonly rows: number;
  readonly units: 'inHeader' | 'slash' | 'nextRow';
  readonly names: readonly Line[];
  /** Lines between the names and the rows that are neither. */
  readonly skip: readonly Line[];
  /** The last of those, if it is a title of the rows below it. */
  readonly title?: Line | undefined;
}

/** Each further table takes another search of the lines around it. */
export const MAX_TABLES = 200;
/** Two similar lines occur anywhere. The search continues around this many of them that are not a table. */
const MAX_TRIES = 8;

/**
 * The tables in the order of the lines. `headless`: the first of some lines that look like rows but have no header.
 * `long`: the first row that has more cells than its header.
 */
export async function findLayout(lines: readonly Line[], slice: TimeSlice) {
  const plates = findPlates(lines);
  const found: FoundTable[] = [...plates];
  const headless: Line[] = [];
  const long: LongRow[] = [];
  let top = 0;
  for (const { from, to } of [...plates, { from: lines.length, to: lines.length }]) {
    await search(
      lines,
      { from: top, to: from },
      { found, headless, long, slice, plates: plates.length, tries: MAX_TRIES },
    );
    top = to;
  }
  const isOther = ({ at, body }: LongRow) =>
    found.some((table) => at >= table.from && at < table.to && !(table.kind === 'rows' && table.body === body));
  return {
    tables: found.sort((a, b) => a.from - b.from),
    /** Whether further tables were not searched for. */
    isCut: found.length - plates.length >= MAX_TABLES,
    headless: headless[0],
    long: long.filter((row) => !isOther(row)).sort((a, b) => a.at - b.at)[0],
  };
}

/** A row with more cells than its header: one of its values may be in the wrong column. */
export interface LongRow {
  readonly at: number;
  readonly line: Line;
  /** How many columns the header names. */
  readonly columns: number;
  readonly body: Body;
}

interface Search {
  readonly found: FoundTable[];
  readonly headless: Line[];
  readonly long: LongRow[];
  readonly slice: TimeSlice;
  readonly plates: number;
  tries: number;
}

/** Finds the clearest table of a region, then searches above and below it in the same way. */
async function search(lines: readonly Line[], region: Range, state: Search): Promise<void> {
  const { found, headless, slice } = state;
  if (region.to - region.from < 2 || found.length >= MAX_TABLES + state.plates) return;
  const rows = await findBody(lines, region, slice);
  if (!rows) return;
  const first = lines[rows.from];
  const body = first && isAxis(first, rows, lines) ? { ...rows, from: rows.from + 1 } : rows;
  const header = findHeader(lines, body, region.from);
  const from = header.rows === 0 ? body.from : header.from;
  const isFound = isTable(lines, body, header, region);
  if (isFound) found.push({ kind: 'rows', from, to: body.to, body, header });
  else if (isHeadless(lines, body, header, region)) headless.push(...lines.slice(from, from + 1));
  // Lines of a name and a value are facts, which may also have a unit and limits.
  const isSure = isFound || body.kinds[0] !== 'text' || body.kinds.filter(isMeasure).length >= 2;
  const long = isSure && header.rows > 0 ? findLongRow(lines, body, header, region) : undefined;
  if (long) state.long.push(long);
  if (!isFound && body.to - body.from < 3 && (found.length > 0 || state.tries-- <= 0)) return;
  await search(lines, { from: region.from, to: isFound ? from : body.from }, state);
  await search(lines, { from: body.to, to: region.to }, state);
}

/** Searches from the header to the line directly below the rows. */
function findLongRow(lines: readonly Line[], body: Body, header: Header, region: Range): LongRow | undefined {
  const columns = Math.max(...header.names.map(widthOf));
  if (columns < 2) return undefined;
  for (let at = header.from + header.rows; at <= body.to && at < region.to; at++) {
    const line = lines[at];
    if (!line || widthOf(line) <= columns || isBlank(line)) continue;
    if (kindsOf(line).some((kind, n) => n < columns && isMeasure(kind) && kind === body.kinds[n]))
      return { at, line, columns, body };
  }
  return undefined;
}

/** Without the empty cells that trailing delimiters leave. */
const widthOf = ({ cells }: Line): number => cells.findLastIndex((cell) => cell !== '') + 1;

/** Distinguishes tables from lists of facts, which can look alike. */
function isTable(lines: readonly Line[], body: Body, header: Header, region: Range): boolean {
  const rows = body.to - body.from - Number(header.from === body.from && header.rows > 0);
  const columns = countColumns(body);
  const hasNumbers = body.kinds.some(isMeasure);
  if (rows < 3 && !isIsolated(lines, { from: header.from, to: body.to }, region)) return false;
  if (columns < 2) return columns === 1 && hasNumbers && rows >= 10;
  if (header.rows === 0) {
    if (body.kinds[0] !== 'text') return rows >= 3;
    // Lines that each start with another name are facts; lines that start with the same few words are records.
    return columns >= 3 && rows >= 3 && repetition(lines, body) >= 0.5;
  }
  if (isListOfFacts(lines, body, header)) return false;
  if (columns >= 3) return rows >= (hasNumbers ? 1 : 3);
  if (body.kinds[0] !== 'text') return true;
  // Headers have units in brackets, facts do not.
  if (/[([][^)\]]+[)\]]$/.test(lines[header.from]?.cells.at(-1)?.trim() ?? '')) return true;
  const filled = lines.slice(region.from, region.to).filter((line) => !isBlank(line)).length;
  return rows >= 3 && lines.slice(region.from, header.from).every(isBlank) && rows * 5 > filled * 3;
}

export const countColumns = ({ kinds }: Body): number => kinds.filter((kind) => kind !== 'any').length;

/** Isolated rows of a word and several numbers. Facts have one value each. */
const isHeadless = (lines: readonly Line[], body: Body, header: Header, region: Range): boolean =>
  header.rows === 0 &&
  body.kinds[0] === 'text' &&
  body.to - body.from >= 2 &&
  body.kinds.filter(isMeasure).length >= 2 &&
  isIsolated(lines, body, region);

/** Whether the lines directly above and below are blank, have a single cell or are outside the region. */
function isIsolated(lines: readonly Line[], { from, to }: Range, region: Range): boolean {
  const isFree = (index: number) => {
    const line = index < region.from || index >= region.to ? undefined : lines[index];
    return !line || isBlank(line) || filledCells(line).length === 1;
  };
  return isFree(from - 1) && isFree(to);
}

const filledCells = ({ cells }: Line): string[] => cells.filter((cell) => cell !== '');

/** The share of first cells that occur more than once. */
function repetition(lines: readonly Line[], { from, to }: Range): number {
  const first = lines.slice(from, to).map(({ cells }) => cells[0] ?? '');
  return 1 - (new Set(first).size - 1) / Math.max(1, first.length - 1);
}

/** A fact has at most name, value, unit and limits. */
const MAX_FACT_CELLS = 5;

/** Lines of name, value and unit, below a line that only looks like a header. */
function isListOfFacts(lines: readonly Line[], body: Body, header: Header): boolean {
  if (body.kinds[0] !== 'text') return false;
  // Numbers as names, above rows that have names of their own.
  if (header.names.some(({ cells }) => cells.filter((cell) => PLAIN_NUMBER.test(cell)).length >= 3)) return false;
  const columns = countColumns(body);
  const named = header.names[0] ? filledCells(header.names[0]).length : 0;
  const areNames = repetition(lines, body) < 0.5;
  if (named < columns) return areNames;
  const isShort = body.to - body.from < 30 && columns <= MAX_FACT_CELLS;
  const around = { from: header.from, to: body.to };
  // Other lines directly above or below: these are facts too, some of which look alike.
  if (areNames && isShort && !isIsolated(lines, around, { from: 0, to: lines.length })) return true;
  const above = lines[body.from - 1]?.cells.length ?? 0;
  return !body.kinds.some(isMeasure) && header.from === body.from && above > 1;
}

/** Searches above the rows for their names. */
function findHeader(lines: readonly Line[], body: Body, top: number): Header {
  if (!body.kinds.some(isMeasure)) {
    // In a table of words, only the first line can be the header.
    const names = lines.slice(body.from, body.from + 1);
    return { from: body.from, rows: 1, units: 'inHeader', names, skip: [] };
  }
  const [nearest, ...others] = namesAbove(lines, body, top);
  if (nearest === undefined) return findDistantHeader(lines, body, top);
  const split = others[0] === undefined ? findSplitHeader(lines, nearest, body, top) : undefined;
  if (split) return split;
  const hasUnits = others[0] !== undefined && isUnitRow(lines[nearest]);
  const names = hasUnits ? others : [nearest, ...others];
  return {
    from: names.at(-1) ?? nearest,
    rows: names.length,
    units: hasUnits ? 'nextRow' : unitsOf(lines[nearest], body),
    names: names.toReversed().flatMap((index) => lines[index] ?? []),
    skip: [],
  };
}

/**
 * Names, a second line that continues some of them, units. In lines split at spaces, the continuations
 * cannot be assigned to names, so they are left out.
 */
function findSplitHeader(lines: readonly Line[], units: number, body: Body, top: number): Header | undefined {
  const [names, words] = [lines[units - 2], lines[units - 1]];
  if (!names || !words || units - 2 < top || !isUnitRow(lines[units])) return undefined;
  if (!isNames(names, body.kinds.length, 0.75) || !isNames(words, body.kinds.length, 0)) return undefined;
  return { from: units - 2, rows: 1, units: 'nextRow', names: [names], skip: [words] };
}

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
  if (!names) return { from: body.from, rows: 0, units: 'inHeader', names: [], skip: [] };
  return {
    from: lines.indexOf(names),
    rows: 1,
    units: unitsOf(names, body),
    names: [names],
    skip: above.slice(0, n).reverse(),
    title: above[0],
  };
}

/** Indexes of the lines directly above that can be names, nearest first: words only, about one for each column. */
function namesAbove(lines: readonly Line[], body: Body, top: number): number[] {
  const found: number[] = [];
  const width = body.kinds.length;
  for (let index = body.from - 1; index >= top && found.length < 3; index--) {
    const line = lines[index];
    if (!line) break;
    if (isRule(line)) continue;
    const isBelowNames = found.length === 0 || (found.length === 1 && isUnitRow(lines[found[0] ?? 0]));
    // Blank lines may separate rows, units and names, but not two lines of names.
    if (isBlank(line) && isBelowNames) continue;
    if (found.length === 0 && (areNumericNames(line, body.kinds) || isAxis(line, body, lines))) return [index];
    if (!isNames(line, width, found.length === 0 ? 0.5 : 0.75)) break;
    // Lines of two cells above a header are facts.
    if (found.length > 0 && width < 3 && !isUnitRow(lines[found[0] ?? 0])) break;
    found.push(index);
  }
  return found;
}

function isNames(line: Line, width: number, share: number): boolean {
  const filled = filledCells(line);
  return filled.length >= Math.max(2, share * width) && filled.every(isWord);
}

const isWord = (cell: string): boolean => kindOf(cell) === 'text' || (kindOf(cell) === 'any' && !/\d/.test(cell));

function isUnitRow(line: Line | undefined): boolean {
  const cells = line ? filledCells(line) : [];
  const units = cells.filter((cell) => /^[[(].*[\])]$/.test(cell) || isUnit(bareUnit(cell) ?? ''));
  return cells.length > 0 && units.length * 2 > cells.length;
}

function unitsOf(line: Line | undefined, { kinds }: Body): 'slash' | 'inHeader' {
  const names = line?.cells.filter((_, n) => kinds[n] === 'number') ?? [];
  const slashes = names.filter((name) => unitAfterSlash(name, false));
  const isSlash = slashes.length * 2 > names.length && !names.some((name) => unitInBrackets(name));
  return isSlash ? 'slash' : 'inHeader';
}

/** The lines of a region that most clearly are rows of one table. */
async function findBody(lines: readonly Line[], { from, to }: Range, slice: TimeSlice): Promise<Body | undefined> {
  const isSpaced = isDoubleSpaced(lines.slice(from, to));
  let best: Body | undefined;
  let open: Body | undefined;
  for (let index = from; index < to; index++) {
    if (index % 256 === 0 && slice.isOver()) await slice.renew();
    const line = lines[index];
    if (!line || (isSpaced && isBlank(line))) continue;
    const row = isBlank(line) ? undefined : kindsOf(line);
    const kinds = open && row ? mergeKinds(open.kinds, row) : undefined;
    open = row && { from: open && kinds ? open.from : index, to: index + 1, kinds: kinds ?? row };
    if (open && weight(open) > weight(best)) best = open;
  }
  return best && extend(best, lines, { from, to });
}

/** Some instruments write a blank line after every line. */
const isDoubleSpaced = (lines: readonly Line[]): boolean =>
  lines.length > 4 && lines.filter(isBlank).length * 5 >= lines.length * 2;

/** Grows with the number of rows and columns, and with numbers. A single column counts little. */
function weight(body: Body | undefined): number {
  if (!body) return 0;
  const columns = countColumns(body);
  const area = (body.to - body.from) * (columns > 1 ? columns - 0.5 : 0.1);
  return body.kinds.some(isMeasure) ? area : area / 4;
}

/** Adds adjacent rows that have a stray word in a column of numbers, and rows beyond a repeated header. */
function extend(body: Body, lines: readonly Line[], region: Range): Body {
  let { from, to } = body;
  const isHeader = (line: Line | undefined) =>
    line !== undefined && (areNumericNames(line, body.kinds) || isAxis(line, body, lines));
  while (from > region.from && isRow(lines[from - 1], body) && !isHeader(lines[from - 1])) from--;
  const header = lines[from - 1]?.text;
  const isRepeated = (line: Line | undefined) => line !== undefined && line.text === header;
  for (let at = from - 2; at >= region.from; at--) {
    if (isRepeated(lines[at])) from = at + 1;
    else if (!isRow(lines[at], body)) break;
  }
  while (to < region.to && (isRow(lines[to], body) || isRepeated(lines[to]))) to++;
  return { from, to, kinds: body.kinds };
}

/** Whether an adjacent line belongs to the rows: most cells are of the right kind, at least one is a number. */
function isRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || isBlank(line) || kinds.length < 2) return false;
  if (!isSimilarWidth(line.cells.length, kinds.length)) return false;
  const own = kindsOf(line);
  const filled = own.filter((kind) => kind !== 'any').length;
  const matching = own.filter((kind, n) => kind !== 'any' && kind === kinds[n]);
  if (!matching.some(isMeasure)) return false;
  // An axis above rows that start with a date.
  if (own[0] === 'number' && kinds[0] === 'date') return false;
  return matching.length * 2 > filled || own[0] === kinds[0];
}

/** Whether a line has the same kinds of cells as the rows. Names of rows are also those of facts, so they do not count. */
export function fitsBody(line: Line, { kinds }: Body): boolean {
  if (isBlank(line) || !isMeasure(kinds[0]) || line.cells.length !== kinds.length) return false;
  const own = kindsOf(line);
  return own[0] === kinds[0] && mergeKinds(kinds, own) !== undefined;
}

/** A header of wavelengths, channels or wells: a word, then different numbers. */
function areNumericNames({ cells }: Line, columns: readonly CellKind[]): boolean {
  const [first = '', ...others] = cells;
  if (others.length < 3 || cells.length !== columns.length || columns[0] === 'text') return false;
  if (kindOf(first) !== 'text' || new Set(others).size < others.length) return false;
  return others.every((cell) => /^\d+(?:\.\d+)?$/.test(cell));
}

/** A header of words and of numbers that grow or fall, above rows of other numbers: `Sample,450,500,550`. */
function isAxis(line: Line, { from, to, kinds }: Body, lines: readonly Line[]): boolean {
  const { cells } = line;
  if (cells.length !== kinds.length || kinds[0] === 'number') return false;
  const inNumbers = cells.filter((cell, n) => kinds[n] === 'number' && cell !== '');
  const axis = inNumbers.filter((cell) => PLAIN_NUMBER.test(cell)).map(Number);
  if (axis.length < 3 || !isMonotonic(axis)) return false;
  const words = cells.filter((cell, n) => cell !== '' && !(kinds[n] === 'number' && PLAIN_NUMBER.test(cell)));
  if (!words.every(isWord)) return false;
  // A word in a column of numbers is its name. Without one, the axis has to differ from all rows.
  if (axis.length < inNumbers.length) return true;
  const below = lines.slice(Math.max(from, lines.indexOf(line) + 1), Math.min(to, from + MAX_AXIS_ROWS));
  const valuesOf = (row: Line) => row.cells.filter((cell, n) => kinds[n] === 'number' && cell !== '');
  const hasFraction = (row: Line) => valuesOf(row).some((cell) => /[.,]\d/.test(cell));
  const [least, most] = [Math.min(...axis), Math.max(...below.flatMap((row) => valuesOf(row).map(Number)))];
  return axis.every(Number.isInteger) && below.length > 0 && below.every(hasFraction) && least > most;
}

const PLAIN_NUMBER = /^\d+(?:\.\d+)?$/;
const MAX_AXIS_ROWS = 100;

const isMonotonic = (numbers: readonly number[]): boolean => {
  const steps = numbers.slice(1).map((number, n) => number - (numbers[n] ?? 0));
  return steps.every((step) => step > 0) || steps.every((step) => step < 0);
};

const MIN_PLATE_COLUMNS = 3;
/** After a word, 1 2 3 can be an ordinary row. */
const MIN_COLUMNS_AFTER_WORD = 6;

function findPlates(lines: readonly Line[]): FoundPlate[] {
  const plates: FoundPlate[] = [];
  for (let index = 0; index < lines.length; index++) {
    const width = plateWidth(lines[index]);
    if (width === undefined || plateWidth(lines[index + 1]) !== undefined) continue;
    const { to, hasGaps } = findPlateEnd(lines, index + 1, width);
    if (to > index + 1 && isOnPlate(lines.slice(index + 1, to)))
      plates.push({ kind: 'plate', from: index, to, hasGaps });
    index = Math.max(index, to - 1);
  }
  return plates;
}

/** The largest plates have 32 rows. Rows without letters that are more belong to a table, such as a course in time. */
const isOnPlate = (rows: readonly Line[]): boolean =>
  rows.filter((row) => !isBlank(row)).length <= MAX_PLATE_ROWS ||
  rows.some(({ cells: [first = ''] }) => /^[A-Z]{1,2}$/.test(first)) ||
  rows.some(isBlank);

const MAX_PLATE_ROWS = 32;

/** The number of cells up to the last plate column, if the line is 1, 2, 3 … with no number or letter before. */
function plateWidth(line: Line | undefined): number | undefined {
  const start = line?.cells.findIndex((cell) => cell === '1' || cell === '01') ?? -1;
  if (!line || start < 1) return undefined;
  const left = line.cells.slice(0, start);
  if (left.some((cell) => /\d/.test(cell) || /^[A-Z]{1,2}$/.test(cell))) return undefined;
  let end = start;
  while (Number(line.cells[end]) === end - start + 1 && line.cells[end] !== '') end++;
  return end - start >= (left[0] === '' ? MIN_PLATE_COLUMNS : MIN_COLUMNS_AFTER_WORD) ? end : undefined;
}

/** A plate ends at the first line that is not a row of it. Empty lines belong to it if rows follow. */
function findPlateEnd(lines: readonly Line[], from: number, width: number): Pick<FoundPlate, 'to' | 'hasGaps'> {
  let to = from;
  let hasGaps = false;
  for (let index = from; index < lines.length; index++) {
    const line = lines[index];
    if (!line) break;
    if (isEmpty(line)) {
      const next = lines[index + 1];
      if (!next || !isPlateRow(next, width) || isBlank(next)) break;
      hasGaps = true;
      continue;
    }
    if (!isPlateRow(line, width)) break;
    to = index + 1;
  }
  return { to, hasGaps };
}

const isPlateRow = (line: Line, width: number): boolean =>
  plateWidth(line) === undefined && line.cells.length > Math.min(3, width - 1) && line.cells.length + 12 >= width;
