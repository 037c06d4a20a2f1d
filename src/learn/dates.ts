import type { ParseMapping } from '../config/vocabulary.js';
import type { Column, FileRecord, Table } from '../model.js';
import type { Source } from '../parse/source.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates } from '../parse/values/date-candidates.js';
import { type DatePool, daysIn, findDateFormats, type OpenDate, orderOf } from './date-order.js';
import {
  DATE_NAME,
  type DatePlaces,
  type DateRole,
  DONE,
  isUnsetText,
  NUMBER_NAME,
  RANK,
  roleOf,
  roleOfPath,
} from './date-roles.js';
import { mapTables, type TableMapping } from './describe.js';
import { kindOf } from './kinds.js';
import { type Days, findNameDate, type LineDate, type OtherDate } from './line-dates.js';

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
  readonly firstRow?: FirstRow | undefined;
  /** The first and the last day of the rows. */
  readonly rowDays?: Days | undefined;
  /** By table: columns of day and time that belong together. */
  readonly columns: ReadonlyMap<string, JoinedColumns>;
  /** A date that is not that of the run, or may not be: `Exported: 2026-02-01`. */
  readonly other?: OtherDate | undefined;
  /** Dates with times in the rows, in a form that nothing reads: the date in the file's name may be that of a copy. */
  readonly unread?: OtherDate | undefined;
}

interface FirstRow {
  readonly table: string;
  readonly column: string;
  /** The column that has the time, too. */
  readonly joined?: string;
  /** Of a number that is a date. */
  readonly format?: string | undefined;
  readonly doubt?: string | undefined;
}

interface JoinedColumns {
  readonly name: string;
  readonly day: string;
  readonly from: readonly (string | number)[];
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
  const elsewhere = hasDate
    ? undefined
    : inLine
      ? { ...inLine, formats: [] }
      : found.unread === undefined
        ? findNameDate(source.name, found.rowDays)
        : undefined;
  const formats = [...sure, ...(elsewhere?.formats ?? []), ...(found.firstRow?.format ? [found.firstRow.format] : [])];
  return {
    undated: hasDate || elsewhere ? undefined : (found.unread ?? found.other ?? found.inLine?.other),
    settle(mapping: ParseMapping): ParseMapping {
      const meta = [...[mapping.meta ?? []].flat(), ...(elsewhere ? [elsewhere.finder] : [])];
      return describeDates(found, formats, elsewhere ? { ...mapping, meta } : mapping);
    },
    firstRow: isDated ? undefined : found.firstRow,
    /** Doubts that the entries show, too. */
    objections: found.firstRow?.doubt === undefined || isDated ? [] : [found.firstRow.doubt],
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
  const columns = new Map<string, JoinedColumns>();
  const rows: DateColumn[] = [];
  const dated: string[] = [];
  let unread: OtherDate | undefined;
  for (const table of tables) {
    rows.push(...findEpochColumn(table));
    for (const [n, column] of table.columns.entries()) {
      const days = textsOf(table, n, isDate);
      const { name: day } = column;
      const [moment] = days.length === 0 ? textsOf(table, n, (text) => MOMENT.test(text)) : [];
      if (moment !== undefined && roleOf(day) !== 'other')
        unread ??= { text: day === '' ? moment : `${day}: ${moment}` };
      if (days.length === 0 || (NUMBER_NAME.test(day) && !days.every(hasTime))) continue;
      pools.push({ name: day, texts: days });
      const times = days.some(hasTime) ? undefined : timesBeside(table, n, days.length);
      const known = columns.get(table.name);
      if (times && day !== '' && (!known || roleOf(known.day) === 'other')) {
        pools.push({ name: day, texts: days.map((text, row) => `${text} ${times.texts[row]}`) });
        columns.set(table.name, joinColumns(column, times.column));
      }
      const isUnnamed = column.invented === 'name';
      const role = isUnnamed && (times || days.every(hasTime)) ? 'plain' : roleOf(day);
      const hasRow = table.rows[0]?.[n]?.text.trim() === days[0];
      if (hasRow) rows.push({ table: table.name, name: day, text: days[0] ?? '', role });
      if (role === 'run' || role === 'plain' || role === 'end') dated.push(...days);
    }
  }
  const compact = compactFact(facts);
  const written = dateFact(facts);
  const isCompact = compact && RANK[compact.role] > RANK[written?.role ?? 'other'];
  const fact = isCompact ? compact.fact : written?.fact;
  const texted = [...facts.map(({ text }) => text), ...texts];
  const found = { pools, columns, days: new Set(texted.flatMap(daysIn)), texts, rowDays: firstAndLast(dated), unread };
  const row = firstRowDate(rows, tables);
  const added = columns.get(row?.table ?? '');
  // Rows of a tree keep day and time apart.
  const firstRow = row && {
    ...{ ...row, doubt: row.doubt ?? doubtSeveralDays(row, tables) },
    ...(added?.day === row.column && { joined: added.name }),
  };
  const unclear = row && dayElsewhere(row, texted);
  if (unclear) return { ...found, fact, other: unclear };
  // Rows have the time of the measurement; a fact may have that of the export, unless its name tells otherwise.
  const isOfRun = facts.some(({ name, role }) => role === 'run' && fact?.includes(name));
  if (firstRow && !isOfRun) return { ...found, fact: undefined, firstRow };
  if (fact && fact.length > 1 && !isCompact)
    pools.push({ name: fact[0] ?? '', texts: [fact.map((name) => meta.get(name)?.text ?? '').join(' ')] });
  const other = fact ? undefined : facts.find(({ text }) => isDate(text) && !isUnsetText(text));
  return {
    ...found,
    fact,
    ...(isCompact && { format: compact.format }),
    ...(other && { other: factDate(other) }),
  };
}

/** Looks like a day and a time. */
const MOMENT = /^\d{1,4}[./-]\d{1,2}[./-]\d{1,4}\D+\d{1,2}:\d\d/;

/** In any order of day and month. */
function firstAndLast(texts: readonly string[]): Days | undefined {
  const days = [...new Set(texts)]
    .flatMap((text) => readIso(text) ?? dateCandidates(text).map(({ iso }) => iso))
    .map((iso) => iso.slice(0, 10))
    .toSorted();
  const [first, last] = [days[0], days.at(-1)];
  return first === undefined || last === undefined ? undefined : { first, last };
}

/** `/` starts the path of a fact in a tree. */
const factDate = ({ name, text }: NamedText): OtherDate => ({
  text: `${name}: ${text}`,
  ...(!name.startsWith('/') && !/["\\{}]/.test(name) && { line: `experiment: { date: '{{ meta["${name}"] }}' }` }),
});

/** By its name, and by what is around it in the file. */
function roleOfFact(name: string, text: string, places: DatePlaces | undefined): DateRole {
  if (name.startsWith('/')) return roleOfPath(name);
  if (!places || !isDate(text)) return roleOf(name);
  const line = /^[A-Z]{1,2}(\d+)$/.exec(name)?.[1] ?? (/^heading \d+$/.test(name) ? places.lineOf(text) : undefined);
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
  rows: readonly DateColumn[],
  tables: readonly Table[],
): (FirstRow & Pick<DateColumn, 'text'>) | undefined {
  const isFirst = ({ name, table }: { name: string; table: string }) =>
    tables.find((each) => each.name === table)?.columns[0]?.name === name;
  const [best] = rows
    .filter(
      (row) =>
        row.role !== 'other' &&
        // Beside other tables, the table of an audit trail or of calibrations is not the readings.
        (tables.length === 1 || roleOf(row.table) !== 'other') &&
        (row.format !== undefined || !isUnsetText(row.text)) &&
        (row.role !== 'unknown' || isFirst(row)),
    )
    .toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  return best && { table: best.table, column: best.name, text: best.text, format: best.format, doubt: best.doubt };
}

/**
 * The results of several days have no date of their own, unlike a record over time: they have labels, each of its own, or
 * are not in the order of their dates.
 */
function doubtSeveralDays({ table, column }: FirstRow, tables: readonly Table[]): string | undefined {
  const { columns = [], rows = [] } = tables.find(({ name }) => name === table) ?? {};
  const seen = rows.slice(0, MAX_ROWS);
  const at = columns.findIndex(({ name }) => name === column);
  const momentsOf = (row: Table['rows'][number]) => {
    const text = row[at]?.text.trim() ?? '';
    const iso = readIso(text);
    return iso === undefined ? dateCandidates(text) : [{ format: 'iso', iso }];
  };
  const moments = seen.map(momentsOf).filter(({ length }) => length > 0);
  const days = moments.map(([first]) => first?.iso.slice(0, 10) ?? '').toSorted();
  if (days[0] === days.at(-1)) return undefined;
  const inFormat = (wanted: string) =>
    moments.flatMap((each) => each.find(({ format }) => format === wanted)?.iso ?? []);
  const isInOrder = (moments[0] ?? []).some(({ format }) => {
    const own = inFormat(format);
    return own.length === moments.length && own.every((iso, n) => n === 0 || iso >= (own[n - 1] ?? ''));
  });
  const areLabels = (n: number) => {
    const texts = seen.map((row) => row[n]?.text ?? '').filter((text) => kindOf(text) === 'text');
    return texts.length === seen.length && new Set(texts).size === seen.length;
  };
  const hasLabels = columns.some((_, n) => n !== at && areLabels(n));
  return isInOrder && !hasLabels
    ? undefined
    : `the rows are of several days, and ${seen[0]?.[at]?.text.trim()} is that of the first. If the run has another date, write it as experiment: { date: … }`;
}

/** The column of times directly after or before that of the days. */
function timesBeside(table: Table, day: number, count: number) {
  for (const n of [day + 1, day - 1]) {
    const column = table.columns[n];
    const texts = column ? textsOf(table, n, isTime) : [];
    const isOf = column && column.name !== '' && !areOpposite(table.columns[day]?.name ?? '', column.name);
    if (isOf && texts.length >= count) return { column, texts };
  }
  return undefined;
}

const joinColumns = (day: Column, time: Column): JoinedColumns => ({
  name: day.invented ? 'date and time' : `${day.name} ${time.name}`,
  day: day.name,
  from: [day, time].map(placeOf),
});

/** Before the rows are read, a column without a name is known only by its position. */
const placeOf = ({ name, invented }: Column): string | number =>
  invented === 'name' ? Number(/\d+/.exec(name)?.[0]) : name;

/** 2001 to 2033 in seconds or milliseconds. */
const EPOCH = /^1\d{9}(?:\.\d+)?$|^1\d{12}$/;
/** `20231120163016` */
const STAMP = /^(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])(?:[01]\d|2[0-3])[0-5]\d[0-5]\d$/;
const ELAPSED = /elapsed|duration|up ?time/i;
/** Of a 64-bit number: `RunTimeLow`. */
const HALF = /(?:low|high)(?:er|part|word)?$/i;
const MIN_EPOCH_ROWS = 3;

/**
 * The first column, if it has the time as a number that grows from row to row. Without a name, seconds could also be a
 * serial number, so there must be nothing but numbers beside them.
 */
function findEpochColumn({ name: table, columns, rows }: Table): DateColumn[] {
  const [first] = rows;
  if (rows.length === 1)
    return columns.flatMap(({ name }, n): DateColumn[] => {
      const each = { name, text: first?.[n]?.text.trim() ?? '', role: roleOf(name) };
      const compact = each.role === 'run' || DATE_NAME.test(name) ? compactFact([each]) : undefined;
      return compact ? [{ ...each, table, format: compact.format, doubt: undefined }] : [];
    });
  const [column] = columns;
  const text = first?.[0]?.text.trim() ?? '';
  const isStamp = STAMP.test(text);
  if (!column || !first || !(isStamp || EPOCH.test(text)) || rows.length < MIN_EPOCH_ROWS) return [];
  const isUnnamed = column.invented === 'name';
  const isTime = DATE_NAME.test(column.name) && roleOf(column.name) !== 'other' && !ELAPSED.test(column.name);
  const areNumbers = first.every(({ value }) => typeof value === 'number' || value === null);
  if (isUnnamed ? !areNumbers && !isStamp : !isTime) return [];
  const texts = rows.slice(0, MAX_ROWS).map((row) => row[0]?.text.trim() ?? '');
  const isLater = (each: string, n: number) =>
    n === 0 || Number(each) > Number(texts[n - 1]) || (isStamp && each === texts[n - 1]);
  if (!texts.every((each, n) => (isStamp ? STAMP : EPOCH).test(each) && isLater(each, n))) return [];
  if (isStamp) return [{ table, name: column.name, text, role: 'plain', format: 'yyyyMMddHHmmss', doubt: undefined }];
  const format = /^\d{13}$/.test(text) ? 'epochMs' : 'epoch';
  const iso = new Date(Number(text) * (format === 'epoch' ? 1000 : 1)).toISOString();
  const doubt = `the first column has no name and seems to be the time since 1970: ${text} is ${iso}. If it is not, write experiment: { date: "{{ file.modified }}" }`;
  return [{ table, name: column.name, text, role: 'plain', format, doubt: isUnnamed ? doubt : undefined }];
}

/** The day of a number depends on the time zone: it is not clear if the file writes the day before or after it instead. */
function dayElsewhere(
  { column, text, format }: FirstRow & Pick<DateColumn, 'text'>,
  texts: readonly string[],
): OtherDate | undefined {
  if (format !== 'epoch' && format !== 'epochMs') return undefined;
  const moment = new Date(Number(text) * (format === 'epoch' ? 1000 : 1));
  const dayAfter = (days: number) => new Date(moment.getTime() + days * DAY_MS).toISOString().slice(0, 10);
  const written = new Set(
    texts.flatMap((each) => [
      ...daysIn(each),
      ...[...each.matchAll(NUMERIC_DAY)].flatMap(([day]) => dateCandidates(day).map(({ iso }) => iso.slice(0, 10))),
    ]),
  );
  if (written.has(dayAfter(0)) || !(written.has(dayAfter(-1)) || written.has(dayAfter(1)))) return undefined;
  return { text: `${column}: ${text}, ${dayAfter(0)} in UTC` };
}

const NUMERIC_DAY = /(?<!\d)\d{1,2}[./-]\d{1,2}[./-]\d{4}(?!\d)/g;
const DAY_MS = 86_400_000;

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

interface DateColumn extends NamedText, Pick<FirstRow, 'table' | 'format' | 'doubt'> {}

/** Only their names show that `20231120`, `163016`, `1700497816` and `45250.6` are not numbers. */
function compactFact(facts: readonly NamedText[]): CompactDate | undefined {
  const isOfRun = ({ name, role }: NamedText) =>
    (DATE_NAME.test(name) || DONE.test(name)) && role !== 'other' && !ELAPSED.test(name) && !HALF.test(name);
  const best = (form: RegExp, isNamed = (_name: string): boolean => true) =>
    facts
      .filter((each) => isOfRun(each) && form.test(each.text) && isNamed(each.name))
      .toSorted((a, b) => RANK[b.role] - RANK[a.role])[0];
  const isDay = (name: string) => DAY_NAME.test(name) || DONE.test(name);
  const stamp = best(STAMP);
  if (stamp) return { fact: [stamp.name], format: 'yyyyMMddHHmmss', role: stamp.role };
  const day = best(/^(19|20)\d\d[01]\d[0-3]\d$/, isDay);
  if (day) {
    const time = facts.find(({ name, text }) => TIME_NAME.test(name) && /^[0-2]\d[0-5]\d[0-5]\d$/.test(text));
    const { role } = day;
    return time
      ? { fact: [day.name, time.name], format: 'yyyyMMdd HHmmss', role }
      : { fact: [day.name], format: 'yyyyMMdd', role };
  }
  const epoch = best(EPOCH);
  // 2000 to 2063 in days, as spreadsheets count them.
  const serial = best(/^(?:3[7-9]|4\d|5\d)\d{3}(?:\.\d+)?$/, (name) => DAY_NAME.test(name));
  if (epoch) return { fact: [epoch.name], format: /^\d{13}$/.test(epoch.text) ? 'epochMs' : 'epoch', role: epoch.role };
  return serial && { fact: [serial.name], format: 'excel', role: serial.role };
}

interface CompactDate {
  readonly fact: readonly string[];
  readonly format: string;
  readonly role: DateRole;
}

/**
 * The fact that most likely is the date of the run, together with its time if that is another fact. None if two dates
 * of the same name are different days.
 */
function dateFact(facts: readonly NamedText[]): Pick<CompactDate, 'fact' | 'role'> | undefined {
  const dated = facts.filter(({ text, role }) => RANK[role] > 0 && isDate(text) && !isUnsetText(text));
  const [best] = dated.toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  // A name that says nothing about dates: a batch can be called 2026-01-05.
  if (!best || (best.role === 'unknown' && !hasTime(best.text))) return undefined;
  const dayOf = (text: string) => (readIso(text) ?? dateCandidates(text)[0]?.iso ?? '').slice(0, 10);
  const isRival = ({ name, text, role }: NamedText) =>
    role === best.role && name.startsWith(`${best.name} (`) && dayOf(text) !== dayOf(best.text);
  if (dated.some(isRival)) return undefined;
  const { role } = best;
  if (hasTime(best.text)) return { fact: [best.name], role };
  const times = facts.filter(({ name, text }) => isTime(text) && TIME_NAME.test(name) && !areOpposite(best.name, name));
  const rest = best.name.replace(DAY_NAME, '').toLowerCase();
  const at = facts.findIndex(({ name }) => name === best.name);
  const time =
    times.find(({ name }) => name.replace(TIME_NAME, '').toLowerCase() === rest) ??
    [facts[at + 1], facts[at - 1]].find((near) => near && times.includes(near));
  return { fact: time ? [best.name, time.name] : [best.name], role };
}

const START_NAME = /start|begin|début/i;
const END_NAME = /end(?!\p{L}*point)|stop|finish|\bfin\b/iu;

/** `End date` and `Start time` are not of the same moment. */
const areOpposite = (one: string, other: string): boolean =>
  (START_NAME.test(one) && END_NAME.test(other)) || (END_NAME.test(one) && START_NAME.test(other));

const TIME_NAME = /time|zeit|heure|hora|\bora\b|tijd|\btid\b|godzin|czas|время|时间|時刻|時間|시간|시각/iu;
const DAY_NAME = /date|datum|fecha|\bdata\b|дата|日付|日期|날짜|일자/iu;
function describeDates(
  { fact, format, columns }: FoundDates,
  formats: readonly string[],
  mapping: ParseMapping,
): ParseMapping {
  const withTime = (table: TableMapping, name: string) => {
    const added = columns.get(name);
    // Rows of a tree have exactly the columns that are listed.
    if (!added || table.rows !== undefined) return table;
    return { ...table, columns: { ...table.columns, [added.name]: [...added.from] } };
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
