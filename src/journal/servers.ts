import { z } from 'zod';
import type { LearntFacts, OpenRun, ServerFacts } from '../outbox.js';
import type { Commit, Database } from './database.js';
import type { ApplyChange } from './outbox.js';

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
  countUnknown(url: string): Promise<number>;
}

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
  restoredFrom: z.number().nullable().transform(absent),
});

const UNKNOWN: ServerFacts = serverRow.parse({
  highest: null,
  dialect: null,
  keepsTitle: null,
  keepsComments: null,
  blank: null,
  sweep: null,
  halted: null,
  restoredFrom: null,
});

const ASSIGNMENTS = {
  dialect: 'dialect = ?1',
  keepsTitle: 'keeps_title = ?1',
  keepsComments: 'keeps_comments = ?1',
  blank: 'blank = ?1',
  sweep: 'sweep = ?1',
  halted: 'halted = ?1',
  // Several creations can notice it together; the lowest counts.
  restoredFrom: 'set_back = min(ifnull(set_back, ?1), ?1)',
} as const satisfies Record<keyof LearntFacts, string>;

export function createServerJournal(
  database: Database,
  commit: Commit,
  apply: ApplyChange,
  now: () => number,
): ServerJournal {
  const get = database.prepare(
    `SELECT highest, dialect, keeps_title AS keepsTitle, keeps_comments AS keepsComments, blank, sweep, halted,
            set_back AS restoredFrom FROM servers WHERE url = ?`,
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
    countUnknown: async (url) => Number((lost.get(url) as { creations: number }).creations),
  };
}

/** A run with the experiment that it has, or had until the server was set back. */
export type PlacedRun = z.output<typeof placedRow>;

/** What the journal says of a server that was set back to an older state, put right run by run. */
export interface SetBackJournal {
  /** The runs whose experiments have this id or a higher one, highest first. */
  placedFrom(server: string, experiment: number): Promise<PlacedRun[]>;
  /** The run with the highest experiment below this one. */
  placedBelow(server: string, experiment: number): Promise<PlacedRun | undefined>;
  /** Runs below this experiment that have changed since: the older state may hold them unfinished. */
  changedSince(server: string, at: number, experiment: number): Promise<PlacedRun[]>;
  /** Its experiment is gone: the id is free for others, and the run waits for a person. */
  release(run: PlacedRun): Promise<void>;
  /** Its experiment is there, and blank: it is filled in again. */
  refill(run: PlacedRun): Promise<void>;
  /** Of its comments only these (by number) are there: the others are posted again. False where none is missing. */
  keepComments(run: PlacedRun, present: ReadonlySet<number>): Promise<boolean>;
  /** From now on this is the highest id that is known of the server. */
  settle(server: string, highest: number): Promise<void>;
}

const placedRow = z.object({
  id: z.number(),
  reference: z.string(),
  instrument: z.string(),
  sha256: z.string(),
  experiment: z.number(),
  addedAt: z.number(),
  /** Whether it is known what to send. */
  drafted: z.number().transform((count) => count > 0),
});

const PLACED = `SELECT id, reference, instrument, sha256, experiment, added_at AS addedAt,
       (SELECT count(*) FROM drafts WHERE run = runs.id) AS drafted FROM runs WHERE server = ?`;

export function createSetBackJournal(database: Database, commit: Commit, now: () => number): SetBackJournal {
  const from = database.prepare(`${PLACED} AND experiment >= ? ORDER BY experiment DESC`);
  const below = database.prepare(`${PLACED} AND experiment < ? ORDER BY experiment DESC LIMIT 1`);
  const since = database.prepare(`${PLACED} AND updated_at >= ? AND experiment < ? ORDER BY experiment DESC`);
  const lower = database.prepare('UPDATE servers SET highest = ?, set_back = NULL WHERE url = ?');
  // What these creations left behind, if anything, has an id of the new count.
  const lowerFloors = database.prepare(
    "UPDATE runs SET floor = min(floor, ?) WHERE server = ? AND step = 'creating'",
  );
  const dropSpares = database.prepare('DELETE FROM spares WHERE server = ? AND experiment > ?');
  const put = createChanges(database, now);

  return {
    placedFrom: async (server, experiment) => from.all(server, experiment).map((row) => placedRow.parse(row)),
    async placedBelow(server, experiment) {
      const row: unknown = below.get(server, experiment);
      return row === undefined ? undefined : placedRow.parse(row);
    },
    changedSince: async (server, at, experiment) =>
      since.all(server, at, experiment).map((row) => placedRow.parse(row)),
    release: (run) => commit(() => put.released(run)),
    refill: (run) => commit(() => put.unfilled(run)),
    keepComments: (run, present) => commit(() => put.commented(run, present)),
    settle: (server, highest) =>
      commit(() => {
        lower.run(highest, server);
        lowerFloors.run(highest, server);
        dropSpares.run(server, highest);
      }),
  };
}

/** To be called within a commit. */
function createChanges(database: Database, now: () => number) {
  // Done, as far as labfeed is concerned: nothing but being filed anew, or recovered, moves it on.
  const release = database.prepare(
    `UPDATE runs SET step = 'done', experiment = NULL, adopted = 0, failure = 'conflict', reason = ?1, updated_at = ?2,
                     resting = CASE WHEN resting = 'ignored' OR EXISTS (
                       SELECT 1 FROM runs AS later WHERE later.instrument = runs.instrument
                         AND later.sha256 = runs.sha256 AND later.copy = runs.copy AND later.refiling > runs.refiling
                     ) THEN 'ignored' ELSE 'held' END
       WHERE id = ?3`,
  );
  const reopen = database.prepare(
    "UPDATE runs SET step = 'created', attempts = 0, due_at = 0, updated_at = ? WHERE id = ?",
  );
  // One that is being redone still has to be described first.
  const postAgain = database.prepare(
    `UPDATE runs SET step = CASE step WHEN 'created' THEN step ELSE 'described' END, attempts = 0, due_at = 0,
                     updated_at = ? WHERE id = ?`,
  );
  const posted = database.prepare('SELECT n FROM comments WHERE run = ? AND comment IS NOT NULL');
  // Looked for before it is posted, like any whose answer was lost.
  const forgetComment = database.prepare(
    'UPDATE comments SET comment = NULL, intent_at = 0 WHERE run = ? AND n = ?',
  );
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'setBack', ?)",
  );
  const note = ({ id, experiment }: PlacedRun, became: string): void =>
    void history.run(id, now(), JSON.stringify({ experiment, became }));
  const numbersOf = ({ id }: PlacedRun): number[] => (posted.all(id) as { n: number }[]).map(({ n }) => n);

  return {
    released(run: PlacedRun): void {
      release.run(goneReason(run), now(), run.id);
      note(run, 'released');
    },
    unfilled(run: PlacedRun): void {
      for (const n of numbersOf(run)) forgetComment.run(run.id, n);
      reopen.run(now(), run.id);
      note(run, 'created');
    },
    commented(run: PlacedRun, present: ReadonlySet<number>): boolean {
      const missing = numbersOf(run).filter((n) => !present.has(n));
      if (missing.length === 0) return false;
      for (const n of missing) forgetComment.run(run.id, n);
      postAgain.run(now(), run.id);
      note(run, 'described');
      return true;
    },
  };
}

const goneReason = ({ id, experiment }: PlacedRun): string =>
  `it was filed as experiment ${experiment}, which is gone since the notebook was set back to an older state\n  → labfeed refile ${id} files it once more; if its experiment comes back, labfeed recover finds it`;
