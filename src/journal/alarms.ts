import { z } from 'zod';
import { ALARM_KINDS, type LiveAlarm } from '../live.js';
import { type AlarmBook, CHANNELS, type Notice } from '../model.js';
import type { Commit, Database } from './database.js';

export interface AlarmJournal {
  load(): Promise<AlarmBook>;
  /** Takes the place of what was there. */
  save(book: AlarmBook): Promise<void>;
}

const instrument = z
  .string()
  .nullable()
  .transform((name) => name ?? undefined);
const alarmRow = z.object({ kind: z.enum(ALARM_KINDS), instrument, since: z.number(), text: z.string() });
const noticeRow = alarmRow.extend({
  channel: z.enum(CHANNELS),
  state: z.enum(['raised', 'over']),
  at: z.number(),
  attempts: z.number(),
  dueAt: z.number(),
});

/** The alarms that are on, and who is still to be told: a few rows, written anew whenever one of them changes. */
export function createAlarmJournal(database: Database, commit: Commit): AlarmJournal {
  const alarms = database.prepare('SELECT kind, instrument, since, text FROM alarms ORDER BY since');
  const notices = database.prepare(
    'SELECT kind, instrument, since, text, channel, state, at, attempts, due_at AS dueAt FROM notices ORDER BY id',
  );
  const clearAlarms = database.prepare('DELETE FROM alarms');
  const clearNotices = database.prepare('DELETE FROM notices');
  const putAlarm = database.prepare('INSERT INTO alarms (kind, instrument, since, text) VALUES (?, ?, ?, ?)');
  const putNotice = database.prepare(
    `INSERT INTO notices (kind, instrument, since, text, channel, state, at, attempts, due_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );

  function insertAlarm({ kind, instrument, since, text }: LiveAlarm): void {
    putAlarm.run(kind, instrument ?? null, since, text);
  }

  function insertNotice(notice: Notice): void {
    const { kind, instrument, since, text, channel, state, at, attempts, dueAt } = notice;
    putNotice.run(kind, instrument ?? null, since, text, channel, state, at, attempts, dueAt);
  }

  return {
    load: async () => ({
      raised: alarms.all().map((row) => alarmRow.parse(row)),
      unsent: notices.all().map((row) => noticeRow.parse(row)),
    }),
    save: ({ raised, unsent }) =>
      commit(() => {
        clearAlarms.run();
        clearNotices.run();
        raised.forEach(insertAlarm);
        unsent.forEach(insertNotice);
      }),
  };
}

/** Runs of one instrument that rest, and the one of them that came last. */
interface Resting {
  readonly runs: number;
  readonly path: string;
  readonly reason: string | undefined;
}

interface Unsettled {
  readonly quarantined: Resting | undefined;
  readonly held: Resting | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
}

/** What waits for a person. Asked for every second: nothing here reads all runs. */
export interface RestingJournal {
  unsettled(): Promise<ReadonlyMap<string, Unsettled>>;
  /** When the instrument's last run was added. */
  lastFileAt(instrument: string): Promise<number | undefined>;
  /** When the instrument's folder was first listed to the end. */
  firstScanAt(instrument: string): Promise<number | undefined>;
  /** Why nothing is sent to this server until a person has recovered the journal. */
  halted(server: string): Promise<string | undefined>;
}

interface Count {
  readonly instrument: string;
  readonly state: 'quarantined' | 'held';
  readonly runs: number;
}

export function createRestingJournal(database: Database): RestingJournal {
  const counts = database.prepare(
    "SELECT instrument, state, runs FROM tallies WHERE state IN ('quarantined', 'held') AND runs > 0",
  );
  const newest = database.prepare(
    'SELECT path, reason FROM runs WHERE instrument = ? AND resting = ? AND resting IS NOT NULL ORDER BY id DESC LIMIT 1',
  );
  const asked = database.prepare('SELECT name, asked FROM instruments WHERE asked > 0');
  const added = database.prepare(
    'SELECT added_at AS at FROM runs WHERE instrument = ? ORDER BY id DESC LIMIT 1',
  );
  const scanned = database.prepare('SELECT first_scan_at AS at FROM instruments WHERE name = ?');
  const halted = database.prepare('SELECT halted FROM servers WHERE url = ?');

  function restingOf(instrument: string, state: Count['state'], rows: readonly Count[]): Resting | undefined {
    const row = rows.find((one) => one.instrument === instrument && one.state === state);
    if (row === undefined) return undefined;
    const found = newest.get(instrument, state) as { path: string; reason: string | null } | undefined;
    return { runs: row.runs, path: found?.path ?? '', reason: found?.reason ?? undefined };
  }

  return {
    async unsettled() {
      const rows = counts.all() as unknown as Count[];
      const questions = asked.all() as { name: string; asked: number }[];
      const names = new Set([
        ...rows.map(({ instrument }) => instrument),
        ...questions.map(({ name }) => name),
      ]);
      const unsettledOf = (name: string): Unsettled => ({
        quarantined: restingOf(name, 'quarantined', rows),
        held: restingOf(name, 'held', rows),
        asked: questions.find((question) => question.name === name)?.asked ?? 0,
      });
      return new Map([...names].map((name) => [name, unsettledOf(name)]));
    },
    async lastFileAt(instrument) {
      return (added.get(instrument) as { at: number } | undefined)?.at;
    },
    async firstScanAt(instrument) {
      return (scanned.get(instrument) as { at: number } | undefined)?.at;
    },
    async halted(server) {
      return (halted.get(server) as { halted: string | null } | undefined)?.halted ?? undefined;
    },
  };
}
