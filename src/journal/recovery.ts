import { z } from 'zod';
import { type CommentMark, referenceOf, refilingsOf } from '../markers.js';
import type { Commit, Database } from './database.js';

/** An experiment of the notebook that says which run it is. */
interface FiledRun {
  readonly server: string;
  readonly experiment: number;
  readonly instrument: string;
  readonly sha256: string;
  /** The file's name, as the experiment's last line has it. */
  readonly file: string;
  /** Whether equal files are runs of their own: then a second experiment of the same bytes is another run. */
  readonly copies: boolean;
  /** Its comments that bear a mark. */
  readonly comments: readonly MarkedComment[];
}

export interface MarkedComment extends CommentMark {
  readonly id: number;
}

export interface RecoveryJournal {
  /** From here on nothing is sent to this server until `end`. */
  begin(server: string): Promise<Beginning>;
  /** The first id that may be unknown here; undefined where nothing is known of the server's ids. */
  firstUnknown(server: string): Promise<number | undefined>;
  /** Whether a run has this experiment. */
  owns(server: string, experiment: number): Promise<boolean>;
  /** Takes in an experiment that no run has: of a run that the journal does not know, or has as unfinished. */
  take(run: FiledRun): Promise<'recovered' | 'completed' | 'known'>;
  /** There is an experiment of this id, whoever's it is. */
  saw(server: string, experiment: number): Promise<void>;
  /** Lets sending go on, or leaves it halted for another reason. */
  end(server: string, halted?: string): Promise<void>;
}

interface Beginning {
  /** Why nothing was sent before. */
  readonly halted: string | undefined;
  /** From this id on, at the latest, ids do not mean what they meant: the server was set back. */
  readonly setBack: number | undefined;
}

const UNFINISHED = '`labfeed recover` was broken off: run it again, which goes on where it stopped';

export function createRecoveryJournal(
  database: Database,
  commit: Commit,
  now: () => number,
): RecoveryJournal {
  const known = database.prepare('INSERT OR IGNORE INTO servers (url) VALUES (?)');
  const before = database.prepare('SELECT halted, set_back AS setBack FROM servers WHERE url = ?');
  const halt = database.prepare('UPDATE servers SET halted = ? WHERE url = ?');
  const raise = database.prepare('UPDATE servers SET highest = max(ifnull(highest, 0), ?) WHERE url = ?');
  // A creation that was under way lies above its own floor, and that can be below the highest id known.
  const first = database.prepare(
    `SELECT min(highest, ifnull((SELECT min(ifnull(floor, 0)) FROM runs WHERE server = url AND step = 'creating'
              AND resting IS NOT 'ignored'), highest)) + 1 AS id FROM servers WHERE url = ?`,
  );
  // What an older journal has not posted yet may have been since.
  const lookFirst = database.prepare(
    `UPDATE comments SET intent_at = 0 WHERE comment IS NULL AND intent_at IS NULL
       AND run IN (SELECT id FROM runs WHERE server = ? AND experiment IS NOT NULL AND step <> 'done')`,
  );
  const owner = database.prepare('SELECT 1 FROM runs WHERE server = ? AND experiment = ?');
  const take = createTake(database, now);

  return {
    begin: (server) =>
      commit(() => {
        known.run(server);
        const was = before.get(server) as { halted: string | null; setBack: number | null };
        halt.run(UNFINISHED, server);
        lookFirst.run(server);
        return { halted: was.halted ?? undefined, setBack: was.setBack ?? undefined };
      }),
    firstUnknown: async (server) => (first.get(server) as { id: number | null }).id ?? undefined,
    owns: async (server, experiment) => owner.get(server, experiment) !== undefined,
    take: (run) => commit(() => take(run)),
    saw: (server, experiment) =>
      commit(() => {
        raise.run(experiment, server);
      }),
    end: (server, reason) =>
      commit(() => {
        halt.run(reason ?? null, server);
      }),
  };
}

const runRow = z.object({ id: z.number(), experiment: z.number().nullable() });

function createTake(database: Database, now: () => number) {
  const dropSpare = database.prepare('DELETE FROM spares WHERE server = ? AND experiment = ?');
  const byReference = database.prepare(
    'SELECT id, experiment FROM runs WHERE reference = ? AND instrument = ? AND sha256 = ?',
  );
  const byContent = database.prepare(
    `SELECT id, experiment FROM runs WHERE instrument = ? AND sha256 = ?
       ORDER BY experiment IS NULL, resting IS 'ignored', refiling LIMIT 1`,
  );
  const ofOthers = database.prepare('SELECT 1 FROM runs WHERE reference = ? AND sha256 <> ?');
  const history = database.prepare(
    "INSERT INTO history (run, at, event, detail) VALUES (?, ?, 'recovered', ?)",
  );
  const complete = createComplete(database);
  const insert = createInsert(database);

  return (filed: FiledRun): 'recovered' | 'completed' | 'known' => {
    const { server, experiment, instrument, sha256 } = filed;
    const refilings = refilingsOf({ instrument, sha256, copy: '' });
    const marks = filed.comments.map(({ reference }) => reference);
    // A mark that belongs to other bytes was copied here by somebody.
    const reference =
      marks.find((mark) => refilings.has(mark)) ?? marks.find((mark) => !ofOthers.get(mark, sha256));
    const row: unknown =
      reference === undefined
        ? byContent.get(instrument, sha256)
        : byReference.get(reference, instrument, sha256);
    const run = row === undefined ? undefined : runRow.parse(row);
    const isFiled = run !== undefined && run.experiment !== null;
    // The run has its experiment; this one is somebody's copy of it, or cannot be told from one.
    if (isFiled && !(filed.copies && reference === undefined)) return 'known';
    const ids = idsOf(filed, reference);
    const at = now();
    dropSpare.run(server, experiment);
    const open = isFiled ? undefined : run;
    const id = open
      ? complete(open.id, filed, ids, at)
      : insert(filed, { reference, refiling: reference ? refilings.get(reference) : 0 }, ids, at);
    history.run(id, at, JSON.stringify({ server, experiment, comments: ids.size }));
    return open ? 'completed' : 'recovered';
  };
}

/** The notebook's ids of the run's comments. Where a mark stands twice, the first is ours. */
function idsOf({ comments }: FiledRun, reference: string | undefined): CommentIds {
  const ours = comments.filter((mark) => mark.reference === reference);
  return new Map(ours.sort((a, b) => b.id - a.id).map(({ n, id }) => [n, id]));
}

type CommentIds = ReadonlyMap<number, number>;

/** The journal is older than the notebook: it has the run as not yet filed. What is missing is still sent. */
function createComplete(database: Database) {
  const found = database.prepare('UPDATE comments SET comment = ? WHERE run = ? AND n = ?');
  const lookFirst = database.prepare('UPDATE comments SET intent_at = 0 WHERE run = ? AND comment IS NULL');
  const filed = database.prepare(
    `UPDATE runs SET server = ?1, experiment = ?2, resting = NULL, failure = NULL, reason = NULL, attempts = 0,
                     due_at = 0, updated_at = ?3,
                     step = CASE WHEN EXISTS (SELECT 1 FROM comments WHERE run = ?4 AND comment IS NULL)
                              THEN 'described' ELSE 'done' END
       WHERE id = ?4`,
  );
  return (run: number, { server, experiment }: FiledRun, ids: CommentIds, at: number): number => {
    for (const [n, comment] of ids) found.run(comment, run, n);
    lookFirst.run(run);
    filed.run(server, experiment, at, run);
    return run;
  };
}

function createInsert(database: Database) {
  const taken = database.prepare(
    "SELECT 1 FROM runs WHERE instrument = ? AND sha256 = ? AND copy = '' AND refiling = ?",
  );
  const highest = database.prepare(
    "SELECT max(refiling) AS refiling FROM runs WHERE instrument = ? AND sha256 = ? AND copy = ''",
  );
  const put = database.prepare(
    `INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog, mapping, step,
                       server, experiment, added_at, updated_at)
       VALUES (?1, ?2, '', ?3, ?4, ?5, 0, 0, 0, '', 'done', ?6, ?7, ?8, ?8) RETURNING id`,
  );
  // Their texts are in the notebook; that they are there is all that is needed here.
  const putComment = database.prepare("INSERT INTO comments (run, n, text, comment) VALUES (?, ?, '', ?)");

  return (
    { instrument, sha256, file, server, experiment }: FiledRun,
    known: { readonly reference: string | undefined; readonly refiling: number | undefined },
    ids: CommentIds,
    at: number,
  ): number => {
    const isFree = known.refiling !== undefined && !taken.get(instrument, sha256, known.refiling);
    const top = highest.get(instrument, sha256) as { refiling: number | null };
    const refiling = isFree ? known.refiling : (top.refiling ?? -1) + 1;
    const reference = known.reference ?? referenceOf({ instrument, sha256, copy: '', refiling });
    const row: unknown = put.get(instrument, sha256, refiling, reference, file, server, experiment, at);
    const { id } = row as { id: number };
    for (const [n, comment] of ids) putComment.run(id, n, comment);
    return id;
  };
}
