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

/** `lines`: those outside tables. `read`: those that hold pairs. */
export function findLonePairs(
  lines: readonly Line[],
  read: ReadonlySet<Line>,
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
    const areColumns = (isLone && below !== undefined && areCells(below)) || (isApart && areNames(pairs, line));
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
