import { expect, test } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { NotebookError } from '../../src/errors.js';
import { commentMark } from '../../src/markers.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, FIRST_ID, SERVER, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';
import { openTestJournal } from '../support/test-journal.js';
import { setUp } from './scene.js';

test('a comment whose outcome is unknown is not posted twice', async () => {
  const { add, fail, deliverAll, expectExactly } = await setUp();
  await fail(await add('A'), { postComment: 'lost' });
  await deliverAll();
  expectExactly(['A']);
});

test('a comment is not posted again if the list lacks another known comment', async () => {
  const { add, attempt, deliverAll, notebook, journal } = await setUp();
  let posts = 0;
  const failing: Notebook = {
    ...notebook,
    async postComment(experiment, text) {
      posts += 1;
      if (posts === 2) throw new NotebookError('server', 'reset', { outcomeUnknown: true });
      return notebook.postComment(experiment, text);
    },
  };
  await expect(attempt(await add('A'), failing)).rejects.toThrow('reset');
  [...notebook.experiments.values()][0]?.comments.clear();
  await deliverAll();
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('text by a person that contains a marker line is not taken for our comment', async () => {
  const { add, fail, deliverAll, notebook, journal } = await setUp();
  const run = await add('A', ['only']);
  await fail(run, { postComment: 'dropped' });
  const { reference } = await journal.outbox.load(run);
  const [experiment] = notebook.experiments.values();
  experiment?.comments.set(1, `see ${commentMark(reference, 1)}`);
  experiment?.comments.set(2, commentMark(reference, 12));
  await deliverAll();
  expect(experiment?.comments.size).toBe(3);
});

/** The field name is wrong: the notebook stores a comment without text. */
const forgetful = (notebook: Notebook): Notebook => ({
  ...notebook,
  postComment: (experiment) => notebook.postComment(experiment, ''),
});

test('a wrong field name, which makes the notebook store no text, is noticed at the first comment', async () => {
  const { add, deliverAll, notebook, journal, context } = await setUp();
  await add('A');
  await deliverAll({ ...context, notebook: forgetful(notebook) });
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
});

test('a comment that the notebook did not store is posted again once the field name is right', async () => {
  const { add, attempt, deliverAll, notebook } = await setUp();
  await expect(attempt(await add('A', ['only']), forgetful(notebook))).rejects.toThrow(/does not contain/);
  await deliverAll();
  const texts = [...([...notebook.experiments.values()][0]?.comments.values() ?? [])];
  expect(texts.filter((text) => text.startsWith('only'))).toHaveLength(1);
});

/** A run with two comments. The second is missing, and its repair was requested. */
async function withMissing() {
  const { journal, ask } = await openTestJournal();
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  await journal.outbox.server(SERVER).learn({ dialect: 'elabftw' });
  await see(journal, 'a');
  const deliverNow = () => deliverAll(journal, contextOf(journal, notebook, clock), clock);
  await deliverNow();
  const { comments } = notebook.experiments.get(FIRST_ID) ?? { comments: new Map<number, string>() };
  const [, [gone = 0, text = ''] = []] = [...comments];
  comments.delete(gone);
  expect(await ask({ kind: 'repair', run: 1, comments: [{ n: 2, comment: gone }] })).toMatchObject({
    done: true,
  });
  notebook.writes.length = 0;
  return { notebook, comments, text, deliverNow, clock, journal };
}

test('a missing comment is posted again at once, with the same text and marker line', async () => {
  const { notebook, comments, text, deliverNow, clock } = await withMissing();
  const before = clock.now();
  await deliverNow();
  // No POST of it can be in flight, so there is no grace period.
  expect(clock.now()).toBe(before);
  expect(notebook.writes).toEqual(['postComment']);
  expect([...comments.values()].filter((one) => one === text)).toHaveLength(1);
});

test('a missing comment that somebody restored meanwhile is found, not posted again', async () => {
  const { notebook, comments, text, deliverNow, journal } = await withMissing();
  comments.set(7000, text);
  await deliverNow();
  expect(notebook.writes).toEqual([]);
  expect((await journal.outbox.load(1)).comments[1]).toMatchObject({ comment: 7000 });
});
