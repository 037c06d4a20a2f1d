import { skipBeforeNs } from '../config/existing.js';
import type { Existing } from '../config/schema.js';
import type { FileStamp, FoundFile } from '../model.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';

/** Why a path is known although it may have no run: it was taken, passed over, or is part of a question. */
export type Verdict = 'taken' | 'skipped' | 'asked';

export interface FileJournal {
  /** The quick look: of these files, the ones that are new or not as they were. */
  unknown(instrument: string, files: readonly FoundFile[]): Promise<FoundFile[]>;
  /** Whether this path was taken as a run before, with other bytes. */
  wasTaken(instrument: string, file: { readonly path: string; readonly sha256: string }): Promise<boolean>;
  /** Remembers these files as passed over. */
  skip(instrument: string, files: readonly FoundFile[]): Promise<void>;
  /** Whether the instrument's folder was once listed from end to end. */
  hadFirstScan(instrument: string): Promise<boolean>;
  /** The marker is durable and set only after a complete listing: a share that was away is not an empty one. */
  endFirstScan(instrument: string): Promise<void>;
  /** Holds these files as part of one question. */
  ask(instrument: string, files: readonly FoundFile[]): Promise<void>;
  /** Settles the question as the configuration now says; returns how many files were waiting for it. */
  answer(instrument: string, existing: Existing): Promise<number>;
  /** Files of runs that were quarantined, or drifted, under another mapping are to be looked at again. */
  reconsider(instrument: string, mapping: string): Promise<number>;
}

/** For the writing of a run, which remembers its file in the same breath. */
export type RememberFile = (
  instrument: string,
  file: FileStamp & { path: string },
  verdict: Verdict,
  run: number | null,
) => void;

export function createFileJournal(
  database: Database,
  commit: Commit,
  now: () => number,
): FileJournal & { rememberNow: RememberFile } {
  const same = database.prepare(
    'SELECT 1 FROM files WHERE instrument = ? AND path = ? AND size = ? AND mtime_ns = ? AND inode = ?',
  );
  const begin = database.prepare('BEGIN');
  const end = database.prepare('COMMIT');
  const taken = database.prepare(
    `SELECT 1 FROM files JOIN runs ON runs.id = files.run
       WHERE files.instrument = ? AND files.path = ? AND verdict = 'taken' AND sha256 <> ?`,
  );
  const put = database.prepare('INSERT OR REPLACE INTO files VALUES (?, ?, ?, ?, ?, ?, ?)');
  const scanned = database.prepare('SELECT 1 FROM instruments WHERE name = ?');
  const countAsked = database.prepare(
    "SELECT count(*) AS asked FROM files WHERE instrument = ? AND verdict = 'asked'",
  );
  const mark = database.prepare(
    'INSERT INTO instruments VALUES (?, ?, ?) ON CONFLICT (name) DO UPDATE SET asked = excluded.asked',
  );
  const skipAsked = database.prepare(
    "UPDATE files SET verdict = 'skipped' WHERE instrument = ? AND verdict = 'asked' AND mtime_ns < ?",
  );
  const freeAsked = database.prepare("DELETE FROM files WHERE instrument = ? AND verdict = 'asked'");
  const freeFailed = database.prepare(
    `DELETE FROM files WHERE run IN (SELECT id FROM runs WHERE instrument = ? AND mapping <> ?
       AND (resting = 'quarantined' OR resting = 'held' AND failure = 'drift'))`,
  );
  const askedOf = (instrument: string): number =>
    Number((countAsked.get(instrument) as { asked: number }).asked);
  const rememberNow: RememberFile = (instrument, file, verdict, run) => {
    put.run(instrument, file.path, file.size, file.mtimeNs, signed(file.inode), verdict, run);
  };
  const rememberAll = (instrument: string, files: readonly FoundFile[], verdict: Verdict): void => {
    for (const file of files) rememberNow(instrument, file, verdict, null);
  };

  return {
    rememberNow,
    async unknown(instrument, files) {
      // Within one transaction the look-ups of a batch cost half: 50,000 take 0.2 s.
      begin.run();
      try {
        return files.filter(
          ({ path, size, mtimeNs, inode }) => !same.get(instrument, path, size, mtimeNs, signed(inode)),
        );
      } finally {
        end.run();
      }
    },
    wasTaken: async (instrument, { path, sha256 }) => taken.get(instrument, path, sha256) !== undefined,
    skip: (instrument, files) => commit(() => rememberAll(instrument, files, 'skipped')),
    hadFirstScan: async (instrument) => scanned.get(instrument) !== undefined,
    endFirstScan: (instrument) =>
      commit(() => {
        mark.run(instrument, now(), askedOf(instrument));
      }),
    ask: (instrument, files) => commit(() => rememberAll(instrument, files, 'asked')),
    answer: (instrument, existing) =>
      commit(() => {
        const waiting = askedOf(instrument);
        if (waiting === 0) return 0;
        skipAsked.run(instrument, skipBeforeNs(existing));
        freeAsked.run(instrument);
        mark.run(instrument, now(), 0);
        return waiting;
      }),
    reconsider: (instrument, mapping) => commit(() => freeFailed.run(instrument, mapping).changes),
  };
}

/** Some file systems number inodes beyond what SQLite's signed integers hold; only equality matters here. */
const signed = (inode: bigint): bigint => BigInt.asIntN(64, inode);
