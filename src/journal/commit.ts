import { LabfeedError } from '../errors.js';
import type { Database } from './database.js';

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
