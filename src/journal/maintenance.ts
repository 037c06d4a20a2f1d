import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { LabfeedError, systemCode } from '../errors.js';
import { openBeside } from './client.js';
import type { Commit, Database } from './database.js';
import { MIGRATIONS } from './migrations.js';

export interface Pruned {
  /** How many runs lost their history, draft and the texts of their comments. */
  readonly runs: number;
  /** Where the next batch begins; undefined at the end. */
  readonly next: number | undefined;
}

export interface Pruning {
  /**
   * Removes the history, the draft and the texts of comments of runs that were finished before this time, a few at a
   * time. What they are known by, their paths and the notebook's ids stay.
   */
  prune(before: number, from: number): Promise<Pruned>;
}

/** Some twenty runs: a few milliseconds at a time. */
const AT_ONCE = 150;

export function createPruning(database: Database, commit: Commit): Pruning {
  // Whatever was removed is not met again: the oldest rows of the history are those of runs that are to be removed, or
  // of the few that are still open.
  const oldest = database.prepare(
    `SELECT id, run, at FROM history WHERE id > ? ORDER BY id LIMIT ${AT_ONCE}`,
  );
  const finished = database.prepare(
    `SELECT 1 FROM runs WHERE id = ? AND updated_at < ? AND id NOT IN (SELECT run FROM remaps)
       AND (step = 'done' AND resting IS NULL OR resting = 'ignored')`,
  );
  const drop = [
    'DELETE FROM drafts WHERE run = ?',
    'DELETE FROM earlier_drafts WHERE run = ?',
    'DELETE FROM drifts WHERE run = ?',
    'DELETE FROM history WHERE run = ?',
    "UPDATE comments SET text = '' WHERE run = ?",
  ].map((sql) => database.prepare(sql));

  return {
    async prune(before, from) {
      const rows = oldest.all(from) as { id: number; run: number; at: number }[];
      const isEnd = rows.length < AT_ONCE || rows.every(({ at }) => at >= before);
      const next = isEnd ? undefined : rows.at(-1)?.id;
      const suspects = new Set(rows.filter(({ at }) => at < before).map(({ run }) => run));
      if (suspects.size === 0) return { runs: 0, next };
      return commit(() => {
        const old = [...suspects].filter((run) => finished.get(run, before) !== undefined);
        for (const run of old) for (const statement of drop) statement.run(run);
        return { runs: old.length, next };
      });
    },
  };
}

interface Backup {
  readonly runs: number;
  readonly bytes: number;
}

/**
 * Writes a consistent copy of the journal, while the daemon goes on. The copy knows that it is one: whoever starts
 * from it is asked to recover first, since the notebook has moved on where nobody can see it.
 */
export function backUp(journal: string, file: string, server: string | undefined): Backup {
  if (existsSync(file)) throw exists(file);
  const part = `${file}.part`;
  claim(part);
  try {
    copy(journal, part);
    const runs = markAsCopy(part, server);
    sync(part);
    if (existsSync(file)) throw exists(file);
    renameSync(part, file);
    return { runs, bytes: statSync(file).size };
  } catch (error) {
    rmSync(part, { force: true });
    throw error instanceof LabfeedError ? error : cannotWrite(file, error);
  }
}

/** For this user alone: a journal names people's files. */
function claim(part: string): void {
  try {
    closeSync(openSync(part, 'wx', 0o600));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw cannotWrite(part, error);
    throw new LabfeedError(`${part} exists already`, {
      hint: 'another backup is under way there, or was broken off: delete it then',
      cause: error,
    });
  }
}

function copy(journal: string, part: string): void {
  const database = openBeside(journal);
  try {
    database.prepare('VACUUM INTO ?').run(part);
  } finally {
    database.close();
  }
}

function markAsCopy(part: string, server: string | undefined): number {
  const database = new DatabaseSync(part);
  try {
    const halt = database.prepare('UPDATE servers SET halted = ?');
    // Of a notebook that nothing was sent to yet, the journal knows nothing that could be marked.
    if (server !== undefined) database.prepare('INSERT OR IGNORE INTO servers (url) VALUES (?)').run(server);
    halt.run(COPY);
    database.exec('DELETE FROM inbox');
    const row: unknown = database.prepare('SELECT count(*) AS runs FROM runs').get();
    return (row as { runs: number }).runs;
  } finally {
    database.close();
  }
}

const COPY =
  'the journal was restored from a backup, and the notebook may have moved on since: run `labfeed recover`';

function sync(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const exists = (file: string): LabfeedError =>
  new LabfeedError(`${file} exists already, and is not overwritten`, { hint: 'name another file' });

const cannotWrite = (file: string, error: unknown): LabfeedError =>
  new LabfeedError(
    `the backup ${file} cannot be written: ${error instanceof Error ? error.message : error}`,
    {
      hint: 'check that its folder is there, has room and may be written by this user',
      cause: error,
    },
  );

/** What a look at a journal from outside shows, without touching it or its lock. */
type Inspection =
  | { readonly state: 'absent' }
  | { readonly state: 'good'; readonly runs: number }
  | { readonly state: 'newer'; readonly version: number }
  | { readonly state: 'unreadable'; readonly reason: string };

export function inspectJournal(path: string): Inspection {
  if (!existsSync(path)) return { state: 'absent' };
  try {
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const { user_version: version } = database.prepare('PRAGMA user_version').get() as {
        user_version: number;
      };
      if (version > MIGRATIONS.length) return { state: 'newer', version };
      if (version === 0) return { state: 'good', runs: 0 };
      return {
        state: 'good',
        ...(database.prepare('SELECT count(*) AS runs FROM runs').get() as { runs: number }),
      };
    } finally {
      database.close();
    }
  } catch (error) {
    return { state: 'unreadable', reason: error instanceof Error ? error.message : String(error) };
  }
}
