import { referenceOf } from '../markers.js';
import type { Database } from './database.js';
import { hiddenCopy, hiddenPath } from './files.js';
import { type Answer, isErased, isGone, nameOf, type Request, type Standing, stateOf } from './requests.js';

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
