import { copyFileSync, existsSync } from 'node:fs';
import { join } from 'node:path';
import { onTestFinished } from 'vitest';
import { openJournal } from '../../src/journal/journal.js';
import { openReader } from '../../src/journal/reader.js';
import { manualClock } from '../support/manual-clock.js';
import { tempFolder } from '../support/temp-folder.js';
import { type TestedOutbox, testOutbox } from './outbox-contract.js';

async function open(path: string): Promise<TestedOutbox> {
  const journal = await openJournal(path, manualClock());
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    await journal.close();
  });
  return { ...journal, reader, afterCrash: () => open(copyOf(path)) };
}

/** The files as a killed process leaves them. */
function copyOf(path: string): string {
  const copy = join(tempFolder(), 'journal.db');
  for (const ending of ['', '-wal']) if (existsSync(path + ending)) copyFileSync(path + ending, copy + ending);
  return copy;
}

testOutbox('SQLite', () => open(join(tempFolder(), 'journal.db')));
