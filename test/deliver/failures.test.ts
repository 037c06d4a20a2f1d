import { expect, test } from 'vitest';
import { type Notebook, NotYetError } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure, confirmingForbidden } from '../../src/deliver/failures.js';
import { type FailureClass, NotebookError } from '../../src/errors.js';
import { fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, emptyJournal, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';

const NOW = 1_000_000;
const failures = (attempts: number, isToBlame = false) => ({ attempts, isToBlame });
const failed = (failure: FailureClass, details: Partial<NotebookError> = {}) =>
  new NotebookError(failure, 'said no', { ...details });

test('a run that needs a correction is quarantined, one with a conflict is held', () => {
  expect(afterFailure(failed('request'), failures(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'quarantined',
    failure: 'request',
  });
  expect(afterFailure(failed('file'), failures(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'quarantined',
    failure: 'file',
  });
  expect(afterFailure(failed('conflict'), failures(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'held',
    failure: 'conflict',
  });
});

test('a temporary failure is retried with growing waits, and never parks the run', () => {
  for (const failure of ['auth', 'rate', 'server'] as const) {
    const change = afterFailure(failed(failure, { status: 503 }), failures(1000), NOW, () => 1);
    expect(change).toMatchObject({ kind: 'postponed', dueAt: NOW + (failure === 'server' ? 60_000 : 15_000) });
  }
  expect(afterFailure(failed('rate', { retryAfterMs: 3_600_000 }), failures(0), NOW)).toMatchObject({
    dueAt: NOW + 3_600_000,
  });
});

test('a failed write is retried within seconds for as long as it takes, and quarantined if its run is to blame', () => {
  const error = failed('server', { status: 500, scope: 'run', outcomeUnknown: true });
  expect(afterFailure(error, failures(1000), NOW, () => 1)).toMatchObject({ kind: 'postponed', dueAt: NOW + 15_000 });
  const parked = afterFailure(error, failures(5, true), NOW);
  expect(parked).toMatchObject({ kind: 'parked', as: 'quarantined', failure: 'server' });
  expect(parked).toHaveProperty(
    'reason',
    expect.stringMatching(/accepts the same request for other runs: said no\n {2}→ /),
  );
});

test('a wait is rounded up to whole milliseconds', () => {
  expect(afterFailure(new NotYetError('later', NOW + 7.25), failures(0), NOW)).toMatchObject({
    dueAt: NOW + 8,
  });
});

test('a grace period postpones the run, and so does an internal error', () => {
  expect(afterFailure(new NotYetError('later', NOW + 6.2), failures(0), NOW)).toMatchObject({
    kind: 'postponed',
    dueAt: NOW + 7,
  });
  expect(afterFailure(new TypeError('oops'), failures(0), NOW)).toMatchObject({
    kind: 'postponed',
    failure: 'server',
  });
});

const refuse = (failure: 'conflict' | 'auth' | 'server', status: number) => async (): Promise<never> => {
  throw new NotebookError(failure, `answered ${status}`, { status });
};

/** One run is filed. The second one is delivered to a notebook that has changed. */
async function secondRun(changed: Partial<Notebook>) {
  const clock = manualClock();
  const journal = await emptyJournal(clock);
  const context = contextOf(journal, fakeNotebook(), clock);
  await see(journal, 'first');
  await deliverAll(journal, context, clock);
  await see(journal, 'second');
  const attempt = async () => {
    const error = await deliver(await journal.outbox.load(2), {
      ...context,
      notebook: confirmingForbidden({ ...context.notebook, ...changed }),
    }).catch((reason: unknown) => reason);
    return afterFailure(error, { attempts: 0 }, clock.now());
  };
  return { attempt, journal, clock };
}

test.each([
  ['createExperiment', { createExperiment: refuse('conflict', 403) }],
  ['patchExperiment', { patchExperiment: refuse('conflict', 403) }],
  ['postComment', { postComment: refuse('conflict', 403) }],
])('a 403 concerns the key if the keys cannot be listed either (%s)', async (_, step) => {
  const { attempt } = await secondRun({ ...step, listKeys: refuse('auth', 403) });
  expect(await attempt()).toMatchObject({ kind: 'postponed', failure: 'auth' });
});

test('a 404 to everything means that the notebook is unavailable, not that an experiment was deleted', async () => {
  const { attempt } = await secondRun({
    patchExperiment: refuse('conflict', 404),
    listKeys: refuse('server', 404),
  });
  expect(await attempt()).toMatchObject({ kind: 'postponed', failure: 'server' });
});

test.each([403, 404])('a %i to one run holds it if the key works', async (status) => {
  const { attempt } = await secondRun({ patchExperiment: refuse('conflict', status) });
  expect(await attempt()).toMatchObject({ kind: 'parked', as: 'held', failure: 'conflict' });
});

test('a reconciliation ends when the key is rejected, and does not take every id for a private one', async () => {
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

test('no run is held if the key works again when it is checked', async () => {
  let isRefused = true;
  const fake = fakeNotebook();
  const notebook = confirmingForbidden({
    ...fake,
    createExperiment: (fields) => (isRefused ? refuse('conflict', 403)() : fake.createExperiment(fields)),
    async listKeys() {
      isRefused = false;
      return fake.listKeys();
    },
  });
  await expect(notebook.createExperiment({ title: 'A' })).resolves.toBeGreaterThan(0);
  expect(fake.writes).toEqual(['createExperiment']);
});
