import { z } from 'zod';
import { systemClock } from '../clock.js';
import type { RunGrowth } from '../growth.js';
import { type DiskFile, RUN_STATES, type RunState } from '../model.js';
import type { ContentKey } from '../outbox.js';
import { readAttachments, readWaiting } from './attachments.js';
import {
  Connection,
  type Database,
  flag,
  nullable,
  openCurrent,
  parseRow,
  parseRows,
  part,
  raw,
  STATE,
  storedParts,
  textList,
} from './database.js';
import { requireFleetView } from './fleet-view.js';
import { followedAt, listFollowed } from './growing.js';
import { readGrowth } from './growths.js';
import { copyOf } from './handover.js';
import { pathsOf, signed } from './intake.js';
import {
  type Found,
  findJobs,
  type Job,
  type JobFilter,
  listJobs,
  pathMatches,
  type Search,
  type SeenFile,
  searchFiles,
  searchJobs,
} from './jobs.js';
import { readSources, type SettledSource } from './sources.js';

/** A run with everything that the journal has about it. */
export interface JobDetail extends Job {
  /** Absent if its file could not be read, or if the run was erased. */
  readonly draft: z.output<typeof draftRow> | undefined;
  readonly comments: readonly StoredComment[];
  readonly history: readonly HistoryEvent[];
  /** Where its content was seen. */
  readonly paths: readonly string[];
  /** What differs from the runs before it. */
  readonly drift: readonly string[];
  /** What became of its files; empty if they stay where they are. */
  readonly sources: readonly SettledSource[];
  /** The versions of its file, oldest first. Empty if it has never changed. */
  readonly versions: readonly Version[];
  /** How far it has come, if its file keeps growing. */
  readonly growth: RunGrowth | undefined;
}

type Version = ReturnType<typeof readVersions>[number];

type StoredComment = z.output<typeof commentRow>;
type HistoryEvent = z.output<typeof eventRow>;

export type KnownPath = NonNullable<ReturnType<typeof readPath>>;

export type KnownRun = z.output<typeof knownRow>;

/** A done run, with the experiment that should prove it. */
export type FiledRun = z.output<typeof filedRow>;

export type UnfiledRun = z.output<typeof unfiledRow>;

export type Filing = ReturnType<typeof readFiling>;

/** `uploads`: raw files of done runs that wait to be attached. */
export type Overview = Awaited<ReturnType<JournalReader['overview']>>;

/** An instrument that the journal knows, even if it is no longer configured. */
export type InstrumentSummary = Overview['instruments'][number];

/** On a member of a fleet, the runs are those of all members. */
export function openReader(path: string): JournalReader {
  const database = openCurrent(path);
  requireFleetView(database, path);
  return createReader(database);
}

/**
 * The journal for commands and the page, which only read. Lists are read in pages, and each page shows the journal as
 * it is at that moment. No statement reads both halves of the journal.
 */
export type JournalReader = ReturnType<typeof createReader>;

export function createReader(database: Database, now = systemClock.now) {
  const db = new Connection(database);
  let uploads: { readonly at: number; readonly waiting: ReturnType<typeof readWaiting> } | undefined;
  return {
    /** All instruments and servers, at a cost that does not grow with the number of runs. */
    async overview() {
      // There may be many after a long outage, and the page asks every second.
      if (!uploads || Math.abs(now() - uploads.at) >= UPLOADS_MS) uploads = { at: now(), waiting: readWaiting(db) };
      return { ...readOverview(db, now()), uploads: uploads.waiting };
    },
    /** Newest first. */
    jobs: async (filter: JobFilter) => listJobs(db, filter),
    search: async (filter: Search, maxMs: number) => searchJobs(db, filter, maxMs),
    /** The files that match, unless they are those of runs that were found. */
    searchFiles: async (filter: Search, found: Found, maxMs: number, runPathOf: RunPathOf) =>
      findOtherFiles(db, filter, found, maxMs, runPathOf),
    job: async (id: number) => readJob(db, id),
    /** Runs with this content, of any instrument, newest first. */
    sameContent: async (sha256: string) =>
      // By instrument, because the index begins with it.
      findJobs(
        db,
        part`runs.instrument IN (SELECT instrument FROM tallies) AND sha256 = ${sha256} ORDER BY runs.id DESC LIMIT ${MAX_COPIES}`,
      ),
    /** Files whose path contains these words, newest first, including files that are gone. */
    files: async (search: string, limit: number) => findFiles(db, search, limit),
    filesAt: async (path: string) => filesAt(db, path),
    /** What is known about the growing file at this path. */
    followedAt: async (instrument: string, path: string) => followedAt(db, instrument, path),
    /** What is known about the file at this path. */
    atPath: async (instrument: string, file: Omit<DiskFile, 'location'>) => readPath(db, instrument, file),
    /** The last filing of this content. */
    ofContent: async (content: ContentKey & { readonly instrument: string }) => lastFiling(db, content),
    countFiled: async (instrument: string | undefined) =>
      db.value<number>`
        SELECT ifnull(sum(runs), 0) AS runs FROM tallies WHERE state = 'done'
          AND (${instrument ?? null} IS NULL OR instrument = ${instrument ?? null})` ?? 0,
    /** The done runs, oldest first. */
    filed: (instrument: string | undefined): AsyncIterable<FiledRun> =>
      inPages((after) => filedAfter(db, after, instrument)),
    /** The raw files of a run. */
    attachmentsOf: async (run: number) => readAttachments(db, run),
    /** What was sent for a run. */
    filingOf: async (run: number) => readFiling(db, run),
    /** What became of its files; empty if they stay where they are. */
    sourcesOf: async (run: number) => readSources(db, run),
    /** The runs that are not in the notebook, or not completely; without the ignored ones. */
    unfiled: (instrument: string | undefined): AsyncIterable<UnfiledRun> =>
      inPages((after) => unfiledAfter(db, after, instrument)),
    server: async (url: string) => ({
      ...serverRow.parse(db.row`SELECT dialect, halted FROM servers WHERE url = ${url}` ?? {}),
      spares: sparesOf(db, url),
    }),
    close: async () => database.close(),
  };
}

/** How long uploads that wait are remembered. */
const UPLOADS_MS = 5000;

const text = nullable(z.string());
const number = nullable(z.number());

/** There may be any number of runs with the same content if copies are runs of their own. */
const MAX_COPIES = 100;

const eventRow = z.object({
  at: z.number(),
  event: z.string(),
  detail: text.transform((json): unknown => (json === undefined ? undefined : JSON.parse(json))),
});

function readJob(db: Connection, id: number): JobDetail | undefined {
  const [job] = findJobs(db, part`runs.id = ${id}`);
  if (job === undefined) return undefined;
  const history = db.rows`SELECT at, event, detail FROM history WHERE run = ${id} ORDER BY id`;
  const drift = db.value<string>`SELECT changes FROM drifts WHERE run = ${id}`;
  const copy = db.value<string>`SELECT copy FROM runs WHERE id = ${id}` ?? '';
  return {
    ...job,
    draft: readDraft(db, id),
    comments: readComments(db, id),
    history: parseRows(eventRow, history),
    paths: pathsOf(db, job.instrument, { sha256: job.sha256, copy }),
    drift: drift === undefined ? [] : textList.parse(drift),
    sources: readSources(db, id),
    versions: readVersions(db, job),
    growth: readGrowth(db, id),
  };
}

const versionRow = z.object({
  n: z.number(),
  sha256: z.string(),
  size: z.number(),
  modifiedMs: z.number(),
  /** When it was read. */
  at: z.number(),
  /** When the notebook had all of it. */
  filedAt: number,
  /** The quarantined run that has it, because it could not be read. */
  unread: number,
});

/** `state`: of the current version, that of the run; others were replaced, or never sent. */
function readVersions(db: Connection, { id, state }: Job) {
  const rows = db.rows`
    SELECT n, sha256, size, modified_ms AS modifiedMs, at, filed_at AS filedAt, unread FROM versions WHERE run = ${id}
      ORDER BY n`;
  const versions = parseRows(versionRow, rows);
  const current = versions.findLast(({ unread }) => unread === undefined);
  return versions.map((version) => ({ ...version, state: version === current ? state : stateOfEarlier(version) }));
}

function stateOfEarlier({ filedAt, unread }: z.output<typeof versionRow>): 'unreadable' | 'replaced' | 'not sent' {
  if (unread !== undefined) return 'unreadable';
  return filedAt === undefined ? 'not sent' : 'replaced';
}

const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string(), tags: textList });

const readDraft = (db: Connection, run: number): JobDetail['draft'] =>
  parseRow(draftRow, db.row`SELECT title, date, body, tags FROM drafts WHERE run = ${run}`);

const commentRow = z.object({ n: z.number(), text: z.string(), comment: number });

const readComments = (db: Connection, run: number): StoredComment[] =>
  parseRows(commentRow, db.rows`SELECT n, text, comment FROM comments WHERE run = ${run} ORDER BY n`);

const fileRow = z.object({
  instrument: z.string(),
  path: z.string(),
  /** `asked`: part of a backlog that waits for a decision. */
  verdict: z.enum(['taken', 'skipped', 'backlog']).transform((verdict) => (verdict === 'backlog' ? 'asked' : verdict)),
  sha256: text,
  copy: z.string(),
});

type KnownFile = Omit<z.output<typeof fileRow>, 'sha256' | 'copy'> & { readonly run: number | undefined };

/** By the intake half and by the outbox half: a recovered run knows its file by name only. */
async function findFiles(db: Connection, search: string, limit: number): Promise<KnownFile[]> {
  const files: SeenFile[] = [];
  for await (const hits of searchFiles(db, search)) {
    files.push(...hits);
    if (files.length >= limit) break;
  }
  // The index of paths is much smaller than the runs.
  const runs = db.rows<KnownFile>`
    SELECT instrument, path, 'taken' AS verdict, id AS run FROM runs WHERE id IN (SELECT id FROM runs
      WHERE ${pathMatches(search)}) ORDER BY id DESC LIMIT ${limit}`;
  return merged(db, files, runs, limit);
}

/** The path of the run that a file belongs to; for most files their own. */
type RunPathOf = (instrument: string, path: string) => string;

/**
 * Files that are not runs of their own, and those of runs that are older than the ones that were searched.
 * `isOwn`: the file belongs to the run. Otherwise, it is a copy.
 */
async function findOtherFiles(
  db: Connection,
  { search, instrument, limit }: Search,
  found: Found,
  maxMs: number,
  runPathOf: RunPathOf,
) {
  const deadline = systemClock.monotonic() + maxMs;
  const files = new Map<string, Omit<KnownFile, 'run'> & { readonly run: Job | undefined; readonly isOwn: boolean }>();
  for await (const hits of searchFiles(db, search)) {
    for (const { run: id, ...file } of merged(db, hits, [], hits.length)) {
      if ((instrument ?? file.instrument) !== file.instrument) continue;
      const [run] = id === undefined ? [] : findJobs(db, part`runs.id = ${id}`);
      // The folder of a run belongs to it, even if the configuration has changed since.
      const isOwn =
        run !== undefined &&
        (run.path === runPathOf(file.instrument, file.path) || file.path.startsWith(`${run.path}/`));
      if (!isOwn) files.set(JSON.stringify([file.instrument, file.path]), { ...file, run, isOwn });
      // A folder can have thousands of files.
      else if (run.id < (found.searchedTo ?? 0)) files.set(`run ${run.id}`, { ...file, run, isOwn });
      if (files.size === limit) return { files: [...files.values()], hasMoreFiles: true };
    }
    if (systemClock.monotonic() >= deadline) return { files: [...files.values()], hasMoreFiles: true };
  }
  return { files: [...files.values()], hasMoreFiles: false };
}

/** More of one path are not shown. */
const MAX_AT_PATH = 1000;

/** The same for exactly this path, without reading all of them. */
function filesAt(db: Connection, path: string): KnownFile[] {
  const files = db.rows`
    WITH RECURSIVE names (name) AS (SELECT min(instrument) FROM files UNION ALL
      SELECT (SELECT min(instrument) FROM files WHERE instrument > name) FROM names WHERE name IS NOT NULL)
    SELECT instrument, path, verdict, sha256, copy FROM names CROSS JOIN files ON instrument = name AND path = ${path}`;
  const runs = db.rows<KnownFile>`
    SELECT instrument, path, 'taken' AS verdict, id AS run FROM runs WHERE path = ${path}
      ORDER BY id DESC LIMIT ${MAX_AT_PATH}`;
  return merged(db, files, runs, MAX_AT_PATH);
}

function merged(db: Connection, files: readonly unknown[], runs: readonly KnownFile[], limit: number): KnownFile[] {
  const seen = parseRows(fileRow, files).map(({ sha256, copy, ...file }) => ({
    ...file,
    run: sha256 === undefined ? undefined : runWithContent(db, { instrument: file.instrument, sha256, copy }),
  }));
  const all = new Map([...seen, ...runs].map((file) => [JSON.stringify(file), { ...file }]));
  return [...all.values()].sort((a, b) => (b.run ?? 0) - (a.run ?? 0) || (a.path < b.path ? -1 : 1)).slice(0, limit);
}

/** `isUntouched`: size, time and inode are unchanged. `isTouched`: content or attributes changed nevertheless. */
const pathRow = fileRow.extend({ isUntouched: flag, isTouched: flag });

function readPath(
  db: Connection,
  instrument: string,
  { path, size, mtimeNs, ctimeNs, inode }: Omit<DiskFile, 'location'>,
) {
  const row = db.row`
    SELECT instrument, path, verdict, sha256, copy, size = ${size} AND mtime_ns = ${mtimeNs}
      AND inode = ${signed(inode)} AS isUntouched, ifnull(ctime_ns <> ${ctimeNs ?? null}, 0) AS isTouched FROM files
      WHERE instrument = ${instrument} AND path = ${path}`;
  if (row === undefined) return undefined;
  const { verdict, sha256, copy, isUntouched, isTouched } = pathRow.parse(row);
  const run = sha256 === undefined ? undefined : lastFiling(db, { instrument, sha256, copy });
  return { verdict, isUntouched, isTouched, run };
}

const knownRow = z.object({ id: z.number(), sha256: z.string(), state: z.enum(RUN_STATES), experiment: number });

/** A run that is to be remapped still needs its file, so it counts as queued. */
function lastFiling(db: Connection, content: ContentKey & { readonly instrument: string }): KnownRun | undefined {
  const row = db.row`
    SELECT id, sha256, CASE WHEN id IN (SELECT run
      FROM remaps) THEN 'queued' ELSE ${raw(STATE)} END AS state, experiment FROM runs
      WHERE instrument = ${content.instrument} AND sha256 = ${content.sha256} AND (copy = ${copyOf(db, content)}
      OR ${content.copy} = '') ORDER BY copy = ${content.copy} DESC, refiling DESC LIMIT 1`;
  return parseRow(knownRow, row);
}

/** The run that has this content, or had it as an earlier version of its file. */
const runWithContent = (db: Connection, content: ContentKey & { readonly instrument: string }): number | undefined =>
  lastFiling(db, content)?.id ??
  db.value<number>`
    SELECT run FROM versions JOIN runs ON id = run WHERE instrument = ${content.instrument}
      AND versions.sha256 = ${content.sha256} ORDER BY run DESC LIMIT 1`;

const omitsRow = nullable(textList);

/** Without a draft if the run was recovered, pruned or erased. A comment's text is empty if it is unknown. */
const readFiling = (db: Connection, run: number) => ({
  draft: readDraft(db, run),
  /** What the file has and the draft does not; undefined if that is not known. */
  omits: omitsRow.parse(db.value<string>`SELECT omits FROM drafts WHERE run = ${run}` ?? null),
  stored: storedParts.parse(db.value<string>`SELECT stored FROM drafts WHERE run = ${run}`),
  comments: readComments(db, run),
  attachments: readAttachments(db, run),
  /** The contents that its file had, as far as they were filed. */
  versions: db.values<string>`SELECT sha256 FROM versions WHERE run = ${run} AND filed_at IS NOT NULL`,
});

/** Empty in the journal if the run was erased. */
const name = z.string().transform((path) => path || undefined);
const filedRow = z.object({
  id: z.number(),
  instrument: z.string(),
  sha256: z.string(),
  reference: z.string(),
  path: name,
  server: text,
  experiment: number,
});
const unfiledRow = z.object({
  id: z.number(),
  instrument: z.string(),
  path: name,
  state: z.enum(RUN_STATES),
  experiment: number,
  reason: text,
  attempts: z.number(),
});

/** Between two pages, the daemon can truncate its write-ahead log. */
const PAGE = 500;

const pageAfter = (after: number, instrument: string | undefined) =>
  part`id > ${after} ${instrument === undefined ? raw('') : part`AND instrument = ${instrument}`} ORDER BY id LIMIT ${PAGE}`;

function filedAfter(db: Connection, after: number, instrument: string | undefined): FiledRun[] {
  const rows = db.rows`
    SELECT id, instrument, sha256, reference, path, server, experiment FROM runs WHERE step = 'done'
      AND parked IS NULL AND ${pageAfter(after, instrument)}`;
  return parseRows(filedRow, rows);
}

function unfiledAfter(db: Connection, after: number, instrument: string | undefined): UnfiledRun[] {
  const rows = db.rows`
    SELECT id, instrument, path, ${raw(STATE)} AS state, experiment, reason, attempts FROM runs
      WHERE (step <> 'done' OR parked IS NOT NULL) AND parked IS NOT 'ignored'
      AND ${pageAfter(after, instrument)}`;
  return parseRows(unfiledRow, rows);
}

async function* inPages<T extends { readonly id: number }>(read: (after: number) => T[]): AsyncGenerator<T> {
  for (let after = 0; ; ) {
    const page = read(after);
    yield* page;
    const last = page.at(-1);
    if (last === undefined) return;
    after = last.id;
  }
}

const DAYS_SHOWN = 30;
const HOUR_MS = 3_600_000;

const MAX_FOLLOWED = 20;

const serverRow = z.object({ dialect: text, halted: text });

/** Called every second while somebody looks at the page: nothing here reads all runs. */
function readOverview(db: Connection, now: number) {
  const counts = db.rows<{ instrument: string; state: RunState; runs: number }>`
    SELECT instrument, state, runs FROM tallies ORDER BY instrument`;
  const scanned = db.rows<{ name: string; backlog: number }>`SELECT name, backlog FROM instruments`;
  const backlogs = new Map(scanned.map((row) => [row.name, row.backlog]));
  const names = new Set([...backlogs.keys(), ...counts.map(({ instrument }) => instrument)]);
  const servers = db.rows<{ url: string }>`SELECT url, dialect, halted FROM servers ORDER BY url`;
  return {
    instruments: [...names].sort().map((name) => ({
      name,
      runs: tallyOf(counts.filter(({ instrument }) => instrument === name)),
      last: listJobs(db, { instrument: name, limit: 1 })[0],
      /** The number of files in the backlog that wait for a decision. */
      asked: backlogs.get(name) ?? 0,
      /** The number of runs that came in each hour since 1970, without empty hours, oldest first. */
      hours: hoursOf(db, name, Math.floor(now / HOUR_MS) - DAYS_SHOWN * 24),
      /** When the run that has waited longest for its delivery was added. */
      oldestAt: oldestOf(db, name),
    })),
    /** Some of the files that keep growing. */
    growing: listFollowed(db, MAX_FOLLOWED),
    servers: servers.map((row) => ({ url: row.url, ...serverRow.parse(row), spares: sparesOf(db, row.url) })),
  };
}

/** The empty experiments that the next runs use. Those with other references may be another PC's. */
const sparesOf = (db: Connection, url: string): number[] =>
  db.values`
    SELECT experiment FROM spares WHERE server = ${url} AND (reference IS NULL OR reference IN (SELECT reference
      FROM runs)) ORDER BY experiment`;

/** Old rows stay: a year of them is smaller than one run's draft. */
const hoursOf = (db: Connection, instrument: string, since: number) =>
  db.rows<{ hour: number; runs: number }>`
    SELECT hour, runs FROM hours WHERE instrument = ${instrument} AND hour > ${since} ORDER BY hour`;

function oldestOf(db: Connection, instrument: string): number | undefined {
  const times = [0, 1].flatMap(
    (backlog) =>
      db.value<number>`
        SELECT added_at AS addedAt FROM runs WHERE step <> 'done' AND parked IS NULL
          AND instrument = ${instrument} AND backlog = ${backlog} ORDER BY id LIMIT 1` ?? [],
  );
  return times.length === 0 ? undefined : Math.min(...times);
}

function tallyOf(counted: readonly { state: RunState; runs: number }[]): Readonly<Record<RunState, number>> {
  const runsIn = (wanted: RunState): number => counted.find(({ state }) => state === wanted)?.runs ?? 0;
  return Object.fromEntries(RUN_STATES.map((state) => [state, runsIn(state)])) as Record<RunState, number>;
}
