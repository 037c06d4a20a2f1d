import { z } from 'zod';
import { erasedPath } from '../markers.js';
import type { FiledRunFiles, NewSource, PlannedSource, SourceChange, Sources } from '../sources.js';
import { addHistory, type Connection, flag, isOf, nullable, parseRow, parseRows, part } from './database.js';
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
          SELECT run FROM sources INDEXED BY sources_due CROSS JOIN runs ON runs.id = run WHERE ${isDue(at)} AND ${SETTLED}
            AND ${isOf(instruments)}
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
    begin: (step, filed, planned) =>
      commit(() => {
        if (!isSettled(db, filed)) return false;
        for (const one of planned) begin(db, step, filed.run.id, one, now());
        return true;
      }),
    record: (run, ...changes) =>
      commit(() => {
        for (const change of changes) applyChange(db, run, change, now());
        forgetErased(db, run);
      }),
    found: (location) =>
      commit(() => {
        const row = db.row<{ run: number; n: number; hidden: number }>`
          SELECT run, n, hidden FROM sources WHERE location = ${location} AND (outcome IS NULL OR outcome IN ('gone', 'deleted'))
            ORDER BY run DESC LIMIT 1`;
        if (!row) return 'unknown';
        if (claimed.has(row.run)) return 'claimed';
        // One that is known to be hidden keeps its back-off.
        if (row.hidden === 0)
          db.run`
          UPDATE sources SET hidden = 1, outcome = NULL, due_at = ${now()}, missing_since = NULL WHERE run = ${row.run}
            AND n = ${row.n}`;
        return 'hidden';
      }),
    hasLeft: async (instrument, path) => hasLeftFrom(db, instrument, path),
    isHiding: async (instrument, path) => db.exists`
      SELECT 1 FROM sources INDEXED BY sources_hidden CROSS JOIN runs ON runs.id = run WHERE hidden = 1
        AND instrument = ${instrument} AND runs.path = ${path}`,
    hasMovedTo: async (folder) => db.exists`
      SELECT 1 FROM sources WHERE outcome = 'moved' AND moved_to > ${folder} || '/' AND moved_to < ${folder} || '0'`,
    trouble: async (instruments) =>
      parseRow(
        troubleRow,
        // The path is of a file that has a reason, or is hidden. Others may wait behind it.
        db.row`
          SELECT count(*) AS files, min(iif(sources.reason IS NULL AND hidden = 0, NULL, sources.path)) AS path,
            sources.reason AS reason FROM sources CROSS JOIN runs ON runs.id = run
            WHERE sources.due_at IS NOT NULL AND (sources.reason IS NOT NULL OR sources.due_at < ${now() - LATE_MS}
            AND run NOT IN (SELECT value FROM json_each(${JSON.stringify([...claimed])})))
            AND outcome IS NULL AND (hidden = 1 OR ${isOf(instruments)} AND ${SETTLED})
            HAVING count(sources.reason) + sum(hidden) > 0`,
      ),
  };
}

/** No wait is longer than a day: if one seems to be, the clock was ahead when it was set. */
const MAX_WAIT_MS = 2 * 86_400_000;

/** A file that is due for so long waits behind one that cannot be moved or deleted. None is hidden for so long, unless it is being hashed. */
const LATE_MS = 60_000;

/** A file that waits for so long without a reason gets one. */
const QUIET_MS = 86_400_000;

const isDue = (at: number) =>
  part`sources.due_at IS NOT NULL AND (sources.due_at <= ${at} OR sources.due_at > ${at + MAX_WAIT_MS})`;

/** A run that was reopened, parked, is to be remapped from its file, or has files to attach, still needs its files. */
const SETTLED = part`
  step = 'done' AND parked IS NULL AND NOT EXISTS (SELECT 1 FROM remaps WHERE remaps.run = runs.id)
    AND NOT EXISTS (SELECT 1 FROM attachments WHERE attachments.run = runs.id AND attachments.due_at IS NOT NULL)`;

/** As it was loaded: under `changed: revise`, the run may have taken the next version of its file. */
const isSettled = (db: Connection, { run, files }: FiledRunFiles): boolean =>
  db.exists`SELECT 1 FROM runs WHERE id = ${run.id} AND sha256 = ${run.sha256} AND ${SETTLED}` &&
  files.every(
    ({ n, sha256 }) => db.exists`
      SELECT 1 FROM sources WHERE run = ${run.id} AND n = ${n} AND sha256 = ${sha256} AND outcome IS NULL
        AND erased = 0`,
  );

function begin(
  db: Connection,
  step: Parameters<Sources['begin']>[0],
  run: number,
  { n, target }: PlannedSource,
  at: number,
): void {
  if (step === 'bring')
    db.run`UPDATE sources SET decided = NULL, target = ${target ?? null} WHERE run = ${run} AND n = ${n}`;
  // Due: after a crash, it is put back at once.
  else if (step === 'hide') db.run`UPDATE sources SET hidden = 1, due_at = ${at} WHERE run = ${run} AND n = ${n}`;
  else
    db.run`
      UPDATE sources SET decided = ${target === undefined ? 'delete' : 'move'} WHERE run = ${run} AND n = ${n}`;
}

/**
 * Whether a file of this run was moved or deleted: what is at its path now is another run. If a crash interrupted that,
 * the file may be gone from its target, too.
 */
export const hasLeft = (db: Connection, run: number): boolean =>
  db.exists`
    SELECT 1 FROM sources WHERE run = ${run} AND outcome IS NOT NULL
      AND (outcome IN ('moved', 'deleted') OR decided IS NOT NULL)`;

/** Whether a file of this run may have its private name. */
export const hasHidden = (db: Connection, run: number): boolean =>
  db.exists`SELECT 1 FROM sources WHERE run = ${run} AND hidden = 1`;

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
const troubleRow = z.object({ files: z.number(), path: z.string(), reason: text });

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
  const isBegun = hasLeft(db, id);
  const missingSince =
    db.value<number>`SELECT min(missing_since) FROM sources WHERE run = ${id} AND outcome IS NULL` ?? undefined;
  return { run, attempts, missingSince, isBegun, files: parseRows(fileRow, rows) };
}

function applyChange(db: Connection, run: number, change: SourceChange, at: number): void {
  switch (change.kind) {
    case 'sourceRestored':
      db.run`
        UPDATE sources SET hidden = 0, decided = NULL, missing_since = NULL,
          path = ifnull(${change.renamed?.path ?? null}, path),
          location = ifnull(${change.renamed?.location ?? null}, location) WHERE run = ${run} AND n = ${change.n}`;
      if (change.renamed) note(db, run, change, at);
      return;
    case 'sourceRenewed':
      db.run`
        UPDATE sources SET identity = ${change.identity}, ready_at = ${change.readyAt}, due_at = ${change.readyAt},
          missing_since = NULL WHERE run = ${run} AND n = ${change.n}`;
      return;
    case 'sourcePostponed': {
      const since = change.isQuiet
        ? (db.value<number>`SELECT min(since) FROM sources WHERE run = ${run} AND outcome IS NULL` ?? at)
        : undefined;
      const reason = since !== undefined && at - since < QUIET_MS ? null : change.reason;
      const isNew = !db.exists`SELECT 1 FROM sources WHERE run = ${run} AND reason = ${change.reason}`;
      db.run`
        UPDATE sources SET due_at = ${change.dueAt}, reason = ifnull(${reason}, reason), attempts = attempts + 1,
          since = ifnull(since, ${since ?? null}),
          missing_since = iif(${Number(change.isMissing ?? false)}, ifnull(missing_since, ${at}), missing_since)
          WHERE run = ${run} AND outcome IS NULL`;
      // Once for the same reason: a full disk can last for weeks.
      if (isNew && reason !== null) note(db, run, change, at);
      return;
    }
    case 'sourceSettled':
      db.run`
        UPDATE sources SET outcome = ${change.outcome}, moved_to = ${change.to ?? null}, due_at = NULL, reason = NULL,
          hidden = 0, missing_since = NULL, since = NULL WHERE run = ${run} AND n = ${change.n}`;
      note(db, run, change, at);
  }
}

/** What was erased leaves no names behind. */
function note(db: Connection, run: number, { kind, ...detail }: SourceChange, at: number): void {
  if (db.exists`SELECT 1 FROM runs WHERE id = ${run} AND path <> ''`) addHistory(db, run, at, kind, detail);
}

/** See `Sources.hasLeft`. */
export function hasLeftFrom(db: Connection, instrument: string, path: string): boolean {
  const last = db.value<number>`
    SELECT run FROM sources CROSS JOIN runs ON runs.id = run
      WHERE sources.path IN (${path}, ${erasedPath(instrument, path)}) AND instrument = ${instrument}
      ORDER BY run DESC LIMIT 1`;
  return last !== undefined && hasLeft(db, last);
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
  for (const [index, { path, location, sha256, identity, readyAt }] of sources.entries())
    db.run`
      INSERT INTO sources (run, n, path, location, sha256, identity, ready_at)
        VALUES (${run}, ${index + 1}, ${path}, ${location}, ${sha256}, ${identity}, ${readyAt})
        ON CONFLICT (run, n) DO UPDATE SET path = excluded.path, location = excluded.location,
        identity = excluded.identity, ready_at = excluded.ready_at WHERE outcome IS NULL AND hidden = 0`;
}

/**
 * Within a commit. The run takes the next version of its file, which is to be moved or deleted in its turn. What was moved
 * or deleted stays known.
 */
export function replaceSources(db: Connection, run: number, sources: readonly NewSource[]): void {
  db.run`DELETE FROM sources WHERE run = ${run} AND hidden = 0 AND ifnull(outcome, '') NOT IN ('moved', 'deleted')`;
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
  db.run`UPDATE sources SET erased = 1, reason = NULL, due_at = NULL WHERE run = ${run}`;
  forgetErased(db, run);
}

/** Of a file that was moved or deleted, only that is kept: the next one at its path is another file. */
function forgetErased(db: Connection, run: number): void {
  const rows = db.rows<{ n: number; path: string; instrument: string; outcome: string | null }>`
    SELECT n, sources.path AS path, instrument, outcome FROM sources CROSS JOIN runs ON runs.id = run WHERE run = ${run}
      AND erased = 1 AND hidden = 0 AND location <> ''`;
  for (const { n, path, instrument, outcome } of rows)
    if (outcome === 'moved' || outcome === 'deleted')
      db.run`
        UPDATE sources SET path = ${erasedPath(instrument, path)}, location = '', sha256 = '', identity = '',
          target = NULL, moved_to = NULL WHERE run = ${run} AND n = ${n}`;
    else db.run`DELETE FROM sources WHERE run = ${run} AND n = ${n}`;
}
