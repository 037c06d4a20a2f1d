import { readIso } from '../values/date.js';
import { type DateForm, dateForms } from '../values/date-forms.js';

/**
 * The patterns under which all dates of a file can be read, and no other way. Each pool is the dates that are
 * written alike: a column, or a single fact. What several orders fit stays a text, to be asked about where it is used.
 */
export function findDateFormats(pools: readonly (readonly string[])[]): string[] {
  const isIso = (text: string) => readIso(text) !== undefined;
  const candidates = pools
    .filter((pool) => !pool.every(isIso))
    .map(candidatesFor)
    .filter((found) => found.length > 0);
  const settled = candidates.map((found) => settle(found));
  const orders = new Set(settled.flatMap((format) => (format === undefined ? [] : [orderOf(format)])));
  const formats = candidates.map(
    // One file has one habit: a date that is clear by itself tells how the others are meant.
    (found, n) => settled[n] ?? settle(found.filter(({ format }) => orders.has(orderOf(format)))),
  );
  const known = [...new Set(formats.filter((format) => format !== undefined))];
  const hasIso = pools.some((pool) => pool.some(isIso));
  return known.length > 0 && hasIso ? ['iso', ...known] : known;
}

/** The patterns that fit every date of a pool, each with what the first date would be. */
function candidatesFor(pool: readonly string[]): DateForm[] {
  const all = pool.map((text) => dateForms(text));
  const [first = [], ...others] = all;
  const fitting = first.filter(({ format }) =>
    others.every((forms) => forms.some((form) => lenient(form.format) === lenient(format))),
  );
  // Two digits everywhere prove nothing until one of them is a zero: it may just be December.
  const isPadded =
    pool.some((text) => /(?:^|\D)0\d[/.-]/.test(text)) &&
    all.every((forms) => forms.some(({ format }) => fitting.some((fit) => fit.format === format)));
  return isPadded ? fitting : fitting.map(({ format, iso }) => ({ format: lenient(format), iso }));
}

const settle = (found: readonly DateForm[]): string | undefined =>
  found.length === 1 ? found[0]?.format : undefined;

/** `d` also reads what `dd` reads. */
const lenient = (format: string): string =>
  format
    .replace(/d+/, 'd')
    .replace(/(?<!M)MM(?!M)/, 'M')
    .replace(/H+/, 'H')
    .replace(/h+/, 'h');

/** `d/M/y`: the order of day, month and year, and the sign between them. */
const orderOf = (format: string): string =>
  /([dMy]+)([^\w\s])([dMy]+)\2([dMy]+)/
    .exec(format)
    ?.slice(1, 5)
    .map((part) => part[0])
    .join('') ?? format;
