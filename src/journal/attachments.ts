import { z } from 'zod';
import type { NewAttachment, RunUploads, UploadChange, Uploads } from '../outbox.js';
import { addHistory, type Connection, flag, nullable, parseRow, parseRows, raw } from './database.js';
import type { Store } from './store.js';

/** The attachments of the outbox half. A row is due once its run is done: a trigger sees to that. */
export function createUploads({ db, commit, check, now }: Store): Uploads {
  // One process has the journal, so its claims need not outlive it.
  const claimed = new Set<number>();
  return {
    async claim(at, limit) {
      check();
      const runs = db.values<number>`
        SELECT run ${raw(DUE)} AND attachments.due_at <= ${at} GROUP BY run ORDER BY min(attachments.due_at), run
          LIMIT ${limit + claimed.size} + 0`;
      const free = runs.filter((run) => !claimed.has(run)).slice(0, limit);
      for (const run of free) claimed.add(run);
      return free;
    },
    async release(run) {
      claimed.delete(run);
    },
    async nextDueAt() {
      // By the index of due ones: with a bare `run`, SQLite reads all attachments, 3 ms for 20,000.
      const rows = db.rows<{ run: number; dueAt: number }>`
        SELECT run, min(attachments.due_at) AS dueAt ${raw(DUE)} GROUP BY +run ORDER BY dueAt
          LIMIT ${claimed.size + 1} + 0`;
      return rows.find(({ run }) => !claimed.has(run))?.dueAt;
    },
    load: async (run) => load(db, run),
    record: (run, ...changes) =>
      commit(() => {
        for (const change of changes) applyChange(db, run, change, now());
      }),
    needs: async (sha256) =>
      db.exists`SELECT 1 FROM attachments WHERE sha256 = ${sha256} AND upload IS NULL AND refused = 0`,
    needed: async () =>
      new Set(
        db.values<string>`
          SELECT DISTINCT attachments.sha256 FROM attachments JOIN runs ON runs.id = run WHERE upload IS NULL
            AND refused = 0 AND parked IS NOT 'ignored'`,
      ),
  };
}

/** The run may have been parked, or be on its way again, since it was done. */
const DUE = `FROM attachments JOIN runs ON runs.id = run WHERE attachments.due_at IS NOT NULL AND step = 'done'
  AND parked IS NULL AND experiment IS NOT NULL`;

const optional = nullable(z.number());

const runRow = z.object({
  run: z.number(),
  instrument: z.string(),
  server: nullable(z.string()),
  experiment: optional,
});

const fileRow = z.object({
  n: z.number(),
  name: z.string(),
  path: z.string(),
  sha256: z.string(),
  size: z.number(),
  intentAt: optional,
  upload: optional,
  isOpen: flag,
  attempts: z.number(),
  reason: nullable(z.string()),
});

function load(db: Connection, id: number): RunUploads {
  const row = db.row`
    SELECT id AS run, instrument, server, experiment FROM runs WHERE id = ${id}`;
  const run = parseRow(runRow, row);
  if (run === undefined) throw new Error(`run ${id} is not in the journal`);
  const rows = db.rows`
    SELECT n, name, path, sha256, size, intent_at AS intentAt, upload, due_at IS NOT NULL AS isOpen,
      attempts, reason FROM attachments WHERE run = ${id} ORDER BY n`;
  return { ...run, files: parseRows(fileRow, rows) };
}

function applyChange(db: Connection, run: number, change: UploadChange, at: number): unknown {
  switch (change.kind) {
    case 'uploadIntended':
      return db.run`UPDATE attachments SET intent_at = ${change.at} WHERE run = ${run} AND n = ${change.n}`;
    case 'notUploaded':
      return db.run`UPDATE attachments SET intent_at = NULL WHERE run = ${run} AND n = ${change.n}`;
    case 'uploaded':
      clearReason(db, run, change.n);
      db.run`
        UPDATE attachments SET upload = ${change.upload}, due_at = NULL, reason = NULL WHERE run = ${run}
          AND n = ${change.n}`;
      return noteWithBody(db, run, change, at);
    case 'uploadRefused':
      db.run`
        UPDATE attachments SET refused = 1, due_at = NULL, reason = ${change.reason} WHERE run = ${run}
          AND n = ${change.n}`;
      setReason(db, run, change, at);
      return noteWithBody(db, run, change, at);
    case 'uploadPostponed': {
      // Once for the same reason: an outage can last for a week.
      const isNew = !db.exists`
        SELECT 1 FROM attachments WHERE run = ${run} AND n = ${change.n} AND reason = ${change.reason}`;
      db.run`
        UPDATE attachments SET attempts = attempts + 1, due_at = ${change.dueAt}, reason = ${change.reason}
          WHERE run = ${run} AND n = ${change.n}`;
      setReason(db, run, change, at);
      return isNew && note(db, run, change, at);
    }
    case 'uploadsDropped':
      // A run of which only some files are attached must not look complete.
      db.run`
        UPDATE attachments SET refused = 1, due_at = NULL, reason = ${NOT_WANTED} WHERE run = ${run} AND upload IS NULL
          AND refused = 0 AND run IN (SELECT run FROM attachments WHERE upload IS NOT NULL)`;
      return db.run`DELETE FROM attachments WHERE run = ${run} AND upload IS NULL AND refused = 0`;
  }
}

const NOT_WANTED = 'the configuration no longer has its files attached';

function note(db: Connection, run: number, { kind, ...detail }: UploadChange, at: number): void {
  addHistory(db, run, at, kind, detail);
}

function noteWithBody(
  db: Connection,
  run: number,
  { body, ...change }: Extract<UploadChange, { kind: 'uploaded' | 'uploadRefused' }>,
  at: number,
): void {
  note(db, run, change, at);
  // While the run is on its way, its delivery already has the text that it will write.
  if (body !== undefined && db.exists`SELECT 1 FROM runs WHERE id = ${run} AND step = 'done'`)
    replaceBody(db, run, body);
}

/** The body is then written to the notebook like that of a new reading: not if a person changed it there meanwhile. */
function replaceBody(db: Connection, run: number, body: string): void {
  db.run`
    INSERT INTO earlier_drafts (run, title, date, body, tags, extras, written, stored)
      SELECT run, title, date, body, tags, extras, step IN ('described', 'done'), stored FROM drafts JOIN runs
      ON runs.id = run WHERE run = ${run}`;
  db.run`UPDATE drafts SET body = ${body}, stored = NULL WHERE run = ${run}`;
  db.run`
    UPDATE runs SET step = 'created', attempts = 0, due_at = 0 WHERE id = ${run} AND step IN ('described', 'done')`;
}

/** A done run shows why its file is not attached, or not yet. */
function setReason(db: Connection, run: number, { failure, reason }: { failure: string; reason: string }, at: number) {
  db.run`
    UPDATE runs SET failure = ${failure}, reason = ${reason}, updated_at = ${at} WHERE id = ${run} AND step = 'done'
      AND parked IS NULL`;
}

function clearReason(db: Connection, run: number, n: number): void {
  db.run`
    UPDATE runs SET failure = NULL, reason = NULL WHERE id = ${run} AND step = 'done' AND parked IS NULL
      AND reason = (SELECT reason FROM attachments WHERE run = ${run} AND n = ${n})`;
}

/** Within a commit. A run whose files are known keeps them: they have the same content. */
export function addAttachments(db: Connection, run: number, attachments: readonly NewAttachment[]): void {
  if (db.exists`SELECT 1 FROM attachments WHERE run = ${run}`) return;
  // Under a lost journal, the files of a run that is done may have been attached before: they are looked for first.
  for (const [index, { name, path, sha256, size, problem }] of attachments.entries())
    db.run`
      INSERT INTO attachments (run, n, name, path, sha256, size, refused, reason, intent_at, due_at)
        SELECT ${run}, ${index + 1}, ${name}, ${path}, ${sha256}, ${size},
        ${Number(problem !== undefined)}, ${problem ?? null}, iif(step = 'done', 0, NULL),
        iif(step = 'done' AND ${problem ?? null} IS NULL, 0, NULL) FROM runs WHERE id = ${run}`;
}

/** A later journal, or a person, may have attached the files: they are looked for before they are uploaded. */
export function lookForUploads(db: Connection, run?: number): void {
  if (run === undefined) db.run`UPDATE attachments SET intent_at = 0 WHERE upload IS NULL`;
  else
    db.run`
      UPDATE attachments SET upload = NULL, intent_at = 0, due_at = iif((SELECT step FROM runs WHERE id = run) = 'done',
        0, NULL) WHERE run = ${run} AND refused = 0`;
}

/** A run that is filed again, as another one, gets its files again. */
export function copyAttachments(db: Connection, from: number, to: number): void {
  db.run`
    INSERT INTO attachments (run, n, name, path, sha256, size, refused)
      SELECT ${to}, n, name, path, sha256, size, 0 FROM attachments WHERE run = ${from} AND sha256 <> ''`;
}

const filedRow = z.object({
  n: z.number(),
  name: z.string(),
  sha256: z.string(),
  upload: optional,
  /** Whether it will not be attached. */
  isRefused: flag,
  /** Why it is not attached, or not yet. */
  reason: nullable(z.string()),
});

/** The raw files of a run, as far as they are attached. */
export const readAttachments = (db: Connection, run: number) =>
  parseRows(
    filedRow,
    db.rows`
      SELECT n, name, sha256, upload, refused AS isRefused, reason FROM attachments WHERE run = ${run} ORDER BY n`,
  );

/** Uploads these files again, of which the notebook has none. A refused one may have arrived late: it is looked for. */
export function reattach(db: Connection, run: number, numbers: readonly number[]): void {
  for (const n of numbers)
    db.run`
      UPDATE attachments SET upload = NULL, refused = 0, intent_at = iif(refused, intent_at, NULL), attempts = 0,
        due_at = iif((SELECT step FROM runs WHERE id = run) = 'done', 0, NULL) WHERE run = ${run} AND n = ${n}`;
}
