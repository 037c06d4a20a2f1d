import { regexSource } from '../config/grammar.js';
import { isBlank, isRule, type Line } from '../parse/lines.js';
import { escapeRegex } from '../text.js';

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
  lines.find((each) => raw(each).trimStart().startsWith(start)) === line;

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
