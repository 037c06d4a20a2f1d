import { basename } from 'node:path';
import { explain, explainProblem } from '../errors.js';
import { referenceOf } from '../markers.js';
import type { Added, ContentKey, NewRun, Reading } from '../outbox.js';
import { replaceAttachments, toFile } from './attachments.js';
import { addHistory, type Connection } from './database.js';
import { putDraft, replaceDraft, storeDraft } from './drafts.js';
import { type Comparison, compareShape, heldReason, recordShape } from './drift.js';
import { hasHidden, hasLeft, replaceSources } from './sources.js';
import type { Store } from './store.js';

/**
 * Under `changed: revise`, a run is identified by the path of its file: other bytes at that path are its next version,
 * and its experiment is updated. The run keeps its number, its experiment and its reference, which is part of marker
 * lines in the notebook and was derived from the first version.
 */
export interface PathRun extends ContentKey {
  readonly id: number;
  readonly refiling: number;
  readonly path: string;
  readonly step: string;
  readonly parked: string | null;
  readonly failure: string | null;
  readonly reason: string | null;
  readonly mapping: string;
  readonly matched: number;
  readonly experiment: number | null;
}

/**
 * A run of several paths, or a file that was renamed, has one path at a time. Undefined if the file is not a version; nor is
 * it one if labfeed has moved or deleted a file of the run: what the notebook has of that must stay.
 */
export function runAt(db: Connection, { instrument, file, revises }: NewRun): PathRun | undefined {
  const found = revises && findAt(db, instrument, file, revises.last);
  return found && !hasLeft(db, found.id) ? found : undefined;
}

function findAt(
  db: Connection,
  instrument: string,
  file: NewRun['file'],
  last: ContentKey | undefined,
): PathRun | undefined {
  const { path } = file;
  const known = db.row<PathRun>`
    SELECT id, sha256, copy, refiling, runs.path AS path, step, parked, failure, reason, mapping, matched, experiment
      FROM paths JOIN runs ON runs.id = run WHERE paths.instrument = ${instrument} AND paths.path = ${path}`;
  // Another run may have been taken from there meanwhile, under another `changed`.
  if (known && (!last || known.sha256 === last.sha256 || isVersionOf(db, known.id, last.sha256))) return known;
  if (!last) return known ?? recoveredFrom(db, instrument, file);
  // Taken before the configuration had `revise`. Of a recovered run, only the name of the file is known.
  const before = db.row<PathRun>`
    SELECT id, sha256, copy, refiling, path, step, parked, failure, reason, mapping, matched, experiment FROM runs
      WHERE instrument = ${instrument} AND sha256 = ${last.sha256} AND copy = ${last.copy}
      AND path IN (${path}, ${basename(path)}) ORDER BY refiling DESC LIMIT 1`;
  return before ?? known;
}

/** The journal was lost: the first version of a file has returned of which a later one was recovered. */
const recoveredFrom = (db: Connection, instrument: string, { sha256, path }: NewRun['file']): PathRun | undefined =>
  db.row<PathRun>`
    SELECT id, sha256, copy, refiling, path, step, parked, failure, reason, mapping, matched, experiment FROM runs
      WHERE reference = ${referenceOf({ instrument, sha256, copy: '', refiling: 0 })} AND sha256 <> ${sha256}
      AND mapping = '' AND matched = 0 AND path = ${basename(path)}`;

const isVersionOf = (db: Connection, run: number, sha256: string): boolean =>
  db.exists`SELECT 1 FROM versions WHERE run = ${run} AND sha256 = ${sha256}`;

/** Whether this content was a version of a filed run of the instrument. */
export const hasVersion = (db: Connection, instrument: string, sha256: string): boolean =>
  db.exists`
    SELECT 1 FROM versions JOIN runs ON runs.id = run WHERE versions.sha256 = ${sha256} AND instrument = ${instrument}
      AND experiment IS NOT NULL AND unread IS NULL`;

/** Its delivery has begun with the version before, or must find out what a creation did, or its file is being moved. */
export const isBusy = ({ claimed, db }: Store, { id, step, parked }: PathRun): boolean =>
  claimed.has(id) || (step === 'creating' && parked !== 'ignored') || hasHidden(db, id);

/** From now on, other bytes at this path are versions of this run; those at its earlier paths are not, unless `isOnly` is false. */
export function claimPath(db: Connection, instrument: string, path: string, run: number, isOnly = true): void {
  if (isOnly) db.run`DELETE FROM paths WHERE run = ${run}`;
  db.run`INSERT OR REPLACE INTO paths (instrument, path, run) VALUES (${instrument}, ${path}, ${run})`;
}

/** The run is filed in full with its current version. */
export function noteFiled(db: Connection, run: number, at: number): void {
  db.run`
    UPDATE versions SET filed_at = ${at} WHERE run = ${run} AND filed_at IS NULL
      AND n = (SELECT max(n) FROM versions WHERE run = ${run} AND unread IS NULL)`;
}

/** Adds the content to the versions of the run, unless it is the last. `unread`: the quarantined run that has it instead. */
export function addVersion(db: Connection, { id }: PathRun, { file }: NewRun, at: number, unread?: number): void {
  db.run`
    INSERT INTO versions (run, n, sha256, size, modified_ms, at, filed_at)
      SELECT id, 1, sha256, size, modified_ms, added_at, iif(step = 'done', updated_at, NULL) FROM runs
      WHERE id = ${id} AND NOT EXISTS (SELECT 1 FROM versions WHERE run = ${id})`;
  db.run`
    INSERT INTO versions (run, n, sha256, size, modified_ms, at, unread)
      SELECT ${id}, max(n) + 1, ${file.sha256}, ${file.size}, ${Number(file.mtimeNs / 1_000_000n)}, ${at},
      ${unread ?? null} FROM versions WHERE run = ${id}
      HAVING ${unread ?? null} IS NOT (SELECT unread FROM versions WHERE run = ${id} ORDER BY n DESC LIMIT 1)
      OR ${file.sha256} <> (SELECT sha256 FROM versions WHERE run = ${id} ORDER BY n DESC LIMIT 1)`;
}

/** What a version changes about a run that waits for a person, or makes it wait for one. */
interface Parking {
  readonly parked: string | null;
  readonly failure: string | null;
  readonly reason: string | null;
}

const OPEN: Parking = { parked: null, failure: null, reason: null };

/**
 * The run takes the new version, which replaces what it had to send. Earlier versions that the notebook has, or may
 * have, are kept until it is finished: delivery updates the experiment only if a person has not changed it.
 */
export function takeVersion(db: Connection, known: PathRun, run: NewRun, reading: Reading, at: number): Added {
  const { id } = known;
  const { instrument, file, mapping } = run;
  const { draft, omits, shaped, problem } = reading;
  const judgement = shaped ? compareShape(db, instrument, mapping, shaped) : {};
  const hasDraft = db.exists`SELECT 1 FROM drafts WHERE run = ${id}`;
  const parking = problem
    ? { parked: 'quarantined', failure: 'file', reason: explain(problem) }
    : parkingOf(known, hasDraft, judgement);
  addVersion(db, known, run, at);
  // Equal bytes at other paths stay runs of their own.
  const refiling = freeRefiling(db, known, run);
  const { parked, failure, reason } = parking;
  replaceAttachments(db, id, run.attachments, hasDraft ? undefined : known.sha256);
  replaceSources(db, id, run.sources ?? []);
  const filed = draft && toFile(db, id, run, draft, omits, true);
  db.run`
    UPDATE runs SET sha256 = ${file.sha256}, copy = ${file.path}, refiling = ${refiling}, path = ${file.path}, size =
      ${file.size}, modified_ms = ${Number(file.mtimeNs / 1_000_000n)}, mapping = ${mapping}, matched = 1,
      adopted = iif(step = 'done', 0, adopted), attempts = 0, due_at = 0, parked = ${parked}, failure = ${failure},
      reason = ${reason}, updated_at = ${at} WHERE id = ${id}`;
  if (filed && isReleased(known)) storeDraft(db, id, filed);
  else if (filed && (hasDraft || known.experiment !== null)) replaceDraft(db, id, filed);
  else if (filed) putDraft(db, id, filed);
  db.run`DELETE FROM remaps WHERE run = ${id}`;
  claimPath(db, instrument, file.path, id);
  const detail = { path: file.path, sha256: file.sha256, noPlot: run.plot?.reason };
  if (problem) addHistory(db, id, at, 'refused', { path: file.path, reason });
  else addHistory(db, id, at, 'versionRead', detail);
  recordShape(db, id, judgement, shaped?.shape, at);
  const { drift } = judgement;
  if (drift?.held && failure === 'drift') db.run`UPDATE runs SET reason = ${heldReason(id, drift)} WHERE id = ${id}`;
  return { run: id, outcome: outcomeOf(parking), drift, sha256: file.sha256, copy: file.path, isErased: false };
}

function outcomeOf({ parked, failure }: Parking): Added['outcome'] {
  if (parked === 'quarantined') return 'quarantined';
  if (parked === 'held' && failure === 'drift') return 'held';
  return parked === null ? 'changed' : 'parked';
}

/** The server was restored to a state without its experiment. */
const isReleased = ({ step, experiment }: PathRun): boolean => step === 'done' && experiment === null;

function parkingOf(known: PathRun, hasDraft: boolean, { drift }: Comparison): Parking {
  const { parked, failure, reason, experiment } = known;
  const isInNotebook = experiment !== null || known.step === 'creating';
  const unchanged = { parked, failure, reason };
  // A person said that the experiment is to stay as it is. If there is none, that was about other content.
  if (isReleased(known) || (parked === 'ignored' && isInNotebook)) return unchanged;
  if (drift?.held) return { parked: 'held', failure: 'drift', reason: null };
  if (parked === 'held' && failure !== 'drift') return unchanged;
  if (experiment !== null && !hasDraft)
    return { parked: 'held', failure: 'conflict', reason: unknownContent(known.id, experiment) };
  return OPEN;
}

const unknownContent = (run: number, experiment: number): string =>
  explainProblem({
    message: `its file has changed, but the journal no longer has what was written to experiment ${experiment}, so labfeed cannot tell what people changed there`,
    hint: `to overwrite it: labfeed adopt ${run} ${experiment}. To leave it as it is and file the new version: labfeed refile ${run}`,
  });

function freeRefiling(db: Connection, { id, refiling }: PathRun, { instrument, file }: NewRun): number {
  const taken = db.values<number>`
    SELECT refiling FROM runs WHERE instrument = ${instrument} AND sha256 = ${file.sha256} AND copy = ${file.path}
      AND id <> ${id}`;
  return taken.includes(refiling) ? Math.max(...taken) + 1 : refiling;
}
