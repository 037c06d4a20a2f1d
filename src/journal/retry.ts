import type { Database } from './database.js';
import type { Answer } from './requests.js';
import { isGone, nameOf, type Standing, stateOf } from './standing.js';

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
    if (run.refiledAs !== null || (run.resting !== 'quarantined' && run.resting !== 'held')) {
      const hint =
        run.step === 'done' && run.refiledAs === null
          ? `: to redo it with today's mapping, retry ${run.id} --remap; to file it once more, refile ${run.id}`
          : '';
      return { done: false, text: `${nameOf(run)} ${stateOf(run)}${hint}` };
    }
    if (isGone(run)) {
      const text = `${nameOf(run)} is held, and its experiment is gone: to file it once more, refile ${run.id}`;
      return { done: false, text };
    }
    const isToBeRead = run.resting === 'quarantined' && (hasSource || !run.drafted);
    if (isToBeRead) return readAnew(run, at);
    wake.run(at, run.id);
    history.run(run.id, at);
    const text = `${nameOf(run)} ${goesOn(run)}`;
    return { done: true, text: run.resting === 'quarantined' ? `${text}; ${asReadBefore(run)}` : text };
  };
}

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
  const forgetMapping = database.prepare("UPDATE runs SET mapping = '', updated_at = ? WHERE id = ?");
  const forgetFiles = database.prepare('DELETE FROM files WHERE run = ?');
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'retried')");

  return (run, at) => {
    forgetMapping.run(at, run.id);
    forgetFiles.run(run.id);
    history.run(run.id, at);
    const keeps = run.experiment === null ? '' : `; it keeps experiment ${run.experiment}`;
    return {
      done: true,
      text: `${nameOf(run)} is read anew as soon as ${run.path} is seen${keeps}`,
      rescan: run.instrument,
    };
  };
}
