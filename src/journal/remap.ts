import { z } from 'zod';
import { explain } from '../errors.js';
import type { Draft } from '../model.js';
import type { Database } from './database.js';
import { createCopyOf } from './hidden.js';
import type { NewRun, Reading } from './insert.js';
import { createPutDraft } from './put-draft.js';
import type { Answer } from './requests.js';
import type { SourceState } from './source.js';
import { nameOf, type Standing, stateOf } from './standing.js';

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
export function createRedo(
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
