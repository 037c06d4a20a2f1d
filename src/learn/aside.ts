import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line } from '../parse/lines.js';
import { escapeRegex } from '../text.js';

/** Lines among the rows of a table that are not readings: properties of its columns above them, statistics below. */

type TableMapping = NonNullable<ParseMapping['table']>;

export interface Aside {
  /** Sums are only left out: they say no more than the rows. */
  readonly name: 'properties' | 'statistics' | 'statistics without unit' | 'sums';
  readonly lines: readonly Line[];
  /** A line above them that has no values, such as `Statistics`. */
  readonly heading?: Line | undefined;
  /** Where the word is that marks them; otherwise it is the first. */
  readonly column?: number | undefined;
  /** No word marks them: the cells before that column are empty. */
  readonly isUnnamed?: boolean | undefined;
}

/** The first cell as a whole: `Std 1` and `Max Muster` are samples. */
const STATISTIC =
  /^(?:%\s?)?(?:mean|average|avg\.?|median|min(?:imum)?\.?|max(?:imum)?\.?|s\.?d\.?|std\.?|st(?:andar)?d\.? ?dev(?:iation|\.)?|std\.? ?error|cv|rsd|sem|range|mittelwert|standardabweichung|stabw\.?|moyenne|[ée]cart[- ]type|media|promedio|desviaci[óo]n est[áa]ndar|m[ée]dia|desvio padr[ãa]o|deviazione standard|gemiddelde|standaardafwijking|среднее|平均[値值]?|中央値|中位数|標準偏差|标准偏差|标准差|変動係数|变异系数|最[大小][値值])\s*(?:[([]?%[)\]]?)?\s*:?$/i;
/** Statistics only below others: a sample can be called `n`. */
const FURTHER =
  /^(?:n|s|srel|s\.?rel\.?|rel\.? ?s\.?d\.?|r|r2|r²|r\^2|var(?:iance)?|sum|total|count|number|(?:95 ?% ?)?(?:ci|conf\S*(?: \S+)?)|q[123])\s*(?:[([]?%[)\]]?)?\s*:?$/i;
const HEADING = /^(?:\p{L}+ )?(?:statisti[ckq]\p{L}*|estad[íi]stica|summary)\s*:?$/iu;
/** Ratios and numbers of values; a variance has the square of the unit. */
const WITHOUT_UNIT = /%|^(?:cv|rsd|s\.?rel|rel|n|r|r2|r²|r\^2|var|count|number)(?![\p{L}])|^variance/iu;

const isStatistic = (line: Line | undefined): boolean => line !== undefined && STATISTIC.test(firstCell(line));

const isHeading = (line: Line | undefined): boolean =>
  line !== undefined && HEADING.test(firstCell(line)) && line.cells.filter((cell) => cell !== '').length === 1;

const firstCell = ({ cells }: Line): string => cells.find((cell) => cell !== '') ?? '';

/**
 * The statistics among these lines, which are the rows of a table and lines directly below it. Below a heading, all
 * lines are statistics, whatever they are called.
 */
export function findStatistics(
  lines: readonly Line[],
  hasUnits: boolean,
): { readonly asides: Aside[]; readonly heading?: Line } {
  let heading: Line | undefined;
  let isBelow = false;
  const found = lines.filter((line) => {
    if (isBlank(line)) return false;
    if (!heading && isHeading(line)) heading = line;
    isBelow = heading ? line !== heading : isStatistic(line) || (isBelow && FURTHER.test(firstCell(line)));
    return isBelow;
  });
  const isBare = (line: Line) => hasUnits && WITHOUT_UNIT.test(firstCell(line));
  const asides: Aside[] = [
    { name: 'statistics', lines: found.filter((line) => !isBare(line)), heading },
    { name: 'statistics without unit', lines: found.filter(isBare), heading },
  ];
  return { asides: asides.filter((aside) => aside.lines.length > 0), ...(heading && { heading }) };
}

/** Columns that say which reading a row is. */
const READING =
  /^(?:wells?|samples?|replicates?|runs?|measurements?|injections?|probe|messung)(?: (?:id|name|no\.?))?$/i;
/** In a list of samples, these are also standards and names. */
const AMBIGUOUS = /^(?:std|s\.?d|min|max|media|range|cv)\b/i;

/** Some rows have `Average` where the others have a well or the number of a replicate. */
export function findStatisticsIn(rows: readonly Line[], names: Line): Aside | undefined {
  const isMarked = (line: Line, n: number) =>
    STATISTIC.test(line.cells[n] ?? '') && !AMBIGUOUS.test(line.cells[n] ?? '');
  const column = names.cells.findIndex(
    (name, n) => n > 0 && READING.test(name) && rows.some((row) => isMarked(row, n)),
  );
  const lines = rows.filter((row) => isMarked(row, column));
  return lines.length > 0 && lines.length * 2 <= rows.length ? { name: 'statistics', lines, column } : undefined;
}

const SUM = /^(?:(?:grand |sub-?)?totals?|sums?|summe|gesamt|somme|suma|totale|totaal|合計|总计|合计|Σ)\s*:?$/i;

/** The last row, or the line below it, if it has the sums of the columns. */
export const findSums = (rows: readonly Line[], below: readonly Line[]): Aside | undefined =>
  sumsIn(rows) ?? (below.length > 0 ? sumsIn([...rows, ...below]) : undefined);

/**
 * The last row, if it has the sums of the columns: as `Total`, or without a name where all other rows have one. Only sums
 * that are right to the last digit count.
 */
function sumsIn(lines: readonly Line[]): Aside | undefined {
  const filled = lines.filter((line) => !isBlank(line));
  const last = filled.at(-1);
  const rows = filled.slice(0, -1);
  if (!last || rows.length < 2) return undefined;
  const column = last.cells.findIndex((cell) => cell !== '');
  const isNamed = SUM.test(last.cells[column] ?? '');
  const hasNames = column > 0 && rows.every(({ cells }) => cells.slice(0, column).every((cell) => cell !== ''));
  if (!isNamed && !hasNames) return undefined;
  const sums = last.cells.flatMap((cell, n) =>
    /\d/.test(cell)
      ? [
          isSum(
            cell,
            rows.map(({ cells }) => cells[n] ?? ''),
          ),
        ]
      : [],
  );
  const right = sums.filter(Boolean).length;
  // A total can have a percentage or a mean beside it.
  if (right === 0 || (isNamed ? right * 2 < sums.length : right < sums.length)) return undefined;
  return { name: 'sums', lines: [last], column, ...(!isNamed && { isUnnamed: true }) };
}

/** A sum of zeros proves nothing. */
function isSum(text: string, parts: readonly string[]): boolean {
  const total = toNumber(text);
  const sum = parts.reduce((all, part) => all + (part === '' ? 0 : toNumber(part)), 0);
  const digits = Math.max(...[text, ...parts].map(digitsOf));
  // Each number may be rounded.
  return total !== 0 && Math.abs(sum - total) <= ((parts.length + 1) / 2) * 10 ** -digits + 1e-9 * Math.abs(total);
}

/** The mean of few rows can be one of them by chance, so the rows must differ by more than rounding explains. */
const MIN_SPREAD = 20;
const [MAX_STATISTICS, MAX_AVERAGED] = [6, 1000];

/**
 * Statistics whatever they are called: a row that is the mean of all rows above it, and the rows below it. Its numbers
 * prove it, in two columns at least, and no number may contradict.
 */
export function findMeans(lines: readonly Line[], hasUnits: boolean): Aside[] {
  const rows = lines.filter((line) => !isBlank(line));
  const least = Math.max(2, rows.length - MAX_STATISTICS);
  if (rows.length < 3 || rows.length > MAX_AVERAGED) return [];
  const shapeOf = (line: Line) => firstCell(line).replace(/\d+/g, '0');
  const [first, last] = [rows[0], rows.at(-1)].map((line) => line && shapeOf(line));
  // Most tables end with a row like the first.
  if (first === last) return [];
  const shapes = rows.map(shapeOf);
  const at = rows.findIndex((line, n) => {
    if (n < least) return false;
    const others = shapes.slice(0, n);
    const areOthers = shapes.slice(n).every((each) => /\p{L}/u.test(each) && !others.includes(each));
    return areOthers && provesMean(line, rows.slice(0, n));
  });
  const above = rows.slice(0, at);
  const hasUnit = (line: Line, n: number) => !hasUnits || n === 0 || isDeviation(line, above);
  const found = at < 0 ? [] : rows.slice(at);
  const asides: Aside[] = [
    { name: 'statistics', lines: found.filter(hasUnit) },
    { name: 'statistics without unit', lines: found.filter((line, n) => !hasUnit(line, n)) },
  ];
  return asides.filter((aside) => aside.lines.length > 0);
}

function provesMean(line: Line, above: readonly Line[]): boolean {
  let right = 0;
  for (const [n, text] of line.cells.entries()) {
    const texts = above.map(({ cells }) => cells[n] ?? '');
    const [mean, numbers] = [toNumber(text), texts.filter((each) => each !== '').map(toNumber)];
    // A word or a date says nothing.
    if (Number.isNaN(mean) || text === '' || numbers.length === 0 || numbers.every(Number.isNaN)) continue;
    const rounding = (10 ** -digitsOf(text) + 10 ** -Math.max(...texts.map(digitsOf))) * 0.51;
    if (!(Math.abs(sumOf(numbers) / numbers.length - mean) <= rounding)) return false;
    if (Math.max(...numbers) - Math.min(...numbers) >= MIN_SPREAD * rounding) right++;
  }
  return right >= 2;
}

/** A standard deviation, the least or the greatest value has the unit of its column; a ratio has not. */
function isDeviation(line: Line, above: readonly Line[]): boolean {
  const checks = line.cells.flatMap((text, n) => {
    const numbers = above.map(({ cells }) => toNumber(cells[n] ?? ''));
    const value = toNumber(text);
    if (text === '' || Number.isNaN(value) || numbers.some(Number.isNaN)) return [];
    const mean = sumOf(numbers) / numbers.length;
    const squares = sumOf(numbers.map((number) => (number - mean) ** 2));
    const known = [Math.sqrt(squares / (numbers.length - 1)), Math.sqrt(squares / numbers.length)];
    // Computed from more digits than the file has.
    const isNear = (each: number) => Math.abs(each - value) <= 10 ** -digitsOf(text) + 0.1 * Math.abs(each);
    return [known.some(isNear) || Math.min(...numbers) === value || Math.max(...numbers) === value];
  });
  return checks.length > 0 && checks.every(Boolean);
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, number) => sum + number, 0);

const digitsOf = (text: string): number => /[.,](\d+)$/.exec(text)?.[1]?.length ?? 0;

const toNumber = (text: string): number => (/^[-+\d.,eE]+$/.test(text) ? Number(text.replace(',', '.')) : Number.NaN);

/** Leaves these lines out of a table, and makes tables of the same columns for them. */
export function setAside(
  table: TableMapping,
  asides: readonly Aside[],
  header: readonly string[],
  unitRow?: string,
): { table: TableMapping; others: { name: string; table: TableMapping }[] } {
  if (asides.length === 0) return { table, others: [] };
  const sign = ['\t', ';', ',', '|'].find((each) => header.some((names) => names.includes(each)));
  const { units, skip, ...rest } = table;
  const keep = [skip ?? []].flat();
  const left = asides.map((aside) => startsWith(aside, aside.heading ? [aside.heading] : [], sign));
  // Names that take several lines, or none, cannot be distinguished from the lines to leave out.
  const canRepeat = header.length === 1 && table.headerRows === undefined && table.header !== 'none';
  const ownUnits = (name: Aside['name']): TableMapping => {
    if (name !== 'statistics') return { units: 'none' };
    return units === undefined ? {} : { units: structuredClone(units) };
  };
  const head = ({ name }: Aside) => [header[0] ?? '', ...(name === 'statistics' && unitRow ? [unitRow] : [])];
  return {
    table: { ...table, skip: one([...keep, ...left.map((pattern) => `/^${pattern}/`)]) },
    others: asides.flatMap((aside) =>
      canRepeat && aside.name !== 'sums'
        ? [
            {
              name: aside.name,
              table: {
                ...rest,
                ...ownUnits(aside.name),
                skip: `/^(?!${[startsWith(aside, [], sign), ...head(aside).map(startOf).map(escapeRegex)].join('|')})/`,
              },
            },
          ]
        : [],
    ),
  };
}

const one = <T>(list: readonly T[]): T | T[] => (list.length === 1 && list[0] !== undefined ? list[0] : [...list]);

/** Lines whose first cell, or that in the column of the aside, is one of these words. */
const startsWith = (
  { lines, column, isUnnamed }: Aside,
  further: readonly Line[],
  sign: string | undefined,
): string => {
  if (isUnnamed) return `(?:["' ]*[${sign ?? ',;\\t|'}]){${column}}`;
  const wordOf = (line: Line) => (column === undefined ? firstCell(line) : (line.cells[column] ?? ''));
  const words = [...lines, ...further]
    .filter((line) => !isBlank(line))
    .map((line) => escapeRegex(wordOf(line).replace(/^["'\s]+/, '')));
  const end = sign === undefined ? '(?:\\W|$)' : '\\s*(?:["\\t,;|]|$)';
  const before = column === undefined ? '' : `(?:(?:"[^"]*"|[^"${sign}]*)[${sign}]){${column}}`;
  return `${before}["'\\s]*(?:${[...new Set(words)].join('|')})${end}`;
};

const startOf = (text: string): string => text.trimEnd().slice(0, 40);
