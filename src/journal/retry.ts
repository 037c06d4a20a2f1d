import type { Database } from './database.js';
import type { Answer } from './requests.js';
import { isGone, nameOf, type Standing, stateOf } from './standing.js';

type Retry = (run: Standing, at: number) => Answer;

/** Lets a run that rests go on where it stood. To be called within a commit. */
export function createRetry(database: Database, readAnew: Retry): Retry {
  const wake = database.prepare(
    `UPDATE runs SET resting = NULL, failure = NULL, reason = NULL, attempts = 0, due_at = 0, updated_at = ?
       WHERE id = ?`,
  );
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'retried')");

  return (run, at) => {
    if (run.refiledAs !== null || (run.resting !== 'quarantined' && run.resting !== 'held')) {
      const hint =
        run.step === 'done' && run.refiledAs === null ? `: to file it once more, refile ${run.id}` : '';
      return { done: false, text: `${nameOf(run)} ${stateOf(run)}${hint}` };
    }
    if (isGone(run)) {
      const text = `${nameOf(run)} is held, and its experiment is gone: to file it once more, refile ${run.id}`;
      return { done: false, text };
    }
    if (!run.drafted) return readAnew(run, at);
    wake.run(at, run.id);
    history.run(run.id, at);
    return { done: true, text: `${nameOf(run)} ${goesOn(run)}` };
  };
}

function goesOn({ step, experiment }: Standing): string {
  if (experiment !== null) return `goes on where it stood; it keeps experiment ${experiment}`;
  return step === 'creating'
    ? 'goes on: the experiment whose creation had no answer is looked for again'
    : 'goes on from the beginning; nothing of it is in the notebook yet';
}

/** Has the file read again, under whatever mapping: what comes of it replaces the failure. */
export function createReadAnew(database: Database): Retry {
  const forgetMapping = database.prepare("UPDATE runs SET mapping = '', updated_at = ? WHERE id = ?");
  const forgetFiles = database.prepare('DELETE FROM files WHERE run = ?');
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'retried')");

  return (run, at) => {
    forgetMapping.run(at, run.id);
    forgetFiles.run(run.id);
    history.run(run.id, at);
    return {
      done: true,
      text: `${nameOf(run)} is read anew as soon as ${run.path} is seen`,
      rescan: run.instrument,
    };
  };
}
