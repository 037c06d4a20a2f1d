import { expect, test } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, FIRST_ID, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { someDraft } from '../support/runs.js';
import { withDone } from './redone.js';

test('what somebody writes into a new experiment, while its PATCH waits at the gate, is not overwritten', async () => {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook();
  const deps = contextOf(journal, notebook, clock);
  const kept: Notebook = {
    ...notebook,
    async patchExperiment(id, changes, signal) {
      Object.assign(notebook.experiments.get(id) ?? {}, { title: 'mine' });
      if (!signal) return notebook.patchExperiment(id, changes);
      if (!signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve));
      throw signal.reason;
    },
  };
  await see(journal, 'a');
  await expect(deliver(await journal.outbox.load(1), { ...deps, notebook: kept })).rejects.toThrow(
    'somebody changed experiment',
  );
  expect(notebook.experiments.get(FIRST_ID)?.title).toBe('mine');
  await deliverAll(journal, deps, clock);
  expect(notebook.experiments.get(FIRST_ID)?.title).toBe('mine');
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

const BEFORE = someDraft('before', ['one', 'two']);

for (const [what, comments] of [
  ['to be revised', ['uno', 'zwei']],
  ['no longer wanted', ['uno']],
] as const) {
  test(`a comment that is ${what}, and that somebody changes while the run is redone, is left to them`, async () => {
    const scene = await withDone(BEFORE, { dialect: 'v2' });
    await scene.remap(someDraft('after', comments), {
      async patchExperiment(id, changes) {
        await scene.notebook.patchExperiment(id, changes);
        scene.editComment(2, 'mine');
      },
    });
    expect(await scene.held()).toMatch(/changed comment 1002/);
    expect(scene.entry().comments[1]).toBe('mine');
  });
}
