import type { Existing } from '../config/schema.js';
import { type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';
import { hiddenPath } from './hidden.js';
import { createQuestion } from './question.js';

/** Why a path is known although it may have no run: it was taken, passed over, or is part of a question. */
export type Verdict = 'taken' | 'skipped' | 'asked';

export interface FileJournal {
  /** The quick look: of these files, the ones that are new or not as they were. */
  unknown(instrument: string, files: readonly FoundFile[]): Promise<FoundFile[]>;
  /** Whether a run was taken from there before, with other bytes. */
  wasTaken(instrument: string, file: IdentifiedFile): Promise<boolean>;
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
  file: FoundFile,
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
  // Passed over once more: what was taken from there before is not forgotten by it.
  const pass = database.prepare(
    `INSERT INTO files VALUES (?, ?, ?, ?, ?, 'skipped', NULL) ON CONFLICT (instrument, path) DO UPDATE SET
       size = excluded.size, mtime_ns = excluded.mtime_ns, inode = excluded.inode,
       verdict = iif(verdict = 'taken', 'taken', 'skipped')`,
  );
  const question = createQuestion(database);
  const freeFailed = database.prepare(
    `UPDATE files SET mtime_ns = -1 WHERE run IN (SELECT id FROM runs WHERE instrument = ? AND mapping <> ?
       AND (resting = 'quarantined' OR resting = 'held' AND failure = 'drift'))`,
  );
  const rememberNow: RememberFile = (instrument, file, verdict, run) => {
    for (const { path, size, mtimeNs, inode } of filesOf(file))
      put.run(instrument, path, size, mtimeNs, signed(inode), verdict, run);
  };
  const passNow = (instrument: string, file: FoundFile): void => {
    for (const { path, size, mtimeNs, inode } of filesOf(file))
      pass.run(instrument, path, size, mtimeNs, signed(inode));
  };

  return {
    rememberNow,
    async unknown(instrument, files) {
      // Within one transaction the look-ups of a batch cost half: 50,000 take 0.2 s.
      begin.run();
      try {
        return files.filter(({ path, size, mtimeNs, inode }) => {
          const isAs = (name: string): boolean =>
            same.get(instrument, name, size, mtimeNs, signed(inode)) !== undefined;
          return !isAs(path) && !isAs(hiddenPath(instrument, path));
        });
      } finally {
        end.run();
      }
    },
    wasTaken: async (instrument, file) =>
      filesOf(file)
        .flatMap(({ path }) => [path, hiddenPath(instrument, path)])
        .some((name) => taken.get(instrument, name, file.sha256) !== undefined),
    skip: (instrument, files) =>
      commit(() => {
        for (const file of files) passNow(instrument, file);
      }),
    hadFirstScan: async (instrument) => question.hadFirstScan(instrument),
    endFirstScan: (instrument) =>
      commit(() => {
        question.raise(instrument, now());
      }),
    ask: (instrument, files) =>
      commit(() => {
        for (const file of files) rememberNow(instrument, file, 'asked', null);
      }),
    answer: (instrument, existing) => commit(() => question.settle(instrument, existing, now()).asked),
    reconsider: (instrument, mapping) => commit(() => freeFailed.run(instrument, mapping).changes),
  };
}

/** Some file systems number inodes beyond what SQLite's signed integers hold; only equality matters here. */
export const signed = (inode: bigint): bigint => BigInt.asIntN(64, inode);
