import { type Liquid, filters as standard, toValue } from 'liquidjs';
import { ISO_DATE, type ReadDate } from './date.js';
import { scopeIn } from './view.js';
import { textIn, Written } from './written.js';

const NAMES = ['date', 'date_to_xmlschema', 'date_to_rfc822', 'date_to_string', 'date_to_long_string'];

/** Liquid reads `03/04/2026` as an American would. Here a date is ISO, or what the mapping says, or stays a text. */
export function addDateFilters(engine: Liquid, readDate: ReadDate): void {
  for (const name of NAMES) {
    const format = standard[name];
    if (typeof format !== 'function') continue;
    engine.registerFilter(name, function (value: unknown, ...rest: unknown[]) {
      if (typeof toValue(value) === 'number') return format.call(this, value, ...rest);
      const { now } = scopeIn(this.context.environments);
      const moment = ['now', 'today'].includes(textIn(value)) ? now : momentOf(value, readDate);
      return moment === undefined ? value : format.call(this, moment, ...rest);
    });
  }
}

/** A time that every JavaScript reads alike; nothing where the value is none. */
function momentOf(value: unknown, readDate: ReadDate): string | undefined {
  const iso = isoOf(value, readDate);
  if (iso === undefined) return undefined;
  // A day alone would be midnight in Greenwich, and so the day before in America.
  const moment = `${iso.slice(0, 10)}T${iso.slice(11) || '00:00:00'}`;
  return Number.isNaN(Date.parse(moment)) ? undefined : moment;
}

function isoOf(value: unknown, readDate: ReadDate): string | undefined {
  if (value instanceof Written && typeof value.value === 'string' && ISO_DATE.test(value.value))
    return value.value;
  const text = textIn(value).trim();
  if (ISO_DATE.test(text)) return text;
  const read = readDate(text);
  return read && 'iso' in read ? read.iso : undefined;
}
