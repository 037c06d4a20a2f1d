import { setImmediate } from 'node:timers/promises';
import { z } from 'zod';
import { systemClock } from '../clock.js';
import { RUN_STATES, type RunState } from '../model.js';
import { escapeHtml } from '../text.js';
import { type Connection, flag, nullable, parseRows, part, raw, STATE } from './database.js';
import { READABLE } from './intake.js';

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

/** Runs and bytes per statement. It takes a few milliseconds, so a search delays nothing else. */
const MAX_PIECE_RUNS = 1000;
const MAX_PIECE_BYTES = 2_000_000;
const MAX_WORDS = 8;

/**
 * The newest runs that have all these words in their file name, title, instrument, tags, fields or body, which shows the
 * sample. Reads the runs in pieces, newest first: an index would slow down intake.
 */
export async function searchJobs(db: Connection, { search, limit, ...filter }: Search, maxMs: number): Promise<Found> {
  const patterns = patternsFor(search);
  const matches = allOf(
    patterns,
    (word) => part`${like(['path', 'title', 'instrument', 'tags', 'extras'], word)}
    OR ${like(['body'], escapeHtml(word))}`,
  );
  const maxBytes = MAX_PIECE_BYTES / Math.max(1, patterns.flat().length);
  const deadline = systemClock.monotonic() + maxMs;
  const jobs: Job[] = [];
  let upTo = (filter.before ?? (db.value<number>`SELECT max(id) FROM runs` ?? 0) + 1) - 1;
  while (upTo > 0) {
    const from = pieceBefore(db, upTo, maxBytes);
    const found = findJobs(
      db,
      part`${matchesFilter(filter)} AND runs.id <= ${upTo} AND runs.id > ${from} AND ${matches}
        ORDER BY runs.id DESC LIMIT ${limit - jobs.length}`,
    );
    jobs.push(...found);
    upTo = from;
    if (jobs.length >= limit) return { jobs };
    if (upTo > 0 && systemClock.monotonic() >= deadline) return { jobs, searchedTo: upTo + 1 };
    await setImmediate();
  }
  return { jobs };
}

/** The run before a piece that ends with this one. A piece has one run at least. */
function pieceBefore(db: Connection, upTo: number, maxBytes: number): number {
  const tooMuch = db.value<number>`
    SELECT max(run) FROM (SELECT run, sum(octet_length(body)) OVER (ORDER BY run DESC) AS bytes FROM drafts
      WHERE run <= ${upTo} AND run > ${upTo - MAX_PIECE_RUNS}) WHERE bytes > ${maxBytes}`;
  return tooMuch === undefined ? upTo - MAX_PIECE_RUNS : Math.min(tooMuch, upTo - 1);
}

export interface SeenFile {
  readonly instrument: string;
  readonly path: string;
  readonly verdict: 'taken' | 'skipped' | 'backlog';
  /** Of the run that was taken from it. */
  readonly sha256: string | null;
  readonly copy: string;
}

type Place = Pick<SeenFile, 'instrument' | 'path'>;

const MAX_PIECE_FILES = 2000;
const MAX_PIECE_HITS = 100;

/** All files that the intake half has seen with these words in their path or instrument, in pieces as above. */
export async function* searchFiles(db: Connection, search: string): AsyncGenerator<readonly SeenFile[]> {
  const matches = allOf(patternsFor(search), (word) => like(['path', 'instrument'], word));
  for (let last: Place | undefined = { instrument: '', path: '' }; last; ) {
    const rest: Fragment = part`(instrument, path) > (${last.instrument}, ${last.path})`;
    const end: Place | undefined = db.row<Place>`
      SELECT instrument, path FROM files WHERE ${rest} ORDER BY instrument, path LIMIT 1 OFFSET ${MAX_PIECE_FILES}`;
    const upTo = end ? part`AND (instrument, path) <= (${end.instrument}, ${end.path})` : raw('');
    const hits: readonly SeenFile[] = db.rows<SeenFile>`
      SELECT instrument, path, verdict, sha256, copy FROM files WHERE ${rest} ${upTo} AND ${raw(READABLE)}
        AND ${matches} ORDER BY instrument, path LIMIT ${MAX_PIECE_HITS}`;
    yield hits;
    last = hits.length === MAX_PIECE_HITS ? hits.at(-1) : end;
    await setImmediate();
  }
}

/** As SQL: whether a path has all these words. */
export const pathMatches = (search: string) => allOf(patternsFor(search), (word) => like(['path'], word));

/** For each word, the ways to write it: LIKE ignores the case of ASCII letters only. */
const patternsFor = (search: string): string[][] =>
  search
    .split(/\s+/)
    .filter(Boolean)
    .slice(0, MAX_WORDS)
    .map((word) => (/^[ -~]*$/.test(word) ? [word] : [...new Set([word, word.toLowerCase(), word.toUpperCase()])]));

type Fragment = ReturnType<typeof part>;

const allOf = (patterns: readonly string[][], matching: (word: string) => Fragment): Fragment =>
  patterns
    .map((ways) => ways.map(matching).reduce((one, other) => part`${one} OR ${other}`))
    .reduce((before, word) => part`${before} AND (${word})`, part`true`);

const like = (columns: readonly string[], word: string): Fragment =>
  columns
    .map((column) => part`${raw(column)} LIKE ${`%${word.replace(/[%_\\]/g, '\\$&')}%`} ESCAPE '\\'`)
    .reduce((one, other) => part`${one} OR ${other}`);
