import { z } from 'zod';
import type { FileError } from '../errors.js';
import type { Draft, FoundFile, OpenRun, RunChange } from '../model.js';
import type { ApplyChange } from './changes.js';
import { createClaim } from './claim.js';
import type { Commit } from './commit.js';
import type { Database } from './database.js';
import type { RememberFile } from './files.js';
import { createCopyOf, hiddenPath } from './hidden.js';
import { type Added, createInsert, type NewRun } from './insert.js';
import { createAsked, createAwaited, createForestall } from './remap.js';
import { flag, nullable, textList } from './row.js';
import type { Shaped } from './shapes.js';
import { createThinnedOf } from './thinned.js';

export interface RunJournal {
  /** Whether a run needs nothing more: it is on its way, filed and not to be redone, or refused or held under today's mapping. */
  knows(run: NewRun): Promise<boolean>;
  /**
   * From here on nothing of the source is needed any more. Replaces what was read before, where the run is
   * quarantined, or drifted, or to be redone. Undefined where an equal file made the run just before.
   */
  add(run: NewRun, draft: Draft, shaped?: Shaped): Promise<Added | undefined>;
  /** Records that the file does not read as its mapping says. A run that was to be redone stays as it was filed. */
  refuse(run: NewRun, problem: FileError): Promise<Added | undefined>;
  open(run: number): Promise<OpenRun>;
  /** The changes become durable together. */
  record(run: number, ...changes: RunChange[]): Promise<void>;
  /** Whether a run of this content has an experiment. */
  hasContent(instrument: string, sha256: string): Promise<boolean>;
  /** How many runs are in each step or resting place. */
  count(): Promise<Record<string, number>>;
}

const optional = nullable(z.number());
const runRow = z.object({
  id: z.number(),
  instrument: z.string(),
  reference: z.string(),
  step: z.enum(['pending', 'creating', 'created', 'described', 'done']),
  server: nullable(z.string()),
  floor: optional,
  unseen: z.number(),
  experiment: optional,
  adopted: flag,
  attempts: z.number(),
  title: z.string(),
  date: z.string(),
  body: z.string(),
  tags: textList,
});
const earlierRow = z.object({
  title: z.string(),
  date: z.string(),
  body: z.string(),
  tags: textList,
  written: flag,
});
const earlierCommentRow = z.object({ n: z.number(), text: z.string(), comment: optional });
const commentRow = z.object({
  n: z.number(),
  text: z.string(),
  intentAt: optional,
  comment: optional,
  gone: optional,
});
const knownRow = z.object({
  id: z.number(),
  path: z.string(),
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
    `SELECT id, path, resting, failure, mapping FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ?
       ORDER BY refiling DESC LIMIT 1`,
  );
  const open = database.prepare(
    `SELECT id, instrument, reference, step, server, floor, unseen, experiment, adopted, attempts,
            title, date, body, tags FROM runs JOIN drafts ON drafts.run = runs.id WHERE id = ?`,
  );
  const comments = database.prepare(
    'SELECT n, text, intent_at AS intentAt, comment, gone FROM comments WHERE run = ? ORDER BY n',
  );
  const earlier = database.prepare(
    'SELECT title, date, body, tags, written FROM earlier_drafts WHERE run = ? ORDER BY rowid',
  );
  const earlierComments = database.prepare(
    'SELECT n, text, comment FROM earlier_comments WHERE run = ? ORDER BY n, rowid',
  );
  const count = database.prepare(
    'SELECT ifnull(resting, step) AS state, count(*) AS runs FROM runs GROUP BY 1',
  );
  const content = database.prepare(
    'SELECT 1 FROM runs WHERE instrument = ? AND sha256 = ? AND experiment IS NOT NULL',
  );
  const claim = createClaim(database, commit);
  const copyOf = createCopyOf(database);
  const insert = createInsert(database, rememberFile, now);
  const asked = createAsked(database);
  const forestall = createForestall(database);
  const awaited = createAwaited(database);
  const thinnedOf = createThinnedOf(database);

  return {
    async knows(run) {
      const { instrument, file, copy } = run;
      const look = (): unknown => find.get(instrument, file.sha256, copyOf({ ...file, instrument, copy }));
      const row = look() ?? ((await claim(run)) ? look() : undefined);
      if (row === undefined) {
        const rest = thinnedOf(instrument, file.parts ?? []);
        if (rest === undefined) return false;
        await commit(() => {
          rememberFile(
            instrument,
            rest.path === '' ? withoutNames(instrument, file) : file,
            'taken',
            rest.id,
          );
          forestall(instrument, file.path, NOBODY, now(), THINNED);
        });
        return true;
      }
      const known = knownRow.parse(row);
      const isAboutMapping =
        known.resting === 'quarantined' || (known.resting === 'held' && known.failure === 'drift');
      if (isAboutMapping && known.mapping !== run.mapping) return false;
      if (asked(instrument, file, copy) === known.id) return false;
      if (awaited(known.id, file.path)) return true;
      // The same bytes under another name, or touched: the quick look may spare the hashing from now on.
      // Of a run that was erased, the name does not come back with its file.
      const named = known.path === '' ? withoutNames(instrument, file) : file;
      await commit(() => {
        rememberFile(instrument, named, 'taken', known.id);
        forestall(instrument, file.path, known.id, now());
      });
      return true;
    },
    add: (run, draft, shaped) => commit(() => insert(run, { draft, shaped })),
    refuse: (run, problem) => commit(() => insert(run, { problem })),
    async open(run) {
      const { title, date, body, tags, ...rest } = runRow.parse(open.get(run));
      return {
        ...rest,
        draft: { title, date, body, tags },
        earlier: earlier.all(run).map((row) => earlierRow.parse(row)),
        ...withEarlier(
          comments.all(run).map((row) => commentRow.parse(row)),
          earlierComments.all(run).map((row) => earlierCommentRow.parse(row)),
        ),
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

/** What the notebook may hold of earlier readings, with the comments that it stands for or beside them. */
function withEarlier(
  planned: readonly z.output<typeof commentRow>[],
  earlier: readonly z.output<typeof earlierCommentRow>[],
): Pick<OpenRun, 'comments' | 'surplus'> {
  const textsOf = (n: number): string[] => earlier.filter((one) => one.n === n).map(({ text }) => text);
  const wanted = new Set(planned.map(({ n }) => n));
  const surplus = new Map(earlier.filter(({ n }) => !wanted.has(n)).map(({ n, comment }) => [n, comment]));
  return {
    comments: planned.map((comment) => ({ ...comment, earlier: textsOf(comment.n) })),
    surplus: [...surplus].map(([n, comment]) => ({ n, comment, texts: textsOf(n) })),
  };
}

const NOBODY = 0;
const THINNED = 'some of the files that it was read from are gone, or no longer part of it';

function withoutNames(instrument: string, file: FoundFile): FoundFile {
  const hide = <T extends { readonly path: string }>(one: T): T => ({
    ...one,
    path: hiddenPath(instrument, one.path),
  });
  return { ...hide(file), ...(file.parts && { parts: file.parts.map(hide) }) };
}
