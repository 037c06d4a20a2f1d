import type { Database } from './database.js';
import { hiddenCopy, hiddenPath } from './hidden.js';
import type { Answer } from './requests.js';
import { isErased, nameOf, type Standing, stateOf } from './standing.js';

/**
 * Removes all of a run but what it is known by: its hash, its reference and the numbers that the notebook gave it.
 * The same bytes are not filed again. No answer names the file: answers are kept for a while. To be called within a
 * commit.
 */
export function createErase(database: Database): (run: Standing, hasSource: boolean, at: number) => Answer {
  const remove = createRemove(database);
  const history = database.prepare("INSERT INTO history (run, at, event) VALUES (?, ?, 'erased')");

  return (run, hasSource, at) => {
    if (isErased(run)) return { done: true, text: `run ${run.id} is erased already` };
    if (run.resting === 'held') {
      const text = `${nameOf(run)} is held, and waits for a decision: retry, adopt, refile or ignore ${run.id} first`;
      return { done: false, text };
    }
    if (run.step !== 'done' && run.resting === null) {
      const text = `${nameOf(run)} ${stateOf(run)}; only a run that is done, quarantined or ignored can be erased`;
      return { done: false, text };
    }
    remove(run);
    history.run(run.id, at);
    return { done: true, text: [`run ${run.id} is erased`, ...leftovers(run, hasSource)].join('; ') };
  };
}

function leftovers({ instrument, experiment, refiledAs }: Standing, hasSource: boolean): string[] {
  return [
    ...(experiment === null ? [] : [`its experiment ${experiment} stays in the notebook`]),
    ...(hasSource
      ? [
          `its file still lies in the folder of ${instrument}: as long as its bytes stay as they are, it is not filed again`,
        ]
      : []),
    ...(refiledAs === null ? [] : [`run ${refiledAs}, as which it was filed anew, still has its name`]),
  ];
}

function createRemove(database: Database): (run: Standing) => void {
  // A quarantined run must not be read anew one day: from now on it is passed over.
  const blank = database.prepare(
    `UPDATE runs SET path = '', size = 0, modified_ms = 0, failure = NULL, reason = NULL,
                     resting = CASE WHEN resting IS NULL THEN NULL ELSE 'ignored' END WHERE id = ?`,
  );
  const hideCopies = database.prepare(
    'UPDATE runs SET copy = ? WHERE instrument = ? AND sha256 = ? AND copy = ?',
  );
  const paths = database.prepare('SELECT instrument, path FROM files WHERE run = ?');
  const hideFile = database.prepare('UPDATE OR REPLACE files SET path = ? WHERE instrument = ? AND path = ?');
  const drop = [
    'DELETE FROM drafts WHERE run = ?',
    'DELETE FROM earlier_drafts WHERE run = ?',
    'DELETE FROM earlier_comments WHERE run = ?',
    'DELETE FROM remaps WHERE run = ?',
    'DELETE FROM drifts WHERE run = ?',
    'DELETE FROM history WHERE run = ?',
    'DELETE FROM comments WHERE run = ? AND comment IS NULL',
    "UPDATE comments SET text = '' WHERE run = ?",
  ].map((sql) => database.prepare(sql));

  return (run) => {
    for (const statement of drop) statement.run(run.id);
    for (const { instrument, path } of paths.all(run.id) as { instrument: string; path: string }[])
      hideFile.run(hiddenPath(instrument, path), instrument, path);
    if (run.copy !== '') hideCopies.run(hiddenCopy(run), run.instrument, run.sha256, run.copy);
    blank.run(run.id);
  };
}

/** Takes the names of runs that were erased out of the answers to earlier requests. To be called within a commit. */
export function createForgetAnswers(database: Database): (runs: readonly number[]) => void {
  const forget = database.prepare(
    `UPDATE inbox SET answer = json_set(answer, '$.text', 'the run was erased since')
       WHERE answer IS NOT NULL AND json_valid(request) AND request NOT GLOB '{"kind":"erase"*'
         AND CASE WHEN json_valid(request) THEN json_extract(request, '$.run') END IN (SELECT value FROM json_each(?))`,
  );
  return (runs) => {
    if (runs.length > 0) forget.run(JSON.stringify(runs));
  };
}
