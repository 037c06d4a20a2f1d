import { createHash } from 'node:crypto';
import {
  accessSync,
  chownSync,
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fsyncSync,
  lstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
  writeSync,
} from 'node:fs';
import { dirname, resolve } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import { LabfeedError, systemCode } from '../errors.js';
import { dialectOf } from '../model.js';

/** A file that can take a key. */
export interface KeyFile {
  /** The file itself, where the configuration names a link to it. */
  readonly path: string;
  /** Durable when it returns. Whoever reads the file has the old key or the new one, never a part. */
  write(key: string): void;
}

interface KeyFileOptions {
  /** The step in which the new key takes the place of the old one. */
  readonly rename?: (from: string, to: string) => void;
}

/** Looks whether a key can be written there, before anybody makes one. What it cannot do it says now. */
export function openKeyFile(named: string, { rename = renameSync }: KeyFileOptions = {}): KeyFile {
  const path = targetOf(named);
  const folder = dirname(path);
  const owner = ownerOf(path, folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  return {
    path,
    write(key) {
      // One name for all: what a crash leaves there, with a key in it, the next one clears away.
      const fresh = `${path}.new`;
      try {
        rmSync(fresh, { force: true });
        writeDurably(fresh, `${key}\n`, owner);
        rename(fresh, path);
        syncFolder(folder);
      } catch (error) {
        rmSync(fresh, { force: true });
        throw cannotWrite(path, error);
      }
    },
  };
}

interface Owner {
  readonly uid: number;
  readonly gid: number;
}

/** A link stays a link: what it leads to is replaced, also where that is not there yet. */
export function targetOf(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || links > 40) throw cannotWrite(path, error);
  }
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? targetOf(resolve(dirname(path), readlinkSync(path)), links + 1) : path;
}

/** Who is to own it: who owned it, or, of a new one, who owns the folder. Undefined: whoever writes it. */
function ownerOf(path: string, folder: string): Owner | undefined {
  const there = statSync(path, { throwIfNoEntry: false });
  const user = process.geteuid?.();
  if (there?.isDirectory()) throw cannotWrite(path, new Error('it is a folder'));
  if (there) refuseShared(path, there);
  if (user === undefined) return undefined;
  if (there && user !== 0 && there.uid !== user) {
    throw new LabfeedError(`the key file ${path} belongs to another user (number ${there.uid})`, {
      hint: 'run this as that user, or as root: it must stay theirs, or the daemon could not read it any more',
    });
  }
  const { uid, gid } = there ?? statSync(folder, { throwIfNoEntry: false }) ?? { uid: user, gid: 0 };
  return user === 0 ? { uid, gid } : undefined;
}

/** A key is its owner's alone. Where root's file is read by a group, that would lock out the daemon that is in it. */
function refuseShared(path: string, { uid, gid, mode }: Stats): void {
  if (uid !== 0 || gid === 0 || (mode & constants.S_IRGRP) === 0) return;
  throw new LabfeedError(`the key file ${path} is root's, and read by a group (number ${gid})`, {
    hint: `labfeed writes it for its owner alone (mode 0600). Give it to the user that the daemon runs as first: chown labfeed ${path}`,
  });
}

function writeDurably(path: string, text: string, owner: Owner | undefined): void {
  const descriptor = openSync(path, 'wx', 0o600);
  try {
    // The mode of a new file is cut by the umask, never widened; this makes it exact.
    fchmodSync(descriptor, 0o600);
    writeSync(descriptor, text);
    if (owner) chownSync(path, owner.uid, owner.gid);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** A rename is on disk only when its folder is. */
function syncFolder(folder: string): void {
  const descriptor = openSync(folder, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

function cannotWrite(path: string, error: unknown): LabfeedError {
  const why = systemCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new LabfeedError(`the key cannot be written to ${path} (${why})`, {
    hint: 'its folder must be there, and this user must be able to write in it: the file is replaced as a whole',
    cause: error,
  });
}

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
