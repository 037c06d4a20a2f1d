import { existsSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { LabfeedError } from '../errors.js';
import { BUSY_MS, cannotOpen, type Database, isCurrent, migrateFree, readVersion } from './database.js';
import { type Answer, answerSchema, type Request } from './requests.js';

/** The journal as commands see it, beside the daemon that holds it: they read, and leave requests. */
export interface JournalClient {
  /** The runs that are quarantined. */
  quarantined(): Promise<number[]>;
  /** The runs that can be erased and have not changed since this time. */
  finishedBefore(time: number): Promise<number[]>;
  /** The runs of an instrument that are done, and were not filed anew since. */
  done(instrument: string): Promise<number[]>;
  /** Leaves the requests in the inbox, durably and together; returns their numbers there. */
  ask(requests: readonly Request[], at: number): Promise<number[]>;
  answerTo(asked: number): Promise<Answer | undefined>;
  /** Whether a request is in the inbox, on disk, and not answered yet. */
  isWaiting(asked: number): Promise<boolean>;
  /** Takes what was erased out of the write-ahead file too. False while others still read from there. */
  scrub(): Promise<boolean>;
  close(): Promise<void>;
}

const SCRUB_MS = 100;

/** `busyMs`: how long it waits for who writes at that moment. */
export function openClient(path: string, busyMs: number = BUSY_MS): JournalClient {
  const database = openBeside(path);
  database.exec(`PRAGMA busy_timeout = ${busyMs}`);
  const quarantined = database.prepare("SELECT id FROM runs WHERE resting = 'quarantined' ORDER BY id");
  const finished = database.prepare(
    `SELECT id FROM runs WHERE updated_at < ? AND path <> ''
       AND (step = 'done' AND resting IS NULL OR resting IN ('ignored', 'quarantined')) ORDER BY id`,
  );
  const done = database.prepare(
    `SELECT id FROM runs WHERE instrument = ? AND step = 'done' AND resting IS NULL AND NOT EXISTS (
       SELECT 1 FROM runs AS later WHERE later.instrument = runs.instrument AND later.sha256 = runs.sha256
         AND later.copy = runs.copy AND later.refiling > runs.refiling
     ) ORDER BY id`,
  );
  const put = database.prepare('INSERT INTO inbox (at, request) VALUES (?, ?) RETURNING id');
  const waiting = database.prepare('SELECT 1 FROM inbox WHERE id = ? AND answer IS NULL');
  const answer = database.prepare('SELECT answer FROM inbox WHERE id = ?');

  return {
    quarantined: async () => (quarantined.all() as { id: number }[]).map(({ id }) => id),
    finishedBefore: async (time) => (finished.all(time) as { id: number }[]).map(({ id }) => id),
    done: async (instrument) => (done.all(instrument) as { id: number }[]).map(({ id }) => id),
    async ask(requests, at) {
      try {
        database.exec('BEGIN IMMEDIATE');
        const rows: unknown[] = requests.map((request) => put.get(at, JSON.stringify(request)));
        database.exec('COMMIT');
        return rows.map((row) => (row as { id: number }).id);
      } catch (error) {
        if (database.isTransaction) database.exec('ROLLBACK');
        throw notWritten(path, error);
      }
    },
    async answerTo(asked) {
      const row = answer.get(asked) as { answer: string | null } | undefined;
      return row?.answer ? answerSchema.parse(JSON.parse(row.answer)) : undefined;
    },
    isWaiting: async (asked) => waiting.get(asked) !== undefined,
    async scrub() {
      // Not for long: who waits here for a reader keeps the daemon from writing.
      database.exec(`PRAGMA busy_timeout = ${SCRUB_MS}`);
      const row: unknown = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get();
      return (row as { busy: number }).busy === 0;
    },
    close: async () => database.close(),
  };
}

/** A connection of its own, without the lock by which the daemon is known. */
export function openBeside(path: string): Database {
  if (!existsSync(path)) throw noJournal(path);
  let database: Database | undefined;
  try {
    database = new DatabaseSync(path, { timeout: BUSY_MS });
    database.exec('PRAGMA synchronous = FULL');
    if (readVersion(database, path) === 0) throw noJournal(path);
    return database;
  } catch (error) {
    database?.close();
    throw error instanceof LabfeedError ? error : cannotOpen(path, error);
  }
}

/** The same, of today's version: one that an older labfeed left is brought there first. */
export function openCurrent(path: string): Database {
  const database = openBeside(path);
  if (isCurrent(database, path)) return database;
  database.close();
  migrateFree(path);
  return openBeside(path);
}

const noJournal = (path: string): LabfeedError =>
  new LabfeedError(`there is no journal at ${path} yet`, {
    hint: '`labfeed run` makes it; --config names the configuration that says where it is',
  });

const notWritten = (path: string, error: unknown): LabfeedError =>
  new LabfeedError(
    `the journal ${path} cannot be written: ${error instanceof Error ? error.message : error}`,
    { hint: 'run this as the user that the daemon runs as: sudo -u labfeed labfeed …', cause: error },
  );
