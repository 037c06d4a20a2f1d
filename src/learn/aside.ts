import type { ParseMapping } from '../config/vocabulary.js';
import { isBlank, type Line } from '../parse/lines.js';
import { escapeRegex } from '../text.js';

/** Lines among the rows of a table that are not readings: properties of its columns above them, statistics below. */

type TableMapping = NonNullable<ParseMapping['table']>;

export interface Aside {
  readonly name: 'properties' | 'statistics';
  readonly lines: readonly Line[];
}

/** The first cell as a whole: `Std 1` and `Max Muster` are samples. */
const STATISTIC =
  /^(?:%\s?)?(?:mean|average|avg\.?|median|min(?:imum)?\.?|max(?:imum)?\.?|s\.?d\.?|std\.?|st(?:andar)?d\.? ?dev(?:iation|\.)?|std\.? ?error|cv|rsd|sem|range|mittelwert|standardabweichung|stabw\.?|moyenne|[ée]cart[- ]type|media|promedio)\s*(?:[([]?%[)\]]?)?\s*:?$/i;

export const isStatistic = (line: Line | undefined): boolean => line !== undefined && STATISTIC.test(firstCell(line));

const firstCell = ({ cells }: Line): string => cells.find((cell) => cell !== '') ?? '';

/** Leaves these lines out of a table, and makes tables of the same columns for them. */
export function setAside(
  table: TableMapping,
  asides: readonly Aside[],
  header: readonly string[],
): { table: TableMapping; others: { name: string; table: TableMapping }[] } {
  const patterns = asides.map(({ lines }) => startsWith(lines));
  if (patterns.length === 0) return { table, others: [] };
  const { units, skip, ...rest } = table;
  const keep = [skip ?? []].flat();
  // Names that take several lines, or none, cannot be distinguished from the lines to leave out.
  const canRepeat = header.length === 1 && table.headerRows === undefined && table.header !== 'none';
  return {
    table: { ...table, skip: one([...keep, ...patterns.map((pattern) => `/^${pattern}/`)]) },
    others: asides.flatMap(({ name }, n) =>
      canRepeat
        ? [
            {
              name,
              table: {
                ...rest,
                // A serial number has no unit.
                ...(name === 'properties' ? { units: 'none' as const } : units === 'slash' && { units }),
                skip: `/^(?!${patterns[n]}|${escapeRegex(startOf(header[0] ?? ''))})/`,
              },
            },
          ]
        : [],
    ),
  };
}

const one = <T>(list: readonly T[]): T | T[] => (list.length === 1 && list[0] !== undefined ? list[0] : [...list]);

/** Lines that start with one of these words. */
const startsWith = (lines: readonly Line[]): string => {
  const words = lines.filter((line) => !isBlank(line)).map((line) => escapeRegex(firstCell(line).replace(/^\W+/, '')));
  return `\\W*(?:${[...new Set(words)].join('|')})(?:\\W|$)`;
};

const startOf = (text: string): string => text.trimEnd().slice(0, 40);
