import { isDrawn } from '../parse/extract/grid.js';
import { isBlank, isEmpty, type Line } from '../parse/lines.js';
import {
  areSamples,
  type Body,
  type CellKind,
  isMeasure,
  isQuantity,
  isSubject,
  isWord,
  kindsOf,
  type Range,
} from './kinds.js';

/** Tables whose lines are not readings: plates, and sheets with a column for each sample. */

/** Also the names of facts, so what follows must be numbered. */
const ALSO_FACT = /^(?:samples?|specimens?|proben?|runs?|tests?|name|id|label|group|species)\b/i;

/**
 * Sheets with a column for each sample: `Sample;1;2;3`, `pH;7.1;7.2;7.0`, `Operator;Ada;Ada;Bob`. All cells of a line
 * are of one kind.
 */
export function findTransposed(lines: readonly Line[]): Body[] {
  const found: Body[] = [];
  for (let at = 0; at < lines.length; at++) {
    const header = lines[at];
    if (!header || !namesSamples(header)) continue;
    let to = at + 1;
    while (to < lines.length && isOfOneKind(lines[to], header)) to++;
    const body = toBody(lines, at + 1, to);
    const rows = lines.slice(at + 1, to);
    // Samples in lines and their replicates in columns look alike, if no name is that of a quantity.
    const proofs = [areSamples(samplesOf(header)), areQuantities(rows), areOfSeveralKinds(rows)];
    if (body && proofs.filter(Boolean).length > 1) found.push(body);
    at = Math.max(at, to - 1);
  }
  return found;
}

/** Lists under names such as `Parameter;Value;Unit`, whatever the kinds of the values are. */
export function findNamedLists(lines: readonly Line[]): Body[] {
  const found: Body[] = [];
  for (let at = 0; at < lines.length; at++) {
    const header = lines[at];
    if (!header || !namesList(header)) continue;
    const width = withoutEmptyEnd(header.cells).length;
    let to = at + 1;
    while (to < lines.length && isListed(lines[to], width)) to++;
    const rows = lines.slice(at + 1, to);
    const names = rows.map(({ cells }) => cells[0]);
    if (rows.length < 2 || new Set(names).size < names.length) continue;
    const isNumber = (n: number) => rows.some((row) => kindsOf(row)[n] === 'number');
    const kinds = Array.from({ length: width }, (_, n): CellKind => (isNumber(n) ? 'number' : 'text'));
    found.push({ from: at + 1, to, kinds });
    at = to - 1;
  }
  return found;
}

const VALUE = /^(?:values?|results?|settings?|readings?|measured value|wert|ergebnis|valeur|valor|valore)$/i;

function namesList({ cells }: Line): boolean {
  if (!isSubject(cells[0] ?? '')) return false;
  const others = withoutEmptyEnd(cells).slice(1);
  return others.length > 0 && others.every(isWord) && others.slice(0, 2).some((cell) => VALUE.test(cell));
}

function isListed(line: Line | undefined, width: number): boolean {
  const end = line ? withoutEmptyEnd(line.cells).length : 0;
  return (
    line !== undefined &&
    end >= Math.max(2, width - 1) &&
    end <= width &&
    isWord(line.cells[0] ?? '') &&
    line.cells[0] !== ''
  );
}

const MIN_SAMPLES = 2;

const samplesOf = ({ cells }: Line): readonly string[] => withoutEmptyEnd(cells).slice(1);

/** Otherwise the lines may be the readings of a table, below its units. */
const areQuantities = (rows: readonly Line[]): boolean =>
  rows.every(({ cells: [name = ''] }) => /\p{L}{2}/u.test(name)) &&
  rows.some(({ cells: [name = ''] }) => isQuantity(name));

function namesSamples(header: Line): boolean {
  const [first = ''] = header.cells;
  const others = samplesOf(header);
  if (!isSubject(first) && !(first === '' && /\p{L}/u.test(others[0] ?? '') && areSamples(others))) return false;
  // Each line is a sample, and each column a repeated measurement.
  if (SAMPLES.test(first) && REPLICATE.test(others[0] ?? '')) return false;
  if (others.length < MIN_SAMPLES || others.includes('') || new Set(others).size < others.length) return false;
  return areSamples(others) || (!ALSO_FACT.test(first) && others.every((cell) => isWord(cell)));
}

const SAMPLES = /^(?:samples?|specimens?|proben?|compounds?|substances?|strains?|groups?|treatments?|names?|id)\b/i;
const REPLICATE = /^(?:rep(?:licate|etition|eat)?s?|runs?|trials?|measurements?|readings?|messung|wiederholung)\b/i;

const withoutEmptyEnd = (cells: readonly string[]): readonly string[] =>
  cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1);

/** A name, and values of one kind for some of the samples. */
function isOfOneKind(line: Line | undefined, header: Line): boolean {
  if (!line || line.cells.length !== header.cells.length || line.cells[0] === '') return false;
  const [name, ...values] = kindsOf(line);
  const kinds = new Set(values);
  kinds.delete('any');
  return name !== 'date' && kinds.size <= 1;
}

const kindOfValues = (row: Line): CellKind => kindsOf(row).find((kind, n) => n > 0 && kind !== 'any') ?? 'any';

const areOfSeveralKinds = (rows: readonly Line[]): boolean =>
  new Set(rows.map(kindOfValues).filter((kind) => kind !== 'any')).size > 1;

/** Undefined if the lines have no numbers, or no different names. */
function toBody(lines: readonly Line[], from: number, to: number): Body | undefined {
  const rows = lines.slice(from, to);
  const names = rows.map(({ cells }) => cells[0] ?? '');
  if (rows.length < 2 || new Set(names).size < names.length || !names.some((name) => isWord(name))) return undefined;
  if (!rows.some((row) => isMeasure(kindOfValues(row)))) return undefined;
  const width = lines[from - 1]?.cells.length ?? 0;
  return { from, to, kinds: Array.from({ length: width }, (_, n): CellKind => (n === 0 ? 'text' : 'number')) };
}

const MIN_PLATE_COLUMNS = 3;
/** After a word, 1 2 3 can be an ordinary row. */
const MIN_COLUMNS_AFTER_WORD = 6;

/** A plate as printed: the line with 1, 2, 3 …, and the rows below it. */
export interface PlateRange extends Range {
  /** Whether empty lines separate the readings within it. */
  readonly hasGaps: boolean;
  /** The line above that names plates side by side. */
  readonly names?: { readonly line: Line; readonly texts: readonly string[] } | undefined;
}

export function findPlates(lines: readonly Line[]): PlateRange[] {
  const plates: PlateRange[] = [];
  for (let index = 0; index < lines.length; index++) {
    const width = plateWidth(lines[index]);
    if (width === undefined || plateWidth(lines[index + 1]) !== undefined) continue;
    const below = lines.slice(index + 1, index + 3).filter(isDrawn).length;
    const from = index + 1 + below;
    const { to, hasGaps } = findPlateEnd(lines, from, width);
    if (to > from && isOnPlate(lines.slice(from, to), startOfPlate(lines[index])))
      plates.push({ from: index, to, hasGaps, names: namesAbove(lines[index - 1], lines[index]) });
    index = Math.max(index, to - 1);
  }
  return plates;
}

/** Different words, one for each plate. */
function namesAbove(line: Line | undefined, header: Line | undefined) {
  const plates = header?.cells.filter((cell) => cell === '1' || cell === '01').length ?? 0;
  const texts =
    line?.text
      .trim()
      .split(/[\t;,|]+| {2,}/)
      .filter(Boolean) ?? [];
  return line && plates > 1 && texts.length === plates && new Set(texts).size === plates ? { line, texts } : undefined;
}

/**
 * The largest plates have 32 rows. More rows without letters are a table, such as a time course. Rows with words are
 * the quantities measured of numbered samples, and those with times or numbers the readings of numbered channels. Some
 * plates have the temperature before their first row.
 */
function isOnPlate(rows: readonly Line[], start: number): boolean {
  const labels = rows.flatMap(({ cells }) => cells.slice(0, start)).filter((cell) => cell !== '');
  if (labels.some((label) => /^[A-Z]{1,2}$/.test(label))) return true;
  if (labels.some((label) => isWord(label))) return false;
  const filled = rows.filter((row) => !isBlank(row));
  if (filled.filter(({ cells }) => cells.slice(0, start).some((cell) => cell !== '')).length * 2 > filled.length)
    return false;
  if (
    filled[0] &&
    kindsOf(filled[0])
      .slice(start)
      .every((kind) => kind === 'text')
  )
    return false;
  return filled.length <= MAX_PLATE_ROWS || rows.some(isBlank);
}

const MAX_PLATE_ROWS = 32;

/** The number of cells up to the last plate column, if the line is 1, 2, 3 … with no number or letter before. */
function plateWidth(line: Line | undefined): number | undefined {
  const start = startOfPlate(line);
  if (!line || start < 1) return undefined;
  const left = line.cells.slice(0, start);
  if (left.some((cell) => /\d/.test(cell) || /^[A-Z]{1,2}$/.test(cell))) return undefined;
  let end = start;
  while (Number(line.cells[end]) === end - start + 1 && line.cells[end] !== '') end++;
  return end - start >= (CORNER.test(left[0] ?? '') ? MIN_PLATE_COLUMNS : MIN_COLUMNS_AFTER_WORD) ? end : undefined;
}

/** Nothing, a sign, or what says that these are wells. */
const CORNER = /^(?:[^\p{L}\d]*|wells?|rows?)$/iu;

const startOfPlate = (line: Line | undefined): number =>
  line?.cells.findIndex((cell) => cell === '1' || cell === '01') ?? -1;

/** A plate ends at the first line that is not a row of it. Empty lines belong to it if rows follow. */
function findPlateEnd(lines: readonly Line[], from: number, width: number): Pick<PlateRange, 'to' | 'hasGaps'> {
  let to = from;
  let hasGaps = false;
  for (let index = from; index < lines.length; index++) {
    const line = lines[index];
    if (!line) break;
    if (isEmpty(line)) {
      const next = lines[index + 1];
      if (!next || !isPlateRow(next, width) || isBlank(next)) break;
      hasGaps = true;
      continue;
    }
    if (!isPlateRow(line, width)) break;
    to = index + 1;
  }
  return { to, hasGaps };
}

const isPlateRow = (line: Line, width: number): boolean =>
  plateWidth(line) === undefined && line.cells.length > Math.min(3, width - 1) && line.cells.length + 12 >= width;
