import { z } from 'zod';
import type { Appended, Growths, NewBatch, NewGrowth, RunGrowth } from '../growth.js';
import type { Draft } from '../model.js';
import type { Added, NewRun } from '../outbox.js';
import type { NewAttachment, NewPlot } from '../uploads.js';
import { putNewPlot, replaceAttachments } from './attachments.js';
import { addHistory, type Connection, flag, nullable, parseRow } from './database.js';
import { replaceDescription } from './drafts.js';
import { add } from './handover.js';
import type { Store } from './store.js';

/** The runs of growing files in the outbox half: what each batch of lines adds to them. */
export const createGrowths = (store: Store): Growths => ({
  upto: async (generation) =>
    store.db.row<{ upto: number; lines: number; tail: Uint8Array }>`
      SELECT upto, lines, tail FROM generations WHERE id = ${generation}`,
  runs: async (generation, days) => readRuns(store.db, generation, days),
  newest: async (generation) =>
    store.db.values<string>`
      SELECT sha256 FROM growths JOIN runs ON runs.id = run WHERE generation = ${generation}
        ORDER BY growths.upto DESC, day DESC LIMIT 1`,
  append: (batch) => store.apply(() => append(store, batch, store.now())),
  attach: (generation, files) => store.apply(() => attach(store.db, generation, files)),
  hasEnded: async (generation) =>
    !store.db.exists`SELECT 1 FROM growths WHERE generation = ${generation} AND ended_at IS NULL`,
  flush: (generation, isEnd = false) => store.apply(() => flush(store.db, generation, isEnd)),
  report: (generation, what, isEnd) => store.apply(() => report(store.db, generation, what, isEnd, store.now())),
});

/** What was accumulated is a few hundred kilobytes for each day. */
const LAST_DAYS = 2;

function readRuns(db: Connection, generation: number, wanted?: readonly string[]) {
  const days = db.values<string>`SELECT day FROM growths WHERE generation = ${generation} ORDER BY day DESC`;
  const needed = wanted ?? days.slice(0, LAST_DAYS);
  const rows = needed.flatMap((day) => {
    const json = db.value<string>`
      SELECT accumulation FROM growths WHERE generation = ${generation} AND day = ${day} ORDER BY run DESC LIMIT 1`;
    return json === undefined ? [] : [[day, json] as const];
  });
  return { days, accumulated: new Map(rows) };
}

/** Late lines of earlier days become comments, but their summary and plot stay as they are. */
const KEPT_DAYS = 31;

/** Within a commit, like the three below. */
export function append(store: Store, batch: NewBatch, at: number): Appended {
  const { db } = store;
  const { generation, upto, lines, tail } = batch;
  const known = db.value<number>`SELECT upto FROM generations WHERE id = ${generation}`;
  if (known !== undefined && known >= upto) return { added: [] };
  // All parts of a batch or none: after a crash, the same lines are handed over again.
  const blocked = batch.parts.map((part) => findBlocked(db, generation, part, at)).find((one) => one !== undefined);
  if (blocked) return blocked;
  const added = batch.parts.map((part) => appendPart(store, batch, part, at));
  db.run`
    UPDATE growths SET accumulation = '' WHERE generation = ${generation} AND accumulation <> '' AND day NOT IN (SELECT day
      FROM growths WHERE generation = ${generation} ORDER BY day DESC LIMIT ${KEPT_DAYS} + 0)`;
  db.run`INSERT OR REPLACE INTO generations (id, upto, lines, tail) VALUES (${generation}, ${upto}, ${lines}, ${tail})`;
  return { added };
}

const grownRow = z.object({ run: z.number(), path: z.string() });

const findGrown = (db: Connection, generation: number, day: string) =>
  parseRow(
    grownRow,
    db.row`
      SELECT run, path FROM growths JOIN runs ON runs.id = run WHERE generation = ${generation} AND day = ${day}
        ORDER BY run DESC LIMIT 1`,
  );

const filedRow = z.object({
  id: z.number(),
  path: z.string(),
  experiment: nullable(z.number()),
  parked: nullable(z.string()),
  hasDraft: flag,
});

/** The last filing of a run with this identity, from a generation that this journal may not know. */
const findFiled = (db: Connection, { instrument, file: { sha256 } }: NewRun) =>
  parseRow(
    filedRow,
    db.row`
      SELECT id, path, experiment, parked, EXISTS (SELECT 1 FROM drafts WHERE run = id) AS hasDraft FROM runs
        WHERE instrument = ${instrument} AND sha256 = ${sha256} AND copy = '' ORDER BY refiling DESC LIMIT 1`,
  );

/** A run whose experiment another journal filed: nobody here knows how many of its lines are there. */
function findBlocked(db: Connection, generation: number, { day, run }: NewGrowth, at: number): Appended | undefined {
  if (findGrown(db, generation, day)) return undefined;
  const filed = findFiled(db, run);
  if (!filed || filed.path === '' || filed.parked === 'ignored' || filed.experiment === undefined) return undefined;
  const reason = `the journal was lost or restored, so it is not known which lines of ${run.file.path} are in experiment ${filed.experiment}\n  → to file all of its lines again, in another experiment: labfeed refile ${filed.id}; to leave out those of this run: labfeed ignore ${filed.id}`;
  if (filed.parked !== 'held') {
    db.run`
      UPDATE runs SET parked = 'held', failure = 'conflict', reason = ${reason}, updated_at = ${at} WHERE id = ${filed.id}`;
    addHistory(db, filed.id, at, 'rested', { as: 'held', reason });
  }
  return { blocked: filed.id, reason };
}

function appendPart(store: Store, batch: NewBatch, part: NewGrowth, at: number): Added {
  const { db } = store;
  const { generation, upto, lines } = batch;
  const { day, run, reading, rows, accumulated } = part;
  const grown = findGrown(db, generation, day);
  const content = { sha256: run.file.sha256, copy: '', isErased: false, drift: undefined };
  if (grown?.path === '') return { run: grown.run, outcome: 'known', ...content, isErased: true };
  const filed = grown ? undefined : findFiled(db, run);
  // A person set this run of another journal aside: its lines are dropped. Those of this journal are kept for a retry.
  if (filed && (filed.path === '' || filed.parked === 'ignored'))
    return { run: filed.id, outcome: 'known', ...content, isErased: filed.path === '' };
  if (!grown) {
    const added = add(store, run, reading, at);
    db.run`
      INSERT OR REPLACE INTO growths (run, generation, day, upto, lines, rows, accumulation, grown_at)
        VALUES (${added.run}, ${generation}, ${day}, ${upto}, ${lines}, ${rows}, ${accumulated}, ${at})`;
    addHistory(db, added.run, at, 'grown', { range: batch.range, rows, notes: batch.notes });
    return added;
  }
  addComments(db, grown.run, reading.draft.comments);
  const { comments: _, attached: __, ...draft } = reading.draft;
  const next: Next = { draft, omits: reading.omits, plot: run.plot, mapping: run.mapping };
  db.run`
    UPDATE growths SET kept = max(kept, accumulation = ''), upto = ${upto}, lines = ${lines}, rows = rows + ${rows}, accumulation = ${accumulated},
      ended_at = NULL, next = ${JSON.stringify(next)}, plot = ${run.plot?.name === undefined ? null : run.plot.sha256}, ready = 0,
      grown_at = ${at} WHERE run = ${grown.run}`;
  db.run`
    UPDATE runs SET size = ${run.file.size}, modified_ms = ${Number(run.file.mtimeNs / 1_000_000n)}, updated_at = ${at}
      WHERE id = ${grown.run}`;
  addHistory(db, grown.run, at, 'grown', { range: batch.range, rows, notes: batch.notes });
  return { run: grown.run, outcome: 'revised', ...content };
}

interface Next {
  readonly draft: Omit<Draft, 'comments' | 'attached'>;
  readonly omits: readonly string[] | undefined;
  readonly plot: NewPlot | undefined;
  readonly mapping: string;
}

/** If the journal was restored, a later one may have posted comments with these numbers: they are looked for. */
function addComments(db: Connection, run: number, texts: readonly string[]): void {
  for (const text of texts)
    db.run`
      INSERT INTO comments (run, n, text, intent_at) SELECT run, (SELECT ifnull(max(n), 0) + 1 FROM comments
        WHERE comments.run = growths.run), ${text}, iif(uncertain, 0, NULL) FROM growths WHERE run = ${run}`;
}

export function flush(db: Connection, generation: number, isEnd: boolean, isOfFleet = false): boolean {
  if (isEnd) db.run`UPDATE growths SET accumulation = '' WHERE generation = ${generation}`;
  const runs = db.values<number>`
    UPDATE growths SET ready = 1 WHERE generation = ${generation} AND next IS NOT NULL AND ready = 0 RETURNING run`;
  return runs.map((run) => isDone(db, run) && describeNext(db, run, isOfFleet)).includes(true);
}

const isDone = (db: Connection, run: number): boolean =>
  db.exists`SELECT 1 FROM runs WHERE id = ${run} AND step = 'done' AND parked IS NULL`;

const nextRow = z.object({ next: z.string(), isKept: flag, hasDraft: flag });

/**
 * Within a commit. Has a done run delivered again with its next draft, if it has one: until then, its delivery already
 * had what it wrote. Returns whether it has. `isOfFleet`: the leader of a fleet delivers it, and may have done so before this
 * machine knew of the draft before, so the run stays done here.
 */
export function describeNext(db: Connection, run: number, isOfFleet = false): boolean {
  const found = parseRow(
    nextRow,
    db.row`
      SELECT next, kept AS isKept, EXISTS (SELECT 1 FROM drafts WHERE drafts.run = growths.run) AS hasDraft FROM growths
        WHERE run = ${run} AND next IS NOT NULL AND ready = 1`,
  );
  if (!found) return false;
  // Written by this program, so it is not validated.
  const { draft, omits, plot, mapping } = JSON.parse(found.next) as Next;
  // Without the draft that was filed, nobody can tell what a person changed.
  const isKept = found.isKept || !found.hasDraft;
  if (!isKept || !found.hasDraft) {
    const body = isKept ? draft.body : putNewPlot(db, run, plot, draft.body);
    replaceDescription(db, run, { draft: { ...draft, body, comments: [] }, omits });
  }
  db.run`
    UPDATE runs SET step = ${isOfFleet ? 'done' : isKept ? 'described' : 'created'}, mapping = ${mapping}, adopted = 0, attempts = 0,
      due_at = 0 WHERE id = ${run}`;
  db.run`UPDATE growths SET next = NULL, plot = NULL, ready = 0, kept = ${Number(isKept)} WHERE run = ${run}`;
  return true;
}

/** Within a commit. */
export function keepBody(db: Connection, run: number): void {
  db.run`UPDATE growths SET kept = 1 WHERE run = ${run}`;
  db.run`UPDATE runs SET step = 'described' WHERE id = ${run}`;
}

/** Once: a file that is attached with the same content stays. It is sent when the run is done again. */
export function attach(db: Connection, generation: number, files: readonly NewAttachment[]): boolean {
  const run = db.value<number>`
    SELECT run FROM growths JOIN runs ON runs.id = run WHERE generation = ${generation} AND path <> ''
      AND parked IS NOT 'ignored' ORDER BY growths.upto DESC, day DESC LIMIT 1`;
  if (run === undefined) return false;
  replaceAttachments(db, run, files);
  db.run`UPDATE runs SET step = 'described', attempts = 0, due_at = 0 WHERE id = ${run} AND step = 'done' AND parked IS NULL`;
  return true;
}

export function report(db: Connection, generation: number, what: string, isEnd: boolean, at: number): void {
  const run = db.value<number>`SELECT max(run) FROM growths WHERE generation = ${generation}`;
  if (run === undefined) return;
  addHistory(db, run, at, 'fileChanged', { reason: what });
  if (isEnd) db.run`UPDATE growths SET ended_at = ${at} WHERE generation = ${generation} AND ended_at IS NULL`;
}

const growthRow = z.object({
  day: z.string(),
  upto: z.number(),
  lines: z.number(),
  rows: z.number(),
  grownAt: z.number(),
  isKept: flag,
  endedAt: nullable(z.number()),
});

export const readGrowth = (db: Connection, run: number): RunGrowth | undefined =>
  parseRow(
    growthRow,
    db.row`
      SELECT day, upto, lines, rows, grown_at AS grownAt, kept AS isKept, ended_at AS endedAt FROM growths WHERE run = ${run}`,
  );

/** Within a commit. Later lines go to the run that it is filed again as. */
export function moveGrowth(db: Connection, from: number, to: number): void {
  db.run`UPDATE growths SET run = ${to}, kept = 0, uncertain = 0 WHERE run = ${from}`;
}
