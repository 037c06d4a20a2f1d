import { isBlank, isEmpty, type Line, type TimeSlice } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { bareUnit, isUnit, unitAfterSlash, unitInBrackets } from '../parse/values/unit.js';
import { createNumberReader, readQuantity } from '../parse/values/value.js';

/** A table of rows: its names and its rows, lines `from` to before `to`. */
export interface FoundRows {
  readonly kind: 'rows';
  readonly from: number;
  readonly to: number;
  readonly body: Body;
  readonly heading: Heading;
}

export type Found = FoundRows | FoundPlate;

const MOST_TABLES = 40;
/** Two lines that look alike are found anywhere; so often, what stands above and below them is looked through too. */
const MOST_TRIES = 8;

interface Layout {
  /** In the order of the lines. */
  readonly tables: readonly Found[];
  /** The first of some lines that look like rows, and that nothing names. */
  readonly nameless: Line | undefined;
}

/** Where the tables of a file are. */
export async function findLayout(lines: readonly Line[], slice: TimeSlice): Promise<Layout> {
  const plates = findPlates(lines);
  const found: Found[] = [...plates];
  const nameless: Line[] = [];
  let top = 0;
  for (const { from, to } of [...plates, { from: lines.length, to: lines.length }]) {
    await search(lines, top, from, { found, nameless, slice, tries: MOST_TRIES });
    top = to;
  }
  return { tables: found.sort((a, b) => a.from - b.from), nameless: nameless[0] };
}

interface Search {
  readonly found: Found[];
  readonly nameless: Line[];
  readonly slice: TimeSlice;
  /** How often a find of a line or two that is no table is no reason to stop. */
  tries: number;
}

/** The surest table first; then what is above and below it is looked through in the same way. */
async function search(lines: readonly Line[], top: number, bottom: number, all: Search): Promise<void> {
  const { found, nameless, slice } = all;
  if (bottom - top < 2 || found.length >= MOST_TABLES) return;
  const body = await findBody(lines, top, bottom, slice);
  if (!body) return;
  const heading = findHeading(lines, body, top);
  const from = heading.rows === 0 ? body.from : heading.from;
  const isFound = isTable(body, heading, lines, top, bottom);
  if (isFound) found.push({ kind: 'rows', from, to: body.to, body, heading });
  else if (isNameless(body, heading, lines, top, bottom)) nameless.push(...lines.slice(from, from + 1));
  // What is no table may still have one beside it, as long as there is none.
  if (!isFound && body.to - body.from < 3 && (found.length > 0 || all.tries-- <= 0)) return;
  await search(lines, top, isFound ? from : body.from, all);
  await search(lines, body.to, bottom, all);
}

/** Names with values can look like a table; this tells whether it is one. */
function isTable(body: Body, heading: Heading, lines: readonly Line[], top: number, bottom: number): boolean {
  const rows = body.to - body.from - Number(heading.from === body.from && heading.rows > 0);
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  if (rows < 3 && !standsAlone(lines, heading.from, body.to, top, bottom)) return false;
  if (columns < 2) return columns === 1 && body.kinds.some(isMeasure) && rows >= 10;
  const hasNumbers = body.kinds.some(isMeasure);
  if (heading.rows === 0) {
    if (body.kinds[0] !== 'text') return rows >= 3;
    // Each line with a name of its own is a list of facts; lines of one type are records.
    return columns >= 3 && rows >= 3 && repeats(lines, body) >= 0.5;
  }
  if (isListOfFacts(lines, body, heading)) return false;
  if (columns >= 3) return rows >= (hasNumbers ? 1 : 3);
  if (body.kinds[0] !== 'text') return true;
  // A unit behind a name is what headers have, and facts have not.
  if (/[([][^)\]]+[)\]]$/.test(lines[heading.from]?.cells.at(-1)?.trim() ?? '')) return true;
  const filled = lines.slice(top, bottom).filter((line) => !isBlank(line)).length;
  return rows >= 3 && lines.slice(top, heading.from).every(isBlank) && rows * 5 > filled * 3;
}

/** Rows of several columns that begin with a word, by themselves: facts have one value each. */
const isNameless = (
  body: Body,
  heading: Heading,
  lines: readonly Line[],
  top: number,
  bottom: number,
): boolean =>
  heading.rows === 0 &&
  body.kinds[0] === 'text' &&
  body.to - body.from >= 2 &&
  body.kinds.filter((kind) => kind === 'number' || kind === 'date').length >= 2 &&
  standsAlone(lines, body.from, body.to, top, bottom);

/** A line or two with other lines right above or below them are no table of their own. */
function standsAlone(lines: readonly Line[], from: number, to: number, top: number, bottom: number): boolean {
  const isFree = (index: number) => {
    const line = index < top || index >= bottom ? undefined : lines[index];
    return !line || isBlank(line) || line.cells.filter((cell) => cell !== '').length === 1;
  };
  return isFree(from - 1) && isFree(to);
}

/** How many of the first cells say what another one says as well. */
function repeats(lines: readonly Line[], { from, to }: Body): number {
  const first = lines.slice(from, to).map(({ cells }) => cells[0] ?? '');
  return 1 - (new Set(first).size - 1) / Math.max(1, first.length - 1);
}

/** Name, value, unit, limits: a fact has no more to it. */
const WIDE = 6;

/** Names of their own with values and units behind them; what stands above them names less than they hold. */
function isListOfFacts(lines: readonly Line[], body: Body, heading: Heading): boolean {
  if (body.kinds[0] !== 'text') return false;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const named = (heading.names[0]?.cells ?? []).filter((cell) => cell !== '').length;
  const areNames = repeats(lines, body) < 0.5;
  if (named < columns) return areNames;
  // Lines that go on above and below in another way are facts, some of which look alike.
  const rows = body.to - body.from;
  if (areNames && rows < 30 && columns < WIDE && !standsAlone(lines, heading.from, body.to, 0, lines.length))
    return true;
  return (
    !body.kinds.some(isMeasure) && heading.from === body.from && (lines[body.from - 1]?.cells.length ?? 0) > 1
  );
}

/** What stands above the rows: the lines with the names, and maybe one with units. */
interface Heading {
  /** The first line of the names; where there are none, the first row. */
  readonly from: number;
  readonly rows: number;
  readonly units: 'inHeader' | 'slash' | 'nextRow';
  /** The lines with the names. */
  readonly names: readonly Line[];
  /** Lines between the names and the rows that are neither. */
  readonly skip: readonly Line[];
  /** The last of them, where it says what the rows below it are. */
  readonly title?: Line | undefined;
}

/** Looks above the rows of a table for its names; rows 0 where it has none. */
function findHeading(lines: readonly Line[], body: Body, top = 0): Heading {
  if (!body.kinds.some((kind) => kind === 'number' || kind === 'date')) {
    // A table of words: its first line is the only one that can name them.
    const names = lines.slice(body.from, body.from + 1);
    return { from: body.from, rows: 1, units: 'inHeader', names, skip: [] };
  }
  const [nearest, ...others] = namesAbove(lines, body, top);
  if (nearest === undefined) return furtherUp(lines, body, top);
  const parted = others[0] === undefined ? findParted(lines, nearest, body, top) : undefined;
  if (parted) return parted;
  const hasUnits = others[0] !== undefined && isUnitRow(lines[nearest]);
  const names = hasUnits ? others : [nearest, ...others];
  return {
    from: names.at(-1) ?? nearest,
    rows: names.length,
    units: hasUnits ? 'nextRow' : hasSlashes(lines[nearest], body) ? 'slash' : 'inHeader',
    names: names.toReversed().flatMap((index) => lines[index] ?? []),
    skip: [],
  };
}

/**
 * Names, words that go on below some of them, units. Where lines are cut at blanks, the words in between
 * cannot be told to belong to one name or another: they are left out.
 */
function findParted(lines: readonly Line[], units: number, body: Body, top: number): Heading | undefined {
  const [names, words] = [lines[units - 2], lines[units - 1]];
  if (!names || !words || units - 2 < top || !isUnitRow(lines[units])) return undefined;
  if (!isNames(names, body.kinds.length, 0.75) || !isNames(words, body.kinds.length, 0)) return undefined;
  return { from: units - 2, rows: 1, units: 'nextRow', names: [names], skip: [words] };
}

/** Names need not stand right above the rows: a line such as `[Data]` can come between. */
function furtherUp(lines: readonly Line[], body: Body, top: number): Heading {
  const above = lines
    .slice(top, body.from)
    .filter((line) => !isBlank(line))
    .slice(-3)
    .reverse();
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  const isFull = (line: Line) => isNames(line, columns, 1) && line.cells.length === body.kinds.length;
  const nearest = above.findIndex(isFull);
  // `in`, `in`, `out` say something about columns that have their names one line up.
  const distinct = above.findIndex(
    (line) => isFull(line) && new Set(line.cells).size * 2 > line.cells.length,
  );
  const n = distinct < 0 ? nearest : distinct;
  const names = above[n];
  if (!names) return { from: body.from, rows: 0, units: 'inHeader', names: [], skip: [] };
  const units = hasSlashes(names, body) ? 'slash' : 'inHeader';
  return {
    from: lines.indexOf(names),
    rows: 1,
    units,
    names: [names],
    skip: above.slice(0, n).reverse(),
    title: above[0],
  };
}

/** The lines directly above that can be names, nearest first: all words, and about one for each column. */
function namesAbove(lines: readonly Line[], body: Body, top: number): number[] {
  const found: number[] = [];
  for (let index = body.from - 1; index >= top && found.length < 3; index--) {
    const line = lines[index];
    if (!line) break;
    // Blank lines may stand between rows, units and names; names that go on do so without one.
    if (isRule(line)) continue;
    if (isBlank(line) && (found.length === 0 || (found.length === 1 && isUnitRow(lines[found[0] ?? 0]))))
      continue;
    const enough = found.length === 0 ? 0.5 : 0.75;
    if (found.length === 0 && areNumberNames(line, body.kinds)) return [index];
    if (!isNames(line, body.kinds.length, enough)) break;
    // Lines of two cells above a header are names with values, not more names.
    if (found.length > 0 && body.kinds.length < 3 && !isUnitRow(lines[found[0] ?? 0])) break;
    found.push(index);
  }
  return found;
}

/** A line that is only drawn. */
export const isRule = ({ text }: Line): boolean =>
  text.length < LONGEST_RULE && /^[\s\-=_+|*]+$/.test(text) && /[-=_*]{3}/.test(text);

/** What is longer is not drawn for people to look at. */
const LONGEST_RULE = 1000;

function isNames(line: Line, width: number, enough: number): boolean {
  const filled = line.cells.filter((cell) => cell !== '');
  return filled.length >= Math.max(2, enough * width) && filled.every((cell) => isWord(cell));
}

const isWord = (cell: string): boolean =>
  kindOf(cell) === 'text' || (kindOf(cell) === 'any' && !/\d/.test(cell));

function isUnitRow(line: Line | undefined): boolean {
  const units = line?.cells.filter((cell) => cell !== '') ?? [];
  const known = units.filter((cell) => /^[[(].*[\])]$/.test(cell) || isUnit(bareUnit(cell) ?? ''));
  return units.length > 0 && known.length * 2 > units.length;
}

function hasSlashes(line: Line | undefined, { kinds }: Body): boolean {
  const names = line?.cells.filter((_, n) => kinds[n] === 'number') ?? [];
  const slashes = names.filter((name) => unitAfterSlash(name, false));
  return slashes.length * 2 > names.length && !names.some((name) => unitInBrackets(name));
}

/** Rows that belong together: lines `from` to before `to`, all cut alike, with the same kinds in the same columns. */
export interface Body {
  readonly from: number;
  readonly to: number;
  readonly kinds: readonly Kind[];
}

/** The stretch of lines, `from` to before `to`, that most surely are rows of one table. */
async function findBody(
  lines: readonly Line[],
  from: number,
  to: number,
  slice: TimeSlice,
): Promise<Body | undefined> {
  const isSpaced = isDoubleSpaced(lines.slice(from, to));
  let best: Body | undefined;
  let open: Body | undefined;
  for (let index = from; index < to; index++) {
    if (index % 256 === 0 && slice.isOver()) await slice.renew();
    const line = lines[index];
    if (!line || (isSpaced && isBlank(line))) continue;
    const row = isBlank(line) ? undefined : kindsOf(line);
    const kinds = open && row ? merge(open.kinds, row) : undefined;
    open = row && { from: open && kinds ? open.from : index, to: index + 1, kinds: kinds ?? row };
    if (open && weight(open) > weight(best)) best = open;
  }
  return best && widen(best, lines, from, to);
}

/** Some instruments write a blank line after every line: then it separates nothing. */
const isDoubleSpaced = (lines: readonly Line[]): boolean =>
  lines.length > 4 && lines.filter(isBlank).length * 5 >= lines.length * 2;

/** Long and wide is surer than short and narrow, and numbers make a table more surely than words do. */
function weight(body: Body | undefined): number {
  if (!body) return 0;
  const columns = body.kinds.filter((kind) => kind !== 'any').length;
  // A single column is a table only where it goes on for long.
  const area = (body.to - body.from) * (columns > 1 ? columns - 0.5 : 0.1);
  return body.kinds.some(isMeasure) ? area : area / 4;
}

const isMeasure = (kind: Kind | undefined): boolean => kind === 'number' || kind === 'date';

/** A row with a stray word in a column of numbers is a row all the same. */
function widen(body: Body, lines: readonly Line[], top: number, bottom: number): Body {
  let { from, to } = body;
  const isNames = (line: Line | undefined) => line !== undefined && areNumberNames(line, body.kinds);
  while (from > top && isRow(lines[from - 1], body) && !isNames(lines[from - 1])) from--;
  const names = lines[from - 1]?.text;
  // A header that comes again and again: the rows begin below the first.
  for (let at = from - 2; at >= top; at--) {
    if (lines[at]?.text === names && names !== undefined) from = at + 1;
    else if (!isRow(lines[at], body)) break;
  }
  while (to < bottom && (isRow(lines[to], body) || (lines[to] !== undefined && lines[to]?.text === names)))
    to++;
  return { from, to, kinds: body.kinds };
}

/** Whether a line beside the rows is one of them: most of its cells are of the right kind, one of them a number. */
function isRow(line: Line | undefined, { kinds }: Body): boolean {
  if (!line || isBlank(line) || kinds.length < 2 || !isAsWide(line.cells.length, kinds.length)) return false;
  const own = kindsOf(line);
  const filled = own.filter((kind) => kind !== 'any').length;
  const agreeing = own.filter((kind, n) => kind !== 'any' && kind === kinds[n]);
  if (!agreeing.some(isMeasure)) return false;
  return agreeing.length * 2 > filled || own[0] === kinds[0];
}

/** What a cell looks like, whatever the marks. `any`: nothing, or a word for no value, which stands in any column. */
type Kind = 'any' | 'number' | 'date' | 'text';

/** Words that instruments write where a number would be. */
const NO_VALUE = new Set(
  [
    'nan',
    'n/a',
    'na',
    '#n/a',
    'n.a.',
    'nd',
    'n.d.',
    'null',
    'none',
    'inf',
    '-inf',
    '+inf',
    '1.#qnan',
    '-1.#ind',
  ].concat([
    '-',
    '--',
    '---',
    '?????',
    'ovrflw',
    'overflow',
    'over',
    'missed',
    'out of range',
    'undetermined',
    'error',
  ]),
);

const numbers = createNumberReader({ decimal: undefined, thousands: undefined });

export const isNoValue = (text: string): boolean => NO_VALUE.has(text.toLowerCase());

export const looksNumeric = (text: string): boolean =>
  numbers.read(text) !== undefined || numbers.isAmbiguous(text);

function kindOf(text: string): Kind {
  if (text === '' || isNoValue(text) || /^[<>≤≥]=?\s*\d/.test(text)) return 'any';
  if (looksNumeric(text) || readQuantity(text, numbers)) return 'number';
  // `007` and numbers too long to count stand among numbers and among words.
  if (/^\d+$/.test(text)) return 'any';
  return readIso(text) !== undefined || CLOCK.test(text) || dateCandidates(text).length > 0 ? 'date' : 'text';
}

const CLOCK = /^\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?$/i;

export const kindsOf = ({ cells }: Line): Kind[] => cells.map(kindOf);

/** The kinds of the columns to which one more row is added; undefined where it is a row of another table. */
export function merge(columns: readonly Kind[], row: readonly Kind[]): Kind[] | undefined {
  if (!isAsWide(columns.length, row.length)) return undefined;
  const merged: Kind[] = [];
  for (let n = 0; n < columns.length || n < row.length; n++) {
    const kind = columns[n] ?? 'any';
    const other = row[n] ?? 'any';
    if (kind !== 'any' && other !== 'any' && kind !== other) return undefined;
    merged.push(kind === 'any' ? other : kind);
  }
  return merged;
}

/** The last cells of a row may be left out, where they are empty, but not most of them. */
const isAsWide = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 2 && Math.min(one, other) * 2 > Math.max(one, other);

/** Wavelengths, channels or wells can name columns: a word above times or numbers, then numbers that all differ. */
function areNumberNames({ cells }: Line, columns: readonly Kind[]): boolean {
  const [first = '', ...others] = cells;
  if (others.length < 3 || cells.length !== columns.length || columns[0] === 'text') return false;
  if (kindOf(first) !== 'text' || new Set(others).size < others.length) return false;
  return others.every((cell) => /^\d+(?:\.\d+)?$/.test(cell));
}

/** A plate as it is printed: the line with 1, 2, 3 …, and the rows below it. */
export interface FoundPlate {
  readonly kind: 'plate';
  /** The line with the numbers. */
  readonly from: number;
  readonly to: number;
  /** Whether empty lines stand within it, between one reading of the plate and the next. */
  readonly hasGaps: boolean;
}

const FEWEST_COLUMNS = 3;
/** Below a word, a short row of numbers is just a row. */
const USUAL_COLUMNS = 6;

/** All plates of a file. */
function findPlates(lines: readonly Line[]): FoundPlate[] {
  const plates: FoundPlate[] = [];
  for (let index = 0; index < lines.length; index++) {
    const width = plateWidth(lines[index]);
    if (width === undefined || plateWidth(lines[index + 1]) !== undefined) continue;
    const { to, hasGaps } = endOf(lines, index + 1, width);
    if (to > index + 1) plates.push({ kind: 'plate', from: index, to, hasGaps });
    index = Math.max(index, to - 1);
  }
  return plates;
}

/** How many cells a plate's rows reach to, where the line holds 1, 2, 3 … and no number or name before them. */
function plateWidth(line: Line | undefined): number | undefined {
  const start = line?.cells.findIndex((cell) => cell === '1' || cell === '01') ?? -1;
  const left = line?.cells.slice(0, Math.max(0, start)) ?? [];
  if (!line || start < 1 || left.some((cell) => /\d/.test(cell) || /^[A-Z]{1,2}$/.test(cell)))
    return undefined;
  let end = start;
  while (Number(line.cells[end]) === end - start + 1 && line.cells[end] !== '') end++;
  return end - start >= (left[0] === '' ? FEWEST_COLUMNS : USUAL_COLUMNS) ? end : undefined;
}

/** A plate ends where a line is no row of it; an empty line within it only where rows go on below. */
function endOf(lines: readonly Line[], from: number, width: number): { to: number; hasGaps: boolean } {
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
  plateWidth(line) === undefined &&
  line.cells.length > Math.min(3, width - 1) &&
  line.cells.length + 12 >= width;
