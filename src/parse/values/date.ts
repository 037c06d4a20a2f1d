import { DateTime } from 'luxon';
import type { DateHabits } from '../../model.js';
import { dateForms, isDay } from './date-forms.js';
import { compileDigitPattern } from './digit-pattern.js';
import { isClearZone, withOffset } from './zones.js';

export interface DateReader {
  /** The date as ISO text, where the whole text fits one of the patterns. */
  read(text: string): string | undefined;
  /**
   * The same for a value that is used as a date: also where it is a mere number, such as `epoch`,
   * and, where no format is given, in any form that can mean one day only.
   */
  readAsDate(text: string): string | undefined;
}

type ReadDate = (text: string) => string | undefined;

/** Dates and how they are written; `zone` is known by now, wherever it came from. */
export interface DateOptions {
  readonly format?: readonly string[] | undefined;
  readonly zone?: string | undefined;
  readonly locale?: string | undefined;
}

/** Where the zone stands in the file, only a name of it can be used before the file was read. */
export const withKnownZone = ({ format, zone, locale }: DateHabits): DateOptions => ({
  format,
  zone: typeof zone === 'string' ? zone : undefined,
  locale,
});

const NUMERIC = ['epoch', 'epochMs', 'excel'];

export function createDateReader(options: DateOptions): DateReader {
  const formats = options.format ?? ['iso'];
  const written = formats
    .filter((format) => !NUMERIC.includes(format))
    .map((format) => reader(format, options));
  const all = formats.map((format) => reader(format, options));
  return {
    read: (text) => (text.length < LONGEST ? first(written, text) : undefined),
    readAsDate: (text) => first(all, text) ?? (options.format ? undefined : readPlain(text, options.zone)),
  };
}

function readPlain(text: string, zone: string | undefined): string | undefined {
  const [form, ...others] = dateForms(text);
  return form && others.every(({ iso }) => iso === form.iso) ? readIso(form.iso, zone) : undefined;
}

function first(readers: readonly ReadDate[], text: string): string | undefined {
  for (const read of readers) {
    const iso = read(text);
    if (iso !== undefined) return iso;
  }
  return undefined;
}

/** No date is longer; a comment of many words is not held against the patterns. */
const LONGEST = 60;

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
  /^(\d{4})-(\d\d)-(\d\d)(?:[T ]([01]\d|2[0-3]):([0-5]\d)(?::([0-5]\d)(?:[.,](\d{1,9}))?)? ?(Z|[+-]\d\d(?::?\d\d)?)?)?$/;

/** The extended form only: `20260105` is as well a number. */
export function readIso(text: string, zone?: string): string | undefined {
  if (text[4] !== '-') return undefined;
  const [, year, month, day, hour, minute, second = '00', fraction, offset] = ISO.exec(text) ?? [];
  if (!isDay(Number(year), Number(month), Number(day))) return undefined;
  const date = `${year}-${month}-${day}`;
  if (hour === undefined) return date;
  const local = `${date}T${hour}:${minute}:${second}${fraction === undefined ? '' : `.${fraction}`}`;
  if (offset !== undefined) return local + offset;
  return zone === undefined ? local : local + DateTime.fromISO(local, { zone }).toFormat('ZZ');
}

/**
 * Patterns as luxon knows them. It takes some 10 µs to read a date and half of that to refuse one,
 * so a text that lacks a sign of the pattern does not get that far.
 */
function patternReader(pattern: string, zone: string | undefined, locale: string): ReadDate {
  const format = quoteWords(pattern);
  const tokens = format.replace(/'[^']*'/g, '');
  const signs = [...new Set(tokens.replace(/[\p{L}\s]/gu, ''))];
  const quick = zone === undefined && locale === 'en' ? compileDigitPattern(format) : undefined;
  if (quick) return (text) => quick(text.includes('  ') ? text.replace(/\s+/g, ' ') : text);
  const parser = DateTime.buildFormatParser(format, { locale });
  const knowsZone = zone !== undefined || /[zZ]/.test(tokens);
  const options = { zone: zone ?? 'utc', locale, setZone: /[zZ]/.test(tokens) };
  // An abbreviated zone is read as the offset that it stands for.
  const offsets = /z/.test(tokens)
    ? DateTime.buildFormatParser(withOffsetToken(format), { locale })
    : undefined;
  const hasDay = /d/.test(tokens);
  const hasTime = /[Hh]/.test(tokens);
  return (text) => {
    for (const sign of signs) if (!text.includes(sign)) return undefined;
    if (!/\d/.test(text)) return undefined;
    const written = text.replace(/\s+/g, ' ');
    const offset = offsets && withOffset(written);
    const date =
      offset === undefined
        ? DateTime.fromFormatParser(written, parser, options)
        : DateTime.fromFormatParser(offset, offsets ?? parser, options);
    if (!date.isValid || (offsets && !isClearZone(date.zoneName))) return undefined;
    if (!hasTime) return date.toISODate();
    const how = { suppressMilliseconds: true, includeOffset: knowsZone } as const;
    return hasDay ? date.toISO(how) : date.toISOTime(how);
  };
}

const withOffsetToken = (format: string): string =>
  format.replace(/'[^']*'|z+/g, (piece) => (piece.startsWith("'") ? piece : 'ZZ'));

/** Letters that stand for parts of a date. A word with any other in it, `on` or `Uhr`, stands for itself. */
const TOKENS = /^(?:y+|M+|L+|d+|H+|h+|m+|s+|S+|u+|a+|E+|c+|z+|Z+)+$/;

const quoteWords = (pattern: string): string =>
  pattern.replace(/'[^']*'|\p{L}+/gu, (word) => {
    if (word.startsWith("'") || TOKENS.test(word)) return word;
    // Between a day and an hour, a T is written without a gap.
    return word.replace(/^([yMLd]*)(T)([Hhms]*)$/, "$1'$2'$3").replace(/^(\p{L}+)$/u, "'$1'");
  });

const PLAIN_NUMBER = /^\d+(?:\.\d+)?$/;

/** Seconds or milliseconds since 1970, which are the same instant everywhere. */
function readEpoch(text: string, msPerUnit: number, zone: string | undefined): string | undefined {
  if (!PLAIN_NUMBER.test(text)) return undefined;
  const instant = DateTime.fromMillis(Math.round(Number(text) * msPerUnit), { zone: zone ?? 'utc' });
  return instant.isValid ? (instant.toISO({ suppressMilliseconds: true }) ?? undefined) : undefined;
}

/** Days since the last day but one of 1899, as spreadsheets count them. */
function readSerial(text: string): string | undefined {
  if (!PLAIN_NUMBER.test(text) || Number(text) >= 2_958_466) return undefined;
  const ms = Math.round(Number(text) * 86_400) * 1000;
  const moment = DateTime.fromMillis(Date.UTC(1899, 11, 30) + ms, { zone: 'utc' });
  if (Number.isInteger(Number(text))) return moment.toISODate() ?? undefined;
  return moment.toISO({ suppressMilliseconds: true, includeOffset: false }) ?? undefined;
}
