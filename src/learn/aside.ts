import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line } from '../parse/lines.js';
import { escapeRegex } from '../text.js';

/** Lines among the rows of a table that are not readings: properties of its columns above them, statistics below. */

type TableMapping = NonNullable<ParseMapping['table']>;

export interface Aside {
  readonly name: 'properties' | 'statistics' | 'statistics without unit';
  readonly lines: readonly Line[];
  /** A line above them that has no values, such as `Statistics`. */
  readonly heading?: Line | undefined;
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

/** Leaves these lines out of a table, and makes tables of the same columns for them. */
export function setAside(
  table: TableMapping,
  asides: readonly Aside[],
  header: readonly string[],
): { table: TableMapping; others: { name: string; table: TableMapping }[] } {
  if (asides.length === 0) return { table, others: [] };
  const isDelimited = header.some((names) => /[\t,;|]/.test(names));
  const { units, skip, ...rest } = table;
  const keep = [skip ?? []].flat();
  const left = asides.map(({ lines, heading }) => startsWith([...lines, ...(heading ? [heading] : [])], isDelimited));
  // Names that take several lines, or none, cannot be distinguished from the lines to leave out.
  const canRepeat = header.length === 1 && table.headerRows === undefined && table.header !== 'none';
  const ownUnits = (name: Aside['name']): TableMapping => {
    if (name !== 'statistics') return { units: 'none' };
    // The line of units is one of those that the table leaves out.
    return units === undefined || units === 'nextRow' ? {} : { units: structuredClone(units) };
  };
  return {
    table: { ...table, skip: one([...keep, ...left.map((pattern) => `/^${pattern}/`)]) },
    others: asides.flatMap(({ name, lines }) =>
      canRepeat
        ? [
            {
              name,
              table: {
                ...rest,
                ...ownUnits(name),
                skip: `/^(?!${startsWith(lines, isDelimited)}|${escapeRegex(startOf(header[0] ?? ''))})/`,
              },
            },
          ]
        : [],
    ),
  };
}

const one = <T>(list: readonly T[]): T | T[] => (list.length === 1 && list[0] !== undefined ? list[0] : [...list]);

/** Lines whose first cell is one of these words. */
const startsWith = (lines: readonly Line[], isDelimited: boolean): string => {
  const words = lines
    .filter((line) => !isBlank(line))
    .map((line) => escapeRegex(firstCell(line).replace(/^["'\s]+/, '')));
  const end = isDelimited ? '\\s*(?:["\\t,;|]|$)' : '(?:\\W|$)';
  return `["'\\s]*(?:${[...new Set(words)].join('|')})${end}`;
};

const startOf = (text: string): string => text.trimEnd().slice(0, 40);
