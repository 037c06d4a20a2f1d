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
import { dirname, resolve } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import { LabfeedError, systemCode } from '../errors.js';
import { isLocked, type Owner, syncFolder, writeDurably } from '../system/filesystem.js';

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
  const why = systemCode(error) ?? (error instanceof Error ? error.message : String(error));
  return new LabfeedError(`cannot write the key to ${path} (${why})`, {
    hint: 'the folder must exist and be writable by this user, because the file is replaced as a whole',
    cause: error,
  });
}

const id = z.int().positive();
const createdKey = z.strictObject({ id, print: z.string() });

const rotationSchema = z.strictObject({
  /** The key that was written last. `print` tells whether the file still holds it. */
  key: createdKey.optional(),
  /** A rotation that was started. */
  rotating: z
    .strictObject({
      /** The keys with our name before the new one was requested. */
      before: z.array(id),
      /** The key to delete, if it has our name. */
      old: id.optional(),
      /** The new key; unknown until the notebook has listed it. */
      made: createdKey.optional(),
    })
    .optional(),
  /** Keys that rotations created or replaced, and that nobody uses any more. */
  remove: z.array(id),
  /** Keys that an interrupted rotation may have created: deleted only if they were never used. */
  doubtful: z.array(id),
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
    const reason = error instanceof Error ? error.message : String(error);
    throw isLocked(error) ? alreadyRotating(file) : cannotRecord(file, reason, error);
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

const cannotRecord = (file: string, reason: string, cause: unknown): LabfeedError =>
  new LabfeedError(`cannot record the rotation: ${reason}`, {
    where: { file },
    hint: 'nothing was changed. Run this command as the owner of the key file, who must be able to write to its folder',
    cause,
  });
