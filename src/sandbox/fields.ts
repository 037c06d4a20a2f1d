import { badRequest, notFound, type Refusal, unprocessable } from './refusal.js';

/** Takes a field's value from a request's body, or refuses it. */
export type Reader<T> = (value: unknown, field: string) => T;

type Readers = Readonly<Record<string, Reader<unknown>>>;
type Fields<R extends Readers> = { [Field in keyof R]?: ReturnType<R[Field]> };

/**
 * Reads a body whose fields are all optional. Everything is checked before anything is returned:
 * a request is carried out whole or not at all.
 */
export function readFields<R extends Readers>(body: unknown, readers: R): Fields<R> {
  const fields: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(body ?? {})) {
    const read = Object.hasOwn(readers, field) ? readers[field] : undefined;
    if (!read) {
      throw badRequest(`unknown field ${JSON.stringify(field)}; known: ${Object.keys(readers).join(', ')}`);
    }
    fields[field] = read(value, field);
  }
  return fields as Fields<R>;
}

export function required<T>(value: T | undefined, field: string): T {
  if (value === undefined) throw badRequest(`the field ${field} is missing`);
  return value;
}

export function found<T>(record: T | undefined, what: string): T {
  if (record === undefined) throw notFound(what);
  return record;
}

export interface TextLimits {
  readonly maxCharacters?: number;
  readonly maxBytes?: number;
  readonly blank?: 'refused';
  /** What answers a text of the right type that does not fit. Not every operation knows a 422. */
  readonly refuse?: (message: string) => Refusal;
}

export function text(limits: TextLimits = {}): Reader<string> {
  const { maxCharacters = Infinity, maxBytes = Infinity, blank, refuse = unprocessable } = limits;
  return (value, field) => {
    if (typeof value !== 'string') throw badRequest(`${field} must be a string`);
    if (blank && value.trim() === '') throw badRequest(`${field} must not be empty`);
    // Half a surrogate pair has no UTF-8, and SQLite ends a text at NUL: both would come back changed.
    if (/\p{Surrogate}/u.test(value)) throw badRequest(`${field} is not valid Unicode`);
    if (value.includes('\0')) throw refuse(`${field} has a NUL character`);
    if (value.length > maxCharacters && [...value].length > maxCharacters) {
      throw refuse(`${field} is longer than ${maxCharacters} characters`);
    }
    if (Buffer.byteLength(value) > maxBytes) throw refuse(`${field} is longer than ${maxBytes} bytes`);
    return value;
  };
}

/** A day that is in the calendar, as YYYY-MM-DD. */
export const calendarDate: Reader<string> = (value, field) => {
  if (typeof value !== 'string') throw badRequest(`${field} must be a string`);
  const day = /^\d{4}-\d{2}-\d{2}$/.test(value) ? new Date(`${value}T00:00:00Z`) : undefined;
  // Some engines roll 30 February over into March.
  if (!day || Number.isNaN(day.getTime()) || !day.toISOString().startsWith(value)) {
    throw unprocessable(`${field} must be a date of the form YYYY-MM-DD that exists`);
  }
  return value;
};

export function listOf<T>(read: Reader<T>): Reader<readonly T[]> {
  return (value, field) => {
    if (!Array.isArray(value)) throw badRequest(`${field} must be an array`);
    return value.map((item: unknown, index) => read(item, `${field}[${index}]`));
  };
}

/** A switch as the notebook writes it: the number 0 or 1. */
export const zeroOrOne: Reader<0 | 1> = (value, field) => {
  if (typeof value !== 'number') throw badRequest(`${field} must be the number 0 or 1`);
  if (value !== 0 && value !== 1) throw unprocessable(`${field} must be 0 or 1`);
  return value;
};
