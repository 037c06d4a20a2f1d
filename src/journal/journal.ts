import type { Clock } from '../clock.js';
import {
  type AlarmJournal,
  createAlarmJournal,
  createRestingJournal,
  type RestingJournal,
} from './alarms.js';
import { createCommit, type Database, openDatabase } from './database.js';
import { createFileJournal, type FileJournal } from './files.js';
import { createInbox, type Inbox } from './inbox.js';
import { createPruning, type Pruning } from './maintenance.js';
import {
  createApplyChange,
  createDueJournal,
  createRunJournal,
  type DueJournal,
  type RunJournal,
} from './outbox.js';
import { createRecoveryJournal, type RecoveryJournal } from './recovery.js';
import {
  createServerJournal,
  createSetBackJournal,
  type ServerJournal,
  type SetBackJournal,
} from './servers.js';

/** The truth about every run. Whatever it promises to have recorded is on disk. */
export interface Journal {
  /** Whether it was made just now: what was filed before, if anything was, it does not know. */
  readonly isNew: boolean;
  readonly files: FileJournal;
  readonly runs: RunJournal;
  readonly queue: DueJournal;
  readonly servers: ServerJournal;
  readonly inbox: Inbox;
  readonly recovery: RecoveryJournal;
  readonly setBack: SetBackJournal;
  readonly pruning: Pruning;
  readonly resting: RestingJournal;
  readonly alarms: AlarmJournal;
  /** Why the last change could not be written; undefined once one could again. */
  trouble(): string | undefined;
  /** Writes what is still under way, then gives the journal free for others. */
  close(): Promise<void>;
}

export async function openJournal(path: string, clock: Clock): Promise<Journal> {
  return createJournal({ ...(await openDatabase(path)), clock });
}

interface JournalParts {
  /** Open, and of today's version. */
  readonly database: Database;
  readonly isNew?: boolean;
  readonly clock: Clock;
  /** Called when the journal is closed. */
  release(): void;
  /** When a group of changes is written: by default at the end of the event loop's turn. */
  schedule?(flush: () => void): void;
}

export function createJournal({ database, isNew = false, clock, release, schedule }: JournalParts): Journal {
  const { commit, flush, trouble } = createCommit(database, schedule);
  const { rememberNow, ...files } = createFileJournal(database, commit, clock.now);
  const apply = createApplyChange(database);
  return {
    isNew,
    files,
    runs: createRunJournal(database, commit, apply, rememberNow, clock.now),
    queue: createDueJournal(database),
    servers: createServerJournal(database, commit, apply, clock.now),
    inbox: createInbox(database, commit, clock.now),
    recovery: createRecoveryJournal(database, commit, clock.now),
    setBack: createSetBackJournal(database, commit, clock.now),
    pruning: createPruning(database, commit),
    resting: createRestingJournal(database),
    alarms: createAlarmJournal(database, commit),
    trouble,
    async close() {
      try {
        flush();
        // The whole journal in one file again, so that a copy of it is a copy.
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } finally {
        database.close();
        release();
      }
    },
  };
}
