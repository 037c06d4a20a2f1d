import type { RunChange } from '../model.js';
import type { Database } from './database.js';

export type ApplyChange = (run: number, change: RunChange, at: number) => void;

/** Applies one change to a run and writes it into the run's history. To be called within a commit. */
export function createApplyChange(database: Database): ApplyChange {
  const set = (assignments: string) =>
    database.prepare(`UPDATE runs SET ${assignments}, updated_at = ? WHERE id = ?`);
  const intended = set("step = 'creating', server = ?, floor = ?, unseen = ?, intent_at = ?");
  // An earlier creation that was lost unseen is still that, whatever became of the later one.
  const notCreated = set(
    `step = CASE WHEN unseen > 0 THEN 'creating' ELSE 'pending' END, unseen = max(0, unseen - 1),
     floor = NULL, intent_at = CASE WHEN unseen > 0 THEN intent_at END`,
  );
  const created = set("step = 'created', experiment = ?, attempts = 0");
  const described = set("step = 'described', attempts = 0");
  const commentIntended = database.prepare('UPDATE comments SET intent_at = ? WHERE run = ? AND n = ?');
  const commented = database.prepare('UPDATE comments SET comment = ? WHERE run = ? AND n = ?');
  const forgetComments = database.prepare('DELETE FROM earlier_comments WHERE run = ? AND n = ?');
  const finished = set("step = 'done', failure = NULL, reason = NULL");
  const forgetEarlier = database.prepare('DELETE FROM earlier_drafts WHERE run = ?');
  const postponed = set('attempts = attempts + 1, due_at = ?, failure = ?, reason = ?');
  const rested = set('resting = ?, failure = ?, reason = ?');
  const seen = database.prepare(
    `INSERT INTO servers (url, highest) SELECT server, ? FROM runs WHERE id = ?
       ON CONFLICT (url) DO UPDATE SET highest = max(ifnull(highest, 0), excluded.highest)`,
  );
  const sweep = database.prepare(
    'UPDATE servers SET sweep = max(ifnull(sweep, 0), ?) WHERE url = (SELECT server FROM runs WHERE id = ?)',
  );
  const history = database.prepare('INSERT INTO history (run, at, event, detail) VALUES (?, ?, ?, ?)');

  function update(run: number, change: RunChange, at: number): void {
    switch (change.kind) {
      case 'intended':
        return void intended.run(change.server, change.floor ?? null, change.unseen ?? 0, change.at, at, run);
      case 'notCreated':
        return void notCreated.run(at, run);
      case 'created':
        created.run(change.experiment, at, run);
        seen.run(change.experiment, run);
        if (change.sweepBelow !== undefined) sweep.run(change.sweepBelow, run);
        return;
      case 'described':
        return void described.run(at, run);
      case 'commentIntended':
        return void commentIntended.run(change.at, run, change.n);
      case 'notCommented':
        return void commentIntended.run(null, run, change.n);
      case 'commented':
        return void commented.run(change.comment, run, change.n);
      case 'commentRevised':
      case 'commentDropped':
        return void forgetComments.run(run, change.n);
      case 'finished':
        finished.run(at, run);
        return void forgetEarlier.run(run);
      case 'postponed':
        return void postponed.run(change.dueAt, change.failure, change.reason, at, run);
      case 'rested':
        return void rested.run(change.as, change.failure, change.reason, at, run);
    }
  }

  return (run, change, at) => {
    update(run, change, at);
    const { kind, ...detail } = change;
    history.run(run, at, kind, JSON.stringify(detail));
  };
}
