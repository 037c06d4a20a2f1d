import type { Line } from '../lines.js';
import { readIso } from '../values/date.js';
import { dateForms } from '../values/date-forms.js';
import { createNumberReader, readQuantity } from '../values/value.js';

/** What a cell looks like, whatever the marks. `any`: nothing, or a word for no value, which stands in any column. */
export type Kind = 'any' | 'number' | 'date' | 'text';

/** Words that instruments write where a number would be. */
const NO_VALUE = new Set(
  [
    'nan',
    'n/a',
    'na',
    '#n/a',
    'n.a.',
    'nd',
    'n.d.',
    'null',
    'none',
    'inf',
    '-inf',
    '+inf',
    '1.#qnan',
    '-1.#ind',
  ].concat([
    '-',
    '--',
    '---',
    '?????',
    'ovrflw',
    'overflow',
    'over',
    'missed',
    'out of range',
    'undetermined',
    'error',
  ]),
);

const numbers = createNumberReader({ decimal: undefined, thousands: undefined });

export const isNoValue = (text: string): boolean => NO_VALUE.has(text.toLowerCase());

export const looksNumeric = (text: string): boolean =>
  numbers.read(text) !== undefined || numbers.isSuspect(text);

export function kindOf(text: string): Kind {
  if (text === '' || isNoValue(text) || /^[<>≤≥]=?\s*\d/.test(text)) return 'any';
  if (looksNumeric(text) || readQuantity(text, numbers)) return 'number';
  // `007` and numbers too long to count stand among numbers and among words.
  if (/^\d+$/.test(text)) return 'any';
  return readIso(text) !== undefined || CLOCK.test(text) || dateForms(text).length > 0 ? 'date' : 'text';
}

const CLOCK = /^\d{1,3}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M)?$/i;

export const kindsOf = ({ cells }: Line): Kind[] => cells.map(kindOf);

/** The kinds of the columns to which one more row is added; undefined where it is a row of another table. */
export function merge(columns: readonly Kind[], row: readonly Kind[]): Kind[] | undefined {
  if (!isAsWide(columns.length, row.length)) return undefined;
  const merged: Kind[] = [];
  for (let n = 0; n < columns.length || n < row.length; n++) {
    const kind = columns[n] ?? 'any';
    const other = row[n] ?? 'any';
    if (kind !== 'any' && other !== 'any' && kind !== other) return undefined;
    merged.push(kind === 'any' ? other : kind);
  }
  return merged;
}

/** The last cells of a row may be left out, where they are empty, but not most of them. */
export const isAsWide = (one: number, other: number): boolean =>
  Math.abs(one - other) <= 2 && Math.min(one, other) * 2 > Math.max(one, other);

/** Wavelengths, channels or wells can name columns: a word above times or numbers, then numbers that all differ. */
export function areNumberNames({ cells }: Line, columns: readonly Kind[]): boolean {
  const [first = '', ...others] = cells;
  if (others.length < 3 || cells.length !== columns.length || columns[0] === 'text') return false;
  if (kindOf(first) !== 'text' || new Set(others).size < others.length) return false;
  return others.every((cell) => /^\d+(?:\.\d+)?$/.test(cell));
}
