import { basename } from 'node:path';
import { z } from 'zod';
import type { FileError } from '../errors.js';
import { referenceOf, refilingsOf } from '../markers.js';
import type { DiskFile, Draft, FoundFile, IdentifiedFile } from '../model.js';
import type { OpenRun, RunChange } from '../outbox.js';
import { type Commit, type Database, flag, nullable, textList } from './database.js';
import {
  type Added,
  createAsked,
  createAwaited,
  createForestall,
  createInsert,
  type NewRun,
} from './drafts.js';
import type { Shaped } from './drift.js';
import { createCopyOf, hiddenCopy, hiddenPath, type RememberFile, signed } from './files.js';

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

export interface DueJournal {
  /** Runs to deliver now: live before backlog, then fair between instruments, then oldest first. */
  due(now: number, limit: number, except: ReadonlySet<number>): Promise<number[]>;
  /** When the next run that waits becomes due. */
  nextDueAt(except: ReadonlySet<number>): Promise<number | undefined>;
}

interface Candidate {
  readonly id: number;
  readonly backlog: number;
  /** Its place among the due runs of its instrument. */
  readonly rank: number;
}

const OPEN = "step <> 'done' AND resting IS NULL";

export function createDueJournal(database: Database): DueJournal {
  const nextInstrument = database.prepare(
    `SELECT instrument FROM runs WHERE ${OPEN} AND instrument > ? ORDER BY instrument LIMIT 1`,
  );
  // A bare `LIMIT ?` makes SQLite compile the statement anew whenever it is bound: two to three times the cost.
  const dueOf = database.prepare(
    `SELECT id, backlog FROM runs WHERE ${OPEN} AND instrument = ? AND due_at <= ? ORDER BY backlog, id LIMIT ? + 0`,
  );
  const waiting = database.prepare(
    `SELECT id, due_at AS dueAt FROM runs WHERE ${OPEN} ORDER BY due_at LIMIT ? + 0`,
  );

  /** Steps from name to name in the index rather than reading every open run for a DISTINCT. */
  function* instruments(): Generator<string> {
    for (let name = ''; ; ) {
      const row = nextInstrument.get(name) as { instrument: string } | undefined;
      if (row === undefined) return;
      name = row.instrument;
      yield name;
    }
  }

  function candidates(
    instrument: string,
    now: number,
    limit: number,
    except: ReadonlySet<number>,
  ): Candidate[] {
    const rows = dueOf.all(instrument, now, limit + except.size) as { id: number; backlog: number }[];
    return rows.filter(({ id }) => !except.has(id)).map((row, rank) => ({ ...row, rank }));
  }

  return {
    due: async (now, limit, except) =>
      [...instruments()]
        .flatMap((instrument) => candidates(instrument, now, limit, except))
        .sort((a, b) => a.backlog - b.backlog || a.rank - b.rank || a.id - b.id)
        .slice(0, limit)
        .map(({ id }) => id),
    async nextDueAt(except) {
      const rows = waiting.all(except.size + 1) as { id: number; dueAt: number }[];
      return rows.find(({ id }) => !except.has(id))?.dueAt;
    },
  };
}

/** Events keep the names under which older versions stored them. */
const EVENTS: Partial<Record<RunChange['kind'], string>> = { parked: 'rested' };

export type ApplyChange = (run: number, change: RunChange, at: number) => void;

/** Applies one change to a run and writes it into the run's history. To be called within a commit. */
export function createApplyChange(database: Database): ApplyChange {
  const set = (assignments: string) =>
    database.prepare(`UPDATE runs SET ${assignments}, updated_at = ? WHERE id = ?`);
  const intended = set("step = 'creating', server = ?, floor = ?, unseen = ?, intent_at = ?");
  // An earlier creation that was lost unseen is still that, whatever became of the later one.
  const notCreated = set(
    `step = CASE WHEN unseen > 0 THEN 'creating' ELSE 'pending' END, unseen = max(0, unseen - 1),
     floor = NULL, intent_at = CASE WHEN unseen > 0 THEN intent_at END`,
  );
  const created = set("step = 'created', experiment = ?, attempts = 0");
  const described = set("step = 'described', attempts = 0");
  const commentIntended = database.prepare('UPDATE comments SET intent_at = ? WHERE run = ? AND n = ?');
  const commented = database.prepare('UPDATE comments SET comment = ? WHERE run = ? AND n = ?');
  const forgetComments = database.prepare('DELETE FROM earlier_comments WHERE run = ? AND n = ?');
  const finished = set("step = 'done', failure = NULL, reason = NULL");
  const forgetEarlier = database.prepare('DELETE FROM earlier_drafts WHERE run = ?');
  const postponed = set('attempts = attempts + 1, due_at = ?, failure = ?, reason = ?');
  const rested = set('resting = ?, failure = ?, reason = ?');
  const seen = database.prepare(
    `INSERT INTO servers (url, highest) SELECT server, ? FROM runs WHERE id = ?
       ON CONFLICT (url) DO UPDATE SET highest = max(ifnull(highest, 0), excluded.highest)`,
  );
  const sweep = database.prepare(
    'UPDATE servers SET sweep = max(ifnull(sweep, 0), ?) WHERE url = (SELECT server FROM runs WHERE id = ?)',
  );
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  function update(run: number, change: RunChange, at: number): void {
    switch (change.kind) {
      case 'intended':
        return void intended.run(change.server, change.floor ?? null, change.unseen ?? 0, change.at, at, run);
      case 'notCreated':
        return void notCreated.run(at, run);
      case 'created':
        created.run(change.experiment, at, run);
        seen.run(change.experiment, run);
        if (change.sweepBelow !== undefined) sweep.run(change.sweepBelow, run);
        return;
      case 'described':
        return void described.run(at, run);
      case 'commentIntended':
        return void commentIntended.run(change.at, run, change.n);
      case 'notCommented':
        return void commentIntended.run(null, run, change.n);
      case 'commented':
        return void commented.run(change.comment, run, change.n);
      case 'commentRevised':
      case 'commentDropped':
        return void forgetComments.run(run, change.n);
      case 'finished':
        finished.run(at, run);
        return void forgetEarlier.run(run);
      case 'postponed':
        return void postponed.run(change.dueAt, change.failure, change.reason, at, run);
      case 'parked':
        return void rested.run(change.as, change.failure, change.reason, at, run);
    }
  }

  return (run, change, at) => {
    update(run, change, at);
    const { kind, ...detail } = change;
    history.run(run, at, EVENTS[kind] ?? kind, JSON.stringify(detail));
  };
}

interface Copy {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  /** Its path, where equal bytes at other paths are runs of their own; else empty. */
  readonly copy: string;
}

const rowSchema = z.object({ id: z.number(), refiling: z.number(), reference: z.string(), path: z.string() });

/**
 * The notebook does not say which of several equal files an experiment came from. A run that was recovered from there
 * belongs to the file that its reference was made for; where it bears none, to the first file of its name.
 */
function createClaim(database: Database, commit: Commit): (copy: Copy) => Promise<boolean> {
  const unclaimed = database.prepare(
    `SELECT id, refiling, reference, path FROM runs WHERE instrument = ? AND sha256 = ? AND copy = '' AND mapping = ''
       AND step = 'done' AND NOT EXISTS (SELECT 1 FROM files WHERE run = runs.id) ORDER BY refiling`,
  );
  const claim = database.prepare('UPDATE runs SET copy = ?, refiling = ? WHERE id = ?');

  function find({ instrument, file: { sha256, path }, copy }: Copy): { id: number; refiling: number }[] {
    const rows = unclaimed.all(instrument, sha256).map((row) => rowSchema.parse(row));
    if (rows.length === 0) return [];
    // One that was filed anew after it was erased bears a reference of the hidden path.
    const hidden = refilingsOf({ instrument, sha256, copy: hiddenCopy({ instrument, sha256, copy }) });
    const own = new Map([...hidden, ...refilingsOf({ instrument, sha256, copy })]);
    const certain = rows.flatMap(({ id, reference }) => {
      const refiling = own.get(reference);
      return refiling === undefined ? [] : [{ id, refiling }];
    });
    if (certain.length > 0) return certain;
    const likely = rows.find(
      ({ refiling, reference, path: name }) =>
        name === basename(path) && reference === referenceOf({ instrument, sha256, copy: '', refiling }),
    );
    return likely ? [{ id: likely.id, refiling: 0 }] : [];
  }

  return async (run) => {
    if (run.copy === '' || find(run).length === 0) return false;
    return commit(() => {
      const found = find(run);
      for (const { id, refiling } of found) claim.run(run.copy, refiling, id);
      return found.length > 0;
    });
  };
}

const filedRow = z.object({ id: z.number(), path: z.string(), files: z.number() });

type Filed = z.output<typeof filedRow>;

/**
 * The filed run of which these files are what is left: some of its files were taken away since, or no longer count. All
 * of them, with other bytes, are a run of their own.
 */
function createThinnedOf(
  database: Database,
): (instrument: string, parts: readonly DiskFile[]) => Filed | undefined {
  // Where the quick look was made to look again, the time is gone: size and inode are what is left of it.
  const find = database.prepare(
    `SELECT id, runs.path, (SELECT count(*) FROM files AS all_of_it WHERE all_of_it.run = id) AS files
       FROM files JOIN runs ON runs.id = run WHERE files.instrument = ? AND files.path IN (?, ?)
         AND files.size = ? AND inode = ? AND mtime_ns IN (?, -1) AND experiment IS NOT NULL`,
  );

  return (instrument, parts) => {
    const runs = parts.map(({ path, size, inode, mtimeNs }): Filed | undefined => {
      const row = find.get(instrument, path, hiddenPath(instrument, path), size, signed(inode), mtimeNs);
      return row === undefined ? undefined : filedRow.parse(row);
    });
    const [first] = runs;
    const isRest = first !== undefined && parts.length < first.files;
    return isRest && runs.every((run) => run?.id === first.id) ? first : undefined;
  };
}
