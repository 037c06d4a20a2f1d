import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished } from 'vitest';
import type { Request } from '../../src/journal/decisions.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { openClient } from '../../src/journal/requests.js';
import { decide } from './journal.js';
import { manualClock } from './manual-clock.js';
import { emptyDatabase } from './memory-journal.js';
import { tempFolder } from './temp-folder.js';

/** A journal on disk that takes requests. */
export interface TestJournal {
  readonly path: string;
  readonly journal: Journal;
  /** Leaves a request as a command does, has it applied, and returns the answer. */
  ask(request: Request): Promise<{ done: boolean; text: string; rescan?: string | undefined }>;
  rows(sql: string): unknown[];
}

export async function openTestJournal(): Promise<TestJournal> {
  const path = join(tempFolder(), 'journal.db');
  emptyDatabase(path).close();
  const journal = await openJournal(path, manualClock());
  onTestFinished(() => journal.close().catch(() => undefined));
  return {
    path,
    journal,
    async ask(request) {
      const client = openClient(path);
      const [asked = 0] = await client.ask([request], 1);
      expect(await client.answerTo(asked)).toBeUndefined();
      await decide(journal);
      const answer = await client.answerTo(asked);
      await client.close();
      if (!answer) throw new Error('no answer');
      return answer;
    },
    rows(sql) {
      const database = new DatabaseSync(path, { readOnly: true });
      try {
        return database.prepare(sql).all();
      } finally {
        database.close();
      }
    },
  };
}
