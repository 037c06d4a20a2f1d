import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord, Table, Value } from '../model.js';
import { isBlank, type Line } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { type DateCandidate, dateCandidates } from '../parse/values/date-candidates.js';
import { escapeRegex, mapTables, type TableMapping } from './describe.js';
import type { FinderMapping } from './facts.js';

/** Which values of a file are dates, how they are written, and which of them is the date of the run. */

export interface FoundDates {
  /** Each pool holds dates that are written alike: a column, or a single fact. */
  readonly pools: readonly (readonly string[])[];
  /** The facts that make up the date of the run. */
  readonly fact: readonly string[] | undefined;
  /** The format of that fact, if only its name shows that it is a date. */
  readonly format?: string | undefined;
  /** The date of the run, if it is part of a line. */
  readonly inLine?: LineDate | undefined;
  /** By table: columns of day and time that belong together. */
  readonly columns: ReadonlyMap<string, readonly [day: string, time: string]>;
}

/**
 * Adds the dates to a mapping. `sure`: with what the file itself proves. `likely`: also with the more likely order of day
 * and month where the file leaves it open. `isDated`: the mapping already defines the date of the run.
 */
export function settleDates(found: FoundDates, fileName: string, isDated = false) {
  const { sure, open } = findDateFormats(found.pools);
  const likely = [...new Set([...sure, ...open.map(({ formats }) => formats[0] ?? '')])];
  const settle = (formats: readonly string[], inLine: LineDate | undefined) => (mapping: ParseMapping) => {
    const other = found.fact || isDated ? undefined : inLine ? { ...inLine, formats: [] } : findNameDate(fileName);
    const meta = [...[mapping.meta ?? []].flat(), ...(other ? [other.finder] : [])];
    const withFinder = other ? { ...mapping, meta } : mapping;
    return describeDates(found, [...formats, ...(other?.formats ?? [])], withFinder);
  };
  // An ambiguous print date must not quarantine the file.
  const isUnusable = open.some(({ text }) => text === found.inLine?.text) && !found.inLine?.isOfRun;
  return {
    sure: settle(sure, isUnusable ? undefined : found.inLine),
    likely: settle(likely, found.inLine),
    doubts: distinctFormats(open).map(dateDoubt),
  };
}

/** A date that several formats fit, the most likely first. */
interface OpenDate {
  readonly text: string;
  readonly formats: readonly string[];
}

/** One date for each set of formats. */
function distinctFormats(open: readonly OpenDate[]): OpenDate[] {
  const keys = open.map(({ formats }) => formats.join());
  return open.filter((_, n) => keys.indexOf(keys[n] ?? '') === n);
}

const dateDoubt = ({ text, formats: [assumed, ...others] }: OpenDate): string =>
  `${text} is ambiguous. This mapping assumes ${assumed}; if that is wrong, write ${others.join(' or ')} under dates`;

/** `sure`: the only formats that fit all dates of their pools. */
function findDateFormats(pools: readonly (readonly string[])[]) {
  const isIso = (text: string) => readIso(text) !== undefined;
  const candidates = pools
    .filter((pool) => !pool.every(isIso))
    .map((pool) => ({ text: pool[0] ?? '', found: candidatesFor(pool) }))
    .filter(({ found }) => found.length > 0);
  const orders = new Set(
    candidates.flatMap(({ found }) => (found.length === 1 && found[0] ? [orderOf(found[0].format)] : [])),
  );
  const settled = candidates.map(({ text, found }) => {
    // An unambiguous date settles the order of the others, because a file writes all dates alike.
    const usual = found.filter(({ format }) => orders.has(orderOf(format)));
    const left = found.length > 1 && usual.length === 1 ? usual : found;
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
 * How unusual a format is; only a likelihood, for a person to confirm. Usual: the day first with dots or dashes, and
 * with slashes if numbers are zero-padded and times use 24 hours; otherwise the month first. A recent year; dates near
 * each other.
 */
function oddity({ format, iso, days }: Candidate): number {
  // Hardly anybody writes a two-digit year before the name of a month.
  if (/^yy\WMMM/.test(format)) return 1000;
  const [, first = '', sign = ''] = /^([yMd]+)([^\w\s])/.exec(format) ?? [];
  const isDayFirst = sign !== '/' || (first.length === 2 && !format.includes('a'));
  const age = new Date().getFullYear() - Number(iso.slice(0, 4));
  const months = days / 30;
  return (first === 'yy' || (first[0] === 'd') === isDayFirst ? 0 : 1) + (age < 0 ? 100 : age) + months;
}

/** A format that fits all dates of a pool, and the first date read with it. */
interface Candidate extends DateCandidate {
  /** The span from the first to the last date, if read with it. */
  readonly days: number;
}

function candidatesFor(pool: readonly string[]): Candidate[] {
  const all = pool.map((text) => dateCandidates(text));
  const [first = [], ...others] = all;
  const fitting = first.filter(({ format }) =>
    others.every((forms) => forms.some((form) => unpadded(form.format) === unpadded(format))),
  );
  // Two digits everywhere show padding only if one of them is a zero; otherwise it may be December.
  const isPadded =
    pool.some((text) => /(?:^|\D)0\d[/.-]/.test(text)) &&
    all.every((forms) => forms.some(({ format }) => fitting.some((fit) => fit.format === format)));
  return fitting.map(({ format, iso }) => ({
    format: isPadded ? format : unpadded(format),
    iso,
    days: daysBetween(all, unpadded(format)),
  }));
}

function daysBetween(all: readonly (readonly DateCandidate[])[], format: string): number {
  let [first, last] = [Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
  for (const forms of all) {
    const time = Date.parse(forms.find((form) => unpadded(form.format) === format)?.iso ?? '');
    [first, last] = [Math.min(first, time), Math.max(last, time)];
  }
  return (last - first) / 86_400_000;
}

/** `d` reads all that `dd` reads. */
const unpadded = (format: string): string =>
  format
    .replace(/(?<!d)d{1,2}(?!d)/, 'd')
    .replace(/(?<!M)MM(?!M)/, 'M')
    .replace(/H+/, 'H')
    .replace(/h+/, 'h');

/** `d/My`: the order of day, month and year, and the sign between them. */
const orderOf = (format: string): string =>
  /([dMy]+)([^\w\s])([dMy]+)\2([dMy]+)/
    .exec(format)
    ?.slice(1, 5)
    .map((part) => part[0])
    .join('') ?? format;

export const isDate = (text: string): boolean => readIso(text) !== undefined || dateCandidates(text).length > 0;
/** `30:25:37` is a duration. */
const isTime = (text: string): boolean => /^(?:[01]?\d|2[0-3]):\d\d(:\d\d([.,]\d+)?)?( ?[AP]M)?$/i.test(text);
const hasTime = (text: string): boolean => /\d:\d\d/.test(text);

/** Version and serial numbers can look like dates: `3.12.08`. */
const NUMBER_NAME = /version|serial|firmware|software|release|number|\bno\b|\bid\b/i;

export function findDates({ meta, tables }: Pick<FileRecord, 'meta' | 'tables'>): FoundDates {
  const facts = [...meta]
    .map(([name, { text }]) => ({ name, text: text.trim() }))
    .filter(({ name, text }) => hasTime(text) || !NUMBER_NAME.test(name));
  const fact = dateFact(facts);
  const pools: string[][] = facts.filter(({ text }) => isDate(text)).map(({ text }) => [text]);
  if (fact && fact.length > 1) pools.push([fact.map((name) => meta.get(name)?.text ?? '').join(' ')]);
  const columns = new Map<string, readonly [string, string]>();
  for (const table of tables) {
    const texts = table.columns.map((_, n) => textsOf(table, n));
    for (const [n, days] of texts.entries()) {
      if (days.length === 0 || !days.every(isDate)) continue;
      pools.push(days);
      const times = texts[n + 1] ?? [];
      const [day, time] = [table.columns[n]?.name, table.columns[n + 1]?.name];
      if (days.some(hasTime) || times.length < days.length || !times.every(isTime) || !day || !time) continue;
      pools.push(days.map((text, row) => `${text} ${times[row]}`));
      columns.set(table.name, [day, time]);
    }
  }
  return { pools, columns, ...(fact ? { fact } : compactFact(facts)) };
}

const MAX_ROWS = 2000;

const textsOf = ({ rows }: Table, column: number): string[] =>
  rows
    .slice(0, MAX_ROWS)
    .map((row) => row[column])
    .filter((value): value is Value => value !== undefined && typeof value.value !== 'number')
    .map(({ text }) => text.trim())
    .filter((text) => text !== '');

interface NamedText {
  readonly name: string;
  readonly text: string;
}

/** Only their names show that `20231120` and `163016` are not numbers. */
function compactFact(facts: readonly NamedText[]): Pick<FoundDates, 'fact' | 'format'> {
  const day = facts.find(({ name, text }) => /date/i.test(name) && /^(19|20)\d\d[01]\d[0-3]\d(\d{6})?$/.test(text));
  if (!day) return { fact: undefined };
  if (day.text.length === 14) return { fact: [day.name], format: 'yyyyMMddHHmmss' };
  const time = facts.find(({ name, text }) => /time/i.test(name) && /^[0-2]\d[0-5]\d[0-5]\d$/.test(text));
  return time ? { fact: [day.name, time.name], format: 'yyyyMMdd HHmmss' } : { fact: [day.name], format: 'yyyyMMdd' };
}

/** The fact that most likely is the date of the run, together with its time if that is another fact. */
function dateFact(facts: readonly NamedText[]): string[] | undefined {
  const [best] = facts
    .filter(({ text }) => isDate(text))
    .map((fact, n) => ({ ...fact, score: runDateScore(fact) - n / 100 }))
    .sort((a, b) => b.score - a.score);
  if (!best) return undefined;
  if (hasTime(best.text)) return [best.name];
  const times = facts.filter(({ name, text }) => isTime(text) && /time/i.test(name));
  const rest = best.name.replace(/date/i, '').toLowerCase();
  const at = facts.findIndex(({ name }) => name === best.name);
  const time =
    times.find(({ name }) => name.replace(/time/i, '').toLowerCase() === rest) ??
    [facts[at + 1], facts[at - 1]].find((near) => near && times.includes(near));
  return time ? [best.name, time.name] : [best.name];
}

const RUN_WORDS = /acqui|measur|collect|start|run|scan|test|creat|record|analys|sampl|begin|inject|read/i;
const OTHER_WORDS =
  /report|print|export|calib|expir|version|valid|saved|modif|end|stop|finish|complet|software|due|install|manufact|birth/i;

/** How likely a date is to be that of the run. */
function runDateScore({ name, text }: NamedText): number {
  // The last part of a path in a tree is the name; the whole path tells what the date is about.
  const last = name.startsWith('/') ? name.slice(name.lastIndexOf('/') + 1) : name;
  const isOther = OTHER_WORDS.test(name);
  return (
    (/^(date|datetime|date\/time|timestamp)$/i.test(last) && !isOther ? 4 : 0) +
    (/date|time/i.test(last) ? 2 : 0) +
    (RUN_WORDS.test(name) ? 2 : 0) -
    (isOther ? 3 : 0) +
    (hasTime(text) ? 1 : 0)
  );
}

function describeDates(
  { fact, format, columns }: FoundDates,
  formats: readonly string[],
  mapping: ParseMapping,
): ParseMapping {
  const withTime = (table: TableMapping, name: string) => {
    const pair = columns.get(name);
    // Rows of a tree have exactly the columns that are listed.
    if (!pair || table.rows !== undefined) return table;
    return { ...table, columns: { ...table.columns, [pair.join(' ')]: [...pair] } };
  };
  const isDateByName = format === undefined && fact?.length === 1 && /^date$/i.test(fact[0] ?? '');
  const from = fact?.length === 1 ? (fact[0] ?? '') : [...(fact ?? [])];
  const isIsoOnly = formats.length === 1 && formats[0] === 'iso';
  return {
    ...mapping,
    ...(formats.length > 0 && !isIsoOnly && { dates: { format: formats.length === 1 ? formats[0] : [...formats] } }),
    ...(fact && !isDateByName && { facts: { ...mapping.facts, date: format === undefined ? from : { from, format } } }),
    ...mapTables(mapping, withTime),
  } as ParseMapping;
}

/** A date within a line that is not a fact: `Performed 22.06.2020 10:31:55`. */
interface LineDate {
  readonly finder: FinderMapping;
  readonly text: string;
  /** False if the words before it suggest the date of a print or an export. */
  readonly isOfRun: boolean;
}

const CLOCK = String.raw`\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M\b)?`;
const DAYS = [
  String.raw`\d{4}([-/.])\d{1,2}\1\d{1,2}`,
  String.raw`\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d)`,
  String.raw`\d{1,2}([-/. ])[A-Z]{3,9}\3\d{2,4}`,
  String.raw`[A-Z]{3,9} +\d{1,2},? \d{4}`,
];
const DAY = `(?:${DAYS.join('|')})`;
const DAY_AND_TIME = new RegExp(
  String.raw`(?<![\w./\\-]|\d:)(?:${DAY}(?:,| at| on|T)? *${CLOCK}|[A-Z]{3,9} +\d{1,2} ${CLOCK} \d{4})(?![\w./\\:-])`,
  'i',
);
const TIME_AND_DAY = new RegExp(String.raw`(?<![\w./\\-]|\d:)${CLOCK} +(?:on )?${DAY}(?![\w/\\:-])`, 'i');
const STAMP = /(?<!\d)20\d{6}[_-]\d{6}(?!\d)/;
/** Without a time it could be a version or part of a path, so the words before it must suggest a date. */
const DAY_ALONE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${DAY}(?![\w/\\:-])`, 'i');

const MAX_LINES = 2000;
const MAX_LINE_LENGTH = 300;
/** Each is verified against all lines. */
const MAX_HITS = 20;

/** The date that most likely is that of the run, in lines outside tables. */
export function findLineDate(lines: readonly Line[]): LineDate | undefined {
  const searched = lines.filter((line) => !isBlank(line) && line.text.length <= MAX_LINE_LENGTH).slice(0, MAX_LINES);
  const hits = searched.flatMap(dateIn).sort((a, b) => b.score - a.score);
  for (const { before, text, score } of hits.slice(0, MAX_HITS)) {
    const pattern = patternFor(before, text);
    const first = searched.map((line) => new RegExp(pattern).exec(line.text)).find((found) => found !== null);
    if (first?.groups?.['date'] === text) return { finder: { match: `/${pattern}/` }, text, isOfRun: score > 0 };
  }
  return undefined;
}

/** The most likely date in a line, and the text before it. */
function dateIn({ text }: Line): { before: string; text: string; score: number }[] {
  for (const pattern of [DAY_AND_TIME, TIME_AND_DAY, STAMP, DAY_ALONE]) {
    const found = pattern.exec(text);
    if (!found || dateCandidates(found[0]).length === 0) continue;
    const before = text.slice(0, found.index);
    const score = runDateScore({ name: before, text: found[0] });
    if (pattern === DAY_ALONE && (NUMBER_NAME.test(before) || score <= 0)) return [];
    return [{ before, text: found[0], score }];
  }
  return [];
}

/** The words directly before the date, and the date with any digits and months. */
function patternFor(before: string, text: string): string {
  const words = /(?:\S+\s+){0,3}\S*\s*$/.exec(before.slice(-40))?.[0] ?? '';
  const start = words.length === before.length ? '^' : '';
  return `${start}${generalise(words)}(?<date>${generalise(text)})`;
}

const generalise = (text: string): string =>
  text
    .split(/(\d+|\s+)/)
    .map((part) => (/^\d/.test(part) ? '\\d+' : /^\s/.test(part) ? '\\s+' : generaliseWord(part)))
    .join('');

const generaliseWord = (word: string): string =>
  MONTH.test(word) || /^[ap]m$/i.test(word) ? word.replace(/[A-Za-z]+/, '[A-Za-z]+') : escapeRegex(word);

const MONTH = /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*$/i;

const NAME_DATES: readonly (readonly [pattern: RegExp, ...formats: string[]])[] = [
  [/20\d{6}[_-]\d{6}/, 'yyyyMMdd_HHmmss', 'yyyyMMdd-HHmmss'],
  [/20\d\d-\d\d-\d\d[ _T]\d\d-\d\d-\d\d/, 'yyyy-MM-dd HH-mm-ss', 'yyyy-MM-dd_HH-mm-ss', "yyyy-MM-dd'T'HH-mm-ss"],
  [/\d{1,2}_\d{1,2}_20\d\d_\d{1,2}_\d\d_\d\d_[AP]M/, 'M_d_yyyy_h_mm_ss_a'],
  [/\d{1,2}_\d{1,2}_20\d\d \d{1,2}_\d\d_\d\d [AP]M/, 'M_d_yyyy h_mm_ss a'],
  [/20\d\d-\d\d-\d\d/, 'yyyy-MM-dd'],
  [/20\d\d_\d\d_\d\d/, 'yyyy_MM_dd'],
  [/(?<!\d)20\d\d[01]\d[0-3]\d(?!\d)/, 'yyyyMMdd'],
];

/** Instruments that write no date into a file often write one into its name. */
function findNameDate(name: string): { finder: FinderMapping; formats: readonly string[] } | undefined {
  for (const [pattern, ...formats] of NAME_DATES) {
    if (pattern.test(name)) return { finder: { in: 'name', match: `/(?<date>${pattern.source})/` }, formats };
  }
  return undefined;
}
