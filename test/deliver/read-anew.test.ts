import { expect, test } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { NotebookError } from '../../src/errors.js';
import type { Journal } from '../../src/journal/journal.js';
import type { Draft } from '../../src/model.js';
import { type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, type ManualClock } from '../support/filing.js';
import { take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, sha256, someDraft } from '../support/runs.js';

const origin = `<p>labfeed balance a.csv sha256:${sha256('a')}</p>`;
const draft = (title: string, words: string, comments = ['one', 'two']): Draft => ({
  ...someDraft(title, comments),
  body: `<h1>It's &lt;${words}&gt;</h1>${origin}`,
});

interface Scene {
  readonly clock: ManualClock;
  readonly journal: Journal;
  readonly notebook: FakeNotebook;
}

const refusal = (): Promise<never> =>
  Promise.reject(new NotebookError('request', 'refused', { status: 422 }));

/** A run that was quarantined at the request that is refused, after all before it. */
async function quarantinedAt(
  refused: keyof Pick<Notebook, 'patchExperiment' | 'postComment'>,
  before = draft('before', 'old'),
): Promise<Scene> {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  await take(journal, newRun('a'), before);
  const deps = contextOf(journal, { ...notebook, [refused]: refusal }, clock);
  await deliverAll(journal, deps, clock);
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
  return { clock, journal, notebook };
}

async function readAnew({ journal, notebook, clock }: Scene, now: Draft): Promise<void> {
  await take(journal, newRun('a', { mapping: 'm2' }), now);
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
}

const only = ({ notebook }: Scene) => {
  expect(notebook.experiments.size).toBe(1);
  return [...notebook.experiments.values()][0];
};

for (const refused of ['patchExperiment', 'postComment'] as const) {
  test(`read anew after a refused ${refused}, a run fills in the experiment that it has`, async () => {
    const scene = await quarantinedAt(refused);
    await readAnew(scene, draft('after', 'new', ['only']));
    expect(only(scene)).toMatchObject({ title: 'after', body: expect.stringContaining('new') });
    expect(only(scene)?.comments.size).toBe(1);
    expect(await scene.journal.outbox.count()).toEqual({ done: 1 });
  });
}

test('a change of nothing but the body is written, although title and date are as before', async () => {
  const scene = await quarantinedAt('postComment', draft('same', 'old'));
  const shown = only(scene);
  // As a server gives it back that cleans what it stores.
  if (shown) shown.body = `<h1 class="x">\n It&#039;s &lt;old&gt;</h1>\n${origin}`;
  await readAnew(scene, draft('same', 'new'));
  expect(only(scene)?.body).toContain('new');
});

test('what reads as before is not written again', async () => {
  const scene = await quarantinedAt('postComment');
  const writes = scene.notebook.writes.length;
  await readAnew(scene, draft('before', 'old'));
  expect(scene.notebook.writes.slice(writes)).toEqual(['postComment', 'postComment']);
});

test('what a person changed since is held, not overwritten', async () => {
  for (const edit of [{ title: 'mine' }, { body: `<h1>It is <b>mine</b></h1>${origin}` }]) {
    const scene = await quarantinedAt('postComment');
    const shown = only(scene);
    Object.assign(shown ?? {}, edit);
    await readAnew(scene, draft('after', 'new'));
    expect(only(scene)).toMatchObject(edit);
    expect(await scene.journal.outbox.count()).toEqual({ held: 1 });
  }
});

test('a PATCH that was carried out in part under an earlier reading is completed under the new one', async () => {
  const scene = await quarantinedAt('patchExperiment');
  Object.assign(only(scene) ?? {}, { title: 'before', date: draft('', '').date });
  await readAnew(scene, draft('after', 'new'));
  expect(only(scene)).toMatchObject({ title: 'after', body: expect.stringContaining('new') });
});

test('a creation without an answer is looked for also by a run that was read anew', async () => {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  await take(journal, newRun('known'), someDraft('known'));
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  await take(journal, newRun('a'), draft('before', 'old'));
  const broken: FakeNotebook = {
    ...notebook,
    async createExperiment(fields) {
      await notebook.createExperiment(fields);
      throw new NotebookError('server', 'broken', { status: 500, outcomeUnknown: true, scope: 'run' });
    },
  };
  const deps = contextOf(journal, broken, clock);
  await expect(deliver(await journal.outbox.load(2), deps)).rejects.toThrow('broken');
  await journal.outbox.record(2, { kind: 'parked', as: 'quarantined', failure: 'server', reason: 'broken' });
  await take(journal, newRun('a', { mapping: 'm2' }), draft('after', 'new'));
  await deliverAll(journal, contextOf(journal, notebook, clock), clock);
  expect([...notebook.experiments.values()].map(({ title }) => title)).toEqual(['known', 'after']);
});
