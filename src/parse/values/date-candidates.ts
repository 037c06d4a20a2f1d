import { IANAZone } from 'luxon';

/** One interpretation of a text as a date: the format and the date. */
export interface DateCandidate {
  readonly format: string;
  readonly iso: string;
}

const TIME = String.raw`(\d{1,2}):(\d\d)(?::(\d\d)(?:([.,:])(\d{1,25}))?)?(?:( ?)([AP]M))?`;
const DAY = String.raw`(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})`;
const NAMED_DAY = String.raw`(\d{1,2})(\. | de |[ /.-])(\p{L}{3,10})\.?((?<!\.)\2| )(\d{4}|\d\d)`;
const YEAR_FIRST_DAY = String.raw`(\d{4})([ /.-])(\p{L}{3,10})\2(\d{1,2})`;
const US_DAY = String.raw`(\p{L}{3,10})\.? (\d{1,2})(,?) (\d{4})`;
/** `JUL,02.2025`. */
const COMMA_DAY = /^(\p{L}{3}),(\d\d)\.(\d{4})$/u;

const NUMERIC = new RegExp(`^${DAY}$`);
const COMPACT = /^((?:19|20)\d\d)(\d\d)(\d\d)$/;
const HAN = /^(\d{4})( ?)年\2(\d{1,2})\2月\2(\d{1,2})\2日$/;
const NAMED = new RegExp(`^${NAMED_DAY}$`, 'iu');
const NAMED_YEAR_FIRST = new RegExp(`^${YEAR_FIRST_DAY}$`, 'iu');
const NAMED_US = new RegExp(`^${US_DAY}$`, 'iu');
const CLOCK = new RegExp(`^${TIME}$`, 'i');
/** `163016` or `16-30-16`. */
const COMPACT_CLOCK = /^([01]\d|2[0-3])(-?)([0-5]\d)\2([0-5]\d)(?:([.,])(\d{1,25}))?$/;
const HAN_CLOCK = /^(\d{1,2})([時时点])([0-5]?\d)分(?:( ?)([0-5]?\d)秒)?$/;
/** As `ctime` of the C library writes it: `Mar 15 16:22:41 2019`. */
const CTIME = /^([A-Z]{3} \d{1,2}) (\d\d:\d\d:\d\d) (\d{4})$/i;

/** Most texts are not dates and stop at one of these. */
const HAS_DIGITS = /^\P{L}{0,3}\d|\d{4}|\d:\d\d/u;
const IS_CODE = /^\p{L}\S*$/u;

/**
 * All interpretations of a text as a date, by the common orders of day, month and year.
 * None: not a date. Several that differ: ambiguous, and must not be guessed.
 */
export function dateCandidates(written: string): DateCandidate[] {
  if (!HAS_DIGITS.test(written) || written.length > 60) return [];
  const trimmed = written.trim();
  if (IS_CODE.test(trimmed) && !COMMA_DAY.test(trimmed)) return [];
  const whole = withPlainHalf(withoutPadding(trimmed.replace(/\s+/g, ' ')));
  if (whole.length < 6 || whole.length > 50) return [];
  const weekday = leadingWeekday(whole);
  const start = weekday === undefined ? 0 : weekday.word.length + weekday.gap.length;
  const { text, zone } = takeZone(whole.slice(start));
  if (!/^\p{L}*\d|^\p{L}+(?:\.? |,)\d/u.test(text)) return [];
  const found = CTIME.test(text) ? ctimeCandidates(text) : momentCandidates(text);
  if (weekday === undefined && zone === undefined) return found;
  const before = weekday === undefined ? '' : `${weekday.word.length <= 3 ? 'EEE' : 'EEEE'}${weekday.gap}`;
  return found
    .filter(({ iso }) => zone === undefined || iso.includes('T'))
    .filter(({ iso }) => weekday === undefined || new Date(iso.slice(0, 10)).getUTCDay() === weekday.day)
    .map(({ format, iso }) => ({
      format: before + (zone === undefined ? format : withZone(format, zone)),
      iso: iso + (zone?.offset ?? ''),
    }));
}

interface Zone {
  /** As in ISO texts. */
  readonly offset: string;
  readonly format: string;
}

/** Splits off an offset or an unambiguous zone abbreviation: `14:31:40 CEST`, `14:31 (UTC+2)`. */
function takeZone(text: string): { text: string; zone?: Zone | undefined } {
  const [, start = '', name = '', after = ''] = /^(.*\d(?: ?[AP]M)?) ([A-Z]{3,4})( \d{4})?$/.exec(text) ?? [];
  const known = name === '' ? undefined : abbreviationToOffset(name);
  if (known !== undefined) return { text: start + after, zone: { offset: known, format: ' z' } };
  const [, before = '', literal = '', sign = '', hours = '', colon = '', minutes = '', close = ''] =
    OFFSET.exec(text) ?? [];
  if (hours === '' || Number(hours) > 14) return { text };
  const words = literal.replace(/[A-Z]+/, "'$&'");
  const offset = `${sign}${hours.padStart(2, '0')}:${minutes || '00'}`;
  return { text: before, zone: { offset, format: `${words}${minutes !== '' && colon === '' ? 'ZZZ' : 'ZZ'}${close}` } };
}

const OFFSET = /^(.*:\d\d(?:[.,]\d+)?(?: ?[AP]M)?)( ?[([]? ?(?:UTC|GMT)? ?)([+-])(\d{1,2})(?:(:?)([0-5]\d))?([)\]]?)$/;

const withZone = (format: string, zone: Zone): string =>
  zone.format === ' z' && / yyyy$/.test(format) ? format.replace(/ yyyy$/, ' z yyyy') : format + zone.format;

function ctimeCandidates(text: string): DateCandidate[] {
  const [, day = '', clock = '', year = ''] = CTIME.exec(text) ?? [];
  const time = readClock(clock, true);
  if (!time) return [];
  return dayCandidates(`${day} ${year}`).map(({ format, iso }) => ({
    format: format.replace(' yyyy', ` ${time.format} yyyy`),
    iso: iso + time.iso,
  }));
}

function momentCandidates(text: string): DateCandidate[] {
  const { day, gap, clock, isTimeFirst } = splitMoment(text);
  // A number of eight digits alone can be anything.
  if (clock === undefined && COMPACT.test(day)) return [];
  // `21.2.2012.`, with a dot behind each ordinal number.
  if (clock === undefined && /^\d{1,2}\.\d{1,2}\.\d{4}\.$/.test(day))
    return dayCandidates(day.slice(0, -1)).map(({ format, iso }) => ({ format: `${format}.`, iso }));
  return dayCandidates(day, HALF_OF_DAY.test(clock ?? '')).flatMap(({ format, iso }) => {
    // If a day can have one digit, so can the hour.
    const time = clock === undefined ? { format: '', iso: '' } : readTime(clock, /dd/.test(format));
    if (!time) return [];
    const parts = isTimeFirst ? [time.format, format] : [format, time.format];
    return [{ format: parts.join(gap), iso: iso + time.iso }];
  });
}

const HALF_OF_DAY = /[AP]M$/i;

/** `isTimeFirst`: `00:30:00 21/Nov/2025`. */
function splitMoment(text: string): { day: string; gap: string; clock?: string | undefined; isTimeFirst?: boolean } {
  const [, earlier, gap = '', rest] = /^(\d{1,2}:\S+(?: [AP]M)?)( (?:on )?)(.+)$/i.exec(text) ?? [];
  if (earlier !== undefined && rest !== undefined) return { day: rest, gap, clock: earlier, isTimeFirst: true };
  const [, day = text, joint = '', clock] = MOMENT.exec(text) ?? [];
  return { day, gap: joint === 'T' ? "'T'" : joint, clock };
}

const MOMENT =
  /^(.+?)((?<=\d\.\d{1,2}\.\d{4})\. |, | at | - | |T|_|-)(\d{1,2}:.+|(?<=^\d{8}.)\d{6}(?:[.,]\d+)?|(?<=^\d{4}-\d\d-\d\d.)\d\d-\d\d-\d\d|\d{1,2}[時时点].+)$/;

const readTime = (clock: string, isPadded: boolean): DateCandidate | undefined =>
  readClock(clock, isPadded) ?? readCompactClock(clock) ?? readHanClock(clock);

/** `163016.25`. */
function readCompactClock(clock: string): DateCandidate | undefined {
  const [, hour, sign = '', minute, second, point = '', fraction] = COMPACT_CLOCK.exec(clock) ?? [];
  if (hour === undefined) return undefined;
  const [digits, token] =
    fraction === undefined ? ['', ''] : [`.${fraction.slice(0, 9)}`, point + fractionToken(fraction)];
  return { format: `${['HH', 'mm', 'ss'].join(sign)}${token}`, iso: `T${hour}:${minute}:${second}${digits}` };
}

/** `16時30分5秒`. */
function readHanClock(clock: string): DateCandidate | undefined {
  const [, hour, word, minute, gap = '', second] = HAN_CLOCK.exec(clock) ?? [];
  if (hour === undefined || Number(hour) > 23) return undefined;
  const time = [hour, minute, second ?? '0'].map((part) => pad(Number(part))).join(':');
  return { format: `H'${word}'m'分'${second === undefined ? '' : `${gap}s'秒'`}`, iso: `T${time}` };
}

function readClock(clock: string, isPadded: boolean): DateCandidate | undefined {
  const [, hour = '', minute = '', second, mark, fraction, gap = '', half] = CLOCK.exec(clock) ?? [];
  const h = Number(hour);
  if (hour === '' || Number(minute) > 59 || Number(second ?? 0) > 59) return undefined;
  if (half === undefined ? h > 23 : h < 1 || h > 12) return undefined;
  const letter = half === undefined ? 'H' : 'h';
  const seconds = second === undefined ? '' : ':ss';
  const fractions = fraction === undefined ? '' : `${mark}${fractionToken(fraction)}`;
  const hour24 = half === undefined ? h : (h % 12) + (/p/i.test(half) ? 12 : 0);
  return {
    format: `${letter.repeat(isPadded ? hour.length : 1)}:mm${seconds}${fractions}${half === undefined ? '' : `${gap}a`}`,
    iso: `T${pad(hour24)}:${minute}:${second ?? '00'}${fraction === undefined ? '' : `.${fraction.slice(0, 9)}`}`,
  };
}

const fractionToken = (digits: string): string => (digits.length === 3 ? 'SSS' : 'u');

function dayCandidates(day: string, isHalved = false): DateCandidate[] {
  const [, first = '', sign = '', second = '', third = ''] = NUMERIC.exec(day) ?? [];
  if (first !== '') return numericCandidates([first, second, third], sign, sign !== '.' || isHalved);
  const [, compactYear = '', compactMonth = '', compactDay = ''] = COMPACT.exec(day) ?? [];
  if (compactYear !== '') return valid('yyyyMMdd', compactYear, compactMonth, compactDay);
  const [, hanYear = '', hanGap = '', hanMonth = '', hanDay = ''] = HAN.exec(day) ?? [];
  if (hanYear !== '') {
    const [y, m, d] = [`yyyy${hanGap}'年'`, `M${hanGap}'月'`, `d${hanGap}'日'`];
    return valid([y, m, d].join(hanGap), hanYear, hanMonth, hanDay);
  }
  // No country writes a two-digit year before the name of a month.
  const [, dayOfMonth = '', joint = '', month = '', after = '', year = ''] = NAMED.exec(day) ?? [];
  if (dayOfMonth !== '')
    return named(
      `${'d'.repeat(dayOfMonth.length)}${joint}MMM${after}${'y'.repeat(year.length)}`,
      year,
      month,
      dayOfMonth,
    );
  const [, firstYear = '', between = '', name = '', last = ''] = NAMED_YEAR_FIRST.exec(day) ?? [];
  if (firstYear !== '') return named(`yyyy${between}MMM${between}${'d'.repeat(last.length)}`, firstYear, name, last);
  const [, commaMonth, commaDay = '', commaYear = ''] = COMMA_DAY.exec(day) ?? [];
  if (commaMonth !== undefined) return named('MMM,dd.yyyy', commaYear, commaMonth, commaDay);
  const [, usMonth = '', usDay = '', comma = '', usYear = ''] = NAMED_US.exec(day) ?? [];
  return named(`MMM ${'d'.repeat(usDay.length)}${comma} yyyy`, usYear, usMonth, usDay);
}

/** No country writes the month first with dots, but programs from America do so beside AM and PM. */
function numericCandidates(
  [first, second, third]: readonly [string, string, string],
  sign: string,
  canStartWithMonth: boolean,
): DateCandidate[] {
  if (first.length === 4) {
    const [m, d] = second.length + third.length === 4 ? ['MM', 'dd'] : ['M', 'd'];
    return third.length > 2 ? [] : valid(`yyyy${sign}${m}${sign}${d}`, first, second, third);
  }
  if (first.length > 2 || (third.length !== 4 && third.length !== 2)) return [];
  const [m, d] = first.length + second.length === 4 ? ['MM', 'dd'] : ['M', 'd'];
  const y = 'y'.repeat(third.length);
  const found = [
    ...valid(`${d}${sign}${m}${sign}${y}`, third, second, first),
    ...(canStartWithMonth ? valid(`${m}${sign}${d}${sign}${y}`, third, first, second) : []),
  ];
  if (third.length === 4 || first.length === 1) return found;
  return [...found, ...valid(`yy${sign}${m}${sign}${d}`, first, second, third)];
}

function named(format: string, year: string, month: string, day: string): DateCandidate[] {
  const number = monthOf(month);
  if (number === undefined) return [];
  const isLong = isLongMonth(month) && month.length > 3;
  return valid(isLong ? format.replace('MMM', 'MMMM') : format, year, String(number), day);
}

/** Instruments have no other dates. 1899 is the zero of spreadsheets. */
const [MIN_YEAR, MAX_YEAR] = [1899, 2100];

function valid(format: string, year: string, month: string, day: string): DateCandidate[] {
  // Two digits are 1961 to 2060, as in luxon.
  const y = year.length === 4 ? Number(year) : Number(year) + (Number(year) > 60 ? 1900 : 2000);
  const m = Number(month);
  const d = Number(day);
  // `2.1.1015` is a version.
  const isYear = y >= MIN_YEAR && y <= MAX_YEAR;
  return isYear && isDay(y, m, d) ? [{ format, iso: `${String(y).padStart(4, '0')}-${pad(m)}-${pad(d)}` }] : [];
}

export const isDay = (year: number, month: number, day: number): boolean =>
  month >= 1 && month <= 12 && day >= 1 && day <= new Date(Date.UTC(year, month, 0)).getUTCDate();

export const pad = (n: number): string => (n < 10 ? `0${n}` : `${n}`);

/**
 * Zone abbreviations in hours from UTC. Only those that mean one zone in practice:
 * `IST` is India, Ireland and Israel, and needs `dates.zone`.
 */
const HOURS: Readonly<Record<string, number>> = {
  ...{ UTC: 0, GMT: 0, WET: 0, WEST: 1, BST: 1, CET: 1, CEST: 2, MEZ: 1, MESZ: 2, EET: 2, EEST: 3, MSK: 3 },
  ...{ AST: -4, ADT: -3, EST: -5, EDT: -4, CST: -6, CDT: -5, MST: -7, MDT: -6, PST: -8, PDT: -7 },
  ...{ AKST: -9, AKDT: -8, HST: -10, JST: 9, KST: 9, SGT: 8, HKT: 8, AWST: 8, ACST: 9.5, ACDT: 10.5 },
  ...{ AEST: 10, AEDT: 11, NZST: 12, NZDT: 13 },
};

/** luxon knows other zones by some of these: `BST` is Bangladesh there. */
const ABBREVIATION = /^[A-Z]{3,5}$/;

/** Replaces a zone abbreviation with its offset, `+01:00`. Undefined if there is no known one. */
export function abbreviationToOffset(text: string): string | undefined {
  let isFound = false;
  const written = text.replace(/\b[A-Z]{3,4}\b/g, (word) => {
    const hours = HOURS[word];
    isFound ||= hours !== undefined;
    return hours === undefined ? word : offsetOf(Math.round(hours * 60));
  });
  return isFound ? written : undefined;
}

function offsetOf(minutes: number): string {
  const [hours, rest] = [Math.floor(Math.abs(minutes) / 60), Math.abs(minutes) % 60];
  return `${minutes < 0 ? '-' : '+'}${pad(hours)}:${pad(rest)}`;
}

/** Reads a zone as files name it: `Europe/Zurich`, `CEST`, `UTC+2`, `+02:00`. */
export function parseZone(written: string): string | undefined {
  const text = written.trim();
  const [, sign, hours = '', minutes = '0'] = /^(?:UTC|GMT)? ?([+-])(\d{1,2})(?::?([0-5]\d))?$/i.exec(text) ?? [];
  const known = HOURS[text];
  if (sign !== undefined || known !== undefined) {
    const total = known === undefined ? Number(hours) * 60 + Number(minutes) : Math.round(known * 60);
    return `UTC${offsetOf(sign === '-' ? -total : total)}`;
  }
  return !ABBREVIATION.test(text) && IANAZone.isValidZone(text) ? text : undefined;
}

/** Whether a zone that luxon read is not one of the ambiguous abbreviations. */
export const isUnambiguousZone = (name: string | null): boolean => name === 'UTC' || !ABBREVIATION.test(name ?? '');

/** Words in dates: months, weekdays and halves of the day, in the languages in which instruments write them. */

const ENGLISH_MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);
const ENGLISH_DAYS = 'Sunday Monday Tuesday Wednesday Thursday Friday Saturday'.split(' ');

/** From January: English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish, each also as abbreviated. */
const MONTHS = numbered([
  'january jan januar januari janvier janv enero ene gennaio gen janeiro',
  'february feb februar februari février fevrier févr fevr fév fev febrero febbraio fevereiro',
  'march mar märz maerz mrz mär mars marzo março marco maart mrt',
  'april apr avril avr abril abr aprile',
  'may mai mayo maggio mag maio mei maj',
  'june jun juni juin junio giugno giu junho',
  'july jul juli juillet juil julio luglio lug julho',
  'august aug août aout aoû agosto ago augustus augusti',
  'september sept sep septembre septiembre setiembre settembre set setembro',
  'october oct oktober okt octobre octubre ottobre ott outubro out',
  'november nov novembre noviembre novembro',
  'december dec dezember dez décembre decembre déc diciembre dic dicembre dezembro',
]);

/** From Sunday, in the same languages. Without `mar` and others that are also months. */
const WEEKDAYS = numbered([
  'sunday sun sonntag so dimanche dim domingo domenica dom zondag zo söndag sön 日曜日 星期日',
  'monday mon montag mo lundi lunes lunedì lun segunda-feira maandag måndag mån 月曜日 星期一',
  'tuesday tues tue dienstag di mardi martes martedì terça-feira dinsdag tisdag tis 火曜日 星期二',
  'wednesday wed mittwoch mi mercredi miércoles mié mercoledì mer quarta-feira woensdag wo onsdag ons 水曜日 星期三',
  'thursday thurs thu donnerstag do jeudi jeu jueves jue giovedì gio quinta-feira donderdag torsdag tors 木曜日 星期四',
  'friday fri freitag fr vendredi viernes vie venerdì ven sexta-feira vrijdag vr fredag fre 金曜日 星期五',
  'saturday satur sat samstag sa samedi sam sábado sáb sabato sab zaterdag za lördag lör 土曜日 星期六',
]);

function numbered(names: readonly string[]): ReadonlyMap<string, number> {
  return new Map(names.flatMap((each, n) => each.split(' ').map((name) => [name, n] as const)));
}

const folded = (word: string): string => word.normalize('NFC').toLowerCase().replace(/\.$/, '');

/** From 1. */
export function monthOf(word: string): number | undefined {
  const month = MONTHS.get(folded(word));
  return month === undefined ? undefined : month + 1;
}

const isLongMonth = (word: string): boolean => ENGLISH_MONTHS.some((name) => name.toLowerCase() === folded(word));

/** A weekday at the beginning, before a digit or a month: its number from Sunday, and what it is written with. */
function leadingWeekday(text: string): { day: number; word: string; gap: string } | undefined {
  const [, word = '', gap = ''] = /^([\p{L}-]{2,13}\.?)(,? )(?=\d|\p{L}{3,10}\.? \d)/u.exec(text) ?? [];
  const day = WEEKDAYS.get(folded(word));
  return day === undefined ? undefined : { day, word, gap };
}

/** `2022- 3-30` as `2022-3-30`: digits that are padded with blanks. */
export const withoutPadding = (text: string): string =>
  text.includes(' ') ? text.replace(/(?<=\d[/.:-]) +(?=\d(?!\d))/g, '') : text;

/** `p.m.`, `P. M.` as `PM`; also `午後` and `下午`, which stand before the time. */
export function withPlainHalf(text: string): string {
  const plain = text.replace(
    /(\d ?)([ap])\.? ?m\.?(?!\p{L})/giu,
    (_, before: string, half: string) => `${before}${half}M`,
  );
  return plain.replace(
    /(午前|上午|午後|下午) ?(\d{1,2}:\d[\d:.,]*)/,
    (_, half: string, clock: string) => `${clock} ${half === '午前' || half === '上午' ? 'AM' : 'PM'}`,
  );
}

/** The words of a date in English, as luxon reads them: long for `MMMM` and `EEEE` in the format, else short. */
export function withEnglishWords(text: string, format: string): string {
  const weekday = format.includes('E') ? leadingWeekday(text) : undefined;
  const day = ENGLISH_DAYS[weekday?.day ?? -1];
  const rest = weekday && day ? text.slice(weekday.word.length) : text;
  const start = day === undefined ? '' : format.includes('EEEE') ? day : day.slice(0, 3);
  if (!format.includes('MMM')) return start + rest;
  // The dot of an abbreviation: `4 janv. 2024`.
  const words = format.includes('MMM.')
    ? /(?<!\p{L})\p{L}{3,10}(?!\p{L})/gu
    : /(?<!\p{L})\p{L}{3,10}(?!\p{L})(?:\.(?= |$))?/gu;
  return (
    start +
    rest.replace(words, (word) => {
      const english = ENGLISH_MONTHS[(monthOf(word) ?? 0) - 1];
      return english === undefined ? word : format.includes('MMMM') ? english : english.slice(0, 3);
    })
  );
}
