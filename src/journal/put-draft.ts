import { z } from 'zod';
import type { Draft } from '../model.js';
import type { Database } from './database.js';

/**
 * Writes what a run's file reads as now. What of an earlier reading is in the notebook, or may be, is remembered until
 * the run is finished: by it, delivery tells what a person has changed since. To be called within a commit.
 */
export function createPutDraft(database: Database): (run: number, draft: Draft) => void {
  const remember = database.prepare(
    `INSERT INTO earlier_drafts (run, title, date, body, tags, written)
       SELECT run, title, date, body, tags, step IN ('described', 'done') FROM drafts
         JOIN runs ON runs.id = run WHERE run = ? AND step <> 'pending'`,
  );
  const put = database.prepare('INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?)');
  // It was described as read before: that is looked at again, and replaced unless a person has changed it.
  const describeAnew = database.prepare(
    "UPDATE runs SET step = 'created' WHERE id = ? AND step IN ('described', 'done')",
  );
  const putComments = createPutComments(database);
  return (run, { title, date, body, tags, comments }) => {
    remember.run(run);
    put.run(run, title, date, body, JSON.stringify(tags));
    describeAnew.run(run);
    putComments(run, comments);
  };
}

const sentRow = z.object({
  n: z.number(),
  text: z.string(),
  comment: z.number().nullable(),
  /** Whether a POST of it can have left. */
  sent: z.number().transform((value) => value === 1),
});

function createPutComments(database: Database): (run: number, texts: readonly string[]) => void {
  const before = database.prepare(
    `SELECT n, text, comment, intent_at IS NOT NULL OR comment IS NOT NULL AS sent FROM comments WHERE run = ?`,
  );
  const remember = database.prepare('INSERT INTO earlier_comments (run, n, text) VALUES (?, ?, ?)');
  const setAside = database.prepare('UPDATE earlier_comments SET comment = ? WHERE run = ? AND n = ?');
  const drop = database.prepare('DELETE FROM comments WHERE run = ? AND n = ?');
  const put = createPutComment(database);

  return (run, texts) => {
    for (const row of before.all(run)) {
      const { n, text, comment, sent } = sentRow.parse(row);
      const isWanted = n <= texts.length;
      if (sent && texts[n - 1] !== text) remember.run(run, n, text);
      if (isWanted) continue;
      setAside.run(comment, run, n);
      drop.run(run, n);
    }
    for (const [index, text] of texts.entries()) put(run, index + 1, text);
  };
}

function createPutComment(database: Database): (run: number, n: number, text: string) => void {
  const change = database.prepare('UPDATE comments SET text = ? WHERE run = ? AND n = ?');
  // One that was of no use meanwhile keeps its id; where that is not known, it is looked for before it is posted.
  const takeBack = database.prepare(
    `INSERT INTO comments (run, n, text, comment, intent_at)
       SELECT run, n, ?1, comment, CASE WHEN comment IS NULL THEN 0 END FROM earlier_comments
         WHERE run = ?2 AND n = ?3 LIMIT 1`,
  );
  const add = database.prepare('INSERT INTO comments (run, n, text) VALUES (?, ?, ?)');
  return (run, n, text) => {
    if (change.run(text, run, n).changes > 0 || takeBack.run(text, run, n).changes > 0) return;
    add.run(run, n, text);
  };
}
