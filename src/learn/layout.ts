import type { SplitWord } from '../config/grammar.js';
import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, isEmpty, type Line, type TimeSlice } from '../parse/lines.js';
import { type Aside, isStatistic } from './aside.js';
import { type FoundBeside, findBeside } from './beside.js';
import {
  areNumericNames,
  type Body,
  countColumns,
  filledCells,
  findHeader,
  type Header,
  isAxis,
  PLAIN_NUMBER,
  type Range,
} from './header.js';
import { isMeasure, isSimilarWidth, kindsOf, mergeKinds } from './kinds.js';
import { type FoundLevels, findLevels } from './levels.js';

/** Where the tables of a file are: which lines are rows, which are headers, which are plates. */

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
  readonly asides?: readonly Aside[];
  /** Of rows within rows and rows beside facts: the mapping that finds them. */
  readonly described?: {
    readonly name: string;
    readonly mapping: NonNullable<ParseMapping['table']>;
    readonly meta?: FoundBeside['meta'];
  };
}

/** A plate as printed: the line with 1, 2, 3 …, and the rows below it. */
export interface FoundPlate extends Found {
  readonly kind: 'plate';
  /** Whether empty lines separate the readings within it. */
  readonly hasGaps: boolean;
}

/** Each further table takes another search of the lines around it. */
export const MAX_TABLES = 200;
/** Two similar lines occur anywhere. The search continues around this many of them that are not a table. */
const MAX_TRIES = 8;

/**
 * The tables in the order of the lines. `headless`: the first of some lines that look like rows but have no header.
 * `long`: the first row that has more cells than its header.
 */
export async function findLayout(lines: readonly Line[], slice: TimeSlice, delimiter?: string) {
  const nested = findLevels(lines, delimiter);
  const beside = nested.length > 0 ? undefined : findBeside(lines);
  const special = [...nested, ...(beside ? [beside] : [])];
  const isFree = ({ from }: Range) => !special.some((each) => from >= each.from && from < each.to);
  const plates = findPlates(lines).filter(isFree);
  const described = [...nested.flatMap(toTables), ...(beside ? [toTable(beside)] : [])];
  const found: FoundTable[] = [...plates, ...described];
  const headless: Line[] = [];
  const long: LongRow[] = [];
  let top = 0;
  const known = [...plates, ...special].sort((a, b) => a.from - b.from);
  for (const { from, to } of [...known, { from: lines.length, to: lines.length }]) {
    await search(
      lines,
      { from: top, to: from },
      { found, headless, long, slice, known: found.length, tries: MAX_TRIES },
    );
    top = to;
  }
  const isOther = ({ at, body }: LongRow) =>
    found.some((table) => at >= table.from && at < table.to && !(table.kind === 'rows' && table.body === body));
  return {
    tables: found.sort((a, b) => a.from - b.from),
    /** Whether further tables were not searched for. */
    isCut: found.length - plates.length - described.length >= MAX_TABLES,
    /** The first of some rows within rows whose levels cannot be distinguished. */
    mixed: nested.flatMap((each) => (each.levels ? [] : lines.slice(each.from, each.from + 1)))[0],
    headless: headless[0],
    long: long.filter((row) => !isOther(row)).sort((a, b) => a.at - b.at)[0],
  };
}

const toTables = ({ from, to, levels = [] }: FoundLevels): FoundRows[] =>
  levels.map(({ header, kinds, name, mapping }) => ({
    ...{ kind: 'rows', from, to, body: { from, to, kinds }, described: { name, mapping } },
    header: { from, rows: 1, units: 'inHeader', names: [header], skip: [], properties: [] },
  }));

const toTable = ({ from, to, kinds, mapping, meta }: FoundBeside): FoundRows => ({
  ...{ kind: 'rows', from, to, body: { from, to, kinds }, described: { name: 'readings', mapping, meta } },
  header: { from, rows: 0, units: 'inHeader', names: [], skip: [], properties: [] },
});

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
  readonly known: number;
  tries: number;
}

/** Finds the clearest table of a region, then searches above and below it in the same way. */
async function search(lines: readonly Line[], region: Range, state: Search): Promise<void> {
  const { found, headless, slice } = state;
  if (region.to - region.from < 2 || found.length >= MAX_TABLES + state.known) return;
  const rows = await findBody(lines, region, slice);
  if (!rows) return;
  const first = lines[rows.from];
  const body = first && isAxis(first, rows, lines) ? { ...rows, from: rows.from + 1 } : rows;
  const header = findHeader(lines, body, region.from);
  const from = header.rows === 0 ? body.from : header.from;
  const isFound = isTable(lines, body, header, region);
  const table = isFound ? withAsides({ kind: 'rows', from, to: body.to, body, header }, lines, region.to) : undefined;
  if (table) found.push(table);
  else if (isHeadless(lines, body, header, region)) headless.push(...lines.slice(from, from + 1));
  // Lines of a name and a value are facts, which may also have a unit and limits.
  const isSure = isFound || body.kinds[0] !== 'text' || body.kinds.filter(isMeasure).length >= 2;
  const long = isSure && header.rows > 0 ? findLongRow(lines, body, header, region) : undefined;
  if (long) state.long.push(long);
  if (!isFound && body.to - body.from < 3 && (found.length > 0 || state.tries-- <= 0)) return;
  await search(lines, { from: region.from, to: isFound ? from : body.from }, state);
  await search(lines, { from: table?.to ?? body.to, to: region.to }, state);
}

/** Statistics are the last rows, or follow below blank lines. */
function withAsides(table: FoundRows, lines: readonly Line[], end: number): FoundRows {
  const { body, header } = table;
  let { to } = table;
  while (to > body.from + 1 && isStatistic(lines[to - 1])) to--;
  let last = table.to;
  for (let at = last; at < end && (isStatistic(lines[at]) || isBlankAt(lines, at)); at++)
    if (!isBlankAt(lines, at) && fitsBelow(lines[at], body)) last = at + 1;
  const statistics = lines.slice(to, last).filter(isStatistic);
  const asides: Aside[] = [
    ...(header.properties.length > 0 ? [{ name: 'properties' as const, lines: header.properties }] : []),
    ...(statistics.length > 0 && to > body.from + 1 ? [{ name: 'statistics' as const, lines: statistics }] : []),
  ];
  return asides.length === 0 ? table : { ...table, to: Math.max(table.to, last), asides };
}

const isBlankAt = (lines: readonly Line[], at: number): boolean => {
  const line = lines[at];
  return !line || isBlank(line);
};

/** Numbers below numbers, after a word. */
const fitsBelow = (line: Line | undefined, { kinds }: Body): boolean =>
  line !== undefined &&
  kindsOf(line).some(isMeasure) &&
  kindsOf(line).every((kind, n) => !isMeasure(kind) || kind === kinds[n]);

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
  const above = () => lines[from - 1];
  while (from > region.from && isRow(above(), body) && startsAlike(above(), body) && !isHeader(above())) from--;
  const header = lines[from - 1]?.text;
  const isRepeated = (line: Line | undefined) => line !== undefined && line.text === header;
  for (let at = from - 2; at >= region.from; at--) {
    if (isRepeated(lines[at])) from = at + 1;
    else if (!isRow(lines[at], body)) break;
  }
  // A line that only partly looks like a row is one if rows follow it.
  for (let at = to; at < region.to; at++) {
    const line = lines[at];
    if (isRepeated(line) || (isRow(line, body) && startsAlike(line, body))) to = at + 1;
    else if (!isRow(line, body) && !isShortRow(line, body)) break;
  }
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

/** A word where rows have a number or date is the name of a property or statistic. */
const startsAlike = (line: Line | undefined, { kinds }: Body): boolean =>
  line === undefined || !isMeasure(kinds[0]) || kindsOf(line)[0] !== 'text';

/** The first cells of a row: an instrument may leave out the others. */
function isShortRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || !isMeasure(kinds[0]) || line.cells.length < 2 || line.cells.length >= kinds.length) return false;
  const own = kindsOf(line);
  return isMeasure(own[0]) && own.every((kind, n) => kind === 'any' || kind === kinds[n]);
}

/** Whether a line has the same kinds of cells as the rows. Names of rows are also those of facts, so they do not count. */
export function fitsBody(line: Line, { kinds }: Body): boolean {
  if (isBlank(line) || !isMeasure(kinds[0]) || line.cells.length !== kinds.length) return false;
  const own = kindsOf(line);
  return own[0] === kinds[0] && mergeKinds(kinds, own) !== undefined;
}

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

/** The largest plates have 32 rows. More rows without letters are a table, such as a time course. */
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
