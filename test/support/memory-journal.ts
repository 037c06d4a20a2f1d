import { DatabaseSync, type DatabaseSyncInstance } from '@photostructure/sqlite';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { migrate } from '../../src/journal/database.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';

/** An empty journal of the current version, in a file or in memory. */
export function emptyDatabase(path = ':memory:'): DatabaseSyncInstance {
  const database = new DatabaseSync(path);
  database.exec('PRAGMA auto_vacuum = INCREMENTAL');
  migrate(database, path);
  return database;
}

/** The real journal, but in memory: for tests that create hundreds. */
export function memoryJournal(clock: Clock): Journal {
  const journal = createJournal({ database: emptyDatabase(), clock, release: () => undefined });
  onTestFinished(() => journal.close());
  return journal;
}
