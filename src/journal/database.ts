import { chownSync, existsSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { z } from 'zod';
import { LabfeedError, systemCode } from '../errors.js';
import { isNetworkFilesystem, lockForLife } from '../filesystem.js';
import { MIGRATIONS } from './migrations.js';

export type Database = DatabaseSyncInstance;

/** Commands write to the inbox while the daemon runs: each waits for the other's few milliseconds. */
export const BUSY_MS = 5000;

/** A command may hold the lock for a moment, to carry out what was asked while no daemon runs. */
const LOCK_PATIENCE_MS = 2000;

export class JournalInUseError extends LabfeedError {
  override readonly name = 'JournalInUseError';
}

interface OpenDatabase {
  readonly database: Database;
  /** Whether there was none before. */
  readonly isNew: boolean;
  release(): void;
}

/** Opens the journal as its one writer. What it returns also holds the lock that keeps other daemons out. */
export async function openDatabase(path: string, isShare = isNetworkFilesystem): Promise<OpenDatabase> {
  await prepareFolder(path, isShare);
  const lock = takeLock(path, LOCK_PATIENCE_MS);
  try {
    const database = openOwned(path, BUSY_MS);
    try {
      const isNew = readVersion(database, path) === 0;
      // WAL lets commands read while the daemon writes; FULL makes a commit wait for the disk.
      database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
      // What is erased is overwritten on the disk, not only given free. For 5,000 deliveries it costs nothing measurable.
      database.exec('PRAGMA secure_delete = ON');
      migrate(database, path);
      return { database, isNew, release: () => lock.close() };
    } catch (error) {
      database.close();
      throw error;
    }
  } catch (error) {
    lock.close();
    throw error instanceof LabfeedError ? error : cannotOpen(path, error);
  }
}

async function prepareFolder(path: string, isShare: (folder: string) => Promise<boolean>): Promise<void> {
  const folder = dirname(path);
  try {
    makeFolder(folder);
  } catch (error) {
    throw cannotOpen(path, error);
  }
  if (await isShare(folder)) {
    throw new LabfeedError(`the journal ${path} lies on a network share`, {
      hint: 'locks and durable writes do not hold there: put it on a local disk with journal: PATH',
    });
  }
}

/** Step by step: Node's own recursive way never comes back where the system will not have a folder, as in /proc. */
function makeFolder(folder: string): void {
  if (existsSync(folder)) return;
  makeFolder(dirname(folder));
  mkdirSync(folder, { mode: 0o700 });
}

/** Keeps other daemons out; commands that only read the journal never meet it. */
function takeLock(path: string, patienceMs: number): Database {
  let isMine: boolean;
  let lock: Database;
  try {
    lock = openOwned(`${path}.lock`, patienceMs);
    isMine = lockForLife(lock);
  } catch (error) {
    throw cannotOpen(path, error);
  }
  if (isMine) return lock;
  throw new JournalInUseError(`the journal ${path} is in use by another daemon, or by a command`, {
    hint: 'stop that one first (systemctl stop labfeed); a second daemon needs a journal of its own',
  });
}

/** Whether no daemon holds the journal at this moment. */
export function isFree(path: string): boolean {
  try {
    takeLock(path, 0).close();
    return true;
  } catch (error) {
    if (error instanceof JournalInUseError) return false;
    throw error;
  }
}

/** A file that root makes in a service's folder belongs to the service, which could not open it otherwise. */
function openOwned(path: string, timeout: number): Database {
  const isNew = !existsSync(path);
  const database = new DatabaseSync(path, { timeout });
  if (isNew && process.geteuid?.() === 0) {
    const { uid, gid } = statSync(dirname(path));
    chownSync(path, uid, gid);
  }
  return database;
}

/** Brings the journal to today's version. */
export function migrate(database: Database, path: string): void {
  const version = readVersion(database, path);
  for (let next = version; next < MIGRATIONS.length; next++) {
    // One transaction with its version number: killed half-way, it has not happened.
    database.exec(`BEGIN IMMEDIATE; ${MIGRATIONS[next]} PRAGMA user_version = ${next + 1}; COMMIT;`);
  }
}

export const isCurrent = (database: Database, path: string): boolean =>
  readVersion(database, path) === MIGRATIONS.length;

/** Brings a journal that an older labfeed left to today's version, unless that one still runs. */
export function migrateFree(path: string): void {
  let lock: Database;
  try {
    lock = takeLock(path, LOCK_PATIENCE_MS);
  } catch (error) {
    if (!(error instanceof JournalInUseError)) throw error;
    throw new LabfeedError(
      `the journal ${path} is of an older version, and a labfeed of that version holds it`,
      {
        hint: 'restart the daemon with this version (systemctl restart labfeed), then ask again',
        cause: error,
      },
    );
  }
  try {
    const database = openOwned(path, BUSY_MS);
    try {
      database.exec('PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;');
      migrate(database, path);
    } finally {
      database.close();
    }
  } catch (error) {
    throw error instanceof LabfeedError ? error : cannotOpen(path, error);
  } finally {
    lock.close();
  }
}

/** Zero for a file that is no journal yet. One from the future is refused, not damaged. */
export function readVersion(database: Database, path: string): number {
  const row: unknown = database.prepare('PRAGMA user_version').get();
  const version = Number((row as { user_version: number }).user_version);
  if (version <= MIGRATIONS.length) return version;
  throw new LabfeedError(
    `the journal ${path} is of version ${version}, written by a newer labfeed; this one knows ${MIGRATIONS.length}`,
    { hint: 'update labfeed, or use another journal; this one was left as it is' },
  );
}

export function cannotOpen(path: string, error: unknown): LabfeedError {
  const reason = error instanceof Error ? error.message : String(error);
  const hint =
    systemCode(error) === 'EACCES' || /readonly|permission|unable to open/i.test(reason)
      ? 'check that its folder exists and may be written by this user, or name another with journal: PATH'
      : /not a database|malformed/i.test(reason)
        ? 'the file is no journal or is damaged: restore a backup, or move it away and start a new one'
        : 'check the disk and the path of the journal';
  return new LabfeedError(`the journal ${path} cannot be opened: ${reason}`, { hint, cause: error });
}

/** Makes a change durable: the promise resolves when it is on disk. */
export type Commit = <T>(change: () => T) => Promise<T>;

interface Waiting {
  readonly change: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Group commit: whatever is asked for in one turn of the event loop shares one transaction, and one fsync.
 * Each change has a savepoint of its own, so that a bad one does not take its neighbours down.
 */
export function createCommit(
  database: Database,
  schedule: (flush: () => void) => void = setImmediate,
): { commit: Commit; flush(): void; trouble(): string | undefined } {
  const begin = database.prepare('BEGIN IMMEDIATE');
  const end = database.prepare('COMMIT');
  const rollback = database.prepare('ROLLBACK');
  const savepoint = database.prepare('SAVEPOINT change');
  const release = database.prepare('RELEASE change');
  const undo = database.prepare('ROLLBACK TO change');
  let waiting: Waiting[] = [];
  let trouble: string | undefined;

  function attempt({ change, resolve, reject }: Waiting): () => void {
    savepoint.run();
    try {
      const result = change();
      release.run();
      return () => resolve(result);
    } catch (error) {
      // On a full disk SQLite gives up the whole transaction: then the group fails, for this reason.
      if (!database.isTransaction) throw error;
      undo.run();
      release.run();
      return () => reject(error);
    }
  }

  /** After some errors SQLite has rolled back by itself, and a closed journal has nothing to roll back. */
  function undoAll(): void {
    if (database.isOpen && database.isTransaction) rollback.run();
  }

  function flush(): void {
    const group = waiting;
    waiting = [];
    if (group.length === 0) return;
    let settle: (() => void)[] = [];
    try {
      begin.run();
      settle = group.map(attempt);
      end.run();
      trouble = undefined;
    } catch (error) {
      trouble = error instanceof Error ? error.message : String(error);
      undoAll();
      const failure = notRecorded(error);
      settle = group.map(
        ({ reject }) =>
          () =>
            reject(failure),
      );
    }
    for (const done of settle) done();
  }

  const commit: Commit = (change) =>
    new Promise((resolve, reject) => {
      if (waiting.length === 0) schedule(flush);
      waiting.push({ change, resolve: resolve as (result: unknown) => void, reject });
    });
  return { commit, flush, trouble: () => trouble };
}

const notRecorded = (error: unknown): LabfeedError =>
  new LabfeedError(`the journal could not be written: ${error instanceof Error ? error.message : error}`, {
    hint: 'check the space and the permissions of its disk; nothing is sent that could not be recorded',
    cause: error,
  });

/** The journal's columns as a program likes to have them. */

export const nullable = <T>(schema: z.ZodType<T>) =>
  schema.nullable().transform((value) => value ?? undefined);

export const flag = z.number().transform((value) => value === 1);

const texts = z.array(z.string());

/** A JSON array. */
export const textList = z.string().transform((json) => texts.parse(JSON.parse(json)));
