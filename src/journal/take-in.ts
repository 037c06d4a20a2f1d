import { explain, type FileError } from '../errors.js';
import type { Draft } from '../model.js';
import { type RunIdentity, referenceOf } from '../reference.js';
import type { Database } from './database.js';
import type { RememberFile } from './files.js';
import type { NewRun } from './runs.js';

/**
 * Writes a run with its draft, its comments and its file, or with the reason why there is no draft. One that is
 * quarantined takes what was read now in the place of what was read before. To be called within a commit.
 */
export function createTakeIn(database: Database, rememberFile: RememberFile, now: () => number) {
  const put = database.prepare(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                       step, resting, failure, reason, added_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)
       ON CONFLICT (instrument, sha256, copy, refiling) DO UPDATE SET
         path = excluded.path, size = excluded.size, modified_ms = excluded.modified_ms, mapping = excluded.mapping,
         resting = excluded.resting, failure = excluded.failure, reason = excluded.reason, attempts = 0, due_at = 0,
         updated_at = excluded.updated_at
         WHERE resting = 'quarantined'
       RETURNING id`,
  );
  const identify = createIdentify(database);
  const putDraft = createPutDraft(database);
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  return (
    { instrument, file, copy, backlog, mapping }: NewRun,
    draft: Draft | undefined,
    problem: FileError | undefined,
  ): number | undefined => {
    const identity = identify({ instrument, sha256: file.sha256, copy });
    const reason = problem ? explain(problem) : null;
    const at = now();
    const row: unknown = put.get(
      instrument,
      file.sha256,
      copy,
      identity.refiling,
      referenceOf(identity),
      file.path,
      file.size,
      Number(file.mtimeNs / 1_000_000n),
      backlog ? 1 : 0,
      mapping,
      problem ? 'quarantined' : null,
      problem ? 'file' : null,
      reason,
      at,
      at,
    );
    // Two equal files that arrived together: the first one made the run.
    if (row === undefined) return undefined;
    const run = (row as { id: number }).id;
    rememberFile(instrument, file, 'taken', run);
    history.run(run, at, draft ? 'read' : 'refused', JSON.stringify({ path: file.path, reason }));
    if (draft) putDraft(run, draft);
    return run;
  };
}

/** Which filing of its content a file is read for: the last that was asked for. */
function createIdentify(database: Database): (content: Omit<RunIdentity, 'refiling'>) => RunIdentity {
  const last = database.prepare(
    'SELECT ifnull(max(refiling), 0) AS refiling FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ?',
  );
  return (content) => {
    const row = last.get(content.instrument, content.sha256, content.copy) as { refiling: number };
    return { ...content, refiling: row.refiling };
  };
}

/** What is in the notebook already stays: the experiment's id, and comments that are posted or may be. */
function createPutDraft(database: Database): (run: number, draft: Draft) => void {
  const remember = database.prepare(
    `INSERT INTO earlier_drafts (run, title, date, body) SELECT run, title, date, body FROM drafts
       JOIN runs ON runs.id = run WHERE run = ? AND step <> 'pending'`,
  );
  const put = database.prepare('INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?)');
  // It was described as read before: that is looked at again, and replaced unless a person has changed it.
  const describeAnew = database.prepare(
    "UPDATE runs SET step = 'created' WHERE id = ? AND step = 'described'",
  );
  const drop = database.prepare('DELETE FROM comments WHERE run = ? AND n > ? AND comment IS NULL');
  const putComment = database.prepare(
    `INSERT INTO comments (run, n, text) VALUES (?, ?, ?)
       ON CONFLICT (run, n) DO UPDATE SET text = excluded.text WHERE comment IS NULL`,
  );
  return (run, { title, date, body, tags, comments }) => {
    remember.run(run);
    put.run(run, title, date, body, JSON.stringify(tags));
    describeAnew.run(run);
    drop.run(run, comments.length);
    for (const [index, text] of comments.entries()) putComment.run(run, index + 1, text);
  };
}
