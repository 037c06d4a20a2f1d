import { close, fdatasync, openSync } from 'node:fs';
import { promisify } from 'node:util';
import { explain, LabfeedError } from '../errors.js';
import type { ServerFacts } from '../outbox.js';
import { Connection, type Database } from './database.js';

/** How long a change that nobody waits for is kept back, to share a transaction with others. */
const WRITE_LATER_MS = 100;

/** The longest time that a change is in the database but not on disk. */
const SYNC_LATER_MS = 1000;

/** The journal as its one writer uses it. */
export type Store = ReturnType<typeof createStore>;

export interface StoreOptions {
  /** When a group of changes is written: with no delay at the end of the event loop's turn. */
  schedule?: ((act: () => void, delayMs: number) => void) | undefined;
  /** Resolves when everything written before the call is on disk. By default, SQLite's write-ahead log is synced. */
  sync?: (() => Promise<void>) | undefined;
}

/**
 * Group commit: all changes of one turn of the event loop share one transaction, in the order in which they were
 * requested. One that fails does not affect the others. A change may be run twice, but takes effect once.
 *
 * A transaction that was written survives a crash of this process, but not a power failure. A sync, off the event loop,
 * makes everything durable that was written before it began. So if a change is durable, all earlier ones are.
 */
export function createStore(database: Database, now: () => number, options: StoreOptions = {}) {
  const { schedule = scheduleOnLoop } = options;
  const log = options.sync ? { sync: options.sync, close: async () => undefined } : openLog(database);
  const synced = shareSyncs(log.sync, writeWaiting);
  const db = new Connection(database);
  let waiting: Waiting[] = [];
  let isScheduled = false;
  let isLaterScheduled = false;
  let isSyncScheduled = false;
  let trouble: string | undefined;

  function flush(): void {
    const group = waiting;
    waiting = [];
    isScheduled = false;
    if (group.length === 0) return;
    try {
      synced.check();
      const settle = writeGroup(db, group);
      trouble = undefined;
      for (const one of settle) one();
      syncLater();
    } catch (error) {
      trouble = explain(error);
      const failure = error instanceof LabfeedError ? error : notRecorded(error);
      for (const { reject } of group) reject(failure);
    }
  }

  /** During a sync, changes wait: what is written then comes too late for it, so it can as well share a transaction. */
  function writeWaiting(): void {
    if (isScheduled && !synced.isRunning()) flush();
  }

  /** If nobody waits for the disk, such as during an outage of the server, changes get there a little later. */
  function syncLater(): void {
    if (isSyncScheduled) return;
    isSyncScheduled = true;
    schedule(() => {
      isSyncScheduled = false;
      synced.wait({ done: () => undefined, failed: () => undefined });
    }, SYNC_LATER_MS);
  }

  function add<T>(change: () => T, resolve: (result: T) => void, reject: (error: unknown) => void): void {
    if (!isScheduled) schedule(writeWaiting, 0);
    isScheduled = true;
    waiting.push({ change, resolve: resolve as (result: unknown) => void, reject });
  }

  return {
    db,
    now,
    /** Runs that are being delivered. One process has the journal, so its claims need not outlive it. */
    claimed: new Set<number>(),
    /** Runs whose files are being attached. */
    attaching: new Set<number>(),
    /** Stores a change: the promise resolves when the database has it. A power failure may still undo it. */
    apply: <T>(change: () => T): Promise<T> => new Promise((resolve, reject) => add(change, resolve, reject)),
    /** Makes a change durable: the promise resolves when it is on disk, together with all changes before it. */
    commit: <T>(change: () => T): Promise<T> =>
      new Promise((resolve, reject) => {
        add(change, (result) => synced.wait({ done: () => resolve(result), failed: reject }), reject);
      }),
    /** For a change that nobody waits for: written together with the next group, or after a short delay. */
    writeLater(change: () => void): void {
      waiting.push({ change, resolve: () => undefined, reject: () => undefined });
      if (isLaterScheduled) return;
      isLaterScheduled = true;
      schedule(() => {
        isLaterScheduled = false;
        flush();
      }, WRITE_LATER_MS);
    },
    /** Writes all pending changes to the database. */
    flush,
    /** Writes all pending changes and makes them durable. The database stays open. */
    async close(): Promise<void> {
      flush();
      await synced.idle();
      await log.close();
    },
    /** What is known about servers, by URL. A change to their table removes it. */
    facts: new Map<string, ServerFacts>(),
    /** Throws after a failed sync: what the database shows may not be on disk, and nothing may be sent because of it. */
    check: synced.check,
    /** Why the last change could not be written or synced; undefined once a later one succeeded. */
    trouble: () => synced.trouble() ?? trouble,
  };
}

const scheduleOnLoop = (act: () => void, delayMs: number): void =>
  void (delayMs === 0 ? setImmediate(act) : setTimeout(act, delayMs).unref());

interface Waiting {
  readonly change: () => unknown;
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: unknown) => void;
}

interface SyncWaiter {
  done(): void;
  failed(error: LabfeedError): void;
}

/**
 * One sync at a time. Those who ask while one is under way wait for the next, since what they wrote may have come too
 * late for it. After a failed sync, the operating system may have dropped what it could not write, and a later sync
 * would succeed without it: nothing counts as durable any more until the journal is opened again.
 */
function shareSyncs(sync: () => Promise<void>, ended: () => void) {
  let waiting: SyncWaiter[] = [];
  let running: Promise<void> | undefined;
  let failure: LabfeedError | undefined;

  async function run(): Promise<void> {
    const group = waiting;
    waiting = [];
    try {
      await sync();
    } catch (error) {
      // In a fleet, it is not the disk that refuses.
      failure = error instanceof LabfeedError ? error : notSynced(error);
    }
    running = undefined;
    const failed = failure;
    if (failed) for (const one of [...group, ...waiting.splice(0)]) one.failed(failed);
    else for (const one of group) one.done();
    ended();
    if (waiting.length > 0) running ??= run();
  }

  return {
    wait(waiter: SyncWaiter): void {
      if (failure) waiter.failed(failure);
      else waiting.push(waiter);
      if (waiting.length > 0) running ??= run();
    },
    isRunning: () => running !== undefined,
    async idle(): Promise<void> {
      while (running) await running;
    },
    check(): void {
      if (failure) throw failure;
    },
    trouble: () => failure?.message,
  };
}

const sync = promisify(fdatasync);

/**
 * The write-ahead log, to be synced here instead of by SQLite, which would block the event loop. SQLite locks other
 * files, not the log, so that closing a second descriptor releases no lock. Checkpoints need no care: SQLite syncs the
 * log before it copies from it, and the database before it reuses the log. In another mode, or in memory, there is no log, and a
 * commit is as durable as it gets.
 */
function openLog(database: Database) {
  const hasLog = new Connection(database).value<string>`PRAGMA journal_mode` === 'wal';
  let descriptor: number | undefined;
  return {
    async sync(): Promise<void> {
      if (!hasLog) return;
      descriptor ??= openSync(`${database.location()}-wal`, 'r');
      await sync(descriptor);
    },
    async close(): Promise<void> {
      if (descriptor !== undefined) await promisify(close)(descriptor);
      descriptor = undefined;
    },
  };
}

/** Returns functions that resolve or reject the promise of each change, once the transaction has succeeded. */
function writeGroup(db: Connection, group: readonly Waiting[]): (() => void)[] {
  try {
    return inTransaction(db, () => group.map(perform));
  } catch (error) {
    // Almost never: a savepoint for each change would be a quarter of all statements.
    if (!(error instanceof ChangeFailed)) throw error;
    return inTransaction(db, () => group.map((one) => attempt(db, one)));
  }
}

function inTransaction<T>(db: Connection, work: () => T): T {
  try {
    db.run`BEGIN IMMEDIATE`;
    const result = work();
    db.run`COMMIT`;
    return result;
  } catch (error) {
    // After some errors SQLite has rolled back by itself, and a closed journal has nothing to roll back.
    if (db.database.isOpen && db.database.isTransaction) db.run`ROLLBACK`;
    throw error;
  }
}

class ChangeFailed extends Error {
  override readonly name = 'ChangeFailed';
}

function perform({ change, resolve }: Waiting): () => void {
  try {
    const result = change();
    return () => resolve(result);
  } catch (cause) {
    throw new ChangeFailed('a change of the group failed', { cause });
  }
}

/** With a savepoint, so that the change leaves nothing behind if it fails. */
function attempt(db: Connection, { change, resolve, reject }: Waiting): () => void {
  db.run`SAVEPOINT change`;
  try {
    const result = change();
    db.run`RELEASE change`;
    return () => resolve(result);
  } catch (error) {
    // On a full disk SQLite rolls back the whole transaction: then the group fails for this reason.
    if (!db.database.isTransaction) throw error;
    db.run`ROLLBACK TO change`;
    db.run`RELEASE change`;
    return () => reject(error);
  }
}

const notRecorded = (error: unknown): LabfeedError =>
  new LabfeedError(`cannot write the journal: ${explain(error)}`, {
    hint: 'check the free space and permissions on its disk; labfeed sends nothing that it cannot record',
    cause: error,
  });

const notSynced = (error: unknown): LabfeedError =>
  new LabfeedError(`cannot write the journal to disk: ${explain(error)}`, {
    hint: 'check the disk, then restart labfeed; it sends nothing that it cannot record',
    cause: error,
  });
