import type { Commit } from './commit.js';
import type { Database } from './database.js';

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
