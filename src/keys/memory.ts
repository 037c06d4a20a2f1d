import { createHash } from 'node:crypto';
import { chownSync, closeSync, existsSync, openSync, statSync } from 'node:fs';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import { LabfeedError } from '../errors.js';
import { dialectOf } from '../model.js';

const id = z.int().positive();
const made = z.strictObject({ id, print: z.string() });

const rememberedSchema = z.strictObject({
  /** The key that was written last; known again by its print, should somebody put another in its place. */
  key: made.optional(),
  /** A rotation that has begun. */
  rotating: z
    .strictObject({
      /** The keys of our name that were there before it asked for one. */
      before: z.array(id),
      /** The one that is to go, where it bears our name. */
      old: id.optional(),
      /** The one that was made; unknown until the notebook has listed it. */
      made: made.optional(),
    })
    .optional(),
  /** Keys that rotations made or replaced: nobody uses them any more. */
  remove: z.array(id),
  /** Keys that a rotation seems to have made that was broken off: to be removed only if they were never used. */
  doubtful: z.array(id),
});

/** What rotations of one key on one server left behind. */
export type Remembered = z.output<typeof rememberedSchema>;

export const NOTHING: Remembered = { remove: [], doubtful: [] };

/** Kept beside the key, without the key. Durable when `write` returns. */
interface RotationMemory {
  read(): Remembered;
  write(remembered: Remembered): void;
  close(): void;
}

/** Where the memory of the rotations of a key in this file is kept. */
const memoryFileOf = (keyFile: string): string => `${keyFile}.rotation`;

/**
 * Opens the memory, and keeps every other rotation of the same key out until it is closed or the process ends, however
 * that ends: two at once could each take the other's new key for a leftover.
 */
export function openMemory(keyFile: string, server: string): RotationMemory {
  const file = memoryFileOf(keyFile);
  let database: DatabaseSyncInstance | undefined;
  try {
    prepareFile(file, keyFile);
    database = new DatabaseSync(file, { timeout: 0 });
    // In this mode the lock of the first transaction is held until the end.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE');
    database.exec(
      'CREATE TABLE IF NOT EXISTS rotation (server TEXT PRIMARY KEY, remembered TEXT) STRICT; COMMIT',
    );
    return over(database, server);
  } catch (error) {
    database?.close();
    throw isLocked(error) ? underWay(file) : cannotOpen(file, error);
  }
}

/** For who only wants to know which key is in use. Nothing, while a rotation is under way. */
export function peekMemory(keyFile: string, server: string): Remembered {
  const file = memoryFileOf(keyFile);
  if (!existsSync(file)) return NOTHING;
  let database: DatabaseSyncInstance | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    return over(database, server).read();
  } catch {
    return NOTHING;
  } finally {
    database?.close();
  }
}

function over(database: DatabaseSyncInstance, server: string): RotationMemory {
  return {
    read() {
      const row: unknown = database.prepare('SELECT remembered FROM rotation WHERE server = ?').get(server);
      if (row === undefined) return NOTHING;
      return rememberedSchema.parse(JSON.parse((row as { remembered: string }).remembered));
    },
    write(remembered) {
      database
        .prepare('INSERT OR REPLACE INTO rotation VALUES (?, ?)')
        .run(server, JSON.stringify(remembered));
    },
    close() {
      // Statements that are not collected yet would keep the connection alive, and its lock with it.
      database.exec('PRAGMA locking_mode = NORMAL; SELECT count(*) FROM rotation;');
      database.close();
    },
  };
}

/** As private as the key, and its owner's. */
function prepareFile(file: string, keyFile: string): void {
  if (existsSync(file)) return;
  closeSync(openSync(file, 'wx', 0o600));
  const { uid, gid } = statSync(keyFile);
  if (process.geteuid?.() === 0) chownSync(file, uid, gid);
}

const isLocked = (error: unknown): boolean => error instanceof Error && /locked|busy/i.test(error.message);

const underWay = (file: string): LabfeedError =>
  new LabfeedError('another `labfeed keys rotate` of this key is under way', {
    where: { file },
    hint: 'wait until it has ended',
  });

const cannotOpen = (file: string, error: unknown): LabfeedError =>
  new LabfeedError(
    `what a rotation remembers cannot be kept: ${error instanceof Error ? error.message : error}`,
    {
      where: { file },
      hint: 'run this as the owner of the key file, who must be able to write in its folder; nothing was changed',
      cause: error,
    },
  );

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
