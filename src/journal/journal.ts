import { createHash, randomBytes } from 'node:crypto';
import { readFileSync, realpathSync } from 'node:fs';
import { open, rename, rm, stat } from 'node:fs/promises';
import { hostname } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { z } from 'zod';
import type { Clock } from '../clock.js';
import { ALARM_KINDS } from '../live.js';
import { type AlarmBook, CHANNELS } from '../model.js';
import { type Connection, type Database, nullable, openDatabase, parseRows } from './database.js';
import { createGrowingJournal } from './growing.js';
import { createGrowths } from './growths.js';
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

/**
 * The journal's id, which is part of every origin line: it tells our experiments from those of another PC with an
 * instrument of the same name.
 */
function identify(db: Connection, makeId: () => string = randomId): string {
  const known = db.value<string>`SELECT id FROM identity`;
  if (known !== undefined) return known;
  const id = makeId();
  db.run`INSERT INTO identity (id) VALUES (${id})`;
  return id;
}

const randomId = (): string => randomBytes(4).toString('hex');

/** The same for a journal that was lost and created again in this place on this machine, so that it is recognised. */
export function idOfPlace(path: string, machineFile = '/etc/machine-id'): string {
  try {
    const place = [readFileSync(machineFile, 'utf8').trim(), hostname(), realPath(path)];
    return createHash('sha256').update(JSON.stringify(place)).digest('hex').slice(0, 8);
  } catch {
    return randomId();
  }
}

const realPath = (path: string): string => join(realpathSync(dirname(path)), basename(path));

const noteSchema = z.object({ journal: z.string(), noted: z.number() });

/**
 * How far the journal had come. The journal counts its notes, and the last one is also in the file `JOURNAL.seen`, which
 * no backup of the journal brings back: a note that the journal does not have shows that the journal was lost, or
 * restored from a copy. This needs no request, so it works on every server.
 */
export type Note = z.output<typeof noteSchema>;

const noteFileOf = (path: string): string => `${path}.seen`;

/** The last note beside this journal; undefined if there is none that can be read. */
export function readNote(path: string): Note | undefined {
  try {
    return noteSchema.parse(JSON.parse(readFileSync(noteFileOf(path), 'utf8')));
  } catch {
    return undefined;
  }
}

/** Replaces the file atomically. If root writes it, it belongs to the owner of the journal. */
export async function writeNote(path: string, note: Note): Promise<void> {
  const file = noteFileOf(path);
  // The owner of the folder, who is not root, could have put a link there.
  await rm(`${file}.new`, { force: true });
  const handle = await open(`${file}.new`, 'wx', 0o600);
  try {
    await handle.writeFile(JSON.stringify(note));
    if (process.geteuid?.() === 0) {
      const { uid, gid } = await stat(path);
      await handle.chown(uid, gid);
    }
  } finally {
    await handle.close();
  }
  await rename(`${file}.new`, file);
}

function createNotes({ db, commit }: Store, id: string, before: Note | undefined) {
  const noted = (): number => db.value<number>`SELECT noted FROM identity` ?? 0;
  const changes = (): number => db.value<number>`SELECT total_changes()` ?? 0;
  let lastChanges = -1;
  return {
    /** Whether the journal lacks what the note from before it was opened shows. Then `take` would hide that. */
    isBehind: before !== undefined && (before.journal !== id || before.noted > noted()),
    /** A new note, durable in the journal before it may be written to the file; undefined if nothing has changed. */
    async take(): Promise<Note | undefined> {
      if (changes() === lastChanges) return undefined;
      return commit(() => {
        db.run`UPDATE identity SET noted = max(noted, ${before?.noted ?? 0}) + 1`;
        lastChanges = changes();
        return { journal: id, noted: noted() };
      });
    },
  };
}
