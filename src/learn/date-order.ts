import type { Source } from '../parse/source.js';
import { readIso } from '../parse/values/date.js';
import { type DateCandidate, dateCandidates, isDay } from '../parse/values/date-candidates.js';

/**
 * The order of day, month and year in the dates of a file. Only a proof counts: a date that has no proof stays open,
 * so that the run is quarantined.
 */

/** Dates that are written alike: a column, or a single fact. */
export interface DatePool {
  /** Of the fact or column. */
  readonly name: string;
  readonly texts: readonly string[];
}

/** What is known beside the dates themselves. */
export interface DateEvidence {
  /** Days that are written in an unambiguous form somewhere in the file. */
  readonly days: ReadonlySet<string>;
  /** Other texts of the file, which may contain dates among words. */
  readonly texts?: readonly string[];
  readonly source: Pick<Source, 'path' | 'modifiedMs'>;
}

/** A date that several formats fit. */
export interface OpenDate {
  /** Of the fact or column. */
  readonly name: string;
  readonly text: string;
  readonly formats: readonly string[];
  /** Whether all of them read it as the same day: `10/10/2026`. */
  readonly isSameDay: boolean;
}

/** A format that fits all dates of a pool, and these dates read with it. */
interface Candidate {
  readonly format: string;
  readonly isos: readonly string[];
}

interface Settling extends DatePool {
  left: readonly Candidate[];
}

/** `sure`: the only formats that fit all dates of their pools. */
export function findDateFormats(pools: readonly DatePool[], evidence: DateEvidence) {
  const isIso = (text: string) => readIso(text) !== undefined;
  const settling = pools
    .filter(({ texts }) => !texts.every(isIso))
    .map((pool): Settling => ({ ...pool, left: candidatesFor(pool.texts) }))
    .filter(({ left }) => left.length > 0);
  for (const pool of settling) pool.left = byTime(pool, evidence.source);
  const written = (evidence.texts ?? []).flatMap(ordersIn);
  // Each date that is settled can settle others.
  for (let round = 0; round < 3; round++) {
    const days = new Set([...evidence.days, ...daysInPath(evidence.source.path), ...settling.flatMap(sureDays)]);
    for (const pool of settling) pool.left = only(pool.left, ({ isos }) => isos.some((iso) => days.has(dayOf(iso))));
    const settled = settling.flatMap(({ texts, left: [first, ...others] }) =>
      first && others.length === 0 ? [{ order: orderOf(first.format), style: styleOf(texts) }] : [],
    );
    const known = [...settled, ...written];
    // A file writes all dates alike. `12/3/2022` is not written like `27/06/2019`, so it may come from another program.
    for (const pool of settling) {
      const style = styleOf(pool.texts);
      const alike = known.filter((each) => areAlike(style, each.style));
      pool.left = only(pool.left, ({ format }) => alike.some(({ order }) => order === orderOf(format)));
    }
  }
  const isSettled = ({ left }: Settling) => left.length === 1;
  const sure = new Set(settling.filter(isSettled).map(({ left }) => left[0]?.format ?? ''));
  const clashing = findClash(settling.filter(isSettled));
  const hasIso = pools.some(({ texts }) => texts.some(isIso));
  const open = settling.filter((pool) => !isSettled(pool));
  return {
    sure: [...(hasIso ? ['iso'] : []), ...[...sure].filter((format) => !clashing.has(format))],
    /** Formats of single pools: elsewhere in the file they would read dates wrongly. */
    clashing,
    open: open.map(({ name, texts, left }): OpenDate => {
      const isSameDay = left.every(({ isos }) => isos.every((iso, n) => dayOf(iso) === dayOf(left[0]?.isos[n] ?? '')));
      return { name, text: texts[0] ?? '', formats: left.map(({ format }) => format), isSameDay };
    }),
  };
}

/** The candidates that pass, if that leaves exactly one. */
function only(found: readonly Candidate[], passes: (candidate: Candidate) => boolean): readonly Candidate[] {
  const passing = found.length > 1 ? found.filter(passes) : found;
  return passing.length === 1 ? passing : found;
}

/**
 * `0/4`: how days and months are padded, and how many digits years have. Both zeros and single digits are a way of their
 * own: `6/09/2017`. Dates show no padding if all days and months have two digits and none starts with a zero.
 */
function styleOf(texts: readonly string[]): { readonly padding: string; readonly year: string | undefined } {
  const hasZeros = texts.some((text) => /(?:^|\D)0\d[/.-]/.test(text));
  const hasSingles = texts.some((text) => /(?:^|[^\d:])\d[/.-]/.test(text));
  const [, year] = /\d([/.-])\d{1,2}\1(\d{4}|\d\d(?!\d))/.exec(texts[0] ?? '')?.slice(1) ?? [];
  return { padding: `${hasZeros ? '0' : ''}${hasSingles ? '1' : ''}`, year: year && String(year.length) };
}

type Style = ReturnType<typeof styleOf>;

const areAlike = (one: Style, other: Style): boolean =>
  (one.padding === '' || other.padding === '' || one.padding === other.padding) &&
  (one.year === undefined || other.year === undefined || one.year === other.year);

const dayOf = (iso: string): string => iso.slice(0, 10);

const sureDays = ({ left: [first, ...others] }: Settling): string[] =>
  first && others.length === 0 ? first.isos.map(dayOf) : [];

/**
 * Formats that read a date of another pool as a different day, now or in another file: one column is `d/M/yyyy`, another
 * `M/d/yyyy`.
 */
function findClash(settled: readonly Settling[]): ReadonlySet<string> {
  const formats = [...new Set(settled.map(({ left }) => left[0]?.format ?? ''))];
  const shapeOf = (format: string) => unpadded(format).replace(/[dM]/g, 'X');
  const isMirrored = (format: string) =>
    formats.some((other) => unpadded(other) !== unpadded(format) && shapeOf(other) === shapeOf(format));
  const clashing = new Set(formats.filter(isMirrored));
  for (const {
    texts,
    left: [own],
  } of settled) {
    for (const [n, text] of texts.entries()) {
      const misread = dateCandidates(text)
        .filter(({ iso }) => iso !== own?.isos[n])
        .map(({ format }) => unpadded(format));
      const others = formats.filter((format) => misread.includes(unpadded(format)));
      for (const format of others.length > 0 ? [...others, own?.format ?? ''] : []) clashing.add(format);
    }
  }
  return clashing;
}

/** Names of dates that may be later than the file. */
const LATER = /expir|due|valid|next|until|verfall|ablauf|gültig|期限|有效/i;
const DAY_MS = 86_400_000;
/** Most instruments write the file right after the run. A later copy is rarely made within this time. */
const PROMPT_MS = 15 * 60_000;
const CLOCKS_MS = 60_000;

/** What the time of the file and the order of the dates themselves prove. */
function byTime({ name, left }: Settling, { modifiedMs }: DateEvidence['source']): readonly Candidate[] {
  let found = left;
  if (modifiedMs !== undefined && !LATER.test(name)) {
    const latest = ({ isos }: Candidate) => Math.max(...isos.map((iso) => Date.parse(iso)));
    const possible = found.filter((candidate) => latest(candidate) <= modifiedMs + DAY_MS);
    if (possible.length > 0) found = possible;
    found = only(found, (candidate) => {
      const age = modifiedMs - latest(candidate);
      return candidate.isos.every((iso) => iso.includes('T')) && age >= -CLOCKS_MS && age <= PROMPT_MS;
    });
  }
  found = only(found, ({ isos }) => isContinuous(isos.map((iso) => Date.parse(iso))));
  return only(found, ({ isos }) => new Set(isos.map(dayOf)).size >= MIN_SORTED_DAYS && isSorted(isos));
}

/** Fewer days can be in order by chance. */
const MIN_SORTED_DAYS = 6;

const isSorted = (isos: readonly string[]): boolean =>
  isos.every((iso, n) => n === 0 || iso >= (isos[n - 1] ?? '')) ||
  isos.every((iso, n) => n === 0 || iso <= (isos[n - 1] ?? ''));

const MAX_STEP_MS = 3_600_000;

/** Readings in short, similar intervals that continue after midnight. */
function isContinuous(times: readonly number[]): boolean {
  const steps = times.slice(1).map((time, n) => time - (times[n] ?? 0));
  const median = steps.toSorted((a, b) => a - b)[Math.floor(steps.length / 2)] ?? 0;
  const [first = 0, last = 0] = [times[0], times.at(-1)];
  const isNextDay = Math.floor(first / DAY_MS) !== Math.floor(last / DAY_MS);
  return (
    steps.length >= 2 && isNextDay && steps.every((step) => step >= 0 && step <= Math.min(3 * median, MAX_STEP_MS))
  );
}

function candidatesFor(texts: readonly string[]): Candidate[] {
  const all = texts.map((text) => dateCandidates(text));
  const [first = [], ...others] = all;
  const fitting = first.filter(({ format }) =>
    others.every((forms) => forms.some((form) => unpadded(form.format) === unpadded(format))),
  );
  // Two digits everywhere show padding only if one of them is a zero; otherwise it may be December.
  const isPadded =
    texts.some((text) => /(?:^|\D)0\d[/.-]/.test(text)) &&
    all.every((forms) => forms.some(({ format }) => fitting.some((fit) => fit.format === format)));
  return fitting.map(({ format }) => ({
    format: isPadded ? format : unpadded(format),
    isos: all.map((forms) => isoIn(forms, unpadded(format))),
  }));
}

const NUMERIC_DATE = /(?<![\w./\\-])\d{1,2}([-/.])\d{1,2}\1\d{4}(?![\w/\\-]|\.\d)/g;

/** The orders of dates among words that can be read in one way only: `Changed on 6/14/2018 by Ada`. */
function ordersIn(text: string): { order: string; style: Style }[] {
  if (text.length > 1000) return [];
  return [...text.matchAll(NUMERIC_DATE)].flatMap(([date]) => {
    const [first, ...others] = dateCandidates(date);
    return first && others.length === 0 ? [{ order: orderOf(first.format), style: styleOf([date]) }] : [];
  });
}

const isoIn = (forms: readonly DateCandidate[], format: string): string =>
  forms.find((form) => unpadded(form.format) === format)?.iso ?? '';

/** `d` reads all that `dd` reads. */
const unpadded = (format: string): string =>
  format.startsWith('yyyyMMdd')
    ? format
    : format
        .replace(/(?<!d)d{1,2}(?!d)/, 'd')
        .replace(/(?<!M)MM(?!M)/, 'M')
        .replace(/H+/, 'H')
        .replace(/h+/, 'h');

/** `d/My`: the order of day, month and year, and the sign between them. */
export const orderOf = (format: string): string =>
  /([dMy]+)([^\w\s])([dMy]+)\2([dMy]+)/
    .exec(format)
    ?.slice(1, 5)
    .map((part) => part[0])
    .join('') ?? format;

/** All days have one of these: `2024…`, ` 2024`. */
const YEAR = /(?:19|20)\d\d|[-/. ]\d{4}/;
const YEAR_FIRST = /(?<!\d)((?:19|20)\d\d)([-_./]?)(\d\d)\2(\d\d)(?!\d)/g;
const SHORT_YEAR_FIRST = /(?<!\d)(\d\d)([-_]?)(\d\d)\2(\d\d)(?!\d)/g;
const WITH_MONTH =
  /(?<![\p{L}\d])(?:\d{1,2}[-/. ]{1,2}\p{L}{3,10}[-/. ]{1,2}\d{4}|\p{L}{3,10} \d{1,2},? \d{4})(?!\d)/gu;

/** The days that a text contains in an unambiguous form. */
export function daysIn(text: string): string[] {
  if (text.length > 1000 || !YEAR.test(text)) return [];
  const numeric = [...text.matchAll(YEAR_FIRST)].map(([, year = '', , month = '', day = '']) => [year, month, day]);
  const named = [...text.matchAll(WITH_MONTH)].flatMap(([date]) => dateCandidates(date).map(({ iso }) => dayOf(iso)));
  return [...numeric.filter(isCalendarDay).map((parts) => parts.join('-')), ...named];
}

/** In names of files and folders, also `240411` and `16-03-03`. */
const daysInPath = (path: string): string[] => [
  ...daysIn(path),
  ...[...path.matchAll(SHORT_YEAR_FIRST)]
    .map(([, year = '', , month = '', day = '']) => [`20${year}`, month, day])
    .filter(isCalendarDay)
    .map((parts) => parts.join('-')),
];

const isCalendarDay = ([year, month, day]: readonly string[]): boolean =>
  isDay(Number(year), Number(month), Number(day));
