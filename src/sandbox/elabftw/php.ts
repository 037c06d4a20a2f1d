import { isUtf8 } from 'node:buffer';
import { improper, typeError } from './failure.js';

/** What PHP makes of a text where it wants a number: `12abc` is 12, and `abc` is 0. */
export function toInteger(text: string | undefined): number {
  const number = Number(/^\s*[+-]?\d+/.exec(text ?? '')?.[0] ?? 0);
  // Beyond this, SQLite would refuse the number; no record is there.
  return Math.min(number, Number.MAX_SAFE_INTEGER);
}

/** What PHP makes of a JSON value where it wants a text. */
export function toText(value: unknown): string {
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return String(value);
  if (typeof value === 'boolean') return value ? '1' : '';
  return value === null || value === undefined ? '' : 'Array';
}

/** Where types are declared PHP converts nothing. A null counts as left out. */
export function textOrNothing(value: unknown): string | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'string') throw typeError();
  return value;
}

export function integerOrNothing(value: unknown): number | undefined {
  if (value === undefined || value === null) return undefined;
  if (typeof value !== 'number' || !Number.isInteger(value)) throw typeError();
  return value;
}

/** Of a parameter that was given several times, the last. */
export const single = (value: string | string[] | undefined) => (Array.isArray(value) ? value.at(-1) : value);

/** The body's fields in the order in which they were sent, which decides what is saved before an error. */
export function fieldsOf(body: unknown): Readonly<Record<string, unknown>> {
  if (body === undefined) return {};
  if (typeof body !== 'object' || body === null) throw typeError();
  return body as Record<string, unknown>;
}

export function parseJson(bytes: Buffer): unknown {
  if (bytes.length === 0) return undefined;
  if (!isUtf8(bytes)) throw improper('Error decoding json payload: Malformed UTF-8 characters');
  try {
    return JSON.parse(bytes.toString());
  } catch {
    throw improper('Error decoding json payload: Syntax error');
  }
}
