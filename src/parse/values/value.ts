import type { ValueType, Where } from '../../config/grammar.js';
import type { ParseOptions } from '../../config/vocabulary.js';
import type { Value } from '../../model.js';
import { quoted } from '../lines.js';
import { createDateReader, type DateOptions, type DateReader } from './date.js';
import { dateCandidates } from './date-candidates.js';
import { bareUnit, isUnit } from './unit.js';

export interface ValueReader {
  /** Reads a text by its appearance: missing, a date, a number, a number with a unit, or text. */
  read(text: string): Value;
  /** Reads texts as the type or date format that the mapping gives; without either, by their appearance. */
  typed(spec: Pick<Where, 'type' | 'format'>): (text: string) => Value | Unreadable;
  readonly numbers: NumberReader;
  readonly dates: DateReader;
  readonly missing: ReadonlySet<string>;
}

export const EMPTY: Value = Object.freeze({ value: null, text: '' });

export function createValueReader(
  options: Pick<ParseOptions, 'decimal' | 'thousands' | 'missing'>,
  dateOptions: DateOptions,
): ValueReader {
  const numbers = createNumberReader(options);
  const dates = createDateReader(dateOptions);
  const missing = new Set(options.missing);
  const reader: ValueReader = {
    numbers,
    dates,
    missing,
    read(written) {
      const text = written.trim();
      if (text === '') return EMPTY;
      if (missing.size > 0 && missing.has(text)) return { value: null, text };
      const date = dates.read(text);
      if (date !== undefined) return { value: date, text };
      if (startsWithLetter(text)) return { value: text, text };
      const number = numbers.read(text);
      if (number !== undefined) return { value: number, text };
      const [, shown] = SHOWN_AS_TEXT.exec(text) ?? [];
      if (shown !== undefined) return reader.read(shown);
      return readQuantity(text, numbers) ?? { value: isCensored(text, numbers) ? null : text, text };
    },
    typed({ type, format }) {
      if (type === undefined && format === undefined) return reader.read;
      const own = format ? createDateReader({ ...dateOptions, format }) : dates;
      return (text) => readTyped(text.trim(), type ?? 'date', reader, own);
    },
  };
  return reader;
}

/** `="0012"`: written so that spreadsheets do not drop the zeros. */
const SHOWN_AS_TEXT = /^="([^"]*)"$/;

/**
 * `12.4 mg`: a number and a known unit. `1A` and `3C` are wells, so a single letter needs a space before it, or a number
 * that cannot be part of a name: `0.251V`, `-1.2e-5A`. `5517.525N` is a latitude.
 */
export function readQuantity(text: string, numbers: NumberReader): Value | undefined {
  if (text.length > MAX_QUANTITY_LENGTH) return undefined;
  const match = QUANTITY.exec(text);
  if (!match) return undefined;
  const [, sign = '', digits = '', gap = '', unit = ''] = match;
  // A single letter in brackets is a remark: `12.5 (a)`.
  const isSure = () => /^[AVCKJ]$/.test(unit) && /\d[.,]\d{3,}$|\de[-+]?\d+$/i.test(digits);
  const isLetter = gap === '' && unit.length === 1 && /^[A-Za-z]$/.test(unit) && !isSure();
  if (unit === '' || isLetter || /^\([A-Za-z]\)$/.test(unit)) return undefined;
  // `5 min.`
  const bare = (bareUnit(unit) ?? '').replace(/(?<=\p{L}{2})\.$/u, '');
  const padded = () => (NO_CODE.test(bare) ? numbers.readPadded(sign + digits) : undefined);
  const value = numbers.read(sign + digits) ?? padded();
  return value === undefined || !isUnit(bare) ? undefined : { value, text, unit: bare };
}

/** `0012 mL/min`. A letter and a few words also stand behind codes and versions: `0815 A`, `01.10 rev`. */
const NO_CODE = /^(?!(?:rev|sq|div|days?)$)..|[%°]/i;

/** `007.25`, `00.5`: no day or month and hardly a version. */
export const isLongPadded = (text: string): boolean => LONG_PADDED.test(text);

const LONG_PADDED = /^[+\-−]?(?:0\d{2,}|00)[.,]\d+$/;

/** Longer texts are remarks and are not searched. */
const MAX_QUANTITY_LENGTH = 60;
/** Balances print the sign in a column of its own: `+   12.40315 g`. */
const QUANTITY = /^([+\-−]?)\s*([\d.,][\d.,'’]*(?:[eE][+-]?\d+)?)(\s*)(\D.*|(?<=\s)1\/.+)$/;

const CENSORED = /^[<>≤≥]=?\s*(\S.*)$/;

/** `< 20.00`, `>3.5 mg`: outside the range of the instrument. */
function isCensored(text: string, numbers: NumberReader): boolean {
  const limit = CENSORED.exec(text)?.[1];
  if (limit === undefined) return false;
  return numbers.read(limit) !== undefined || readQuantity(limit, numbers) !== undefined;
}

/** What codes are called: `12E5` of a lot or a well is not a number. */
export const isCodeName = (name: string): boolean => CODE_NAME.test(name) && !COUNTED.test(name);

const CODE_NAME =
  /(?<!\p{L})(?:s\/?n|serial|lot|batch|charge|id|bar ?code|code|well|plate|vial|rack|tube|sample|specimen|part|order|catalog(?:ue)?|cat|asset|ref)(?:[ _.]*(?:no|nr|number|id|code|name|position|pos|#))*[.:]?$/iu;

/** `Cells per well` */
const COUNTED = /(?<!\p{L})(?:per|in|of)(?!\p{L})/iu;

/** Programs write a point or a sign in an exponent. */
export const EXPONENT_ONLY = /^\d+[eE]\d+$/;

/** Why a text is not a value of the given type, and what to write into the mapping. */
interface Unreadable {
  readonly problem: string;
  readonly hint: string;
}

export const isUnreadable = (read: Value | Unreadable): read is Unreadable => 'problem' in read;

function readTyped(text: string, type: ValueType, values: ValueReader, dates: DateReader) {
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

function readNumber(text: string, { numbers, read }: ValueReader): Value | Unreadable {
  const value = numbers.read(text);
  if (value !== undefined) return { value, text };
  const quantity = readQuantity(text, numbers);
  if (quantity) return quantity;
  if (read(text).value === null) return { value: null, text };
  return numbers.isAmbiguous(text) ? ambiguousNumber(text) : notA('a number', text);
}

/** Lists every setting under which the text would be a number. */
export function ambiguousNumber(text: string): Unreadable {
  const commas = /,\d+$/.test(text) ? ['decimal: ","'] : [];
  const points = /\.\d+$/.test(text) ? ['decimal: "."'] : [];
  const group = /^[+\-−]?\d{1,3}(?:([.,' \u00a0\u202f’])\d{3})+(?!\d)/.exec(text)?.[1];
  const groups = group === undefined ? [] : [`thousands: "${group.trim() === '' ? ' ' : group.replace('’', "'")}"`];
  const choices = [...commas, ...points, ...groups].map((choice) => `\`${choice}\``).join(' or ');
  return { problem: `${quoted(text)} is an ambiguous number`, hint: `choose one: ${choices}` };
}

function readDay(text: string, dates: DateReader): Value | Unreadable {
  const iso = dates.readAsDate(text);
  if (iso !== undefined) return { value: iso, text };
  const candidates = dateCandidates(text);
  const days = [...new Set(candidates.map((candidate) => candidate.iso.slice(0, 10)))];
  const formats = candidates.length > 0 ? candidates.map(({ format }) => format) : ['dd/MM/yyyy HH:mm:ss'];
  const choices = [...new Set(formats)].map((format) => `\`dates: { format: ${format} }\``);
  return {
    problem: `${quoted(text)} ${days.length > 1 ? `can be ${days.join(' or ')}` : 'does not match `dates.format`'}`,
    hint: `specify its format: ${choices.join(' or ')}`,
  };
}

const CLOCK = /^(?:(\d+)(?:\.| days? |d ))?(\d+):([0-5]?\d):([0-5]?\d(?:[.,]\d+)?)$/;
const MINUTES = /^(\d+):([0-5]?\d[.,]\d+)$/;

/** In seconds; can exceed a day: `31:06:22`. `12:30` can be hours or minutes and is not guessed. */
function readDuration(text: string, { numbers }: ValueReader): Value | Unreadable {
  const number = numbers.read(text);
  if (number !== undefined) return { value: number, text };
  const quantity = readQuantity(text, numbers);
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

export type NumberMarks = Pick<ParseOptions, 'decimal' | 'thousands'>;

export interface NumberReader {
  /** The number, if the whole text is one under the file's marks. */
  read(text: string): number | undefined;
  /** The number with leading zeros, which without evidence is a code or a version: `007.25`, `0012`. */
  readPadded(text: string): number | undefined;
  /** Whether the text would be a number under other marks: `1,234`, `12,5`, `50.026.184`. */
  isAmbiguous(text: string): boolean;
}

const ESCAPED: Record<string, string> = { '.': '\\.', ',': ',', ' ': '[ \\u00a0\\u202f]', "'": "['’]" };

const ANY_MARKS =
  /^[+\-−]?(?:\d{1,3}(?:[.,' \u00a0\u202f’]\d{3})+(?:[.,]\d+)?|\d+[.,]\d+|\d+[.,]|[.,]\d+)(?:[eE][+-]?\d+)?$/;

/** A constant, as in other functions that see every cell: a literal makes a new object whenever it is evaluated. */
const FRACTION = /[.eE]/;

/** Larger integers lose digits as numbers: they are serial numbers and barcodes, and stay text. */
const isExact = (value: number, text: string): boolean =>
  Number.isSafeInteger(value) || !Number.isInteger(value) || FRACTION.test(text);

const hasDecimalComma = ({ decimal, thousands }: NumberMarks): boolean =>
  decimal === ',' || (decimal === undefined && thousands === '.');

export function createNumberReader(marks: NumberMarks): NumberReader {
  const isComma = hasDecimalComma(marks);
  const point = isComma ? ',' : '\\.';
  const group = marks.thousands === undefined ? undefined : ESCAPED[marks.thousands];
  const whole = group === undefined ? '(?:0|[1-9]\\d*)' : `(?:0|[1-9]\\d{0,2}(?:${group}\\d{3})+|[1-9]\\d*)`;
  // Numbers of constant width have a sign or many decimals. Codes and versions, `007` and `01.10`, have neither.
  const padded = `(?:(?<=[+\\-−])0\\d+${point}\\d+|0\\d+${point}\\d{6,})`;
  const shape = new RegExp(`^[+\\-−]?(?:${whole}(?:${point}\\d*)?|${point}\\d+|${padded})(?:[eE][+-]?\\d+)?$`);
  const paddedShape = new RegExp(`^[+\\-−]?0\\d{1,14}(?:${point}\\d+)?$`);
  const groups = group === undefined ? undefined : new RegExp(group, 'g');
  const mark = isComma ? COMMA : POINT;
  return {
    read(text) {
      if (!mayBeNumber(text)) return undefined;
      const plain = readPlain(text, mark);
      if (plain !== undefined) return plain;
      if (!shape.test(text)) return undefined;
      let digits = groups ? text.replace(groups, '') : text;
      if (isComma) digits = digits.replace(',', '.');
      if (digits.charCodeAt(0) === MINUS_SIGN) digits = `-${digits.slice(1)}`;
      const value = Number(digits);
      return Number.isFinite(value) && isExact(value, digits) ? value : undefined;
    },
    readPadded: (text) => (paddedShape.test(text) ? Number(text.replace(',', '.').replace('−', '-')) : undefined),
    isAmbiguous: (text) => mayBeNumber(text) && !startsWithZeros(text) && !shape.test(text) && ANY_MARKS.test(text),
  };
}

const MINUS_SIGN = 0x2212;
const HYPHEN = 45;
const COMMA = 44;
const POINT = 46;
const ZERO = 48;

/** With at most 15 digits, both the integer and the power of ten are exact, so that the quotient is rounded only once. */
const MAX_PLAIN_LENGTH = 15;
const POWERS_OF_TEN = Array.from({ length: MAX_PLAIN_LENGTH }, (_, n) => Number(`1e${n}`));

/** The forms that nearly all numbers have, such as `-12.50`: several times as fast as a regular expression and `Number`. */
function readPlain(text: string, mark: number): number | undefined {
  const { length } = text;
  const start = text.charCodeAt(0) === HYPHEN ? 1 : 0;
  if (length > MAX_PLAIN_LENGTH || start === length) return undefined;
  let integer = 0;
  let markAt = length;
  for (let at = start; at < length; at++) {
    const code = text.charCodeAt(at);
    if (code >= ZERO && code <= ZERO + 9) integer = integer * 10 + code - ZERO;
    else if (code === mark && at > start && markAt === length) markAt = at;
    else return undefined;
  }
  const isPadded = text.charCodeAt(start) === ZERO && markAt > start + 1;
  if (isPadded) return undefined;
  const value = markAt === length ? integer : integer / (POWERS_OF_TEN[length - 1 - markAt] ?? Number.NaN);
  return start === 1 ? -value : value;
}

/** No number, quantity or limit does. Names of samples and wells do. */
export function startsWithLetter(text: string): boolean {
  const first = text.charCodeAt(0) | 32;
  return first >= 97 && first <= 122;
}

/** Saves the regular expressions for the many cells that cannot be numbers. */
function mayBeNumber(text: string): boolean {
  const first = text.charCodeAt(0);
  // 0-9, then + , - .
  return (first >= 48 && first <= 57) || (first >= 43 && first <= 46) || first === MINUS_SIGN;
}

/** `007` and `00.5` are not ambiguous: they are text under any marks. */
const startsWithZeros = (text: string): boolean => /^[+\-−]?0\d/.test(text);

/**
 * Writes numbers of formats that always use a decimal point (JSON, workbooks, JCAMP) with the decimal mark of the
 * mapping, so that `decimal: ","`, which is meant for the file's texts, does not make them text.
 */
export const createDecimalWriter = (marks: NumberMarks): ((text: string) => string) =>
  hasDecimalComma(marks) ? (text) => text.replace('.', ',') : (text) => text;
