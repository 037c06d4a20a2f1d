import type { Table, Value } from '../model.js';
import type { Line } from '../parse/lines.js';
import { isUnit } from '../parse/values/unit.js';
import { isFactName, isNoValue, isQuantity, isSubject, kindOf } from './kinds.js';

/** What is odd in a table that was read: its names, units or rows. */

export interface Objection {
  readonly reason: string;
  /** The fact, or the table and its column if only that is doubtful. */
  readonly fact?: string;
  readonly table?: string;
  readonly column?: string;
  /** Wrong without doubt. Such a fact is left out, such a table is not filed before a person has seen it. */
  readonly isWrong?: boolean;
}

type Rows = Table['rows'];

/** More rows would not show more. */
const MAX_ROWS = 100;

/** `delimiter`: of most lines. */
export function objectToTable(
  { name: table, columns, rows: all }: Table,
  lines: readonly Line[],
  delimiter: string | undefined,
): Objection[] {
  const rows = all.slice(0, MAX_ROWS);
  const objections: Objection[] = [];
  const refuse = (reason: string) => void objections.push({ table, reason, isWrong: true });
  const named = columns.filter(({ invented }) => !invented);
  const value = named.find(({ name }) => VALUE_AS_NAME.test(name) || kindOf(name) === 'date');
  if (value) refuse(`${JSON.stringify(value.name)} is no name of a column`);
  if (isTextList(columns.length, rows) || isListBelowFact(columns, rows))
    objections.push({ table, reason: 'it may be a list of facts' });
  const odd = oddRow(columns.length, rows, named.length === 0);
  if (odd !== undefined) refuse(`the row with ${JSON.stringify(odd)} is unlike the others`);
  const joined = rows.find((row) => !isFilled(row.at(-1)) && row.some(({ text }) => /\S\t\s*[-+]?\d/.test(text)));
  if (joined) refuse(`a tab is within a cell of the row with ${JSON.stringify(joined[0]?.text)}`);
  if (isShiftedUnit(columns, rows))
    refuse(`the units of ${JSON.stringify(columns[0]?.name)} and others may be shifted`);
  for (const [n, { name, unit }] of columns.entries()) {
    const reason = objectToColumn(name, unit, rows, n);
    // Between numbers of one cell, there is a single blank, unless such blanks do not separate the cells of the file.
    const isWrong =
      reason === SEVERAL_VALUES &&
      (delimiter === 'spaces' || rows.some((row) => /\d\s{2,}[-+]?\d/.test(row[n]?.text ?? '')));
    if (reason !== undefined) objections.push({ table, column: name, reason, isWrong });
  }
  const [first, ...others] = named.map(({ name }) => name);
  if (first !== undefined && !isSubject(first) && isNameOfLine(first, others, lines))
    objections.push({ table, column: first, reason: 'the name is that of its line' });
  else if (
    first !== undefined &&
    others.length > 0 &&
    LABEL_AND_NAME.test(first) &&
    !others.some((name) => /[:=]/.test(name))
  )
    objections.push({ table, column: first, reason: 'its name may begin with the label of the header line' });
  const fact = factAmong(columns, rows);
  if (fact !== undefined) objections.push({ table, reason: `the row with ${JSON.stringify(fact)} may be a fact` });
  return objections;
}

const SEVERAL_VALUES = 'its cells contain several values';

/** `g/L,mmol/L` below `Sample,Glucose,Lactate`: a unit of the labels or times of the rows, but none of the last column. */
function isShiftedUnit(columns: Table['columns'], rows: Rows): boolean {
  const [{ name = '', unit = '' } = {}, ...others] = columns;
  if (!isUnit(unit) || isTimeUnit(unit) || others.length === 0) return false;
  const isOfRows = isSubject(name) || TIME.test(name) || rows.every(([cell]) => typeof cell?.value !== 'number');
  return isOfRows && others.at(-1)?.unit === undefined && others.slice(0, -1).every((each) => each.unit !== undefined);
}

const TIME = /time|date|zeit|datum|temps|fecha|hora|日時|時間/i;
const isTimeUnit = (unit: string): boolean =>
  /^(?:[mµμn]?s|secs?|seconds?|mins?|minutes?|h|hrs?|hours?|d|days?)$/i.test(unit);

function objectToColumn(name: string, unit: string | undefined, rows: Rows, n: number): string | undefined {
  const isRatio = unit !== undefined && /\b(?:RSD|CV)\b/.test(name) && !unit.includes('%');
  if (isRatio) return `a ratio does not have the unit ${JSON.stringify(unit)}`;
  // Most columns need no more than a look at their first cells.
  const hasSeveral = rows.slice(0, 3).some((row) => isSeveral(row[n]));
  if (!hasSeveral && (unit === undefined || typeof rows[0]?.[n]?.value === 'number')) return undefined;
  const cells = rows.flatMap((row) => (isFilled(row[n]) ? [row[n]] : []));
  if (cells.filter(isSeveral).length * 2 > cells.length) return SEVERAL_VALUES;
  const hasNumbers = cells.some(({ value, text }) => typeof value === 'number' || /\d/.test(text));
  return unit === undefined || hasNumbers || cells.length === 0
    ? undefined
    : `its unit is ${JSON.stringify(unit)}, but it has no numbers`;
}

const isSeveral = (cell: Value | undefined): boolean =>
  typeof cell?.value === 'string' && SEVERAL.test(cell.text.trim()) && kindOf(cell.text.trim()) === 'text';

const isFilled = (cell: Value | undefined): cell is Value =>
  cell !== undefined && cell.text !== '' && !isNoValue(cell.text);

/** A time, a path, a number or a text after a sign. */
const VALUE_AS_NAME = /^=\s*[\d"-]|^[A-Za-z]:\\|\d{1,2}:\d\d:\d\d|^\d{4}-\d\d-\d\d/;
/** Numbers or times, separated by blanks. */
const SEVERAL = /^[-+]?\d[\d.,:/-]*(?:\s+[-+]?\d[\d.,:/-]*)+$/;

/** Two columns of words without a repetition. A log has times. */
function isTextList(width: number, rows: Rows): boolean {
  if (width !== 2 || rows.length === 0) return false;
  const isWord = ({ value, text }: Value) => typeof value === 'string' && !/\d:\d\d/.test(text);
  const firsts = new Set(rows.map(([first]) => first?.text ?? ''));
  return rows.every((row) => row.every(isWord)) && firsts.size === rows.length && !firsts.has('');
}

/** `Instrument,HX-5` above `Slope,1.2` and `Offset,0.1`: names without a repetition below that of a fact. */
function isListBelowFact(columns: Table['columns'], rows: Rows): boolean {
  const [first, second] = columns;
  if (columns.length !== 2 || !isFactName(first?.name) || isSubject(first?.name ?? '') || first?.unit !== undefined)
    return false;
  if (second?.invented || second?.unit !== undefined || isQuantity(second?.name ?? '')) return false;
  const names = rows.map(([cell]) => cell?.text ?? '');
  return names.every((name) => kindOf(name) === 'text') && new Set(names).size === names.length;
}

const LABEL_AND_NAME = /^\p{L}{3}[\p{L} ]*[:=] ?\p{L}/u;

/** `Operator,Ada,,` below rows of numbers: the name of a fact, one other word, and nothing where the others have numbers. */
function factAmong(columns: Table['columns'], rows: Rows): string | undefined {
  const isNumber = (row: Rows[number], n: number) => typeof row[n]?.value === 'number';
  const own = [rows[0], rows.at(-1)].find((row) => {
    const filled = row?.filter(({ text }) => text !== '') ?? [];
    const [name] = filled;
    return filled.length === 2 && name === row?.[0] && isFactName(name?.text) && !isSubject(name?.text ?? '');
  });
  if (own === undefined || rows.length < 2) return undefined;
  const others = rows.filter((row) => row !== own);
  const numeric = columns.flatMap((_, n) => (others.every((row) => isNumber(row, n)) ? [n] : []));
  return numeric.length > 0 && numeric.every((n) => own[n]?.text === '') ? own[0]?.text : undefined;
}

/** The first or last row has words in columns where all others have numbers: in most of them, if the columns have names. */
function oddRow(width: number, rows: Rows, isNameless: boolean): string | undefined {
  if (rows.length < 3) return undefined;
  for (const [own, next] of [
    [rows[0], rows[1]],
    [rows.at(-1), rows.at(-2)],
  ]) {
    const isWord = (n: number) => {
      const cell = own?.[n];
      return isFilled(cell) && typeof cell.value === 'string' && kindOf(cell.text) === 'text';
    };
    const places = Array.from({ length: width }, (_, n) => n);
    // Most rows are like the next one, and need no comparison with all others.
    if (places.filter((n) => typeof next?.[n]?.value === 'number' && isWord(n)).length < 2) continue;
    const numeric = places.filter((n) => {
      const others = rows.filter((row) => row !== own && isFilled(row[n]));
      return others.length > 1 && others.every((row) => typeof row[n]?.value === 'number');
    });
    const words = numeric.filter(isWord);
    const isOdd = words.length > 1 && (isNameless || words.length * 2 > numeric.length);
    if (isOdd && !areQuantities(rows)) return own?.[words[0] ?? 0]?.text;
  }
  return undefined;
}

/** Rows that are quantities have names, each of its own, and differ in kind. */
const areQuantities = (rows: Rows): boolean =>
  new Set(rows.flatMap(([first]) => (typeof first?.value === 'string' ? [first.text] : []))).size === rows.length;

/** In the file, a sign follows it and no other name: `ChannelTitle=  Pressure  ECG`. */
function isNameOfLine(first: string, others: readonly string[], lines: readonly Line[]): boolean {
  const hasSign = (text: string, name: string) => /^\s*[:=]/.test(text.slice(text.indexOf(name) + name.length));
  const header = lines.find(({ text }) => text.includes(first) && others.every((name) => text.includes(name)));
  if (header === undefined || others.length === 0 || !hasSign(header.text, first)) return false;
  return !others.some((name) => hasSign(header.text, name));
}
