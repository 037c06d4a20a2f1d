import { skipBeforeNs } from '../config/existing.js';
import type { Existing } from '../config/schema.js';
import type { Database } from './database.js';
import type { Answer } from './requests.js';

/** The question that many old files at an instrument's first scan raise. To be called within a commit. */
export interface Question {
  /** The first scan has ended: from now on the question, if there is one, can be answered. */
  raise(instrument: string, at: number): void;
  /** Settles it; returns how many files were waiting, and how many of them are to be taken. */
  settle(
    instrument: string,
    existing: Existing,
    at: number,
  ): { readonly asked: number; readonly taken: number };
  hadFirstScan(instrument: string): boolean;
}

export function createQuestion(database: Database): Question {
  const scanned = database.prepare('SELECT 1 FROM instruments WHERE name = ?');
  const count = database.prepare(
    "SELECT count(*) AS asked FROM files WHERE instrument = ? AND verdict = 'asked'",
  );
  const mark = database.prepare(
    'INSERT INTO instruments VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET asked = excluded.asked',
  );
  const skip = database.prepare(
    "UPDATE files SET verdict = 'skipped' WHERE instrument = ? AND verdict = 'asked' AND mtime_ns < ?",
  );
  const free = database.prepare("DELETE FROM files WHERE instrument = ? AND verdict = 'asked'");
  const askedOf = (instrument: string): number => Number((count.get(instrument) as { asked: number }).asked);

  return {
    raise: (instrument, at) => void mark.run(instrument, at, askedOf(instrument)),
    settle(instrument, existing, at) {
      const asked = askedOf(instrument);
      if (asked === 0) return { asked, taken: 0 };
      skip.run(instrument, skipBeforeNs(existing));
      const taken = Number(free.run(instrument).changes);
      mark.run(instrument, at, 0);
      return { asked, taken };
    },
    hadFirstScan: (instrument) => scanned.get(instrument) !== undefined,
  };
}

/** Answers it as a person says. */
export function createBackfill(
  database: Database,
): (instrument: string, existing: Existing, at: number) => Answer {
  const question = createQuestion(database);

  return (instrument, existing, at) => {
    if (!question.hadFirstScan(instrument)) {
      const text = `${instrument} was not scanned to the end yet: the question, if there is one, comes after that`;
      return { done: false, text };
    }
    const { asked, taken } = question.settle(instrument, existing, at);
    if (asked === 0) return { done: false, text: `no old files of ${instrument} wait for an answer` };
    const passed = asked - taken;
    const parts = [
      ...(taken > 0 ? [`${files(taken)} will be filed, after what comes in meanwhile`] : []),
      ...(passed > 0 ? [`${files(passed)} passed over`] : []),
    ];
    return { done: true, text: `${instrument}: ${parts.join('; ')}`, rescan: instrument };
  };
}

const files = (count: number): string => (count === 1 ? '1 old file' : `${count} old files`);
