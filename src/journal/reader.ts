import { z } from 'zod';
import { RUN_STATES, type RunState } from '../model.js';
import { openBeside } from './client.js';
import type { Database } from './database.js';
import { createOverview, type Overview } from './overview.js';
import { stateOf } from './state.js';

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

export type Happening = z.output<typeof happeningRow>;

export interface JobFilter {
  readonly state?: RunState | undefined;
  readonly instrument?: string | undefined;
  readonly limit: number;
  /** Only runs with a smaller number: the next page. */
  readonly before?: number | undefined;
}

/** A file that the journal knows, whether or not it became a run. */
export type KnownFile = z.output<typeof fileRow>;

/** The journal for those who only look. It is read as it is at that moment, whoever writes it. */
export interface JournalReader {
  /** All of the instruments and the queue, at a cost that does not grow with the journal. */
  overview(): Overview;
  /** The newest first. */
  jobs(filter: JobFilter): Job[];
  job(id: number): JobDetail | undefined;
  /** Files whose path holds this text, the newest first; also of files that are gone. */
  files(text: string, limit: number): KnownFile[];
  close(): void;
}

const optional = <T>(value: T | null): T | undefined => value ?? undefined;
const text = z.string().nullable().transform(optional);
const number = z.number().nullable().transform(optional);

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
  backlog: z.number().transform((value) => value === 1),
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
const happeningRow = z.object({
  at: z.number(),
  event: z.string(),
  detail: text.transform((json): unknown => (json === undefined ? undefined : JSON.parse(json))),
});
const list = z.string().transform((json) => z.array(z.string()).parse(JSON.parse(json)));
const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string(), tags: list });
const commentRow = z.object({ n: z.number(), text: z.string(), comment: number });
const fileRow = z.object({
  instrument: z.string(),
  path: z.string(),
  /** `asked`: part of the question about old files. */
  verdict: z.enum(['taken', 'skipped', 'asked']),
  run: number,
});

const JOB = `runs.id, runs.instrument, ${stateOf('runs')} AS state, step, path, size, modified_ms AS modifiedMs, sha256,
  backlog, drafts.title AS title, server, experiment, failure, reason, attempts, due_at AS dueAt, added_at AS addedAt,
  updated_at AS updatedAt FROM runs LEFT JOIN drafts ON drafts.run = runs.id`;

/** Each state as the index knows it. */
const WHERE: Readonly<Record<RunState, string>> = {
  waiting: 'false',
  queued: "step = 'pending' AND resting IS NULL",
  sending: "step <> 'pending' AND step <> 'done' AND resting IS NULL",
  done: "step = 'done' AND resting IS NULL",
  quarantined: "resting = 'quarantined'",
  held: "resting = 'held'",
  ignored: "resting = 'ignored'",
};

export const openReader = (path: string): JournalReader => createReader(openBeside(path));

export function createReader(database: Database): JournalReader {
  const one = database.prepare(`SELECT ${JOB} WHERE runs.id = ?`);
  const draft = database.prepare('SELECT title, date, body, tags FROM drafts WHERE run = ?');
  const comments = database.prepare('SELECT n, text, comment FROM comments WHERE run = ? ORDER BY n');
  const history = database.prepare('SELECT at, event, detail FROM history WHERE run = ? ORDER BY id');
  const paths = database.prepare('SELECT path FROM files WHERE run = ? ORDER BY path');
  const drift = database.prepare('SELECT changes FROM drifts WHERE run = ?');
  const files = database.prepare(
    `SELECT instrument, path, verdict, run FROM files WHERE instr(path, ?1) > 0
     UNION SELECT instrument, path, 'taken', id FROM runs WHERE instr(path, ?1) > 0
     ORDER BY run DESC, path LIMIT ?2`,
  );

  function jobs({ state, instrument, limit, before }: JobFilter): Job[] {
    const conditions = [
      state === undefined ? 'true' : WHERE[state],
      ...(instrument === undefined ? [] : ['runs.instrument = :instrument']),
      ...(before === undefined ? [] : ['runs.id < :before']),
    ];
    const find = database.prepare(
      `SELECT ${JOB} WHERE ${conditions.join(' AND ')} ORDER BY runs.id DESC LIMIT :limit`,
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
      drift: drifted === undefined ? [] : list.parse(drifted.changes),
    };
  }

  return {
    overview: createOverview(database, jobs),
    jobs,
    job,
    files: (text, limit) => files.all(text, limit).map((row) => fileRow.parse(row)),
    close: () => database.close(),
  };
}
