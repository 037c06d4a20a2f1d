import { randomUUID } from 'node:crypto';
import { rmSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { backoffMs, type Clock } from '../clock.js';
import { explain, LabfeedError } from '../errors.js';
import { Connection, migrate } from '../journal/database.js';
import { createJournal, type Journal } from '../journal/journal.js';
import { MIGRATIONS } from '../journal/migrations.js';
import type { StoreOptions } from '../journal/store.js';
import type { Log } from '../log.js';
import { makePrivate } from '../system/filesystem.js';
import { applyChanges, type Change, readChangeset } from './changes.js';
import { FencedError, isAway, isFenced, type Postgres } from './database.js';
import { forgetOlder, type Kept, loadKept, missingRuns, ofKeptRuns, putRuns, readRuns } from './kept-runs.js';
import { FLEET_TABLES, readTables, type Tables } from './tables.js';
import { loadTables, restoreTriggers, withoutTriggers } from './upgrade.js';

/**
 * The outbox of the fleet as a SQLite database of this machine. A standby follows what the leader ships. The leader
 * changes its copy with the journal's own code, and a change counts as durable once PostgreSQL has it: a copy that was
 * leading when its process ended may have changes that nobody else has, so it is loaded again.
 */
export interface WorkingCopy {
  readonly db: Connection;
  readonly tables: Tables;
  /** Up to which shipment it has all changes; undefined before the first load. */
  position(): number | undefined;
  /** Gives it the triggers of the journal, which the leader needs. */
  addTriggers(): void;
  /** It has only some runs. Undefined: it has all. */
  readonly kept?: Kept | undefined;
}

export function openWorkingCopy(path: string, kept?: Kept): WorkingCopy {
  try {
    return openCopy(path, kept);
  } catch {
    // Damaged, of another version, or with all runs instead of some, or the reverse: PostgreSQL has everything.
    for (const suffix of ['', '-wal', '-shm']) rmSync(path + suffix, { force: true });
    return openCopy(path, kept);
  }
}

function openCopy(path: string, kept: Kept | undefined): WorkingCopy {
  if (path !== ':memory:') makePrivate(path);
  const database = new DatabaseSync(path);
  try {
    database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = OFF;');
    const db = new Connection(database);
    const version = db.value<number>`PRAGMA user_version` ?? 0;
    if (version !== 0 && version !== MIGRATIONS.length) throw new Error('the working copy has another version');
    migrate(database, path);
    database.exec(FLEET_TABLES);
    withoutTriggers(database);
    // It may be ahead of PostgreSQL, so it is loaded again. The file stays: others may read it.
    db.run`DELETE FROM working_copy WHERE leads = 1`;
    // Fails in a copy of an earlier version.
    db.run`UPDATE working_copy SET mark = mark`;
    const before = db.value<number>`SELECT member FROM kept_runs`;
    if (db.exists`SELECT 1 FROM working_copy` && (before === undefined) !== (kept === undefined))
      throw new Error('the working copy has other runs');
    // This machine has another number in the fleet.
    if (before !== kept?.member) db.run`DELETE FROM working_copy`;
    const tables = readTables(database);
    const position = () => db.value<number>`SELECT seq FROM working_copy`;
    return { db, tables, position, addTriggers: () => restoreTriggers(database), kept };
  } catch (error) {
    database.close();
    throw error;
  }
}

interface Shipped {
  readonly seq: number;
  readonly changes: Change[];
  /** Every shipment has another one, also those with the same number in a database that was restored from a backup. */
  readonly mark: string;
  /** The mark of the shipment before. */
  readonly previous: string;
}

const markOf = (db: Connection): string => db.value<string>`SELECT mark FROM working_copy` ?? '';

const AT_A_TIME = 200;

/** Brings the copy of a standby up to date, and returns its position. */
export async function follow(copy: WorkingCopy, postgres: Postgres): Promise<number> {
  for (;;) {
    const at = copy.position();
    if (at === undefined) return load(copy, postgres);
    const rows = await postgres.rows<Shipped>(
      'SELECT seq, changes, mark, previous FROM labfeed.changes WHERE seq > $1 ORDER BY seq LIMIT $2',
      [at, AT_A_TIME],
    );
    const fleet = await postgres.row<Omit<Shipped, 'changes'>>('SELECT seq, mark FROM labfeed.fleet');
    const { db } = copy;
    const mark = markOf(db);
    if (rows.length === 0 && fleet?.seq === at && fleet.mark === mark) return at;
    // Older changes were removed, the tables were replaced, or the database was restored from a backup.
    if (rows[0]?.seq !== at + 1 || rows[0].previous !== mark) {
      if (rows.length === 0 && (fleet?.seq ?? 0) > at && (await hasChange(postgres, at + 1))) continue;
      return load(copy, postgres);
    }
    try {
      const apply = await preparedFor(copy, rows, postgres);
      inTransaction(db, () => {
        apply();
        const last = rows.at(-1);
        db.run`UPDATE working_copy SET seq = ${last?.seq ?? at}, mark = ${last?.mark ?? ''}`;
      });
    } catch {
      // Two runs that have exchanged what only one may have, for example: SQLite checks each row by itself.
      return load(copy, postgres);
    }
  }
}

/** Reads what a copy that has only some runs needs beyond the changes. It may be ahead of them, which later ones make up for. */
async function preparedFor(
  { db, tables, kept }: WorkingCopy,
  rows: readonly Shipped[],
  postgres: Postgres,
): Promise<() => void> {
  const changes = rows.flatMap((row) => row.changes);
  if (kept === undefined) return () => applyChanges(db, changes, tables);
  const missing = missingRuns(db, changes, kept);
  const fetched = missing.length === 0 ? [] : await readRuns(postgres, tables, missing);
  return () => {
    putRuns(db, fetched);
    applyChanges(db, ofKeptRuns(db, changes, tables), tables);
    forgetOlder(db, tables, kept);
  };
}

/** It may have been shipped between two queries. */
const hasChange = async (postgres: Postgres, seq: number): Promise<boolean> =>
  (await postgres.row('SELECT 1 FROM labfeed.changes WHERE seq = $1', [seq])) !== undefined;

/** It locks no rows, so a disk that is slow for a while may be. */
const READ_ALL = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL idle_in_transaction_session_timeout = '2min'`;

/** Everything again: in one transaction that sees one state of PostgreSQL. */
async function load({ db, tables, kept }: WorkingCopy, postgres: Postgres): Promise<number> {
  db.run`DELETE FROM working_copy`;
  db.run`DELETE FROM kept_runs`;
  for (const name of tables.keys()) db.statement(`DELETE FROM ${name}`).run();
  return postgres.transaction(async (client) => {
    const { rows } = await client.query<{ epoch: number; seq: number; mark: string; journal: number }>(
      'SELECT epoch, seq, mark, journal FROM labfeed.fleet',
    );
    const { epoch = 0, seq = 0, mark = '', journal = 0 } = rows[0] ?? {};
    if (journal !== MIGRATIONS.length)
      throw new LabfeedError('the tables of the fleet have another version', { hint: 'restart labfeed' });
    if (kept === undefined) await loadTables(client, db, tables);
    else {
      const above = await loadKept(client, db, tables, kept);
      db.run`INSERT INTO kept_runs (member, above) VALUES (${kept.member}, ${above})`;
    }
    db.run`INSERT INTO working_copy (epoch, seq, leads, mark) VALUES (${epoch}, ${seq}, 0, ${mark})`;
    return seq;
  }, READ_ALL);
}

function inTransaction(db: Connection, work: () => void): void {
  db.run`BEGIN`;
  try {
    work();
    db.run`COMMIT`;
  } catch (error) {
    db.run`ROLLBACK`;
    throw error;
  }
}

interface LeadingDeps {
  readonly copy: WorkingCopy;
  readonly postgres: Postgres;
  readonly epoch: number;
  /** The id of the fleet. */
  readonly id: string;
  readonly clock: Clock;
  readonly log: Log;
  /** Another leader took over. */
  fenced(): void;
  readonly schedule?: StoreOptions['schedule'];
  readonly random?: () => number;
}

export interface LeadingJournal extends Journal {
  /** For figures. */
  readonly shipments: { count: number; bytes: number; ms: number };
}

/** Opens the copy, which has everything, as the journal of the leader. */
export function lead({
  copy,
  postgres,
  epoch,
  id,
  clock,
  log,
  fenced,
  schedule,
  random = Math.random,
}: LeadingDeps): LeadingJournal {
  const { db, tables } = copy;
  const { database } = db;
  if (copy.kept !== undefined) throw new Error('a copy that has only some runs cannot lead');
  db.run`UPDATE working_copy SET leads = 1, epoch = ${epoch}`;
  copy.addTriggers();
  database.exec('PRAGMA foreign_keys = ON');
  const stopping = new AbortController();
  const shipments = { count: 0, bytes: 0, ms: 0 };
  let session = database.createSession();
  let seq = copy.position() ?? 0;
  let mark = markOf(db);

  async function send(changes: readonly Change[]): Promise<void> {
    const text = JSON.stringify(changes);
    const next = randomUUID();
    const began = clock.monotonic();
    for (let attempt = 0; ; attempt++) {
      try {
        await postgres.rows('SELECT labfeed.ship($1, $2, $3, $4, $5)', [epoch, seq + 1, mark, next, text]);
        seq += 1;
        mark = next;
        shipments.count += 1;
        shipments.bytes += text.length;
        shipments.ms += clock.monotonic() - began;
        return;
      } catch (error) {
        if (isFenced(error)) {
          fenced();
          throw new FencedError('another member of the fleet delivers now', { cause: error });
        }
        if (!isAway(error) || stopping.signal.aborted) throw notShipped(error);
        if (attempt === 0) log.warn({ reason: explain(error) }, 'the database of the fleet is away, nothing is sent');
        await clock.sleep(backoffMs(attempt, { firstMs: 100, maxMs: 2000, random }), stopping.signal);
      }
    }
  }

  /** What was recorded since the last call. A session cannot be emptied, so another one takes its place. */
  function takeChanges(): Change[] {
    const recorded = session.changeset();
    if (recorded.length === 0) return [];
    session.close();
    session = database.createSession();
    return readChangeset(recorded, tables);
  }

  async function sync(): Promise<void> {
    const changes = takeChanges();
    if (changes.length > 0) await send(changes);
  }

  db.run`DELETE FROM identity`;
  const journal = createJournal({ database, makeId: () => id, clock, sync, schedule, release: () => undefined });
  return {
    ...journal,
    shipments,
    /** Ships what is left. If that fails, the copy is loaded again at the next start. */
    async close() {
      const closed = new AbortController();
      void clock.sleep(CLOSE_MS, closed.signal).then(() => stopping.abort());
      try {
        await journal.store.commit(() => undefined);
        await journal.store.close();
        session.close();
        if (journal.trouble() === undefined) db.run`UPDATE working_copy SET leads = 0, seq = ${seq}, mark = ${mark}`;
      } finally {
        closed.abort();
        database.close();
      }
    },
  };
}

const notShipped = (error: unknown): LabfeedError =>
  new LabfeedError(`cannot write to the database of the fleet: ${explain(error)}`, {
    hint: 'check the database, then restart labfeed; it sends nothing that it cannot record',
    cause: error,
  });

const CLOSE_MS = 3000;
