import { closeSync, openSync, readSync, realpathSync, rmSync } from 'node:fs';
import { resolve } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { LabfeedError, systemCode } from '../errors.js';
import { lockForLife } from '../filesystem.js';

export type Database = InstanceType<typeof DatabaseSync>;

/** The notebook's file, open for this process alone. */
interface Datafile {
  readonly db: Database;
  close(): void;
}

/** Stands in the file's header, so that no other program's SQLite file is taken for ours: "LfNb". */
const APPLICATION_ID = 0x4c_66_4e_62;

/**
 * Step n brings a file of version n to version n + 1. STRICT tables hold what their columns say,
 * and AUTOINCREMENT never gives an id twice, not even that of a row that was deleted.
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
  // What eLabFTW knows of an experiment beyond the contract.
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
];

/** Opens the notebook's file, or makes it. What is not ours is refused before SQLite could touch it. */
export function openDatafile(file: string): Datafile {
  if (file === ':memory:') {
    const db = prepareDatabase(new DatabaseSync(file), file);
    return { db, close: () => db.close() };
  }
  // An absolute path, since SQLite would read one that begins with "file:" as an address.
  const path = resolve(file);
  try {
    refuseForeign(path);
    // It holds a key in clear text. SQLite gives its side files the same mode.
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
        leaveOneFile(db);
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
      return error instanceof Error ? error.message : String(error);
  }
}

/** Reads the header's bytes and nothing else: SQLite would leave side files even beside what it only looked at. */
function refuseForeign(path: string): void {
  const header = readHeader(path);
  const ours =
    header.length === 100 &&
    header.toString('latin1', 0, 16) === 'SQLite format 3\0' &&
    header.readUInt32BE(68) === APPLICATION_ID;
  if (ours || header.length === 0) return;
  throw new LabfeedError('this file is not a sandbox notebook; it was left as it is', {
    where: { file: path },
    hint: 'choose another file with --data, or a name that does not exist yet to begin a new notebook',
  });
}

function readHeader(path: string): Buffer {
  const header = Buffer.alloc(100);
  let descriptor: number;
  try {
    descriptor = openSync(path, 'r');
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return header.subarray(0, 0);
    throw error;
  }
  try {
    return header.subarray(0, readSync(descriptor, header));
  } finally {
    closeSync(descriptor);
  }
}

function prepareDatabase(db: Database, file: string): Database {
  try {
    migrate(db, file);
    // After the above, so that the application's id is in the header itself and not in a side file.
    // NORMAL: a killed process loses nothing; a power cut may cost a play notebook its last moments.
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
      `this sandbox notebook has format ${version}, later than this labfeed knows; it was left as it is`,
      { where: { file }, hint: 'use the newer labfeed that wrote it, or choose another file with --data' },
    );
  }
  for (const [step, sql] of MIGRATIONS.entries()) {
    if (step < version) continue;
    db.exec(
      `BEGIN IMMEDIATE; ${sql} PRAGMA application_id = ${APPLICATION_ID}; PRAGMA user_version = ${step + 1}; COMMIT`,
    );
  }
}

/** The driver's own close keeps the side files as long as a used statement is in memory. */
function leaveOneFile(db: Database): void {
  try {
    db.exec('PRAGMA busy_timeout = 0; PRAGMA journal_mode = DELETE');
  } catch {
    // Somebody else has the file open. Then the side files are theirs too.
  }
}

/** Two notebooks on one file would each count for themselves. Returns how to let go of it. */
function lockDatafile(path: string): () => void {
  const name = `${realpathSync(path)}.lock`;
  const lock = new DatabaseSync(name);
  if (!lockForLife(lock)) {
    throw new LabfeedError('another sandbox has this data file', {
      where: { file: path },
      hint: 'stop that one first, or choose another file with --data',
    });
  }
  return () => {
    // While it is still held, so that the next one makes its own.
    rmSync(name, { force: true });
    lock.close();
  };
}
