import type { Value } from '../../model.js';
import type { DateReader } from './date.js';
import type { NumberReader } from './number.js';
import { bareUnit, isUnit } from './unit.js';

export interface ValueReader {
  /** What a cell or a fact means, by its looks: no value, a date, a number, a number with a unit, else text. */
  read(text: string): Value;
  readonly numbers: NumberReader;
  readonly dates: DateReader;
  readonly missing: ReadonlySet<string>;
}

export interface ReaderParts {
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
  if (text.length > LONGEST_QUANTITY) return undefined;
  const [, sign = '', digits = '', gap = '', unit = ''] = QUANTITY.exec(text) ?? [];
  // A single letter in brackets is a remark: `12.5 (a)`.
  if (unit === '' || (gap === '' && /^[A-Za-z]$/.test(unit)) || /^\([A-Za-z]\)$/.test(unit)) return undefined;
  const value = numbers.read(sign + digits);
  const bare = bareUnit(unit) ?? '';
  return value === undefined || !isUnit(bare) ? undefined : { value, text, unit: bare };
}

/** A longer text is a remark, and would only be searched in vain. */
const LONGEST_QUANTITY = 60;
/** Balances print the sign in a column of its own: `+   12.40315 g`. */
const QUANTITY = /^([+\-−]?)\s*([\d.,][\d.,'’]*(?:[eE][+-]?\d+)?)(\s*)(\D.*|(?<=\s)1\/.+)$/;

/** `< 20.00`, `>3.5 mg`: beyond what the instrument can tell. */
function isCensored(text: string, numbers: NumberReader): boolean {
  const [, limit] = /^[<>≤≥]=?\s*(\S.*)$/.exec(text) ?? [];
  if (limit === undefined) return false;
  return numbers.read(limit) !== undefined || readQuantity(limit, numbers) !== undefined;
}
