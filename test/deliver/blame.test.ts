import { expect, test } from 'vitest';
import type { Notebook } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure, confirmForbidden } from '../../src/deliver/failures.js';
import { NotebookError } from '../../src/errors.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, emptyJournal, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';

const refuse = (failure: 'conflict' | 'auth' | 'server', status: number) => async (): Promise<never> => {
  throw new NotebookError(failure, `answered ${status}`, { status });
};

/** One run is filed, and a second one is to be, by a notebook that has changed meanwhile. */
async function secondRun(changed: Partial<Notebook>) {
  const clock = manualClock();
  const journal = await emptyJournal(clock);
  const deps = contextOf(journal, fakeNotebook(), clock);
  await see(journal, 'first');
  await deliverAll(journal, deps, clock);
  await see(journal, 'second');
  const attempt = async () => {
    const error = await deliver(await journal.outbox.load(2), {
      ...deps,
      notebook: confirmForbidden({ ...deps.notebook, ...changed }),
    }).catch((reason: unknown) => reason);
    return afterFailure(error, { attempts: 0, rejections: 0 }, clock.now());
  };
  return { attempt, journal, clock };
}

test.each([
  ['creates', { createExperiment: refuse('conflict', 403) }],
  ['describes', { patchExperiment: refuse('conflict', 403) }],
  ['comments', { postComment: refuse('conflict', 403) }],
])(
  'a 403 to a run that %s is held against the key where the keys cannot be listed either',
  async (_, step) => {
    const { attempt } = await secondRun({ ...step, listKeys: refuse('auth', 403) });
    expect(await attempt()).toMatchObject({ kind: 'postponed', failure: 'auth' });
  },
);

test('a 404 to everything is a notebook that is away, not an experiment that somebody deleted', async () => {
  const { attempt } = await secondRun({
    patchExperiment: refuse('conflict', 404),
    listKeys: refuse('server', 404),
  });
  expect(await attempt()).toMatchObject({ kind: 'postponed', failure: 'server' });
});

test.each([403, 404])('a %i to one run holds it where the key is taken', async (status) => {
  const { attempt } = await secondRun({ patchExperiment: refuse('conflict', status) });
  expect(await attempt()).toMatchObject({ kind: 'parked', as: 'held', failure: 'conflict' });
});

test('a look for a lost creation ends when the key is refused, instead of taking every id for a private one', async () => {
  const readIds: number[] = [];
  const { attempt, journal, clock } = await secondRun({
    async readExperiment(id) {
      readIds.push(id);
      if (readIds.length > 100) throw new Error('no end');
      return refuse('conflict', 403)();
    },
    listKeys: refuse('auth', 403),
  });
  await journal.outbox.record(2, {
    kind: 'intended',
    server: 'https://eln.example.org',
    floor: 101,
    at: clock.now(),
  });
  expect(await attempt()).toMatchObject({ kind: 'postponed', failure: 'auth' });
  expect(readIds.length).toBe(1);
});

test('a key that is taken again by the time it is proved holds no run', async () => {
  let isRefused = true;
  const simulated = fakeNotebook();
  const notebook = confirmForbidden({
    ...simulated,
    createExperiment: (fields) =>
      isRefused ? refuse('conflict', 403)() : simulated.createExperiment(fields),
    async listKeys() {
      isRefused = false;
      return simulated.listKeys();
    },
  });
  await expect(notebook.createExperiment({ title: 'A' })).resolves.toBeGreaterThan(0);
  expect(simulated.writes).toEqual(['createExperiment']);
});
