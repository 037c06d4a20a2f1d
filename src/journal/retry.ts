import type { Database } from './database.js';
import type { Answer } from './requests.js';
import { isErased, isGone, nameOf, type Standing, stateOf } from './standing.js';

type ReadAnew = (run: Standing, at: number) => Answer;

/** Lets a run that rests go on: one that is quarantined as it is read now, one that is held where it stood. */
export function createRetry(
  database: Database,
  readAnew: ReadAnew,
): (run: Standing, hasSource: boolean, at: number) => Answer {
  const wake = database.prepare(
    `UPDATE runs SET resting = NULL, failure = NULL, reason = NULL, attempts = 0, due_at = 0, updated_at = ?
       WHERE id = ?`,
  );
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'retried')");

  return (run, hasSource, at) => {
    const refused = whyNot(run);
    if (refused !== undefined) return { done: false, text: `${nameOf(run)} ${refused}` };
    const isQuarantined = isAboutFile(run);
    const isToBeRead = !run.drafted || (isQuarantined && hasSource);
    if (isToBeRead) return readAnew(run, at);
    wake.run(at, run.id);
    history.run(run.id, at);
    const text = `${nameOf(run)} ${goesOn(run)}`;
    return { done: true, text: isQuarantined ? `${text}; ${asReadBefore(run)}` : text };
  };
}

/** Undefined where it can go on. */
function whyNot(run: Standing): string | undefined {
  if (run.refiledAs !== null) return stateOf(run);
  const again = `: to file it once more, refile ${run.id}`;
  if (isErased(run)) return `${stateOf(run)}${again}`;
  const redo = `: to redo it with today's mapping, retry ${run.id} --remap; to file it once more, refile ${run.id}`;
  if (run.resting === null) return `${stateOf(run)}${run.step === 'done' ? redo : ''}`;
  return isGone(run) ? `${stateOf(run)}, and its experiment is gone${again}` : undefined;
}

/** Whether it is quarantined, or was before a person set it aside. */
const isAboutFile = ({ resting, failure }: Standing): boolean =>
  resting === 'quarantined' || (resting === 'ignored' && failure !== 'conflict' && failure !== 'drift');

function goesOn({ step, experiment }: Standing): string {
  if (experiment !== null) return `goes on where it stood; it keeps experiment ${experiment}`;
  return step === 'creating'
    ? 'goes on: the experiment whose creation had no answer is looked for again'
    : 'goes on from the beginning; nothing of it is in the notebook yet';
}

const asReadBefore = ({ path }: Standing): string =>
  `its file is no longer at ${path}, so that it is sent as it was read before`;

/** Has the file read again, under whatever mapping: what comes of it replaces what was read, or the failure to. */
export function createReadAnew(database: Database): ReadAnew {
  // Until it is read it is quarantined, be it that a person had set it aside: nothing else is ever read anew.
  const forgetMapping = database.prepare(
    "UPDATE runs SET mapping = '', resting = 'quarantined', updated_at = ? WHERE id = ?",
  );
  const forgetFiles = database.prepare('UPDATE files SET mtime_ns = -1 WHERE run = ?');
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'retried')");

  return (run, at) => {
    forgetMapping.run(at, run.id);
    forgetFiles.run(run.id);
    history.run(run.id, at);
    const keeps = run.experiment === null ? '' : `; it keeps experiment ${run.experiment}`;
    return {
      done: true,
      text: `${nameOf(run)} is read anew as soon as ${run.path || 'its file'} is seen${keeps}`,
      rescan: run.instrument,
    };
  };
}
