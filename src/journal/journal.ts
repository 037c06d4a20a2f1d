import { z } from 'zod';
import type { Clock } from '../clock.js';
import { ALARM_KINDS } from '../live.js';
import { type AlarmBook, CHANNELS } from '../model.js';
import { type Database, nullable, openDatabase, parseRows } from './database.js';
import { createGrowingJournal } from './growing.js';
import { createGrowths } from './growths.js';
import { createNotes, identify, idOfPlace, type Note, readNote } from './identity.js';
import { createIntakeJournal } from './intake.js';
import { createOutbox } from './outbox.js';
import { createRecovery } from './recovery.js';
import { createRequestStore } from './requests.js';
import { createStore, type Store, type StoreOptions } from './store.js';

/** The durable record of files and runs, open for its one writer. */
export type Journal = ReturnType<typeof createJournal>;

export async function openJournal(path: string, clock: Clock): Promise<Journal> {
  const opened = await openDatabase(path);
  const before = readNote(path);
  return createJournal({ ...opened, before, makeId: () => before?.journal ?? idOfPlace(path), clock });
}

interface JournalParts extends StoreOptions {
  /** Open, and of the current version. */
  readonly database: Database;
  readonly isNew?: boolean;
  /** The last note beside the journal. */
  readonly before?: Note | undefined;
  /** The id of a journal that has none yet: random by default. */
  makeId?(): string;
  readonly clock: Clock;
  /** Called when the journal is closed. */
  release(): void;
}

export function createJournal(parts: JournalParts) {
  const { database, isNew = false, before, makeId, clock, release, ...options } = parts;
  const store = createStore(database, clock.now, options);
  const id = identify(store.db, makeId);
  return {
    /** Whether it was created just now: it does not know what was filed before. */
    isNew,
    intake: createIntakeJournal(store),
    growing: createGrowingJournal(store),
    growths: createGrowths(store),
    notes: createNotes(store, id, before),
    outbox: createOutbox(store, id),
    requests: createRequestStore(store),
    recovery: createRecovery(store),
    alarms: createAlarmJournal(store),
    /** Why the last change could not be written; undefined once a later one succeeded. */
    trouble: store.trouble,
    /**
     * Resolves when a change was written or refused: on a full disk, the journal waits for space. Rejects after a failed
     * sync, until a restart.
     */
    async respond(): Promise<void> {
      store.check();
      await store.commit(() => undefined).catch(() => undefined);
      store.check();
    },
    /** For the members of a fleet, whose tables are in the same database. */
    store,
    /** Writes pending changes, and releases the journal. */
    async close(): Promise<void> {
      try {
        await store.close();
        // Merges the whole journal into one file, so that copying that file copies everything.
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
const createAlarmJournal = ({ db, commit }: Store) => ({
  async load(): Promise<AlarmBook> {
    const alarms = db.rows`SELECT kind, instrument, since, text FROM alarms ORDER BY since`;
    const notices = db.rows`
      SELECT kind, instrument, since, text, channel, state, at, attempts, due_at AS dueAt FROM notices
        ORDER BY id`;
    return { raised: parseRows(alarmRow, alarms), unsent: parseRows(noticeRow, notices) };
  },
  /** Replaces what was there. */
  save: ({ raised, unsent }: AlarmBook) =>
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
