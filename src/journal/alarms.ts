import { z } from 'zod';
import { ALARM_KINDS, type LiveAlarm } from '../live.js';
import { type AlarmBook, CHANNELS, type Notice } from '../model.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';

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
      untold: notices.all().map((row) => noticeRow.parse(row)),
    }),
    save: ({ raised, untold }) =>
      commit(() => {
        clearAlarms.run();
        clearNotices.run();
        raised.forEach(insertAlarm);
        untold.forEach(insertNotice);
      }),
  };
}
