import { isBlank, type Line } from '../parse/lines.js';
import { bareUnit, isUnit } from '../parse/values/unit.js';
import { areNamesAbove, type Body, filledCells, kindOf } from './kinds.js';

/** Lines outside tables whose cells were read as facts, although what stands around them shows that they are none. */

/** A fact, and the parts of its line around it if they are found. */
export interface Fact {
  readonly name: string;
  readonly text: string;
  /** Neither a number nor a date. */
  readonly isText: boolean;
  readonly before: string;
  readonly between: string;
  readonly after: string;
  readonly line: Line | undefined;
}

/** What is odd about a line, and so about its facts. */
interface OddLine {
  readonly reason: string;
  readonly isWrong?: boolean;
}

export const LABEL = /^\p{L}[^:=]*[:=]$/u;
export const PATH = /^(?:[A-Za-z]:[\\/]|\\\\|https?:)/;
/** Their values can be names. */
export const SAYS_NAME =
  /ax[ie]s|label|column|dimension|type|mode|name|channel|field|param|header|quantity|signal|property|variable|measur|plot|sort|unit|source|method|group/i;
export const PAIR = /(?:^|[\s,;{|])\p{L}[\p{L}\p{N} _.]{0,30}[:=]\s*(?![\\/])\S/gu;

export const isWords = ({ text, isText }: Fact): boolean => isText && !/\d/.test(text);

/** `lost`: lines of tables that are not read. */
export function openOddLines(
  lines: readonly Line[],
  facts: readonly Fact[],
  lost: ReadonlySet<Line>,
): (line: Line) => OddLine | undefined {
  const byLine = groupByLine(facts);
  const rows = rowsOfWords(byLine);
  const named = new Set(lines.flatMap((_, n) => namesAndRows(lines, n)));
  return (line) => {
    const own = byLine.get(line) ?? [];
    if (lost.has(line)) return { reason: 'the line is in a table that cannot be read', isWrong: true };
    if (named.has(line)) return { reason: 'a line of names is above a line of their values', isWrong: true };
    if (isPartial(line, own)) return { reason: 'other values of its line are not read', isWrong: true };
    if (isCutAtSign(line, own))
      return { reason: 'a value of its line contains another name with its value', isWrong: true };
    return rows.has(line) ? { reason: 'the line may be a row of a table' } : undefined;
  };
}

/** The line, if it has the names of values below, and those. Rows have labels that differ in their digits: `S-01`, `S-02`. */
function namesAndRows(lines: readonly Line[], at: number): readonly Line[] {
  const [names, next] = lines.slice(at, at + 2);
  const from = next && areUnits(next) ? at + 2 : at + 1;
  const first = lines[from];
  if (!names || !first || !(areNamesAbove(names, first) || areLabelsAbove(names, first))) return [];
  const shapeOf = ({ cells: [label = ''] }: Line) => label.replace(/\d+/g, '0');
  const isRow = (line: Line | undefined, number: number) =>
    line?.number === number && /\d/.test(line.cells[0] ?? '') && shapeOf(line) === shapeOf(first);
  let to = from + 1;
  while (isRow(lines[to], first.number + to - from)) to++;
  return lines.slice(at, to);
}

/** `,mg/L,%` below names. */
const areUnits = ({ cells: [label, ...units] }: Line): boolean =>
  label === '' &&
  units.some((cell) => cell !== '') &&
  units.every((cell) => cell === '' || isUnit(bareUnit(cell) ?? ''));

/**
 * Lines directly above the rows of a table without names that are perhaps the names of its columns: the first has words
 * for most columns, and the others continue them and have nothing for the first column.
 */
export function namesAbove({ from, kinds }: Body, lines: readonly Line[]): readonly Line[] {
  let top = from;
  for (let line = lines[top - 1]; line && !isBlank(line); line = lines[top - 1]) top--;
  const above = lines.slice(top, from);
  const first = above.findIndex((line) => {
    const filled = filledCells(line);
    const areNames = filled.every((cell) => kindOf(cell) === 'text' && !/[:=]/.test(cell));
    return areNames && filled.length >= MIN_WORDS && filled.length * 2 > kinds.length;
  });
  const names = first < 0 ? [] : above.slice(first);
  return names.length > 1 && names.slice(1).every(({ cells }) => cells[0] === '') ? names : [];
}

/** `Sample Name:   Measured:` directly above `Kaolin 5   14 March 2023`. */
function areLabelsAbove(line: Line, below: Line | undefined): boolean {
  if (below?.number !== line.number + 1) return false;
  const [labels, values] = [line, below].map(({ text }) => text.trim().split(/\t+|\s{2,}/));
  const isLabel = (cell: string) => LABEL.test(cell);
  return (
    labels?.length === values?.length && (labels?.length ?? 0) > 1 && !!labels?.every(isLabel) && !values?.some(isLabel)
  );
}

/** Fewer words can be several values of one name. */
const MIN_WORDS = 3;

function groupByLine(facts: readonly Fact[]): ReadonlyMap<Line, readonly Fact[]> {
  const byLine = new Map<Line, Fact[]>();
  for (const fact of facts) {
    const known = fact.line && byLine.get(fact.line);
    if (known) known.push(fact);
    else if (fact.line) byLine.set(fact.line, [fact]);
  }
  return byLine;
}

/**
 * `Plate,Name,,Type,96`, `Delay,QUANT,2.5`: the word was read as the value of the first cell, and the number beside it was
 * not read. `User,Ada,Size,2`: words and numbers were read as values of one name.
 */
function isPartial({ cells }: Line, own: readonly Fact[]): boolean {
  const [first] = own;
  if (!first || own.some(({ name }) => name !== first.name)) return false;
  const isNumber = (cell: string) => kindOf(cell) === 'number';
  if (own.some(isWords) && own.some(({ text }) => isNumber(text))) return true;
  const isBeside = (cell: string, n: number) => isNumber(cell) && own.some(({ text }) => text === cells[n - 1]);
  return own.every(isWords) && cells.some((cell, n) => n > 1 && isBeside(cell, n));
}

/** `Legend: PROBE : {DN},PROBE : {DN}`: the comma may be a part of the value. */
const isCutAtSign = ({ cells }: Line, own: readonly Fact[]): boolean =>
  own.length > 1 &&
  own.some(({ text, isText }) => isText && !PATH.test(text) && !cells.includes(text) && text.match(PAIR) !== null);

/** Directly above each other, with words as several values of a name, in the same cells: `Name,Level,Result` above `pH,low,pass`. */
function areRowsOfWords([line, own]: LineAndFacts, [below, others]: LineAndFacts): boolean {
  const hasSeveral = (facts: readonly Fact[]) =>
    facts.some(
      (fact, n) => isWords(fact) && n > 0 && isWords(facts[n - 1] ?? fact) && facts[n - 1]?.name === fact.name,
    );
  const isFilled = (cell: string | undefined) => cell !== undefined && cell !== '';
  return (
    below.number === line.number + 1 &&
    hasSeveral(own) &&
    hasSeveral(others) &&
    line.cells.length === below.cells.length &&
    line.cells.every((cell, n) => isFilled(cell) === isFilled(below.cells[n]))
  );
}

type LineAndFacts = readonly [Line, readonly Fact[]];

/** A name with several different words, which are names of columns, and the lines with several values directly below it. */
function rowsOfWords(byLine: ReadonlyMap<Line, readonly Fact[]>): ReadonlySet<Line> {
  const rows = new Set<Line>();
  let last = 0;
  const sorted = [...byLine].sort(([a], [b]) => a.number - b.number);
  for (const [n, one] of sorted.entries()) {
    const next = sorted[n + 1];
    if (next && areRowsOfWords(one, next)) rows.add(one[0]).add(next[0]);
  }
  for (const [line, own] of sorted) {
    const isOneName = own.every(({ name }) => name === own[0]?.name);
    const isRow = last > 0 && last === line.number - 1 && (own.length > 1 || line.cells[1] === '');
    if (!isOneName || !(isRow || areNames(own))) continue;
    rows.add(line);
    last = line.number;
  }
  return rows;
}

function areNames(own: readonly Fact[]): boolean {
  const isName = ({ name, text, isText }: Fact) => isText && !SAYS_NAME.test(name) && !/\d/.test(text) && !isUnit(text);
  return own.length >= MIN_WORDS && new Set(own.map(({ text }) => text)).size === own.length && own.every(isName);
}
