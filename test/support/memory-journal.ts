import { DatabaseSync } from '@photostructure/sqlite';
import { onTestFinished } from 'vitest';
import type { Clock } from '../../src/clock.js';
import { migrate } from '../../src/journal/database.js';
import { createJournal, type Journal } from '../../src/journal/journal.js';

/** The real journal, but in memory: for tests that create hundreds. */
export function memoryJournal(clock: Clock): Journal {
  const database = new DatabaseSync(':memory:');
  migrate(database, ':memory:');
  const journal = createJournal({ database, clock, release: () => undefined });
  onTestFinished(() => journal.close());
  return journal;
}
