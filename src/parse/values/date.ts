import { DateTime } from 'luxon';
import type { DateHabits } from '../../model.js';
import {
  abbreviationToOffset,
  type DateCandidate,
  dateCandidates,
  isDay,
  isUnambiguousZone,
  pad,
  withEnglishWords,
  withoutPadding,
  withPlainHalf,
} from './date-candidates.js';

export interface DateReader {
  /** The date as ISO text, if the whole text matches one of the formats. */
  read(text: string): string | undefined;
  /** For a value used as a date: also accepts a number such as `epoch` or, without a format, any unambiguous date. */
  readAsDate(text: string): string | undefined;
}

type ReadDate = (text: string) => string | undefined;

export interface DateOptions {
  readonly format?: readonly string[] | undefined;
  readonly zone?: string | undefined;
  readonly locale?: string | undefined;
}

/** Without a zone that is a fact of the file and not yet known. */
export const withFixedZone = ({ format, zone, locale }: DateHabits): DateOptions => ({
  format,
  zone: typeof zone === 'string' ? zone : undefined,
  locale,
});

const NUMERIC_FORMATS = ['epoch', 'epochMs', 'excel'];

export function createDateReader(options: DateOptions): DateReader {
  const formats = options.format ?? ['iso'];
  const written = formats
    .filter((format) => !NUMERIC_FORMATS.includes(format))
    .map((format) => reader(format, options));
  const all = formats.map((format) => reader(format, options));
  return {
    read: (text) => (text.length < MAX_DATE_LENGTH ? firstDate(written, text) : undefined),
    readAsDate: (text) => firstDate(all, text) ?? (options.format ? undefined : readUnambiguous(text, options.zone)),
  };
}

function readUnambiguous(text: string, zone: string | undefined): string | undefined {
  const [first, ...others] = dateCandidates(text);
  return first && others.every(({ iso }) => iso === first.iso) ? readIso(first.iso, zone) : undefined;
}

function firstDate(readers: readonly ReadDate[], text: string): string | undefined {
  for (const read of readers) {
    const iso = read(text);
    if (iso !== undefined) return iso;
  }
  return undefined;
}

/** Longer texts are not dates and are not tried. */
const MAX_DATE_LENGTH = 60;

function reader(format: string, { zone, locale }: DateOptions): ReadDate {
  switch (format) {
    case 'iso':
      return (text) => readIso(text, zone);
    case 'epoch':
      return (text) => readEpoch(text, 1000, zone);
    case 'epochMs':
      return (text) => readEpoch(text, 1, zone);
    case 'excel':
      return readSerial;
    default:
      return patternReader(format, zone, locale ?? 'en');
  }
}

const ISO =
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,25}))?)? ?(Z|[+-]\d\d(?::?\d\d)?)?)?$/;

const HYPHEN = 45;

/** Only the extended form: `20260105` may be a number. */
export function readIso(text: string, zone?: string): string | undefined {
  if (text.charCodeAt(4) !== HYPHEN) return undefined;
  const [, year, month, day, hour, minute, second = '00', fraction, offset] = ISO.exec(text) ?? [];
  if (!isDay(Number(year), Number(month), Number(day))) return undefined;
  const date = `${year}-${month}-${day}`;
  if (hour === undefined) return date;
  const local = `${date}T${hour}:${minute}:${second}${fraction === undefined ? '' : `.${fraction.slice(0, 9)}`}`;
  if (offset !== undefined) return local + offset;
  return zone === undefined ? local : local + DateTime.fromISO(local, { zone }).toFormat('ZZ');
}

/** `09:47:02.1010842323303222656`: luxon reads at most nine digits of a second. */
const LONG_FRACTION = /(?<=:\d\d)([.,:]\d{9})\d{1,16}(?!\d)/;

/**
 * Reads luxon formats. luxon takes 10 µs to read a date and 5 µs to reject one,
 * so texts without the punctuation of the format are rejected first.
 */
function patternReader(pattern: string, zone: string | undefined, locale: string): ReadDate {
  const format = quoteWords(pattern);
  const tokens = format.replace(/'[^']*'/g, '');
  const punctuation = [...new Set(tokens.replace(/[\p{L}\s]/gu, ''))];
  // Month names in other languages are read without `locale`.
  const toEnglish = locale === 'en' && /MMM|E|a/.test(tokens);
  const clean = (text: string): string => {
    const short = /\d{10}/.test(text) ? text.replace(LONG_FRACTION, '$1') : text;
    const plain = withoutPadding(short.includes('  ') ? short.replace(/\s+/g, ' ') : short);
    return toEnglish ? withEnglishWords(withPlainHalf(plain), tokens) : plain;
  };
  const quick = zone === undefined && locale === 'en' ? compileDigitPattern(format) : undefined;
  if (quick) return (text) => quick(clean(text));
  const parser = DateTime.buildFormatParser(format, { locale });
  const knowsZone = zone !== undefined || /[zZ]/.test(tokens);
  const options = { zone: zone ?? 'utc', locale, setZone: /[zZ]/.test(tokens) };
  // Zone abbreviations are read as their offsets.
  const offsets = /z/.test(tokens) ? DateTime.buildFormatParser(withOffsetToken(format), { locale }) : undefined;
  const hasDay = /d/.test(tokens);
  const hasTime = /[Hh]/.test(tokens);
  return (text) => {
    for (const character of punctuation) if (!text.includes(character)) return undefined;
    if (!/\d/.test(text)) return undefined;
    const written = clean(text.replace(/\s/g, ' '));
    const offset = offsets && abbreviationToOffset(written);
    const date =
      offset === undefined
        ? DateTime.fromFormatParser(written, parser, options)
        : DateTime.fromFormatParser(offset, offsets ?? parser, options);
    if (!date.isValid || (offsets && !isUnambiguousZone(date.zoneName))) return undefined;
    if (!hasTime) return date.toISODate();
    const how = { suppressMilliseconds: true, includeOffset: knowsZone } as const;
    return hasDay ? date.toISO(how) : date.toISOTime(how);
  };
}

const withOffsetToken = (format: string): string =>
  format.replace(/'[^']*'|z+/g, (piece) => (piece.startsWith("'") ? piece : 'ZZ'));

/** Words of format letters. Other words, such as `on` or `Uhr`, are literal text. */
const TOKENS = /^(?:y+|M+|L+|d+|H+|h+|m+|s+|S+|u+|a+|E+|c+|z+|Z+)+$/;

const quoteWords = (pattern: string): string =>
  // Chinese characters stand between letters without a gap: `yyyy年M月d日`.
  pattern.replace(/'[^']*'|\p{Script=Han}+|(?:(?!\p{Script=Han})\p{L})+/gu, (word) => {
    if (word.startsWith("'") || TOKENS.test(word)) return word;
    // A T between a day and an hour has no gap around it.
    return word.replace(/^([yMLd]*)(T)([Hhms]*)$/, "$1'$2'$3").replace(/^(\p{L}+)$/u, "'$1'");
  });

const PLAIN_NUMBER = /^\d+(?:\.\d+)?$/;

/** Seconds or milliseconds since 1970. */
function readEpoch(text: string, msPerUnit: number, zone: string | undefined): string | undefined {
  if (!PLAIN_NUMBER.test(text)) return undefined;
  const instant = DateTime.fromMillis(Math.round(Number(text) * msPerUnit), { zone: zone ?? 'utc' });
  return instant.isValid ? (instant.toISO({ suppressMilliseconds: true }) ?? undefined) : undefined;
}

/** Days since 30 December 1899, as spreadsheets count them. */
function readSerial(text: string): string | undefined {
  if (!PLAIN_NUMBER.test(text) || Number(text) >= 2_958_466) return undefined;
  const ms = Math.round(Number(text) * 86_400) * 1000;
  const moment = DateTime.fromMillis(Date.UTC(1899, 11, 30) + ms, { zone: 'utc' });
  if (Number.isInteger(Number(text))) return moment.toISODate() ?? undefined;
  return moment.toISO({ suppressMilliseconds: true, includeOffset: false }) ?? undefined;
}

export type DateReading = { readonly iso: string } | { readonly ambiguous: readonly DateCandidate[] };

/** Reads a text that is used as a date. `ambiguous`: no format is given, and the text can be several days. */
export function readDate(text: string, dates: DateHabits): DateReading | undefined {
  const trimmed = text.trim();
  const known = withFixedZone(dates);
  const iso = createDateReader(known).readAsDate(trimmed) ?? readIso(trimmed, known.zone);
  const elsewhere = dates.known?.get(trimmed);
  if (elsewhere !== undefined && iso !== undefined && elsewhere !== iso) return { ambiguous: dateCandidates(trimmed) };
  if (iso !== undefined || elsewhere !== undefined) return { iso: iso ?? elsewhere ?? '' };
  if (dates.format !== undefined) return undefined;
  const candidates = dateCandidates(trimmed);
  return candidates.length > 0 ? { ambiguous: candidates } : undefined;
}

const TOKEN = /yyyy|yy|MM|M|dd|d|HH|H|hh|h|mm|ss|SSS|a|'[^']*'|[^\p{L}']/gu;

/**
 * A fast reader of formats such as `M/d/yyyy h:mm:ss a`, or undefined if the format has other letters.
 * Rows often start with such a date. luxon takes 12 to 17 µs for each, three quarters of the time for a whole file;
 * this takes less than 1 µs. A property test ensures that it reads dates as luxon does.
 */
export function compileDigitPattern(pattern: string): ReadDate | undefined {
  const pieces = [...pattern.matchAll(TOKEN)].map(([piece]) => piece);
  const tokens = pieces.filter((piece) => /^[a-zA-Z]/.test(piece));
  const letters = pattern.replace(/'[^']*'|[^\p{L}]/gu, '');
  if (tokens.join('').length !== letters.length || !isReadable(tokens)) return undefined;
  const regex = new RegExp(`^${pieces.map(sourceOf).join('')}$`);
  const at = (...names: string[]) => tokens.findIndex((token) => names.includes(token)) + 1;
  const [year, month, day] = [at('yyyy', 'yy'), at('MM', 'M'), at('dd', 'd')];
  const [hour, minute, second, ms, half] = [at('HH', 'H', 'hh', 'h'), at('mm'), at('ss'), at('SSS'), at('a')];
  return (text) => {
    const match = regex.exec(text);
    if (!match) return undefined;
    const date = isoDay(match[year] ?? '', Number(match[month]), Number(match[day]));
    if (date === undefined || hour === 0) return date;
    const hours = hourOf(Number(match[hour]), half > 0 ? match[half] : undefined);
    const minutes = (minute > 0 && match[minute]) || '00';
    const seconds = (second > 0 && match[second]) || '00';
    if (hours === undefined || minutes > '59' || seconds > '59') return undefined;
    const fraction = ms > 0 && match[ms] !== '000' ? `.${match[ms]}` : '';
    return `${date}T${pad(hours)}:${minutes}:${seconds}${fraction}`;
  };
}

/** The regular expression for a token or for literal text. */
function sourceOf(piece: string): string {
  if (piece === 'a') return '([AaPp][Mm])';
  if (/^[a-zA-Z]/.test(piece)) return piece.length === 1 ? '(\\d\\d?)' : `(\\d{${piece.length}})`;
  return (piece.startsWith("'") ? piece.slice(1, -1) : piece).replace(/\W/g, '\\$&');
}

/** Year, month and day, each once; 12-hour times with AM or PM. */
function isReadable(tokens: readonly string[]): boolean {
  const kinds = tokens.map((token) => (token[0] === 'H' ? 'h' : token[0]));
  const isOnce = new Set(kinds).size === kinds.length;
  return (
    isOnce &&
    ['y', 'M', 'd'].every((kind) => kinds.includes(kind)) &&
    tokens.some((token) => token[0] === 'h') === kinds.includes('a')
  );
}

function isoDay(year: string, month: number, day: number): string | undefined {
  const full = year.length === 4 ? year : `${Number(year) > 60 ? 19 : 20}${year}`;
  return isDay(Number(full), month, day) ? `${full}-${pad(month)}-${pad(day)}` : undefined;
}

function hourOf(hour: number, half: string | undefined): number | undefined {
  if (half === undefined) return hour < 24 ? hour : undefined;
  if (hour < 1 || hour > 12) return undefined;
  return (hour % 12) + (half[0] === 'p' || half[0] === 'P' ? 12 : 0);
}
