import type { Database } from './database.js';
import type { Answer, Request } from './requests.js';
import { nameOf, type Standing, stateOf } from './standing.js';

type Adoption = Extract<Request, { kind: 'adopt' }>;

/** Gives a held run the experiment that a person says is its own. To be called within a commit. */
export function createAdopt(database: Database): (run: Standing, adoption: Adoption, at: number) => Answer {
  const owner = database.prepare('SELECT id FROM runs WHERE server = ? AND experiment = ? AND id <> ?');
  // The highest id of the server stays as it is: a number that a person mistyped must not become a floor.
  const give = database.prepare(
    `UPDATE runs SET server = ?, experiment = ?, adopted = 1, step = 'created', resting = NULL, failure = NULL,
                     reason = NULL, attempts = 0, due_at = 0, updated_at = ? WHERE id = ?`,
  );
  // Comments may be in it already: each is looked for by its mark before it is posted.
  const lookFirst = database.prepare('UPDATE comments SET comment = NULL, intent_at = 0 WHERE run = ?');
  const dropSpare = database.prepare('DELETE FROM spares WHERE server = ? AND experiment = ?');
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'adopted', ?)",
  );

  return (run, { server, experiment }, at) => {
    if (run.resting !== 'held') {
      const text = `${nameOf(run)} ${stateOf(run)}; only a run that is held can be given an experiment`;
      return { done: false, text };
    }
    if (!run.drafted) {
      const text = `${nameOf(run)} was recovered from the notebook, and its file was not read since: refile ${run.id}`;
      return { done: false, text };
    }
    const other = owner.get(server, experiment, run.id) as { id: number } | undefined;
    if (other) {
      return {
        done: false,
        text: `experiment ${experiment} is that of run ${other.id}: ${nameOf(run)} cannot have it`,
      };
    }
    give.run(server, experiment, at, run.id);
    lookFirst.run(run.id);
    dropSpare.run(server, experiment);
    history.run(run.id, at, JSON.stringify({ server, experiment, before: run.experiment }));
    return {
      done: true,
      text: `${nameOf(run)} has experiment ${experiment} now; it is filled in, whatever it holds`,
    };
  };
}
