import type { Clock } from '../clock.js';
import { createApplyChange } from './changes.js';
import { createCommit } from './commit.js';
import { openDatabase } from './database.js';
import { createDueJournal, type DueJournal } from './due.js';
import { createFileJournal, type FileJournal } from './files.js';
import { createRunJournal, type RunJournal } from './runs.js';
import { createServerJournal, type ServerJournal } from './servers.js';

/** The truth about every run. Whatever it promises to have recorded is on disk. */
export interface Journal {
  readonly files: FileJournal;
  readonly runs: RunJournal;
  readonly queue: DueJournal;
  readonly servers: ServerJournal;
  /** Writes what is still under way, then gives the journal free for others. */
  close(): Promise<void>;
}

export async function openJournal(path: string, clock: Clock): Promise<Journal> {
  const { database, release } = await openDatabase(path);
  const { commit, flush } = createCommit(database);
  const { rememberNow, ...files } = createFileJournal(database, commit, clock.now);
  const apply = createApplyChange(database);
  return {
    files,
    runs: createRunJournal(database, commit, apply, rememberNow, clock.now),
    queue: createDueJournal(database),
    servers: createServerJournal(database, commit, apply, clock.now),
    async close() {
      flush();
      database.close();
      release();
    },
  };
}
