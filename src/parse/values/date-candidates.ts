import { IANAZone } from 'luxon';

/** One interpretation of a text as a date: the format and the date. */
export interface DateCandidate {
  readonly format: string;
  readonly iso: string;
}

const TIME = String.raw`(\d{1,2}):(\d\d)(?::(\d\d)(?:([.,])(\d{1,9}))?)?(?:( ?)([AP]M))?`;
const DAY = String.raw`(\d{1,4})([/.-])(\d{1,2})\2(\d{1,4})`;
const NAMED_DAY = String.raw`(\d{1,2})([ /.-])([A-Z]{3,9})\2(\d{4}|\d\d)`;
const YEAR_FIRST_DAY = String.raw`(\d{4})([ /.-])([A-Z]{3,9})\2(\d{1,2})`;
const US_DAY = String.raw`([A-Z]{3,9}) (\d{1,2})(,?) (\d{4})`;

const NUMERIC = new RegExp(`^${DAY}$`);
const NAMED = new RegExp(`^${NAMED_DAY}$`, 'i');
const NAMED_YEAR_FIRST = new RegExp(`^${YEAR_FIRST_DAY}$`, 'i');
const NAMED_US = new RegExp(`^${US_DAY}$`, 'i');
const CLOCK = new RegExp(`^${TIME}$`, 'i');
/** As `ctime` of the C library writes it: `Mar 15 16:22:41 2019`. */
const CTIME = /^([A-Z]{3} \d{1,2}) (\d\d:\d\d:\d\d) (\d{4})$/i;
const MONTHS = ['jan', 'feb', 'mar', 'apr', 'may', 'jun', 'jul', 'aug', 'sep', 'oct', 'nov', 'dec'];
const LONG_MONTHS = 'january february march april may june july august september october november december'.split(' ');

/**
 * All interpretations of a text as a date, by the common orders of day, month and year.
 * None: not a date. Several that differ: ambiguous, and must not be guessed.
 */
export function dateCandidates(written: string): DateCandidate[] {
  const whole = written.trim().replace(/\s+/g, ' ');
  if (whole.length < 6 || whole.length > 50) return [];
  if (COMPACT.test(whole)) return compactCandidates(whole);
  const [weekday, rest] = takeWeekday(whole);
  const { text, zone } = takeZone(rest);
  if (!/^\p{L}*\d|^\p{L}+ \d/u.test(text)) return [];
  const found = CTIME.test(text) ? ctimeCandidates(text) : momentCandidates(text);
  if (weekday === '' && zone === undefined) return found;
  return found
    .filter(({ iso }) => zone === undefined || iso.includes('T'))
    .map(({ format, iso }) => ({
      format: weekday + (zone === undefined ? format : withZone(format)),
      iso: iso + (zone ?? ''),
    }));
}

/** Splits off an unambiguous zone abbreviation, as an offset: `14:31:40 CEST`. */
function takeZone(text: string): { text: string; zone?: string | undefined } {
  const [, before = '', name = '', after = ''] = /^(.*\d(?: ?[AP]M)?) ([A-Z]{3,4})( \d{4})?$/.exec(text) ?? [];
  const zone = name === '' ? undefined : abbreviationToOffset(name);
  return zone === undefined ? { text } : { text: before + after, zone };
}

const withZone = (format: string): string =>
  / yyyy$/.test(format) ? format.replace(/ yyyy$/, ' z yyyy') : `${format} z`;

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
  return dayCandidates(day).flatMap(({ format, iso }) => {
    // If a day can have one digit, so can the hour.
    const time = clock === undefined ? { format: '', iso: '' } : readClock(clock, /dd/.test(format));
    if (!time) return [];
    const parts = isTimeFirst ? [time.format, format] : [format, time.format];
    return [{ format: parts.join(gap), iso: iso + time.iso }];
  });
}

const COMPACT = /^(?:19|20)\d{6}([ _-])\d{6}$/;

/** `20231120 163016`: two groups of digits. */
function compactCandidates(text: string): DateCandidate[] {
  const [, year = '', month = '', day = '', gap = '', h = '', m = '', s = ''] =
    /^(\d{4})(\d\d)(\d\d)(.)(\d\d)(\d\d)(\d\d)$/.exec(text) ?? [];
  if (!isDay(Number(year), Number(month), Number(day)) || h > '23' || m > '59' || s > '59') return [];
  return [{ format: `yyyyMMdd${gap}HHmmss`, iso: `${year}-${month}-${day}T${h}:${m}:${s}` }];
}

/** Splits off a leading weekday, as its format: `Friday, `, `Mon `. */
function takeWeekday(text: string): [format: string, rest: string] {
  const [all, name = '', gap = ''] =
    /^((?:mon|tues?|wed(?:nes)?|thu(?:rs)?|fri|sat(?:ur)?|sun)(?:day)?)(,? )/i.exec(text) ?? [];
  return all === undefined ? ['', text] : [`${name.length === 3 ? 'EEE' : 'EEEE'}${gap}`, text.slice(all.length)];
}

/** `isTimeFirst`: `00:30:00 21/Nov/2025`. */
function splitMoment(text: string): { day: string; gap: string; clock?: string | undefined; isTimeFirst?: boolean } {
  const [, earlier, gap = '', rest] = /^(\d{1,2}:\S+(?: [AP]M)?)( (?:on )?)(.+)$/i.exec(text) ?? [];
  if (earlier !== undefined && rest !== undefined) return { day: rest, gap, clock: earlier, isTimeFirst: true };
  const [, day = text, joint = '', clock] = /^(.+?)(, | at | |T)(\d{1,2}:.+)$/.exec(text) ?? [];
  return { day, gap: joint === 'T' ? "'T'" : joint, clock };
}

function readClock(clock: string, isPadded: boolean): DateCandidate | undefined {
  const [, hour = '', minute = '', second, mark, fraction, gap = '', half] = CLOCK.exec(clock) ?? [];
  const h = Number(hour);
  if (hour === '' || Number(minute) > 59 || Number(second ?? 0) > 59) return undefined;
  if (half === undefined ? h > 23 : h < 1 || h > 12) return undefined;
  const letter = half === undefined ? 'H' : 'h';
  const seconds = second === undefined ? '' : ':ss';
  const fractions = fraction === undefined ? '' : `${mark}${fraction.length === 3 ? 'SSS' : 'u'}`;
  const hour24 = half === undefined ? h : (h % 12) + (/p/i.test(half) ? 12 : 0);
  return {
    format: `${letter.repeat(isPadded ? hour.length : 1)}:mm${seconds}${fractions}${half === undefined ? '' : `${gap}a`}`,
    iso: `T${pad(hour24)}:${minute}:${second ?? '00'}${fraction === undefined ? '' : `.${fraction}`}`,
  };
}

function dayCandidates(day: string): DateCandidate[] {
  const [, first = '', sign = '', second = '', third = ''] = NUMERIC.exec(day) ?? [];
  if (first !== '') return numericCandidates(first, sign, second, third);
  const [, dayOfMonth = '', joint = '', month = '', year = ''] = NAMED.exec(day) ?? [];
  if (dayOfMonth !== '') {
    const written = `${'d'.repeat(dayOfMonth.length)}${joint}MMM${joint}${'y'.repeat(year.length)}`;
    const found = named(written, year, month, dayOfMonth);
    if (year.length === 4 || dayOfMonth.length === 1) return found;
    return [...found, ...named(`yy${joint}MMM${joint}dd`, dayOfMonth, month, year)];
  }
  const [, firstYear = '', between = '', name = '', last = ''] = NAMED_YEAR_FIRST.exec(day) ?? [];
  if (firstYear !== '') return named(`yyyy${between}MMM${between}${'d'.repeat(last.length)}`, firstYear, name, last);
  const [, usMonth = '', usDay = '', comma = '', usYear = ''] = NAMED_US.exec(day) ?? [];
  return named(`MMM ${'d'.repeat(usDay.length)}${comma} yyyy`, usYear, usMonth, usDay);
}

function numericCandidates(first: string, sign: string, second: string, third: string): DateCandidate[] {
  if (first.length === 4) {
    const [m, d] = second.length + third.length === 4 ? ['MM', 'dd'] : ['M', 'd'];
    return third.length > 2 ? [] : valid(`yyyy${sign}${m}${sign}${d}`, first, second, third);
  }
  if (first.length > 2 || (third.length !== 4 && third.length !== 2)) return [];
  const [m, d] = first.length + second.length === 4 ? ['MM', 'dd'] : ['M', 'd'];
  const y = 'y'.repeat(third.length);
  const found = [
    ...valid(`${d}${sign}${m}${sign}${y}`, third, second, first),
    ...valid(`${m}${sign}${d}${sign}${y}`, third, first, second),
  ];
  if (third.length === 4 || first.length === 1) return found;
  return [...found, ...valid(`yy${sign}${m}${sign}${d}`, first, second, third)];
}

function named(format: string, year: string, month: string, day: string): DateCandidate[] {
  const name = month.toLowerCase();
  const long = LONG_MONTHS.indexOf(name);
  const index = long >= 0 ? long : MONTHS.indexOf(name);
  if (index < 0) return [];
  const isLong = long >= 0 && !MONTHS.includes(name);
  return valid(isLong ? format.replace('MMM', 'MMMM') : format, year, String(index + 1), day);
}

function valid(format: string, year: string, month: string, day: string): DateCandidate[] {
  // Two digits are 1961 to 2060, as in luxon.
  const y = year.length === 4 ? Number(year) : Number(year) + (Number(year) > 60 ? 1900 : 2000);
  const m = Number(month);
  const d = Number(day);
  return isDay(y, m, d) ? [{ format, iso: `${String(y).padStart(4, '0')}-${pad(m)}-${pad(d)}` }] : [];
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
