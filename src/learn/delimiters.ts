import type { SplitWord } from '../config/grammar.js';
import { chooseDelimiter, compileSplit, DECIMAL_COMMAS, lineFormat, splitAll, splitLine } from '../parse/cells.js';
import { isBlank, isRule, type Line, type TimeSlice } from '../parse/lines.js';
import { type FixedColumns, type FixedPart, findAlignedColumns, findFixedColumns, WHOLE } from './fixed-columns.js';
import { countColumns, type LongRow } from './header.js';
import { isMeasure, isWord, kindsOf, mergeKinds, nameBefore, type Range } from './kinds.js';
import { type FoundRows, type FoundTable, findLayout, type Layout, withoutNames } from './layout.js';

/** Which delimiter splits a file, judged by the tables that it yields. */

/** `/\s+/` keeps the empty cell before indented names, as above the letters of a plate. */
const CANDIDATES = ['tab', ';', '|', ',', 'spaces', 'whitespace', '/\\s+/'];
/** Blanks also separate words, so they must yield clearly more than another delimiter. */
const BETTER = { character: 1.25, blanks: 2 };

interface Split {
  /** Whether all lines are split by the delimiter alone. */
  readonly isPlain?: boolean;
  readonly delimiter: string | undefined;
  readonly lines: readonly Line[];
  readonly layout: Layout;
}

/**
 * The lines, split by the delimiter that yields the best tables. Sections that need another one are split by that.
 * `facts`: the numbers of lines that are no rows.
 */
export async function splitText(
  texts: readonly string[],
  slice: TimeSlice,
  facts: ReadonlySet<number>,
): Promise<Split> {
  const chosen = chooseDelimiter(texts, {});
  const usual = typeof chosen.delimiter === 'string' ? chosen.delimiter : undefined;
  const trySplit = async (delimiter: string | undefined): Promise<Split> => {
    const lines = await splitAll(texts, lineFormat(delimiter, '"'), chosen.from);
    return { delimiter, lines, layout: await findLayout(lines, slice, characterOf(delimiter), facts) };
  };
  if (areFacts(texts)) {
    const { lines } = await trySplit(usual);
    return { delimiter: usual, lines, layout: await findLayout([], slice) };
  }
  // Blanks hide the empty cells at the start of a line, which show the level of rows within rows.
  const isIndented = isBlanks(usual) && texts.some((text) => text.startsWith('\t'));
  const tabbed = isIndented ? await trySplit('tab') : undefined;
  if (tabbed?.layout.tables.some((table) => table.kind === 'rows' && table.described)) return tabbed;
  let best = await trySplit(usual);
  const isDeclared = chosen.from > 1;
  const fixed = isDeclared ? [] : findFixedColumns(texts);
  const isJoined = joinsColumns(best);
  if (isDeclared || (unused(best) === 0 && fixed.length === 0 && !isNameless(best) && !isJoined))
    return { isPlain: true, ...best };
  const isGrid = characterOf(usual) !== undefined && isEven(best.lines);
  const hasDecimalCommas = texts.filter((text) => DECIMAL_COMMAS.test(text)).length >= MIN_LINES;
  const others = CANDIDATES.filter(
    (each) =>
      each !== usual && !(isGrid && isBlanks(each)) && !(each === ',' && hasDecimalCommas) && splitsLines(each, texts),
  );
  let most = isJoined ? 1 : Math.max(1, weightOf(best));
  for (const delimiter of others) {
    const split = await trySplit(delimiter);
    const weight = weightOf(split);
    // Empty cells between the names only: `Wave<tab><tab>Intensity`.
    const isNamed = best.layout.nameless !== undefined && !isNameless(split);
    const least = isBlanks(delimiter) && !isNamed ? BETTER.blanks : BETTER.character;
    if (weight <= most * least || separatesFacts(split, best)) continue;
    best = split;
    most = weight;
  }
  for (const delimiter of [usual, ...others])
    if (delimiter !== best.delimiter) best = await addSections(best, delimiter, slice, facts);
  for (const columns of fixed) best = await addFixedColumns(best, columns, slice);
  const named = best.layout.tables.filter(
    (table) => hasNames(table) && !(table.kind === 'rows' && hasTooManyNames(table)),
  );
  const isKnown = (n: number) => !isOutside(n, named);
  const areFree = (from: number, to: number) => {
    for (let n = from; n < to; n++) if (facts.has(n + 1)) return false;
    return true;
  };
  for (const columns of findAlignedColumns(texts))
    if (columns.parts.every(({ from, to, firstRow }) => areFree(from, to) && !(columns.isEven && isKnown(firstRow))))
      best = await addFixedColumns(best, columns, slice);
  return separateByPosition(best, slice);
}

const isNameless = ({ layout: { tables, nameless } }: Split): boolean =>
  nameless !== undefined || tables.some((table) => table.kind === 'rows' && hasTooManyNames(table));

/** Whether cells have several numbers, and single blanks would separate as many of them as words of the names. */
const joinsColumns = ({ delimiter, lines, layout: { tables } }: Split): boolean =>
  isBlanks(delimiter) &&
  tables.some((table) => {
    const names = 'header' in table ? table.header.names.at(-1) : undefined;
    const row = 'body' in table ? lines[table.body.from] : undefined;
    return names !== undefined && row?.cells.some(isSeveral) === true && countPieces(names) === countPieces(row);
  });

const isSeveral = (cell: string): boolean => /^[-+]?[\d.,]+(?:\s+[-+]?[\d.,]+)+$/.test(cell);

const countPieces = ({ text }: Line): number => text.trim().split(/\s+/).length;

/** The tables of these columns, instead of what blanks make of their lines. */
async function addFixedColumns(split: Split, { parts, at }: FixedColumns, slice: TimeSlice): Promise<Split> {
  const numbers = new Map(split.lines.map(({ number }, n) => [number - 1, n]));
  const ranges = parts.map(({ from, to }) => ({ from: numbers.get(from) ?? 0, to: (numbers.get(to - 1) ?? 0) + 1 }));
  const titles = new Set(ranges.map(({ from }) => split.lines.slice(0, from).findLast((line) => !isBlank(line))));
  const own = splitByPosition(split.lines, ranges, at).map((line, n) => {
    const written = split.lines[n];
    return written && titles.has(written) && isOutside(n, ranges) ? written : line;
  });
  const found = (await findLayout(own, slice)).tables;
  const isWhole = ({ firstRow }: FixedPart, n: number) => {
    const table = found[n];
    const first = table?.kind === 'rows' && (table.header.rows > 0 || n > 0) ? table.body.from : (table?.from ?? 0) + 1;
    return table?.to === ranges[n]?.to && first === numbers.get(firstRow);
  };
  if (found.length !== parts.length || !parts.every(isWhole)) {
    let single = split;
    if (parts.length > 1)
      for (const part of parts) single = await addFixedColumns(single, { parts: [part], at }, slice);
    return single;
  }
  const { layout } = split;
  const isOver = (line: Line | undefined) => line !== undefined && !isOutside(split.lines.indexOf(line), ranges);
  return {
    delimiter: split.delimiter,
    lines: split.lines.map((line, n) => (isOutside(n, ranges) ? line : (own[n] ?? line))),
    layout: {
      ...layout,
      headless: isOver(layout.headless) ? undefined : layout.headless,
      long: isOver(layout.long?.line) ? undefined : layout.long,
      nameless: isOver(layout.nameless) ? undefined : layout.nameless,
      tables: [
        ...layout.tables.filter((table) => ranges.every(({ from, to }) => table.to <= from || table.from >= to)),
        ...found.map((table) => ({ ...table, delimiter: { at } })),
      ].sort((a, b) => a.from - b.from),
    },
  };
}

/**
 * Whether most lines are a name, a sign and one value, and not the same few names again and again. Values that
 * look alike are no column then.
 */
function areFacts(texts: readonly string[]): boolean {
  const filled = texts.filter((text) => text.trim() !== '');
  if (filled.length < MIN_FACTS || filled.length > MAX_FACTS) return false;
  const names = new Set<string>();
  let pairs = 0;
  for (const [n, text] of filled.entries()) {
    if (pairs + filled.length - n < filled.length * 0.75) return false;
    const name = nameBefore(':', text) ?? nameBefore('=', text);
    if (name !== undefined) names.add(name);
    if (name !== undefined) pairs++;
  }
  const isRepeated = names.size > 2 && pairs > names.size && names.size * 4 >= pairs;
  if (names.size >= filled.length * 0.9) return true;
  return (
    isRepeated && pairs >= filled.length * 0.75 && !filled.some((text) => /^\s*[-+]?\d\S*[\s;,|]+[-+]?\d/.test(text))
  );
}

/** Fewer lines can be anything; more are data. */
const [MIN_FACTS, MAX_FACTS] = [5, 5000];

/**
 * In lines split at blanks, an empty cell leaves no trace and the cells after it are shifted. Such a table is split at
 * the positions that are blank in all of its lines, or else left out.
 */
async function separateByPosition(split: Split, slice: TimeSlice): Promise<Split> {
  const { delimiter, layout } = split;
  let { lines } = split;
  let { long } = layout;
  const tables: FoundTable[] = [];
  for (const table of layout.tables) {
    // An empty well shifts those to its right.
    if (isBlanks(table.delimiter ?? delimiter) && table.kind === 'plate' && hasShortRow(table, lines)) continue;
    const named =
      table.kind === 'rows'
        ? (namedBySingleBlanks(table, lines, delimiter) ?? withSingleBlanks(table, lines, delimiter))
        : undefined;
    if (named) {
      tables.push(named.table);
      lines = lines.map((line, n) => (isOutside(n, [named.table]) ? line : (named.lines[n] ?? line)));
      continue;
    }
    const isSplit = isBlanks(table.delimiter ?? delimiter);
    // Without positions, words above names are parts of them, or two are titles of groups.
    if (isSplit && table.kind === 'rows' && hasWordsAbove(table, lines)) {
      const names = lines.slice(table.from - 1, table.from + 1);
      tables.push(withoutNames({ ...table, from: table.from - 1, header: { ...table.header, names } }));
      continue;
    }
    const shifted = isSplit ? findShifted(table, lines) : undefined;
    const at = shifted || (isSplit && isSplitInTwo(table)) ? positionsOf(table, lines, layout.tables) : undefined;
    const own = at && splitByPosition(lines, [table], at);
    const [again] = own ? (await findLayout(own, slice)).tables : [];
    if (again?.to === table.to && own && at && !joinsNumbers(table, own)) {
      tables.push({ ...again, delimiter: { at } });
      lines = lines.map((line, n) => (isOutside(n, [table]) ? line : (own[n] ?? line)));
    } else if (shifted && table.kind === 'rows' && hasTooManyNames(table)) tables.push(withoutNames(table));
    else if (shifted) long ??= shifted;
    else tables.push(table);
  }
  return { delimiter, lines, layout: { ...layout, tables, long } };
}

const hasShortRow = ({ from, to }: Range, lines: readonly Line[]): boolean => {
  const width = lines[from]?.cells.length ?? 0;
  return lines.slice(from + 1, to).some((line) => !isBlank(line) && !isRule(line) && line.cells.length < width);
};

/** Whether positions of names that contain blanks put several numbers of a row into one cell. */
const joinsNumbers = (table: FoundTable, own: readonly Line[]): boolean =>
  table.kind === 'rows' &&
  table.body.kinds.every((kind) => kind === 'number') &&
  own.slice(table.body.from, table.body.to).some(({ cells }) => cells.some((cell) => /\d\s+[-+.\d]/.test(cell)));

/** Names with single blanks between them, above columns with wider gaps: one word for each column. */
function namedBySingleBlanks(table: FoundRows, lines: readonly Line[], delimiter: string | undefined) {
  const { body, header } = table;
  const names = lines[body.from - 1];
  if (header.rows > 0 || (table.delimiter ?? delimiter) !== 'spaces' || names === undefined || isBlank(names))
    return undefined;
  const whole = { from: body.from - 1, to: body.to };
  const format = lineFormat('whitespace', 'none');
  const split = lines.map((line, n) => (isOutside(n, [whole]) ? line : splitLine(line, format)));
  const own = split.slice(whole.from, whole.to).map(({ cells }) => cells);
  const isNamed = own.every(({ length }) => length === body.kinds.length) && own[0]?.every((name) => isWord(name));
  if (!isNamed || new Set(own[0]).size < (own[0]?.length ?? 0) || /[:=]/.test(names.text)) return undefined;
  const found: FoundRows = {
    ...{ ...table, ...whole, delimiter: 'whitespace', isNameless: false },
    header: { ...header, from: whole.from, rows: 1, names: split.slice(whole.from, body.from), skip: [] },
  };
  return { table: found, lines: split };
}

/** Rows of as many numbers each, some with a single blank between them: `11.05   3.44  3.853 -9.9e-29`. */
function withSingleBlanks(table: FoundRows, lines: readonly Line[], delimiter: string | undefined) {
  const { body, header } = table;
  if (header.rows > 0 || (table.delimiter ?? delimiter) !== 'spaces') return undefined;
  const whole = { from: body.from, to: table.to };
  const format = lineFormat('whitespace', 'none');
  const split = lines.map((line, n) => (isOutside(n, [whole]) ? line : splitLine(line, format)));
  const rows = split.slice(whole.from, whole.to).filter((line) => !isBlank(line));
  const width = rows[0]?.cells.length ?? 0;
  // `1 234` can be one number.
  const areNumbers = ({ cells, text }: Line) =>
    cells.length === width && cells.every((cell) => WHOLE.test(cell)) && !/(?<![\d.])\d{1,3} \d{3}(?!\d)/.test(text);
  if (width <= body.kinds.length || !rows.every(areNumbers)) return undefined;
  const kinds = rows[0]?.cells.map(() => 'number' as const) ?? [];
  return { table: { ...table, delimiter: 'whitespace', body: { ...body, kinds } } satisfies FoundRows, lines: split };
}

/** The lines of the tables; all others become blank. */
function splitByPosition(lines: readonly Line[], tables: readonly Range[], at: number[]): Line[] {
  const format = lineFormat({ at }, 'none');
  return lines.map((line, n) => (isOutside(n, tables) ? { ...line, cells: [] } : splitLine(line, format)));
}

/** Names whose second line was left out, because its words could not be assigned to columns. */
const isSplitInTwo = (table: FoundTable): boolean =>
  table.kind === 'rows' && table.header.units === 'nextRow' && table.header.skip.length > 0;

/** Parts of names: several words with gaps between them, directly above the names. */
function hasWordsAbove({ header, from }: FoundRows, lines: readonly Line[]): boolean {
  const words = lines[from - 1]?.text.trim().split(/ {2,}/) ?? [];
  return header.names.length === 1 && words.length > 2 && words.every((word) => isWord(word) && !/[:=]/.test(word));
}

/** The delimiter, if it is a fixed text. */
export const characterOf = (delimiter: string | undefined): string | undefined =>
  delimiter === undefined ? undefined : compileSplit(delimiter).text;

const isBlanks = (delimiter: SplitWord | undefined): boolean =>
  typeof delimiter === 'string' && compileSplit(delimiter).text === undefined;

/** A row with fewer cells than the header, some of which do not fit their columns; any row if no row has as many. */
function findShifted(table: FoundTable, lines: readonly Line[]): LongRow | undefined {
  if (table.kind !== 'rows') return undefined;
  const { body, header } = table;
  const columns = header.names[0]?.cells.length ?? 0;
  const first = lines[body.from];
  if (first && hasTooManyNames(table)) return { at: body.from, line: first, columns, body };
  if (header.names.length !== 1) return undefined;
  for (let at = body.from; at < table.to; at++) {
    const line = lines[at];
    if (!line || isBlank(line) || line.cells.length >= columns || isRule(line) || body.between?.includes(line))
      continue;
    if (!mergeKinds(body.kinds, kindsOf(line))) return { at, line, columns, body };
  }
  return undefined;
}

/** Whether names contain blanks, such as `% max.` above one column: then names cannot be assigned to columns. */
const hasTooManyNames = ({ header, body }: FoundRows): boolean =>
  header.names.some(({ cells }) => cells.length > body.kinds.length);

/**
 * The middles of the gaps between columns, from 1, if they separate as many columns as the header names, or as the rows
 * have if names contain blanks. Values of other files may be longer, to the left or to the right.
 */
function positionsOf(table: FoundTable, lines: readonly Line[], all: readonly FoundTable[]): number[] | undefined {
  if (table.kind !== 'rows') return undefined;
  // Tables with the same names are parts of one.
  const parts = [table, ...all.filter((other) => other.kind === 'rows' && haveSameNames(other, table))];
  const texts = parts
    .flatMap(({ from, to }) => lines.slice(from, to))
    .filter((line) => !isBlank(line) && !isRule(line));
  if (texts.some(({ text }) => text.includes('\t'))) return undefined;
  const width = Math.max(...texts.map(({ text }) => text.length));
  const isFree = Array.from({ length: width }, (_, n) => texts.every(({ text }) => (text[n] ?? ' ') === ' '));
  const starts: number[] = [];
  let last = isFree.indexOf(false);
  for (let n = last + 1; n < width; n++) {
    if (isFree[n]) continue;
    if (n > last + 1) starts.push(Math.ceil((last + 1 + n) / 2) + 1);
    last = n;
  }
  const columns = Math.min(table.body.kinds.length, ...table.header.names.map(({ cells }) => cells.length));
  const named = table.header.names.length === 1 ? (table.header.names[0]?.cells.length ?? 0) : columns;
  return [columns, named].includes(starts.length + 1) ? starts : undefined;
}

const haveSameNames = (one: FoundRows, other: FoundRows): boolean =>
  one.header.names[0] !== undefined && one.header.names[0].text === other.header.names[0]?.text;

/** Whether the delimiter found before separates the names of facts from their values. */
function separatesFacts({ layout: { tables } }: Split, before: Split): boolean {
  const pairs = before.lines.filter(
    ({ text, cells }, n) => cells.length === 2 && isOutside(n, tables) && cells[0] !== '' && !/[:=]/.test(text),
  );
  return pairs.length >= MIN_LINES;
}

const isOutside = (n: number, tables: readonly Range[]): boolean => !tables.some(({ from, to }) => n >= from && n < to);

const MIN_LINES = 3;

/** Whether all lines have the same number of cells: blanks are then within cells. */
function isEven(lines: readonly Line[]): boolean {
  const filled = lines.filter((line) => !isBlank(line));
  const cells = filled[0]?.cells.length ?? 0;
  return filled.length >= MIN_LINES && cells >= 3 && filled.every((line) => line.cells.length === cells);
}

/** Whether the delimiter splits a few lines at all. */
function splitsLines(delimiter: string, texts: readonly string[]): boolean {
  const { once } = compileSplit(delimiter);
  let lines = 0;
  return texts.some((text) => once(text) !== undefined && ++lines >= 2);
}

/** Lines with content outside tables. */
const unused = ({ lines, layout: { tables } }: Split): number =>
  lines.filter((line, n) => !isBlank(line) && isOutside(n, tables)).length;

/** The characters of numbers and dates in tables. A wrong delimiter cuts some of them into pieces that are words. */
function weightOf({ lines, layout: { tables, long } }: Split): number {
  const all = tables.reduce((sum, table) => sum + tableWeight(table, lines), 0);
  return long ? all * 0.8 : all;
}

function tableWeight(table: FoundTable, lines: readonly Line[]): number {
  const isPlate = table.kind === 'plate';
  const rows = lines.slice(isPlate ? table.from + 1 : table.body.from, table.to);
  let characters = 0;
  for (const row of rows) {
    const kinds = kindsOf(row);
    for (const [n, cell] of row.cells.entries())
      if (isMeasure(kinds[n]) && (isPlate || table.body.kinds[n] === kinds[n])) characters += cell.length;
  }
  return isPlate || hasNames(table) ? characters : characters * 0.7;
}

/** Whether each column has a name. */
const hasNames = (table: FoundTable): boolean =>
  table.kind === 'rows' &&
  table.header.names.some(({ cells }) => cells.filter((cell) => cell !== '').length >= countColumns(table.body));

/** Adds the tables that another delimiter yields in the lines outside the tables found so far. */
async function addSections(
  split: Split,
  delimiter: string | undefined,
  slice: TimeSlice,
  facts: ReadonlySet<number>,
): Promise<Split> {
  const { layout } = split;
  if (delimiter === undefined || unused(split) < MIN_LINES) return split;
  const format = lineFormat(delimiter, '"');
  const lines = split.lines.map((line, n) =>
    isOutside(n, layout.tables) ? splitLine(line, format) : { ...line, text: '', cells: [] },
  );
  const found = (await findLayout(lines, slice, undefined, facts)).tables.filter((table) =>
    isSection(table, split.lines),
  );
  if (found.length === 0) return split;
  return {
    delimiter: split.delimiter,
    lines: split.lines.map((line, n) => (isOutside(n, found) ? line : (lines[n] ?? line))),
    layout: {
      ...layout,
      headless: layout.headless && isOutside(split.lines.indexOf(layout.headless), found) ? layout.headless : undefined,
      tables: [...layout.tables, ...found.map((table) => ({ ...table, delimiter }))].sort((a, b) => a.from - b.from),
    },
  };
}

/** Only what is clearly a table, and not a list of facts under the usual delimiter. */
function isSection(table: FoundTable, usual: readonly Line[]): boolean {
  const rows = table.kind === 'plate' ? table.to - table.from - 1 : table.body.to - table.body.from;
  const filled = usual
    .slice(table.from, table.to)
    .filter(({ cells }) => cells.filter((cell) => cell !== '').length > 1);
  if (rows < MIN_LINES - 1 || filled.length * 2 > table.to - table.from) return false;
  return table.kind === 'plate' || (hasNames(table) && table.body.kinds.filter(isMeasure).length >= 2);
}
