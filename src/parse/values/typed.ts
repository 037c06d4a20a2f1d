import type { ValueType } from '../../config/grammar.js';
import type { Value } from '../../model.js';
import { quote } from '../refuse.js';
import type { DateReader } from './date.js';
import { dateForms } from './date-forms.js';
import { readQuantity, type ValueReader } from './value.js';

/** Why a value is not what the mapping says it is, and the line of the mapping that would settle it. */
export interface Unreadable {
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
  return values.numbers.isSuspect(text) ? doubtfulNumber(text) : notA('a number', text);
}

/** Which marks would make a number of it. Both lines, where both would: only a person knows. */
export function doubtfulNumber(text: string): Unreadable {
  const commas = /,\d+$/.test(text) ? ['decimal: ","'] : [];
  const points = /\.\d+$/.test(text) ? ['decimal: "."'] : [];
  const group = /^[+\-−]?\d{1,3}(?:([.,' \u00a0\u202f’])\d{3})+(?!\d)/.exec(text)?.[1];
  const groups =
    group === undefined ? [] : [`thousands: "${group.trim() === '' ? ' ' : group.replace('’', "'")}"`];
  const lines = [...commas, ...points, ...groups].map((line) => `\`${line}\``).join(' or ');
  return { problem: `${quote(text)} reads as more than one number, or as none`, hint: `say which: ${lines}` };
}

function readDay(text: string, dates: DateReader): Value | Unreadable {
  const iso = dates.readAsDate(text);
  if (iso !== undefined) return { value: iso, text };
  const forms = dateForms(text);
  const days = [...new Set(forms.map((form) => form.iso.slice(0, 10)))];
  const formats = forms.length > 0 ? forms.map((form) => form.format) : ['dd/MM/yyyy HH:mm:ss'];
  const lines = [...new Set(formats)].map((format) => `\`dates: { format: ${format} }\``);
  return {
    problem: `${quote(text)} ${days.length > 1 ? `can be ${days.join(' or ')}` : 'is not a date as dates.format says'}`,
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
  problem: `${quote(text)} is not ${what}`,
  hint: `if it means no value: \`missing: [${JSON.stringify(text)}]\``,
});
