import { explain, explainProblem, type FileError } from '../errors.js';
import { type RunIdentity, referenceOf } from '../markers.js';
import type { Draft, IdentifiedFile } from '../model.js';
import type { Database } from './database.js';
import type { RememberFile } from './files.js';
import { createCopyOf } from './hidden.js';
import { createPutDraft } from './put-draft.js';
import { createForestall, createRedo, type Remapped } from './remap.js';
import { createShapes, type Drift, type Shaped } from './shapes.js';

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
export type Reading =
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
