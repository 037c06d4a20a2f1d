import { z } from 'zod';
import { RUN_STATES, type RunState } from '../model.js';
import { flag, nullable, textList } from './row.js';
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

const text = nullable(z.string());
const number = nullable(z.number());

export const jobRow = z.object({
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
export const JOB = `runs.id, runs.instrument, ${stateOf('runs')} AS state, step, path, size, modified_ms AS modifiedMs, sha256,
  backlog, drafts.title AS title, server, experiment, failure, reason, attempts, due_at AS dueAt, added_at AS addedAt,
  updated_at AS updatedAt FROM runs LEFT JOIN drafts ON drafts.run = runs.id`;

/** Each state as an index knows it: SQLite sees that one serves only where its condition stands there word by word. */
export const IN_STATE: Readonly<Record<RunState, string>> = {
  waiting: 'false',
  queued: "step <> 'done' AND resting IS NULL AND step = 'pending'",
  sending: "step <> 'done' AND resting IS NULL AND step <> 'pending'",
  done: "step = 'done' AND resting IS NULL",
  quarantined: "resting = 'quarantined'",
  held: "resting = 'held'",
  ignored: "resting = 'ignored'",
};

export const happeningRow = z.object({
  at: z.number(),
  event: z.string(),
  detail: text.transform((json): unknown => (json === undefined ? undefined : JSON.parse(json))),
});

export const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string(), tags: textList });

export const commentRow = z.object({ n: z.number(), text: z.string(), comment: number });

export const fileRow = z.object({
  instrument: z.string(),
  path: z.string(),
  /** `asked`: part of the question about old files. */
  verdict: z.enum(['taken', 'skipped', 'asked']),
  run: number,
});
