import { z } from 'zod';
import type { FileError } from '../errors.js';
import { explain } from '../errors.js';
import type { Draft, IdentifiedFile, OpenRun, RunChange } from '../model.js';
import { type RunIdentity, referenceOf } from '../reference.js';
import type { ApplyChange } from './changes.js';
import { createClaim } from './claim.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';
import type { RememberFile } from './files.js';

/** A run as it enters the journal. */
export interface NewRun {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  readonly copy: string;
  readonly backlog: boolean;
  /** Fingerprint of the mapping that read it. */
  readonly mapping: string;
}

export interface RunJournal {
  /** Whether a run needs nothing more: it is on its way, filed, or refused under today's mapping. */
  knows(run: NewRun): Promise<boolean>;
  /** From here on nothing of the source is needed any more. Replaces an earlier failure to read it. */
  add(run: NewRun, draft: Draft): Promise<number | undefined>;
  /** Records that the file does not read as its mapping says; resolves with the run's number. */
  refuse(run: NewRun, problem: FileError): Promise<number | undefined>;
  open(run: number): Promise<OpenRun>;
  /** The changes become durable together. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  /** Whether a run of this content has an experiment. */
  hasContent(instrument: string, sha256: string): Promise<boolean>;
  /** How many runs are in each step or resting place. */
  count(): Promise<Record<string, number>>;
}

const optional = z
  .number()
  .nullable()
  .transform((value) => value ?? undefined);
const tagList = z.array(z.string());
const tags = z.string().transform((json) => tagList.parse(JSON.parse(json)));
const runRow = z.object({
  id: z.number(),
  instrument: z.string(),
  reference: z.string(),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  server: z
    .string()
    .nullable()
    .transform((value) => value ?? undefined),
  floor: optional,
  intentAt: optional,
  unseen: z.number(),
  experiment: optional,
  adopted: z.number().transform((value) => value === 1),
  attempts: z.number(),
  title: z.string(),
  date: z.string(),
  body: z.string(),
  tags,
});
const commentRow = z.object({ n: z.number(), text: z.string(), intentAt: optional, comment: optional });
const knownRow = z.object({
  id: z.number(),
  resting: z.string().nullable(),
  failure: z.string().nullable(),
  mapping: z.string(),
});

export function createRunJournal(
  database: Database,
  commit: Commit,
  apply: ApplyChange,
  rememberFile: RememberFile,
  now: () => number,
): RunJournal {
  const find = database.prepare(
    `SELECT id, resting, failure, mapping FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ?
       ORDER BY refiling DESC LIMIT 1`,
  );
  const open = database.prepare(
    `SELECT id, instrument, reference, step, server, floor, intent_at AS intentAt, unseen, experiment, adopted, attempts,
            title, date, body, tags FROM runs JOIN drafts ON drafts.run = runs.id WHERE id = ?`,
  );
  const comments = database.prepare(
    'SELECT n, text, intent_at AS intentAt, comment FROM comments WHERE run = ? ORDER BY n',
  );
  const count = database.prepare(
    'SELECT ifnull(resting, step) AS state, count(*) AS runs FROM runs GROUP BY 1',
  );
  const content = database.prepare(
    'SELECT 1 FROM runs WHERE instrument = ? AND sha256 = ? AND experiment IS NOT NULL',
  );
  const claim = createClaim(database, commit);
  const insert = createInsert(database, rememberFile, now);

  return {
    async knows(run) {
      const look = (): unknown => find.get(run.instrument, run.file.sha256, run.copy);
      const row = look() ?? ((await claim(run)) ? look() : undefined);
      if (row === undefined) return false;
      const known = knownRow.parse(row);
      const unreadUntilNow =
        known.resting === 'quarantined' && known.failure === 'file' && known.mapping !== run.mapping;
      if (unreadUntilNow) return false;
      // The same bytes under another name, or touched: the quick look may spare the hashing from now on.
      await commit(() => rememberFile(run.instrument, run.file, 'taken', known.id));
      return true;
    },
    add: (run, draft) => commit(() => insert(run, draft, undefined)),
    refuse: (run, problem) => commit(() => insert(run, undefined, problem)),
    async open(run) {
      const { title, date, body, tags, ...rest } = runRow.parse(open.get(run));
      return {
        ...rest,
        draft: { title, date, body, tags },
        comments: comments.all(run).map((row) => commentRow.parse(row)),
      };
    },
    record: (run, ...changes) =>
      commit(() => {
        for (const change of changes) apply(run, change, now());
      }),
    hasContent: async (instrument, sha256) => content.get(instrument, sha256) !== undefined,
    count: async () =>
      Object.fromEntries(
        (count.all() as { state: string; runs: number }[]).map(({ state, runs }) => [state, runs]),
      ),
  };
}

/** Writes a run with its draft, its comments and its file, or with the reason why there is no draft. */
function createInsert(database: Database, rememberFile: RememberFile, now: () => number) {
  const put = database.prepare(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                       step, resting, failure, reason, added_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)
       ON CONFLICT (instrument, sha256, copy, refiling) DO UPDATE SET
         path = excluded.path, mapping = excluded.mapping, resting = excluded.resting,
         failure = excluded.failure, reason = excluded.reason, updated_at = excluded.updated_at
         WHERE resting = 'quarantined' AND failure = 'file'
       RETURNING id`,
  );
  const identify = createIdentify(database);
  const putDraft = database.prepare('INSERT INTO drafts VALUES (?, ?, ?, ?, ?)');
  const putComment = database.prepare('INSERT INTO comments (run, n, text) VALUES (?, ?, ?)');
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  return (
    { instrument, file, copy, backlog, mapping }: NewRun,
    draft: Draft | undefined,
    problem: FileError | undefined,
  ): number | undefined => {
    const identity = identify({ instrument, sha256: file.sha256, copy });
    const reason = problem ? explain(problem) : null;
    const at = now();
    const row: unknown = put.get(
      instrument,
      file.sha256,
      copy,
      identity.refiling,
      referenceOf(identity),
      file.path,
      file.size,
      Number(file.mtimeNs / 1_000_000n),
      backlog ? 1 : 0,
      mapping,
      problem ? 'quarantined' : null,
      problem ? 'file' : null,
      reason,
      at,
      at,
    );
    // Two equal files that arrived together: the first one made the run.
    if (row === undefined) return undefined;
    const run = (row as { id: number }).id;
    rememberFile(instrument, file, 'taken', run);
    history.run(run, at, draft ? 'read' : 'refused', JSON.stringify({ path: file.path, reason }));
    if (!draft) return run;
    putDraft.run(run, draft.title, draft.date, draft.body, JSON.stringify(draft.tags));
    for (const [index, text] of draft.comments.entries()) putComment.run(run, index + 1, text);
    return run;
  };
}

/** Which filing of its content a file is read for: the last that was asked for. */
function createIdentify(database: Database): (content: Omit<RunIdentity, 'refiling'>) => RunIdentity {
  const last = database.prepare(
    'SELECT ifnull(max(refiling), 0) AS refiling FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ?',
  );
  return (content) => {
    const row = last.get(content.instrument, content.sha256, content.copy) as { refiling: number };
    return { ...content, refiling: row.refiling };
  };
}
