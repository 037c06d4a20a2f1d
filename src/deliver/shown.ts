import type { Draft } from '../model.js';
import type { ExperimentRecord } from './deps.js';

type Description = Pick<Draft, 'title' | 'date' | 'body'>;

/**
 * Whether an experiment shows this description, or its beginning, and nothing that somebody added. Servers clean the
 * markup that they store, so of a body only the text is compared, without its blanks.
 */
export function shows({ title, date, body }: ExperimentRecord, wanted: Description): boolean {
  if (title !== wanted.title || date !== wanted.date || typeof body !== 'string') return false;
  const text = textOf(body);
  return text === '' || text === textOf(wanted.body);
}

export const isSame = (a: Description, b: Description): boolean =>
  a.title === b.title && a.date === b.date && a.body === b.body;

/** The text of markup, without its blanks. */
export const textOf = (html: string): string =>
  html
    .replace(/<[^>]*>/g, '')
    .replace(/&(?:#(\d+)|#x([0-9a-f]+)|([a-z]+));/gi, decoded)
    .replace(/\s+/g, '');

function decoded(entity: string, decimal?: string, hex?: string, name = ''): string {
  const code = decimal ? Number(decimal) : Number.parseInt(hex ?? '', 16);
  return code > 0 && code <= 0x10ffff ? String.fromCodePoint(code) : (NAMED[name] ?? entity);
}

const NAMED: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  apos: "'",
  nbsp: ' ',
};
