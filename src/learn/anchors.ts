import { regexSource } from '../config/grammar.js';
import { letterAt } from '../parse/extract/grid.js';
import { isBlank, isRule, type Line, saysNothing } from '../parse/lines.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { escapeRegex } from '../text.js';
import type { FinderMapping } from './pieces.js';

/** Facts in lines that are no pair of name and value: `Serial 4711`, a list of cells after a word, a heading. */

const MAX_UNNAMED_LINES = 12;
const MAX_UNNAMED_CELLS = 20;

interface UnnamedFile extends AnchoredFile {
  readonly delimiter: string | undefined;
}

/**
 * The lines above the tables that say something, found by their words or by the fact above them. Other lines become facts
 * only at the start of the file, by their numbers and with spreadsheet names (A1, B1): further down, the next file has
 * other lines.
 */
export function findUnnamed(top: readonly Line[], file: UnnamedFile, isFree: (line: Line) => boolean): FinderMapping[] {
  const { lines, delimiter } = file;
  const first = lines.findIndex((line) => !isBlank(line));
  const gap = lines.findIndex((line, n) => n > first && isBlank(line));
  let headings = 1;
  return freeLines(top, isFree)
    .filter((line) => !isBlank(line) && isInformative(line))
    .slice(0, MAX_UNNAMED_LINES)
    .flatMap((line) => {
      const at = lines.indexOf(line);
      if (at === first) return describeHeading(line, delimiter);
      if (saysNothing(line)) return [];
      const found = describeByWords(line, file);
      if (found) return found;
      const isAtStart = gap < 0 || at < gap;
      if (isAtStart && lines.slice(first, at).every(isFree)) return describeByNumber(line, delimiter);
      const above = lineAbove(lines, at);
      const after = above && !isFree(above) && (isAtStart || isAlone(lines, at)) ? anchorOf(above, file) : undefined;
      const heading = after === undefined ? undefined : textOf(line, delimiter, `heading ${headings + 1}`);
      if (!heading) return [];
      headings++;
      return { after, ...heading };
    });
}

/** The same finder, with the words of its line instead of its number. */
export function byWords(finder: FinderMapping, file: AnchoredFile): FinderMapping {
  const line = file.lines.find(({ number }) => number === finder.line);
  const start = line && anchorOf(line, file);
  return start === undefined ? finder : { ...finder, line: start };
}

/** Between blank lines. */
const isAlone = (lines: readonly Line[], at: number): boolean =>
  [lines[at - 1], lines[at + 1]].every((line) => !line || isBlank(line));

function freeLines(lines: readonly Line[], isFree: (line: Line) => boolean): Line[] {
  let isInList = false;
  return lines.filter((line, n) => {
    const next = lines[n + 1];
    // Within a list of facts, a name without a value.
    const isEmptyFact =
      isInList && line.cells.length > 1 && filledPlaces(line.cells).length === 1 && next && !isBlank(next);
    isInList = !isBlank(line) && (!isFree(line) || Boolean(isEmptyFact));
    return isFree(line) && !isEmptyFact;
  });
}

/** Not a rule, not the name of a section or of an empty fact, not prose, not numbers that nothing names. */
const isInformative = ({ text }: Line): boolean =>
  text.length <= 300 &&
  !/^[-+\d.,;|eE\s]*[-+]?\d[\d.]*(?:[eE][-+]?\d+)?[\s,;|]*$/.test(dateCandidates(text).length > 0 ? '' : text) &&
  /[\p{L}\p{N}]{2}/u.test(text) &&
  !/^\W*\[[^\]]*\]\W*$|[:=]\W*$|^[A-Z_]{4,}[,;|\t]+$|^\s*<\/?\w+>\s*$/.test(text) &&
  !/^[~>]|^[-=_*#]{3}.*[-=_*#]{3}$|^\W*[A-Z\d_]*_(?:START|BEGIN|END|STOP)\W*$/.test(text.trim());

/** The text of a line that is a single cell, or that blanks would split. Not a drawn line above it. */
function textOf({ text, cells }: Line, delimiter: string | undefined, name: string): FinderMapping | undefined {
  const [place = 1, ...others] = filledPlaces(cells);
  if (others.length === 0) return { cells: { [name]: place } };
  const isBlanks = delimiter === undefined || /^(?:spaces|whitespace|\/)/.test(delimiter);
  const isList = /[,;|]\S[^,;|]*[,;|]\S/.test(text) && !/[,;|]\s/.test(text);
  return isBlanks && !isList ? { match: `/(?<${name.replace(' ', '_')}>\\S*[^\\s\\-=_+|*].*\\S)/` } : undefined;
}

/** The first line that says anything, wherever it is. */
function describeHeading(line: Line, delimiter: string | undefined): FinderMapping {
  const { text } = line;
  const heading =
    dateCandidates(text).length === 0 && !/[:=]\s*\S/.test(text) ? textOf(line, delimiter, 'heading') : undefined;
  if (heading) return heading;
  // Only this finder reads the line: a date and a time are not a name and its value.
  return { ...describeByNumber(line, delimiter), line: '/\\S/' };
}

/** `FILE_OPENED`: the name of a few values. */
const MAX_KEYED = 4;
const KEY = /^[A-Z][A-Z_]{3,}$/;

/** `Serial 4711` among such lines: the words before a value are its name. `Plate:,P1,1.3,`: the first cell names the others. */
function describeByWords(line: Line, file: UnnamedFile): FinderMapping | undefined {
  const start = anchorOf(line, file);
  const [first = ''] = line.cells;
  const [, ...places] = filledPlaces(line.cells);
  const isOnly = file.lines.every(({ cells }) => cells[0] !== first || cells === line.cells);
  const isKey =
    KEY.test(first) && isOnly && places.length <= MAX_KEYED && !line.cells.slice(1).some((cell) => KEY.test(cell));
  if (start === undefined || (dateCandidates(line.text).length > 0 && !isKey)) return undefined;
  const isOnlyName = !line.cells.slice(1).some((cell) => /\p{L}\s*[:=]$/u.test(cell));
  if ((isKey || /^[^\d]*[:=]$/.test(first)) && isOnlyName && places.length > 0 && places.length <= MAX_UNNAMED_CELLS) {
    const name = first.replace(/\s*[:=]$/, '');
    // Patterns see the comment mark.
    const found = isFirstWith(first, line, file) ? first : start;
    return { line: found, cells: Object.fromEntries(places.map((at) => [at === 2 ? name : `${name} ${at}`, at])) };
  }
  const [, words, value] = WORDS_AND_VALUE.exec(line.text.trim()) ?? [];
  if (value === undefined || words !== start || !isInList(line, file)) return undefined;
  return { match: `/^${escapeRegex(file.raw(line).replace(/\S+\s*$/, ''))}(?<${words.replaceAll(' ', '_')}>\\S+)/` };
}

const WORDS_AND_VALUE = /^(\p{L}+(?: \p{L}+){0,2}) (\S*\d\S*)$/u;
/** Fewer such lines can be names of a product or a company: `Spectra 950`. */
const MIN_LIST = 3;

/** Whether the line is among several that are words and a value. */
function isInList(line: Line, { lines }: UnnamedFile): boolean {
  const isOther = ({ text }: Line) => !WORDS_AND_VALUE.test(text.trim());
  const at = lines.indexOf(line);
  const from = lines.findLastIndex((each, n) => n < at && isOther(each)) + 1;
  const to = lines.findIndex((each, n) => n > at && isOther(each));
  return (to < 0 ? lines.length : to) - from >= MIN_LIST;
}

function describeByNumber({ number: line, text, cells }: Line, delimiter: string | undefined): FinderMapping {
  const whole: FinderMapping = { line, match: `/(?<A${line}>\\S.*\\S)/` };
  // A date can contain commas.
  if (dateCandidates(text).length > 0) return whole;
  const filled = filledPlaces(cells);
  // A single cell: without its quotes and the delimiters around it.
  if (filled.length === 1 && text.trim() !== cells[(filled[0] ?? 1) - 1])
    return { line, cells: nameCells(cells, line) };
  // Commas within brackets, numbers and sentences do not separate cells.
  if (/\([^)]*[,;|\t]|\p{Ll} [^,;|\t]*\d,\d|\p{L}{2}\.\s*$/u.test(text)) return whole;
  const signs = [delimiter ?? ',', ',', ';', 'tab', '|'].filter((sign) => !/^[sw]/.test(sign));
  for (const sign of new Set(signs)) {
    const own = text.split(sign === 'tab' ? '\t' : sign).map((cell) => cell.trim());
    const places = filledPlaces(own);
    // Two words with another sign between them are one sentence.
    if (places.length < (sign === delimiter ? 2 : 3) || places.length > MAX_UNNAMED_CELLS) continue;
    return { line, ...(sign !== delimiter && { delimiter: sign }), cells: nameCells(own, line) };
  }
  return whole;
}

const LABEL = /^\p{L}.*[:=]$/u;

/** A cell after a label has its name. Signs say nothing, and labels are no values. */
function nameCells(cells: readonly string[], line: number): Record<string, number> {
  const filled = filledPlaces(cells);
  const values = filled.filter((place) => /[\p{L}\p{N}]/u.test(cells[place - 1] ?? ''));
  const others = values.filter((place) => !LABEL.test(cells[place - 1] ?? ''));
  const nameOf = (place: number) => {
    const before = cells[place - 2] ?? '';
    return LABEL.test(before) ? before.replace(/\s*[:=]$/, '') : `${letterAt(place - 1)}${line}`;
  };
  return Object.fromEntries((others.length > 0 ? others : filled).map((place) => [nameOf(place), place]));
}

/** From 1. */
const filledPlaces = (cells: readonly string[]): number[] => cells.flatMap((cell, n) => (cell === '' ? [] : [n + 1]));

/**
 * How a mapping finds a line in the next file of the instrument: by words that are the same in every file. A line number
 * is the last resort, because the next file may have another number of lines above.
 */

export interface AnchoredFile {
  readonly lines: readonly Line[];
  /** The line as in the file, with its comment mark. */
  raw(line: Line): string;
}

/** A mapping would not take these as the start of a line. */
export const isKeyword = (start: string): boolean =>
  regexSource(start) !== undefined || ['', 'first', 'none', 'blank', 'eof'].includes(start);

const isFirstWith = (start: string, line: Line, { lines, raw }: AnchoredFile): boolean =>
  lines.find((each) => hasStart(raw(each), start)) === line;

/** As a mapping looks for it: without the quote of the first cell. */
export const hasStart = (text: string, start: string): boolean =>
  text.trimStart().startsWith(start) || (/^\s*["']/.test(text) && text.trimStart().startsWith(start, 1));

/** Longer texts are more likely to differ in the next file. */
const MAX_ANCHOR = 60;

const hasWord = (start: string): boolean => /\p{L}{2}/u.test(start);

/**
 * The starts of a line that are probably the same in every file, shortest first: a name before its value, words before a
 * number, or all of it if it has no number.
 */
export function startsOf(text: string): string[] {
  const trimmed = text.trim();
  const name = /^[^:=;,\t|\d]*/.exec(trimmed)?.[0].trim() ?? '';
  const words = /^[^\t]*?(?=\s*(?:[:=;,\t|]|[-+]?\d|$))/.exec(trimmed)?.[0].trim() ?? '';
  const whole = /\d{2}|[:=]\s*\S/.test(trimmed) ? '' : trimmed;
  return [...new Set([name, words, whole])].filter(
    (start) => start.length <= MAX_ANCHOR && hasWord(start) && !isKeyword(start),
  );
}

/** The words with which a line starts, and no line before it. */
export const anchorOf = (line: Line, file: AnchoredFile): string | undefined =>
  startsOf(file.raw(line)).find((start) => isFirstWith(start, line, file));

/** A pattern for the start of a line without such words: any numbers in the same places. */
export function shapeOf(line: Line, file: AnchoredFile): string | undefined {
  const source = `^${generalise(file.raw(line).trimEnd().slice(0, MAX_ANCHOR))}`;
  const pattern = new RegExp(source);
  return file.lines.find((each) => pattern.test(file.raw(each))) === line ? `/${source}/` : undefined;
}

/** The last line above an index that says something. */
export const lineAbove = (lines: readonly Line[], at: number): Line | undefined =>
  lines.slice(0, at).findLast((line) => !isBlank(line) && !isRule(line));

/** A pattern for the text with any numbers: the same for `2) Hold` and `3) Hold`. */
export const generalise = (text: string): string =>
  text
    .split(/(\d+)/)
    .map((part, n) => (n % 2 === 1 ? '\\d+' : escapeRegex(part)))
    .join('');
