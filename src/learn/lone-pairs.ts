import { isBlank, type Line } from '../parse/lines.js';
import { isSubject, kindOf } from './kinds.js';

/**
 * Two words in a line can be a name and its value, two names of columns, or a title. A sign between them tells, and so do
 * similar lines above or below. Without either, about half of such facts are none.
 */

export interface NameAndText {
  readonly name: string;
  readonly text: string;
}

/** `except`: names of columns, not of facts. `doubts`: facts that may be none. */
export interface LonePairs {
  readonly except: readonly string[];
  readonly doubts: readonly string[];
}

/** More would hide the other doubts. */
const MAX_DOUBTS = 3;

/** `lines`: those outside tables. `read`: those that hold pairs. `end`: the number of the last line of the file. */
export function findLonePairs(
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
export function findMixedPairs(lines: readonly Line[], pairsOf: (line: Line) => readonly NameAndText[]): LonePairs {
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

/** Nothing but blanks or delimiters between them, and the value is no number, date or quantity. */
function areWords({ name, text }: NameAndText, { text: all }: Line): boolean {
  const end = all.indexOf(name) + name.length;
  const start = all.indexOf(text, end);
  const isFound = end >= name.length && start >= end && text !== '';
  return isFound && /^["\s,;|]+$/.test(all.slice(end, start)) && kindOf(text) === 'text' && !/^\d/.test(text);
}
