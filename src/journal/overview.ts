import { RUN_STATES, type RunState } from '../model.js';
import type { Database } from './database.js';
import type { Job, JobFilter } from './job.js';

export type Tally = Readonly<Record<RunState, number>>;

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

export interface ServerSummary {
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
export function createOverview(
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
