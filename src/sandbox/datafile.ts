import { closeSync, existsSync, openSync, readSync, realpathSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { explain, LabfeedError, systemCode } from '../errors.js';
import { lockForLife } from '../system/filesystem.js';

export type Database = InstanceType<typeof DatabaseSync>;

/** The data file, locked by this process. */
interface Datafile {
  readonly db: Database;
  close(): void;
}

/** In the header of the file, to recognise SQLite files of other programs: "LfNb". */
const APPLICATION_ID = 0x4c_66_4e_62;

/**
 * Step n migrates a file from version n to n + 1. STRICT tables enforce the types of their columns, and
 * AUTOINCREMENT never reuses an id, not even that of a deleted row.
 */
const MIGRATIONS = [
  `CREATE TABLE experiments (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     title TEXT NOT NULL,
     date TEXT NOT NULL,
     tags TEXT NOT NULL,
     userid INTEGER NOT NULL DEFAULT 1,
     created_at TEXT NOT NULL,
     modified_at TEXT NOT NULL,
     body TEXT NOT NULL
   ) STRICT;
   CREATE TABLE comments (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     comment TEXT NOT NULL,
     item_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
     userid INTEGER NOT NULL DEFAULT 1,
     created_at TEXT NOT NULL,
     modified_at TEXT NOT NULL
   ) STRICT;
   CREATE INDEX comments_of_item ON comments (item_id, id);
   CREATE TABLE apikeys (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     name TEXT NOT NULL,
     hash TEXT NOT NULL UNIQUE,
     can_write INTEGER NOT NULL,
     created_at TEXT NOT NULL,
     last_used_at TEXT,
     cleartext TEXT
   ) STRICT;`,
  // Beyond the contract, for the eLabFTW dialect.
  `ALTER TABLE experiments ADD COLUMN team INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE experiments ADD COLUMN state INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE experiments ADD COLUMN lockedby INTEGER;
   ALTER TABLE experiments ADD COLUMN editedby INTEGER;
   ALTER TABLE experiments ADD COLUMN private INTEGER NOT NULL DEFAULT 0;
   ALTER TABLE experiments ADD COLUMN content_type INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE experiments ADD COLUMN metadata TEXT;
   ALTER TABLE experiments ADD COLUMN lastchangeby INTEGER;
   CREATE TABLE tags (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     tag TEXT NOT NULL,
     folded TEXT NOT NULL UNIQUE
   ) STRICT;
   CREATE TABLE uploads (
     id INTEGER PRIMARY KEY AUTOINCREMENT,
     item_id INTEGER NOT NULL REFERENCES experiments (id) ON DELETE CASCADE,
     userid INTEGER NOT NULL,
     real_name TEXT NOT NULL,
     comment TEXT,
     filesize INTEGER NOT NULL,
     hash TEXT NOT NULL,
     created_at TEXT NOT NULL
   ) STRICT;
   CREATE INDEX uploads_of_item ON uploads (item_id, id);`,
  `ALTER TABLE experiments ADD COLUMN attributes TEXT NOT NULL DEFAULT '{}';
   ALTER TABLE uploads ADD COLUMN state INTEGER NOT NULL DEFAULT 1;
   ALTER TABLE uploads ADD COLUMN content BLOB;`,
];

/** Opens or creates the data file. A file of another program is refused before SQLite touches it. */
export function openDatafile(file: string): Datafile {
  if (file === ':memory:') {
    const db = prepareDatabase(new DatabaseSync(file), file);
    return { db, close: () => db.close() };
  }
  // Absolute, because SQLite treats a path that begins with "file:" as a URI.
  const path = resolve(file);
  try {
    refuseForeign(path);
    // It contains a key in clear text. SQLite gives the -wal and -shm files the same mode.
    closeSync(openSync(path, 'a', 0o600));
    return openLocked(path);
  } catch (error) {
    if (error instanceof LabfeedError) throw error;
    throw new LabfeedError(`the sandbox cannot open its data file (${reasonFor(error)})`, {
      where: { file: path },
      hint: 'choose another file with --data',
      cause: error,
    });
  }
}

function openLocked(path: string): Datafile {
  const unlock = lockDatafile(path);
  try {
    const db = prepareDatabase(new DatabaseSync(path, { timeout: 5_000 }), path);
    return {
      db,
      close() {
        removeSideFiles(db);
        db.close();
        unlock();
      },
    };
  } catch (error) {
    unlock();
    throw error;
  }
}

function reasonFor(error: unknown): string {
  switch (systemCode(error)) {
    case 'ENOENT':
      return 'its folder does not exist';
    case 'EISDIR':
      return 'it is a folder';
    case 'EACCES':
      return 'permission denied';
    default:
      return explain(error);
  }
}

/** Reads the header without SQLite, which would create -wal and -shm files beside the file. */
function refuseForeign(path: string): void {
  if (!existsSync(path)) return;
  const header = readHeader(path);
  const ours =
    header.length === 100 &&
    header.toString('latin1', 0, 16) === 'SQLite format 3\0' &&
    header.readUInt32BE(68) === APPLICATION_ID;
  if (ours || header.length === 0) return;
  throw new LabfeedError('this file is not a sandbox notebook; it was not changed', {
    where: { file: path },
    hint: 'choose another file with --data; a file that does not exist is created',
  });
}

function readHeader(path: string): Buffer {
  const header = Buffer.alloc(100);
  const descriptor = openSync(path, 'r');
  try {
    return header.subarray(0, readSync(descriptor, header));
  } finally {
    closeSync(descriptor);
  }
}

function prepareDatabase(db: Database, file: string): Database {
  try {
    migrate(db, file);
    // After the migration, so that the application id is in the header and not in the WAL.
    // NORMAL: a killed process loses nothing; a power cut may lose the last transactions.
    db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL');
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

function migrate(db: Database, file: string): void {
  const { user_version: version }: { user_version: number } = db.prepare('PRAGMA user_version').get();
  if (version > MIGRATIONS.length) {
    throw new LabfeedError(
      `this sandbox notebook has format ${version}, which this version of labfeed does not support; it was not changed`,
      { where: { file }, hint: 'use a newer labfeed, or choose another file with --data' },
    );
  }
  for (const [step, sql] of MIGRATIONS.entries()) {
    if (step < version) continue;
    db.exec(
      `BEGIN IMMEDIATE; ${sql} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${step + 1}; COMMIT`,
    );
  }
}

/** The driver's close keeps the -wal and -shm files while a used statement is in memory. */
function removeSideFiles(db: Database): void {
  try {
    db.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE');
  } catch {
    // Another process has the file open, and needs those files.
  }
}

/** Prevents two sandboxes on one file. Returns the function that releases the lock. */
function lockDatafile(path: string): () => void {
  const name = `${realpathSync(path)}.lock`;
  const lock = new DatabaseSync(name);
  if (!lockForLife(lock)) {
    throw new LabfeedError('another sandbox is using this data file', {
      where: { file: path },
      hint: 'stop the other sandbox, or choose another file with --data',
    });
  }
  return () => {
    // Before the lock is released, so that the next sandbox creates its own file.
    rmSync(name, { force: true });
    lock.close();
  };
}
