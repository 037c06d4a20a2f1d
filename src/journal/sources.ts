import { z } from 'zod';
import type { NewSource, SourceChange, Sources } from '../outbox.js';
import { addHistory, type Connection, nullable, parseRow, parseRows } from './database.js';
import type { Store } from './store.js';

/** The files that are to be moved or deleted after their run is filed. A trigger makes them due once it is done. */
export const createSources = ({ db, commit, now }: Store): Sources => ({
  due: async (at, limit) =>
    // A run that was reopened, parked or still has files to attach is not settled.
    db.values<number>`
      SELECT DISTINCT run FROM sources JOIN runs ON runs.id = run WHERE sources.due_at <= ${at} AND step = 'done'
        AND parked IS NULL AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.run = sources.run
        AND attachments.due_at IS NOT NULL) ORDER BY sources.due_at LIMIT ${limit} + 0`,
  load: async (run) => load(db, run),
  record: (run, change) => commit(() => applyChange(db, run, change, now())),
  trouble: async () =>
    parseRow(
      troubleRow,
      db.row`
        SELECT count(*) AS files, min(path) AS path, reason FROM sources WHERE due_at IS NOT NULL AND reason IS NOT NULL
          HAVING count(*) > 0`,
    ),
});

const text = nullable(z.string());
const runRow = z.object({
  id: z.number(),
  instrument: z.string(),
  sha256: z.string(),
  reference: z.string(),
  path: z.string(),
  server: text,
  experiment: nullable(z.number()),
});
const fileRow = z.object({ n: z.number(), path: z.string(), sha256: z.string(), target: text });
const troubleRow = z.object({ files: z.number(), path: z.string(), reason: z.string() });

function load(db: Connection, id: number): Awaited<ReturnType<Sources['load']>> {
  const run = parseRow(
    runRow,
    db.row`SELECT id, instrument, sha256, reference, path, server, experiment FROM runs WHERE id = ${id}`,
  );
  if (run === undefined) throw new Error(`run ${id} is not in the journal`);
  const rows = db.rows`
    SELECT n, path, sha256, target FROM sources WHERE run = ${id} AND due_at IS NOT NULL ORDER BY n`;
  return { run, files: parseRows(fileRow, rows) };
}

function applyChange(db: Connection, run: number, change: SourceChange, at: number): void {
  if (change.kind === 'sourcePostponed') {
    const isNew = !db.exists`SELECT 1 FROM sources WHERE run = ${run} AND reason = ${change.reason}`;
    db.run`
      UPDATE sources SET due_at = ${change.dueAt}, reason = ${change.reason} WHERE run = ${run}
        AND due_at IS NOT NULL`;
    if (!isNew) return;
  } else
    db.run`
      UPDATE sources SET outcome = ${change.outcome}, moved_to = ${change.to ?? null}, due_at = NULL, reason = NULL
        WHERE run = ${run} AND n = ${change.n}`;
  const { kind, ...detail } = change;
  addHistory(db, run, at, kind, detail);
}

/** A file of a filed run that is moved or deleted, or is to be. */
export type SettledSource = z.output<typeof sourceRow>;

const sourceRow = z.object({ path: z.string(), outcome: text, movedTo: text, reason: text });

/** What became of the files of a run, in the order of the run. Empty if they stay where they are. */
export const readSources = (db: Connection, run: number) =>
  parseRows(
    sourceRow,
    db.rows`SELECT path, outcome, moved_to AS movedTo, reason FROM sources WHERE run = ${run} ORDER BY n`,
  );

/** Within a commit. A run that is known keeps what was decided about its files. */
export function addSources(db: Connection, run: number, sources: readonly NewSource[]): void {
  for (const [index, { path, sha256, target }] of sources.entries())
    db.run`
      INSERT OR IGNORE INTO sources (run, n, path, sha256, target)
        VALUES (${run}, ${index + 1}, ${path}, ${sha256}, ${target ?? null})`;
}
