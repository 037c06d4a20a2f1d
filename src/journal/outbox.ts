import { z } from 'zod';
import type { Extras } from '../model.js';
import type {
  Among,
  Deliveries,
  LearntFacts,
  OpenRun,
  Outbox,
  RunChange,
  ServerFacts,
  ServerOutbox,
  UnseenCreations,
} from '../outbox.js';
import { createUploads, dropAddition } from './attachments.js';
import {
  addHistory,
  type Connection,
  columnOf,
  flag,
  nullable,
  openInstruments,
  parseRows,
  storedParts,
  textList,
} from './database.js';
import { amendDone } from './drafts.js';
import { describeNext, keepBody } from './growths.js';
import { createHandover } from './handover.js';
import { addPostponement, createUpkeep } from './maintenance.js';
import { createSources } from './sources.js';
import type { Store } from './store.js';
import { hasVersion, noteFiled } from './versions.js';

/** The outbox half of the journal. It never reads the tables of the intake half. */
export const createOutbox = (store: Store, id: string): Outbox => ({
  id,
  ...createHandover(store),
  ...createDeliveries(store),
  ...createUpkeep(store),
  server: (url) => createServer(store, url),
  uploads: createUploads(store),
  sources: createSources(store),
  async count() {
    const rows = store.db.rows<{ state: string; runs: number }>`
      SELECT state, sum(runs) AS runs FROM tallies GROUP BY 1 HAVING sum(runs) > 0`;
    return Object.fromEntries(rows.map((row) => [row.state, row.runs]));
  },
});

function createDeliveries(store: Store): Deliveries {
  const { db, commit, apply, writeLater, check, now, claimed } = store;
  const applying = (run: number, changes: readonly RunChange[]) => () => {
    for (const change of changes) applyChange(store, run, change, now());
  };
  return {
    async claim(at, limit, among) {
      check();
      const due = among?.only
        ? dueOf(db, at, among.only, claimed).slice(0, limit)
        : dueRuns(db, at, limit, without(claimed, among));
      for (const run of due) claimed.add(run);
      return due;
    },
    async release(run) {
      claimed.delete(run);
    },
    async nextDueAt(among) {
      if (among?.only) return firstDueOf(db, among.only, claimed);
      const others = without(claimed, among);
      const rows = db.rows<{ id: number; dueAt: number }>`
        SELECT id, due_at AS dueAt FROM runs WHERE step <> 'done' AND parked IS NULL ORDER BY due_at
          LIMIT ${others.size + 1} + 0`;
      return rows.find(({ id }) => !others.has(id))?.dueAt;
    },
    load: async (run) => loadRun(db, run),
    record: (run, ...changes) => commit(applying(run, changes)),
    apply: (run, ...changes) => apply(applying(run, changes)),
    recordLater: (run, ...changes) => writeLater(applying(run, changes)),
    unfiled: async (limit) =>
      db.rows<{ instrument: string; sha256: string }>`
        SELECT instrument, sha256 FROM runs WHERE step <> 'done' AND parked IS NULL AND experiment IS NULL
          ORDER BY id LIMIT ${limit} + 0`,
    hasContent: async (instrument, sha256) =>
      db.exists`
        SELECT 1 FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256} AND experiment IS NOT NULL` ||
      hasVersion(db, instrument, sha256),
  };
}

/**
 * The conditions for open runs are those of the indexes, word for word: otherwise SQLite does not use them. A bare
 * `LIMIT ?` makes it recompile the statement at each binding: two to three times the cost.
 */
function dueRuns(db: Connection, now: number, limit: number, claimed: ReadonlySet<number>): number[] {
  const candidates = [...openInstruments(db)].flatMap((instrument) => {
    const rows = db.rows<{ id: number; backlog: number }>`
      SELECT id, backlog FROM runs WHERE step <> 'done' AND parked IS NULL AND instrument = ${instrument}
        AND due_at <= ${now} ORDER BY backlog, id LIMIT ${limit + claimed.size} + 0`;
    // The rank is the place among the due runs of the instrument. Those that are claimed count: otherwise, with one claim
    // at a time, the instrument with the oldest run would always be first.
    return rows.map(({ id, backlog }, rank) => ({ id, backlog, rank })).filter(({ id }) => !claimed.has(id));
  });
  return candidates
    .sort((a, b) => a.backlog - b.backlog || a.rank - b.rank || a.id - b.id)
    .slice(0, limit)
    .map(({ id }) => id);
}

const without = (claimed: ReadonlySet<number>, among: Among | undefined): ReadonlySet<number> =>
  among?.except ? new Set([...claimed, ...among.except]) : claimed;

/** When this run is due; undefined unless it is open. */
const dueAtOf = (db: Connection, run: number): number | undefined =>
  db.value<number>`SELECT due_at FROM runs WHERE id = ${run} AND step <> 'done' AND parked IS NULL`;

const dueOf = (db: Connection, now: number, runs: readonly number[], claimed: ReadonlySet<number>): number[] =>
  runs.filter((run) => !claimed.has(run) && (dueAtOf(db, run) ?? Number.POSITIVE_INFINITY) <= now);

function firstDueOf(db: Connection, runs: readonly number[], claimed: ReadonlySet<number>): number | undefined {
  const times = runs.flatMap((run) => (claimed.has(run) ? [] : (dueAtOf(db, run) ?? [])));
  return times.length === 0 ? undefined : Math.min(...times);
}

/** Read for each run, like the two below. Tables are STRICT, so the types hold; a schema would cost as much as the query. */
interface RunRow
  extends Omit<
    OpenRun,
    'server' | 'floor' | 'experiment' | 'adopted' | 'hasFiles' | 'isAddition' | 'isGrowing' | 'stored'
  > {
  readonly server: string | null;
  readonly floor: number | null;
  readonly experiment: number | null;
  readonly adopted: number;
  readonly hasFiles: number;
  readonly isGrowing: number;
  readonly stored: string | null;
  readonly wasReread: number;
  readonly title: string;
  readonly date: string;
  readonly body: string;
  readonly tags: string;
  readonly extras: string | null;
}

interface CommentRow {
  readonly n: number;
  readonly text: string;
  readonly comment: number | null;
  readonly intentAt: number | null;
  readonly gone: number | null;
}

const optional = nullable(z.number());
const extrasColumn = nullable(z.string()).transform((json) => readExtras(json ?? null));
const draftColumns = { title: z.string(), date: z.string(), body: z.string(), tags: textList, extras: extrasColumn };
const earlierRow = z.object({ ...draftColumns, written: flag, stored: storedParts });
const earlierCommentRow = z.object({ n: z.number(), text: z.string(), comment: optional });

/** Written by this program, so it is not validated. */
const readExtras = (json: string | null): Extras | undefined =>
  json === null ? undefined : (JSON.parse(json) as Extras);

function loadRun(db: Connection, id: number): OpenRun {
  const row = db.row<RunRow>`
    SELECT id, instrument, sha256, reference, step, server, floor, unseen, experiment, adopted, attempts, title,
      date, body, tags, extras, stored, EXISTS (SELECT 1 FROM earlier_drafts WHERE run = id) OR EXISTS (SELECT 1
      FROM earlier_comments WHERE run = id) AS wasReread, EXISTS (SELECT 1 FROM attachments WHERE run = id) AS hasFiles,
      EXISTS (SELECT 1 FROM growths WHERE run = id) AS isGrowing FROM runs JOIN drafts ON drafts.run = runs.id WHERE id = ${id}`;
  if (row === undefined) throw new Error(`run ${id} is not in the journal`);
  const { instrument, sha256, reference, step, unseen, attempts, title, date, body, tags, stored } = row;
  const wasReread = row.wasReread === 1;
  const earlier = wasReread
    ? db.rows`SELECT title, date, body, tags, extras, written, stored FROM earlier_drafts WHERE run = ${id} ORDER BY rowid`
    : [];
  return {
    id,
    instrument,
    sha256,
    reference,
    step,
    server: row.server ?? undefined,
    floor: row.floor ?? undefined,
    unseen,
    experiment: row.experiment ?? undefined,
    adopted: row.adopted === 1,
    attempts,
    hasFiles: row.hasFiles === 1,
    isGrowing: row.isGrowing === 1,
    stored: stored === null ? {} : storedParts.parse(stored),
    isAddition: wasReread && db.exists`SELECT 1 FROM earlier_drafts WHERE run = ${id} AND addition = 1`,
    draft: { title, date, body, tags: JSON.parse(tags) as string[], extras: readExtras(row.extras) },
    earlier: parseRows(earlierRow, earlier),
    ...loadComments(db, id, wasReread),
  };
}

function loadComments(db: Connection, run: number, wasReread: boolean): Pick<OpenRun, 'comments' | 'surplus'> {
  const planned = db.rows<CommentRow>`
    SELECT n, text, intent_at AS intentAt, comment, gone FROM comments WHERE run = ${run} ORDER BY n`;
  const dropped = wasReread
    ? db.rows`SELECT n, text, comment FROM earlier_comments WHERE run = ${run} ORDER BY n, rowid`
    : [];
  const earlier = parseRows(earlierCommentRow, dropped);
  const textsOf = (n: number): string[] => earlier.filter((one) => one.n === n).map(({ text }) => text);
  const wanted = new Set(planned.map(({ n }) => n));
  const surplus = new Map(earlier.filter(({ n }) => !wanted.has(n)).map(({ n, comment }) => [n, comment]));
  return {
    comments: planned.map(({ n, text, comment, intentAt, gone }) => ({
      earlier: textsOf(n),
      ...{ n, text, comment: comment ?? undefined, intentAt: intentAt ?? undefined, gone: gone ?? undefined },
    })),
    surplus: [...surplus].map(([n, comment]) => ({ n, comment, texts: textsOf(n) })),
  };
}

/** Applies one change to a run and adds it to its history. Within a commit. */
function applyChange(store: Store, run: number, change: RunChange, at: number): void {
  const { db } = store;
  updateRun(store, run, change, at);
  const { kind, ...detail } = change;
  if (change.kind === 'postponed') addPostponement(db, run, at, change);
  else if (kind === 'described') addHistory(db, run, at, kind);
  else if (kind === 'describing') return;
  else addHistory(db, run, at, kind === 'parked' ? 'rested' : kind, detail);
}

function updateRun(store: Store, run: number, change: RunChange, at: number): unknown {
  const { db } = store;
  switch (change.kind) {
    case 'intended':
      db.run`
        UPDATE runs SET step = 'creating', server = ${change.server}, floor = ${change.floor ?? null}, unseen =
          ${change.unseen ?? 0}, intent_at = ${change.at}, updated_at = ${at} WHERE id = ${run}`;
      if (change.sweepFrom !== undefined) learn(store, change.server, { sweepFrom: change.sweepFrom });
      return undefined;
    case 'notCreated':
      // An earlier creation with an unknown outcome stays one, whether or not the later one took effect.
      return db.run`
        UPDATE runs SET step = CASE WHEN unseen > 0 THEN 'creating' ELSE 'pending' END, unseen = max(0, unseen -
          1), floor = CASE WHEN unseen > 0 THEN floor END, intent_at = CASE WHEN unseen > 0 THEN intent_at END, updated_at = ${at}
          WHERE id = ${run}`;
    case 'created':
      db.run`
        UPDATE runs SET step = 'created', experiment = ${change.experiment}, attempts = 0, due_at = 0, updated_at
          = ${at} WHERE id = ${run}`;
      return noteCreation(store, run, change);
    case 'describing':
      return db.run`UPDATE drafts SET unsent = 0 WHERE run = ${run} AND unsent = 1`;
    case 'described':
      if (change.stored) db.run`UPDATE drafts SET stored = ${JSON.stringify(change.stored)} WHERE run = ${run}`;
      return db.run`UPDATE runs SET step = 'described', attempts = 0, updated_at = ${at} WHERE id = ${run}`;
    case 'commentIntended':
      return db.run`UPDATE comments SET intent_at = ${change.at} WHERE run = ${run} AND n = ${change.n}`;
    case 'notCommented':
      return db.run`UPDATE comments SET intent_at = NULL WHERE run = ${run} AND n = ${change.n}`;
    case 'commented':
      // The notebook has no later comments than this journal.
      if (!change.found) db.run`UPDATE growths SET uncertain = 0 WHERE run = ${run} AND uncertain = 1`;
      return db.run`UPDATE comments SET comment = ${change.comment} WHERE run = ${run} AND n = ${change.n}`;
    case 'commentRevised':
    case 'commentDropped':
      return db.run`DELETE FROM earlier_comments WHERE run = ${run} AND n = ${change.n}`;
    case 'additionDropped':
      return dropAddition(db, run);
    case 'bodyKept':
      return keepBody(db, run);
    case 'finished':
      db.run`
        UPDATE runs SET step = 'done', failure = NULL, reason = NULL, updated_at = ${at} WHERE id = ${run}`;
      db.run`DELETE FROM earlier_drafts WHERE run = ${run}`;
      noteFiled(db, run, at);
      // Lines that arrived meanwhile.
      return describeNext(db, run) || amendDone(db, run);
    case 'postponed':
      return db.run`
        UPDATE runs SET attempts = attempts + 1, due_at = ${change.dueAt}, failure = ${change.failure}, reason =
          ${change.reason}, updated_at = ${at} WHERE id = ${run}`;
    case 'parked':
      return db.run`
        UPDATE runs
          SET parked = ${change.as}, failure = ${change.failure}, reason = ${change.reason}, updated_at = ${at}
          WHERE id = ${run}`;
  }
}

/** A new experiment is also the upper end of the ids in which unseen creations are looked for. */
function noteCreation(
  { db, facts }: Store,
  run: number,
  { experiment, found }: Extract<RunChange, { kind: 'created' }>,
): void {
  const isEnd = Number(!found);
  const url = db.value<string>`
    INSERT INTO servers (url, highest) SELECT server, ${experiment} FROM runs WHERE id = ${run}
      ON CONFLICT (url) DO UPDATE SET highest = max(ifnull(highest, 0), excluded.highest),
      sweep = iif(${isEnd} AND sweep_from < excluded.highest, max(ifnull(sweep, 0), excluded.highest), sweep),
      sweep_count = iif(${isEnd} AND sweep_from < excluded.highest, ifnull(sweep_count, 0) +
        (SELECT unseen FROM runs WHERE id = ${run}), sweep_count),
      sweep_from = iif(${isEnd} AND sweep IS NULL AND sweep_from >= excluded.highest, NULL, sweep_from) RETURNING url`;
  const known = url === undefined ? undefined : facts.get(url);
  if (url === undefined || known === undefined) return;
  // The id was assigned, whether or not this transaction succeeds.
  if (known.sweepFrom === undefined) facts.set(url, { ...known, highest: Math.max(known.highest ?? 0, experiment) });
  else facts.delete(url);
}

const filedRow = z.object({
  experiment: z.number(),
  reference: z.string(),
  sha256: z.string(),
  title: nullable(z.string()),
});
type Nullable<T> = { readonly [K in keyof T]: Exclude<T[K], undefined> | null };
type Flag = 'keepsTitle' | 'keepsComments' | 'shared';
type ServerRow = Nullable<Omit<ServerFacts, Flag>> & Readonly<Record<Flag, number | null>>;

const toFacts = (row: Partial<ServerRow>): ServerFacts => ({
  highest: row.highest ?? undefined,
  dialect: row.dialect ?? undefined,
  keepsTitle: toFlag(row.keepsTitle),
  keepsComments: toFlag(row.keepsComments),
  blank: row.blank ?? undefined,
  owner: row.owner ?? undefined,
  sweepFrom: row.sweepFrom ?? undefined,
  sweep: row.sweep ?? undefined,
  sweepCount: row.sweepCount ?? undefined,
  unconfirmed: row.unconfirmed ?? undefined,
  shared: toFlag(row.shared),
  halted: row.halted ?? undefined,
  restoredFrom: row.restoredFrom ?? undefined,
});

const toFlag = (value: number | null | undefined): boolean | undefined => (value == null ? undefined : value === 1);

const unknownRow = z.object({
  run: z.number(),
  reference: z.string(),
  sha256: z.string(),
  floor: optional,
  unseen: z.number(),
  isParked: flag,
});

/** Needed several times per run, so they are kept until they change. */
function factsOf({ db, facts }: Store, url: string): ServerFacts {
  const known = facts.get(url);
  if (known) return known;
  const row = db.row<ServerRow>`
    SELECT nullif(max(ifnull(highest, 0), ifnull(seen, 0)), 0) AS highest, dialect, keeps_title AS keepsTitle,
      keeps_comments AS keepsComments, blank, owner, sweep_from AS sweepFrom, sweep, sweep_count AS sweepCount,
      unconfirmed, shared, halted, restored_from AS restoredFrom FROM servers WHERE url = ${url}`;
  const read = toFacts(row ?? {});
  facts.set(url, read);
  return read;
}

function createServer(store: Store, url: string): ServerOutbox {
  const { db, commit } = store;
  return {
    facts: async () => factsOf(store, url),
    learn: (facts) => commit(() => learn(store, url, facts)),
    async claimSpare(run, earlier) {
      // There is almost never one, and reading costs less than a commit.
      if (findSpare(db, url, run.reference) === undefined) return undefined;
      return commit(() => claimSpare(store, url, run, earlier));
    },
    addSpare: (experiment, reference = undefined) =>
      // Its run may have got it since it was read: no other run must get it then.
      commit(
        () =>
          void db.run`
            INSERT OR IGNORE INTO spares SELECT ${url}, ${experiment}, ${reference ?? null} WHERE NOT EXISTS
              (SELECT 1 FROM runs WHERE server = ${url} AND experiment = ${experiment})`,
      ),
    hasSpare: async (reference) => db.exists`SELECT 1 FROM spares WHERE server = ${url} AND reference = ${reference}`,
    hasExperiment: async (experiment) =>
      db.exists`
        SELECT 1 FROM runs WHERE server = ${url} AND experiment = ${experiment} UNION ALL SELECT 1 FROM spares
          WHERE server = ${url} AND experiment = ${experiment}`,
    runWith: async (experiment) =>
      db.value<number>`SELECT id FROM runs WHERE server = ${url} AND experiment = ${experiment}`,
    async lastFiled(count) {
      const rows = db.rows`
        SELECT experiment, reference, sha256, title FROM runs LEFT JOIN drafts ON drafts.run = runs.id
          WHERE server = ${url} AND experiment IS NOT NULL AND step IN ('described', 'done') AND parked IS NULL
          ORDER BY experiment DESC LIMIT ${count} + 0`;
      return parseRows(filedRow, rows);
    },
    async lastDescribed(count) {
      // Within the last events, so that the cost does not grow with the journal.
      const rows = db.rows`
        SELECT experiment, reference, sha256, title FROM history JOIN runs ON runs.id = history.run
          LEFT JOIN drafts ON drafts.run = runs.id WHERE history.id > (SELECT max(id) FROM history) - 1000
          AND event = 'described' AND server = ${url} AND experiment IS NOT NULL AND step IN ('described', 'done')
          AND parked IS NULL ORDER BY history.id DESC LIMIT ${count} + 0`;
      return parseRows(filedRow, rows);
    },
    isCreating: async (reference) => db.exists`SELECT 1 FROM runs WHERE reference = ${reference} AND step = 'creating'`,
    countUnknown: async () =>
      db.value<number>`
        SELECT count(*) + ifnull(sum(unseen), 0) FROM runs WHERE step = 'creating' AND server = ${url}` ?? 0,
    unknownCreations: async () =>
      parseRows(
        unknownRow,
        db.rows`
          SELECT id AS run, reference, sha256, floor, unseen, parked IS NOT NULL AS isParked FROM runs
            WHERE step = 'creating' AND server = ${url} ORDER BY id`,
      ),
  };
}

function learn({ db, facts: kept }: Store, url: string, facts: LearntFacts): void {
  kept.delete(url);
  db.run`INSERT OR IGNORE INTO servers (url) VALUES (${url})`;
  for (const [fact, learnt] of Object.entries(facts)) {
    if (learnt === undefined) continue;
    const value = typeof learnt === 'boolean' ? Number(learnt) : learnt;
    const column = columnOf(fact);
    // Several creations may notice that the server was restored; the lowest id counts.
    if (typeof value === 'number' && (fact === 'restoredFrom' || fact === 'sweepFrom'))
      db.run`UPDATE servers SET ${column} = min(ifnull(${column}, ${value}), ${value}) WHERE url = ${url}`;
    // Several runs may notice that something is wrong; the first reason stays until `recover`.
    else if (fact === 'halted' && value !== null)
      db.run`UPDATE servers SET halted = ifnull(halted, ${value}) WHERE url = ${url}`;
    else if (fact === 'seen') db.run`UPDATE servers SET seen = max(ifnull(seen, 0), ${value}) WHERE url = ${url}`;
    else db.run`UPDATE servers SET ${column} = ${value} WHERE url = ${url}`;
  }
}

/**
 * A spare with a reference of a run that is still to be created belongs to that run. Until the end of ids is confirmed
 * by a creation, a run uses only its own.
 */
/** Another run's spare may have its category, fields and permissions: it is used only if that run has none. */
function findSpare(db: Connection, url: string, reference: string): number | undefined {
  return db.value<number>`
    SELECT experiment FROM spares WHERE server = ${url} AND (reference = ${reference}
      OR ((reference IS NULL OR EXISTS (SELECT 1 FROM runs JOIN drafts ON drafts.run = runs.id
      WHERE runs.reference = spares.reference AND step NOT IN ('pending', 'creating') AND extras IS NULL))
      AND NOT EXISTS (SELECT 1 FROM servers WHERE url = ${url} AND unconfirmed IS NOT NULL))) ORDER BY reference IS ${reference} DESC, experiment LIMIT 1`;
}

function claimSpare(
  store: Store,
  url: string,
  run: OpenRun,
  { unseen, sweepFrom }: UnseenCreations = { unseen: 0 },
): number | undefined {
  const { db, facts, now } = store;
  const experiment = findSpare(db, url, run.reference);
  if (experiment === undefined) return undefined;
  facts.delete(url);
  dropSpare(db, url, experiment);
  applyChange(store, run.id, { kind: 'intended', server: url, floor: undefined, sweepFrom, at: now() }, now());
  if (sweepFrom !== undefined)
    db.run`UPDATE servers SET sweep_count = ifnull(sweep_count, 0) + ${unseen} WHERE url = ${url}`;
  applyChange(store, run.id, { kind: 'created', experiment, found: true }, now());
  return experiment;
}

export function dropSpare(db: Connection, server: string, experiment: number): void {
  db.run`DELETE FROM spares WHERE server = ${server} AND experiment = ${experiment}`;
}
