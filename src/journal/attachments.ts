import { z } from 'zod';
import type { Draft } from '../model.js';
import type { NewRun, Reading } from '../outbox.js';
import type {
  NewAttachment,
  NewPlot,
  RunUploads,
  UploadChange,
  UploadScope,
  Uploads,
  WaitingUploads,
} from '../uploads.js';
import { addHistory, type Connection, flag, isOf, nullable, parseRow, parseRows, part, textList } from './database.js';
import { amendDone, chooseVariant, type Filed } from './drafts.js';
import type { Store } from './store.js';

/** The attachments of the outbox half. A row is due once its run is done: a trigger sees to that. */
export function createUploads({ db, commit, check, now, attaching: claimed }: Store): Uploads {
  return {
    async claim(at, limit, scope) {
      check();
      const runs = db.values<number>`
        SELECT run ${dueIn(scope)} AND attachments.due_at <= ${at} ORDER BY attachments.due_at, run
          LIMIT ${(limit + claimed.size) * MAX_FILES} + 0`;
      const free = [...new Set(runs)].filter((run) => !claimed.has(run)).slice(0, limit);
      for (const run of free) claimed.add(run);
      return free;
    },
    async release(run) {
      claimed.delete(run);
    },
    async nextDueAt(scope) {
      const rows = db.rows<{ run: number; dueAt: number }>`
        SELECT run, attachments.due_at AS dueAt ${dueIn(scope)} ORDER BY attachments.due_at, run
          LIMIT ${(claimed.size + 1) * MAX_FILES} + 0`;
      return rows.find(({ run }) => !claimed.has(run))?.dueAt;
    },
    load: async (run) => load(db, run),
    record: (run, ...changes) =>
      commit(() => {
        for (const change of changes) applyChange(db, run, change, now());
      }),
    needs: async (sha256) =>
      db.exists`
        SELECT 1 FROM attachments WHERE sha256 = ${sha256} AND upload IS NULL AND refused = 0
          UNION ALL SELECT 1 FROM growths WHERE plot = ${sha256}`,
    needed: async () =>
      new Set(
        db.values<string>`
          SELECT DISTINCT attachments.sha256 FROM attachments JOIN runs ON runs.id = run WHERE upload IS NULL
            AND refused = 0 AND parked IS NOT 'ignored' UNION SELECT plot FROM growths WHERE plot IS NOT NULL`,
      ),
  };
}

/** At most this many of one run are due: 20 raw files, and its plots. In the order of the index, few rows are read. */
const MAX_FILES = 25;

/** The run may have been parked, or be on its way again, since it was done. */
const dueIn = ({ server, attached, dropped }: UploadScope) => part`
  FROM attachments CROSS JOIN runs ON runs.id = run WHERE attachments.due_at IS NOT NULL AND step = 'done'
    AND parked IS NULL AND experiment IS NOT NULL AND (server = ${server} AND ${isOf(attached)} OR ${isOf(dropped)})`;

const optional = nullable(z.number());

const runRow = z.object({
  run: z.number(),
  instrument: z.string(),
  server: nullable(z.string()),
  experiment: optional,
});

const fileRow = z.object({
  n: z.number(),
  kind: z.enum(['raw', 'plot', 'surplus']),
  at: optional,
  description: nullable(z.string()),
  image: nullable(z.string()),
  name: z.string(),
  path: z.string(),
  sha256: z.string(),
  size: z.number(),
  intentAt: optional,
  upload: optional,
  isOpen: flag,
  attempts: z.number(),
  reason: nullable(z.string()),
  earlier: textList,
});

function load(db: Connection, id: number): RunUploads {
  const row = db.row`
    SELECT id AS run, instrument, server, experiment FROM runs WHERE id = ${id}`;
  const run = parseRow(runRow, row);
  if (run === undefined) throw new Error(`run ${id} is not in the journal`);
  const rows = db.rows`
    SELECT n, kind, place AS at, description, image, name, path, sha256, size, intent_at AS intentAt, upload,
      due_at IS NOT NULL AS isOpen, attempts, reason, ifnull(earlier, '[]') AS earlier FROM attachments
      WHERE run = ${id} ORDER BY n`;
  return { ...run, files: parseRows(fileRow, rows) };
}

function applyChange(db: Connection, run: number, change: UploadChange, at: number): unknown {
  // A version of the file that was replaced while it was sent: the next one looks for it.
  const isReplaced = 'n' in change && !db.exists`SELECT 1 FROM attachments WHERE run = ${run} AND n = ${change.n}`;
  if (isReplaced && change.kind !== 'uploadIntended') return undefined;
  switch (change.kind) {
    case 'uploadIntended': {
      const { changes } = db.run`
        UPDATE attachments SET intent_at = ${change.at} WHERE run = ${run} AND n = ${change.n}
          AND sha256 = ${change.sha256} AND kind <> 'surplus'`;
      // The file was read again meanwhile, or the run was erased.
      if (Number(changes) === 0) throw new Error(`file ${change.n} of run ${run} is no longer to be attached`);
      return undefined;
    }
    case 'notUploaded':
      return db.run`UPDATE attachments SET intent_at = NULL WHERE run = ${run} AND n = ${change.n}`;
    case 'uploaded':
      clearReason(db, run, change.n);
      db.run`
        UPDATE attachments SET upload = ${change.upload}, due_at = iif(kind = 'surplus', 0, NULL), reason = NULL,
          image = iif(kind = 'surplus', NULL, ifnull(${change.image ?? null}, image)) WHERE run = ${run} AND n = ${change.n}`;
      noteAmended(db, run, change, at);
      return forgetHidden(db, run);
    case 'uploadRefused':
      db.run`
        UPDATE attachments SET refused = 1, due_at = NULL, reason = ${change.reason}, image = NULL
          WHERE run = ${run} AND n = ${change.n}`;
      if (isRaw(db, run, change.n)) setReason(db, run, change, at);
      return noteAmended(db, run, change, at);
    case 'uploadPostponed': {
      // Once for the same reason: an outage can last for a week.
      const isNew = !db.exists`
        SELECT 1 FROM attachments WHERE run = ${run} AND n = ${change.n} AND reason = ${change.reason}`;
      db.run`
        UPDATE attachments SET attempts = attempts + 1, due_at = ${change.dueAt}, reason = ${change.reason}
          WHERE run = ${run} AND n = ${change.n}`;
      // Files are attached in their order: if the others were due, the run would be tried again at once.
      db.run`UPDATE attachments SET due_at = max(due_at, ${change.dueAt}) WHERE run = ${run} AND due_at IS NOT NULL`;
      if (isRaw(db, run, change.n)) setReason(db, run, change, at);
      return isNew && note(db, run, change, at);
    }
    case 'uploadRemoved':
      db.run`DELETE FROM attachments WHERE run = ${run} AND n = ${change.n}`;
      return note(db, run, change, at);
    case 'uploadsDropped':
      db.run`
        DELETE FROM attachments WHERE run = ${run} AND (kind = 'surplus' OR kind = 'plot' AND upload IS NULL)`;
      // A run of which only some files are attached must not look complete.
      db.run`
        UPDATE attachments SET refused = 1, due_at = NULL, reason = ${NOT_WANTED} WHERE run = ${run} AND upload IS NULL
          AND refused = 0 AND run IN (SELECT run FROM attachments WHERE upload IS NOT NULL)`;
      db.run`DELETE FROM attachments WHERE run = ${run} AND upload IS NULL AND refused = 0`;
      return amendDone(db, run);
  }
}

const NOT_WANTED = 'the configuration no longer has its files attached';

function note(db: Connection, run: number, { kind, ...detail }: UploadChange, at: number): void {
  addHistory(db, run, at, kind, detail);
}

/** The body is as it was: somebody changed it in the notebook, or the notebook refused the addition. */
export function dropAddition(db: Connection, run: number): void {
  db.run`
    UPDATE drafts SET body = earlier.body, stored = earlier.stored FROM (SELECT body, stored FROM earlier_drafts
      WHERE run = ${run} AND addition = 1 ORDER BY rowid LIMIT 1) AS earlier WHERE run = ${run}`;
  forgetHidden(db, run);
}

/** Images that the draft does not show. */
function forgetHidden(db: Connection, run: number): void {
  db.run`
    UPDATE attachments SET image = NULL WHERE run = ${run} AND image IS NOT NULL
      AND NOT EXISTS (SELECT 1 FROM drafts WHERE run = ${run} AND instr(body, image) > 0)`;
}

function noteAmended(
  db: Connection,
  run: number,
  { body, was, image: _, ...change }: Extract<UploadChange, { kind: 'uploaded' | 'uploadRefused' }>,
  at: number,
): void {
  const { kind, ...detail } = change;
  addHistory(db, run, at, kind, isRaw(db, run, change.n) ? detail : { ...detail, isPlot: true });
  // A plot that was replaced while it was sent is not shown.
  const isShown = !db.exists`SELECT 1 FROM attachments WHERE run = ${run} AND n = ${change.n} AND kind = 'surplus'`;
  // Somebody who locked, deleted or rewrote the experiment gets no more comments.
  if (!('failure' in change && change.failure === 'conflict'))
    amendDone(db, run, isShown && body !== undefined ? { body, was } : undefined);
}

/** A run without its plot is complete. */
const isRaw = (db: Connection, run: number, n: number): boolean =>
  db.exists`SELECT 1 FROM attachments WHERE run = ${run} AND n = ${n} AND kind = 'raw'`;

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
  if (db.exists`SELECT 1 FROM attachments WHERE run = ${run} AND kind = 'raw'`) return;
  const from = db.value<number>`SELECT ifnull(max(n), 0) FROM attachments WHERE run = ${run}` ?? 0;
  // Under a lost journal, the files of a run that is done may have been attached before: they are looked for first.
  for (const [index, { name, path, sha256, size, problem }] of attachments.entries())
    db.run`
      INSERT INTO attachments (run, n, name, path, sha256, size, refused, reason, intent_at, due_at)
        SELECT ${run}, ${from + index + 1}, ${name}, ${path}, ${sha256}, ${size},
        ${Number(problem !== undefined)}, ${problem ?? null}, iif(step = 'done', 0, NULL),
        iif(step = 'done' AND ${problem ?? null} IS NULL, 0, NULL) FROM runs WHERE id = ${run}`;
}

interface OldFile {
  readonly n: number;
  readonly name: string;
  readonly sha256: string;
  readonly upload: number | null;
  readonly wasSent: number;
  readonly refused: number;
  readonly earlier: string | null;
}

/**
 * Within a commit. The raw files of the next version take the places of those with the same name, and the others are
 * deleted once the run is done. A run's only file may have been renamed. A file that may have been sent is looked for
 * first. `lost`: the content of the version before, if the journal does not know what is attached.
 */
export function replaceAttachments(
  db: Connection,
  run: number,
  files: readonly NewAttachment[] = [],
  lost?: string,
): void {
  const rows = db.rows<OldFile>`
    SELECT n, name, sha256, upload, intent_at IS NOT NULL AND upload IS NULL AND refused = 0 AS wasSent, refused, earlier
      FROM attachments WHERE run = ${run} AND kind = 'raw' ORDER BY n`;
  const isKept = ({ name, sha256, refused }: OldFile): boolean =>
    refused === 0 && files.some((file) => file.name === name && file.sha256 === sha256);
  const old = rows.filter((row) => !isKept(row));
  const kept = rows.filter(isKept);
  const isOnlyFile = rows.length === 1 && files.length === 1;
  const replaces = (file: NewAttachment, row: OldFile): boolean => isOnlyFile || file.name === row.name;
  // Without files that take their place, those of the version before stay.
  const isWithout = files.some(({ problem }) => problem !== undefined);
  // Numbers are not used twice: an upload may be under way that is recorded under its number.
  let n = db.value<number>`SELECT max(n) FROM attachments WHERE run = ${run}` ?? 0;
  for (const row of old) {
    const isReplaced = files.some((file) => replaces(file, row));
    if (isWithout && !isReplaced && row.upload !== null) continue;
    db.run`DELETE FROM attachments WHERE run = ${run} AND n = ${row.n}`;
    if (isReplaced) continue;
    for (const sha256 of earlierOf(row)) {
      n += 1;
      db.run`
        INSERT INTO attachments (run, n, kind, name, path, sha256, size, refused, upload, intent_at)
          VALUES (${run}, ${n}, 'surplus', ${row.name}, '', ${sha256}, 0, 0,
          ${sha256 === row.sha256 ? row.upload : null}, 0)`;
    }
  }
  for (const file of files) {
    const { name, path, sha256, size, problem } = file;
    if (kept.some((row) => row.name === name)) continue;
    n += 1;
    const before = old.find((row) => replaces(file, row));
    // The fingerprint of a run with one file is that of the file.
    const earlier = before ? earlierOf(before) : lost !== undefined && rows.length === 0 ? [lost] : [];
    db.run`
      INSERT INTO attachments (run, n, name, path, sha256, size, refused, reason, intent_at, earlier)
        VALUES (${run}, ${n}, ${name}, ${path}, ${sha256}, ${size}, ${Number(problem !== undefined)},
        ${problem ?? null}, ${before?.wasSent === 1 ? 0 : null}, ${earlier.length > 0 ? JSON.stringify(earlier) : null})`;
  }
}

/** The contents under which the notebook may have this file. */
function earlierOf({ sha256, upload, wasSent, earlier }: OldFile): string[] {
  const before = textList.parse(earlier ?? '[]');
  if (upload !== null) return [sha256];
  return wasSent === 1 ? [...before, sha256] : before;
}

/**
 * Within a commit. Gives the run the plot of its new reading: the one that it has, if the bytes are the same; otherwise
 * the other one is deleted once the body no longer shows it. Returns the draft's body with the plot, if that is known.
 */
function putPlot(db: Connection, run: number, plot: NewPlot | undefined, body: string): string {
  if (!plot) {
    db.run`UPDATE attachments SET image = NULL WHERE run = ${run} AND kind = 'plot'`;
    return body;
  }
  if (plot.name === undefined) {
    if (!plot.isFailed) dropPlots(db, run, '');
    return showAt(db, run, plot.at, body);
  }
  const { name, sha256, size, description, at } = plot;
  dropPlots(db, run, sha256);
  db.run`
    UPDATE attachments SET place = ${at}, description = ${description} WHERE run = ${run} AND kind = 'plot'`;
  db.run`
    INSERT INTO attachments (run, n, kind, name, path, sha256, size, place, description, refused, intent_at, due_at)
      SELECT id, (SELECT ifnull(max(n), 0) + 1 FROM attachments WHERE run = id), 'plot', ${name}, '', ${sha256}, ${size},
      ${at}, ${description}, 0, iif(step = 'done', 0, NULL), iif(step = 'done', 0, NULL) FROM runs
      WHERE id = ${run} AND NOT EXISTS (SELECT 1 FROM attachments WHERE run = id AND kind = 'plot')`;
  return showAt(db, run, at, body);
}

/** Without those that were certainly never sent. One that was refused may be sent now. */
function dropPlots(db: Connection, run: number, except: string): void {
  db.run`
    DELETE FROM attachments WHERE run = ${run} AND kind = 'plot' AND upload IS NULL
      AND (intent_at IS NULL OR refused = 1) AND (sha256 <> ${except} OR refused = 1)`;
  db.run`
    UPDATE attachments SET kind = 'surplus', image = NULL, attempts = 0, due_at = iif((SELECT step FROM runs
      WHERE id = run) = 'done', 0, NULL) WHERE run = ${run} AND kind = 'plot' AND sha256 <> ${except}`;
}

function showAt(db: Connection, run: number, at: number, body: string): string {
  const image = db.value<string>`SELECT image FROM attachments WHERE run = ${run} AND kind = 'plot'`;
  return image ? body.slice(0, at) + image + body.slice(at) : body;
}

/**
 * What is filed of this reading: briefly if the raw files are attached, with the plot if it is known. `isVersion`: the
 * files have other content than those of the reading before.
 */
export function toFile(
  db: Connection,
  id: number,
  { plot, attachments }: NewRun,
  read: Draft,
  omits: Reading['omits'],
  isVersion = false,
): Filed {
  const filed = chooseVariant(read, omits, () => areAttachable(db, id, attachments, isVersion));
  const { draft, plotAt } = filed;
  const placed = plot && plotAt !== undefined ? { ...plot, at: plotAt } : plot;
  // The plot of other readings is not shown, whatever becomes of the new one.
  if (isVersion) dropPlots(db, id, placed?.name === undefined ? '' : placed.sha256);
  const body = isVersion ? putNewPlot(db, id, placed, draft.body) : putPlot(db, id, placed, draft.body);
  return { ...filed, draft: { ...draft, body } };
}

/** A plot of other readings was not attached before, so it is not looked for by its name. */
export function putNewPlot(db: Connection, run: number, plot: NewPlot | undefined, body: string): string {
  const last = db.value<number>`SELECT max(n) FROM attachments WHERE run = ${run}` ?? 0;
  const shown = putPlot(db, run, plot, body);
  db.run`UPDATE attachments SET intent_at = NULL WHERE run = ${run} AND n > ${last}`;
  return shown;
}

/** Whether the raw files of a run are attached, as far as known: `attachments` counts if none of the run are known. */
function areAttachable(
  db: Connection,
  run: number,
  attachments: readonly NewAttachment[] = [],
  isVersion = false,
): boolean {
  const known = db.rows<{ refused: number; isThere: number }>`
    SELECT refused, upload IS NOT NULL AS isThere FROM attachments WHERE run = ${run} AND kind = 'raw'`;
  // The comments of a run that was filed in full are not replaced by a summary before its files are attached.
  const isFiledInFull =
    !isVersion &&
    db.exists`
      SELECT 1 FROM runs JOIN drafts ON drafts.run = runs.id WHERE runs.id = ${run} AND step = 'done'
        AND unattached IS NULL`;
  if (isFiledInFull) return known.length > 0 && known.every(({ isThere }) => isThere === 1);
  if (known.length > 0) return known.every(({ refused }) => refused === 0);
  return attachments.length > 0 && attachments.every(({ problem }) => problem === undefined);
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
    INSERT INTO attachments (run, n, kind, name, path, sha256, size, place, description, refused)
      SELECT ${to}, n, kind, name, path, sha256, size, place, description, 0 FROM attachments WHERE run = ${from}
      AND sha256 <> '' AND kind <> 'surplus'`;
  // Each experiment shows its own plot.
  for (const image of db.values<string>`SELECT image FROM attachments WHERE run = ${from} AND image IS NOT NULL`)
    db.run`UPDATE drafts SET body = replace(body, ${image}, '') WHERE run = ${to}`;
}

const waitingRow = z.object({
  instrument: z.string(),
  server: nullable(z.string()),
  files: z.number(),
  bytes: z.number(),
  since: z.number(),
});

/** The raw files of done runs that wait to be attached, by instrument and server. By the index of those, not all runs. */
export const readWaiting = (db: Connection): WaitingUploads[] =>
  parseRows(
    waitingRow,
    db.rows`
      SELECT instrument, server, count(*) AS files, sum(attachments.size) AS bytes, min(added_at) AS since
        FROM attachments CROSS JOIN runs ON runs.id = run WHERE attachments.due_at IS NOT NULL AND kind = 'raw'
        AND step = 'done' AND parked IS NULL GROUP BY instrument, server ORDER BY instrument, server`,
  );

const filedRow = z.object({
  n: z.number(),
  kind: z.enum(['raw', 'plot', 'surplus']),
  name: z.string(),
  sha256: z.string(),
  upload: optional,
  /** Whether it will not be attached. */
  isRefused: flag,
  /** Why it is not attached, or not yet. */
  reason: nullable(z.string()),
});

/** The raw files and the plot of a run, as far as they are attached. */
export const readAttachments = (db: Connection, run: number) =>
  parseRows(
    filedRow,
    db.rows`
      SELECT n, kind, name, sha256, upload, refused AS isRefused, reason FROM attachments WHERE run = ${run}
        ORDER BY n`,
  );

/** Uploads these files again, of which the notebook has none. A refused one may have arrived late: it is looked for. */
export function reattach(db: Connection, run: number, numbers: readonly number[]): void {
  for (const n of numbers)
    db.run`
      UPDATE attachments SET upload = NULL, refused = 0, intent_at = iif(refused, intent_at, NULL), attempts = 0,
        due_at = iif((SELECT step FROM runs WHERE id = run) = 'done', 0, NULL) WHERE run = ${run} AND n = ${n}`;
}
