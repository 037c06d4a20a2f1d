import type { ParseMapping } from '../config/vocabulary.js';
import { compileSplit } from '../parse/cells.js';
import { isBlank, type Line } from '../parse/lines.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';

export type FinderMapping = Exclude<NonNullable<ParseMapping['meta']>, readonly unknown[]>;

/** How the facts of a file are found, and which lines hold them. */
interface FoundPairs {
  readonly finders: FinderMapping[];
  /** What lines are cut at, where they are a name and a value. */
  readonly separators: readonly string[];
  readonly read: ReadonlySet<Line>;
}

/** Looks through the lines that are in no table for names with values. */
export function findPairs(lines: readonly Line[], delimiter: string | undefined): FoundPairs {
  const filled = lines.filter((line) => line.text.length <= LONGEST && !isBlank(line));
  const read = new Set<Line>();
  const finders: FinderMapping[] = [];
  const several = findSeveral(filled, delimiter);
  if (several) {
    finders.push(several.finder);
    for (const line of several.read) read.add(line);
  }
  const rest = filled.filter((line) => !read.has(line));
  const separators = findSeparators(rest, delimiter);
  if (separators.length > 0) {
    finders.push(describeSeparators(separators, rest, delimiter));
    for (const separator of separators)
      for (const line of pairLines(rest, separator, delimiter)) read.add(line);
  }
  return { finders, separators, read };
}

/** Names and values are for people to read; a line beyond this is data, and is not cut in a dozen ways to find out. */
const LONGEST = 20_000;

/** Two blanks and more, but none that bring the signs of several lines below each other: `Method   :  A     Vial : 1`. */
const GAPS = '/(?<![ :=]) {2,}(?![ :=])/';

interface Several {
  readonly finder: FinderMapping;
  readonly read: readonly Line[];
}

/** Lines with several names and values each, `User: A, Test: 3`, or in cells of their own, `User:` `A` `Test:` `3`. */
function findSeveral(lines: readonly Line[], delimiter: string | undefined): Several | undefined {
  const delimiters = [...new Set([delimiter, ',', ';', 'spaces', 'tab', GAPS])].filter(
    (each) => each !== undefined,
  );
  let best: (Several & { hits: number }) | undefined;
  for (const candidate of delimiters) {
    const cut = compileSplit(candidate);
    const own = candidate === delimiter ? {} : { delimiter: candidate };
    for (const separator of [':', '=']) {
      const pairs = compileSplit(separator);
      const isOne = (cell: string) => {
        const parts = pairs.once(cell);
        return parts !== undefined && parts[1] !== '' && isPair(parts, separator);
      };
      const found = lines.filter((line) => cut.all(line.text).filter(isOne).length > 1);
      const hits = found.reduce((sum, line) => sum + cut.all(line.text).filter(isOne).length, 0);
      const read = lines.filter((line) => cut.all(line.text).some(isOne));
      if (hits >= (candidate === delimiter ? 2 : 3) && hits > (best?.hits ?? 0))
        best = { hits, read, finder: { ...own, in: 'cells', separator } };
    }
    const isNamed = (line: Line) => {
      const cells = cut.all(line.text).filter((cell) => cell !== '');
      return cells.filter((cell, n) => n % 2 === 0 && /[:=]$/.test(cell)).length;
    };
    const found = lines.filter((line) => isNamed(line) > 1);
    const hits = found.reduce((sum, line) => sum + isNamed(line), 0);
    if (found.length > 1 && hits > (best?.hits ?? 0)) {
      best = { hits, read: lines.filter((line) => isNamed(line) > 0), finder: { ...own, separator: 'cell' } };
    }
  }
  return best;
}

/** What lines are cut at into name and value; more than one where some lines are cut at another sign. */
function findSeparators(lines: readonly Line[], delimiter: string | undefined): string[] {
  const own = delimiter === undefined || delimiter === 'whitespace' ? [] : [delimiter];
  const candidates = new Set([...own, ':', '=', 'tab', 'spaces']);
  const found: string[] = [];
  let rest = lines;
  while (rest.length > 0 && found.length < 3) {
    const signs = [...candidates].filter((each) => each !== 'spaces');
    const isFirst = found.length === 0;
    // A sign says more than a gap does.
    const best =
      bestSeparator(rest, signs, delimiter, isFirst) ?? bestSeparator(rest, ['spaces'], delimiter, isFirst);
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
    const { once: cutOnce } = compileSplit(separator);
    const cut = lines.filter(({ text }) => cutOnce(text)).length;
    const pairs = pairLines(lines, separator, delimiter);
    const hits = new Set(pairs.map(({ text }) => cutOnce(text)?.[0])).size;
    // Facts have names, and mostly names of their own; where few have, it is no list of facts.
    const isList = pairs.length * 2 >= cut && hits * 8 > pairs.length;
    // Blanks separate words as well: they must be all that there is.
    const fewest = separator === 'spaces' ? 4 : isFirst || separator === '=' ? 1 : 2;
    if (isList && hits >= fewest && hits > (best?.hits ?? 0)) best = { separator, hits };
  }
  return best?.separator;
}

/** The lines that are a name and a value. */
function pairLines(lines: readonly Line[], separator: string, delimiter: string | undefined): Line[] {
  const split = compileSplit(separator);
  const isCut = delimiter !== undefined && compileSplit(delimiter).text !== undefined;
  return lines.filter(({ text, cells }) => {
    // A line of many cells is one of names or of values, not one of both.
    if (isCut && cells.filter((cell) => cell !== '').length > MOST_PIECES) return false;
    const parts = split.once(text);
    return parts !== undefined && isPair(parts, separator);
  });
}

/** Name, type, value, unit, and what a person may want to know. */
const MOST_PIECES = 5;

/** A name is a few words; one with a `:` or `=` within was cut wrongly, and so was a time of day. */
const isPair = ([name, value]: readonly [string, string], separator: string): boolean =>
  isName(name) && !(separator === ':' && /\d$/.test(name) && /^\d\d/.test(value));

const isName = (name: string): boolean =>
  name.length <= 60 && /\p{L}/u.test(name) && !/[:=]\s*[^\s:=]/.test(name) && !/^[\d.,;-]+\s/.test(name);

const AS_PATTERN: Readonly<Record<string, string>> = { tab: '\\t', spaces: ' {2,}(?![ :=])', '|': '\\|' };

function describeSeparators(
  separators: readonly string[],
  lines: readonly Line[],
  delimiter: string | undefined,
): FinderMapping {
  const [first = ':', ...others] = separators;
  if (first === delimiter && others.length === 0) return { separator: first, ...piecesOf(lines) };
  // Delimiters right after the sign only move the value to the right.
  const sign = delimiter === undefined ? undefined : compileSplit(delimiter).text;
  const moves =
    sign !== undefined && lines.some(({ text }) => text.replaceAll('"', '').includes(`${first}${sign}`));
  if (others.length === 0 && !moves) return { separator: first };
  const signs = separators.map((each) => AS_PATTERN[each] ?? each).join('|');
  const blank = sign === undefined || sign === '\t' ? '\\s' : `\\s${sign}`;
  return { separator: separators.length === 1 ? `/${signs}[${blank}]*/` : `/(?:${signs})[${blank}]*/` };
}

/** Where name and value have a type between them, or a unit behind them: which piece is which. */
function piecesOf(lines: readonly Line[]): Pick<FinderMapping, 'value' | 'unit'> {
  const long = lines.filter(({ cells }) => cells.filter((cell) => cell !== '').length >= 3);
  const units = long.filter(({ cells }) => isUnit(bareUnit(cells[2]) ?? '')).length;
  if (long.length > 0 && units === long.length) return { value: 2, unit: 3 };
  if (long.length < 2 || long.length * 3 < lines.length) return {};
  if (units * 2 > long.length) return { value: 2, unit: 3 };
  const types = new Set(long.map(({ cells }) => cells[1]));
  const areTypes = [...types].every((type) => /^[A-Z]\w*$/.test(type ?? ''));
  return areTypes && types.size * 2 <= long.length ? { value: 3 } : {};
}
