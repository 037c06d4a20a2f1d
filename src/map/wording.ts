import type { Column, Value } from '../model.js';

/** How body and comments put things, so that both put them alike. */

const counts = new Intl.NumberFormat('en-US');

/** `999`, `1,000`. Few are counted most often, and need no formatter. */
export const countOf = (n: number): string => (n < 1000 ? String(n) : counts.format(n));

/** `1 row`, `1,234 rows`. */
export const amountOf = (n: number, what: string): string => `${countOf(n)} ${what}${n === 1 ? '' : 's'}`;

export const headingOf = ({ name, unit }: Column): string => (unit ? `${name} (${unit})` : name);

/** As written; the unit too, where it was not written with the number. */
export const withUnit = ({ text, unit }: Value): string =>
  unit && text !== '' && !text.endsWith(unit) ? `${text} ${unit}` : text;

/** Where a reader finds the rows that a table leaves out. */
export type WhereAll = 'comments' | 'file';
