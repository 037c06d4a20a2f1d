import type { Line } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { unitInName } from '../parse/values/unit.js';
import { createNumberReader, isLongPadded, readQuantity, startsWithLetter } from '../parse/values/value.js';

/** What the cells of a line look like: numbers, dates or words. */

/** What a cell looks like, whatever the decimal mark. `any`: empty, or a word for no value, which fits any column. */
export type CellKind = 'any' | 'number' | 'date' | 'text';

/** What instruments write instead of a number. */
const NO_VALUE =
  /^(?:nan|#?n\/a|na|nd|n\/d|[nk]\. ?[a-z]\.|[<>] ?[a-z]{2,4}|lo|hi|null|none|[+-]?inf|1\.#qnan|-1\.#ind|-+|#{3,}|\?{5}|ovrflw|over(?:flow)?|missed|out of range|undetermined|error)$/i;

const numbers = createNumberReader({ decimal: undefined, thousands: undefined });

const commas = createNumberReader({ decimal: ',', thousands: undefined });

export const isNoValue = (text: string): boolean => NO_VALUE.test(text);

const looksNumeric = (text: string): boolean => numbers.read(text) !== undefined || numbers.isAmbiguous(text);

export function kindOf(text: string): CellKind {
  // First, because most cells are numbers.
  if (looksNumeric(text)) return 'number';
  if (text === '' || isNoValue(text)) return 'any';
  if (!DIGIT.test(text)) return 'text';
  // Nothing below but the name of a month starts with a letter.
  if (startsWithLetter(text)) return dateCandidates(text).length > 0 ? 'date' : 'text';
  if (CENSORED.test(text) || GROUPED.test(text)) return 'any';
  if (readQuantity(text, numbers) ?? readQuantity(text, commas)) return 'number';
  if (isLongPadded(text)) return 'number';
  // `007` and very long numbers occur among numbers and among words.
  if (DIGITS.test(text)) return 'any';
  if (readIso(text) !== undefined || CLOCK.test(text) || dateCandidates(text).length > 0) return 'date';
  // So does `07.25`.
  return PADDED.test(text) ? 'any' : 'text';
}

/** A word, or a mark for no value: what names of columns are. */
export const isWord = (cell: string): boolean => isWordOf(kindOf(cell), cell);

/** The same if the kind of the cell is known. */
export const isWordOf = (kind: CellKind | undefined, cell: string): boolean =>
  kind === 'text' || (kind === 'any' && !DIGIT.test(cell));

const DIGIT = /\d/;
const DIGITS = /^\d+$/;
const PADDED = /^[+-]?0\d[.,]\d+$/;
const CENSORED = /^[<>≤≥]=?\s*\d/;
/** `12 331 cps`: whether a blank separates thousands is not known yet. */
const GROUPED = /^[-+]?\d{1,3}(?:[ \u00a0']\d{3})+(?:[.,]\d+)?(?: \S{1,8})?$/;
const CLOCK = /^\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?$/i;

const KINDS = Symbol('kinds');

/** Remembered, because each line is compared with many others. A WeakMap takes longer than finding out the kinds. */
export function kindsOf({ cells }: Line): readonly CellKind[] {
  const known: typeof cells & { [KINDS]?: readonly CellKind[] } = cells;
  known[KINDS] ??= cells.map(kindOf);
  return known[KINDS];
}

/** The kinds of the columns with one more row; undefined if the row does not fit. */
export function mergeKinds(columns: readonly CellKind[], row: readonly CellKind[]): readonly CellKind[] | undefined {
  if (!isSimilarWidth(columns.length, row.length)) return undefined;
  let merged: CellKind[] | undefined;
  for (let n = 0; n < row.length; n++) {
    const [known, kind] = [columns[n], row[n] ?? 'any'];
    // Most rows add nothing.
    if (known === kind || (known !== undefined && kind === 'any')) continue;
    if (known !== undefined && known !== 'any') return undefined;
    merged ??= [...columns];
    merged[n] = kind;
  }
  return merged ?? columns;
}

/** Rows may omit up to two empty cells at the end, but not most of their cells. */
export const isSimilarWidth = (a: number, b: number): boolean =>
  Math.abs(a - b) <= 2 && Math.min(a, b) * 2 > Math.max(a, b);

export const isMeasure = (kind: CellKind | undefined): boolean => kind === 'number' || kind === 'date';

/** What the first name of a column can say: the rows or columns are samples, or quantities. */
const SUBJECT =
  /^(?:samples?|specimens?|proben?|[ée]chantillons?|muestras?|campion[ei]|runs?|replicates?|measurements?|messung|tests?|positions?|vials?|tubes?|cells?|wells?|injections?|scans?|cycles?|peaks?|compounds?|components?|analytes?|elements?|parameters?|quantit(?:y|ies)|propert(?:y|ies)|variables?|channels?|labels?|groups?|species|names?|keys?|items?|settings?|pr[óo]bk[ai]|vzor(?:ek|ky)|образ(?:ец|цы)|номер|id|no|nr)(?:[ _.]*(?:id|code|name|no|nr|number|#))*[.:]?$|^(?:試料|検体|サンプル|样品|樣品|시료|샘플|番号|序号|编号|編號|번호)名?$|^#$/i;

export const isSubject = (name: string): boolean => SUBJECT.test(name);

/** `S1`, `S2`, `S3` or 1, 2, 3. */
export function areSamples(cells: readonly string[]): boolean {
  const [first = ''] = cells;
  const word = first.replace(/\d+$/, '');
  const start = Number(first.slice(word.length));
  return cells.length > 1 && cells.every((cell, n) => cell === `${word}${start + n}`);
}

/** What instruments measure and compute, as a name. */
const QUANTITY =
  /^(?:abs|absorbance|conc|concentration|area|height|width|weight|mass|volume|vol|values?|results?|mean|average|median|sd|stdev|cv|rsd|min|max|low|high|lower|upper|limit|temp|temperature|time|rt|ret|retention|pressure|signal|intensity|od|ph|ratio|amount|units?|counts?|dilution|factor|recovery|response|slope|intercept|error|tolerance|target|nominal|actual|measured|expected|deviation|yield|purity|viability|density|viscosity|wavelength|absorbanz|konzentration|fl[äa]che|h[öo]he|gewicht|masse|wert|ergebnis|einheit|mittelwert|temperatur|zeit|druck)(?:$|[^\p{L}])/iu;

export const isQuantity = (name: string): boolean => QUANTITY.test(name) || unitInName(name) !== undefined;

/** What facts of a run are called. */
const NAME_OF_FACT =
  /^(?:sample|specimen|operator|user|analyst|method|instrument|project|batch|lot|date|time|serial|model|detector|comments?|probe|bediener|benutzer|methode|ger[äa]t|datum|zeit)(?:[ _.-]*(?:id|name|no|nr|number|type))?[.:]?$/i;

export const isFactName = (name = ''): boolean => NAME_OF_FACT.test(name);

/**
 * `Year` `Month` `Day` above `2020` `09` `22`: as many values as words, in the same cells. They are numbers, or most of them
 * are measures, or two of the words are names of facts, one beside the other, so that they are no name and its value.
 */
export function areNamesAbove({ cells }: Line, below: Line | undefined): boolean {
  const places = cells.flatMap((cell, n) => (cell === '' ? [] : [n]));
  const names = places.map((n) => cells[n] ?? '');
  if (!below || names.length < 2 || !areOfTables(cells)) return false;
  if (!names.every((name) => /^\p{L}{2}(?:[^\d:=]|(?<=[\p{L}\d])\d)*$/u.test(name))) return false;
  const areFacts = names.some((name, n) => isFactName(name) && isFactName(names[n + 1]));
  // Names without a gap between them are one: `PositionType`.
  if (below.cells.length !== cells.length) return names.length > 2 && areFacts && below.cells.length > cells.length;
  if (below.cells.some((cell, n) => cell !== '' && cells[n] === '')) return false;
  const values = places.map((n) => below.cells[n] ?? '');
  const [first = '', ...others] = values;
  const measures = values.filter((value) => MEASURE.test(value)).length;
  const isMeasured = MEASURE.test(others[0] ?? '');
  // The names of two facts could stand in these lines, too.
  const isRow = !isFactName(first) && !isQuantity(first) && !isSubject(first);
  const isLabelled = isMeasured && /\d/.test(first) && isPlainQuantity(names[1]);
  const arePaired = isRow && isFactName(names[0]) && (isFactName(names[1]) || isLabelled);
  // `Method,Absorbance` is a fact above `Filter 1,450`.
  if (names.length === 2)
    return arePaired && !/:/.test(below.text) && !/^(?:method|mode|model|detector)$/i.test(names[0] ?? '');
  // Settings of channels have a name below a name: `Detector,PMT,APD` above `Gain,620,570`.
  const hasLabel = isRow && /\d/.test(first) && measures === others.length;
  // Of a name and its value, several times in a line, half of the cells are words.
  return areFacts || hasLabel || measures === names.length || (names.length > 3 && measures * 2 > names.length);
}

const MEASURE = /^(?:[-+]?\d|true$|false$)/i;
const isPlainQuantity = (name = ''): boolean => isQuantity(name) && name.trim().split(' ').length < 3;

/** A different name in each cell. Beside an empty cell, or from the first name on again, another table can have the same names. */
function areOfTables(cells: readonly string[]): boolean {
  const names = new Set<string>();
  for (const cell of cells) {
    if (cell === '' || cell === cells[0]) names.clear();
    if (cell !== '' && names.has(cell)) return false;
    names.add(cell);
  }
  return true;
}

/** `rxGain   = 31` */
const NAME_AND_SIGN = /^[^\p{L}:=]{0,20}\p{L}[^:=\t,;|]{0,60}([:=])(?![\\/]|\d\d:)/u;

/** What follows the name of a row, not of a fact: `S1: 0.12 0.34`. */
const SEVERAL = /^\s*[-+\d.,eE]+(?:[\s;|]+[-+\d.,eE]+)+\s*$|[\t;|].*[\t;|]|,\S+,/;

/** The name before the sign, if one value follows it. */
export function nameBefore(sign: string, text: string): string | undefined {
  const [start, own] = NAME_AND_SIGN.exec(text) ?? [];
  return start !== undefined && own === sign && !SEVERAL.test(text.slice(start.length)) ? start.trim() : undefined;
}

/** Whether each line is a name, the same sign and one value. */
export const areSignedPairs = (lines: readonly Line[]): boolean =>
  [':', '='].some((sign) => lines.every(({ text }) => nameBefore(sign, text) !== undefined));

/** `Operator: Ada` before empty cells. */
export const isPaddedPair = ({ cells: [first = '', ...others] }: Line): boolean =>
  others.length > 0 && others.every((cell) => cell === '') && /^[^:=]*\p{L}[^:=]* ?[:=]\s/u.test(first);

export const filledCells = ({ cells }: Line): string[] => cells.filter((cell) => cell !== '');

/** A few words alone in a line that are no fact: `Pump on`, `*** pause`, `Group B`. */
export function isBetweenRows(line: Line, kinds: readonly CellKind[]): boolean {
  const filled = filledCells(line);
  if (filled.length > 1 && (filled.length >= kinds.length || filled.length > MAX_WORDS)) return false;
  // Blanks between words may also be those between cells.
  if (filled.length > 1 && /[\t;,|]|\S {2}/.test(line.text)) return false;
  if (!/\p{L}{2}/u.test(line.text) || /[:=]\s*\S/.test(line.text)) return false;
  return kindsOf(line).every((kind, n) => kind === 'text' || line.cells[n] === '');
}

const MAX_WORDS = 4;

/** Indexes of lines: `from` up to but not including `to`. */
export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Consecutive rows with the same kinds of cells in the same columns. */
export interface Body extends Range {
  readonly kinds: readonly CellKind[];
  /** Lines between them that are no rows. */
  readonly between?: readonly Line[];
}
