import { readIso } from '../values/date.js';
import { type DateForm, dateForms } from '../values/date-forms.js';

/** The patterns of a file's dates. */
export interface FoundFormats {
  /** Under these all dates can be read, and no other way. */
  readonly sure: readonly string[];
  /** Dates that two orders fit, with the likelier one first: to be asked about. */
  readonly open: readonly { readonly text: string; readonly formats: readonly string[] }[];
}

/** Each pool is the dates that are written alike: a column, or a single fact. */
export function findDateFormats(pools: readonly (readonly string[])[]): FoundFormats {
  const isIso = (text: string) => readIso(text) !== undefined;
  const candidates = pools
    .filter((pool) => !pool.every(isIso))
    .map((pool) => ({ text: pool[0] ?? '', found: candidatesFor(pool) }))
    .filter(({ found }) => found.length > 0);
  const orders = new Set(
    candidates.flatMap(({ found }) => (found.length === 1 && found[0] ? [orderOf(found[0].format)] : [])),
  );
  const settled = candidates.map(({ text, found }) => {
    // One file has one habit: a date that is clear by itself tells how the others are meant.
    const habitual = found.filter(({ format }) => orders.has(orderOf(format)));
    const left = found.length > 1 && habitual.length === 1 ? habitual : found;
    return { text, formats: left.toSorted((a, b) => oddity(a) - oddity(b)).map(({ format }) => format) };
  });
  const sure = settled.flatMap(({ formats }) => (formats.length === 1 ? formats : []));
  const hasIso = pools.some((pool) => pool.some(isIso));
  return {
    sure: [...new Set([...(hasIso ? ['iso'] : []), ...sure])],
    open: settled.filter(({ formats }) => formats.length > 1),
  };
}

/**
 * What is usual: the day first with points or dashes, and with slashes where zeros are written and the day
 * has 24 hours; else the month first. Of two years, the later one. A likelihood, for a person to confirm.
 */
function oddity({ format, iso, days }: Candidate): number {
  const [, first = '', sign = ''] = /^([yMd]+)([^\w\s])/.exec(format) ?? [];
  const isDayFirst = sign !== '/' || (first.length === 2 && !format.includes('a'));
  const age = new Date().getFullYear() - Number(iso.slice(0, 4));
  // Files come from the past, and the dates of one file are near each other.
  const months = days / 30;
  // Hardly anybody writes the year before the name of a month, and only two digits of it.
  if (/^yy\WMMM/.test(format)) return 1000;
  return (first === 'yy' || (first[0] === 'd') === isDayFirst ? 0 : 1) + (age < 0 ? 100 : age) + months;
}

/** One way to read all dates of a pool. */
interface Candidate extends DateForm {
  /** How many days lie between them then. */
  readonly days: number;
}

/** The patterns that fit every date of a pool, each with what the first date would be. */
function candidatesFor(pool: readonly string[]): Candidate[] {
  const all = pool.map((text) => dateForms(text));
  const [first = [], ...others] = all;
  const fitting = first.filter(({ format }) =>
    others.every((forms) => forms.some((form) => lenient(form.format) === lenient(format))),
  );
  // Two digits everywhere prove nothing until one of them is a zero: it may just be December.
  const isPadded =
    pool.some((text) => /(?:^|\D)0\d[/.-]/.test(text)) &&
    all.every((forms) => forms.some(({ format }) => fitting.some((fit) => fit.format === format)));
  return fitting.map(({ format, iso }) => ({
    format: isPadded ? format : lenient(format),
    iso,
    days: daysBetween(all, lenient(format)),
  }));
}

function daysBetween(all: readonly (readonly DateForm[])[], format: string): number {
  const moments = all.map((forms) =>
    Date.parse(forms.find((form) => lenient(form.format) === format)?.iso ?? ''),
  );
  const [least, most] = moments.reduce(([low, high], each) => [Math.min(low, each), Math.max(high, each)], [
    Number.POSITIVE_INFINITY,
    Number.NEGATIVE_INFINITY,
  ] as [number, number]);
  return (most - least) / MS_PER_DAY;
}

const MS_PER_DAY = 86_400_000;

/** `d` also reads what `dd` reads. */
const lenient = (format: string): string =>
  format
    .replace(/(?<!d)d{1,2}(?!d)/, 'd')
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
