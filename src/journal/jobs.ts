import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../clock.js';
import { RUN_STATES, type RunState } from '../model.js';
import { escapeHtml } from '../text.js';
import { type Connection, flag, nullable, parseRows, part, raw, STATE } from './database.js';

/** Lists and searches of runs. */

/** A run as a list shows it. */
export type Job = z.output<typeof jobRow>;

export interface JobFilter {
  readonly state?: RunState | undefined;
  readonly instrument?: string | undefined;
  readonly limit: number;
  /** Only runs with a smaller number: the next page. */
  readonly before?: number | undefined;
}

const text = nullable(z.string());
const number = nullable(z.number());

const jobRow = z.object({
  id: z.number(),
  instrument: z.string(),
  state: z.enum(RUN_STATES),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  /** Empty if the run was erased. */
  path: z.string(),
  size: z.number(),
  modifiedMs: z.number(),
  sha256: z.string(),
  backlog: flag,
  /** Of the experiment. */
  title: text,
  server: text,
  experiment: number,
  failure: text,
  /** Why it is parked, or why its last attempt failed. */
  reason: text,
  attempts: z.number(),
  dueAt: z.number(),
  addedAt: z.number(),
  updatedAt: z.number(),
});

const JOB = `runs.id, runs.instrument, ${STATE} AS state, step, path, size, modified_ms AS modifiedMs, sha256,
  backlog, drafts.title AS title, server, experiment, failure, reason, attempts, due_at AS dueAt, added_at AS addedAt,
  updated_at AS updatedAt FROM runs LEFT JOIN drafts ON drafts.run = runs.id`;

/** Each state as in the condition of an index, word for word: otherwise SQLite does not use it. */
const IN_STATE: Readonly<Record<RunState, string>> = {
  waiting: 'false',
  queued: "step <> 'done' AND parked IS NULL AND step = 'pending'",
  sending: "step <> 'done' AND parked IS NULL AND step <> 'pending'",
  done: "step = 'done' AND parked IS NULL",
  quarantined: "parked = 'quarantined'",
  held: "parked = 'held'",
  ignored: "parked = 'ignored'",
};

export function listJobs(db: Connection, { state, instrument, limit, before }: JobFilter): Job[] {
  const page = before === undefined ? raw('') : part`AND runs.id < ${before}`;
  // Without the sign, SQLite would read all runs in their order instead of sorting the few that are open.
  const order = raw(state === 'queued' || state === 'sending' ? '+runs.id' : 'runs.id');
  return findJobs(db, part`${matchesFilter({ state, instrument })} ${page} ORDER BY ${order} DESC LIMIT ${limit}`);
}

function matchesFilter({ state, instrument }: Pick<JobFilter, 'state' | 'instrument'>) {
  const inState = raw(state === undefined ? 'true' : IN_STATE[state]);
  return instrument === undefined ? inState : part`${inState} AND runs.instrument = ${instrument}`;
}

export const findJobs = (db: Connection, condition: ReturnType<typeof part>): Job[] =>
  parseRows(jobRow, db.rows`SELECT ${raw(JOB)} WHERE ${condition}`);

export interface Search extends JobFilter {
  readonly search: string;
}

export interface Found {
  readonly jobs: readonly Job[];
  /** The oldest run that was looked at, if the time was not enough for all of them. */
  readonly searchedTo?: number | undefined;
}

/** Runs per statement. It takes a few milliseconds, so a search delays nothing else. */
const CHUNK = 1000;
const MAX_WORDS = 8;

/**
 * The newest runs that have all these words in their file name, title, instrument, tags or body, which shows the sample.
 * Reads the runs in pieces, newest first: a million of them take about a second, and an index would slow down intake.
 */
export async function searchJobs(db: Connection, { search, limit, ...filter }: Search, maxMs: number): Promise<Found> {
  const words = search.split(/\s+/).filter(Boolean).slice(0, MAX_WORDS);
  const matches = words.reduce((before, word) => part`${before} AND (${matching(word)})`, part`true`);
  const deadline = systemClock.monotonic() + maxMs;
  const jobs: Job[] = [];
  let upTo = (filter.before ?? (db.value<number>`SELECT max(id) FROM runs` ?? 0) + 1) - 1;
  while (upTo > 0) {
    const found = findJobs(
      db,
      part`${matchesFilter(filter)} AND runs.id <= ${upTo} AND runs.id > ${upTo - CHUNK} AND ${matches}
        ORDER BY runs.id DESC LIMIT ${limit - jobs.length}`,
    );
    jobs.push(...found);
    upTo -= CHUNK;
    if (jobs.length >= limit) return { jobs };
    if (upTo > 0 && systemClock.monotonic() >= deadline) return { jobs, searchedTo: upTo + 1 };
    await setImmediate();
  }
  return { jobs };
}

/** LIKE ignores the case of ASCII letters only. */
function matching(word: string) {
  const cases = /^[ -~]*$/.test(word) ? [word] : [...new Set([word, word.toLowerCase(), word.toUpperCase()])];
  return cases.map(matchingCase).reduce((one, other) => part`${one} OR ${other}`);
}

function matchingCase(word: string) {
  const pattern = (text: string): string => `%${text.replace(/[%_\\]/g, '\\$&')}%`;
  const plain = pattern(word);
  return part`path LIKE ${plain} ESCAPE '\\' OR title LIKE ${plain} ESCAPE '\\' OR instrument LIKE ${plain} ESCAPE '\\'
    OR tags LIKE ${plain} ESCAPE '\\' OR body LIKE ${pattern(escapeHtml(word))} ESCAPE '\\'`;
}
