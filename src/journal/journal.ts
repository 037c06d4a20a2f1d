import { z } from 'zod';
import type { Clock } from '../clock.js';
import { ALARM_KINDS } from '../live.js';
import { type AlarmBook, CHANNELS } from '../model.js';
import type { Outbox } from '../outbox.js';
import { createStore, type Database, nullable, openDatabase, type Store } from './database.js';
import { createIntakeJournal, type IntakeJournal } from './intake.js';
import { createOutbox } from './outbox.js';
import { createRecovery, type Recovery } from './recovery.js';
import { createRequestStore, type RequestStore } from './requests.js';

/** The durable record of files and runs, open for its one writer. */
export interface Journal {
  /** Whether it was created just now: it does not know what was filed before. */
  readonly isNew: boolean;
  readonly intake: IntakeJournal;
  readonly outbox: Outbox;
  readonly requests: RequestStore;
  readonly recovery: Recovery;
  readonly alarms: AlarmJournal;
  /** Why the last change could not be written; undefined once a later one succeeded. */
  trouble(): string | undefined;
  /** Writes what is waiting, and gives the journal back. */
  close(): Promise<void>;
}

interface AlarmJournal {
  load(): Promise<AlarmBook>;
  /** Replaces what was there. */
  save(book: AlarmBook): Promise<void>;
}

export async function openJournal(path: string, clock: Clock): Promise<Journal> {
  return createJournal({ ...(await openDatabase(path)), clock });
}

interface JournalParts {
  /** Open, and of the current version. */
  readonly database: Database;
  readonly isNew?: boolean;
  readonly clock: Clock;
  /** Called when the journal is closed. */
  release(): void;
  /** When a group of changes is written: by default at the end of the event loop's turn. */
  schedule?(flush: () => void): void;
}

export function createJournal({ database, isNew = false, clock, release, schedule }: JournalParts): Journal {
  const store = createStore(database, clock.now, schedule);
  return {
    isNew,
    intake: createIntakeJournal(store),
    outbox: createOutbox(store),
    requests: createRequestStore(store),
    recovery: createRecovery(store),
    alarms: createAlarmJournal(store),
    trouble: store.trouble,
    async close() {
      try {
        store.flush();
        // The whole journal in one file again, so that copying that file copies everything.
        database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
      } finally {
        database.close();
        release();
      }
    },
  };
}

const alarmRow = z.object({
  kind: z.enum(ALARM_KINDS),
  instrument: nullable(z.string()),
  since: z.number(),
  text: z.string(),
});
const noticeRow = alarmRow.extend({
  channel: z.enum(CHANNELS),
  state: z.enum(['raised', 'over']),
  at: z.number(),
  attempts: z.number(),
  dueAt: z.number(),
});

/** A few rows, rewritten whenever one of them changes. */
const createAlarmJournal = ({ db, commit }: Store): AlarmJournal => ({
  async load() {
    const alarms = db.rows`SELECT kind, instrument, since, text FROM alarms ORDER BY since`;
    const notices = db.rows`
      SELECT kind, instrument, since, text, channel, state, at, attempts, due_at AS dueAt FROM notices
        ORDER BY id`;
    return {
      raised: alarms.map((row) => alarmRow.parse(row)),
      unsent: notices.map((row) => noticeRow.parse(row)),
    };
  },
  save: ({ raised, unsent }) =>
    commit(() => {
      db.run`DELETE FROM alarms`;
      db.run`DELETE FROM notices`;
      for (const { kind, instrument, since, text } of raised)
        db.run`
          INSERT INTO alarms (kind, instrument, since, text)
            VALUES (${kind}, ${instrument ?? null}, ${since}, ${text})`;
      for (const { kind, instrument, since, text, channel, state, at, attempts, dueAt } of unsent)
        db.run`
          INSERT INTO notices (kind, instrument, since, text, channel, state, at, attempts, due_at) VALUES
            (${kind}, ${instrument ?? null}, ${since}, ${text}, ${channel}, ${state}, ${at}, ${attempts},
            ${dueAt})`;
    }),
});
