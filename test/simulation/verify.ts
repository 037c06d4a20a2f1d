import { isDeepStrictEqual } from 'node:util';
import { MAX_DEPTH } from '../../src/deliver/window.js';
import { isProvisional, markComment, markIn } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import type { FakeExperiment } from '../support/fake-notebook.js';
import { EDITED, type Users } from './users.js';
import { COMMON_FILE, commentsOf, runOf, titleOf, VERSIONS, type World } from './world.js';

/** Where titles are dropped, nothing but the journal tells whose blank experiment it is. */
const isUnrecognisable = ({ title, body }: FakeExperiment, { kind }: World): boolean =>
  kind.keepsTitle === false && title === 'Untitled' && body === '';

/** A creation that was lost before any id was known is looked for only so far below the next one. */
function countOutOfReach(ours: readonly (readonly [id: number, entry: FakeExperiment])[]): number {
  const highest = Math.max(0, ...ours.map(([id]) => id));
  const isBlank = ({ title, body }: FakeExperiment): boolean =>
    (title === 'Untitled' || isProvisional(title)) && body === '';
  return ours.filter(([id, entry]) => id + MAX_DEPTH < highest && isBlank(entry)).length;
}

interface Row {
  readonly title: string;
  readonly reference: string;
  readonly state: string;
  readonly reason: string | null;
  /** Earlier creations whose outcome is still unknown. */
  readonly unseen: number;
}

/**
 * Throws unless each run of each PC is filed exactly once, to the letter, and other users' work is as they left it.
 * `others`: how many experiments there are besides.
 */
export function verify(worlds: readonly World[], users: Users, runs: number, others = 0): void {
  const [world] = worlds;
  if (!world) return;
  const ours = [...world.notebook.experiments].filter(([id]) => !users.created.has(id));
  const entries = ours.map(([, entry]) => entry);
  const rows = worlds.flatMap((one) => readRows(one).map((row) => ({ world: one, row, n: numberOf(row.title) })));
  const expected = runs + others - users.deleted.size;
  const undecided = rows.filter((one) => isUndecided(one.row, one.world));
  // Each creation of a run that waits may have left a blank experiment, which a later run uses.
  const unseen = undecided.reduce((sum, { row }) => sum + row.unseen, 0);
  const unrecognisable =
    world.isLost || world.isShared ? entries.filter((entry) => isUnrecognisable(entry, world)).length : 0;
  const problems = [
    ...verifyUserWork(world, users),
    ...verifyUserComments(world, users),
    ...worlds.flatMap((one) => [...verifyFiles(one, users)]),
    ...rows.flatMap((one) =>
      undecided.includes(one)
        ? [...filedAtMostOnce(one.row, entries)]
        : [...verifyRun(one.row, one.n, entries, users, one.world)],
    ),
    ...(rows.length === runs ? [] : [`the journal has ${rows.length} runs, not ${runs}`]),
    ...(ours.length <= expected + unseen + unrecognisable + countOutOfReach(ours) &&
    ours.length >= expected - undecided.length
      ? []
      : [`${ours.length} experiments for ${expected} runs`]),
  ];
  if (problems.length === 0) return;
  const shown = ours.map(([id, { title, comments }]) => `notebook: ${id} ${title}, ${comments.size} comments`);
  throw new Error([...problems, ...shown, ...rows.map(({ row }) => `journal: ${JSON.stringify(row)}`)].join('\n  '));
}

/**
 * It is not known whether an experiment was created while a neighbour cannot be read. After the server was restored, a run
 * whose experiment is gone is held, and so is one with several blank experiments that a lost journal has left behind on a
 * server that drops titles, or one that may be somebody else's with the same account. A person decides.
 */
const isUndecided = ({ state }: Row, { events, isRestored, isLost, isShared, kind }: World): boolean =>
  (state === 'held' && (isRestored || events.has('unreadable') || isShared || (isLost && kind.keepsTitle === false))) ||
  (state === 'creating' && events.has('unreadable'));

/** The runs of this PC: `recover` also takes in those of another one. */
const readRows = ({ database, pc }: World): Row[] =>
  database
    .prepare(
      `SELECT title, reference, ifnull(parked, step) AS state, reason, unseen FROM runs JOIN drafts ON run = id
         WHERE title LIKE ? || ' %' ORDER BY id`,
    )
    .all(pc.runs) as unknown as Row[];

/** The number of the run with this title. Those of a fleet are not in their order. */
const numberOf = (title: string): number => Number(/^\S+ (\d+)/.exec(title)?.[1]);

function* verifyUserWork({ notebook }: World, users: Users): Generator<string> {
  for (const [id, { title, userid }] of users.created) {
    const left = { title, date: '2026-01-01', body: '', tags: [], userid, comments: new Map() };
    if (!isDeepStrictEqual(notebook.experiments.get(id), left)) yield `another user's experiment ${id} was changed`;
  }
  for (const [run, id] of users.edited) {
    const { title, body, comments } = notebook.experiments.get(id) ?? {};
    if (!isDeepStrictEqual({ title, body }, EDITED)) yield `a user's edit of ${id}, ${run}, was overwritten`;
    const texts = [...(comments?.values() ?? [])];
    if (new Set(texts).size !== texts.length) yield `${id}, ${run}, has a duplicate comment`;
  }
}

interface FileRow {
  readonly title: string;
  readonly experiment: number;
  readonly sha256: string;
  readonly state: string;
  readonly upload: number | null;
  readonly refused: number | null;
}

/**
 * Each raw file is attached once, to the experiment of its run, unless it was refused: somebody may have changed the
 * experiment. After a lost journal, a run that was recovered has no file to attach; it may have been attached before.
 */
function* verifyFiles({ notebook, database, withFiles, isLost, isRestored }: World, users: Users): Generator<string> {
  if (!withFiles) return;
  const rows = database
    .prepare(
      `SELECT drafts.title, experiment, iif(attachments.sha256 = ?1, ?1, runs.sha256) AS sha256, ifnull(parked, step) AS state,
         upload, refused FROM runs JOIN drafts ON drafts.run = id LEFT JOIN attachments ON attachments.run = id
         WHERE experiment IS NOT NULL`,
    )
    .all(COMMON_FILE.sha256) as unknown as FileRow[];
  for (const { title, experiment, sha256, state, upload, refused } of rows) {
    const entry = notebook.experiments.get(experiment);
    if (!entry || users.created.has(experiment)) continue;
    // Earlier versions are archived.
    const shown = [...(entry.uploads?.values() ?? [])].filter(({ state: uploadState }) => uploadState === 1);
    const isCommon = (hash: string): boolean => hash === COMMON_FILE.sha256;
    const hashes = shown.map(({ hash }) => hash).filter((hash) => isCommon(hash) === isCommon(sha256));
    if (hashes.some((hash) => hash !== sha256)) yield `${title} has the file of another run`;
    if (hashes.length > 1) yield `the file of ${title} is attached ${hashes.length} times`;
    const isWanted = state === 'done' && refused === 0 && !isRestored;
    if (isWanted && (upload === null || hashes.length !== 1)) yield `the file of ${title} is not attached`;
    if (state === 'done' && refused === null && !isLost && !isRestored) yield `${title} has no file to attach`;
  }
}

/** An edited comment stays, and a deleted one is not posted again unless a version without it came in between. */
function* verifyUserComments({ notebook, remaps, changedFiles }: World, { changedComments }: Users): Generator<string> {
  for (const [id, { run, n, version, experiment, text }] of changedComments) {
    const comments = notebook.experiments.get(experiment)?.comments;
    if (!comments) continue;
    if (text !== undefined && comments.get(id) !== text) yield `a user's edit of comment ${id} was overwritten`;
    const marked = [...comments.values()].filter((other) => markIn(other)?.n === n);
    const versions = Array.from({ length: (remaps?.get(run) ?? 0) - version + 1 }, (_, v) => version + v);
    const shown = changedFiles ? versions.map((each) => each % VERSIONS) : versions;
    const isWanted = shown.every((each) => commentsOf(run, each).length >= n);
    if (text === undefined && isWanted && marked.length > 0)
      yield `comment ${id}, which a user deleted, was posted again`;
  }
}

function* verifyRun(
  row: Row,
  n: number,
  ours: readonly FakeExperiment[],
  users: Users,
  { remaps, changedFiles, pc, poisoned }: World,
): Generator<string> {
  const version = remaps?.get(n) ?? 0;
  const { draft } = runOf(n, version, pc, changedFiles !== undefined);
  const name = titleOf(n, 0, pc);
  if (row.title !== draft.title) yield `the journal has ${row.title} instead of ${draft.title}`;
  const titles = Array.from({ length: version + 1 }, (_, each) => titleOf(n, each, pc));
  const filed = ours.filter(({ title }) => titles.includes(title));
  const isChanged = users.edited.has(name) || users.deleted.has(name);
  if (isChanged) yield* leftAlone(poisoned === n ? { ...row, state: 'held' } : row, filed);
  else if ([...users.changedComments.values()].some(({ run }) => run === n)) yield* filedOnce(row, filed);
  else if (poisoned === n) yield* quarantined(row, filed);
  else yield* asDrafted(draft, pc.userid, row, filed);
}

function* quarantined({ title, state, reason }: Row, filed: readonly FakeExperiment[]): Generator<string> {
  if (filed.length > 1) yield `${title} is filed ${filed.length} times`;
  if (state !== 'quarantined' || !reason) yield `${title}, which the server never accepts, is ${state}`;
}

function* filedAtMostOnce({ title }: Row, ours: readonly FakeExperiment[]): Generator<string> {
  const filed = ours.filter((one) => one.title === title).length;
  if (filed > 1) yield `${title} is filed ${filed} times`;
}

function* leftAlone({ title, state }: Row, filed: readonly FakeExperiment[]): Generator<string> {
  if (filed.length > 0) yield `${title} was created again although a user changed or deleted it`;
  if (state !== 'done' && state !== 'held') yield `${title} is ${state}`;
}

/** A user changed a comment: which version is filed depends on when. */
function* filedOnce({ title, state }: Row, filed: readonly FakeExperiment[]): Generator<string> {
  if (filed.length !== 1) yield `${title} is filed ${filed.length} times`;
  if (state !== 'done' && state !== 'held') yield `${title} is ${state}`;
  const marks = filed.flatMap(({ comments }) => [...comments.values()].map((text) => markIn(text)?.n));
  const known = marks.filter((n) => n !== undefined);
  if (new Set(known).size !== known.length) yield `${title} has a duplicate comment`;
}

/** A file that fails several times, while others are accepted, is given up, and the experiment says so. */
const GIVEN_UP =
  /<p>The raw file [^:]* is not attached: the notebook keeps failing on it, but takes others[^<]*<\/p>\n/g;

function* asDrafted(draft: Draft, userid: number, row: Row, filed: readonly FakeExperiment[]): Generator<string> {
  const wanted = {
    ...draft,
    userid,
    comments: draft.comments.map((text, index) => markComment(text, row.reference, index + 1)),
  };
  const found = filed.map(({ title, date, body, tags, userid, comments }) => ({
    title,
    date,
    body: body.replace(GIVEN_UP, ''),
    tags: tags.toSorted(),
    comments: [...comments.values()],
    userid,
  }));
  if (!isDeepStrictEqual(found, [wanted])) yield `${draft.title} is filed as ${JSON.stringify(found)}`;
  if (row.state !== 'done') yield `${draft.title} is ${row.state} in the journal`;
}
