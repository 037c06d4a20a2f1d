import { compileSplit } from '../parse/cells.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { isNoValue, isWord } from './kinds.js';

/** Columns that are found by the positions of their characters. */

/**
 * Columns of fixed width that touch (`340.0-19.58`) or have empty cells. Blanks do not separate these, but each number
 * ends where those above and below it end, or dashes below the names show the columns.
 */
export interface FixedColumns {
  /** Tables with the same columns. */
  readonly parts: readonly FixedPart[];
  /** Where further cells start, in characters from 1. */
  readonly at: number[];
  /** Whether two blanks separate the same cells in all lines. */
  readonly isEven?: boolean;
}

/** Indexes of lines: that of the names, up to but not including the one after the last row. */
export interface FixedPart {
  readonly from: number;
  readonly to: number;
  readonly firstRow: number;
}

const MIN_ROWS = 4;
/** More rows would show no other columns. */
const MAX_ROWS = 500;

const NUMBER = String.raw`[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?`;
const ROW = /^(?=.*\d)[\s\d.+\-eE]+$/;
/** A number and nothing else. */
export const WHOLE = new RegExp(`^${NUMBER}$`);
const TOKEN = /\S+/g;
/** Where one number ends and the next starts with a sign. */
const INNER = /\d(?=[-+]\d)/g;

export function findFixedColumns(texts: readonly string[]): FixedColumns[] {
  const found: FixedColumns[] = [];
  for (let from = 0; from < texts.length; from++) {
    const ruled = RULER.test(texts[from] ?? '') ? columnsBelow(texts, from) : undefined;
    if (ruled) found.push(ruled);
    if (!ROW.test(texts[from] ?? '')) continue;
    let to = from;
    while (to < texts.length && ROW.test(texts[to] ?? '')) to++;
    const rows = texts.slice(from, Math.min(to, from + MAX_ROWS));
    const columns = rows.length < MIN_ROWS ? undefined : columnsOf(rows, texts[from - 1] ?? '', texts[from - 2] ?? '');
    if (columns) found.push({ parts: [{ from: from - columns.headerRows, to, firstRow: from }], at: columns.at });
    from = to;
  }
  return found;
}

/** A group of dashes for each column: `----|-------|----`, `-----  ------  ---`. */
const RULER = /^ *[-=]{2,}(?:(?:[|+]| +)[-=]{2,}){2,}[|+]? *$/;
/** Names can take three lines, one of them units. Words can go beyond their dashes by a few characters. */
const [MAX_NAMES, MAX_SHIFT] = [3, 3];

/** Blank lines and other rules end the names above and the rows below. */
const isContent = (text: string | undefined): boolean => text !== undefined && /[\p{L}\p{N}]/u.test(text);

function columnsBelow(texts: readonly string[], ruler: number): FixedColumns | undefined {
  let from = ruler;
  while (from > 0 && ruler - from < MAX_NAMES && isContent(texts[from - 1])) from--;
  let to = ruler + 1;
  while (isContent(texts[to])) to++;
  const all = [...texts.slice(from, ruler), ...texts.slice(ruler + 1, Math.min(to, ruler + MAX_ROWS))];
  if (from === ruler || to < ruler + 2 || all.some((text) => text.includes('\t'))) return undefined;
  const groups = [...(texts[ruler] ?? '').matchAll(/[-=]+/g)];
  const at = groups
    .slice(1)
    .map(({ index }) =>
      Array.from({ length: 2 * MAX_SHIFT }, (_, n) => index + (n % 2 === 0 ? -n / 2 : (n + 1) / 2)).find((place) =>
        all.every((text) => / |^.?$/.test(text.slice(place - 1, place + 1))),
      ),
    );
  const places = at.flatMap((place) => (place === undefined ? [] : [place + 1]));
  const isSplit = places.length === at.length && places.every((place, n) => n === 0 || place > (places[n - 1] ?? 0));
  return isSplit ? { parts: [{ from, to, firstRow: ruler + 1 }], at: places } : undefined;
}

function columnsOf(rows: readonly string[], above: string, upper: string) {
  if (rows.some((row) => row.includes('\t'))) return undefined;
  const counts = new Set(rows.map((row) => compileSplit('whitespace').all(row).length));
  // As many numbers in each row, and all of them separated: blanks are enough.
  if (counts.size === 1 && !rows.some(hasGlued)) return undefined;
  const ends = [...new Set(rows.flatMap(endsOf))].sort((a, b) => a - b);
  const cellsIn = (text: string) => ends.map((end, n) => text.slice(ends[n - 1] ?? 0, end).trim());
  const isFixed = rows.every((row) => cellsIn(row).every((cell) => cell === '' || WHOLE.test(cell)));
  if (ends.length < 2 || !isFixed) return undefined;
  const areNames = (text: string) => isUncut(text, ends) && cellsIn(text).every((cell) => cell !== '' && isWord(cell));
  const isPart = (text: string) => isUncut(text, ends) && cellsIn(text).every((cell) => cell === '' || isWord(cell));
  const headerRows = areNames(above) ? 1 : areNames(upper) && isPart(above) ? 2 : 0;
  return headerRows === 0 ? undefined : { headerRows, at: ends.slice(0, -1).map((end) => end + 1) };
}

const hasGlued = (row: string): boolean => (row.match(TOKEN) ?? []).some((token) => !WHOLE.test(token));

/** Where numbers end. Of two without a sign between them, only the second is certain. */
function endsOf(row: string): number[] {
  return [...row.matchAll(TOKEN)].flatMap(({ 0: token, index }) => [
    ...[...token.matchAll(INNER)].map((inner) => index + inner.index + 1),
    index + token.length,
  ]);
}

/** No word goes beyond its column. */
const isUncut = (text: string, ends: readonly number[]): boolean =>
  text.trimEnd().length <= (ends.at(-1) ?? 0) &&
  ends.every((end) => text.slice(end - 1, end + 1).length < 2 || /\s/.test(text.slice(end - 1, end + 1)));

/** Each of them takes another search of all lines. */
const MAX_ALIGNED = 40;
/** A blank line can be between the names and the first row. Names, their groups and units take four lines. */
const MAX_HEADER = 4;

/** One cell as it is printed: words with single blanks between them. */
const PIECE = /\S+(?: \S+)*/g;
const isNumber = (token: string): boolean => /^[-+<>]?\d+(?:[.,]\d*)?(?:[eE][-+]?\d+)?\*?$/.test(token);

/** Rows that are printed below each other, and the lines above them. */
interface Block {
  readonly from: number;
  readonly to: number;
  readonly rows: readonly string[];
  readonly header: readonly string[];
  readonly names: string;
}

/**
 * Tables whose cells are below each other, but cannot be separated by blanks alone: some cells are empty, names have
 * blanks in them, or stand above several columns. Blocks with the same names have the same columns.
 */
export function findAlignedColumns(texts: readonly string[]): FixedColumns[] {
  const blocks = blocksOf(texts);
  const found: FixedColumns[] = [];
  for (const names of new Set(blocks.map((block) => block.names))) {
    const parts = blocks.filter((block) => block.names === names);
    const own = gapsOf(parts);
    if (!own || found.length > MAX_ALIGNED) continue;
    const toPart = ({ from, to, header }: Block) => ({
      from: from - Math.min(header.length, own.header),
      to,
      firstRow: from,
    });
    found.push({ parts: parts.map(toPart), at: own.at, isEven: own.isEven });
  }
  return found;
}

function blocksOf(texts: readonly string[]): Block[] {
  const blocks: Block[] = [];
  for (let from = 0; from < texts.length && blocks.length < MAX_ALIGNED; from++) {
    if (!isRow(texts[from]) || PLATE.test(texts[from] ?? '')) continue;
    let to = from + 1;
    const isRowOf = (text: string | undefined) => isRow(text) && !PLATE.test(text ?? '');
    // A few words between rows.
    while (isRowOf(texts[to]) || (isContent(texts[to]) && !PLATE.test(texts[to] ?? '') && isRowOf(texts[to + 1]))) to++;
    // Numbers as names: `Time 450 500 550`.
    if (to > from + 1 && /^ *\p{L}\S*(?: +\d+)+ *$/u.test(texts[from] ?? '')) from++;
    const rows = texts.slice(from, Math.min(to, from + MAX_ROWS)).filter(isRow);
    let top = from;
    while (top > 0 && from - top < MAX_HEADER && isHeader(texts[top - 1], top === from)) top--;
    const header = texts.slice(top, from);
    while (header.length > 0 && header[0]?.trim() === '') header.shift();
    const names = header.findLast((text) => isContent(text) && !areUnits(text)) ?? blocks.at(-1)?.names;
    if (names !== undefined) blocks.push({ from, to, rows, header, names });
    from = to;
  }
  return blocks;
}

/** More than one number, or a number among words with gaps between them, so the line is not a fact. */
function isRow(text: string | undefined): boolean {
  if (text === undefined || !/\d/.test(text) || /[\t;|]|[:=] /.test(text)) return false;
  const pieces = text.match(PIECE) ?? [];
  // `Tank 2` is a label.
  const numbers = pieces
    .filter((piece) => !/^\p{L}\S* \d+$/u.test(piece))
    .flatMap((piece) => piece.split(' '))
    .filter(isNumber).length;
  return numbers > 1 || (numbers > 0 && pieces.length > 2);
}

/** Several words with gaps between them, or a word that is not above the first column. A rule says nothing. */
function isHeader(text: string | undefined, isNearest: boolean): boolean {
  if (text === undefined || /[\t;|]|[:=] ?\S/.test(text)) return false;
  if (!isContent(text)) return text.trim() !== '' || isNearest;
  if (PLATE.test(text) || (isNearest && isRow(text))) return true;
  const pieces = text.match(PIECE) ?? [];
  return (
    pieces.every((piece) => isWord(piece)) &&
    (pieces.length > 1 || /^ {2}/.test(text) || (isNearest && /^\p{L}.* .*[^\d\W]\W*$/u.test(text)))
  );
}

/** The numbers of the columns of a plate. */
const PLATE = /^\s*(?:\S+ +)?0?1 +0?2 +0?3(?: |$)/;

const areUnits = (text: string): boolean =>
  (text.match(PIECE) ?? []).every((piece) => piece === '-' || isUnit(bareUnit(piece) ?? ''));

/** Where further cells start, and how many lines above the rows have a cell for each column or none. */
function gapsOf(parts: readonly Block[]): { at: number[]; header: number; isEven: boolean } | undefined {
  const rows = parts.flatMap((part) => part.rows);
  const { names = '', header = [] } = parts.find((part) => part.header.length > 0) ?? {};
  let gaps = findGaps(rows, names);
  const cut = (text: string) => [...gaps, undefined].map((gap, n) => text.slice(gaps[n - 1]?.to ?? 0, gap?.to));
  const cells = rows.map(cut);
  const areUnitsIn = (n: number) => cells.every((row) => isUnit(row[n]?.trim() ?? ''));
  const isNamed = cut(names).every((cell, n) =>
    cell.trim() === '' ? n === 0 || PLATE.test(names) || areUnitsIn(n) : !/\S {2,}\S/.test(cell),
  );
  if (gaps.length < 1 || names === '' || !isNamed) return undefined;
  const lines = header.toReversed();
  let count = 0;
  for (const text of lines) {
    const left = gaps.flatMap((gap) => narrow(gap, text, areUnits(text) || text === names));
    if (left.length < gaps.length && isContent(text)) break;
    if (isContent(text)) gaps = left;
    count++;
  }
  // The first words of some of the names, which cannot be assigned to them.
  const above = lines[count]?.match(PIECE)?.length ?? 0;
  if (above > 2 && above !== gaps.length + 1) return undefined;
  // The names themselves are among these lines.
  if (count <= lines.indexOf(names)) return undefined;
  const all = [...lines.slice(0, count), ...rows].filter(isContent);
  return {
    // The middle: cells of other files may be longer.
    at: gaps.map(({ from, to }) => Math.ceil((from + to) / 2) + 1),
    header: count,
    isEven: all.every((text) => text.match(PIECE)?.length === gaps.length + 1),
  };
}

interface Gap {
  readonly from: number;
  readonly to: number;
}

/** What is blank in all rows and in the names. A single blank is a gap only between numbers. */
function findGaps(rows: readonly string[], names: string): Gap[] {
  const gaps: Gap[] = [];
  const areRight = rows.every((row) => row.trimEnd().length === names.trimEnd().length);
  for (const space of freeIn(rows, names.length)) {
    // The lines are indented.
    if (space.from === 0) continue;
    const inner = freeIn([names.slice(space.from, space.to)], space.to - space.from).map(({ from, to }) => ({
      from: from + space.from,
      to: to + space.from,
    }));
    const wide = inner.filter(({ from, to }) => to - from > 1);
    // Of single blanks between words, that where the cells below it end or start. The first may be behind a label.
    const isTight = ({ from, to }: Gap) => rows.every((row) => /\S/.test(row[areRight ? from - 1 : to] ?? ''));
    const single = inner.find(isTight) ?? (gaps.length === 0 ? inner[0] : undefined);
    // Between a label and its number there is no gap.
    const isLabel = space.to - space.from < 2 && names.slice(gaps.at(-1)?.to ?? 0, space.from).trim() === '';
    if (wide.length > 0) gaps.push(...wide);
    else if (single && !isLabel && rows.every((row) => separatesNumbers(row, space.from))) gaps.push(single);
  }
  return gaps;
}

/** Characters that are blank in all these texts. */
function freeIn(texts: readonly string[], least: number): Gap[] {
  const width = Math.max(least, ...texts.map(({ length }) => length));
  const isFree = (n: number) => texts.every((text) => (text[n] ?? ' ') === ' ');
  const found: Gap[] = [];
  for (let from = 0; from < width; from++) {
    if (!isFree(from)) continue;
    let to = from + 1;
    while (to < width && isFree(to)) to++;
    found.push({ from, to });
    from = to;
  }
  return found;
}

/** What a line leaves of a gap. */
function narrow({ from, to }: Gap, text: string, hasSingle: boolean): Gap[] {
  let start = from;
  while (start < to && (text[start] ?? ' ') !== ' ') start++;
  let end = start;
  while (end < to && (text[end] ?? ' ') === ' ') end++;
  const isWithin = !hasSingle && end - start === 1 && /\S \S/.test(text.slice(start - 1, end + 1));
  return start < end && !isWithin ? [{ from: start, to: end }] : [];
}

/** Single blanks between two numbers, or between a label and a number. */
function separatesNumbers(row: string, at: number): boolean {
  const before = row.slice(0, at).trimEnd().split(' ').at(-1) ?? '';
  const after = row.slice(at).trimStart().split(' ')[0] ?? '';
  const isValue = (token: string) => isNumber(token) || isNoValue(token);
  return isValue(after) && (isValue(before) || /\p{L}|\d\D/u.test(before));
}
