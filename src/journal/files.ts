import { createHash } from 'node:crypto';
import { type Existing, skipBeforeNs } from '../config/schema.js';
import { type FoundFile, filesOf, type IdentifiedFile } from '../model.js';
import type { Commit, Database } from './database.js';
import type { Answer } from './requests.js';

/** Why a path is known although it may have no run: it was taken, passed over, or is part of a question. */
type Verdict = 'taken' | 'skipped' | 'asked';

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

/** The question that many old files at an instrument's first scan raise. To be called within a commit. */
interface Question {
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

function createQuestion(database: Database): Question {
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

/**
 * What stands in the place of a name that was erased: a file of that name is known again, but nobody reads the name
 * from it. No path begins so, since paths are absolute.
 */
const hide = (...parts: readonly string[]): string =>
  `${HIDDEN}${createHash('sha256').update(JSON.stringify(parts)).digest('hex')}`;

const HIDDEN = 'erased:';

/** As SQL: whether a path in `files` can be read. */
export const READABLE = `path NOT GLOB '${HIDDEN}*'`;

export const hiddenPath = (instrument: string, path: string): string => hide(instrument, path);

/** What tells equal files at several paths apart, and is a path itself. */
interface Copy {
  readonly instrument: string;
  readonly sha256: string;
  readonly copy: string;
}

/** Hidden once and for all runs of these bytes at this path, also those to come. */
export const hiddenCopy = ({ instrument, sha256, copy }: Copy): string =>
  copy.startsWith(HIDDEN) ? copy : hide(instrument, sha256, copy);

/** As what the journal knows a copy: by its path, or hidden where one of its runs was erased. */
export function createCopyOf(database: Database): (run: Copy) => string {
  const find = database.prepare(
    'SELECT 1 FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ? LIMIT 1',
  );
  return (run) => {
    if (run.copy === '') return '';
    const hidden = hiddenCopy(run);
    return find.get(run.instrument, run.sha256, hidden) === undefined ? run.copy : hidden;
  };
}
