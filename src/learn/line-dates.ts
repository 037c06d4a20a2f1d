import type { FileRecord } from '../model.js';
import { isBlank, type Line } from '../parse/lines.js';
import { readIso } from '../parse/values/date.js';
import { dateCandidates, monthOf } from '../parse/values/date-candidates.js';
import { escapeRegex } from '../text.js';
import { type DatePlaces, type DateRole, isUnsetText, NUMBER_NAME, RANK } from './date-roles.js';
import type { FinderMapping } from './pieces.js';

/** Dates that are neither facts nor columns: within lines, and in the name of the file. */

/** A date that is not that of the run, or may not be. */
export interface OtherDate {
  /** With the words before it. */
  readonly text: string;
  /** What a person writes if it is the date of the run. */
  readonly line?: string | undefined;
}

/** A date within a line that is not a fact: `Performed 22.06.2020 10:31:55`. */
export interface LineDate {
  readonly finder: FinderMapping;
  readonly text: string;
  /** If it cannot be used. */
  readonly other: OtherDate;
  /** False if the words around it say nothing about the run. */
  readonly isOfRun: boolean;
}

const CLOCK = String.raw`\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?[AP]M\b)?`;
const DAYS = [
  String.raw`\d{4}([-/.])\d{1,2}\1\d{1,2}`,
  String.raw`\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d)`,
  String.raw`\d{1,2}(\. | de |[-/. ])\p{L}{3,10}\.?(?:\3| )\d{2,4}`,
  String.raw`\p{L}{3,10}\.? +\d{1,2},? \d{4}`,
  String.raw`\d{4} ?年 ?\d{1,2} ?月 ?\d{1,2} ?日`,
  String.raw`20\d{6}(?= \d\d:\d\d)`,
];
const DAY = `(?:${DAYS.join('|')})`;
const DAY_AND_TIME = new RegExp(
  String.raw`(?<![\w./\\-]|\d:)(?:${DAY}(?:,| at| on|T)? *${CLOCK}|\p{L}{3,10} +\d{1,2} ${CLOCK} \d{4})(?![\w/\\:-]|\.\d)`,
  'iu',
);
const TIME_AND_DAY = new RegExp(String.raw`(?<![\w./\\-]|\d:)${CLOCK} +(?:on )?${DAY}(?![\w/\\:-])`, 'iu');
const STAMP = /(?<!\d)20\d{6}[_-]\d{6}(?!\d)/;
/** Without a time it could be a version or part of a path, so the words before it must suggest a date. */
const DAY_ALONE = new RegExp(String.raw`(?<![\w./\\-]|\d:)${DAY}(?![\w/\\:-])`, 'iu');

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
  facts: readonly string[],
): { readonly inLine?: LineDate; readonly other?: OtherDate | undefined } {
  const searched = lines.filter((line) => !isBlank(line) && line.text.length <= MAX_LINE_LENGTH).slice(0, MAX_LINES);
  const known = facts.filter((text) => readIso(text) !== undefined || dateCandidates(text).length > 0);
  const hits = searched
    .flatMap((line) => dateIn(line, places))
    .filter(({ text }) => !known.some((date) => date.includes(text)));
  const likely = hits.filter(({ role }) => RANK[role] > 0).toSorted((a, b) => RANK[b.role] - RANK[a.role]);
  for (const { before, text, role } of likely.slice(0, MAX_HITS)) {
    const pattern = patternFor(before, text);
    const first = searched.map((line) => new RegExp(pattern).exec(line.text)).find((found) => found !== null);
    if (first?.groups?.['date'] !== text) continue;
    const other = otherDate(before, text);
    return { inLine: { finder: { match: `/${pattern}/` }, text, other, isOfRun: role === 'run' } };
  }
  const [other] = hits.filter(({ role }) => role === 'other');
  return { other: other && otherDate(other.before, other.text) };
}

const YEAR = '(?:19|20)\\d\\d';
const MONTH_OR_NUMBER = String.raw`(?:\d{1,2}|\p{L}{3,10}\.?)`;
/** What is a date almost everywhere. A year of two digits needs a time beside it, or the word before it. */
const ANY_DATE = new RegExp(
  `(?<![\\d./-])(?:${[
    String.raw`${YEAR}([-/. ])${MONTH_OR_NUMBER}\1\d{1,2}`,
    String.raw`\d{1,2}(\. | de |[-/. ])${MONTH_OR_NUMBER}(?:\2| )${YEAR}`,
    String.raw`\p{L}{3,10}\.? +\d{1,2},? ${YEAR}`,
    String.raw`${YEAR} ?年 ?\d{1,2} ?月 ?\d{1,2} ?日`,
    String.raw`${YEAR}\d{4}(?=[_ -]?\d\d:?\d\d)`,
    String.raw`\d{1,2}([-/.])\d{1,2}\3\d\d(?=[\s,;"]+\d{1,2}:\d\d)`,
    String.raw`(?<=(?:\d:\d\d|date|datum)[\s,:;="]+)\d{1,2}([-/.])\d{1,2}\4\d\d`,
  ].join('|')})(?![/-]|(?<!\\d{8})\\d)`,
  'iu',
);

const MAYBE_DATE = /(?:19|20)\d\d|\d[-/.]\d{1,2}[-/.]\d/;

/** A date anywhere in the file, whatever it is the date of. */
export function findAnyDate(lines: readonly Pick<Line, 'text' | 'cells'>[]): OtherDate | undefined {
  for (const { text, cells } of lines.slice(0, MAX_LINES)) {
    const written = (text === '' ? cells.join(' ') : text).slice(0, 1000);
    // Most lines stop at the quick test.
    const [found] = (MAYBE_DATE.test(written) && ANY_DATE.exec(written)) || [];
    if (found === undefined) continue;
    const day = found.replace(/^(\d{4})(\d\d)(\d\d)$/, '$1-$2-$3');
    if (dateCandidates(day).length > 0 && !isUnsetText(day))
      return otherDate(written.slice(0, written.indexOf(found)), found);
  }
  return undefined;
}

/** `2025, "/", 10, "/", 23`: year, month and day in cells of their own. */
const APART = /(?<![\d.])(?:19|20)\d\d[\s,;"]+([-/.])[\s,;"]+\d{1,2}[\s,;"]+\1[\s,;"]+\d{1,2}(?![\d.])/;
/** A line of a few whole numbers. */
const WHOLE_NUMBERS = /^\s*\d+(?:[\s,;]+\d+){2,7}\s*$/;
/** More rows would not show more. */
const [MIN_ROWS, MAX_ROWS] = [3, 100];

/** A date that is written as several numbers. It may be something else, so it is only named. */
export function findSplitDate(outside: readonly Line[], tables: FileRecord['tables']): OtherDate | undefined {
  for (const line of outside.slice(0, MAX_LINES)) {
    if (isBlank(line) || line.text.length > MAX_LINE_LENGTH) continue;
    const [apart] = APART.exec(line.text) ?? [];
    if (apart !== undefined) return { text: apart };
    const numbers = WHOLE_NUMBERS.test(line.text) ? line.text.trim().split(/[\s,;]+/) : [];
    const at = numbers.findIndex((_, n) => isDay(numbers.slice(n), 4));
    if (at >= 0) return { text: numbers.slice(at, at + 3).join(' ') };
  }
  for (const { columns, rows } of tables) {
    const first = columns.findIndex((_, n) => areMoments(columns.slice(n), rows, n));
    if (first >= 0) return { text: textsFrom(rows[0], first, 3).join(' ') };
  }
  return undefined;
}

/** Year, month and day. */
function isDay([year = '', month = '', day = '']: readonly string[], digits: number): boolean {
  if (![year, month, day].every((part) => /^\d{1,4}$/.test(part)) || year.length !== digits) return false;
  const isYear = digits === 2 || /^(?:19[5-9]|20)/.test(year);
  return isYear && Number(month) >= 1 && Number(month) <= 12 && Number(day) >= 1 && Number(day) <= 31;
}

const textsFrom = (row: FileRecord['tables'][number]['rows'][number] | undefined, from: number, count: number) =>
  (row ?? []).slice(from, from + count).map(({ text }) => text.trim());

/** Columns without names. A year of two digits needs hour and minute beside the day, and moments that follow each other. */
function areMoments(
  columns: FileRecord['tables'][number]['columns'],
  rows: FileRecord['tables'][number]['rows'],
  from: number,
): boolean {
  if (rows.length < MIN_ROWS || columns.slice(0, 3).some(({ invented }) => invented !== 'name')) return false;
  const parts = rows.slice(0, MAX_ROWS).map((row) => textsFrom(row, from, 5));
  if (parts.every((each) => isDay(each, 4))) return true;
  const isMoment = (each: readonly string[]) =>
    isDay(each, 2) && /^(?:[01]?\d|2[0-3])$/.test(each[3] ?? '') && /^[0-5]?\d$/.test(each[4] ?? '');
  if (!parts.every(isMoment)) return false;
  const moments = parts.map((each) => each.map((part) => part.padStart(2, '0')).join(''));
  return moments.every((moment, n) => n === 0 || moment > (moments[n - 1] ?? ''));
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
    // Among other cells without a name, it can be the date of anything.
    const role = /^[^\p{L}]*[\t;|][^\p{L}]*[\t;|]/u.test(before) ? 'other' : places.roleBeside(number, found[0]);
    const isVague = role === 'unknown' || !/\p{L}/u.test(before);
    if (pattern === DAY_ALONE && (NUMBER_NAME.test(before) || isVague)) return [];
    return [{ before, text: found[0], role }];
  }
  return [];
}

const otherDate = (before: string, text: string): OtherDate => ({
  text: `${before.slice(-40).trim()} ${text}`.trim(),
  line: `meta: [{ match: '/${patternFor(before, text).replaceAll("'", "''")}/' }, …] under parse`,
});

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
  escapeRegex(word).replace(/\p{L}{2,}/gu, (each) =>
    monthOf(each) !== undefined || /^[ap]m$/i.test(each) ? '[^\\s\\d,.;/-]+' : each,
  );

const NAME_DATES: readonly (readonly [pattern: RegExp, ...formats: string[]])[] = [
  [/20\d{6}[_-]\d{6}/, 'yyyyMMdd_HHmmss', 'yyyyMMdd-HHmmss'],
  [/20\d\d-\d\d-\d\d[ _T]\d\d-\d\d-\d\d/, 'yyyy-MM-dd HH-mm-ss', 'yyyy-MM-dd_HH-mm-ss', "yyyy-MM-dd'T'HH-mm-ss"],
  [/\d{1,2}_\d{1,2}_20\d\d_\d{1,2}_\d\d_\d\d_[AP]M/, 'M_d_yyyy_h_mm_ss_a'],
  [/\d{1,2}_\d{1,2}_20\d\d \d{1,2}_\d\d_\d\d [AP]M/, 'M_d_yyyy h_mm_ss a'],
  [/20\d\d-\d\d-\d\d/, 'yyyy-MM-dd'],
  [/20\d\d_\d\d_\d\d/, 'yyyy_MM_dd'],
  [/(?<![\d.])20\d\d [01]\d [0-3]\d(?![\d.])/, 'yyyy MM dd'],
  [/(?<!\d)20\d\d[01]\d[0-3]\d(?!\d)/, 'yyyyMMdd'],
];

/** Instruments that write no date into a file often write one into its name. `days`: first and last of the rows. */
export function findNameDate(
  name: string,
  days: Days | undefined,
): { finder: FinderMapping; formats: readonly string[] } | undefined {
  for (const [pattern, ...formats] of NAME_DATES) {
    const [found] = pattern.exec(name) ?? [];
    if (found === undefined) continue;
    const day = dayInName(found);
    // The day of an export. Nothing in the file was measured on it.
    if (days && (day < days.first || day > days.last)) return undefined;
    return { finder: { in: 'name', match: `/(?<date>${pattern.source})/` }, formats };
  }
  return undefined;
}

export interface Days {
  readonly first: string;
  readonly last: string;
}

/** As in NAME_DATES: the year comes first, or the month and the day before it. */
function dayInName(text: string): string {
  const [month = '', day = '', year = ''] = text.split('_');
  if (/^\d{1,2}$/.test(month)) return `${year.slice(0, 4)}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`;
  return text.replace(/\D/g, '').replace(/^(\d{4})(\d\d)(\d\d).*$/, '$1-$2-$3');
}
