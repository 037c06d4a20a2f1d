import { createHash } from 'node:crypto';
import { dialectOf } from '../model.js';
import type { Remembered } from './memory.js';

/** A key as the notebook lists it. Carries a hash of the key on some servers: never to be shown as a whole. */
export type KeyRecord = { readonly id?: number | undefined; readonly name?: string | undefined } & Readonly<
  Record<string, unknown>
>;

/** By which a key is known again without being kept. Keys are long and random: nothing of them can be read from it. */
export const printOf = (key: string): string =>
  createHash('sha256').update(`labfeed key ${key}`).digest('hex').slice(0, 16);

/**
 * Which of the listed keys this one is; undefined where that cannot be told for sure. The list is that of the key's own
 * account, so that it stands in it. The contract has no word for it: rotation remembers what it made, eLabFTW's keys
 * begin with their number, and where there is one key only, it is that one.
 */
export function recordOf(
  key: string,
  records: readonly KeyRecord[],
  { key: written, rotating }: Pick<Remembered, 'key' | 'rotating'> = {},
): KeyRecord | undefined {
  const print = printOf(key);
  const made = [written, rotating?.made].find((one) => one?.print === print);
  if (made) return records.find(({ id }) => id === made.id);
  return numbered(key, records) ?? (records.length === 1 ? records[0] : undefined);
}

/** The one whose number the key begins with, on a server that makes keys so. */
function numbered(key: string, records: readonly KeyRecord[]): KeyRecord | undefined {
  const [, number] = /^(\d+)-/.exec(key) ?? [];
  if (number === undefined || dialectOf(records) !== 'elabftw') return undefined;
  return records.find(({ id }) => id === Number(number));
}

/** The key that was made between two lists; undefined where somebody else made one of this name meanwhile. */
export function madeBetween(
  before: readonly KeyRecord[],
  after: readonly KeyRecord[],
  name: string,
  key: string,
): KeyRecord | undefined {
  const known = new Set(before.map(({ id }) => id));
  const added = after.filter((record) => record.id !== undefined && !known.has(record.id));
  const named = added.filter((record) => record.name === name);
  return numbered(key, named) ?? (named.length === 1 ? named[0] : undefined);
}

/** Surely not used since it was made. A server that does not tell leaves it open. */
export const wasNeverUsed = (record: KeyRecord): boolean => record['last_used_at'] === null;

/** Undefined where the server does not tell. */
export function canWrite({ can_write, canwrite }: KeyRecord): boolean | undefined {
  const told = can_write ?? canwrite;
  return typeof told === 'number' || typeof told === 'boolean' ? Boolean(told) : undefined;
}
