import { z } from 'zod';
import type { NewSource, PlannedSource, SourceChange, Sources } from '../sources.js';
import { addHistory, type Connection, flag, nullable, parseRow, parseRows, part } from './database.js';
import type { Store } from './store.js';

/** The files that are to be moved or deleted after their run is filed. A trigger makes them due once it is done. */
export function createSources({ db, commit, check, now }: Store): Sources {
  // One process has the journal, so its claims need not outlive it.
  const claimed = new Set<number>();
  const claim = (runs: readonly number[], limit = runs.length): number[] => {
    check();
    const free = runs.filter((run) => !claimed.has(run)).slice(0, limit);
    for (const run of free) claimed.add(run);
    return free;
  };
  return {
    claim: async (at, limit, instruments) =>
      claim(
        // Those that have failed come last, so that one file cannot delay all others.
        db.values<number>`
          SELECT run FROM sources JOIN runs ON runs.id = run WHERE ${isDue(at)} AND ${SETTLED}
            AND instrument IN (SELECT value FROM json_each(${JSON.stringify(instruments)}))
            GROUP BY run ORDER BY min(sources.due_at), max(sources.attempts), run LIMIT ${limit + claimed.size} + 0`,
        limit,
      ),
    claimHidden: async (at) =>
      claim(
        db.values<number>`
          SELECT DISTINCT run FROM sources WHERE hidden = 1 AND (due_at IS NULL OR ${isDue(at)}) ORDER BY run`,
      ),
    async release(run) {
      claimed.delete(run);
    },
    load: async (run) => load(db, run),
    hide: (run, planned) => commit(() => isSettled(db, run, planned) && hide(db, run, planned)),
    decide: (run, planned) => commit(() => isSettled(db, run, planned) && decide(db, run, planned)),
    record: (run, ...changes) =>
      commit(() => {
        for (const change of changes) applyChange(db, run, change, now());
        // It was erased meanwhile: its files are where they belong, and nothing else is known of them.
        db.run`DELETE FROM sources WHERE run = ${run} AND erased = 1 AND hidden = 0`;
      }),
    postponeAll: (instrument, { reason, dueAt }) =>
      commit(() => {
        db.run`
          UPDATE sources SET due_at = ${dueAt}, reason = ${reason ?? null} WHERE due_at < ${dueAt} AND outcome IS NULL
            AND (SELECT instrument FROM runs WHERE id = run) = ${instrument}`;
      }),
    retryNow: () => commit(() => void db.run`UPDATE sources SET due_at = 0 WHERE due_at > 0`),
    hasLeft: async (instrument, path) =>
      ['moved', 'deleted'].includes(
        db.value<string>`
          SELECT outcome FROM sources JOIN runs ON runs.id = run WHERE sources.path = ${path}
            AND instrument = ${instrument} ORDER BY run DESC LIMIT 1` ?? '',
      ),
    hasMovedTo: async (folder) => db.exists`
      SELECT 1 FROM sources WHERE outcome = 'moved' AND moved_to > ${folder} || '/' AND moved_to < ${folder} || '0'`,
    trouble: async () =>
      parseRow(
        troubleRow,
        db.row`
          SELECT count(*) AS files, min(path) AS path, reason FROM sources WHERE due_at IS NOT NULL
            AND reason IS NOT NULL HAVING count(*) > 0`,
      ),
  };
}

/** No wait is longer than an hour: if one seems to be, the clock was ahead when it was set. */
const MAX_WAIT_MS = 2 * 3_600_000;

const isDue = (at: number) => part`(sources.due_at <= ${at} OR sources.due_at > ${at + MAX_WAIT_MS})`;

/** A run that was reopened, parked, is to be remapped from its file, or has files to attach, still needs its files. */
const SETTLED = part`
  step = 'done' AND parked IS NULL AND NOT EXISTS (SELECT 1 FROM remaps WHERE remaps.run = runs.id)
    AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.run = runs.id AND attachments.due_at IS NOT NULL)`;

const isSettled = (db: Connection, run: number, planned: readonly PlannedSource[]): boolean =>
  db.exists`SELECT 1 FROM runs WHERE id = ${run} AND ${SETTLED}` &&
  planned.every(
    ({ n }) => db.exists`
      SELECT 1 FROM sources WHERE run = ${run} AND n = ${n} AND outcome IS NULL AND erased = 0`,
  );

function hide(db: Connection, run: number, planned: readonly PlannedSource[]): boolean {
  for (const { n, target } of planned)
    db.run`
      UPDATE sources SET hidden = 1, decided = NULL, target = ifnull(${target ?? null}, target) WHERE run = ${run}
        AND n = ${n}`;
  return true;
}

function decide(db: Connection, run: number, planned: readonly PlannedSource[]): boolean {
  for (const { n, target } of planned)
    db.run`
      UPDATE sources SET decided = ${target === undefined ? 'delete' : 'move'}, target = ifnull(${target ?? null}, target)
        WHERE run = ${run} AND n = ${n}`;
  return true;
}

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
const fileRow = z.object({
  n: z.number(),
  path: z.string(),
  location: z.string(),
  sha256: z.string(),
  identity: z.string(),
  isHidden: flag,
  decided: nullable(z.enum(['move', 'delete'])),
  target: text,
});
const troubleRow = z.object({ files: z.number(), path: z.string(), reason: z.string() });

function load(db: Connection, id: number): Awaited<ReturnType<Sources['load']>> {
  const run = parseRow(
    runRow,
    db.row`SELECT id, instrument, sha256, reference, path, server, experiment FROM runs WHERE id = ${id}`,
  );
  if (run === undefined) throw new Error(`run ${id} is not in the journal`);
  const rows = db.rows`
    SELECT n, path, location, sha256, identity, hidden AS isHidden, decided, target FROM sources WHERE run = ${id}
      AND outcome IS NULL ORDER BY n`;
  const attempts = db.value<number>`SELECT max(attempts) FROM sources WHERE run = ${id} AND outcome IS NULL` ?? 0;
  const isBegun = db.exists`SELECT 1 FROM sources WHERE run = ${id} AND outcome IN ('moved', 'deleted')`;
  return { run, attempts, isBegun, files: parseRows(fileRow, rows) };
}

function applyChange(db: Connection, run: number, change: SourceChange, at: number): void {
  switch (change.kind) {
    case 'sourceRestored':
      db.run`
        UPDATE sources SET hidden = 0, decided = NULL, path = ifnull(${change.renamed?.path ?? null}, path),
          location = ifnull(${change.renamed?.location ?? null}, location) WHERE run = ${run} AND n = ${change.n}`;
      if (change.renamed) note(db, run, change, at);
      return;
    case 'sourceRenewed':
      db.run`UPDATE sources SET identity = ${change.identity} WHERE run = ${run} AND n = ${change.n}`;
      return;
    case 'sourcePostponed': {
      const isNew = !db.exists`SELECT 1 FROM sources WHERE run = ${run} AND reason = ${change.reason ?? ''}`;
      db.run`
        UPDATE sources SET due_at = ${change.dueAt}, reason = ${change.reason ?? null}, attempts = attempts + 1
          WHERE run = ${run} AND outcome IS NULL`;
      // Once for the same reason: a full disk can last for weeks.
      if (isNew && change.reason !== undefined) note(db, run, change, at);
      return;
    }
    case 'sourceSettled':
      db.run`
        UPDATE sources SET outcome = ${change.outcome}, moved_to = ${change.to ?? null}, due_at = NULL, reason = NULL,
          hidden = 0 WHERE run = ${run} AND n = ${change.n}`;
      note(db, run, change, at);
  }
}

/** What was erased leaves no names behind. */
function note(db: Connection, run: number, { kind, ...detail }: SourceChange, at: number): void {
  if (!db.exists`SELECT 1 FROM sources WHERE run = ${run} AND erased = 1`) addHistory(db, run, at, kind, detail);
}

/** A file of a filed run that is moved or deleted, or is to be. */
export type SettledSource = z.output<typeof sourceRow>;

const sourceRow = z.object({ path: z.string(), outcome: text, movedTo: text, reason: text });

/** What became of the files of a run, in the order of the run. Empty if they stay where they are. */
export const readSources = (db: Connection, run: number) =>
  parseRows(
    sourceRow,
    db.rows`SELECT path, outcome, moved_to AS movedTo, reason FROM sources WHERE run = ${run} AND erased = 0 ORDER BY n`,
  );

/** Within a commit. What was settled stays so; a run that is read again may have its file elsewhere. */
export function addSources(db: Connection, run: number, sources: readonly NewSource[]): void {
  for (const [index, { path, location, sha256, identity }] of sources.entries())
    db.run`
      INSERT INTO sources (run, n, path, location, sha256, identity)
        VALUES (${run}, ${index + 1}, ${path}, ${location}, ${sha256}, ${identity}) ON CONFLICT (run, n) DO UPDATE
        SET path = excluded.path, location = excluded.location, identity = excluded.identity WHERE outcome IS NULL
        AND hidden = 0`;
}

/** Within a commit. The run takes the next version of its file, which is to be moved or deleted in its turn. */
export function replaceSources(db: Connection, run: number, sources: readonly NewSource[]): void {
  db.run`DELETE FROM sources WHERE run = ${run} AND hidden = 0`;
  addSources(db, run, sources);
}

/** Within a commit. A run that is filed again takes its files along, unless one has its private name just now. */
export function passSources(db: Connection, from: number, to: number): void {
  db.run`
    UPDATE sources SET run = ${to}, due_at = NULL, reason = NULL, attempts = 0, target = NULL WHERE run = ${from}
      AND outcome IS NULL AND NOT EXISTS (SELECT 1 FROM sources AS other WHERE other.run = ${from} AND hidden = 1)`;
}

/** Within a commit. Names of files that may have their private names are kept until these are put back. */
export function eraseSources(db: Connection, run: number): void {
  db.run`DELETE FROM sources WHERE run = ${run} AND hidden = 0`;
  db.run`UPDATE sources SET erased = 1, reason = NULL, due_at = NULL WHERE run = ${run}`;
}
