import type { ParseMapping } from '../config/vocabulary.js';
import { compileSplit } from '../parse/cells.js';
import { letterAt } from '../parse/extract/grid.js';
import { isBlank, type Line } from '../parse/lines.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';

/** How the facts outside tables are found: pairs of name and value, and lines that say something without a name. */

export type FinderMapping = Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]>;

/** Longer lines are data. Splitting them in a dozen ways would take too long. */
const MAX_LINE = 20_000;

/** `separators`: in lines of one pair each. `read`: the lines that hold pairs. */
export function findPairs(lines: readonly Line[], delimiter: string | undefined) {
  const filled = lines.filter((line) => line.text.length <= MAX_LINE && !isBlank(line));
  const several = findPairsInCells(filled, delimiter);
  const read = new Set<Line>(several?.read);
  const finders: FinderMapping[] = several ? [several.finder] : [];
  const rest = filled.filter((line) => !read.has(line));
  const separators = findSeparators(rest, delimiter);
  if (separators.length > 0) finders.push(describeSeparators(separators, rest, delimiter));
  for (const separator of separators) for (const line of pairLines(rest, separator, delimiter)) read.add(line);
  return { finders, separators, read };
}

/** Two or more spaces, but not those that align the separators: `Method   :  A     Vial : 1`. */
const GAPS = '/(?<![ :=]) {2,}(?![ :=])/';

/** Several pairs per line, each in one cell (`User: A, Test: 3`) or in two (`User:` `A` `Test:` `3`). */
function findPairsInCells(lines: readonly Line[], delimiter: string | undefined) {
  const delimiters = [delimiter, ',', ';', 'spaces', 'tab', GAPS].filter((each) => each !== undefined);
  let best: (ReturnType<typeof countPairs> & { finder: FinderMapping }) | undefined;
  for (const candidate of new Set(delimiters)) {
    const split = compileSplit(candidate).all;
    const own = candidate === delimiter ? {} : { delimiter: candidate };
    for (const separator of [':', '=']) {
      const { once } = compileSplit(separator);
      const isOne = (cell: string) => {
        const parts = once(cell);
        return parts !== undefined && parts[1] !== '' && isPair(parts, separator);
      };
      const found = countPairs(lines, ({ text }) => split(text).filter(isOne).length);
      if (found.hits >= (candidate === delimiter ? 2 : 3) && found.hits > (best?.hits ?? 0))
        best = { ...found, finder: { ...own, in: 'cells', separator } };
    }
    const found = countPairs(lines, ({ text }) => {
      const cells = split(text).filter((cell) => cell !== '');
      return cells.filter((cell, n) => n % 2 === 0 && /[:=]$/.test(cell)).length;
    });
    if (found.lines > 1 && found.hits > (best?.hits ?? 0)) best = { ...found, finder: { ...own, separator: 'cell' } };
  }
  return best;
}

/** `hits`: how many pairs are in lines with several. */
function countPairs(lines: readonly Line[], pairsIn: (line: Line) => number) {
  const counted = lines.map((line) => ({ line, pairs: pairsIn(line) }));
  const several = counted.filter(({ pairs }) => pairs > 1);
  return {
    lines: several.length,
    hits: several.reduce((sum, { pairs }) => sum + pairs, 0),
    read: counted.filter(({ pairs }) => pairs > 0).map(({ line }) => line),
  };
}

/** What separates name and value; more than one if some lines use another separator. */
function findSeparators(lines: readonly Line[], delimiter: string | undefined): string[] {
  const own = delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter];
  const candidates = new Set([...own, ':', '=', 'tab', 'spaces']);
  const found: string[] = [];
  let rest = lines;
  while (rest.length > 0 && found.length < 3) {
    const signs = [...candidates].filter((each) => each !== 'spaces');
    const isFirst = found.length === 0;
    // A sign is stronger evidence than a gap.
    const best = bestSeparator(rest, signs, delimiter, isFirst) ?? bestSeparator(rest, ['spaces'], delimiter, isFirst);
    if (best === undefined || found.includes(best)) break;
    found.push(best);
    candidates.delete(best);
    const read = new Set(pairLines(rest, best, delimiter));
    rest = rest.filter((line) => !read.has(line));
  }
  return found;
}

function bestSeparator(
  lines: readonly Line[],
  candidates: readonly string[],
  delimiter: string | undefined,
  isFirst: boolean,
): string | undefined {
  let best: { separator: string; hits: number } | undefined;
  for (const separator of candidates) {
    const { once } = compileSplit(separator);
    const split = lines.filter(({ text }) => once(text)).length;
    const pairs = pairLines(lines, separator, delimiter);
    const hits = new Set(pairs.map(({ text }) => once(text)?.[0])).size;
    // In a list of facts, most lines that can be split have a name, and most names differ.
    const isList = pairs.length * 2 >= split && hits * 8 > pairs.length;
    // Spaces separate words too, so they need more evidence.
    const minHits = separator === 'spaces' ? 4 : isFirst || separator === '=' ? 1 : 2;
    if (isList && hits >= minHits && hits > (best?.hits ?? 0)) best = { separator, hits };
  }
  return best?.separator;
}

/** Name, type, value, unit, comment. */
const MAX_PIECES = 5;

function pairLines(lines: readonly Line[], separator: string, delimiter: string | undefined): Line[] {
  const { once } = compileSplit(separator);
  const isDelimited = delimiter !== undefined && compileSplit(delimiter).text !== undefined;
  return lines.filter(({ text, cells }) => {
    // A line of many cells is a row or a header.
    if (isDelimited && cells.filter((cell) => cell !== '').length > MAX_PIECES) return false;
    const parts = once(text);
    return parts !== undefined && isPair(parts, separator);
  });
}

/** `12:30` is a time of day, not a name and a value. */
const isPair = ([name, value]: readonly [string, string], separator: string): boolean =>
  isName(name) && !(separator === ':' && /\d$/.test(name) && /^\d\d/.test(value));

/** A few words. A separator within them means that the line was split in the wrong place. */
const isName = (name: string): boolean =>
  name.length <= 60 && /\p{L}/u.test(name) && !/[:=]\s*[^\s:=]/.test(name) && !/^[\d.,;-]+\s/.test(name);

const AS_PATTERN: Readonly<Record<string, string>> = { tab: '\\t', spaces: ' {2,}(?![ :=])', '|': '\\|' };

function describeSeparators(
  separators: readonly string[],
  lines: readonly Line[],
  delimiter: string | undefined,
): FinderMapping {
  const [first = ':', ...others] = separators;
  if (first === delimiter && others.length === 0) return { separator: first, ...describePieces(lines) };
  // Delimiters directly after the separator only move the value to the right.
  const sign = delimiter === undefined ? undefined : compileSplit(delimiter).text;
  const isMoved = sign !== undefined && lines.some(({ text }) => text.replaceAll('"', '').includes(`${first}${sign}`));
  if (others.length === 0 && !isMoved) return { separator: first };
  const signs = separators.map((each) => AS_PATTERN[each] ?? each).join('|');
  const padding = sign === undefined || sign === '\t' ? '[\\s]*' : `[\\s${sign}]*`;
  return { separator: others.length === 0 ? `/${signs}${padding}/` : `/(?:${signs})${padding}/` };
}

/** Which cell holds the value, if a type precedes it or a unit follows it. */
function describePieces(lines: readonly Line[]): Pick<FinderMapping, 'value' | 'unit'> {
  const long = lines.filter(({ cells }) => cells.filter((cell) => cell !== '').length >= 3);
  const units = long.filter(({ cells }) => isUnit(bareUnit(cells[2]) ?? '')).length;
  if (long.length > 0 && units === long.length) return { value: 2, unit: 3 };
  if (long.length < 2 || long.length * 3 < lines.length) return {};
  if (units * 2 > long.length) return { value: 2, unit: 3 };
  const types = new Set(long.map(({ cells }) => cells[1]));
  const areTypes = [...types].every((type) => /^[A-Z]\w*$/.test(type ?? ''));
  return areTypes && types.size * 2 <= long.length ? { value: 3 } : {};
}

const MAX_UNNAMED_LINES = 12;
const MAX_UNNAMED_CELLS = 20;

/**
 * Lines near the top that say something without a name: a title, an instrument, a date.
 * They become facts with spreadsheet names (A1, B1) for a person to rename.
 */
export const findUnnamed = (lines: readonly Line[], delimiter: string | undefined): FinderMapping[] =>
  lines
    .filter((line) => !isBlank(line) && isInformative(line))
    .slice(0, MAX_UNNAMED_LINES)
    .map((line) => describeUnnamed(line, delimiter));

/** Not a rule, not the name of a section, not prose. */
const isInformative = ({ text }: Line): boolean =>
  text.length <= 300 && /[\p{L}\p{N}]{2}/u.test(text) && !/^\W*\[[^\]]*\]\W*$/.test(text) && !/^[~>]/.test(text.trim());

function describeUnnamed({ number: line, text, cells }: Line, delimiter: string | undefined): FinderMapping {
  const whole: FinderMapping = { line, match: `/(?<A${line}>\\S.*\\S)/` };
  // A date can contain commas.
  if (dateCandidates(text).length > 0) return whole;
  const byCell = (places: readonly number[]) =>
    Object.fromEntries(places.map((place) => [`${letterAt(place - 1)}${line}`, place]));
  const filled = filledPlaces(cells);
  // A single quoted cell: without its quotes.
  if (text.trim().startsWith('"') && filled.length === 1) return { line, cells: byCell(filled) };
  const signs = [delimiter ?? ',', ',', ';', 'tab', '|'].filter((sign) => !/^[sw]/.test(sign));
  for (const sign of new Set(signs)) {
    const places = filledPlaces(text.split(sign === 'tab' ? '\t' : sign).map((cell) => cell.trim()));
    // Two words with another sign between them are one sentence.
    if (places.length < (sign === delimiter ? 2 : 3) || places.length > MAX_UNNAMED_CELLS) continue;
    return { line, ...(sign !== delimiter && { delimiter: sign }), cells: byCell(places) };
  }
  return whole;
}

/** From 1. */
const filledPlaces = (cells: readonly string[]): number[] => cells.flatMap((cell, n) => (cell === '' ? [] : [n + 1]));
