import { FileError } from '../errors.js';
import type { Value } from '../model.js';
import { formatBytes, plural, singleLine } from '../text.js';

/**
 * How the mapping reads a date that is not ISO: the date; all formats that fit, where they make it different
 * days; nothing where it is no date.
 */
export type ReadDate = (
  text: string,
) => { readonly iso: string } | { readonly ambiguous: readonly string[] } | undefined;

/** Where the date was found: the template, the fact `date`, or the day on which the file was modified. */
export type DateOrigin = 'template' | 'fact' | 'modified';

interface DateSources {
  /** The filled-in template, where there is one. */
  readonly template: string | undefined;
  readonly fact: Value | undefined;
  readonly file: SourceFile;
  readonly readDate: ReadDate;
}

/** A day, alone or with something after it that is not a further digit. */
export const ISO_DATE = /^\d{4}-\d{2}-\d{2}(?!\d)/;

export const readIsoOnly: ReadDate = (text) => (ISO_DATE.test(text) ? { iso: text } : undefined);

/** The day of the run, as YYYY-MM-DD: always a real one, and never one that the file cannot know of. */
export function chooseDate({ template, fact, file, readDate }: DateSources): {
  date: string;
  dateFrom: DateOrigin;
} {
  const dateFrom = template !== undefined ? 'template' : saysSomething(fact) ? 'fact' : 'modified';
  const modified = localDay(file.modifiedMs);
  const written = dateFrom === 'template' ? template : dateFrom === 'fact' ? isoOrText(fact) : modified;
  const date = readDay((written ?? '').trim(), file, readDate);
  if (dayNumber(date) - dayNumber(modified) > 1) {
    throw new FileError(
      `the date ${date} lies more than a day after the file was last modified, on ${modified}`,
      {
        where: { file: file.path },
        hint: 'check the clocks of the instrument and of this machine, and how the date is read (parse.dates)',
      },
    );
  }
  return { date, dateFrom };
}

const saysSomething = (fact: Value | undefined): boolean =>
  fact !== undefined && fact.value !== null && fact.text.trim() !== '';

const isoOrText = (fact: Value | undefined): string | undefined =>
  typeof fact?.value === 'string' && ISO_DATE.test(fact.value) ? fact.value : fact?.text;

function readDay(text: string, file: SourceFile, readDate: ReadDate): string {
  const where = { file: file.path };
  if (text === '') {
    throw new FileError('the date is empty', {
      where,
      hint: 'say what to use then, for example {{ meta.Date | default: file.modified }}',
    });
  }
  const read = ISO_DATE.test(text) ? { iso: text } : readDate(text);
  if (read === undefined) {
    throw new FileError(`${JSON.stringify(text)} cannot be read as a date`, {
      where,
      hint: `say under parse how dates are written, for example ${formatLine('dd/MM/yyyy')}`,
    });
  }
  if ('ambiguous' in read) {
    const lines = new Set(read.ambiguous.map(formatLine));
    throw new FileError(`the date ${JSON.stringify(text)} can be read in more than one way`, {
      where,
      hint: `say under parse how dates are written: ${[...lines].join(' or ')}`,
    });
  }
  const day = read.iso.slice(0, 10);
  if (!ISO_DATE.test(day) || !isRealDay(day)) {
    throw new FileError(`the date ${JSON.stringify(text)} is no day of the calendar`, { where });
  }
  return day;
}

const formatLine = (format: string): string =>
  `dates: { format: ${/^[\w/.: -]+$/.test(format) ? format : JSON.stringify(format)} }`;

/** 2026-02-30 has the right form and makes a notebook fail. */
const isRealDay = (day: string): boolean => {
  const at = new Date(`${day}T00:00:00Z`);
  return !Number.isNaN(at.getTime()) && at.toISOString().startsWith(day) && day >= '1000';
};

const dayNumber = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 86_400_000;

/** By the machine's own calendar: an evening in America is not tomorrow. */
function localDay(ms: number): string {
  const at = new Date(ms);
  return new Date(Date.UTC(at.getFullYear(), at.getMonth(), at.getDate())).toISOString().slice(0, 10);
}

/** What the draft says of a file beside its content. */
export interface SourceFile {
  readonly name: string;
  /** The name without its extension. */
  readonly stem: string;
  readonly path: string;
  readonly size: number;
  readonly modifiedMs: number;
  readonly sha256: string;
  /** Of a run of several files: all of them, by their names in it. */
  readonly parts?: readonly SourcePart[] | undefined;
}

type SourcePart = Omit<SourceFile, 'stem' | 'path'>;

/** For people who look for the raw file: what they see of it in a listing. */
export const describeSource = ({ name, size, modifiedMs, parts }: SourcePart): string =>
  [
    singleLine(name),
    ...(parts ? [plural(parts.length, 'file')] : []),
    sizeOf(size),
    `modified ${localTime(modifiedMs).replace(/T(.{8})/, ' $1 ')}`,
  ].join(', ');

/** `1,234 bytes`, `12.3 MB (12,345,678 bytes)`. */
function sizeOf(bytes: number): string {
  const [short, exact] = [formatBytes(bytes), plural(bytes, 'byte')];
  return short === exact ? exact : `${short} (${exact})`;
}

/** In the machine's time zone, with its offset: `2026-03-04T10:11:12+01:00`. */
export function localTime(ms: number): string {
  const offset = -Math.round(new Date(ms).getTimezoneOffset());
  const there = new Date(ms + offset * 60_000).toISOString().slice(0, 19);
  const [hours, minutes] = [Math.floor(Math.abs(offset) / 60), Math.abs(offset) % 60];
  return `${there}${offset < 0 ? '-' : '+'}${two(hours)}:${two(minutes)}`;
}

const two = (n: number): string => String(n).padStart(2, '0');
