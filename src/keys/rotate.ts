import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  type Stats,
  statSync,
} from 'node:fs';
import { hostname } from 'node:os';
import { dirname, resolve } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import type { UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { explain, LabfeedError, systemCode } from '../errors.js';
import { dialectOf } from '../model.js';
import type { Notebook } from '../notebook/client.js';
import type { KeyRecord } from '../notebook/responses.js';
import { isLocked, type Owner, syncFolder, writeDurably } from '../system/filesystem.js';

type KeyApi = Pick<Notebook, 'listKeys' | 'createKey' | 'deleteKey'>;

export interface RotateDeps {
  /** The name of the keys of this labfeed. */
  readonly name: string;
  /** The key in use. */
  readonly current: string;
  /** The notebook with this key, until the next call. */
  as(key: string): KeyApi;
  readonly rotation: Pick<RotationFile, 'read' | 'write'>;
  /** Writes the key to where the configuration reads it, durably and in one step. */
  write(key: string): void;
}

export interface Rotated {
  /** The number of the new key, if the notebook lists it. */
  readonly key: number | undefined;
  readonly deleted: readonly number[];
  /** Keys that could not be deleted; the next rotation tries again. */
  readonly failed: readonly { readonly id: number; readonly reason: string }[];
  /** The previous key, if it was kept. `unknown`: it is not known which of the listed keys it is. */
  readonly kept: { readonly id: number | undefined; readonly name: string | undefined } | 'unknown' | undefined;
  /** Other keys of the same name; another labfeed may use them. */
  readonly others: readonly number[];
}

/**
 * Creates a new key, tests it, writes it, then deletes the old one. Every step is recorded before it is taken, so that a
 * rotation can be interrupted anywhere: the key in use always works, and the next rotation cleans up. Nothing is
 * deleted before a new key is in its place.
 */
export async function rotate(deps: RotateDeps): Promise<Rotated> {
  const { name, current, rotation, as, write } = deps;
  const before = await as(current).listKeys();
  const resumed = resume(rotation.read(), current, before, name);
  const old = findRecord(current, before, resumed);
  // Recorded now, because with two keys the notebook may no longer show which one is in use.
  const state = old?.id === undefined ? resumed : { ...resumed, key: { id: old.id, print: printOf(current) } };
  const isOurs = old?.name === name;
  const rotating = {
    before: idsOf(named(before, name)),
    ...(isOurs && old.id !== undefined && { old: old.id }),
  };
  rotation.write({ ...state, rotating });
  const fresh = await as(current).createKey({ name, canwrite: 1 });
  // Listed with the old key: as long as the new key was never used, an interrupted rotation can be cleaned up.
  const record = findCreated(before, await as(current).listKeys(), name, fresh);
  const made = record?.id === undefined ? undefined : { id: record.id, print: printOf(fresh) };
  rotation.write({ ...state, rotating: { ...rotating, ...(made && { made }) } });
  const listed = await testKey(fresh, made?.id, deps);
  write(fresh);
  const { key: _, ...rest } = state;
  const remove = [...new Set([...state.remove, ...(rotating.old === undefined ? [] : [rotating.old])])];
  rotation.write({ ...rest, remove, ...(made && { key: made }) });
  const removable = idsOf(listed.filter((one) => isRemovable(one, name, { ...state, remove }, made?.id)));
  const { deleted, failed } = await deleteKeys(removable, as(fresh));
  rotation.write({ remove: failed.map(({ id }) => id), doubtful: [], ...(made && { key: made }) });
  const others = idsOf(named(listed, name)).filter((id) => id !== made?.id && !removable.includes(id));
  const kept = old === undefined ? 'unknown' : isOurs ? undefined : { id: old.id, name: old.name };
  return { key: made?.id, deleted, failed, kept, others: others.filter((id) => id !== old?.id) };
}

/** Finds out what an interrupted rotation left behind: the key that it created, and the key to delete. */
function resume(
  { rotating, ...rest }: Rotation,
  current: string,
  records: readonly KeyRecord[],
  name: string,
): Rotation {
  if (rotating === undefined) return rest;
  const { before, old, made } = rotating;
  if (made === undefined) {
    // It is unknown whether a key was created. A new one that was never used is either that key, or one that another
    // rotation is about to test: that rotation then fails and has changed nothing.
    const added = named(records, name).filter(({ id }) => id !== undefined && !before.includes(id));
    return { ...rest, doubtful: [...rest.doubtful, ...idsOf(added.filter(wasNeverUsed))] };
  }
  // Unless the new key was written, nobody has it.
  if (made.print !== printOf(current)) return { ...rest, remove: [...rest.remove, made.id] };
  return { ...rest, key: made, remove: old === undefined ? rest.remove : [...rest.remove, old] };
}

/** Lists the keys with the new key. It must work, belong to the same account and be able to write. */
async function testKey(fresh: string, id: number | undefined, { as }: RotateDeps): Promise<readonly KeyRecord[]> {
  const records = await as(fresh).listKeys();
  const own = records.find((record) => record.id === id);
  if (id !== undefined && (own === undefined || canWrite(own) === false)) {
    throw new LabfeedError(own === undefined ? 'the new key belongs to another account' : 'the new key is read-only', {
      hint: 'nothing was changed; the old key stays in use. Create a key in the notebook and run `labfeed keys set`',
    });
  }
  return records;
}

function isRemovable(
  record: KeyRecord,
  name: string,
  { remove, doubtful }: Rotation,
  made: number | undefined,
): boolean {
  const { id } = record;
  if (id === undefined || id === made || record.name !== name) return false;
  return remove.includes(id) || (doubtful.includes(id) && wasNeverUsed(record));
}

async function deleteKeys(ids: readonly number[], api: KeyApi): Promise<Pick<Rotated, 'deleted' | 'failed'>> {
  const deleted: number[] = [];
  const failed: { id: number; reason: string }[] = [];
  for (const id of ids) {
    try {
      await api.deleteKey(id);
      deleted.push(id);
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      failed.push({ id, reason: error.message });
    }
  }
  return { deleted, failed };
}

/** Identifies a key without storing it. Keys are long and random, so this reveals nothing. */
export const printOf = (key: string): string =>
  createHash('sha256').update(`labfeed key ${key}`).digest('hex').slice(0, 16);

/**
 * The record of this key in the list of its own account; undefined if it cannot be identified. The API does not say
 * which key is which: rotations are recorded, keys of eLabFTW start with their number, and if the account has only one key, it is that one.
 */
export function findRecord(
  key: string,
  records: readonly KeyRecord[],
  { key: written, rotating }: Pick<Rotation, 'key' | 'rotating'> = {},
): KeyRecord | undefined {
  const print = printOf(key);
  const made = [written, rotating?.made].find((one) => one?.print === print);
  if (made) return records.find(({ id }) => id === made.id);
  return numbered(key, records) ?? (records.length === 1 ? records[0] : undefined);
}

/** The record whose number the key starts with, on servers that create such keys. */
function numbered(key: string, records: readonly KeyRecord[]): KeyRecord | undefined {
  const [, number] = /^(\d+)-/.exec(key) ?? [];
  if (number === undefined || dialectOf(records) !== 'elabftw') return undefined;
  return records.find(({ id }) => id === Number(number));
}

/** The key created between two lists; undefined if somebody else created one with this name at the same time. */
function findCreated(
  before: readonly KeyRecord[],
  after: readonly KeyRecord[],
  name: string,
  key: string,
): KeyRecord | undefined {
  const known = new Set(before.map(({ id }) => id));
  const added = named(after, name).filter(({ id }) => id !== undefined && !known.has(id));
  return numbered(key, added) ?? (added.length === 1 ? added[0] : undefined);
}

/** False if the server does not report it. */
const wasNeverUsed = (record: KeyRecord): boolean => record['last_used_at'] === null;

/** Undefined if the server does not report it. */
export function canWrite({ can_write, canwrite }: KeyRecord): boolean | undefined {
  const value = can_write ?? canwrite;
  return typeof value === 'number' || typeof value === 'boolean' ? Boolean(value) : undefined;
}

const named = (records: readonly KeyRecord[], name: string): KeyRecord[] =>
  records.filter((record) => record.name === name);

const idsOf = (records: readonly KeyRecord[]): number[] => records.flatMap(({ id }) => (id === undefined ? [] : [id]));

/** The name of the keys of the labfeed on this machine. */
export const keyName = (host: string = hostname()): string => `labfeed@${host}`;

/** The notebook with different keys, through one rate limiter. One request at a time. */
export function openKeyApis(config: UsableConfig): Pick<RotateDeps, 'as'> & Pick<Notebook, 'close'> {
  let key = '';
  const notebook = openNotebook(config, { key: { current: () => key, refresh: () => undefined } });
  return {
    as(wanted) {
      key = wanted;
      return notebook;
    },
    close: notebook.close,
  };
}

export type KeyFile = ReturnType<typeof openKeyFile>;

/** Checks that a key can be written before anybody creates one. Tests replace `rename`. */
export function openKeyFile(configured: string, rename: typeof renameSync = renameSync) {
  const path = resolveLinks(configured);
  const folder = dirname(path);
  const owner = ownerOf(path, folder);
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
  } catch (error) {
    throw cannotWrite(path, error);
  }
  return {
    /** The file itself, if the configuration names a link to it. */
    path,
    /** Durable when it returns. Readers see the old key or the new one, never a part. */
    write(key: string): void {
      // Always the same name: the next write removes what a crash left there.
      const temporary = `${path}.new`;
      try {
        rmSync(temporary, { force: true });
        writeDurably(temporary, `${key}\n`, owner);
        rename(temporary, path);
        syncFolder(folder);
      } catch (error) {
        rmSync(temporary, { force: true });
        throw cannotWrite(path, error);
      }
    },
  };
}

/** A link stays a link, and its target is replaced, even if the target does not exist yet. */
export function resolveLinks(path: string, links = 0): string {
  try {
    return realpathSync(path);
  } catch (error) {
    if (systemCode(error) !== 'ENOENT' || links > 40) throw cannotWrite(path, error);
  }
  const isLink = lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink ? resolveLinks(resolve(dirname(path), readlinkSync(path)), links + 1) : path;
}

/** The owner of the existing file, or of the folder for a new file. Undefined: the user that writes it. */
export function ownerOf(path: string, folder: string): Owner | undefined {
  const existing = statSync(path, { throwIfNoEntry: false });
  const user = process.geteuid?.();
  if (existing?.isDirectory()) throw cannotWrite(path, new Error('it is a folder'));
  if (existing) refuseShared(path, existing);
  if (user === undefined) return undefined;
  if (existing && user !== 0 && existing.uid !== user) {
    throw new LabfeedError(`the key file ${path} belongs to another user (uid ${existing.uid})`, {
      hint: 'run this command as that user or as root; the daemon may not be able to read a file that you own',
    });
  }
  const { uid, gid } = existing ?? statSync(folder, { throwIfNoEntry: false }) ?? { uid: user, gid: 0 };
  return user === 0 ? { uid, gid } : undefined;
}

/** A file of root that a group may read would become unreadable for the daemon in that group. */
function refuseShared(path: string, { uid, gid, mode }: Stats): void {
  if (uid !== 0 || gid === 0 || (mode & constants.S_IRGRP) === 0) return;
  throw new LabfeedError(`the key file ${path} belongs to root and is readable by a group (gid ${gid})`, {
    hint: `labfeed writes it with mode 0600. First make the user that runs the daemon its owner: chown labfeed ${path}`,
  });
}

function cannotWrite(path: string, error: unknown): LabfeedError {
  return new LabfeedError(`cannot write the key to ${path} (${systemCode(error) ?? explain(error)})`, {
    hint: 'the folder must exist and be writable by this user, because the file is replaced as a whole',
    cause: error,
  });
}

const keyId = z.int().positive();
const createdKey = z.strictObject({ id: keyId, print: z.string() });

const rotationSchema = z.strictObject({
  /** The key that was written last. `print` tells whether the file still holds it. */
  key: createdKey.optional(),
  /** A rotation that was started. */
  rotating: z
    .strictObject({
      /** The keys with our name before the new one was requested. */
      before: z.array(keyId),
      /** The key to delete, if it has our name. */
      old: keyId.optional(),
      /** The new key; unknown until the notebook has listed it. */
      made: createdKey.optional(),
    })
    .optional(),
  /** Keys that rotations created or replaced, and that nobody uses any more. */
  remove: z.array(keyId),
  /** Keys that an interrupted rotation may have created: deleted only if they were never used. */
  doubtful: z.array(keyId),
});

/** What rotations of one key on one server left behind. */
export type Rotation = z.output<typeof rotationSchema>;

export const NO_ROTATION: Rotation = { remove: [], doubtful: [] };

export type RotationFile = ReturnType<typeof rotationFile>;

const rotationFileOf = (keyFile: string): string => `${keyFile}.rotation`;

/**
 * Opens the record and locks it until it is closed or the process ends: of two rotations at once, each could take the
 * other's new key for a leftover.
 */
export function openRotation(keyFile: string, server: string): RotationFile {
  const file = rotationFileOf(keyFile);
  let database: DatabaseSyncInstance | undefined;
  try {
    if (!existsSync(file)) writeDurably(file, '', process.geteuid?.() === 0 ? statSync(keyFile) : undefined);
    database = new DatabaseSync(file, { timeout: 0 });
    // In this mode the lock of the first transaction is held until the database is closed.
    database.exec('PRAGMA locking_mode = EXCLUSIVE; PRAGMA synchronous = FULL; BEGIN EXCLUSIVE');
    database.exec('CREATE TABLE IF NOT EXISTS rotation (server TEXT PRIMARY KEY, remembered TEXT) STRICT; COMMIT');
    return rotationFile(database, server);
  } catch (error) {
    database?.close();
    throw isLocked(error) ? alreadyRotating(file) : cannotRecord(file, error);
  }
}

/** For commands that only need to know which key is in use. Empty while a rotation is running. */
export function readRotation(keyFile: string, server: string): Rotation {
  const file = rotationFileOf(keyFile);
  if (!existsSync(file)) return NO_ROTATION;
  let database: DatabaseSyncInstance | undefined;
  try {
    database = new DatabaseSync(file, { readOnly: true, timeout: 0 });
    return rotationFile(database, server).read();
  } catch {
    return NO_ROTATION;
  } finally {
    database?.close();
  }
}

/** The record of rotations in a file beside the key, without the key. Durable when `write` returns. */
function rotationFile(database: DatabaseSyncInstance, server: string) {
  return {
    read(): Rotation {
      const row: unknown = database.prepare('SELECT remembered FROM rotation WHERE server = ?').get(server);
      if (row === undefined) return NO_ROTATION;
      return rotationSchema.parse(JSON.parse((row as { remembered: string }).remembered));
    },
    write(rotation: Rotation): void {
      database.prepare('INSERT OR REPLACE INTO rotation VALUES (?, ?)').run(server, JSON.stringify(rotation));
    },
    close(): void {
      // Statements that are not garbage-collected yet keep the connection and its lock alive.
      database.exec('PRAGMA locking_mode = NORMAL; SELECT count(*) FROM rotation;');
      database.close();
    },
  };
}

const alreadyRotating = (file: string): LabfeedError =>
  new LabfeedError('another `labfeed keys rotate` is already running for this key', {
    where: { file },
    hint: 'wait until it has finished',
  });

const cannotRecord = (file: string, cause: unknown): LabfeedError =>
  new LabfeedError(`cannot record the rotation: ${explain(cause)}`, {
    where: { file },
    hint: 'nothing was changed. Run this command as the owner of the key file, who must be able to write to its folder',
    cause,
  });
