import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord, Table, Value } from '../model.js';
import { isBlank, type Line } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { type DateCandidate, dateCandidates } from '../parse/values/date-candidates.js';
import { escaped, LOOK_ROWS } from './measured.js';
import type { FinderMapping } from './pairs.js';

/** What is known of a file's dates, to be put into a mapping. */
interface SettledDates {
  /** With what the file itself proves. */
  sure(mapping: ParseMapping): ParseMapping;
  /** With the likelier order of days and months too, where the file leaves it open. */
  likely(mapping: ParseMapping): ParseMapping;
  /** What it leaves open, in words. */
  readonly doubts: readonly string[];
}

/** `isDated`: the mapping says already which date is that of the run. */
export function settleDates(found: FoundDates, fileName: string, isDated = false): SettledDates {
  const { sure, open } = findDateFormats(found.pools);
  const likely = [...new Set([...sure, ...open.map(({ formats }) => formats[0] ?? '')])];
  const isDoubtful = open.some(({ text }) => text === found.inLine?.text);
  const settle = (formats: readonly string[], inLine: LineDate | undefined) => (mapping: ParseMapping) => {
    const elsewhere =
      found.fact || isDated ? undefined : inLine ? { ...inLine, formats: [] } : findNameDate(fileName);
    const named = elsewhere
      ? { ...mapping, meta: [...[mapping.meta ?? []].flat(), elsewhere.finder] }
      : mapping;
    return describeDates(found, [...formats, ...(elsewhere?.formats ?? [])], named);
  };
  return {
    // For the sake of when it was printed, no file is set aside.
    sure: settle(sure, isDoubtful && !found.inLine?.isOfRun ? undefined : found.inLine),
    likely: settle(likely, found.inLine),
    doubts: open.map(({ text, formats }) => `${text} can be ${formats.join(' or ')}; the first is assumed`),
  };
}

/** The patterns of a file's dates. */
interface FoundFormats {
  /** Under these all dates can be read, and no other way. */
  readonly sure: readonly string[];
  /** Dates that two orders fit, with the likelier one first: to be asked about. */
  readonly open: readonly { readonly text: string; readonly formats: readonly string[] }[];
}

/** Each pool is the dates that are written alike: a column, or a single fact. */
function findDateFormats(pools: readonly (readonly string[])[]): FoundFormats {
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
interface Candidate extends DateCandidate {
  /** How many days lie between them then. */
  readonly days: number;
}

/** The patterns that fit every date of a pool, each with what the first date would be. */
function candidatesFor(pool: readonly string[]): Candidate[] {
  const all = pool.map((text) => dateCandidates(text));
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

function daysBetween(all: readonly (readonly DateCandidate[])[], format: string): number {
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

/** Where a file says when something was: the texts of its dates, and which of them are the run's. */
export interface FoundDates {
  /** Texts that are written alike. */
  readonly pools: readonly (readonly string[])[];
  /** The facts that make up the date of the run. */
  readonly fact: readonly string[] | undefined;
  /** How they are written, where nothing but their names tells that they are a date at all. */
  readonly format?: string | undefined;
  /** The date of the run, where it is no fact yet. */
  readonly inLine?: LineDate | undefined;
  /** By table: columns of days and times that belong together. */
  readonly columns: ReadonlyMap<string, readonly [day: string, time: string]>;
}

export const isDate = (text: string): boolean =>
  readIso(text) !== undefined || dateCandidates(text).length > 0;
/** `30:25:37` is how long something took. */
const isTime = (text: string): boolean => /^(?:[01]?\d|2[0-3]):\d\d(:\d\d([.,]\d+)?)?( ?[AP]M)?$/i.test(text);
const hasTime = (text: string): boolean => /\d:\d\d/.test(text);

export function findDates({ meta, tables }: FileRecord): FoundDates {
  const facts = [...meta]
    .map(([name, { text }]) => ({ name, text: text.trim() }))
    // `3.12.08` is a day as well.
    .filter(({ name, text }) => hasTime(text) || !NUMBERED.test(name));
  const fact = dateFact(facts);
  const joined =
    fact && fact.length > 1 ? fact.map((name) => meta.get(name)?.text ?? '').join(' ') : undefined;
  const columns = new Map<string, readonly [string, string]>();
  const pools: string[][] = facts.filter(({ text }) => isDate(text)).map(({ text }) => [text]);
  if (joined !== undefined) pools.push([joined]);
  for (const table of tables) {
    const texts = table.columns.map((_, n) => textsOf(table, n));
    for (const [n, own] of texts.entries()) {
      if (own.length === 0 || !own.every(isDate)) continue;
      pools.push(own);
      const times = texts[n + 1] ?? [];
      const [day, time] = [table.columns[n]?.name, table.columns[n + 1]?.name];
      if (own.some(hasTime) || times.length < own.length || !times.every(isTime) || !day || !time) continue;
      pools.push(own.map((text, row) => `${text} ${times[row]}`));
      columns.set(table.name, [day, time]);
    }
  }
  return { pools, columns, ...(fact ? { fact } : compactFact(facts)) };
}

/** `20231120` and `163016` are numbers, but for what they are called. */
function compactFact(facts: readonly NamedText[]): Pick<FoundDates, 'fact' | 'format'> {
  const day = facts.find(
    ({ name, text }) => /date/i.test(name) && /^(19|20)\d\d[01]\d[0-3]\d(\d{6})?$/.test(text),
  );
  if (!day) return { fact: undefined };
  if (day.text.length === 14) return { fact: [day.name], format: 'yyyyMMddHHmmss' };
  const time = facts.find(({ name, text }) => /time/i.test(name) && /^[0-2]\d[0-5]\d[0-5]\d$/.test(text));
  return time
    ? { fact: [day.name, time.name], format: 'yyyyMMdd HHmmss' }
    : { fact: [day.name], format: 'yyyyMMdd' };
}

const textsOf = ({ rows }: Table, column: number): string[] =>
  rows
    .slice(0, LOOK_ROWS)
    .map((row) => row[column])
    .filter((value): value is Value => value !== undefined && typeof value.value !== 'number')
    .map(({ text }) => text.trim())
    .filter((text) => text !== '');

/** `Version 3.12.08` holds no date. */
const isNumbered = (name: string): boolean => NUMBERED.test(name);

const NUMBERED = /version|serial|firmware|software|release|number|\bno\b|\bid\b/i;

interface NamedText {
  readonly name: string;
  readonly text: string;
}

const OURS = /acqui|measur|collect|start|run|scan|test|creat|record|analys|sampl|begin|inject|read/i;
const OTHERS =
  /report|print|export|calib|expir|version|valid|saved|modif|end|stop|finish|complet|software|due|install|manufact|birth/i;

/** The fact that most likely is the date of the run, with the time where that is a fact of its own. */
function dateFact(facts: readonly NamedText[]): string[] | undefined {
  const dates = facts
    .filter(({ text }) => isDate(text))
    .map((fact, n) => ({ ...fact, weight: meaningOf(fact) - n / 100 }))
    .sort((a, b) => b.weight - a.weight);
  const [best] = dates;
  if (!best) return undefined;
  if (hasTime(best.text)) return [best.name];
  const at = facts.findIndex(({ name }) => name === best.name);
  const wanted = best.name.replace(/date/i, '').toLowerCase();
  const time =
    facts.find(
      ({ name, text }) =>
        isTime(text) && /time/i.test(name) && name.replace(/time/i, '').toLowerCase() === wanted,
    ) ?? [facts[at + 1], facts[at - 1]].find((near) => near && isTime(near.text) && /time/i.test(near.name));
  return time ? [best.name, time.name] : [best.name];
}

/** How much speaks for a date being that of the run. */
const meaningOf = ({ name, text }: NamedText): number =>
  (/^(date|datetime|date\/time|timestamp)$/i.test(lastOf(name)) && !OTHERS.test(name) ? 4 : 0) +
  (/date|time/i.test(lastOf(name)) ? 2 : 0) +
  (OURS.test(name) ? 2 : 0) -
  (OTHERS.test(name) ? 3 : 0) +
  (hasTime(text) ? 1 : 0);

/** Of a path in a tree, what stands at its end; all of it tells what the date is about. */
const lastOf = (name: string): string =>
  name.startsWith('/') ? name.slice(name.lastIndexOf('/') + 1) : name;

/** The words of a mapping for all that. */
function describeDates(
  { fact, format, columns }: FoundDates,
  formats: readonly string[],
  mapping: ParseMapping,
): ParseMapping {
  const tables = mapping.table ? { readings: mapping.table } : (mapping.tables ?? {});
  const timed = Object.fromEntries(
    Object.entries(tables).map(([name, table]) => {
      const pair = columns.get(name);
      // Rows of a tree have the columns that are listed, and no others.
      return [
        name,
        pair && table.rows === undefined
          ? { ...table, columns: { ...table.columns, [pair.join(' ')]: [...pair] } }
          : table,
      ];
    }),
  );
  const isNamed = format === undefined && fact?.length === 1 && /^date$/i.test(fact[0] ?? '');
  const from = fact?.length === 1 ? (fact[0] ?? '') : [...(fact ?? [])];
  return {
    ...mapping,
    ...(formats.length > 0 &&
      !(formats.length === 1 && formats[0] === 'iso') && {
        dates: { format: formats.length === 1 ? formats[0] : [...formats] },
      }),
    ...(fact &&
      !isNamed && { facts: { ...mapping.facts, date: format === undefined ? from : { from, format } } }),
    ...(mapping.table && { table: timed['readings'] }),
    ...(mapping.tables && { tables: timed }),
  } as ParseMapping;
}

/** A date within a line that is no fact by itself: `Performed 22.06.2020 10:31:55`. */
interface LineDate {
  readonly finder: FinderMapping;
  readonly text: string;
  /** False where the words before it rather say when something was printed or saved. */
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
/** A day with a time is one wherever it stands; a day alone could be a version or a part of a path. */
const MOMENT = new RegExp(
  String.raw`(?<![\w./\\-]|\d:)(?:${DAY}(?:,| at| on|T)? *${CLOCK}|[A-Z]{3,9} +\d{1,2} ${CLOCK} \d{4})(?![\w./\\:-])`,
  'i',
);
const REVERSE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${CLOCK} +(?:on )?${DAY}(?![\w/\\:-])`, 'i');
const ALONE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${DAY}(?![\w/\\:-])`, 'i');
const STAMP = /(?<!\d)20\d{6}[_-]\d{6}(?!\d)/;

const MOST_LINES = 2000;
const LONGEST = 300;
/** Each of them is looked for in all lines. */
const MOST_HITS = 20;

/** The date that most likely is that of the run, among lines that are in no table. */
export function findLineDate(lines: readonly Line[]): LineDate | undefined {
  const told = lines.filter((line) => !isBlank(line) && line.text.length <= LONGEST).slice(0, MOST_LINES);
  const hits = told.flatMap(dateIn).sort((a, b) => b.weight - a.weight);
  for (const { before, text, weight } of hits.slice(0, MOST_HITS)) {
    const pattern = patternFor(before, text);
    const first = told.map((line) => new RegExp(pattern).exec(line.text)).find((found) => found !== null);
    if (first?.groups?.['date'] === text)
      return { finder: { match: `/${pattern}/` }, text, isOfRun: weight > 0 };
  }
  return undefined;
}

interface Hit {
  /** What the line says before the date. */
  readonly before: string;
  readonly text: string;
  readonly weight: number;
}

function dateIn({ text }: Line): Hit[] {
  for (const pattern of [MOMENT, REVERSE, STAMP, ALONE]) {
    const found = pattern.exec(text);
    if (!found || dateCandidates(found[0]).length === 0) continue;
    const before = text.slice(0, found.index);
    const weight = meaningOf({ name: before, text: found[0] });
    if (pattern === ALONE && (isNumbered(before) || weight <= 0)) return [];
    return [{ before, text: found[0], weight }];
  }
  return [];
}

/** The words right before the date, and the date with its digits and months left open. */
function patternFor(before: string, text: string): string {
  const words = /(?:\S+\s+){0,3}\S*\s*$/.exec(before.slice(-40))?.[0] ?? '';
  const start = words.length === before.length ? '^' : '';
  return `${start}${open(words)}(?<date>${open(text)})`;
}

const open = (text: string): string =>
  text
    .split(/(\d+|\s+)/)
    .map((part) => (/^\d/.test(part) ? '\\d+' : /^\s/.test(part) ? '\\s+' : lettersOpen(part)))
    .join('');

/** Names of months and AM change; the words before a date do not. */
const lettersOpen = (part: string): string =>
  MONTH.test(part) || /^[ap]m$/i.test(part) ? part.replace(/[A-Za-z]+/, '[A-Za-z]+') : escaped(part);

const MONTH = /^(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*$/i;

/** A date in the name of a file: the finder for it, and how it is written. */
interface NameDate {
  readonly finder: FinderMapping;
  readonly formats: readonly string[];
}

const FORMS: readonly (readonly [pattern: string, ...formats: string[]])[] = [
  ['20\\d{6}[_-]\\d{6}', 'yyyyMMdd_HHmmss', 'yyyyMMdd-HHmmss'],
  [
    '20\\d\\d-\\d\\d-\\d\\d[ _T]\\d\\d-\\d\\d-\\d\\d',
    'yyyy-MM-dd HH-mm-ss',
    'yyyy-MM-dd_HH-mm-ss',
    "yyyy-MM-dd'T'HH-mm-ss",
  ],
  ['\\d{1,2}_\\d{1,2}_20\\d\\d_\\d{1,2}_\\d\\d_\\d\\d_[AP]M', 'M_d_yyyy_h_mm_ss_a'],
  ['\\d{1,2}_\\d{1,2}_20\\d\\d \\d{1,2}_\\d\\d_\\d\\d [AP]M', 'M_d_yyyy h_mm_ss a'],
  ['20\\d\\d-\\d\\d-\\d\\d', 'yyyy-MM-dd'],
  ['20\\d\\d_\\d\\d_\\d\\d', 'yyyy_MM_dd'],
  ['(?<!\\d)20\\d\\d[01]\\d[0-3]\\d(?!\\d)', 'yyyyMMdd'],
];

/** Instruments that write no date into a file often write one into its name. */
function findNameDate(name: string): NameDate | undefined {
  for (const [pattern, ...formats] of FORMS) {
    if (new RegExp(pattern).test(name))
      return { finder: { in: 'name', match: `/(?<date>${pattern})/` }, formats };
  }
  return undefined;
}
