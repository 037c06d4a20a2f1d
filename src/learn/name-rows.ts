import { compileSplit, withoutTrailingEmpty } from '../parse/cells.js';
import { isUnit } from '../parse/values/unit.js';
import { isQuantity, isSubject, isWord, kindOf } from './kinds.js';
import type { FinderMapping } from './pieces.js';

/** Facts in rows of cells that are no table: a row of names above that of their values, and pairs side by side. */

/** Facts that are not found line by line. */
export interface Found {
  readonly finders: readonly FinderMapping[];
  readonly numbers: readonly number[];
  readonly except?: readonly string[];
}

/** Two lines are enough if each has several values and as many names. */
export const [MIN_LINES, MIN_LEGENDS] = [3, 2];

/** Splits for a row of names and the row of their values. */
const ROW_SPLITS = ['tab', ';', ',', 'spaces', 'whitespace'] as const;

/** A row of names above a single row of values, several times, or one that says who measured and how. */
export function findRowsOfNames(texts: readonly string[], all: number, raw: readonly string[]): Found[] {
  const pairs: RowPair[] = [];
  for (let at = 0; at + 1 < texts.length; at++) {
    const pair = rowsAt(texts, at);
    if (!pair) continue;
    // Words below words directly above: only the rows below show that they are values.
    const above = pairs.length === 0 ? rowsOfWords(texts, at - (texts[at - 1] === '' ? 3 : 2), pair.split) : undefined;
    // A column that says which row it is makes a table of one row, unless the rows of names follow each other.
    const isNext = (above ?? pairs.at(-1))?.at === at - 2;
    const isWho = pair.isAbove && pair.names.some((name) => WHO.test(name));
    if (isSubject(pair.names[0] ?? '') && !COMMENT.test(pair.split) && !isNext && !isWho) continue;
    pairs.push(...(above ? [above] : []), { at, ...pair });
    at++;
  }
  const names = pairs.flatMap((pair) => pair.names);
  const last = pairs.at(-1);
  if (!last || new Set(names).size < names.length) return [];
  const isFollowed = all > last.at + 2 + MIN_BELOW;
  const isSaid = names.length > 2 && (names.some((name) => OF_RUN.test(name)) || pairs.some(({ isOfRun }) => isOfRun));
  const isRun = pairs.length > 1 || (isSaid && isFollowed);
  const hasMarks = pairs.every(({ split }) => COMMENT.test(split));
  if (!isRun || (!isFollowed && !hasMarks && pairs.length < MIN_LINES)) return [];
  return pairs.map(({ at, split, names: own }) => ({
    finders: own.length === 0 ? [] : [describeRows(raw[at] ?? '', own, split)],
    numbers: [at + 1, at + 2],
  }));
}

interface RowPair {
  readonly at: number;
  readonly split: string;
  /** None if names and values can also be in every other cell. */
  readonly names: readonly string[];
  /** Several of the values are words. */
  readonly isOfRun?: boolean;
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

/** People measure several rows, so this is not a column of a table of one row. */
const WHO = /^(?:operator|user|analyst|bediener|benutzer|op[ée]rateur|operador)\b/i;

/** `isAbove`: directly above other names. */
function rowsAt(texts: readonly string[], at: number): (Omit<RowPair, 'at'> & { isAbove: boolean }) | undefined {
  const [written = '', values = ''] = [texts[at], texts[at + 1]];
  // First, because most lines are rows.
  if (values === '' || !STARTS_WITH_NAME.test(written) || MARK.test(values)) return undefined;
  const [mark = ''] = MARK.exec(written) ?? [];
  if (mark === '' && (NUMBER_CELL.test(written) || NUMBER_CELL.test(texts[at + 2] ?? ''))) return undefined;
  const text = written.slice(mark.length).trim();
  for (const split of ROW_SPLITS) {
    const names = mark !== '' && split === 'whitespace' ? text.split(/[\s,]+/) : compileSplit(split).all(text);
    const cells = compileSplit(split).all(values.trim());
    // Two cells are a name and its value. Words with single blanks between them are a sentence.
    const isClear = mark !== '' || (names.length > 2 && split !== 'whitespace');
    if (names.length < 2 || !isClear || names.length !== cells.length || !areRowNames(names)) continue;
    const kinds = cells.map(kindOf);
    // The first cell of both can be the type of the line.
    if (names.some((name, n) => name === cells[n])) return undefined;
    if (!kinds.some((kind) => kind === 'number' || kind === 'date') || cells.some((cell) => /\p{L} ?[:=]$/u.test(cell)))
      return undefined;
    // `Batch  B-12  Operator  Ada`: every other cell is a name.
    const isEven = mark === '' && cells.length % 2 === 0 && !names.some((name, n) => n % 2 === 1 && isQuantity(name));
    if (isEven && cells.every((cell, n) => n % 2 === 1 || isWord(cell))) return undefined;
    // More rows make a table.
    const next = texts[at + 2] ?? '';
    const isEnd = next === '' || HEADING.test(next) || (mark !== '' && next.trimStart().startsWith(mark.trim()));
    const isNext = areRowNames(compileSplit(split).all(next)) && compileSplit(split).all(next).length > 1;
    if (!isEnd && !isNext) return undefined;
    const isOfRun = kinds.filter((kind, n) => kind === 'text' && !isUnit(cells[n] ?? '')).length > 1;
    return { split: mark === '' ? split : `${mark.trim()}${split}`, names, isAbove: isNext, isOfRun };
  }
  return undefined;
}

const HEADING = /^\W*\p{L}[^\d:=\t;,|]*$/u;

/** A line with such a cell is a row. */
const NUMBER_CELL = /(?:^|[\t;,]|\s\s)\s*[-+]?\.?\d[\d.]*\s*(?:$|[\t;,]|\s\s)/;

const MARK = /^\s*[#!%/]+/;
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

/**
 * Two or three pairs side by side in cells, in several lines: `Firmware,4.0,,Density,1.6 g/mL`. The values of one column
 * are words and numbers, unlike those of a table.
 */
export function findBeside(texts: readonly string[], raw: readonly string[]): Found[] {
  return (['tab', ',', ';'] as const).flatMap((sign) => {
    const split = compileSplit(sign);
    const gap = (split.text ?? sign).repeat(2);
    const pairs = texts.map((text) => (text.includes(gap[0] ?? '') ? pairsApart(split.all(text)) : undefined));
    const found: Found[] = [];
    for (let from = 0; from < pairs.length; from++) {
      let to = from;
      while (pairs[to] !== undefined) to++;
      const run = pairs.slice(from, to).flatMap((each) => (each ? [each] : []));
      const names = run.flatMap((each) => each.map(([name]) => name));
      const areMixed = (n: number) => new Set(run.map((each) => kindOf(each[n]?.[1] ?? '') === 'text')).size > 1;
      const isApart = texts.slice(from, to).some((text) => text.includes(gap));
      if (
        run.length >= (isApart ? MIN_LEGENDS : MIN_LINES) &&
        new Set(names).size === names.length &&
        (areMixed(0) || areMixed(1))
      )
        found.push({
          finders: run.map((_, n) => ({
            line: raw[from + n]?.trim().split(gap[0] ?? sign)[0] ?? '',
            delimiter: sign,
            separator: 'cell',
          })),
          numbers: run.map((_, n) => from + n + 1),
        });
      from = Math.max(from, to - 1);
    }
    return found;
  });
}

/** Names are words, and each has a value. Undefined if the cells are something else. */
function pairsApart(cells: readonly string[]): (readonly [name: string, value: string])[] | undefined {
  // Most lines are rows: a number stands where a name would.
  if (cells.length < 4 || (/^[-+.\d]/.test(cells[2] ?? '') && /^[-+.\d]/.test(cells[3] ?? ''))) return undefined;
  const filled = withoutTrailingEmpty(cells).filter((cell, n) => cell !== '' || n % 3 !== 2);
  const pairs = filled.flatMap((name, n) => (n % 2 === 0 ? [[name, filled[n + 1] ?? ''] as const] : []));
  if (pairs.length < 2 || pairs.length > 3) return undefined;
  const arePairs = pairs.every(([name, value]) => value !== '' && isWord(name) && !/[:=]$/.test(name));
  return arePairs && !pairs.some(([name]) => isUnit(name)) ? pairs : undefined;
}
