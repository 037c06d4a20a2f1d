import type { Database } from './database.js';
import type { Answer, Request } from './requests.js';
import { nameOf, type Standing, stateOf } from './standing.js';

type Repair = Extract<Request, { kind: 'repair' }>;

/** Has comments posted again that are gone, and lets a run on its way go on at once. To be called within a commit. */
export function createRepair(database: Database): (run: Standing, repair: Repair, at: number) => Answer {
  // Only under the id that was missed: asked twice, or posted again since, it is not posted twice. Its first POST was
  // answered long ago, so that nothing of it is under way: hence no intent, which would be waited for.
  const forget = database.prepare(
    'UPDATE comments SET comment = NULL, intent_at = NULL, gone = ?1 WHERE run = ?2 AND n = ?3 AND comment = ?1',
  );
  const reopen = database.prepare(
    "UPDATE runs SET step = 'described', attempts = 0, due_at = 0, updated_at = ? WHERE id = ?",
  );
  const wake = database.prepare('UPDATE runs SET due_at = 0, updated_at = ? WHERE id = ? AND due_at > ?');
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'repaired', ?)",
  );

  return (run, { comments }, at) => {
    if (run.resting !== null)
      return { done: false, text: `${nameOf(run)} ${stateOf(run)}: that is for a person to decide` };
    if (run.step !== 'done') {
      const isWoken = wake.run(at, run.id, at).changes > 0;
      return { done: true, text: `${nameOf(run)} ${isWoken ? 'goes on now' : 'is on its way already'}` };
    }
    if (!run.drafted) {
      const text = `what the comments of ${nameOf(run)} said is not in the journal: to file it once more, refile ${run.id}`;
      return { done: false, text };
    }
    const gone = comments.filter(({ n, comment }) => forget.run(comment, run.id, n).changes > 0);
    if (gone.length === 0) return { done: true, text: `${nameOf(run)} was repaired already` };
    reopen.run(at, run.id);
    history.run(run.id, at, JSON.stringify({ comments: gone }));
    const which = `comment${gone.length === 1 ? '' : 's'} ${gone.map(({ n }) => n).join(', ')}`;
    return {
      done: true,
      text: `${nameOf(run)}: ${which} of experiment ${run.experiment} will be posted again`,
    };
  };
}
