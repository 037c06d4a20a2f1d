import { z } from 'zod';
import type { Draft, DraftVariant } from '../model.js';
import type { Reading } from '../outbox.js';
import { type Connection, flag, parseRows } from './database.js';

/** What is filed of a reading. */
export interface Filed {
  readonly draft: Draft;
  /** See `Reading`. */
  readonly omits: Reading['omits'] | undefined;
  /** Where the plot belongs, if not where it belongs in the reading. */
  readonly plotAt?: number;
  /** What is filed instead if the raw file is not attached after all. */
  readonly unattached?: Readings;
}

type Readings = Pick<DraftVariant, 'comments' | 'omits'>;

/** Many readings are filed briefly if the raw file is attached. */
export function chooseVariant(draft: Draft, omits: Reading['omits'], isAttached: () => boolean): Filed {
  const { attached, comments } = draft;
  if (!attached || !isAttached()) return { draft, omits };
  const { plotAt, ...variant } = attached;
  return {
    draft: { ...draft, ...variant },
    omits: attached.omits,
    plotAt,
    unattached: { comments, omits: omits ?? [] },
  };
}

/** Stores what the file of a new run reads as. */
export function putDraft(db: Connection, run: number, filed: Filed): void {
  writeDraft(db, run, filed);
  for (const [index, text] of filed.draft.comments.entries())
    db.run`INSERT INTO comments (run, n, text) VALUES (${run}, ${index + 1}, ${text})`;
}

function writeDraft(db: Connection, run: number, { draft, omits, unattached }: Filed): void {
  const { title, date, body, tags, extras } = draft;
  db.run`
    INSERT OR REPLACE INTO drafts (run, title, date, body, tags, extras, omits, unattached)
      VALUES (${run}, ${title}, ${date}, ${body}, ${JSON.stringify(tags)}, ${extras ? JSON.stringify(extras) : null},
      ${omits ? JSON.stringify(omits) : null}, ${unattached ? JSON.stringify(unattached) : null})`;
}

/**
 * Stores what the file reads as now. Earlier readings that the notebook has, or may have, are kept until the run is
 * finished: delivery needs them to recognise what a person changed.
 */
export function replaceDraft(db: Connection, run: number, filed: Filed): void {
  const wasSent = !db.exists`SELECT 1 FROM drafts WHERE run = ${run} AND unsent = 1`;
  keepEarlier(db, run);
  // What is replaced may have been an addition to the one before; the new reading is more than that.
  db.run`UPDATE earlier_drafts SET addition = 0 WHERE run = ${run} AND addition = 1`;
  writeDraft(db, run, filed);
  // Without an experiment, a creation may carry the draft.
  db.run`
    UPDATE drafts SET unsent = 1 WHERE run = ${run} AND (SELECT step FROM runs WHERE id = ${run})
      IN ('created', 'described', 'done')`;
  // It was described by the earlier reading: that is read back, and replaced unless a person changed it.
  db.run`UPDATE runs SET step = 'created' WHERE id = ${run} AND step IN ('described', 'done')`;
  replaceComments(db, run, filed.draft.comments, wasSent);
}

/** The same for a run that has nothing in the notebook any more, and is filed again only at a person's request. */
export function storeDraft(db: Connection, run: number, filed: Filed): void {
  db.run`DELETE FROM comments WHERE run = ${run}`;
  putDraft(db, run, filed);
}

/** The body and the rest of a done run are replaced; its comments stay. */
export function replaceDescription(db: Connection, run: number, filed: Filed): void {
  keepEarlier(db, run);
  writeDraft(db, run, filed);
}

/** `isAddition`: the next draft only adds a plot or a note. */
const keepEarlier = (db: Connection, run: number, isAddition = false): unknown =>
  db.run`
    INSERT INTO earlier_drafts (run, title, date, body, tags, extras, written, stored, addition)
      SELECT run, title, date, body, tags, extras, step IN ('described', 'done'), stored, ${Number(isAddition)}
      FROM drafts JOIN runs ON runs.id = run WHERE run = ${run} AND step <> 'pending' AND unsent = 0`;

/**
 * Has a done run delivered again with another body, and with all its readings if its raw file is not attached. Without
 * a body, only its comments are written. While a run is on its way, its delivery already has what it will write: it is
 * amended when it is done.
 */
export function amendDone(
  db: Connection,
  run: number,
  change?: { readonly body: string; readonly was?: string | undefined },
): void {
  const isCurrent =
    change !== undefined && db.exists`SELECT 1 FROM drafts WHERE run = ${run} AND body = ${change.was ?? ''}`;
  const body = isCurrent ? change.body : undefined;
  const json = db.value<string>`
    SELECT unattached FROM drafts WHERE run = ${run} AND unattached IS NOT NULL
      AND (EXISTS (SELECT 1 FROM attachments WHERE attachments.run = drafts.run AND kind = 'raw' AND refused = 1)
      OR NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.run = drafts.run AND kind = 'raw'))`;
  if (json === undefined && body === undefined) return;
  if (!db.exists`SELECT 1 FROM runs WHERE id = ${run} AND step = 'done'`) return;
  if (body !== undefined) {
    keepEarlier(db, run, true);
    db.run`UPDATE drafts SET body = ${body}, stored = NULL WHERE run = ${run}`;
  }
  if (json !== undefined) {
    // Written by this program, so it is not validated.
    const { comments, omits } = JSON.parse(json) as Readings;
    db.run`UPDATE drafts SET omits = ${JSON.stringify(omits)}, unattached = NULL WHERE run = ${run}`;
    replaceComments(db, run, comments);
  }
  db.run`
    UPDATE runs SET step = ${body === undefined ? 'described' : 'created'}, attempts = 0, due_at = 0
      WHERE id = ${run}`;
}

/** `wasSent`: whether the draft that is replaced may have been sent. */
function replaceComments(db: Connection, run: number, comments: readonly string[], wasSent = true): void {
  dropComments(db, run, comments, wasSent);
  for (const [index, text] of comments.entries()) putComment(db, run, index + 1, text);
}

/** `sent`: whether a POST of it may have been sent. */
const sentRow = z.object({ n: z.number(), text: z.string(), comment: z.number().nullable(), sent: flag });

/** Moves texts that the notebook may have to the earlier ones, and sets surplus comments aside. */
function dropComments(db: Connection, run: number, texts: readonly string[], wasSent: boolean): void {
  const rows = db.rows`
    SELECT n, text, comment, intent_at IS NOT NULL OR comment IS NOT NULL AS sent FROM comments
      WHERE run = ${run}`;
  for (const { n, text, comment, sent } of parseRows(sentRow, rows)) {
    // A comment of a draft that was never sent may have the text of an earlier one.
    const mayBeThere = sent && (wasSent || !db.exists`SELECT 1 FROM earlier_comments WHERE run = ${run} AND n = ${n}`);
    if (mayBeThere && texts[n - 1] !== text)
      db.run`INSERT INTO earlier_comments (run, n, text) VALUES (${run}, ${n}, ${text})`;
    if (n <= texts.length) continue;
    db.run`UPDATE earlier_comments SET comment = ${comment} WHERE run = ${run} AND n = ${n}`;
    db.run`DELETE FROM comments WHERE run = ${run} AND n = ${n}`;
  }
}

function putComment(db: Connection, run: number, n: number, text: string): void {
  const changed = db.run`UPDATE comments SET text = ${text} WHERE run = ${run} AND n = ${n}`;
  if (changed.changes > 0) return;
  // One that was set aside keeps its id; if that is unknown, it is looked for before it is posted.
  const restored = db.run`
    INSERT INTO comments (run, n, text, comment, intent_at)
      SELECT run, n, ${text}, comment, CASE WHEN comment IS NULL THEN 0 END FROM earlier_comments
      WHERE run = ${run} AND n = ${n} LIMIT 1`;
  if (restored.changes > 0) return;
  // If this journal is older than the notebook, a later one may have posted it.
  db.run`
    INSERT INTO comments (run, n, text, gone)
      SELECT id, ${n}, ${text}, iif(experiment IS NULL, NULL, 0) FROM runs WHERE id = ${run}`;
}
