import { z } from 'zod';
import { explain, explainProblem, type FileError } from '../errors.js';
import { type RunIdentity, referenceOf } from '../markers.js';
import type { Draft, IdentifiedFile } from '../model.js';
import type { Database } from './database.js';
import { createShapes, type Drift, type Shaped } from './drift.js';
import { createCopyOf, type RememberFile } from './files.js';
import { type Answer, nameOf, type SourceState, type Standing, stateOf } from './requests.js';

/** A run as it enters the journal. */
export interface NewRun {
  readonly instrument: string;
  readonly file: IdentifiedFile;
  readonly copy: string;
  readonly backlog: boolean;
  /** Fingerprint of the mapping that read it. */
  readonly mapping: string;
}

/** What came of reading its file. */
type Reading =
  | { readonly draft: Draft; readonly shaped: Shaped | undefined; readonly problem?: never }
  | { readonly draft?: never; readonly shaped?: never; readonly problem: FileError };

export interface Added {
  readonly id: number;
  /** Where the run is not shaped as the one before it. */
  readonly drift: Drift | undefined;
  /** Where it was done, and a person has it read anew. */
  readonly remapped?: Remapped;
}

/**
 * Writes a run with its draft, its comments and its file, or with the reason why there is no draft. One that is
 * quarantined, or drifted, or to be redone, takes what was read now in the place of what was read before. To be called
 * within a commit.
 */
export function createInsert(database: Database, rememberFile: RememberFile, now: () => number) {
  const addOrReplace = createAddOrReplace(database, now);
  const redo = createRedo(database);
  const forestall = createForestall(database);

  return (run: NewRun, reading: Reading): Added | undefined => {
    const at = now();
    const redone = redo(run, reading, at);
    // What a person has redone says nothing about the runs to come: it is not held against the pattern of the last ones.
    const added = redone ? { ...redone, drift: undefined } : addOrReplace(run, reading);
    if (added === undefined) return undefined;
    rememberFile(run.instrument, run.file, 'taken', added.id);
    forestall(run.instrument, run.file.path, added.id, at);
    return added;
  };
}

function createAddOrReplace(database: Database, now: () => number) {
  const put = createPut(database);
  const shapes = createShapes(database);
  const setReason = database.prepare('UPDATE runs SET reason = ? WHERE id = ?');
  const putDraft = createPutDraft(database);
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  return (run: NewRun, { draft, shaped, problem }: Reading): Added | undefined => {
    const { instrument, file, mapping } = run;
    const judgement = shaped
      ? shapes.judge(instrument, mapping, shaped)
      : { drift: undefined, accepted: undefined };
    const { drift } = judgement;
    const reason = problem ? explain(problem) : null;
    const at = now();
    const id = put(run, problem ? 'file' : drift?.held ? 'drift' : undefined, reason, at);
    if (id === undefined) return undefined;
    history.run(id, at, draft ? 'read' : 'refused', JSON.stringify({ path: file.path, reason }));
    shapes.record(id, judgement, shaped?.shape, at);
    if (drift?.held) setReason.run(whyHeld(id, drift), id);
    if (draft) putDraft(id, draft);
    return { id, drift };
  };
}

const MOST_CHANGES = 5;

function whyHeld(run: number, { changes, since }: Drift): string {
  const shown = changes.slice(0, MOST_CHANGES).join('; ');
  const rest = changes.length > MOST_CHANGES ? `; and ${changes.length - MOST_CHANGES} more changes` : '';
  return explainProblem({
    message: `since ${since === undefined ? 'the last run' : `run ${since}`}, ${shown}${rest}`,
    hint: `if that is right, \`labfeed retry ${run}\` files it and takes it as the pattern for those to come; if the mapping is to be changed, the file is then read anew`,
  });
}

const RESTING = { file: 'quarantined', drift: 'held' } as const;

/** Writes the run itself; undefined where an equal file that arrived together has made it just before. */
function createPut(database: Database) {
  const put = database.prepare(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                       step, resting, failure, reason, added_at, updated_at)
       VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 'pending', ?, ?, ?, ?, ?)
       ON CONFLICT (instrument, sha256, copy, refiling) DO UPDATE SET
         path = excluded.path, size = excluded.size, modified_ms = excluded.modified_ms, mapping = excluded.mapping,
         resting = excluded.resting, failure = excluded.failure, reason = excluded.reason, attempts = 0, due_at = 0,
         updated_at = excluded.updated_at
         WHERE resting = 'quarantined' OR (resting = 'held' AND failure = 'drift')
       RETURNING id`,
  );
  const identify = createIdentify(database);

  return (
    { instrument, file, copy, backlog, mapping }: NewRun,
    failure: keyof typeof RESTING | undefined,
    reason: string | null,
    at: number,
  ): number | undefined => {
    const identity = identify({ instrument, sha256: file.sha256, copy });
    const row: unknown = put.get(
      instrument,
      file.sha256,
      identity.copy,
      identity.refiling,
      referenceOf(identity),
      file.path,
      file.size,
      Number(file.mtimeNs / 1_000_000n),
      backlog ? 1 : 0,
      mapping,
      failure ? RESTING[failure] : null,
      failure ?? null,
      reason,
      at,
      at,
    );
    return (row as { id: number } | undefined)?.id;
  };
}

/** Which filing of its content a file is read for: the last that was asked for. */
function createIdentify(database: Database): (content: Omit<RunIdentity, 'refiling'>) => RunIdentity {
  const last = database.prepare(
    'SELECT ifnull(max(refiling), 0) AS refiling FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ?',
  );
  const copyOf = createCopyOf(database);
  return ({ instrument, sha256, copy: path }) => {
    const copy = copyOf({ instrument, sha256, copy: path });
    const row = last.get(instrument, sha256, copy) as { refiling: number };
    return { instrument, sha256, copy, refiling: row.refiling };
  };
}

/**
 * Writes what a run's file reads as now. What of an earlier reading is in the notebook, or may be, is remembered until
 * the run is finished: by it, delivery tells what a person has changed since. To be called within a commit.
 */
function createPutDraft(database: Database): (run: number, draft: Draft) => void {
  const remember = database.prepare(
    `INSERT INTO earlier_drafts (run, title, date, body, tags, written)
       SELECT run, title, date, body, tags, step IN ('described', 'done') FROM drafts
         JOIN runs ON runs.id = run WHERE run = ? AND step <> 'pending'`,
  );
  const put = database.prepare('INSERT OR REPLACE INTO drafts VALUES (?, ?, ?, ?, ?)');
  // It was described as read before: that is looked at again, and replaced unless a person has changed it.
  const describeAnew = database.prepare(
    "UPDATE runs SET step = 'created' WHERE id = ? AND step IN ('described', 'done')",
  );
  const putComments = createPutComments(database);
  return (run, { title, date, body, tags, comments }) => {
    remember.run(run);
    put.run(run, title, date, body, JSON.stringify(tags));
    describeAnew.run(run);
    putComments(run, comments);
  };
}

const sentRow = z.object({
  n: z.number(),
  text: z.string(),
  comment: z.number().nullable(),
  /** Whether a POST of it can have left. */
  sent: z.number().transform((value) => value === 1),
});

function createPutComments(database: Database): (run: number, texts: readonly string[]) => void {
  const before = database.prepare(
    `SELECT n, text, comment, intent_at IS NOT NULL OR comment IS NOT NULL AS sent FROM comments WHERE run = ?`,
  );
  const remember = database.prepare('INSERT INTO earlier_comments (run, n, text) VALUES (?, ?, ?)');
  const setAside = database.prepare('UPDATE earlier_comments SET comment = ? WHERE run = ? AND n = ?');
  const drop = database.prepare('DELETE FROM comments WHERE run = ? AND n = ?');
  const put = createPutComment(database);

  return (run, texts) => {
    for (const row of before.all(run)) {
      const { n, text, comment, sent } = sentRow.parse(row);
      const isWanted = n <= texts.length;
      if (sent && texts[n - 1] !== text) remember.run(run, n, text);
      if (isWanted) continue;
      setAside.run(comment, run, n);
      drop.run(run, n);
    }
    for (const [index, text] of texts.entries()) put(run, index + 1, text);
  };
}

function createPutComment(database: Database): (run: number, n: number, text: string) => void {
  const change = database.prepare('UPDATE comments SET text = ? WHERE run = ? AND n = ?');
  // One that was of no use meanwhile keeps its id; where that is not known, it is looked for before it is posted.
  const takeBack = database.prepare(
    `INSERT INTO comments (run, n, text, comment, intent_at)
       SELECT run, n, ?1, comment, CASE WHEN comment IS NULL THEN 0 END FROM earlier_comments
         WHERE run = ?2 AND n = ?3 LIMIT 1`,
  );
  const add = database.prepare('INSERT INTO comments (run, n, text) VALUES (?, ?, ?)');
  return (run, n, text) => {
    if (change.run(text, run, n).changes > 0 || takeBack.run(text, run, n).changes > 0) return;
    add.run(run, n, text);
  };
}

/** Has the file of a done run read anew. It stays done until that has come to something else. */
export function createRemap(database: Database): (run: Standing, source: SourceState, at: number) => Answer {
  const mark = database.prepare('INSERT OR REPLACE INTO remaps (run, instrument, path) VALUES (?, ?, ?)');
  // To be looked at again, and still known as taken.
  const unsettle = database.prepare(
    `UPDATE files SET mtime_ns = -1
       WHERE instrument = ?1 AND (path = ?2 OR substr(path, 1, length(?2) + 1) = ?2 || '/')`,
  );
  const note = createNote(database);

  return (run, source, at) => {
    const refusal = whyNot(run, source);
    if (refusal !== undefined) return { done: false, text: `${nameOf(run)} ${refusal}` };
    mark.run(run.id, run.instrument, source.path);
    unsettle.run(run.instrument, source.path);
    note(run.id, at, 'remapAsked', null);
    return {
      done: true,
      text: `${nameOf(run)} is read anew as soon as ${source.path} is seen; what a person has changed in experiment ${run.experiment} stays`,
      rescan: run.instrument,
    };
  };
}

function whyNot(run: Standing, source: SourceState): string | undefined {
  const { id, step, resting, experiment, refiledAs, drafted } = run;
  if (refiledAs !== null) return `${stateOf(run)}: remap that one`;
  if (resting !== null)
    return `${stateOf(run)}: only a run that is done can be redone; retry ${id} lets it go on`;
  if (step !== 'done' || experiment === null) return `${stateOf(run)}: only a run that is done can be redone`;
  if (!drafted)
    return `was recovered from the notebook, or is older than \`keep\`, so that a person's changes cannot be told from what labfeed wrote: to file it once more, refile ${id}`;
  if (source.has === 'nothing')
    return `cannot be read anew, since its file is no longer at ${source.path}: its experiment stays as it is`;
  if (source.has === 'otherBytes')
    return `cannot be read anew, since ${source.path} has other bytes by now: its experiment stays as it is`;
  return undefined;
}

/** Where a run's bytes were seen: first of all where they were read. */
export function createPlaces(database: Database): (run: Standing) => [string, ...string[]] {
  const others = database.prepare('SELECT path FROM files WHERE run = ? AND path <> ? ORDER BY path');
  return ({ id, path }) => [path, ...(others.all(id, path) as { path: string }[]).map((row) => row.path)];
}

type Note = (run: number, at: number, event: string, reason: string | null) => void;

/** Why a done run could not be redone is shown with it, until it is tried again. */
function createNote(database: Database): Note {
  const tell = database.prepare('UPDATE runs SET failure = ?, reason = ?, updated_at = ? WHERE id = ?');
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');
  return (run, at, event, reason) => {
    tell.run(reason === null ? null : 'file', reason, at, run);
    history.run(run, at, event, reason === null ? null : JSON.stringify({ reason }));
  };
}

/** What came of reading a done run's file anew. */
export type Remapped = 'revised' | 'unchanged' | 'refused';

const draftRow = z.object({ title: z.string(), date: z.string(), body: z.string(), tags: z.string() });

/** Where the file is read for a done run: what becomes of that. To be called within a commit. */
function createRedo(
  database: Database,
): (run: NewRun, reading: Reading, at: number) => { id: number; remapped: Remapped } | undefined {
  const asked = createAsked(database);
  const settle = database.prepare('DELETE FROM remaps WHERE run = ?');
  const find = database.prepare('SELECT title, date, body, tags FROM drafts WHERE run = ?');
  const comments = database.prepare('SELECT text FROM comments WHERE run = ? ORDER BY n');
  // Whatever a person once said about its experiment, what is there now is as labfeed left it, or is theirs.
  const take = database.prepare(
    `UPDATE runs SET path = ?, size = ?, modified_ms = ?, mapping = ?, adopted = 0, attempts = 0, due_at = 0 WHERE id = ?`,
  );
  const putDraft = createPutDraft(database);
  const note = createNote(database);

  function isAsBefore(run: number, { title, date, body, tags, comments: texts }: Draft): boolean {
    const before = draftRow.parse(find.get(run));
    const posted = (comments.all(run) as { text: string }[]).map(({ text }) => text);
    const isSame = before.title === title && before.date === date && before.body === body;
    return isSame && before.tags === JSON.stringify(tags) && JSON.stringify(posted) === JSON.stringify(texts);
  }

  return ({ instrument, file, copy, mapping }, { draft, problem }, at) => {
    const id = asked(instrument, file, copy);
    if (id === undefined) return undefined;
    settle.run(id);
    if (draft === undefined) {
      note(id, at, 'remapRefused', `${NOT_REDONE}: ${explain(problem)}`);
      return { id, remapped: 'refused' };
    }
    take.run(file.path, file.size, Number(file.mtimeNs / 1_000_000n), mapping, id);
    const isSame = isAsBefore(id, draft);
    if (!isSame) putDraft(id, draft);
    note(id, at, isSame ? 'remapUnchanged' : 'remapped', null);
    return { id, remapped: isSame ? 'unchanged' : 'revised' };
  };
}

/** The done run that this very file is to be read for. */
export function createAsked(
  database: Database,
): (instrument: string, file: NewRun['file'], copy: string) => number | undefined {
  const asked = database.prepare(
    `SELECT id FROM remaps JOIN runs ON runs.id = run
       WHERE remaps.instrument = ? AND remaps.path = ? AND sha256 = ? AND copy = ? AND step = 'done' AND resting IS NULL`,
  );
  const copyOf = createCopyOf(database);
  return (instrument, { path, sha256 }, copy) =>
    (asked.get(instrument, path, sha256, copyOf({ instrument, sha256, copy })) as { id: number } | undefined)
      ?.id;
}

/** Whether this file is still to be read for the run, once that is done with what it is at. */
export function createAwaited(database: Database): (run: number, path: string) => boolean {
  const awaited = database.prepare('SELECT 1 FROM remaps WHERE run = ? AND path = ?');
  return (run, path) => awaited.get(run, path) !== undefined;
}

/** A file that was to be read anew has come to be another run's, or is no longer whole: that is told. To be called within a commit. */
export function createForestall(
  database: Database,
): (instrument: string, path: string, run: number, at: number, why?: string) => void {
  const stale = database.prepare(
    'DELETE FROM remaps WHERE instrument = ? AND path = ? AND run <> ? RETURNING run',
  );
  const note = createNote(database);
  return (instrument, path, run, at, why = `${path} is that of run ${run} by now`) => {
    for (const { run: asked } of stale.all(instrument, path, run) as { run: number }[])
      note(asked, at, 'remapRefused', `${NOT_REDONE}: ${why}`);
  };
}

const NOT_REDONE = 'it could not be read anew, and stays as it was filed';
