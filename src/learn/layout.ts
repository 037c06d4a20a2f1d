import type { SplitWord } from '../config/grammar.js';
import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line, type TimeSlice } from '../parse/lines.js';
import { unitInName } from '../parse/values/unit.js';
import { type Aside, findMeans, findStatistics, findStatisticsIn, findSums } from './aside.js';
import { type FoundBeside, findFactsLeft, findPairsBeside } from './beside.js';
import { findNamedLists, findPlates, findTransposed, type PlateRange } from './grids.js';
import {
  countColumns,
  findHeader,
  findLongRow,
  type Header,
  type LongRow,
  NO_HEADER,
  unitColumnsOf,
  widthOf,
} from './header.js';
import {
  areSamples,
  areSignedPairs,
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
import { type FoundLevels, findLevels } from './levels.js';
import { belowAxis, PLAIN_NUMBER } from './numbered-names.js';
import { belowSettings, findSingleValues, judgeFirstRow, unclearRow } from './parameters.js';
import { findBody, MAX_FACT_CELLS } from './rows.js';

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
  /** Whether there is a column for each sample: the first one has the names of the quantities. */
  readonly isTransposed?: boolean;
  /** Whether the columns have no names, because the lines in `header.skip` have names for more or fewer columns. */
  readonly isNameless?: boolean;
  /** Of rows within rows and rows beside facts: the mapping that finds them. */
  readonly described?: {
    readonly name: string;
    readonly mapping: NonNullable<ParseMapping['table']>;
    readonly meta?: FoundBeside['meta'];
  };
}

/** A plate as printed. */
export interface FoundPlate extends Found, PlateRange {
  readonly kind: 'plate';
}

/** Each further table takes another search of the lines around it. */
export const MAX_TABLES = 200;
/** Two similar lines occur anywhere. The search continues around this many of them that are not a table. */
const MAX_TRIES = 8;

/**
 * The tables in the order of the lines. `headless`: the first of some lines that look like rows but have no header.
 * `long`: the first row that has more cells than its header. `facts`: the numbers of lines that are no rows.
 */
export async function findLayout(
  lines: readonly Line[],
  slice: TimeSlice,
  delimiter?: string,
  facts: ReadonlySet<number> = NO_LINES,
) {
  const nested = facts.size > 0 ? [] : findLevels(lines, delimiter);
  const beside = nested.length > 0 ? [] : findFactsBeside(lines, facts);
  const special: Range[] = [...nested, ...beside, ...rangesOf(lines, facts)];
  const isFree = ({ from }: Range) => !special.some((each) => from >= each.from && from < each.to);
  const plates = findPlates(lines)
    .filter(isFree)
    .map((plate): FoundPlate => ({ kind: 'plate', ...plate }));
  special.push(...plates);
  const listed = [
    ...findTransposed(lines).map((body) => ({ ...belowNames(body, lines), isTransposed: true })),
    ...findNamedLists(lines).map((body) => belowNames(body, lines)),
  ].filter(isFree);
  special.push(...listed);
  const described = [...nested.flatMap(toTables), ...beside.map(toTable), ...listed];
  const found: FoundTable[] = [...plates, ...described];
  const headless: Line[] = [];
  const long: LongRow[] = [];
  let top = 0;
  const known = special.sort((a, b) => a.from - b.from);
  const state: Search = {
    found,
    headless,
    long,
    slice,
    known: found.length,
    isDelimited: delimiter !== undefined,
    tries: MAX_TRIES,
    linesLeft: MAX_LINES_SEARCHED,
  };
  for (const { from, to } of [...known, { from: lines.length, to: lines.length }]) {
    await search(lines, { from: top, to: from }, state);
    state.tries = MAX_TRIES;
    top = to;
  }
  const isOther = ({ at, body }: LongRow) =>
    found.some((table) => at >= table.from && at < table.to && !(table.kind === 'rows' && table.body === body));
  const nameless = found.find((table) => table.kind === 'rows' && table.isNameless);
  return {
    tables: found.sort((a, b) => a.from - b.from),
    /** The first names that cannot be assigned to columns. */
    nameless: nameless?.kind === 'rows' ? nameless.header.skip[0] : undefined,
    /** Whether further tables were not searched for. */
    isCut: found.length - plates.length - described.length >= MAX_TABLES || state.linesLeft < 0,
    /** The first of some rows within rows whose levels cannot be distinguished. */
    mixed: nested.flatMap((each) => (each.levels ? [] : lines.slice(each.from, each.from + 1)))[0],
    headless: headless[0],
    long: long.filter((row) => !isOther(row)).sort((a, b) => a.at - b.at)[0],
  };
}

const NO_LINES: ReadonlySet<number> = new Set();

function findFactsBeside(lines: readonly Line[], facts: ReadonlySet<number>): readonly FoundBeside[] {
  const alone = facts.size > 0 ? undefined : (findFactsLeft(lines) ?? findSingleValues(lines));
  return alone ? [alone] : findPairsBeside(lines, ({ number }) => facts.has(number));
}

const rangesOf = (lines: readonly Line[], numbers: ReadonlySet<number>): Range[] =>
  numbers.size === 0 ? [] : lines.flatMap(({ number }, n) => (numbers.has(number) ? [{ from: n, to: n + 1 }] : []));

const toTables = ({ from, to, levels = [] }: FoundLevels): FoundRows[] =>
  levels.map(({ header, kinds, name, mapping }) => ({
    ...{ kind: 'rows', from, to, body: { from, to, kinds }, described: { name, mapping } },
    header: { from, rows: 1, units: 'inHeader', names: [header], skip: [], properties: [] },
  }));

const toTable = ({ from, to, kinds, mapping, meta }: FoundBeside): FoundRows => ({
  ...{ kind: 'rows', from, to, body: { from, to, kinds }, described: { name: 'readings', mapping, meta } },
  header: { ...NO_HEADER, from },
});

const belowNames = (body: Body, lines: readonly Line[]): FoundRows => ({
  ...{ kind: 'rows', from: body.from - 1, to: body.to, body },
  header: {
    ...{ from: body.from - 1, rows: 1, units: 'inHeader', names: lines.slice(body.from - 1, body.from) },
    ...{ skip: [], properties: [] },
  },
});

interface Search {
  readonly found: FoundTable[];
  readonly headless: Line[];
  readonly long: LongRow[];
  readonly slice: TimeSlice;
  readonly known: number;
  /** Whether an empty cell leaves a trace, unlike in lines split at blanks. */
  readonly isDelimited: boolean;
  tries: number;
  linesLeft: number;
}

/** Each search looks at all lines of its region, so thousands of small lists of facts would take minutes. */
const MAX_LINES_SEARCHED = 1_000_000;

/** Finds the clearest table of a region, then searches above and below it in the same way. */
async function search(lines: readonly Line[], region: Range, state: Search): Promise<void> {
  const { found, headless, slice } = state;
  if (region.to - region.from < 2 || found.length >= MAX_TABLES + state.known || state.linesLeft < 0) return;
  state.linesLeft -= region.to - region.from;
  const rows = await findBody(lines, region, slice);
  if (!rows) return;
  const below = belowAxis(lines, rows);
  const named = findHeader(lines, below, region.from);
  const start = named.rows === 0 ? judgeFirstRow(lines, below) : 'row';
  const body = start === 'settings' ? belowSettings(lines, below) : below;
  const header = { ...named, ...(start === 'settings' && { from: body.from }) };
  if (start === 'unclear') state.long.push(...unclearRow(lines, body));
  const from = header.rows === 0 ? body.from : header.from;
  const rowsAndNames = withSureNames({ kind: 'rows', from, to: body.to, body, header }, lines, state.isDelimited);
  const isNext = header.rows === 0 && found.some((table) => continues(lines, body, table));
  const isFound =
    (isNext || isTable(lines, body, header, region)) && !(rowsAndNames.isNameless && countRows(lines, body) < 3);
  const table = isFound ? withAsides(rowsAndNames, lines, region.to, state.isDelimited) : undefined;
  if (table) found.push(...partsOf(table, lines));
  else if (isHeadless(lines, body, header, region)) headless.push(...lines.slice(from, from + 1));
  // Lines of a name and a value are facts, which may also have a unit and limits.
  const areRows = body.to - body.from > 1 && body.kinds.filter(isMeasure).length >= 2;
  const isSure = isFound || body.kinds[0] !== 'text' || (areRows && !isListOfFacts(lines, body, header));
  const hasNames = header.rows > 0 && !table?.isNameless;
  const long = isSure && hasNames ? findLongRow(lines, body, header, region) : undefined;
  if (long) state.long.push(long);
  if (!isFound && body.to - body.from < 3 && (found.length > 0 || state.tries-- <= 0)) return;
  await search(lines, { from: region.from, to: isFound ? from : body.from }, state);
  // The last of some lines that are no rows can have the names of the row below it.
  const [last, next] = lines.slice(body.to - 1, body.to + 1);
  const areNames = last !== undefined && last.cells.length === next?.cells.length && last.cells.every(isWord);
  const isAbove = !isFound && body.to - body.from > 1 && areNames && kindsOf(next).every(isMeasure);
  await search(lines, { from: table?.to ?? body.to - Number(isAbove), to: region.to }, state);
}

/** Rows under a title like that of an earlier table, whose names are theirs too: `Cycle 1`, names, rows; `Cycle 2`, rows. */
function continues(lines: readonly Line[], { from, kinds }: Body, table: FoundTable): boolean {
  if (table.kind === 'plate' || table.to > from || table.body.kinds.length !== kinds.length) return false;
  const titleOf = (index: number) => {
    const title = lines.slice(0, index).findLast((line) => !isBlank(line));
    return title && filledCells(title).length < 3 ? title.text.trim().replace(/\d+/g, '0') : undefined;
  };
  const title = titleOf(from);
  const isLike =
    table.header.rows > 0 && title !== undefined && /\p{L}.*0|0.*\p{L}/u.test(title) && title === titleOf(table.from);
  return isLike && mergeKinds(table.body.kinds, kinds) !== undefined;
}

/** Words between rows are titles of parts if the first row has a title too: `Group A`, `Group B`. */
function partsOf(table: FoundRows, lines: readonly Line[]): FoundRows[] {
  const { body } = table;
  const { between = [] } = body;
  const title = between.length > 0 ? titleOf(table, lines) : undefined;
  if (!title) return [table];
  // Titles that recur do not show which table a part belongs to.
  const titles = new Set([title, ...between].map(({ text }) => text.trim()));
  if (lines.filter(({ text }) => titles.has(text.trim())).length > between.length + 1) return [table];
  const starts = between.map((line) => lines.indexOf(line));
  return [body.from - 1, ...starts].map((at, n): FoundRows => {
    const own = { from: at + 1, to: starts[n] ?? table.to, kinds: body.kinds };
    if (n === 0) return { ...table, to: own.to, body: own };
    return { kind: 'rows', from: own.from, to: own.to, body: own, header: { ...NO_HEADER, from: own.from } };
  });
}

/** Directly above the first row, or above the names if it starts like the words between the rows: `1) Heat`, `2) Hold`. */
function titleOf({ from, body: { between = [], ...body } }: FoundRows, lines: readonly Line[]): Line | undefined {
  const isLike = (start: RegExp) => (title: Line) => {
    const starts = [title, ...between].map(({ text }) => start.exec(text)?.[0].replace(/\d+/g, '0') ?? '');
    return isBetweenRows(title, body.kinds) && new Set(starts).size === 1;
  };
  const [above] = lines.slice(body.from - 1, body.from).filter(isLike(/^\s*["']?\P{L}+/u));
  return above ?? lines.slice(from - 1, from).find(isLike(/^\s*\S+/));
}

/** What people add to readings. Instruments may leave out the cell if there is nothing in it. */
const REMARK = /comment|remark|note|flag|status|message|error|warning|info|bemerkung|kommentar|annotation/i;
const isRemark = ({ cells }: Line, rows: readonly Line[]): boolean =>
  cells.slice(Math.max(...rows.map((row) => row.cells.length))).every((name) => name === '' || REMARK.test(name));

/**
 * Drops the names if every row has fewer cells: any of them could be missing. If a row has empty cells inside, only its
 * last ones are missing.
 */
function withSureNames(table: FoundRows, lines: readonly Line[], isDelimited: boolean): FoundRows {
  const { header, body } = table;
  const [names, ...others] = header.names;
  if (!names || others.length > 0 || header.from >= body.from) return table;
  const width = Math.max(widthOf(names), ...unitColumnsOf(lines, body, header).map((n) => n + 1));
  const rows = lines.slice(body.from, body.to).filter((line) => !isBlank(line) && line.text !== names.text);
  const isEnd = isRemark(names, rows) || rows.some((row) => row.cells.slice(0, widthOf(row)).includes(''));
  const isShort = isDelimited && rows.every(({ cells }) => cells.length < width) && !isEnd;
  const placed = isDelimited && names.cells.length > width + 1 ? names.cells.length : 0;
  const isLong = width > 1 && rows.every((row) => widthOf(row) > width && row.cells.length > placed);
  // A single blank may separate two columns, of the names and of a row in different places.
  const isSplit = names.cells.some((cell) => /^[[(].*[\])]$/.test(cell)) && /\S [[(]/.test(names.text);
  const isJoined = !isDelimited && (isSplit || rows.some(({ cells }) => cells.some(hasTwoNumbers)));
  return rows.length > 0 && (isShort || isLong || isJoined) ? withoutNames(table) : table;
}

/** `71.62 kPa 97.41 mL/min` */
const hasTwoNumbers = (cell: string): boolean => /^[-+]?\d[\d.,]* \p{L}\S* [-+]?\d[\d.,]*(?: |$)/u.test(cell);

/** The names stay lines of the table, so that they are not read as facts. */
export const withoutNames = (table: FoundRows): FoundRows => ({
  ...table,
  isNameless: true,
  header: {
    ...NO_HEADER,
    from: table.body.from,
    skip: [...table.header.names, ...table.header.skip],
  },
});

/** Statistics are rows, or follow below them. */
function withAsides(table: FoundRows, lines: readonly Line[], end: number, isDelimited: boolean): FoundRows {
  const { body, header } = table;
  const hasUnits = header.units === 'slash' || header.names.some(({ cells }) => cells.some((name) => unitInName(name)));
  let last = table.to;
  for (let at = last; at < end && at < last + MAX_ASIDES; at++) {
    const { asides, heading } = findStatistics(lines.slice(table.to, at + 1), hasUnits);
    const line = lines[at];
    if (!line || isBlank(line) || line === heading) continue;
    if (!asides.some((aside) => aside.lines.includes(line)) || !fitsBelow(line, body, isDelimited)) break;
    last = at + 1;
  }
  const { asides: statistics } = findStatistics(lines.slice(body.from, last), hasUnits);
  const found = new Set(statistics.flatMap((aside) => aside.lines));
  const rows = lines.slice(body.from, table.to).filter((line) => !found.has(line));
  const [names, ...others] = header.names;
  const marked =
    isDelimited && names && others.length === 0 ? findStatisticsIn(lines.slice(body.from, body.to), names) : undefined;
  const below = lines.slice(table.to, Math.min(end, table.to + 1)).filter((line) => fitsBelow(line, body, isDelimited));
  const sums =
    isDelimited && !marked && found.size === 0 ? findSums(lines.slice(body.from, table.to), below) : undefined;
  if (below[0] && sums?.lines.includes(below[0])) last = table.to + 1;
  const means = marked || sums || found.size > 0 ? [] : findMeans(lines.slice(body.from, table.to), hasUnits);
  const { asides: described } = findStatistics(header.properties, hasUnits);
  const isAll = described.reduce((sum, aside) => sum + aside.lines.length, 0) === header.properties.length;
  const [above, properties] = isAll ? [described, []] : [[], header.properties];
  const asides: Aside[] = [
    ...(properties.length > 0 ? [{ name: 'properties' as const, lines: properties }] : []),
    ...above,
    // A table that starts with statistics has nothing else.
    ...(rows.length > 1 && rows[0] === lines[body.from] ? statistics : []),
    ...(marked && statistics.length === 0 ? [marked] : []),
    ...(sums ? [sums] : []),
    ...means,
  ];
  return asides.length === 0 ? table : { ...table, to: Math.max(table.to, last), asides };
}

/** Statistics below a table, and blank lines among them. */
const MAX_ASIDES = 20;

/** Numbers below numbers, after a word. Between blanks, any of the cells can be the one that is missing. */
const fitsBelow = (line: Line | undefined, { kinds }: Body, isDelimited: boolean): boolean =>
  line !== undefined &&
  (isDelimited || line.cells.length === kinds.length) &&
  kindsOf(line).some(isMeasure) &&
  kindsOf(line).every((kind, n) => !isMeasure(kind) || kind === kinds[n]);

/** Distinguishes tables from lists of facts, which can look alike. */
function isTable(lines: readonly Line[], body: Body, header: Header, region: Range): boolean {
  const rows = countRows(lines, body) - Number(header.from === body.from && header.rows > 0);
  const columns = countColumns(body);
  const hasNumbers = body.kinds.some(isMeasure);
  const all = lines.slice(body.from, body.to);
  // `name 0 = Pressure`
  const hasSigns = (n: number) => all.every(({ cells }) => cells[n] === ':' || cells[n] === '=');
  if (body.kinds.some((_, n) => hasSigns(n))) return false;
  if (!hasNumbers && header.names.some(arePairs)) return false;
  if (all.every(areMarkedPairs) && all.some((line) => filledCells(line).length > 1)) return false;
  if (header.rows > 0 && areSignedPairs([...header.names, ...all.filter((line) => !isBlank(line))])) return false;
  if (rows < 3 && !areClearRows(lines, body, header, region)) return false;
  if (columns < 2) return columns === 1 && hasNumbers && rows >= 10;
  if (header.rows === 0) {
    // Indented facts have an empty first cell, and few numbers.
    const isIndented = body.kinds[0] === 'any' && body.kinds.filter(isMeasure).length <= 2;
    const first = isIndented ? body.kinds.find((kind) => kind !== 'any') : body.kinds[0];
    // Without numbers, the lines of a log.
    if (first !== 'text' || !hasNumbers) return rows >= 3;
    // Lines that each start with another name are facts; lines that start with the same few words are records.
    return columns >= 3 && rows >= 3 && repetition(lines, body) >= 0.5;
  }
  if (isListOfFacts(lines, body, header)) return false;
  if (columns >= 3) return rows >= (hasNumbers ? 1 : 3);
  if (body.kinds[0] !== 'text') return true;
  // `Event;Time` above events and their times.
  if (body.kinds[1] === 'date' && header.from < body.from && DATE_NAME.test(header.names[0]?.cells[1] ?? ''))
    return true;
  // Headers have units in brackets, facts do not.
  if (/[([][^)\]]+[)\]]$/.test(lines[header.from]?.cells.at(-1)?.trim() ?? '')) return true;
  // Words below words: only a name such as `Sample` tells names of columns from the first of some facts.
  if (!hasNumbers && !isSubject(lines[header.from]?.cells[0] ?? '')) return false;
  const filled = lines.slice(region.from, region.to).filter((line) => !isBlank(line)).length;
  return rows >= 3 && lines.slice(region.from, header.from).every(isBlank) && rows * 5 > filled * 3;
}

const DATE_NAME = /^(?:date|time|timestamp|datum|zeit|uhrzeit|heure|fecha|hora)(?:[ _/&]*(?:date|time|zeit))?$/i;

/** `Lamp: D2` `Gain: 4` */
const arePairs = (line: Line): boolean => {
  const filled = filledCells(line);
  return filled.length > 1 && filled.every((cell) => /^\p{L}[^:=]{0,30}:(?!\d)/u.test(cell));
};

/** `Lamp:` `D2` `Gain =` `4`, or a value alone. */
const areMarkedPairs = (line: Line): boolean => {
  const filled = filledCells(line);
  return filled.every((cell, n) => /[\p{L})] ?[:=]$/u.test(cell) === (n % 2 === 0 && filled.length > 1));
};

const countRows = (lines: readonly Line[], { from, to }: Range): number =>
  lines.slice(from, to).filter((line) => !isBlank(line)).length;

/** One or two rows: no line is directly above or below them, or they have several numbers and a name for each cell. */
function areClearRows(lines: readonly Line[], body: Body, header: Header, region: Range): boolean {
  const around = { from: header.from, to: body.to };
  const isFull =
    header.rows > 0 &&
    header.names.every(({ cells }) => cells.length === body.kinds.length) &&
    body.kinds.filter(isMeasure).length >= 2;
  const names = header.names.at(-1);
  if (!isIsolated(lines, around, region))
    return (
      isFull && names !== undefined && (body.kinds[0] === 'number' || areColumnNames(names, body, header.rows > 1))
    );
  return countRows(lines, body) > 1 || isFull || isIsolated(lines, around, { from: 0, to: lines.length });
}

/** Isolated rows of a word and several numbers. Facts have one value each. */
const isHeadless = (lines: readonly Line[], body: Body, header: Header, region: Range): boolean =>
  header.rows === 0 &&
  body.kinds[0] === 'text' &&
  countRows(lines, body) >= 2 &&
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

/** The share of first cells that occur more than once. The name of an indented fact is one of them. */
function repetition(lines: readonly Line[], { from, to }: Range): number {
  const first = lines.slice(from, to).map((line) => {
    const [cell = ''] = filledCells(line);
    return line.cells[0] === '' && !isWord(cell) ? '' : cell;
  });
  return 1 - (new Set(first).size - 1) / Math.max(1, first.length - 1);
}

/** `Vertical units,V,V` is a setting above others. */
const UNITS = /(?:^|\s)(?:units?|einheit(?:en)?)$/i;

/** Lines of name, value and unit, below a line that only looks like a header. */
function isListOfFacts(lines: readonly Line[], body: Body, header: Header): boolean {
  if (body.kinds[0] !== 'text') return false;
  const [names] = header.names;
  if (names && isRecord(names, [...lines.slice(header.from - 1, header.from), ...header.names.slice(1)])) return true;
  if (UNITS.test(names?.cells[0] ?? '')) return true;
  // Numbers as names, above rows that have names of their own.
  if (header.names.some(({ cells }) => cells.filter((cell) => PLAIN_NUMBER.test(cell)).length >= 3)) return false;
  const columns = countColumns(body);
  const units = names ? unitColumnsOf(lines, body, header) : [];
  const isNamed = (n: number) => units.includes(n) || header.names.some(({ cells }) => (cells[n] ?? '') !== '');
  const named = body.kinds.filter((_, n) => isNamed(n)).length;
  const areNames = repetition(lines, body) < 0.5;
  // The names of the rows need no name themselves.
  const isCorner = names?.cells[0] === '' && names.cells.length === body.kinds.length && named === columns - 1;
  if (named < columns && !isCorner) return areNames && !(names && isMostly(names.cells, isQuantity));
  if (names && header.from < body.from && areColumnNames(names, body)) return false;
  const isShort = body.to - body.from < 30 && columns <= MAX_FACT_CELLS;
  const around = { from: header.from, to: body.to };
  // Other lines directly above or below: these are facts too, some of which look alike.
  if (areNames && isShort && !isIsolated(lines, around, { from: 0, to: lines.length })) return true;
  const above = lines[body.from - 1]?.cells.length ?? 0;
  return !body.kinds.some(isMeasure) && header.from === body.from && above > 1;
}

/** A line that starts like the one above or below it is one of several records, not the names of columns. */
const isRecord = ({ cells: [first = ''] }: Line, others: readonly Line[]): boolean =>
  first !== '' && others.some(({ cells }) => cells.length > 1 && cells[0] === first);

/** Whether the line says of most columns what they are: a quantity, a unit in brackets, or a sample. */
function areColumnNames({ cells }: Line, { kinds }: Body, mayRepeat = false): boolean {
  const names = cells.slice(1, kinds.length);
  if (!mayRepeat && new Set(cells).size < cells.length) return false;
  if (isMostly(names, isQuantity)) return true;
  const measures = kinds.slice(1).filter(isMeasure).length;
  return measures >= 2 && (names.some(isQuantity) || isSubject(cells[0] ?? '') || areSamples(names));
}

const isMostly = <T>(list: readonly T[], test: (each: T) => boolean): boolean =>
  list.filter(test).length * 2 > list.length;
