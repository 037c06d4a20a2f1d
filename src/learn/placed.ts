import { compileSplit } from '../parse/cells.js';
import { isUnit } from '../parse/values/unit.js';
import { isQuantity, isSubject, isWord, kindOf } from './kinds.js';
import type { FinderMapping } from './pieces.js';

/**
 * Facts whose value does not stand to the right of their name: below it, or in a line whose positions another line
 * names. They look like rows of tables, so they are found before those.
 */
export interface PlacedFacts {
  readonly finders: readonly FinderMapping[];
  /** The numbers of their lines. */
  readonly lines: ReadonlySet<number>;
}

interface Found {
  readonly finders: readonly FinderMapping[];
  readonly numbers: readonly number[];
}

/** Further down, there are rows. Longer lines are data. */
const [MAX_SEEN, MAX_LENGTH] = [400, 300];

export function findPlaced(texts: readonly string[]): PlacedFacts {
  const seen = texts.slice(0, MAX_SEEN).map((text) => (text.length > MAX_LENGTH ? OTHER : text.trimEnd()));
  const found = [...findBelowNames(seen), ...findRowsOfNames(seen, texts.length)];
  return {
    finders: found.flatMap(({ finders }) => finders),
    lines: new Set(found.flatMap(({ numbers }) => numbers)),
  };
}

/** Stands for a line that is no fact. */
const OTHER = '\u0000';

/** Fewer could be anything. */
const MIN_LINES = 3;

/** Names on lines of their own, each marked, with a value on the next line. `#`: only where the comment is the name. */
const MARKS = [
  /^\$[A-Za-z][\w ]*:$/,
  /^\[[A-Za-z][^\]=:]*\]$/,
  /^<[A-Za-z][^<>=:]*>$/,
  /^#\s?[A-Za-z][^#:=\t,;|]*$/,
  /^[A-Za-z][^:=\t,;|]*:$/,
];

function findBelowNames(texts: readonly string[]): Found[] {
  for (const mark of MARKS) {
    const marked = texts.flatMap((text, n) => (mark.test(text) ? [n] : []));
    if (marked.length < MIN_LINES) continue;
    const isOther = (at: number) => (texts[at] ?? '').trim() === '' || mark.test(texts[at] ?? '');
    const named = marked.filter((n) => isLoneValue(texts[n + 1]) && !isOther(n + 1) && isOther(n + 2));
    const names = new Set(named.map((n) => texts[n]));
    // A name that repeats is that of a section.
    if (named.length < MIN_LINES || named.length * 2 < marked.length || names.size < named.length) continue;
    const every = `/${mark.source.replace(/\$$/, '\\s*$')}/`;
    return [{ finders: [{ every, separator: 'nextLine' }], numbers: named.flatMap((n) => [n + 1, n + 2]) }];
  }
  return [];
}

/** One value: no pair, no row, no comment. */
const isLoneValue = (text = ''): boolean =>
  text.trim() !== '' &&
  text !== OTHER &&
  !/^\s*[#$[<]|\t\S|\p{L} ?[:=]|[,;|]\S+[,;|]|[-\d.]+(?:\s+[-\d.]+){2}/u.test(text) &&
  !/ {2,}\S/.test(text.trim());

/** Splits for a row of names and the row of their values. */
const ROW_SPLITS = ['tab', ';', ',', 'spaces', 'whitespace'] as const;

/** A row of names above a single row of values, several times, or one that says who measured and how. */
function findRowsOfNames(texts: readonly string[], all: number): Found[] {
  const pairs: RowPair[] = [];
  for (let at = 0; at + 1 < texts.length; at++) {
    const pair = rowsAt(texts, at);
    if (!pair) continue;
    // Words below words directly above: only the rows below show that they are values.
    const above = pairs.length === 0 ? rowsOfWords(texts, at - (texts[at - 1] === '' ? 3 : 2), pair.split) : undefined;
    // A column that says which row it is makes a table of one row, unless the rows of names follow each other.
    const isNext = (above ?? pairs.at(-1))?.at === at - 2;
    if (isSubject(pair.names[0] ?? '') && !COMMENT.test(pair.split) && !isNext) continue;
    pairs.push(...(above ? [above] : []), { at, ...pair });
    at++;
  }
  const names = pairs.flatMap((pair) => pair.names);
  const last = pairs.at(-1);
  if (!last || new Set(names).size < names.length) return [];
  const isFollowed = all > last.at + 2 + MIN_BELOW;
  const isSaid = names.length > 2 && names.some((name) => OF_RUN.test(name));
  const isRun = pairs.length > 1 || (isSaid && isFollowed);
  const hasMarks = pairs.every(({ split }) => COMMENT.test(split));
  if (!isRun || (!isFollowed && !hasMarks && pairs.length < MIN_LINES)) return [];
  return pairs.map(({ at, split, names: own }) => ({
    finders: own.length === 0 ? [] : [describeRows(texts[at] ?? '', own, split)],
    numbers: [at + 1, at + 2],
  }));
}

interface RowPair {
  readonly at: number;
  readonly split: string;
  /** None if names and values can also be in every other cell. */
  readonly names: readonly string[];
}

function rowsOfWords(texts: readonly string[], at: number, split: string): RowPair | undefined {
  if (at < 0 || COMMENT.test(split)) return undefined;
  const [names = [], values = []] = [texts[at], texts[at + 1]].map((text) =>
    compileSplit(split).all(text?.trim() ?? ''),
  );
  if (names.length < 3 || names.length !== values.length || !areRowNames(names)) return undefined;
  return { at, split, names: names.length % 2 === 0 ? [] : names };
}

const COMMENT = /^[#!%/]+/;
/** Rows of a table below the facts. */
const MIN_BELOW = 3;
/** What is said once for a run, not for each row. */
const OF_RUN =
  /^(?:operator|user|analyst|method|instrument|serial|model|software|version|firmware|project|detector|bediener|benutzer|methode|ger[äa]t|op[ée]rateur|instrumento|operador)\b/i;

function rowsAt(texts: readonly string[], at: number): { split: string; names: readonly string[] } | undefined {
  const [written = '', values = ''] = [texts[at], texts[at + 1]];
  // First, because most lines are rows.
  if (values === '' || !STARTS_WITH_NAME.test(written) || /^\s*[#!%/]/.test(values)) return undefined;
  const [mark = ''] = /^\s*[#!%/]+(?=\s*\p{L})/u.exec(written) ?? [];
  if (mark === '' && (NUMBER_CELL.test(written) || NUMBER_CELL.test(texts[at + 2] ?? ''))) return undefined;
  const text = written.slice(mark.length).trim();
  for (const split of ROW_SPLITS) {
    const names = mark !== '' && split === 'whitespace' ? text.split(/[\s,]+/) : compileSplit(split).all(text);
    const cells = compileSplit(split).all(values.trim());
    // Two cells are a name and its value. Words with single blanks between them are a sentence.
    const isClear = mark !== '' || (names.length > 2 && split !== 'whitespace');
    if (names.length < 2 || !isClear || names.length !== cells.length || !areRowNames(names)) continue;
    const kinds = cells.map(kindOf);
    if (!kinds.some((kind) => kind === 'number' || kind === 'date') || cells.some((cell) => /\p{L} ?[:=]$/u.test(cell)))
      return undefined;
    // `Batch  B-12  Operator  Ada`: every other cell is a name.
    const isEven = mark === '' && cells.length % 2 === 0 && !names.some((name, n) => n % 2 === 1 && isQuantity(name));
    if (isEven && cells.every((cell, n) => n % 2 === 1 || isWord(cell))) return undefined;
    // More rows make a table.
    const next = texts[at + 2] ?? '';
    const isEnd = next === '' || (mark !== '' && next.trimStart().startsWith(mark.trim()));
    const isNext = areRowNames(compileSplit(split).all(next)) && compileSplit(split).all(next).length > 1;
    if (!isEnd && !isNext) return undefined;
    return { split: mark === '' ? split : `${mark.trim()}${split}`, names };
  }
  return undefined;
}

/** A line with such a cell is a row. */
const NUMBER_CELL = /(?:^|[\t;,]|\s\s)\s*[-+]?\.?\d[\d.]*\s*(?:$|[\t;,]|\s\s)/;

const STARTS_WITH_NAME = /^\s*[#!%/]*\s*\p{L}/u;

const areRowNames = (names: readonly string[]): boolean =>
  new Set(names).size === names.length &&
  names.every((name) => /\p{L}/u.test(name) && isWord(name) && !NO_ROW_NAME.test(name) && !isUnit(name));

/** Names with their values: `Weight: 3`, `mount GA6432`. */
const NO_ROW_NAME = /[:=]|^[A-Z]\d+$|\s\S*\d{3}/;

/** Names behind a comment mark are not in a row of the file's own cells, so they are given by position. */
function describeRows(text: string, names: readonly string[], split: string): FinderMapping {
  const [mark = ''] = COMMENT.exec(split) ?? [];
  const delimiter = split.slice(mark.length);
  if (mark === '') return { line: text.trim(), separator: 'nextRow', delimiter };
  return { after: text.trim(), delimiter, cells: Object.fromEntries(names.map((name, n) => [name, n + 1])) };
}
