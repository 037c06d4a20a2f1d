import { z } from 'zod';
import type { OpenRun, ServerFacts } from '../model.js';
import type { ApplyChange } from './changes.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';

export interface ServerJournal {
  server(url: string): Promise<ServerFacts>;
  /** Remembers what was learnt; null forgets it again. */
  learn(url: string, facts: LearntFacts): Promise<void>;
  /** Gives the run an experiment of ours that nobody uses, if there is one; its own before any other. */
  claimSpare(url: string, run: OpenRun): Promise<number | undefined>;
  addSpare(url: string, experiment: number, reference?: string): Promise<void>;
  /** Whether a run, or the store of spares, has this experiment. */
  hasExperiment(url: string, experiment: number): Promise<boolean>;
  /** The highest so many experiments that runs have there, highest first. */
  lastExperiments(url: string, count: number): Promise<number[]>;
  /** Whether a run has this reference. */
  hasReference(reference: string): Promise<boolean>;
  /** Whether a creation of the run with this reference has an answer that is not known. */
  isCreating(reference: string): Promise<boolean>;
  /** How many creations on this server have an answer that is not known. */
  countLost(url: string): Promise<number>;
}

export type LearntFacts = { readonly [K in Exclude<keyof ServerFacts, 'highest'>]?: ServerFacts[K] | null };

const absent = <T>(value: T | null): T | undefined => value ?? undefined;
const flag = z
  .number()
  .nullable()
  .transform((value) => (value === null ? undefined : value === 1));
const serverRow = z.object({
  highest: z.number().nullable().transform(absent),
  dialect: z.enum(['v2', 'elabftw']).nullable().transform(absent),
  keepsTitle: flag,
  keepsComments: flag,
  blank: z.string().nullable().transform(absent),
  sweep: z.number().nullable().transform(absent),
  halted: z.string().nullable().transform(absent),
  setBack: z.number().nullable().transform(absent),
});

const UNKNOWN: ServerFacts = serverRow.parse({
  highest: null,
  dialect: null,
  keepsTitle: null,
  keepsComments: null,
  blank: null,
  sweep: null,
  halted: null,
  setBack: null,
});

const ASSIGNMENTS = {
  dialect: 'dialect = ?1',
  keepsTitle: 'keeps_title = ?1',
  keepsComments: 'keeps_comments = ?1',
  blank: 'blank = ?1',
  sweep: 'sweep = ?1',
  halted: 'halted = ?1',
  // Several creations can notice it together; the lowest counts.
  setBack: 'set_back = min(ifnull(set_back, ?1), ?1)',
} as const satisfies Record<keyof LearntFacts, string>;

export function createServerJournal(
  database: Database,
  commit: Commit,
  apply: ApplyChange,
  now: () => number,
): ServerJournal {
  const get = database.prepare(
    `SELECT highest, dialect, keeps_title AS keepsTitle, keeps_comments AS keepsComments, blank, sweep, halted,
            set_back AS setBack FROM servers WHERE url = ?`,
  );
  const known = database.prepare('INSERT OR IGNORE INTO servers (url) VALUES (?)');
  const set = Object.fromEntries(
    Object.entries(ASSIGNMENTS).map(([fact, assignment]) => [
      fact,
      database.prepare(`UPDATE servers SET ${assignment} WHERE url = ?2`),
    ]),
  );
  const spare = database.prepare(
    `SELECT experiment FROM spares WHERE server = ? AND (reference IS NULL OR reference = ?
       OR reference IN (SELECT reference FROM runs WHERE step NOT IN ('pending', 'creating')))
       ORDER BY reference IS ? DESC, experiment LIMIT 1`,
  );
  const dropSpare = database.prepare('DELETE FROM spares WHERE server = ? AND experiment = ?');
  const putSpare = database.prepare('INSERT OR IGNORE INTO spares VALUES (?, ?, ?)');
  const used = database.prepare(
    `SELECT 1 FROM runs WHERE server = ?1 AND experiment = ?2 UNION SELECT 1 FROM spares WHERE server = ?1 AND experiment = ?2`,
  );
  const last = database.prepare(
    'SELECT experiment FROM runs WHERE server = ? AND experiment IS NOT NULL ORDER BY experiment DESC LIMIT ?',
  );
  const referred = database.prepare('SELECT 1 FROM runs WHERE reference = ?');
  const creating = database.prepare("SELECT 1 FROM runs WHERE reference = ? AND step = 'creating'");
  const lost = database.prepare(
    "SELECT count(*) + ifnull(sum(unseen), 0) AS creations FROM runs WHERE step = 'creating' AND server = ?",
  );

  return {
    async server(url) {
      const row = get.get(url);
      return row === undefined ? UNKNOWN : serverRow.parse(row);
    },
    learn: (url, facts) =>
      commit(() => {
        known.run(url);
        for (const [fact, value] of Object.entries(facts)) {
          if (value !== undefined) set[fact]?.run(typeof value === 'boolean' ? Number(value) : value, url);
        }
      }),
    async claimSpare(url, run) {
      // Almost never is there one, and a look costs less than a commit.
      if (spare.get(url, run.reference, run.reference) === undefined) return undefined;
      return commit(() => {
        const row = spare.get(url, run.reference, run.reference) as { experiment: number } | undefined;
        if (row === undefined) return undefined;
        const { experiment } = row;
        dropSpare.run(url, experiment);
        apply(run.id, { kind: 'intended', server: url, floor: undefined, at: now() }, now());
        apply(run.id, { kind: 'created', experiment, found: true }, now());
        return experiment;
      });
    },
    addSpare: (url, experiment, reference) =>
      commit(() => {
        putSpare.run(url, experiment, reference ?? null);
      }),
    hasExperiment: async (url, experiment) => used.get(url, experiment) !== undefined,
    lastExperiments: async (url, count) =>
      (last.all(url, count) as { experiment: number }[]).map(({ experiment }) => experiment),
    hasReference: async (reference) => referred.get(reference) !== undefined,
    isCreating: async (reference) => creating.get(reference) !== undefined,
    countLost: async (url) => Number((lost.get(url) as { creations: number }).creations),
  };
}
