import type { Database } from './database.js';
import type { Answer } from './requests.js';
import { nameOf, type Standing, stateOf } from './standing.js';

/** Sets a run aside that waits for a person, who does not want it filed. To be called within a commit. */
export function createIgnore(database: Database): (run: Standing, at: number) => Answer {
  // Failure and reason stay: they say why it was not filed, and how it goes on should somebody retry it.
  const setAside = database.prepare("UPDATE runs SET resting = 'ignored', updated_at = ? WHERE id = ?");
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'ignored', ?)",
  );

  return (run, at) => {
    if (run.resting !== 'quarantined' && run.resting !== 'held') {
      const text = `${nameOf(run)} ${stateOf(run)}; only a run that is quarantined or held can be ignored`;
      return { done: false, text };
    }
    setAside.run(at, run.id);
    history.run(run.id, at, JSON.stringify({ was: run.resting }));
    const back = run.step === 'done' ? 'refile' : 'retry';
    return { done: true, text: `${nameOf(run)} is ignored from now on; ${back} ${run.id} takes it up again` };
  };
}
