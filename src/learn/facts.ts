import type { Finder } from '../config/vocabulary.js';
import { compileSplit, lineFormat, splitLine } from '../parse/cells.js';
import { cleanName } from '../parse/extract/columns.js';
import { createPairReader, factName } from '../parse/extract/pairs.js';
import { isBlank, isRule, type Line } from '../parse/lines.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { isSubject, kindOf } from './kinds.js';
import {
  type Candidate,
  type FinderMapping,
  isRunningText,
  MAX_PIECES,
  pairsBeside,
  pairsInCells,
  pairsInText,
  pairsPerLine,
} from './pieces.js';
import type { PlacedFacts } from './placed.js';

/** How the facts outside tables are found: pairs of name and value, and lines that say something without a name. */

/** Longer lines are data. Splitting them in many ways would take too long. */
const MAX_LINE = 20_000;
/** More lines would not show other ways to write pairs. */
const [MAX_SEEN, MAX_FINDERS] = [400, 3];

/** What a candidate reads from one line. */
interface Reading {
  /** Names with a plausible value. */
  readonly good: readonly string[];
  /** These with their values. */
  readonly pairs: readonly NameAndText[];
  /** Everything that looks like a pair, also where it is not used as a fact. */
  readonly all: readonly NameAndText[];
  /** How many values seem to contain another pair. */
  readonly crowded: number;
  readonly empty: number;
  /** How many pairs are none, because the line was split in the wrong place. */
  readonly junk: number;
  /** How many of those have a name that is a pair: left out where another candidate reads the line. */
  readonly pairsAsNames: number;
  /** The names among those. */
  readonly unclear: readonly string[];
  /** Whether cells of the line are no pair. They are lost, or cut off from the value before them. */
  readonly hasLost: boolean;
}

type Measured = ReturnType<typeof measureCandidate>;

/**
 * Reads the lines in every way that their signs suggest, and takes the ways that yield the most facts. A wrong fact
 * counts more than a missing one. `separators`: in lines of one pair each. `read`: the lines that hold pairs.
 * `placed`: what was found before, in lines that are not searched again. `end`: the number of the last line of the file.
 */
export function findPairs(
  lines: readonly Line[],
  delimiter: string | undefined,
  { placed, end = 0 }: { readonly placed?: PlacedFacts | undefined; readonly end?: number | undefined } = {},
) {
  const isPlaced = ({ number }: Line) => placed?.lines.has(number) ?? false;
  const filled = lines.filter(
    (line) => line.text.length <= MAX_LINE && !isBlank(line) && !isRule(line) && !isPlaced(line),
  );
  const read = new Set<Line>(placed && placed.lines.size > 0 ? lines.filter(isPlaced) : []);
  const before: FinderMapping[] = [...(placed?.finders ?? [])];
  if (filled.length === 0) return { finders: before, separators: [], read, doubts: [] };
  const seen = filled.length <= MAX_SEEN ? filled : [...filled.slice(0, MAX_SEEN - 100), ...filled.slice(-100)];
  const splits: Splits = new Map();
  const counted = countedLines(seen);
  const candidates = [...pairsPerLine(seen, delimiter), ...pairsInCells(seen, delimiter)].map((candidate) =>
    measureCandidate(candidate, seen, delimiter, { splits, counted }),
  );
  const chosen: Measured[] = [];
  while (chosen.length < MAX_FINDERS) {
    const scored = candidates.map((candidate) => {
      const isInBlock = ({ good, unclear }: Reading) =>
        [...good, ...unclear].some((name) => candidate.blocks.has(name));
      const outside = seen.filter((line) => !isInBlock(candidate.readings.get(line) ?? NO_PAIRS));
      const score = Math.max(scoreOf(candidate, seen, read), scoreOf(candidate, outside, read));
      return { candidate, score };
    });
    const best = scored.reduce((a, b) => (b.score > a.score ? b : a));
    if (best.score <= 0) break;
    chosen.push(best.candidate);
    for (const line of filled) if (holdsPairs(best.candidate.readLine(line))) read.add(line);
  }
  const single = findSingleLines(seen, read, candidates, chosen, delimiter);
  for (const { line } of single) read.add(line);
  const isSingle = new Set(single.map(({ line }) => line));
  const readingsOf = (line: Line) => (isSingle.has(line) ? [] : chosen.map((each) => each.readLine(line)));
  const lone = findLonePairs(lines, read, end, (line) => readingsOf(line).flatMap(({ pairs }) => pairs));
  const mixed = findMixedPairs(filled, (line) => readingsOf(line).flatMap(({ all }) => all));
  return {
    // The first finder of a fact decides its value.
    finders: [
      ...before,
      ...single.map(({ finder }) => finder),
      ...chosen.map((each) =>
        withoutNames(each, filled, [...lone.except, ...mixed.except, ...(placed?.except ?? [])], delimiter),
      ),
    ],
    separators: chosen.flatMap(({ signs }) => signs),
    read,
    doubts: [...lone.doubts, ...mixed.doubts],
  };
}

/** Fewer could be two samples. More names would make the pattern unreadable. */
const [MIN_BLOCKS, MAX_BLOCK_NAMES] = [3, 30];

/** Names that repeat are those of blocks that describe columns or steps. As facts, they would only be numbered. */
function blockNames({ finder: { separator }, signs }: Candidate, readings: Iterable<Reading>, delimiter?: string) {
  const isOnePair = signs.length > 0 && signs.every((sign) => /^[:=]$/.test(sign)) && separator !== delimiter;
  if (!isOnePair || typeof separator !== 'string') return new Set<string>();
  const times = new Map<string, number>();
  for (const { good, unclear } of readings)
    for (const name of [...good, ...unclear]) times.set(name, (times.get(name) ?? 0) + 1);
  const names = [...times].filter(([, count]) => count >= MIN_BLOCKS).map(([name]) => name);
  return new Set(names.length > MAX_BLOCK_NAMES ? [] : names);
}

function withoutNames(
  candidate: Measured,
  lines: readonly Line[],
  lone: readonly string[],
  delimiter?: string,
): FinderMapping {
  const { finder, readLine } = candidate;
  const names = [...blockNames(candidate, lines.map(readLine), delimiter), ...lone];
  return names.length === 0 ? finder : { ...finder, except: names.length === 1 && names[0] ? names[0] : names };
}

/** By delimiter: the lines, which are split once for all candidates. */
type Splits = Map<FinderMapping['delimiter'], Map<Line, Line>>;

/** `Peak 1,0.5` above `Peak 2,0.6`: the comma separates, other than in `at 20,5 °C`. */
function countedLines(lines: readonly Line[]): ReadonlySet<Line> {
  const names = lines.map(({ text }) => /^(\P{N}*\p{L}\P{N}*) (\d+),[^,]*$/u.exec(text) ?? []);
  const follows = (n: number) =>
    names[n]?.[1] !== undefined &&
    names[n]?.[1] === names[n - 1]?.[1] &&
    Number(names[n]?.[2]) === Number(names[n - 1]?.[2]) + 1;
  return new Set(lines.filter((_, n) => follows(n) || follows(n + 1)));
}

function measureCandidate(
  candidate: Candidate,
  lines: readonly Line[],
  delimiter: string | undefined,
  { splits, counted }: { readonly splits: Splits; readonly counted: ReadonlySet<Line> },
) {
  const { finder } = candidate;
  const format = lineFormat(finder.delimiter ?? delimiter, '"');
  const pairs = createPairReader({ ...finder, in: finder.in ?? 'lines' } as Finder, format);
  const isRow = isRowIn(finder, delimiter);
  const known = splits.get(finder.delimiter) ?? new Map<Line, Line>();
  splits.set(finder.delimiter, known);
  const readLine = (line: Line): Reading => {
    const split = finder.delimiter === undefined ? line : (known.get(line) ?? splitLine(line, format));
    known.set(line, split);
    const found = (pairs(split) ?? []).filter(({ name }) => factName(name) !== '');
    if (found.length > 0 && isRow(line)) return { ...NO_PAIRS, junk: 1 };
    const isCounted = counted.has(line) && finder.separator === ',' && delimiter === ',';
    const judged = found.map(({ name, text }) => ({
      name: factName(name),
      text,
      is: isCounted && text !== '' ? 'good' : judge(name, text, split, finder, delimiter),
    }));
    const count = (is: Judgement) => judged.filter((each) => each.is === is).length;
    const good = judged.filter(({ is }) => is === 'good' || is === 'crowded');
    return {
      good: good.map(({ name }) => name),
      pairs: good,
      all: judged,
      crowded: count('crowded'),
      empty: count('empty'),
      junk: count('junk'),
      pairsAsNames: judged.filter(({ name, is }) => is === 'junk' && PAIR_AS_NAME.test(name)).length,
      unclear: judged.filter(({ name, is }) => is === 'junk' && isName(name)).map(({ name }) => name),
      hasLost: hasLostCells(split, found, finder),
    };
  };
  const readings = new Map(lines.map((line) => [line, readLine(line)]));
  return { ...candidate, readLine, readings, blocks: blockNames(candidate, readings.values(), delimiter) };
}

/** A line of many cells is a row or a header, not a name and a value. */
function isRowIn({ in: where, separator }: FinderMapping, delimiter: string | undefined): (line: Line) => boolean {
  const isDelimited = delimiter !== undefined && compileSplit(delimiter).text !== undefined;
  if (where === 'cells' || separator === 'cell' || !isDelimited) return () => false;
  return ({ cells }) => {
    const names = cells.filter((cell) => /\p{L}\s*[:=]$/u.test(cell)).length;
    return cells.filter((cell) => cell !== '').length > MAX_PIECES * Math.max(1, names);
  };
}

function hasLostCells({ cells }: Line, found: readonly unknown[], finder: FinderMapping): boolean {
  if (found.length === 0) return false;
  const filled = cells.filter((cell) => /[\p{L}\p{N}]/u.test(cell)).length;
  return finder.separator === 'cell' ? filled > 2 * found.length : finder.in === 'cells' && filled > found.length;
}

/** `ID: 7` before `Mode: WB` */
const PAIR_AS_NAME = /^\p{L}[^:=]*[:=]\s\S/u;

type Judgement = 'good' | 'crowded' | 'empty' | 'junk';

function judge(
  written: string,
  text: string,
  line: Line,
  finder: FinderMapping,
  delimiter: string | undefined,
): Judgement {
  const name = factName(written);
  const sign = finder.delimiter === undefined ? undefined : compileSplit(delimiter ?? 'tab').text;
  // A heading, not a pair: `Impedance at 14:55:07 :`.
  if (/\d:\d\d$/.test(name) && !/[\p{L}\p{N}]/u.test(text)) return 'empty';
  // `Exit Slit: Bandpass<tab>3.00 nm`
  const isWhole = finder.separator === delimiter && line.cells.length === 2 && /^[-+]?\d/.test(text);
  if (
    !isName(isWhole ? name.replace(/: /, ' ') : name) ||
    kindOf(name) === 'date' ||
    isCut(name, text, line) ||
    (sign !== undefined && name.includes(sign))
  )
    return 'junk';
  if (!/[\p{L}\p{N}]/u.test(text)) return 'empty';
  // `{min: 3.0, max: 12.0}` was cut.
  if (!hasPairedBraces(text)) return 'junk';
  if (text.includes('\t') && /\S: *\S.*\t/.test(line.text) && line.cells.length === 2) return 'junk';
  // The rest of another pair, another name, or a row.
  if (/^[:=,;|]|[,;]$|^[-\d.]+:\s|\t.*\t.*\t/.test(text) || /^[\p{L}\p{N} .#/()-]+[:=]$/u.test(text)) return 'junk';
  if (finder.separator === 'cell' && !isMarked(written, text, line, finder.delimiter === undefined)) return 'junk';
  if (sign === undefined && finder.separator === delimiter && hasGap(text, delimiter)) return 'junk';
  if (areJoined(name, text, line, finder, delimiter) || isRowOfWords(name, text, line)) return 'junk';
  if (GLUED.test(text) || JOINED.test(text) || (BESIDE.test(text) && !WITH_UNIT.test(text))) return 'junk';
  return ANOTHER_PAIR.test(text) ? 'crowded' : 'good';
}

/** Names of axes or columns, or a number and its unit: `O1 piezo  pitch  slit`, `T 100  (ms)`. */
const isRowOfWords = (name: string, text: string, { text: all }: Line): boolean =>
  all.includes(`${name}  `) &&
  (/ [\d.]+$/.test(name) ? /^[([].*[)\]]$/ : /^\p{L}\S*(?: {2,}\p{L}\S*){2,}$/u).test(text);

/** Several cells that were joined to one value: neither a list of values nor a text with commas. */
function areJoined(
  name: string,
  text: string,
  line: Line,
  { in: where, separator, value, delimiter: own }: FinderMapping,
  delimiter = 'tab',
): boolean {
  const sign = compileSplit(delimiter).text;
  if (sign === undefined || where === 'cells' || separator === 'cell' || value !== undefined || own !== undefined)
    return false;
  const isAfterCell = line.cells[0] !== undefined && cleanName(line.cells[0]) === name;
  return isAfterCell && text.includes(sign) && !isRunningText(line) && !line.cells.includes(text);
}

/** An empty cell among the cells of a value. */
const hasGap = (text: string, delimiter = 'tab'): boolean => {
  const sign = compileSplit(delimiter).text;
  return sign !== undefined && new RegExp(`[${sign}]\\s*[${sign}]`).test(text);
};

/** A few words. A separator within them means that the line was split in the wrong place. */
const isName = (name: string): boolean =>
  name.length <= 60 &&
  /\p{L}/u.test(name) &&
  !/[:=]\s*[^\s:=]|[\t"|<>]|(?:\.\.|,)$/.test(name.replace(/ = [-\d.]+$| \([^()]*\)$/, '')) &&
  !/^[\d.,;-]+\s|^(?:\S\s){2,}\S$|^(?:\S+\s+){8}\S/.test(name) &&
  (hasPairedBrackets(name) || hasPairedBrackets(name.replace(/^\[/, '')));

const hasPairedBrackets = (text: string): boolean => count(text, /[([]/g) === count(text, /[)\]]/g);

const hasPairedBraces = (text: string): boolean => count(text, /\{/g) === count(text, /\}/g);

const count = (text: string, pattern: RegExp): number => text.match(pattern)?.length ?? 0;

/** A date is not a pair. `12:30` is a time of day, `C:\Data` a path and `http://…` an address. */
function isCut(name: string, text: string, { text: line }: Line): boolean {
  if (/^[\\/]/.test(text) && /(?:^|\W)(?:[A-Za-z]|https?|ftp|file)$/.test(name)) return true;
  // `at 20,0 °C`
  if (/ \d+$/.test(name) && /^\d/.test(text) && line.includes(`${name},${text.slice(0, 1)}`)) return true;
  // `coupon, 3.5 % NaCl, 24 h`
  const [, rest = ''] = line.split(`${name}, `);
  if (rest.includes(', ') && /\p{L}/u.test(rest)) return true;
  if (/\d$/.test(name) && /^\d\d/.test(text) && line.includes(`${name.slice(-20)}:${text.slice(0, 2)}`)) return true;
  return /\d/.test(name) && line.length < 60 && dateCandidates(line.trim()).length > 0;
}

const ANOTHER_PAIR = /(?:^|[\s,;/|])\p{L}[\p{L} .]{1,30}[:=]\s*[^\s\\/]/u;

/** The next name directly after a value that fills its place: `114pktFilename: 114.raw`. */
const GLUED = /[\p{Ll}\p{N}]\p{Lu}[\p{L} .]{1,60}:(?![\\/])/u;
/** A short name and its value directly after a value: `2f31 SV:2.1`. */
const JOINED = /^\S+ \p{Lu}{1,4}[:=][^\s\\/]/u;
/** What follows a wide gap within a value stands beside it, other than a unit: another name and its value, or a remark. */
const BESIDE = / {3}\p{L}| {2}\p{L}(?:[\p{L} .]{0,60}[:=]|[\p{L} .]{1,60}\d)|\p{L}{2}[:=] {2,}\S/u;
const WITH_UNIT = /^[-+\d.,eE]+\s+\S+$/;

/** Alternating cells are pairs if signs mark the names, or if there is only one pair, or if the values are numbers. */
function isMarked(name: string, text: string, { cells }: Line, isOwn: boolean): boolean {
  const next = cells[cells.indexOf(name) + 1];
  if (/[:=]\s*$/.test(name) || next === ':' || next === '=') return true;
  if (cells.some((cell) => cell !== text && cell.endsWith(text) && cell.startsWith(name))) return true;
  const filled = cells.filter((cell) => cell !== '').length;
  return (
    (isOwn && filled === 2) ||
    (filled > 3 && /^[^\d]*\p{L}{3}[^\d]*$/u.test(name) && /^[-+]?\d[\d.,]*(?:[eE][-+]?\d+)?$/.test(text))
  );
}

/** Repeated names count little: a list of facts has different ones. */
function scoreOf(
  { finder, readings, signs, cost, minHits }: Measured,
  lines: readonly Line[],
  read: ReadonlySet<Line>,
): number {
  const names = new Set<string>();
  let times = 0;
  let hasSeveral = signs.length > 0 || (finder.separator === 'cell' && finder.delimiter !== undefined);
  let penalty = cost;
  for (const line of lines) {
    const { good, crowded, empty, hasLost, ...reading } = readings.get(line) ?? NO_PAIRS;
    // A wide line of a workbook counts no more than others.
    // A missing fact is better than one cut from a sentence.
    const wrong = read.has(line) ? reading.junk - reading.pairsAsNames : reading.junk;
    const junk = Math.min(2, wrong + 0.9 * Number(hasLost));
    // All finders read all lines, so a line that another one has read would yield further facts.
    if (read.has(line)) penalty += 2 * (good.length + empty + junk);
    else {
      for (const name of good) names.add(name);
      times += new Set(good).size;
      hasSeveral ||= good.length > 1;
      penalty += 0.6 * crowded + 2 * junk - 0.05 * empty;
    }
  }
  return !hasSeveral || names.size < minHits || names.size * 8 <= times ? 0 : names.size - penalty;
}

const NO_PAIRS: Reading = {
  good: [],
  pairs: [],
  all: [],
  crowded: 0,
  empty: 0,
  junk: 0,
  pairsAsNames: 0,
  unclear: [],
  hasLost: false,
};

const holdsPairs = ({ good, empty }: Reading): boolean => good.length > 0 || empty > 0;

const MAX_SINGLE_LINES = 6;

/** Lines with several pairs, unlike the others: read one by one. */
function findSingleLines(
  lines: readonly Line[],
  read: ReadonlySet<Line>,
  candidates: readonly Measured[],
  chosen: readonly Measured[],
  delimiter: string | undefined,
) {
  const cells = candidates.filter(({ signs }) => signs.length === 0);
  const isPlainText = delimiter === undefined || compileSplit(delimiter).text === undefined;
  // Words beside words are pairs if other lines of the file are.
  const arePaired = !isPlainText && lines.some((line) => pairsBeside(line));
  const found: { line: Line; finder: FinderMapping }[] = [];
  for (const line of lines) {
    const isRead = read.has(line);
    // Words with a number are no pair, but they end the value before them.
    const isBeside = /^[^:=]*[:=](?![^:=]*[:=] ).* {2}\p{L}[\p{L} .]{1,60}\d/u.test(line.text);
    const best = cells
      .filter(({ readings }) => {
        const { good, crowded, junk, hasLost } = readings.get(line) ?? NO_PAIRS;
        if (crowded + junk > 0 || new Set(good).size < good.length) return false;
        return isBeside ? good.length > 0 : good.length > 1 && !hasLost;
      })
      .sort((a, b) => a.cost - b.cost)[0];
    const isCrowded = chosen.some(({ readings }) => {
      const { crowded, junk } = readings.get(line) ?? NO_PAIRS;
      return crowded + junk > 0;
    });
    const inText = !best && (!isRead || isCrowded) ? pairsInText(line) : undefined;
    const beside = inText ?? (isPlainText ? undefined : pairsBeside(line, arePaired));
    if (beside) found.push({ line, finder: { line: line.number, ...beside } });
    else if (best && (!isRead || isCrowded)) found.push({ line, finder: { line: line.number, ...best.finder } });
  }
  return found.slice(0, MAX_SINGLE_LINES);
}

/**
 * Two words in a line can be a name and its value, two names of columns, or a title. A sign between them tells, and so do
 * similar lines above or below. Without either, about half of such facts are none.
 */

interface NameAndText {
  readonly name: string;
  readonly text: string;
}

/** `except`: names of columns, not of facts. `doubts`: facts that may be none. */
interface LonePairs {
  readonly except: readonly string[];
  readonly doubts: readonly string[];
}

/** More would hide the other doubts. */
const MAX_DOUBTS = 3;

/** `lines`: those outside tables. `read`: those that hold pairs. `end`: the number of the last line of the file. */
function findLonePairs(
  lines: readonly Line[],
  read: ReadonlySet<Line>,
  end: number,
  pairsOf: (line: Line) => readonly NameAndText[],
): LonePairs {
  const byNumber = new Map(lines.map((line) => [line.number, line]));
  const isRead = (line: Line | undefined) => line !== undefined && read.has(line);
  const except = new Set<string>();
  const others = new Set<string>();
  const doubts: string[] = [];
  for (const line of read) {
    const [above, below] = [byNumber.get(line.number - 1), byNumber.get(line.number + 1)];
    const pairs = pairsOf(line);
    const isApart = !isRead(above) && !isRead(below);
    const isLone = isApart && pairs.length > 0 && pairs.every((pair) => areWords(pair, line));
    // Directly above a table and not at the start of the line, they are titles of its columns.
    const isAboveTable = below === undefined && line.number < end && /^ {2,}[^\t,;|]*$/.test(line.text);
    const isAboveCells = below === undefined ? isAboveTable : areCells(below);
    const areColumns = (isLone && isAboveCells) || (isApart && areNames(pairs, line));
    for (const { name, text } of pairs) {
      if (areColumns) except.add(name);
      else others.add(name);
      if (isLone && !areColumns && !isSubject(name))
        doubts.push(
          `line ${line.number}: ${JSON.stringify(name)} and ${JSON.stringify(text)} may not be a name and its value`,
        );
    }
  }
  return { except: [...except].filter((name) => !others.has(name)), doubts: doubts.slice(0, MAX_DOUBTS) };
}

/** Another name and its value, at once or directly after a word or a quantity: `InGaAs Temperature: 18.7 °C`. */
const ANOTHER_BEHIND = /^(?:\S+ (?:\S+ )?)?\p{L}[^\s:=]*(?: [^\s:=]+)?(?<!\d)(\s?[:=]\s?)(?![\\/])\S/u;

/** Both signs are written alike. `NA:0.95` after `Lens: ` is part of the value. */
function hasAnother({ name, text }: NameAndText, { text: all }: Line): boolean {
  const [, sign] = ANOTHER_BEHIND.exec(text) ?? [];
  return sign !== undefined && !REMARK.test(name) && all.includes(`${name}${sign}${text}`);
}

/** Remarks can contain anything. */
const REMARK = /comment|remark|note|descri|title|command|kommentar|bemerkung/i;

/** Pairs whose value contains another pair, without a sign that shows where the one ends and the other begins. */
function findMixedPairs(lines: readonly Line[], pairsOf: (line: Line) => readonly NameAndText[]): LonePairs {
  const mixed = lines.flatMap((line) =>
    pairsOf(line)
      .filter((pair) => hasAnother(pair, line))
      .map((pair) => ({ ...pair, number: line.number })),
  );
  return {
    except: [...new Set(mixed.map(({ name }) => name))],
    doubts: mixed
      .slice(0, MAX_DOUBTS)
      .map(
        ({ number, name, text }) =>
          `line ${number}: ${JSON.stringify(name)} is left out, because its value ${JSON.stringify(text)} contains another name`,
      ),
  };
}

/** Values of columns, or their units: nothing that is known to be a fact. */
const areCells = (line: Line): boolean => !isBlank(line) && line.cells.filter((cell) => cell !== '').length > 1;

/** Several words, without a sign after the first: the names of columns without rows. */
function areNames(pairs: readonly NameAndText[], { text: all }: Line): boolean {
  const name = pairs[0]?.name ?? '';
  const isWord = (pair: NameAndText) => pair.name === name && kindOf(pair.text) === 'text' && !/\d/.test(pair.text);
  return pairs.length > 2 && pairs.every(isWord) && !/^\s*[:=]/.test(all.slice(all.indexOf(name) + name.length));
}

/** Nothing but blanks or delimiters between them, and the value is not a number, date or quantity. */
function areWords({ name, text }: NameAndText, { text: all }: Line): boolean {
  const end = all.indexOf(name) + name.length;
  const start = all.indexOf(text, end);
  const isFound = end >= name.length && start >= end && text !== '';
  return isFound && /^["\s,;|]+$/.test(all.slice(end, start)) && kindOf(text) === 'text' && !/^\d/.test(text);
}
