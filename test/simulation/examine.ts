import { isDeepStrictEqual } from 'node:util';
import { markComment, markIn } from '../../src/markers.js';
import type { Draft } from '../../src/model.js';
import type { SimulatedExperiment } from '../support/simulated-notebook.js';
import { EDITED, type People } from './people.js';
import { commentsOf, runOf, titleOf, type World } from './world.js';

interface Row {
  readonly title: string;
  readonly reference: string;
  readonly state: string;
  readonly reason: string | null;
}

/** Throws unless each run is filed exactly once, to the letter, and what is other people's is as they left it. */
export function examine(world: World, people: People, runs: number): void {
  const rows = readRows(world);
  const ours = [...world.notebook.experiments].filter(([id]) => !people.own.has(id));
  const entries = ours.map(([, entry]) => entry);
  const problems = [
    ...theirs(world, people),
    ...theirComments(world, people),
    ...rows.flatMap((row, n) => [...examineRun(row, n, entries, people, world)]),
    ...(rows.length === runs ? [] : [`the journal has ${rows.length} runs, not ${runs}`]),
    ...(ours.length === runs - people.deleted.size ? [] : [`${ours.length} experiments for ${runs} runs`]),
  ];
  if (problems.length === 0) return;
  const shown = ours.map(
    ([id, { title, comments }]) => `notebook: ${id} ${title}, ${comments.size} comments`,
  );
  throw new Error(
    [...problems, ...shown, ...rows.map((row) => `journal: ${JSON.stringify(row)}`)].join('\n  '),
  );
}

const readRows = ({ database }: World): Row[] =>
  database
    .prepare(
      `SELECT title, reference, ifnull(resting, step) AS state, reason FROM runs JOIN drafts ON run = id
         ORDER BY id`,
    )
    .all() as unknown as Row[];

function* theirs({ notebook }: World, people: People): Generator<string> {
  for (const [id, title] of people.own) {
    const left = { title, date: '2026-01-01', body: '', tags: [], userid: 2, comments: new Map() };
    if (!isDeepStrictEqual(notebook.experiments.get(id), left))
      yield `somebody else's entry ${id} was touched`;
  }
  for (const [run, id] of people.edited) {
    const { title, body, comments } = notebook.experiments.get(id) ?? {};
    if (!isDeepStrictEqual({ title, body }, EDITED))
      yield `what somebody changed in ${id}, ${run}, was overwritten`;
    const texts = [...(comments?.values() ?? [])];
    if (new Set(texts).size !== texts.length) yield `${id}, ${run}, has a comment twice`;
  }
}

/** What somebody wrote in a comment stays, and what they deleted is not posted again unless it was given up meanwhile. */
function* theirComments({ notebook, redone }: World, { touched }: People): Generator<string> {
  for (const [id, { run, n, version, experiment, text }] of touched) {
    const comments = notebook.experiments.get(experiment)?.comments;
    if (!comments) continue;
    if (text !== undefined && comments.get(id) !== text)
      yield `what somebody wrote in comment ${id} was overwritten`;
    const marked = [...comments.values()].filter((other) => markIn(other)?.n === n);
    const versions = Array.from({ length: (redone?.get(run) ?? 0) - version + 1 }, (_, v) => version + v);
    const isWanted = versions.every((each) => commentsOf(run, each).length >= n);
    if (text === undefined && isWanted && marked.length > 0)
      yield `comment ${id}, which somebody deleted, was posted again`;
  }
}

function* examineRun(
  row: Row,
  n: number,
  ours: readonly SimulatedExperiment[],
  people: People,
  { redone }: World,
): Generator<string> {
  const version = redone?.get(n) ?? 0;
  const { draft } = runOf(n, version);
  const name = titleOf(n, 0);
  if (row.title !== draft.title) yield `the journal has ${row.title} in place of ${draft.title}`;
  const titles = Array.from({ length: version + 1 }, (_, each) => titleOf(n, each));
  const filed = ours.filter(({ title }) => titles.includes(title));
  if (people.edited.has(name) || people.deleted.has(name)) yield* leftAlone(row, filed);
  else if ([...people.touched.values()].some(({ run }) => run === n)) yield* filedOnce(row, filed);
  else yield* asDrafted(draft, row, filed);
}

function* leftAlone({ title, state }: Row, filed: readonly SimulatedExperiment[]): Generator<string> {
  if (filed.length > 0) yield `${title} was made again although somebody has changed or deleted it`;
  if (state !== 'done' && state !== 'held') yield `${title} is ${state}`;
}

/** Somebody has touched a comment: how far it was redone depends on when. */
function* filedOnce({ title, state }: Row, filed: readonly SimulatedExperiment[]): Generator<string> {
  if (filed.length !== 1) yield `${title} is filed ${filed.length} times`;
  if (state !== 'done' && state !== 'held') yield `${title} is ${state}`;
  const marks = filed.flatMap(({ comments }) => [...comments.values()].map((text) => markIn(text)?.n));
  const known = marks.filter((n) => n !== undefined);
  if (new Set(known).size !== known.length) yield `${title} has a comment twice`;
}

function* asDrafted(draft: Draft, row: Row, filed: readonly SimulatedExperiment[]): Generator<string> {
  const wanted = {
    ...draft,
    userid: 1,
    comments: draft.comments.map((text, index) => markComment(text, row.reference, index + 1)),
  };
  const found = filed.map(({ title, date, body, tags, userid, comments }) => ({
    title,
    date,
    body,
    tags: tags.toSorted(),
    comments: [...comments.values()],
    userid,
  }));
  if (!isDeepStrictEqual(found, [wanted])) yield `${draft.title} is filed as ${JSON.stringify(found)}`;
  if (row.state !== 'done') yield `${draft.title} is ${row.state} in the journal`;
}
