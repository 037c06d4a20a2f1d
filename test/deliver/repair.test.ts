import { expect, test } from 'vitest';
import { openAsked } from '../journal/asked-journal.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, FIRST_ID, SERVER, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';

/** A run with two comments, of which the second is gone, and a repair of it that was asked for. */
async function withMissing() {
  const { journal, ask } = await openAsked();
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

test('a comment that is gone is posted again, with the same text and mark, and at once', async () => {
  const { notebook, comments, text, deliverNow, clock } = await withMissing();
  const before = clock.now();
  await deliverNow();
  // Nothing of it can be under way: no grace is waited for.
  expect(clock.now()).toBe(before);
  expect(notebook.writes).toEqual(['postComment']);
  expect([...comments.values()].filter((one) => one === text)).toHaveLength(1);
});

test('a comment that somebody put back meanwhile is found, not posted again', async () => {
  const { notebook, comments, text, deliverNow, journal } = await withMissing();
  comments.set(7000, text);
  await deliverNow();
  expect(notebook.writes).toEqual([]);
  expect((await journal.outbox.load(1)).comments[1]).toMatchObject({ comment: 7000 });
});
