import { existsSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { MIGRATIONS } from './migrations.js';

/** What a look at a journal from outside shows, without touching it or its lock. */
export type Inspection =
  | { readonly state: 'absent' }
  | { readonly state: 'good'; readonly runs: number }
  | { readonly state: 'newer'; readonly version: number }
  | { readonly state: 'unreadable'; readonly reason: string };

export function inspectJournal(path: string): Inspection {
  if (!existsSync(path)) return { state: 'absent' };
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const { user_version: version } = database.prepare('PRAGMA user_version').get() as {
        user_version: number;
      };
      if (version > MIGRATIONS.length) return { state: 'newer', version };
      if (version === 0) return { state: 'good', runs: 0 };
      return {
        state: 'good',
        ...(database.prepare('SELECT count(*) AS runs FROM runs').get() as { runs: number }),
      };
    } finally {
      database.close();
    }
  } catch (error) {
    return { state: 'unreadable', reason: error instanceof Error ? error.message : String(error) };
  }
}
