import { closeSync, existsSync, fsyncSync, openSync, renameSync, rmSync, statSync } from 'node:fs';
import { DatabaseSync } from '@photostructure/sqlite';
import { z } from 'zod';
import { explain, LabfeedError, systemCode } from '../errors.js';
import type { OverdueRun, ParkedRuns, Pruned, RunChange, Upkeep, WaitingForPeople } from '../outbox.js';
import { parseJson } from '../text.js';
import {
  addHistory,
  Connection,
  cannotOpen,
  journalExists,
  nullable,
  openBeside,
  openInstruments,
  parseRows,
  raw,
  STATE,
} from './database.js';
import { MIGRATIONS } from './migrations.js';
import type { Store } from './store.js';

export const createUpkeep = (store: Store): Upkeep => ({
  waitingForPeople: async () => waitingForPeople(store.db),
  overdue: async (before) => findOverdue(store.db, before),
  lastAddedAt: async (instrument) =>
    store.db.value<number>`
      SELECT max(added_at, ifnull((SELECT max(grown_at) FROM growths WHERE run IN (SELECT id FROM runs
        WHERE instrument = ${instrument} ORDER BY id DESC LIMIT ${MAX_EXAMINED} + 0)), 0), ifnull((SELECT max(at)
        FROM paths JOIN versions ON versions.run = paths.run WHERE paths.instrument = ${instrument}), 0)) AS at FROM runs
        WHERE instrument = ${instrument} ORDER BY id DESC LIMIT 1`,
  pullForward: (latest) => pullForward(store, latest),
  provenTime: async () => provenTime(store.db),
  prune: (before, from) => prune(store, before, from),
});

interface Count {
  readonly instrument: string;
  readonly state: 'quarantined' | 'held';
  readonly runs: number;
}

function waitingForPeople(db: Connection): ReadonlyMap<string, WaitingForPeople> {
  const counts = db.rows<Count>`
    SELECT instrument, state, runs FROM tallies WHERE state IN ('quarantined', 'held') AND runs > 0`;
  const parked = (name: string, wanted: Count['state']): ParkedRuns | undefined => {
    const count = counts.find(({ instrument, state }) => instrument === name && state === wanted);
    return count && { runs: count.runs, ...newest(db, count) };
  };
  const names = new Set(counts.map(({ instrument }) => instrument));
  return new Map(
    [...names].map((name) => [name, { quarantined: parked(name, 'quarantined'), held: parked(name, 'held') }]),
  );
}

function newest(db: Connection, { instrument, state }: Count): Pick<ParkedRuns, 'path' | 'reason'> {
  const row = db.row<{ path: string; reason: string | null }>`
    SELECT path, reason FROM runs WHERE instrument = ${instrument} AND parked = ${state} AND parked IS NOT NULL
      ORDER BY id DESC LIMIT 1`;
  return { path: row?.path ?? '', reason: row?.reason ?? undefined };
}

/** How many of an instrument's oldest open runs are examined: most of them may have been reopened just now. */
const MAX_EXAMINED = 20;

const openRow = z.object({
  run: z.number(),
  instrument: z.string(),
  path: z.string(),
  state: z.string(),
  since: z.number(),
  reason: nullable(z.string()),
});

const lateRow = openRow.extend({ server: nullable(z.string()), file: z.string() });

function findOverdue(db: Connection, before: number): OverdueRun | undefined {
  const found = [...openInstruments(db)].flatMap((name) =>
    ([0, 1] as const).flatMap((backlog) => oldOf(db, name, backlog, before)),
  );
  return [...found, ...lateUploads(db, before)].sort((a, b) => a.since - b.since)[0];
}

/** A run that is done, but whose raw file is not attached. */
function lateUploads(db: Connection, before: number): OverdueRun[] {
  const rows = db.rows`
    SELECT run, instrument, runs.path, 'done' AS state, added_at AS since, attachments.reason, server, name AS file
      FROM attachments JOIN runs ON runs.id = run WHERE attachments.due_at IS NOT NULL AND kind = 'raw'
      AND step = 'done' AND parked IS NULL ORDER BY run LIMIT ${MAX_EXAMINED} + 0`;
  return firstOld(db, parseRows(lateRow, rows), before).map(({ server, file, ...run }) => ({
    ...run,
    upload: { server, file },
  }));
}

function oldOf(db: Connection, instrument: string, backlog: 0 | 1, before: number): OverdueRun[] {
  const rows = db.rows`
    SELECT id AS run, instrument, path, ${raw(STATE)} AS state, added_at AS since, reason FROM runs
      WHERE step <> 'done' AND parked IS NULL AND instrument = ${instrument} AND backlog = ${backlog}
      ORDER BY id LIMIT ${MAX_EXAMINED} + 0`;
  return firstOld(db, parseRows(openRow, rows), before);
}

/** The first run that is old enough, by number: nearly always the oldest one. */
function firstOld<Run extends { run: number; since: number }>(db: Connection, runs: Run[], before: number): Run[] {
  for (const row of runs) {
    const since = row.since < before ? (reopenedAt(db, row.run) ?? row.since) : before;
    if (since < before) return [{ ...row, since }];
  }
  return [];
}

/** The last event that is not part of a delivery: the run or a version was read, it was retried, adopted or remapped, or its file has grown. */
const reopenedAt = (db: Connection, run: number): number | undefined =>
  db.value<number>`
    SELECT max(at) FROM history WHERE run = ${run} AND event IN ('read', 'versionRead', 'retried', 'adopted', 'refiled', 'repaired',
      'remapped', 'setBack', 'uploaded', 'uploadRefused', 'grown')`;

async function pullForward({ db, commit }: Store, latest: number): Promise<number> {
  // Nearly always there is none, and reading costs less than a commit.
  const isLate = db.exists`
    SELECT 1 FROM runs WHERE step <> 'done' AND parked IS NULL AND due_at > ${latest}
      UNION ALL SELECT 1 FROM attachments WHERE due_at > ${latest} LIMIT 1`;
  if (!isLate) return 0;
  return commit(() => {
    const uploads = db.run`UPDATE attachments SET due_at = 0 WHERE due_at > ${latest}`;
    const runs = db.run`
      UPDATE runs SET due_at = 0 WHERE step <> 'done' AND parked IS NULL AND due_at > ${latest}`;
    return Number(runs.changes) + Number(uploads.changes);
  });
}

/** A clock that is wrong for fewer days than this, such as after an empty battery, removes nothing. */
const PROVEN_DAYS = 7;
const DAY_MS = 86_400_000;

function provenTime(db: Connection): number | undefined {
  const day = db.value<number>`
    SELECT DISTINCT hour / 24 AS day FROM hours ORDER BY day DESC LIMIT 1 OFFSET ${PROVEN_DAYS - 1}`;
  return day === undefined ? undefined : day * DAY_MS;
}

/** How far back the same postponement is looked for: a run may be postponed for a few reasons in turn. */
const MAX_LOOK_BACK = 12;

/** Events of an attempt that certainly changed nothing, by the event that says so. */
const WITHDRAWN: Readonly<Record<string, string>> = { notCreated: 'intended', notCommented: 'commentIntended' };

const postponedDetail = z.looseObject({ reason: z.string(), times: z.number().optional() });

/**
 * Adds a postponement to the history of a run. If nothing has happened since the run was last postponed for the same
 * reason, that event is counted up instead: a week of outage is one line. Within a commit.
 */
export function addPostponement(
  db: Connection,
  run: number,
  at: number,
  { dueAt, failure, reason }: Extract<RunChange, { kind: 'postponed' }>,
): void {
  const events = db.rows<{ id: number; event: string; detail: string | null }>`
    SELECT id, event, detail FROM history WHERE run = ${run} ORDER BY id DESC LIMIT ${MAX_LOOK_BACK} + 0`;
  const withdrawn: number[] = [];
  for (let n = 0; n < events.length; n += 1) {
    const { id, event, detail: json } = events[n] ?? { id: 0, event: '', detail: null };
    const before = events[n + 1];
    if (before && WITHDRAWN[event] === before.event) {
      withdrawn.push(id, before.id);
      n += 1;
      continue;
    }
    if (event !== 'postponed') break;
    const known = postponedDetail.safeParse(parseJson(json ?? ''));
    if (known.data?.reason !== reason) continue;
    const counted = JSON.stringify({ dueAt, failure, reason, times: (known.data.times ?? 1) + 1, lastAt: at });
    db.run`UPDATE history SET detail = ${counted} WHERE id = ${id}`;
    for (const one of withdrawn) db.run`DELETE FROM history WHERE id = ${one}`;
    return;
  }
  addHistory(db, run, at, 'postponed', { dueAt, failure, reason });
}

/** History events of about twenty runs: a few milliseconds at a time. */
const BATCH = 150;

/** The oldest events belong to runs that are to be pruned, or to the few that are still open. */
async function prune({ db, commit }: Store, before: number, from: number): Promise<Pruned> {
  const events = db.rows<{ id: number; run: number; at: number }>`
    SELECT id, run, at FROM history WHERE id > ${from} ORDER BY id LIMIT ${BATCH} + 0`;
  const isEnd = events.length < BATCH || events.every(({ at }) => at >= before);
  const next = isEnd ? undefined : events.at(-1)?.id;
  const candidates = new Set(events.filter(({ at }) => at < before).map(({ run }) => run));
  if (candidates.size === 0) return { runs: 0, next };
  return commit(() => {
    const old = [...candidates].filter((run) => isFinished(db, run, before));
    for (const run of old) forget(db, run);
    shrink(db);
    return { runs: old.length, next };
  });
}

/** More than a batch of runs leaves. */
const SHRINK_PAGES = 400;

/** Gives pages back to the file system, unless they are few: new runs use these. */
function shrink(db: Connection): void {
  const free = db.value<number>`PRAGMA freelist_count` ?? 0;
  const all = db.value<number>`PRAGMA page_count` ?? 0;
  if (free > all / 4) db.database.exec(`PRAGMA incremental_vacuum(${SHRINK_PAGES})`);
}

/** A file that is to be moved or deleted is compared with the draft first. */
const isFinished = (db: Connection, run: number, before: number): boolean =>
  db.exists`
    SELECT 1 FROM runs WHERE id = ${run} AND updated_at < ${before} AND id NOT IN (SELECT run FROM remaps)
      AND NOT EXISTS (SELECT 1 FROM attachments WHERE run = ${run} AND due_at IS NOT NULL)
      AND (parked = 'ignored' OR step = 'done' AND parked IS NULL
      AND NOT EXISTS (SELECT 1 FROM sources WHERE run = ${run} AND outcome IS NULL))`;

function forget(db: Connection, run: number): void {
  for (const table of ['drafts', 'earlier_drafts', 'drifts', 'history'])
    db.run`DELETE FROM ${raw(table)} WHERE run = ${run}`;
  db.run`UPDATE comments SET text = '' WHERE run = ${run}`;
}

/**
 * Writes a consistent copy of the journal while the daemon runs. The copy is marked: a daemon that starts from it asks
 * for `recover` first, because the notebook has changed since.
 */
export function backUp(journal: string, file: string, server: string | undefined) {
  if (existsSync(file)) throw exists(file);
  const part = `${file}.part`;
  claim(part);
  try {
    copy(journal, part);
    const runs = markAsCopy(part, server);
    sync(part);
    if (existsSync(file)) throw exists(file);
    renameSync(part, file);
    return { runs, bytes: statSync(file).size };
  } catch (error) {
    rmSync(part, { force: true });
    throw error instanceof LabfeedError ? error : cannotWrite(file, error);
  }
}

/** Readable by this user only: a journal names people's files. */
function claim(part: string): void {
  try {
    closeSync(openSync(part, 'wx', 0o600));
  } catch (error) {
    if (systemCode(error) !== 'EEXIST') throw cannotWrite(part, error);
    throw new LabfeedError(`${part} already exists`, {
      hint: 'another backup is running, or one was interrupted. If none is running, delete the file',
      cause: error,
    });
  }
}

function copy(journal: string, part: string): void {
  const database = openBeside(journal);
  try {
    database.prepare('VACUUM INTO ?').run(part);
  } finally {
    database.close();
  }
}

function markAsCopy(part: string, server: string | undefined): number {
  const database = new DatabaseSync(part);
  try {
    const db = new Connection(database);
    // A server that nothing was sent to yet is not in the journal.
    if (server !== undefined) db.run`INSERT OR IGNORE INTO servers (url) VALUES (${server})`;
    db.run`UPDATE servers SET halted = ${COPY}`;
    db.run`DELETE FROM inbox`;
    return db.value<number>`SELECT count(*) FROM runs` ?? 0;
  } finally {
    database.close();
  }
}

const COPY = 'the journal was restored from a backup, and the notebook may have changed since: run `labfeed recover`';

function sync(file: string): void {
  const descriptor = openSync(file, 'r+');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

const exists = (file: string): LabfeedError =>
  new LabfeedError(`${file} already exists and was not overwritten`, { hint: 'choose another file' });

const cannotWrite = (file: string, error: unknown): LabfeedError =>
  new LabfeedError(`cannot write the backup ${file}: ${explain(error)}`, {
    hint: 'check that its folder exists, has free space and is writable by this user',
    cause: error,
  });

/** The state of a journal, without touching it or its lock. */
type Inspection =
  | { readonly state: 'absent' }
  | { readonly state: 'good'; readonly runs: number }
  | { readonly state: 'newer'; readonly version: number }
  | { readonly state: 'unreadable'; readonly message: string; readonly hint: string | undefined };

export function inspectJournal(path: string): Inspection {
  try {
    if (!journalExists(path)) return { state: 'absent' };
    const database = new DatabaseSync(path, { readOnly: true });
    try {
      const db = new Connection(database);
      const version = db.value<number>`PRAGMA user_version` ?? 0;
      if (version > MIGRATIONS.length) return { state: 'newer', version };
      return { state: 'good', runs: version === 0 ? 0 : (db.value<number>`SELECT count(*) FROM runs` ?? 0) };
    } finally {
      database.close();
    }
  } catch (error) {
    const { message, hint } = error instanceof LabfeedError ? error : cannotOpen(path, error);
    return { state: 'unreadable', message, hint };
  }
}
