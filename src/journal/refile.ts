import { referenceOf } from '../markers.js';
import type { Database } from './database.js';
import type { Answer } from './requests.js';
import { nameOf, type Standing, stateOf } from './standing.js';

/** Files a run once more, under a reference of its own. To be called within a commit. */
export function createRefile(
  database: Database,
  readAnew: (run: Standing, at: number) => Answer,
): (run: Standing, at: number) => Answer {
  const again = createAgain(database);
  // What rests is replaced: it must not wake one day and be filed beside its successor.
  const setAside = database.prepare(
    "UPDATE runs SET resting = 'ignored', reason = ?, updated_at = ? WHERE id = ? AND resting IS NOT NULL",
  );
  const moveFiles = database.prepare('UPDATE files SET run = ? WHERE run = ?');
  const forgetFiles = database.prepare('DELETE FROM files WHERE run = ?');
  const dropRemap = database.prepare('DELETE FROM remaps WHERE run = ?');
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'refiled', ?)",
  );

  return (run, at) => {
    if (run.refiledAs !== null)
      return { done: false, text: `${nameOf(run)} ${stateOf(run)}: refile that one` };
    if (run.step !== 'done' && run.resting === null) {
      return {
        done: false,
        text: `${nameOf(run)} ${stateOf(run)}; only a run that is done or rests can be filed anew`,
      };
    }
    // Never read, so never filed: there is nothing to tell a second filing from.
    if (!run.drafted && run.step === 'pending') return readAnew(run, at);
    dropRemap.run(run.id);
    const anew = again(run, at);
    setAside.run(`filed anew as run ${anew}`, at, run.id);
    history.run(run.id, at, JSON.stringify({ as: anew }));
    history.run(anew, at, JSON.stringify({ of: run.id }));
    if (run.drafted) {
      moveFiles.run(anew, run.id);
      return { done: true, text: `${nameOf(run)} is filed anew as run ${anew}` };
    }
    forgetFiles.run(run.id);
    const text = `${nameOf(run)} is filed anew as run ${anew}, as soon as the file is seen and read`;
    return { done: true, text, rescan: run.instrument };
  };
}

/** The same run once more, with its draft, where it has one; otherwise as one whose file is still to be read. */
function createAgain(database: Database): (run: Standing, at: number) => number {
  const put = database.prepare(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping,
                       step, resting, failure, reason, added_at, updated_at)
       SELECT instrument, sha256, copy, ?1, ?2, path, size, modified_ms, 0, CASE WHEN ?3 THEN mapping ELSE '' END,
              'pending', CASE WHEN ?3 THEN NULL ELSE 'quarantined' END, CASE WHEN ?3 THEN NULL ELSE 'file' END,
              CASE WHEN ?3 THEN NULL ELSE 'it is to be filed anew, and its file was not seen since' END, ?4, ?4
         FROM runs WHERE id = ?5 RETURNING id`,
  );
  const putDraft = database.prepare(
    'INSERT INTO drafts SELECT ?, title, date, body, tags FROM drafts WHERE run = ?',
  );
  const putComments = database.prepare(
    'INSERT INTO comments (run, n, text) SELECT ?, n, text FROM comments WHERE run = ?',
  );

  return ({ id, instrument, sha256, copy, refiling, drafted }, at) => {
    const next = refiling + 1;
    const reference = referenceOf({ instrument, sha256, copy, refiling: next });
    const row: unknown = put.get(next, reference, Number(drafted), at, id);
    const anew = (row as { id: number }).id;
    if (drafted) {
      putDraft.run(anew, id);
      putComments.run(anew, id);
    }
    return anew;
  };
}
