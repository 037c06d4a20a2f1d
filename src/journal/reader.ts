import { z } from 'zod';
import { systemClock } from '../clock.js';
import { RUN_STATES, type RunState } from '../model.js';
import { openCurrent } from './client.js';
import { type Database, flag, nullable, textList } from './database.js';
import { READABLE } from './files.js';
import { stateOf } from './migrations.js';

/** The journal for those who only look. It is read as it is at that moment, whoever writes it. */
export interface JournalReader {
  /** All of the instruments and the queue, at a cost that does not grow with the journal. */
  overview(): Promise<Overview>;
  /** The newest first. */
  jobs(filter: JobFilter): Promise<Job[]>;
  job(id: number): Promise<JobDetail | undefined>;
  /** Files whose path holds this text, the newest first; also of files that are gone. */
  files(text: string, limit: number): Promise<KnownFile[]>;
  /** Runs of these bytes, of whatever instrument, the newest first. */
  sameContent(sha256: string): Promise<Job[]>;
  close(): Promise<void>;
}

/** Where copies are runs of their own, there may be any number. */
const MOST_COPIES = 100;

export const openReader = (path: string): JournalReader => createReader(openCurrent(path));

export function createReader(database: Database, now = systemClock.now): JournalReader {
  const one = database.prepare(`SELECT ${JOB} WHERE runs.id = ?`);
  const draft = database.prepare('SELECT title, date, body, tags FROM drafts WHERE run = ?');
  const comments = database.prepare('SELECT n, text, comment FROM comments WHERE run = ? ORDER BY n');
  const history = database.prepare('SELECT at, event, detail FROM history WHERE run = ? ORDER BY id');
  const paths = database.prepare(`SELECT path FROM files WHERE run = ? AND ${READABLE} ORDER BY path`);
  const drift = database.prepare('SELECT changes FROM drifts WHERE run = ?');
  const files = database.prepare(
    `SELECT instrument, path, verdict, run FROM files WHERE instr(path, ?1) > 0 AND ${READABLE}
     UNION SELECT instrument, path, 'taken', id FROM runs WHERE instr(path, ?1) > 0
     ORDER BY run DESC, path LIMIT ?2`,
  );
  const same = database.prepare(
    // By instrument, since that is what the index begins with: none reads all runs.
    `SELECT ${JOB} WHERE runs.instrument IN (SELECT instrument FROM tallies) AND sha256 = ?
       ORDER BY runs.id DESC LIMIT ${MOST_COPIES}`,
  );

  function jobs({ state, instrument, limit, before }: JobFilter): Job[] {
    const conditions = [
      state === undefined ? 'true' : IN_STATE[state],
      ...(instrument === undefined ? [] : ['runs.instrument = :instrument']),
      ...(before === undefined ? [] : ['runs.id < :before']),
    ];
    // Without the sign, SQLite would rather look through all runs in their order than sort the few that are open.
    const order = state === 'queued' || state === 'sending' ? '+runs.id' : 'runs.id';
    const find = database.prepare(
      `SELECT ${JOB} WHERE ${conditions.join(' AND ')} ORDER BY ${order} DESC LIMIT :limit`,
    );
    const named = {
      limit,
      ...(instrument !== undefined && { instrument }),
      ...(before !== undefined && { before }),
    };
    return find.all(named).map((row) => jobRow.parse(row));
  }

  function job(id: number): JobDetail | undefined {
    const row = one.get(id);
    if (row === undefined) return undefined;
    const drafted = draft.get(id);
    const drifted = drift.get(id) as { changes: string } | undefined;
    return {
      ...jobRow.parse(row),
      draft: drafted === undefined ? undefined : draftRow.parse(drafted),
      comments: comments.all(id).map((comment) => commentRow.parse(comment)),
      history: history.all(id).map((happening) => happeningRow.parse(happening)),
      paths: (paths.all(id) as { path: string }[]).map(({ path }) => path),
      drift: drifted === undefined ? [] : textList.parse(drifted.changes),
    };
  }

  const overview = createOverview(database, jobs, now);

  return {
    overview: async () => overview(),
    jobs: async (filter) => jobs(filter),
    job: async (id) => job(id),
    files: async (text, limit) => files.all(text, limit).map((row) => fileRow.parse(row)),
    sameContent: async (sha256) => same.all(sha256).map((row) => jobRow.parse(row)),
    close: async () => database.close(),
  };
}

/** A run as a list shows it. */
export type Job = z.output<typeof jobRow>;

/** A run with all that the journal has of it. */
export interface JobDetail extends Job {
  /** Absent where its file could not be read, or where it was erased. */
  readonly draft: { title: string; date: string; body: string; tags: string[] } | undefined;
  readonly comments: readonly { n: number; text: string; comment: number | undefined }[];
  readonly history: readonly Happening[];
  /** Where its bytes were seen. */
  readonly paths: readonly string[];
  /** What differs from the runs before it. */
  readonly drift: readonly string[];
}

type Happening = z.output<typeof happeningRow>;

interface JobFilter {
  readonly state?: RunState | undefined;
  readonly instrument?: string | undefined;
  readonly limit: number;
  /** Only runs with a smaller number: the next page. */
  readonly before?: number | undefined;
}

/** A file that the journal knows, whether or not it became a run. */
type KnownFile = z.output<typeof fileRow>;

const text = nullable(z.string());
const number = nullable(z.number());

const jobRow = z.object({
  id: z.number(),
  instrument: z.string(),
  state: z.enum(RUN_STATES),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  /** Empty where it was erased. */
  path: z.string(),
  size: z.number(),
  modifiedMs: z.number(),
  sha256: z.string(),
  backlog: flag,
  /** What the notebook calls it. */
  title: text,
  server: text,
  experiment: number,
  failure: text,
  /** Why it rests, or why its last attempt failed. */
  reason: text,
  attempts: z.number(),
  dueAt: z.number(),
  addedAt: z.number(),
  updatedAt: z.number(),
});

/** What `jobRow` reads. */
const JOB = `runs.id, runs.instrument, ${stateOf('runs')} AS state, step, path, size, modified_ms AS modifiedMs, sha256,
  backlog, drafts.title AS title, server, experiment, failure, reason, attempts, due_at AS dueAt, added_at AS addedAt,
  updated_at AS updatedAt FROM runs LEFT JOIN drafts ON drafts.run = runs.id`;

/** Each state as an index knows it: SQLite sees that one serves only where its condition stands there word by word. */
const IN_STATE: Readonly<Record<RunState, string>> = {
  waiting: 'false',
  queued: "step <> 'done' AND resting IS NULL AND step = 'pending'",
  sending: "step <> 'done' AND resting IS NULL AND step <> 'pending'",
  done: "step = 'done' AND resting IS NULL",
  quarantined: "resting = 'quarantined'",
  held: "resting = 'held'",
  ignored: "resting = 'ignored'",
};

const happeningRow = z.object({
  at: z.number(),
  event: z.string(),
  detail: text.transform((json): unknown => (json === undefined ? undefined : JSON.parse(json))),
});

const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string(), tags: textList });

const commentRow = z.object({ n: z.number(), text: z.string(), comment: number });

const fileRow = z.object({
  instrument: z.string(),
  path: z.string(),
  /** `asked`: part of the question about old files. */
  verdict: z.enum(['taken', 'skipped', 'asked']),
  run: number,
});

type Tally = Readonly<Record<RunState, number>>;

/** An instrument as the journal knows it; also one that is no longer in the configuration. */
export interface InstrumentSummary {
  readonly name: string;
  readonly runs: Tally;
  /** The run that came last. */
  readonly last: Job | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
  /** How many runs came in each hour since 1970 that had any, of the last so many days; oldest first. */
  readonly hours: readonly { readonly hour: number; readonly runs: number }[];
  /** When the run was added that has waited longest for its delivery. */
  readonly oldestAt: number | undefined;
}

interface ServerSummary {
  readonly url: string;
  readonly dialect: string | undefined;
  /** Why nothing is sent there until a person has recovered the journal. */
  readonly halted: string | undefined;
}

export interface Overview {
  readonly instruments: readonly InstrumentSummary[];
  readonly servers: readonly ServerSummary[];
}

const DAYS = 30;
const HOUR_MS = 3_600_000;

/** Asked for every second while somebody looks at the page: nothing here reads all runs. */
function createOverview(
  database: Database,
  jobs: (filter: JobFilter) => Job[],
  now: () => number,
): () => Overview {
  const tallies = database.prepare('SELECT instrument, state, runs FROM tallies ORDER BY instrument');
  const asked = database.prepare('SELECT name, asked FROM instruments');
  // Old rows stay: a year of them is smaller than one run's draft.
  const hours = database.prepare(
    'SELECT hour, runs FROM hours WHERE instrument = ? AND hour > ? ORDER BY hour',
  );
  const oldest = database.prepare(
    `SELECT added_at AS addedAt FROM runs WHERE step <> 'done' AND resting IS NULL AND instrument = ? AND backlog = ?
       ORDER BY id LIMIT 1`,
  );
  const servers = database.prepare('SELECT url, dialect, halted FROM servers ORDER BY url');

  function oldestOf(instrument: string): number | undefined {
    const rows = [0, 1].map((backlog) => oldest.get(instrument, backlog) as { addedAt: number } | undefined);
    const times = rows.flatMap((row) => (row === undefined ? [] : [row.addedAt]));
    return times.length === 0 ? undefined : Math.min(...times);
  }

  return () => {
    const since = Math.floor(now() / HOUR_MS) - DAYS * 24;
    const counted = tallies.all() as { instrument: string; state: RunState; runs: number }[];
    const questions = new Map(
      (asked.all() as { name: string; asked: number }[]).map(({ name, asked }) => [name, asked]),
    );
    const names = new Set([...questions.keys(), ...counted.map(({ instrument }) => instrument)]);
    return {
      instruments: [...names].sort().map((name) => ({
        name,
        runs: tallyOf(counted.filter(({ instrument }) => instrument === name)),
        last: jobs({ instrument: name, limit: 1 })[0],
        asked: questions.get(name) ?? 0,
        hours: hours.all(name, since) as { hour: number; runs: number }[],
        oldestAt: oldestOf(name),
      })),
      servers: (servers.all() as { url: string; dialect: string | null; halted: string | null }[]).map(
        ({ url, dialect, halted }) => ({ url, dialect: dialect ?? undefined, halted: halted ?? undefined }),
      ),
    };
  };
}

function tallyOf(counted: readonly { state: RunState; runs: number }[]): Tally {
  const none = RUN_STATES.map((state): [RunState, number] => [state, 0]);
  const some = counted.map(({ state, runs }): [RunState, number] => [state, runs]);
  return Object.fromEntries([...none, ...some]) as Record<RunState, number>;
}
