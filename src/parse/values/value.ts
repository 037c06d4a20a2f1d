import type { ValueType } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { Value } from '../../model.js';
import { quoted } from '../lines.js';
import type { DateReader } from './date.js';
import { dateCandidates } from './date-candidates.js';
import { bareUnit, isUnit } from './unit.js';

export interface ValueReader {
  /** What a cell or a fact means, by its looks: no value, a date, a number, a number with a unit, else text. */
  read(text: string): Value;
  readonly numbers: NumberReader;
  readonly dates: DateReader;
  readonly missing: ReadonlySet<string>;
}

interface ReaderParts {
  readonly numbers: NumberReader;
  readonly dates: DateReader;
  /** Texts that mean no value. */
  readonly missing: readonly string[];
}

/** An empty cell: there is no value, and nothing is written. */
export const EMPTY: Value = Object.freeze({ value: null, text: '' });

export function createValueReader(parts: ReaderParts): ValueReader {
  const { numbers, dates } = parts;
  const missing = new Set(parts.missing);

  function read(written: string): Value {
    const text = written.trim();
    if (text === '') return EMPTY;
    if (missing.has(text)) return { value: null, text };
    const date = dates.read(text);
    if (date !== undefined) return { value: date, text };
    const number = numbers.read(text);
    if (number !== undefined) return { value: number, text };
    return (
      readQuantity(text, numbers) ??
      (isCensored(text, numbers) ? { value: null, text } : { value: text, text })
    );
  }

  return { read, numbers, dates, missing };
}

/** `12.4 mg`: a number and a known unit. `1A` and `3C` are wells, so one letter needs a blank before it. */
export function readQuantity(text: string, numbers: NumberReader): Value | undefined {
  if (text.length > MAX_QUANTITY_LENGTH) return undefined;
  const [, sign = '', digits = '', gap = '', unit = ''] = QUANTITY.exec(text) ?? [];
  // A single letter in brackets is a remark: `12.5 (a)`.
  if (unit === '' || (gap === '' && /^[A-Za-z]$/.test(unit)) || /^\([A-Za-z]\)$/.test(unit)) return undefined;
  const value = numbers.read(sign + digits);
  const bare = bareUnit(unit) ?? '';
  return value === undefined || !isUnit(bare) ? undefined : { value, text, unit: bare };
}

/** A longer text is a remark, and would only be searched in vain. */
const MAX_QUANTITY_LENGTH = 60;
/** Balances print the sign in a column of its own: `+   12.40315 g`. */
const QUANTITY = /^([+\-−]?)\s*([\d.,][\d.,'’]*(?:[eE][+-]?\d+)?)(\s*)(\D.*|(?<=\s)1\/.+)$/;

/** `< 20.00`, `>3.5 mg`: beyond what the instrument can tell. */
function isCensored(text: string, numbers: NumberReader): boolean {
  const [, limit] = /^[<>≤≥]=?\s*(\S.*)$/.exec(text) ?? [];
  if (limit === undefined) return false;
  return numbers.read(limit) !== undefined || readQuantity(limit, numbers) !== undefined;
}

/** Why a value is not what the mapping says it is, and the line of the mapping that would settle it. */
interface Unreadable {
  readonly problem: string;
  readonly hint: string;
}

/** Reads a value as what the mapping says that it is. What it is not is told, never passed on as something else. */
export function readTyped(
  written: string,
  type: ValueType,
  values: ValueReader,
  dates: DateReader,
): Value | Unreadable {
  const text = written.trim();
  if (text === '' || values.missing.has(text)) return { value: null, text };
  switch (type) {
    case 'text':
      return { value: text, text };
    case 'number':
      return readNumber(text, values);
    case 'date':
      return readDay(text, dates);
    case 'duration':
      return readDuration(text, values);
    case 'boolean':
      return readBoolean(text);
  }
}

export const isUnreadable = (read: Value | Unreadable): read is Unreadable => 'problem' in read;

function readNumber(text: string, values: ValueReader): Value | Unreadable {
  const value = values.numbers.read(text);
  if (value !== undefined) return { value, text };
  const quantity = readQuantity(text, values.numbers);
  if (quantity) return quantity;
  if (values.read(text).value === null) return { value: null, text };
  return values.numbers.isAmbiguous(text) ? ambiguousNumber(text) : notA('a number', text);
}

/** Which marks would make a number of it. Both lines, where both would: only a person knows. */
export function ambiguousNumber(text: string): Unreadable {
  const commas = /,\d+$/.test(text) ? ['decimal: ","'] : [];
  const points = /\.\d+$/.test(text) ? ['decimal: "."'] : [];
  const group = /^[+\-−]?\d{1,3}(?:([.,' \u00a0\u202f’])\d{3})+(?!\d)/.exec(text)?.[1];
  const groups =
    group === undefined ? [] : [`thousands: "${group.trim() === '' ? ' ' : group.replace('’', "'")}"`];
  const lines = [...commas, ...points, ...groups].map((line) => `\`${line}\``).join(' or ');
  return {
    problem: `${quoted(text)} reads as more than one number, or as none`,
    hint: `say which: ${lines}`,
  };
}

function readDay(text: string, dates: DateReader): Value | Unreadable {
  const iso = dates.readAsDate(text);
  if (iso !== undefined) return { value: iso, text };
  const forms = dateCandidates(text);
  const days = [...new Set(forms.map((form) => form.iso.slice(0, 10)))];
  const formats = forms.length > 0 ? forms.map((form) => form.format) : ['dd/MM/yyyy HH:mm:ss'];
  const lines = [...new Set(formats)].map((format) => `\`dates: { format: ${format} }\``);
  return {
    problem: `${quoted(text)} ${days.length > 1 ? `can be ${days.join(' or ')}` : 'is not a date as dates.format says'}`,
    hint: `say how it is written: ${lines.join(' or ')}`,
  };
}

const CLOCK = /^(?:(\d+)(?:\.| days? |d ))?(\d+):([0-5]?\d):([0-5]?\d(?:[.,]\d+)?)$/;
const MINUTES = /^(\d+):([0-5]?\d[.,]\d+)$/;

/** In seconds, also beyond a day: `31:06:22`. `12:30` could be hours or minutes, and is not guessed. */
function readDuration(text: string, values: ValueReader): Value | Unreadable {
  const number = values.numbers.read(text);
  if (number !== undefined) return { value: number, text };
  const quantity = readQuantity(text, values.numbers);
  if (quantity) return quantity;
  const [, days = '0', hours, minutes = '0', seconds = '0'] = CLOCK.exec(text) ?? [];
  if (hours !== undefined) {
    return inSeconds(Number(days) * 86_400 + Number(hours) * 3600 + Number(minutes) * 60, seconds, text);
  }
  const [, onlyMinutes, rest = '0'] = MINUTES.exec(text) ?? [];
  if (onlyMinutes !== undefined) return inSeconds(Number(onlyMinutes) * 60, rest, text);
  return notA('a duration such as 0:05:30', text);
}

function inSeconds(whole: number, seconds: string, text: string): Value {
  const value = whole + Number(seconds.replace(',', '.'));
  return { value: Math.round(value * 1e6) / 1e6, text, unit: 's' };
}

const TRUE = new Set(['true', 'yes', 'on', 'y', '1']);
const FALSE = new Set(['false', 'no', 'off', 'n', '0']);

function readBoolean(text: string): Value | Unreadable {
  const word = text.toLowerCase();
  return TRUE.has(word) || FALSE.has(word) ? { value: TRUE.has(word), text } : notA('true or false', text);
}

const notA = (what: string, text: string): Unreadable => ({
  problem: `${quoted(text)} is not ${what}`,
  hint: `if it means no value: \`missing: [${JSON.stringify(text)}]\``,
});

/** How numbers are written in a file. */
export type NumberMarks = Pick<ParseOptions, 'decimal' | 'thousands'>;

export interface NumberReader {
  /** The number that the whole text is under the file's marks, or undefined. */
  read(text: string): number | undefined;
  /** Whether the text would be a number under other marks: `1,234`, `12,5`, `50.026.184`. */
  isAmbiguous(text: string): boolean;
}

const ESCAPED: Record<string, string> = { '.': '\\.', ',': ',', ' ': '[ \\u00a0\\u202f]', "'": "['’]" };

const ANY_MARKS =
  /^[+\-−]?(?:\d{1,3}(?:[.,' \u00a0\u202f’]\d{3})+(?:[.,]\d+)?|\d+[.,]\d+|\d+[.,]|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** The whole numbers beyond this lose digits when counted: serial numbers and barcodes, which stay text. */
const isExact = (value: number, text: string): boolean => Number.isSafeInteger(value) || /[.eE]/.test(text);

export function createNumberReader(marks: NumberMarks): NumberReader {
  const decimal = marks.decimal ?? (marks.thousands === '.' ? ',' : '.');
  const point = ESCAPED[decimal];
  const group = marks.thousands === undefined ? undefined : ESCAPED[marks.thousands];
  const whole = group === undefined ? '(?:0|[1-9]\\d*)' : `(?:0|[1-9]\\d{0,2}(?:${group}\\d{3})+|[1-9]\\d*)`;
  const shape = new RegExp(`^[+\\-−]?(?:${whole}(?:${point}\\d*)?|${point}\\d+)(?:[eE][+-]?\\d+)?$`);
  const groups = group === undefined ? undefined : new RegExp(group, 'g');

  function read(text: string): number | undefined {
    if (!mayBeNumber(text) || !shape.test(text)) return undefined;
    let digits = groups ? text.replace(groups, '') : text;
    if (decimal === ',') digits = digits.replace(',', '.');
    if (digits.charCodeAt(0) === MINUS_SIGN) digits = `-${digits.slice(1)}`;
    const value = Number(digits);
    return Number.isFinite(value) && isExact(value, digits) ? value : undefined;
  }

  return {
    read,
    isAmbiguous: (text) =>
      mayBeNumber(text) && !startsWithZeros(text) && !shape.test(text) && ANY_MARKS.test(text),
  };
}

const MINUS_SIGN = 0x2212;

/** Spares the regular expressions on the many cells that begin like no number does. */
function mayBeNumber(text: string): boolean {
  const first = text.charCodeAt(0);
  // 0-9, then + , - .
  return (first >= 48 && first <= 57) || (first >= 43 && first <= 46) || first === MINUS_SIGN;
}

/** `007`, `00.5`: text, under any marks. */
const startsWithZeros = (text: string): boolean => /^[+\-−]?0\d/.test(text);

/**
 * Numbers that a format itself writes with a point (JSON, sheets, JCAMP) get the mark under which all values are read,
 * so that a mapping with `decimal: ","` for its texts does not unmake them.
 */
export function createDecimalWriter({
  decimal,
  thousands,
}: Pick<ParseOptions, 'decimal' | 'thousands'>): (text: string) => string {
  const hasComma = decimal === ',' || (decimal === undefined && thousands === '.');
  return hasComma ? (text) => text.replace('.', ',') : (text) => text;
}
