import { isDeepStrictEqual } from 'node:util';
import { markComment } from '../../src/reference.js';
import type { SimulatedExperiment } from '../support/simulated-notebook.js';
import { EDITED, type People } from './people.js';
import { runOf, type World } from './world.js';

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
  const problems = [
    ...theirs(world, people),
    ...rows.flatMap((row, n) => [
      ...examineRun(
        row,
        n,
        ours.map(([, entry]) => entry),
        people,
      ),
    ]),
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

function* examineRun(
  row: Row,
  n: number,
  ours: readonly SimulatedExperiment[],
  people: People,
): Generator<string> {
  const { title } = runOf(n).draft;
  if (row.title !== title) yield `the journal has ${row.title} in place of ${title}`;
  const filed = ours.filter((entry) => entry.title === title);
  if (people.edited.has(title) || people.deleted.has(title)) yield* leftAlone(row, filed);
  else yield* asDrafted(n, row, filed);
}

function* leftAlone({ title, state }: Row, filed: readonly SimulatedExperiment[]): Generator<string> {
  if (filed.length > 0) yield `${title} was made again although somebody has changed or deleted it`;
  if (state !== 'done' && state !== 'held') yield `${title} is ${state}`;
}

function* asDrafted(n: number, row: Row, filed: readonly SimulatedExperiment[]): Generator<string> {
  const { draft } = runOf(n);
  const wanted = {
    ...draft,
    userid: 1,
    comments: draft.comments.map((text, index) => markComment(text, row.reference, index + 1)),
  };
  const found = filed.map(({ title, date, body, tags, userid, comments }) => ({
    title,
    date,
    body,
    tags,
    comments: [...comments.values()],
    userid,
  }));
  if (!isDeepStrictEqual(found, [wanted])) yield `${draft.title} is filed as ${JSON.stringify(found)}`;
  if (row.state !== 'done') yield `${draft.title} is ${row.state} in the journal`;
}
