import type { ParseMapping } from '../config/vocabulary.js';
import type { FileRecord, Table } from '../model.js';
import { isBlank, type Line } from '../parse/lines.js';
import type { Source } from '../parse/source.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { escapeRegex, isUnsetDay } from '../text.js';
import { type DatePool, daysIn, findDateFormats, type OpenDate, orderOf } from './date-order.js';
import { DATE_NAME, type DatePlaces, type DateRole, roleOf, roleOfPath } from './date-roles.js';
import { mapTables, type TableMapping } from './describe.js';
import type { FinderMapping } from './facts.js';

/** Which values of a file are dates, how they are written, and which of them is the date of the run. */

export interface FoundDates {
  readonly pools: readonly DatePool[];
  /** Days that are written in an unambiguous form somewhere in the file. */
  readonly days: ReadonlySet<string>;
  /** Other texts of the file, which may contain dates among words. */
  readonly texts: readonly string[];
  /** The facts that make up the date of the run. */
  readonly fact: readonly string[] | undefined;
  /** The format of that fact, if only its name shows that it is a date. */
  readonly format?: string | undefined;
  /** The date of the run, if it is part of a line. */
  readonly inLine?: LineDate | undefined;
  /** The column whose first date is that of the run, if no fact is. */
  readonly firstRow?: { readonly table: string; readonly column: string; readonly joined?: string } | undefined;
  /** By table: columns of day and time that belong together. */
  readonly columns: ReadonlyMap<string, readonly [day: string, time: string]>;
  /** A date that is not that of the run, or may not be: `Exported: 2026-02-01`. */
  readonly other?: string | undefined;
}

/**
 * Adds the dates to a mapping, with what the file itself proves. A date without proof gets no format, so that the run
 * is quarantined, and a doubt with the line to write. `isDated`: the mapping already defines the date of the run.
 */
export function settleDates(found: FoundDates, source: Pick<Source, 'name' | 'path' | 'modifiedMs'>, isDated = false) {
  const { sure, clashing, open } = findDateFormats(found.pools, { days: found.days, texts: found.texts, source });
  const isOpen = (text: string | undefined) => open.some((date) => date.text === text && !date.isSameDay);
  // An ambiguous print date must not quarantine the file.
  const isUnusable = isOpen(found.inLine?.text) && !found.inLine?.isOfRun;
  const inLine = isUnusable ? undefined : found.inLine;
  // Another date that is ambiguous stays a text, which quarantines nothing.
  const isUsed = ({ name, text }: OpenDate) =>
    found.fact?.includes(name) || found.firstRow?.column === name || text === inLine?.text;
  const hasDate = found.fact !== undefined || found.firstRow !== undefined || isDated;
  const elsewhere = hasDate ? undefined : inLine ? { ...inLine, formats: [] } : findNameDate(source.name);
  const formats = [...sure, ...(elsewhere?.formats ?? [])];
  return {
    undated: hasDate || elsewhere ? undefined : found.other,
    settle(mapping: ParseMapping): ParseMapping {
      const meta = [...[mapping.meta ?? []].flat(), ...(elsewhere ? [elsewhere.finder] : [])];
      return describeDates(found, formats, elsewhere ? { ...mapping, meta } : mapping);
    },
    firstRow: isDated ? undefined : found.firstRow,
    doubts: [
      ...groupByOrder(open.filter(isUsed)).map((dates) => dateDoubt(dates, formats)),
      ...(clashing.size > 0
        ? [
            `the file writes dates in several orders: ${[...clashing].join(', ')}. Give each column its own format: columns: { NAME: { from: NAME, format: … } }`,
          ]
        : []),
    ],
  };
}

/** A date with a time and one without are one question if they leave the same orders open. */
function groupByOrder(open: readonly OpenDate[]): OpenDate[][] {
  const groups = new Map<string, OpenDate[]>();
  for (const date of open) {
    const key = date.formats.map(orderOf).join();
    groups.set(key, [...(groups.get(key) ?? []), date]);
  }
  return [...groups.values()];
}

/** `dates` leave the same orders open, so that one answer is for all of them. */
function dateDoubt(dates: readonly OpenDate[], sure: readonly string[]): string {
  const [first = NO_DATE] = dates.toSorted(
    (a, b) => Number(a.isSameDay) - Number(b.isSameDay) || b.text.length - a.text.length,
  );
  const lines = first.formats.map((_, n) => {
    const all = [...new Set([...sure, ...dates.map(({ formats }) => formats[n] ?? '')])];
    return `dates: { format: ${JSON.stringify(all.length > 1 ? all : all[0])} }`;
  });
  const problem = first.isSameDay
    ? `${first.text} does not show the order of day and month, so runs with ambiguous dates will be quarantined`
    : `${first.text} is ambiguous, so runs with such dates are quarantined`;
  return `${problem}. Write one of these under parse: ${lines.join(' or ')}`;
}

const NO_DATE: OpenDate = { name: '', text: '', formats: [], isSameDay: false };

export const isDate = (text: string): boolean => readIso(text) !== undefined || dateCandidates(text).length > 0;
/** `30:25:37` is a duration. */
const isTime = (text: string): boolean => /^(?:[01]?\d|2[0-3]):\d\d(:\d\d([.,]\d+)?)?( ?[AP]M)?$/i.test(text);
const hasTime = (text: string): boolean => /\d:\d\d/.test(text);

/** Version and serial numbers can look like dates: `3.12.08`. */
const NUMBER_NAME = /version|serial|firmware|software|release|number|\bno\b|\bid\b/i;

/** `texts`: the rest of the file, which may show the order of day and month. `places`: of a file of lines. */
export function findDates(
  { meta, tables }: Pick<FileRecord, 'meta' | 'tables'>,
  texts: readonly string[] = [],
  places?: DatePlaces,
): FoundDates {
  const facts = [...meta]
    .map(([name, { text }]): NamedText => ({ name, text: text.trim(), role: roleOfFact(name, text.trim(), places) }))
    .filter(({ name, text }) => hasTime(text) || !NUMBER_NAME.test(name));
  const pools: DatePool[] = facts.filter(({ text }) => isDate(text)).map(({ name, text }) => ({ name, texts: [text] }));
  const columns = new Map<string, readonly [string, string]>();
  const rows: (NamedText & { table: string })[] = [];
  for (const table of tables) {
    for (const [n, { name: day }] of table.columns.entries()) {
      const days = textsOf(table, n, isDate);
      if (days.length === 0 || (NUMBER_NAME.test(day) && !days.every(hasTime))) continue;
      pools.push({ name: day, texts: days });
      const time = table.columns[n + 1]?.name ?? '';
      const times = textsOf(table, n + 1, isTime);
      const isPair = !days.some(hasTime) && times.length >= days.length;
      if (isPair && day !== '' && time !== '') {
        pools.push({ name: day, texts: days.map((text, row) => `${text} ${times[row]}`) });
        columns.set(table.name, [day, time]);
      }
      const hasRow = table.rows[0]?.[n]?.text.trim() === days[0];
      if (hasRow) rows.push({ table: table.name, name: day, text: days[0] ?? '', role: roleOf(day) });
    }
  }
  const compact = compactFact(facts);
  const fact = dateFact(facts) ?? compact.fact;
  const texted = [...facts.map(({ text }) => text), ...texts];
  const found = { pools, columns, days: new Set(texted.flatMap(daysIn)), texts };
  const row = firstRowDate(rows, tables);
  const pair = columns.get(row?.table ?? '');
  // Rows of a tree keep day and time apart.
  const firstRow = row && { ...row, ...(pair?.[0] === row.column && { joined: pair.join(' ') }) };
  // Rows have the time of the measurement; a fact may have that of the export, unless its name tells otherwise.
  const isOfRun = facts.some(({ name, role }) => role === 'run' && fact?.includes(name));
  if (firstRow && !isOfRun) return { ...found, fact: undefined, firstRow };
  if (fact && fact.length > 1 && fact !== compact.fact)
    pools.push({ name: fact[0] ?? '', texts: [fact.map((name) => meta.get(name)?.text ?? '').join(' ')] });
  const other = fact ? undefined : facts.find(({ text }) => isDate(text) && !isUnsetText(text));
  return {
    ...found,
    fact,
    ...(fact === compact.fact && { format: compact.format }),
    ...(other && { other: `${other.name}: ${other.text}` }),
  };
}

/** By its name, and by what is around it in the file. */
function roleOfFact(name: string, text: string, places: DatePlaces | undefined): DateRole {
  if (name.startsWith('/')) return roleOfPath(name);
  if (!places || !isDate(text)) return roleOf(name);
  const [, line] = /^[A-Z]{1,2}(\d+)$/.exec(name) ?? [];
  // A fact without a name: the words beside it are its name.
  if (line !== undefined) return places.roleBeside(Number(line), text);
  const [, base = name, time = '1'] = /^(.*?) \((\d+)\)$/.exec(name) ?? [];
  const found = places.linesWith(base, text);
  const n = found[Math.min(Number(time), found.length) - 1];
  const role = n === undefined ? roleOf(base) : places.roleAt(n, base, text);
  // Below the readings, a date without a purpose can be that of a print, so one above them is preferred.
  return role === 'plain' && n !== undefined && places.isBelow(n) ? 'end' : role;
}

/** A column that tells when each row was measured. */
function firstRowDate(
  rows: readonly (NamedText & { table: string })[],
  tables: readonly Table[],
): FoundDates['firstRow'] {
  const isFirst = ({ name, table }: { name: string; table: string }) =>
    tables.find((each) => each.name === table)?.columns[0]?.name === name;
  const [best] = rows
    .filter(
      (row) =>
        row.role !== 'other' &&
        row.role !== 'end' &&
        // Beside other tables, the table of an audit trail or of calibrations is not the readings.
        (tables.length === 1 || roleOf(row.table) !== 'other') &&
        !isUnsetText(row.text) &&
        (row.role !== 'unknown' || isFirst(row)),
    )
    .toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  return best && { table: best.table, column: best.name };
}

const MAX_ROWS = 2000;

/** The texts of a column; none if one of them does not pass. */
function textsOf({ rows }: Table, column: number, passes: (text: string) => boolean): string[] {
  const texts: string[] = [];
  for (let n = 0; n < rows.length && n < MAX_ROWS; n++) {
    const cell = rows[n]?.[column];
    const text = typeof cell?.value === 'number' ? '' : (cell?.text.trim() ?? '');
    if (text === '') continue;
    if (!passes(text)) return [];
    texts.push(text);
  }
  return texts;
}

interface NamedText {
  readonly name: string;
  readonly text: string;
  readonly role: DateRole;
}

/** How likely a date is to be that of the run; 0: not at all. */
const RANK: Readonly<Record<DateRole, number>> = { run: 4, plain: 3, end: 2, unknown: 1, other: 0 };

/** Only their names show that `20231120`, `163016`, `1700497816` and `45250.6` are not numbers. */
function compactFact(facts: readonly NamedText[]): { fact?: readonly string[]; format?: string } {
  const isOfRun = ({ name, role }: NamedText) =>
    DATE_NAME.test(name) && role !== 'other' && !/elapsed|duration|up ?time/i.test(name);
  const day = facts.find(
    (each) => isOfRun(each) && DAY_NAME.test(each.name) && /^(19|20)\d\d[01]\d[0-3]\d(\d{6})?$/.test(each.text),
  );
  if (day?.text.length === 14) return { fact: [day.name], format: 'yyyyMMddHHmmss' };
  if (day) {
    const time = facts.find(({ name, text }) => TIME_NAME.test(name) && /^[0-2]\d[0-5]\d[0-5]\d$/.test(text));
    return time ? { fact: [day.name, time.name], format: 'yyyyMMdd HHmmss' } : { fact: [day.name], format: 'yyyyMMdd' };
  }
  // 2001 to 2033 in seconds or milliseconds.
  const epoch = facts.find((each) => isOfRun(each) && /^1\d{9}(?:\.\d+)?$|^1\d{12}$/.test(each.text));
  // 2000 to 2063 in days, as spreadsheets count them.
  const serial = facts.find(
    (each) => isOfRun(each) && DAY_NAME.test(each.name) && /^(?:3[7-9]|4\d|5\d)\d{3}(?:\.\d+)?$/.test(each.text),
  );
  if (!epoch && serial) return { fact: [serial.name], format: 'excel' };
  return epoch ? { fact: [epoch.name], format: /^\d{13}$/.test(epoch.text) ? 'epochMs' : 'epoch' } : {};
}

const isUnsetText = (text: string): boolean => isUnsetDay(readIso(text) ?? dateCandidates(text)[0]?.iso ?? '');

/**
 * The fact that most likely is the date of the run, together with its time if that is another fact. None if two dates
 * of the same name are different days.
 */
function dateFact(facts: readonly NamedText[]): string[] | undefined {
  const dated = facts.filter(({ text, role }) => RANK[role] > 0 && isDate(text) && !isUnsetText(text));
  const [best] = dated.toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  // A name that says nothing about dates: a batch can be called 2026-01-05.
  if (!best || (best.role === 'unknown' && !hasTime(best.text))) return undefined;
  const dayOf = (text: string) => (readIso(text) ?? dateCandidates(text)[0]?.iso ?? '').slice(0, 10);
  const isRival = ({ name, text, role }: NamedText) =>
    role === best.role && name.startsWith(`${best.name} (`) && dayOf(text) !== dayOf(best.text);
  if (dated.some(isRival)) return undefined;
  if (hasTime(best.text)) return [best.name];
  const times = facts.filter(({ name, text }) => isTime(text) && TIME_NAME.test(name));
  const rest = best.name.replace(DAY_NAME, '').toLowerCase();
  const at = facts.findIndex(({ name }) => name === best.name);
  const time =
    times.find(({ name }) => name.replace(TIME_NAME, '').toLowerCase() === rest) ??
    [facts[at + 1], facts[at - 1]].find((near) => near && times.includes(near));
  return time ? [best.name, time.name] : [best.name];
}

const TIME_NAME = /time|zeit|heure|hora|\bora\b|tijd|\btid\b|时间|時刻|時間/i;
const DAY_NAME = /date|datum|fecha|\bdata\b|日付|日期/i;
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
  /** False if the words around it say nothing about the run. */
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

/**
 * The date that most likely is that of the run, in lines outside tables. `other`: a date that is not. `facts`: their
 * texts, of which none is the date.
 */
export function findLineDate(
  lines: readonly Line[],
  places: DatePlaces,
  facts: ReadonlySet<string>,
): { readonly inLine?: LineDate; readonly other?: string | undefined } {
  const searched = lines.filter((line) => !isBlank(line) && line.text.length <= MAX_LINE_LENGTH).slice(0, MAX_LINES);
  const hits = searched.flatMap((line) => dateIn(line, places)).filter(({ text }) => !facts.has(text));
  const likely = hits.filter(({ role }) => RANK[role] > 0).toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  for (const { before, text, role } of likely.slice(0, MAX_HITS)) {
    const pattern = patternFor(before, text);
    const first = searched.map((line) => new RegExp(pattern).exec(line.text)).find((found) => found !== null);
    if (first?.groups?.['date'] !== text) continue;
    return { inLine: { finder: { match: `/${pattern}/` }, text, isOfRun: role === 'run' } };
  }
  const [other] = hits.filter(({ role }) => role === 'other');
  return { other: other && `${other.before.trim()} ${other.text}`.trim() };
}

/** The first date in a line, and the text before it. */
function dateIn(
  { number, text }: Line,
  places: DatePlaces,
): { readonly before: string; readonly text: string; readonly role: DateRole }[] {
  for (const pattern of [DAY_AND_TIME, TIME_AND_DAY, STAMP, DAY_ALONE]) {
    const found = pattern.exec(text);
    if (!found || dateCandidates(found[0]).length === 0 || isUnsetText(found[0])) continue;
    const before = text.slice(0, found.index);
    const role = places.roleBeside(number, found[0]);
    const isVague = role === 'unknown' || !/\p{L}/u.test(before);
    if (pattern === DAY_ALONE && (NUMBER_NAME.test(before) || isVague)) return [];
    return [{ before, text: found[0], role }];
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
