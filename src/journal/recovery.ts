import { z } from 'zod';
import { type CommentMark, referenceOf, refilingsOf } from '../markers.js';
import { lookForUploads } from './attachments.js';
import { addHistory, type Connection, parseRows, part, raw, textList } from './database.js';
import { dropSpare } from './outbox.js';
import type { Store } from './store.js';

/** An experiment of the notebook that names the run it belongs to. */
interface FiledRun {
  readonly server: string;
  readonly experiment: number;
  readonly instrument: string;
  readonly sha256: string;
  /** The file's name, from the origin line. */
  readonly file: string;
  /** Whether equal files are runs of their own: then a second experiment of the same bytes is another run. */
  readonly copies: boolean;
  /** Whether the contents of a file are versions of one run: then its marker lines may be from an earlier one. */
  readonly revises?: boolean;
  /** Whether the experiment has these tags, as far as the notebook shows it. */
  readonly hasTags?: (wanted: readonly string[]) => boolean;
  /** Its comments with a marker line. */
  readonly comments: readonly MarkedComment[];
}

export interface MarkedComment extends CommentMark {
  readonly id: number;
}

/** A run with the experiment that it has, or had before the server was restored. */
export type PlacedRun = z.output<typeof placedRow>;

const placedRow = z.object({
  id: z.number(),
  reference: z.string(),
  instrument: z.string(),
  sha256: z.string(),
  experiment: z.number(),
  /** Whether there is a draft. */
  drafted: z.number().transform((count) => count > 0),
  /** When it got its experiment and when it filled it in, as places in the history: clocks are set back. */
  createdAs: z.number().nullable(),
  describedAs: z.number().nullable(),
});

const UNFINISHED = '`labfeed recover` was interrupted: run it again to continue where it stopped';

/** What `recover` does to the outbox: it refills it from the notebook, and repairs it after the server was restored. */
export type Recovery = ReturnType<typeof createRecovery>;

export function createRecovery(store: Store) {
  const { db, facts, now } = store;
  const commit = <T>(change: () => T): Promise<T> =>
    store.commit(() => {
      facts.clear();
      return change();
    });
  const placed = (condition: ReturnType<typeof part>): PlacedRun[] => {
    const rows = db.rows`
      SELECT id, reference, instrument, sha256, experiment, (SELECT count(*) FROM drafts
        WHERE run = runs.id) AS drafted, (SELECT max(id) FROM history WHERE run = runs.id AND event = 'created')
        AS createdAs, (SELECT max(id) FROM history WHERE run = runs.id AND event = 'described') AS describedAs
        FROM runs WHERE ${condition}`;
    return parseRows(placedRow, rows);
  };
  return {
    /** From here on nothing is sent to this server until `end`. */
    begin: (server: string) => commit(() => begin(db, server)),
    /**
     * The first id that the journal may not know; undefined if it knows no id of the server. `depth`: how far below a
     * known id delivery looks for creations that were sent before any id was known.
     */
    firstUnknown: async (server: string, depth: number) =>
      // A creation with an unknown outcome is above its own floor, which can be below the highest known id. A later journal
      // may have filled in the spares of this one, and those that this one had yet to look for.
      db.value<number>`
        SELECT min(highest, ifnull((SELECT min(ifnull(floor, 0)) FROM runs WHERE server = url
          AND step = 'creating' AND parked IS NOT 'ignored'), highest),
          ifnull((SELECT min(experiment) - 1 FROM spares WHERE server = url), highest),
          CASE WHEN sweep_from IS NULL THEN highest WHEN sweep_from > 0 THEN sweep_from - 1
            ELSE max(0, ifnull(sweep, highest) - 1 - ${depth}) END) + 1 AS id FROM servers WHERE url = ${server}`,
    /** Whether a run has this experiment. */
    owns: async (server: string, experiment: number) =>
      db.exists`SELECT 1 FROM runs WHERE server = ${server} AND experiment = ${experiment}`,
    /** Takes in an experiment that no run has: its run is unknown here, or not finished. */
    take: (run: FiledRun) => commit(() => take(db, run, now())),
    /** There is an experiment with this id, of any origin. */
    saw: (server: string, experiment: number) =>
      commit(() => {
        db.run`UPDATE servers SET highest = max(ifnull(highest, 0), ${experiment}) WHERE url = ${server}`;
      }),
    /** Allows sending again, or leaves it halted for another reason. */
    end: (server: string, halted?: string) =>
      commit(() => void db.run`UPDATE servers SET halted = ${halted ?? null} WHERE url = ${server}`),
    /** All ids up to this one were read; null if it is certain that nothing is filed above. */
    readThrough: (server: string, id: number | null) =>
      commit(() => void db.run`UPDATE servers SET unconfirmed = ${id} WHERE url = ${server}`),
    /** The runs that have an experiment with this id or a higher one, highest first. */
    placedFrom: async (server: string, experiment: number) =>
      placed(part`server = ${server} AND experiment >= ${experiment} ORDER BY experiment DESC`),
    /** The run with the highest experiment below this one. */
    placedBelow: async (server: string, experiment: number) =>
      placed(part`server = ${server} AND experiment < ${experiment} ORDER BY experiment DESC LIMIT 1`)[0],
    /**
     * Runs below this experiment that changed since its run was added: the restored server may have an unfinished state.
     * When a recovered run was added is not known, but it was after the runs below it. Clocks are set back, so the order
     * of the history counts as well.
     */
    changedSince: async (server: string, experiment: number) =>
      placed(part`server = ${server} AND experiment < ${experiment} AND (updated_at >= ifnull((SELECT added_at FROM runs
        WHERE server = ${server} AND experiment <= ${experiment} AND modified_ms > 0 ORDER BY experiment DESC LIMIT 1), 0)
        OR (SELECT max(id) FROM history WHERE run = runs.id) > (SELECT min(history.id) FROM history JOIN runs AS newest
        ON newest.id = history.run WHERE newest.server = ${server} AND newest.experiment = ${experiment}))
        ORDER BY experiment DESC`),
    /** Its experiment is gone: the id is free for others, and the run is held. */
    release: (run: PlacedRun) => commit(() => release(db, run, now())),
    /** Whether this content was a version of the run. */
    isVersion: async (run: PlacedRun, sha256: string) =>
      db.exists`SELECT 1 FROM versions WHERE run = ${run.id} AND sha256 = ${sha256} AND unread IS NULL`,
    /** Whether the journal has what was written as this content, and is to replace it. */
    isReplacing: async (run: PlacedRun, sha256: string) =>
      db.exists`SELECT 1 FROM earlier_drafts WHERE run = ${run.id} AND instr(body, ${`sha256:${sha256}`}) > 0`,
    /** Its experiment has an earlier version of its file: a person has to say that it may be updated again. */
    outdate: (run: PlacedRun) => commit(() => outdate(db, run, now())),
    /** Its experiment exists but is blank: it is filled in again. */
    refill: (run: PlacedRun) => commit(() => refill(db, run, now())),
    /** Only these of its comments exist, by number: the others are posted again. False if none is missing. */
    keepComments: (run: PlacedRun, present: ReadonlySet<number>) => commit(() => keepComments(db, run, present, now())),
    /** Whether one of the comments that the journal knows is not among these. */
    lacksComments: async (run: PlacedRun, present: ReadonlySet<number>) =>
      postedComments(db, run.id).some((n) => !present.has(n)),
    /** Our empty experiments that no run has. */
    spares: async (server: string) =>
      db.rows<{ experiment: number; reference: string | null }>`
        SELECT experiment, reference FROM spares WHERE server = ${server}`,
    dropSpare: (server: string, experiment: number) => commit(() => dropSpare(db, server, experiment)),
    /** From now on this is the highest known id of the server. */
    settle: (server: string, highest: number) => commit(() => settle(db, server, highest)),
  };
}

/** Returns why nothing was sent before, and `restoredFrom` of the `ServerFacts`. */
function begin(db: Connection, server: string) {
  db.run`INSERT OR IGNORE INTO servers (url) VALUES (${server})`;
  const before = db.row<{ halted: string | null; restoredFrom: number | null }>`
    SELECT halted, restored_from AS restoredFrom FROM servers WHERE url = ${server}`;
  db.run`UPDATE servers SET halted = ${UNFINISHED} WHERE url = ${server}`;
  returnToEnd(db, server);
  // A comment that an older journal has not posted yet may have been posted since.
  db.run`
    UPDATE comments SET intent_at = 0 WHERE comment IS NULL AND intent_at IS NULL AND run IN (SELECT id
      FROM runs WHERE server = ${server} AND experiment IS NOT NULL AND step <> 'done')`;
  // A later journal may have added comments to the runs of growing files, which are done between two of them.
  db.run`UPDATE growths SET uncertain = 1`;
  lookForUploads(db);
  return { halted: before?.halted ?? undefined, restoredFrom: before?.restoredFrom ?? undefined };
}

/**
 * An earlier recovery did not reach the end: runs may be filed above it. What was created since is not filled in, and
 * becomes a spare, because its run may be among them.
 */
function returnToEnd(db: Connection, server: string): void {
  const end = db.value<number>`SELECT unconfirmed FROM servers WHERE url = ${server}`;
  if (end === undefined || end === null) return;
  db.run`
    INSERT OR IGNORE INTO spares SELECT server, experiment, reference FROM runs WHERE server = ${server}
      AND step = 'created' AND experiment > ${end} AND adopted = 0
      AND NOT EXISTS (SELECT 1 FROM earlier_drafts WHERE run = runs.id)`;
  db.run`
    UPDATE runs SET step = 'pending', experiment = NULL, floor = NULL, unseen = 0 WHERE server = ${server}
      AND step = 'created' AND experiment > ${end} AND adopted = 0
      AND NOT EXISTS (SELECT 1 FROM earlier_drafts WHERE run = runs.id)`;
  db.run`
    UPDATE servers SET seen = max(ifnull(seen, 0), ifnull(highest, 0)), highest = min(highest, ${end})
      WHERE url = ${server}`;
}

function take(db: Connection, filed: FiledRun, at: number): 'recovered' | 'completed' | 'known' {
  const { server, experiment, instrument, sha256, copies } = filed;
  const later = findEarlierVersion(db, filed);
  if (later !== undefined) return takeLaterVersion(db, later, filed, at);
  const refilings = refilingsOf({ instrument, sha256, copy: '' });
  const reference = referenceIn(db, filed, refilings);
  const run = findRun(db, filed, reference);
  const isFiled = run !== undefined && run.experiment !== null;
  // The run has its experiment; this one is somebody's copy of it, or cannot be distinguished from one.
  if (isFiled && !(copies && reference === undefined)) return 'known';
  const ids = commentIds(filed, reference);
  dropSpare(db, server, experiment);
  const open = isFiled ? undefined : run;
  const refiling = reference === undefined ? 0 : refilings.get(reference);
  if (open && reference !== undefined) identify(db, open.id, filed, { reference, refiling });
  const id = open ? complete(db, open.id, filed, ids, at) : insert(db, filed, { reference, refiling }, ids, at);
  addHistory(db, id, at, 'recovered', { server, experiment, comments: ids.size });
  return open ? 'completed' : 'recovered';
}

/** A run of this journal that is not filed, and that another journal has filed with a later version of its file. */
function findEarlierVersion(db: Connection, { instrument, sha256, comments, revises }: FiledRun): number | undefined {
  if (!revises) return undefined;
  const runs = comments.flatMap(
    ({ reference }) =>
      db.value<number>`
        SELECT id FROM runs WHERE reference = ${reference} AND instrument = ${instrument} AND sha256 <> ${sha256}
          AND experiment IS NULL` ?? [],
  );
  return runs[0];
}

/** What was written is not known, so the draft of the earlier version is of no use. */
function takeLaterVersion(db: Connection, run: number, filed: FiledRun, at: number): 'completed' {
  const { server, experiment, instrument, sha256, file, comments } = filed;
  const reference = db.value<string>`SELECT reference FROM runs WHERE id = ${run}`;
  dropSpare(db, server, experiment);
  for (const table of ['drafts', 'earlier_drafts', 'earlier_comments', 'comments', 'attachments'])
    db.run`DELETE FROM ${raw(table)} WHERE run = ${run}`;
  putComments(db, run, commentIds({ ...filed, comments }, reference));
  db.run`
    UPDATE runs SET sha256 = ${sha256}, copy = '', refiling = ${freeRefiling(db, instrument, sha256, 0)}, path = ${file},
      size = 0, modified_ms = 0, mapping = '', matched = 0, step = 'done', parked = NULL, failure = NULL, reason = NULL,
      server = ${server}, experiment = ${experiment}, attempts = 0, due_at = 0, updated_at = ${at} WHERE id = ${run}`;
  db.run`DELETE FROM paths WHERE run = ${run}`;
  addHistory(db, run, at, 'recovered', { server, experiment, comments: comments.length });
  return 'completed';
}

/** The reference in the comments' marker lines. A marker line for other content was copied here by somebody. */
function referenceIn(
  db: Connection,
  { comments, sha256 }: FiledRun,
  refilings: ReadonlyMap<string, number>,
): string | undefined {
  const marks = comments.map(({ reference }) => reference);
  return (
    marks.find((mark) => refilings.has(mark)) ??
    marks.find((mark) => !db.exists`SELECT 1 FROM runs WHERE reference = ${mark} AND sha256 <> ${sha256}`)
  );
}

function findRun(db: Connection, { instrument, sha256 }: FiledRun, reference: string | undefined) {
  type Found = { readonly id: number; readonly experiment: number | null };
  return reference === undefined
    ? db.row<Found>`
        SELECT id, experiment FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256}
          ORDER BY experiment IS NULL, parked IS 'ignored', refiling LIMIT 1`
    : (db.row<Found>`
        SELECT id, experiment FROM runs WHERE reference = ${reference} AND instrument = ${instrument}
          AND sha256 = ${sha256}` ??
        // A new journal has taken the file while it was halted, and does not know that the run was refiled before.
        db.row<Found>`
          SELECT id, experiment FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256} AND copy = ''
            AND experiment IS NULL AND parked IS NULL AND step <> 'done'`);
}

/** The run is the filing with this reference, which no other run has. */
function identify(
  db: Connection,
  run: number,
  { instrument, sha256 }: FiledRun,
  known: { readonly reference: string; readonly refiling: number | undefined },
): void {
  const isKnown = db.exists`SELECT 1 FROM runs WHERE id = ${run} AND reference = ${known.reference}`;
  if (isKnown) return;
  const refiling = freeRefiling(db, instrument, sha256, known.refiling);
  db.run`UPDATE runs SET reference = ${known.reference}, refiling = ${refiling} WHERE id = ${run}`;
}

type CommentIds = ReadonlyMap<number, number>;

/** The notebook's ids of the run's comments. If a marker line occurs twice, the first one is ours. */
function commentIds({ comments }: FiledRun, reference: string | undefined): CommentIds {
  const ours = comments.filter((mark) => mark.reference === reference);
  return new Map(ours.sort((a, b) => b.id - a.id).map(({ n, id }) => [n, id]));
}

/** The journal is older than the notebook, and the run is not filed in it yet. Missing tags and comments are still sent. */
function complete(db: Connection, run: number, filed: FiledRun, ids: CommentIds, at: number): number {
  const { server, experiment } = filed;
  for (const [n, comment] of ids) db.run`UPDATE comments SET comment = ${comment} WHERE run = ${run} AND n = ${n}`;
  db.run`UPDATE comments SET intent_at = 0 WHERE run = ${run} AND comment IS NULL`;
  const wanted = textList.parse(db.value<string>`SELECT tags FROM drafts WHERE run = ${run}` ?? '[]');
  db.run`
    UPDATE runs SET server = ${server}, experiment = ${experiment}, parked = NULL, failure = NULL, reason =
      NULL, attempts = 0, due_at = 0, updated_at = ${at}, step = CASE WHEN ${Number(filed.hasTags?.(wanted) === false)} THEN 'created'
      WHEN EXISTS (SELECT 1 FROM comments WHERE run = ${run} AND comment IS NULL) THEN 'described' ELSE 'done' END
      WHERE id = ${run}`;
  holdGrowing(db, run, experiment, at);
  return run;
}

/** This journal made other comments of the lines of a growing file than the one that filed them. */
function holdGrowing(db: Connection, run: number, experiment: number, at: number): void {
  if (!db.exists`SELECT 1 FROM growths WHERE run = ${run}`) return;
  const reason = `the journal was lost or restored, so it is not known which lines of its file are in experiment ${experiment}\n  → to file all of its lines again, in another experiment: labfeed refile ${run}; to leave them out: labfeed ignore ${run}`;
  db.run`UPDATE runs SET parked = 'held', failure = 'conflict', reason = ${reason} WHERE id = ${run}`;
  addHistory(db, run, at, 'rested', { as: 'held', reason });
}

function insert(
  db: Connection,
  { instrument, sha256, file, server, experiment }: FiledRun,
  known: { readonly reference: string | undefined; readonly refiling: number | undefined },
  ids: CommentIds,
  at: number,
): number {
  const refiling = freeRefiling(db, instrument, sha256, known.refiling);
  const reference = known.reference ?? referenceOf({ instrument, sha256, copy: '', refiling });
  const id =
    db.value<number>`
      INSERT INTO runs (instrument, sha256, copy, refiling, reference, path, size, modified_ms, backlog,
        mapping, step, server, experiment, added_at, updated_at) VALUES (${instrument}, ${sha256}, '',
        ${refiling}, ${reference}, ${file}, 0, 0, 0, '', 'done', ${server}, ${experiment}, ${at}, ${at})
        RETURNING id` ?? 0;
  putComments(db, id, ids);
  return id;
}

/** Their texts are in the notebook; here it is enough to know that they exist. */
function putComments(db: Connection, run: number, ids: CommentIds): void {
  for (const [n, comment] of ids)
    db.run`INSERT INTO comments (run, n, text, comment) VALUES (${run}, ${n}, '', ${comment})`;
}

function freeRefiling(db: Connection, instrument: string, sha256: string, wanted: number | undefined): number {
  const taken = db.values<number>`
    SELECT refiling FROM runs WHERE instrument = ${instrument} AND sha256 = ${sha256} AND copy = ''
      ORDER BY refiling`;
  return wanted !== undefined && !taken.includes(wanted) ? wanted : (taken.at(-1) ?? -1) + 1;
}

/** Done, as far as labfeed is concerned: only `refile` or another recovery moves it on. */
function release(db: Connection, run: PlacedRun, at: number): void {
  const { id, experiment } = run;
  const reason = `its experiment ${experiment} no longer exists, because the notebook was restored to an older state\n  → labfeed refile ${id} files it again; if the experiment reappears, labfeed recover finds it`;
  db.run`
    UPDATE runs SET step = 'done', experiment = NULL, adopted = 0, failure = 'conflict', reason = ${reason},
      updated_at = ${at}, parked = CASE WHEN parked = 'ignored' OR EXISTS ( SELECT 1 FROM runs AS later
      WHERE later.instrument = runs.instrument AND later.sha256 = runs.sha256 AND later.copy = runs.copy
      AND later.refiling > runs.refiling ) THEN 'ignored' ELSE 'held' END WHERE id = ${id}`;
  addHistory(db, id, at, 'setBack', { experiment, became: 'released' });
}

/** What was written as that version is not known, so a person's edits would not be recognised. */
function outdate(db: Connection, { id, experiment }: PlacedRun, at: number): void {
  const reason = `experiment ${experiment} has an earlier version of the file, because the notebook was restored to an older state\n  → to write the newest version again: labfeed adopt ${id} ${experiment}`;
  db.run`
    UPDATE runs SET step = 'created', parked = 'held', failure = 'conflict', reason = ${reason}, updated_at = ${at}
      WHERE id = ${id} AND parked IS NOT 'ignored'`;
  // Their texts there are those of that version.
  db.run`INSERT INTO earlier_comments (run, n, text) SELECT run, n, '' FROM comments WHERE run = ${id}`;
  addHistory(db, id, at, 'setBack', { experiment, became: 'outdated' });
}

function refill(db: Connection, { id, experiment }: PlacedRun, at: number): void {
  forgetComments(db, id, postedComments(db, id));
  lookForUploads(db, id);
  db.run`UPDATE runs SET step = 'created', attempts = 0, due_at = 0, updated_at = ${at} WHERE id = ${id}`;
  addHistory(db, id, at, 'setBack', { experiment, became: 'created' });
}

function keepComments(
  db: Connection,
  { id, experiment }: PlacedRun,
  present: ReadonlySet<number>,
  at: number,
): boolean {
  // The restored state may be older than its uploads, too.
  lookForUploads(db, id);
  const missing = postedComments(db, id).filter((n) => !present.has(n));
  if (missing.length === 0) return false;
  forgetComments(db, id, missing);
  // A run that is being remapped still has to be described first.
  db.run`
    UPDATE runs SET step = CASE step WHEN 'created' THEN step ELSE 'described' END, attempts = 0, due_at = 0,
      updated_at = ${at} WHERE id = ${id}`;
  addHistory(db, id, at, 'setBack', { experiment, became: 'described' });
  return true;
}

const postedComments = (db: Connection, run: number): number[] =>
  db.values`SELECT n FROM comments WHERE run = ${run} AND comment IS NOT NULL`;

/** They are looked for before they are posted, like all comments with an unknown outcome. */
function forgetComments(db: Connection, run: number, numbers: readonly number[]): void {
  for (const n of numbers) db.run`UPDATE comments SET comment = NULL, intent_at = 0 WHERE run = ${run} AND n = ${n}`;
}

function settle(db: Connection, server: string, highest: number): void {
  db.run`UPDATE servers SET highest = ${highest}, seen = NULL, restored_from = NULL, unconfirmed = NULL WHERE url = ${server}`;
  // What creations with an unknown outcome left behind, if anything, has an id of the new sequence.
  db.run`UPDATE runs SET floor = min(floor, ${highest}) WHERE server = ${server} AND step = 'creating'`;
  db.run`DELETE FROM spares WHERE server = ${server} AND experiment > ${highest}`;
}
