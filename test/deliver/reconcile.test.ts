import { expect, test } from 'vitest';
import { HaltedError, type Notebook, NotYetError } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { NotebookError } from '../../src/errors.js';
import {
  FAULTS,
  type FakeNotebook,
  fakeNotebook,
  intercept,
  NOTEBOOK_KINDS,
  withFaults,
} from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  draftOf,
  emptyJournal,
  expectExactly,
  type ManualClock,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun } from '../support/runs.js';
import { GRACE_MS, setUp } from './scene.js';

/** A scene with an id and a title that are known, and a run to deliver. */
async function withKnown(kind = {}) {
  const scene = await setUp(kind);
  await scene.add('known');
  await scene.deliverAll();
  return { ...scene, run: await scene.add('A') };
}

const creations = ({ writes }: FakeNotebook): number => writes.filter((write) => write === 'createExperiment').length;

test('a creation that takes effect after its connection was cut is found, not repeated', async () => {
  const { run, fail, attempt, deliverAll, notebook, journal, count } = await withKnown();
  const before = creations(notebook);
  await fail(run, { createExperiment: 'dropped' });
  // It is not there yet, which proves nothing within the grace period.
  await expect(attempt(run)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment(`labfeed ${(await journal.outbox.load(run)).reference}`);
  await deliverAll();
  expect(count('A')).toBe(1);
  expect(creations(notebook)).toBe(before);
});

test('a creation that appears during the search is not missed, even if the search ends after the grace period', async () => {
  const { run, fail, attempt, deliverAll, notebook, journal, clock, count } = await withKnown();
  await fail(run, { createExperiment: 'dropped' });
  const title = `labfeed ${(await journal.outbox.load(run)).reference}`;
  let reads = 0;
  const slow = intercept<Notebook>(notebook, async ({ operation, carryOut }) => {
    const result = carryOut();
    // Just after the first id was found missing, the late creation gets it and the grace period ends.
    if (operation === 'readExperiment' && reads++ === 0) {
      await result.catch(() => undefined);
      notebook.addExperiment(title, 1);
      clock.advance(GRACE_MS);
    }
    return result;
  });
  await expect(attempt(run, slow)).rejects.toBeInstanceOf(NotYetError);
  await deliverAll();
  expect([count('A'), count(title)]).toEqual([1, 0]);
});

test('a creation that never took effect is repeated after the grace period', async () => {
  const { run, fail, deliverAll, clock, count } = await withKnown();
  await fail(run, { createExperiment: 'dropped' });
  const before = clock.now();
  await deliverAll();
  expect(clock.now() - before).toBeGreaterThanOrEqual(GRACE_MS);
  expect(count('A')).toBe(1);
});

for (const kind of NOTEBOOK_KINDS)
  test(`a repeated creation whose id cannot be recorded is not repeated again (${JSON.stringify(kind)})`, async () => {
    const scene = await withKnown(kind);
    const { run, fail, deliverAll, notebook, clock, journal, context } = scene;
    await fail(run, { createExperiment: 'dropped' });
    clock.advance(5 * GRACE_MS);
    const record: typeof journal.outbox.record = async (id, change) => {
      if (change.kind === 'created') throw new Error('the disk is full');
      return journal.outbox.record(id, change);
    };
    const outbox = { ...context.outbox, record };
    await expect(deliver(await journal.outbox.load(run), { ...context, outbox })).rejects.toThrow('the disk is full');
    const created = creations(notebook);
    await deliverAll();
    expect(creations(notebook)).toBe(created);
    scene.expectExactly(['known', 'A']);
  });

test('a 404 from anything other than the notebook does not prove that a creation never took effect', async () => {
  const { run, fail, attempt, deliverAll, notebook, clock, count } = await withKnown();
  await fail(run, { createExperiment: 'lost' });
  clock.advance(GRACE_MS);
  const nothing = new NotebookError('conflict', 'no backend', { status: 404 });
  const proxy = withFaults<Notebook>(notebook, { readExperiment: nothing, listKeys: nothing });
  await expect(attempt(run, proxy)).rejects.toThrow('no backend');
  await deliverAll();
  expect(count('A')).toBe(1);
});

test('a refused creation is not reconciled: the next attempt creates', async () => {
  const { add, fail, attempt, journal, expectExactly } = await setUp();
  const run = await add('A');
  await fail(run, { createExperiment: 'busy' });
  expect((await journal.outbox.load(run)).step).toBe('pending');
  await attempt(run);
  expectExactly(['A']);
});

test.each(NOTEBOOK_KINDS)(
  'the very first creation, of unknown outcome, is found below the next one and used (%j)',
  async (kind) => {
    const { add, fail, deliverAll, expectExactly } = await setUp(kind);
    await fail(await add('A'), { createExperiment: 'lost' });
    await add('B');
    await deliverAll();
    expectExactly(['A', 'B']);
  },
);

/** On a notebook that drops titles, before this is known: A's id was not read back, the outcome of B is unknown. */
async function lostBeforeTitlesAreKnown() {
  const scene = await setUp({ keepsTitle: false });
  await scene.fail(await scene.add('A'), { readExperiment: 'unreachable' });
  const b = await scene.add('B');
  await scene.fail(b, { createExperiment: 'lost' });
  scene.clock.advance(GRACE_MS);
  return { ...scene, b };
}

test('an experiment that could not be recognised is used even if another run meanwhile learns what ours look like', async () => {
  const { add, attempt, deliverAll, b, expectExactly } = await lostBeforeTitlesAreKnown();
  const c = await add('C');
  await Promise.all([attempt(b), attempt(c)]);
  await add('D');
  await deliverAll();
  expectExactly(['A', 'B', 'C', 'D']);
});

test('two creations of unknown outcome of one run, from before titles were known, are both used', async () => {
  const { add, fail, deliverAll, notebook, b, expectExactly } = await lostBeforeTitlesAreKnown();
  await fail(b, { createExperiment: 'lost' });
  expect(notebook.experiments.size).toBe(3);
  await add('C');
  await deliverAll();
  expectExactly(['A', 'B', 'C']);
});

test('a run with several creations of unknown outcome adopts one only after the grace period of the last', async () => {
  const { add, fail, attempt, deliverAll, notebook, b, expectExactly } = await lostBeforeTitlesAreKnown();
  await fail(b, { createExperiment: 'dropped' });
  await attempt(1);
  await expect(attempt(b)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment('Untitled', 1);
  await add('C');
  await deliverAll();
  expectExactly(['A', 'B', 'C']);
});

test.each([1, 2, 3, 4, 5, 6])(
  'what another run learns during a reconciliation does not change its result (at read %i of the facts)',
  async (at) => {
    const scene = await setUp({ keepsTitle: false });
    const { add, fail, attempt, deliverAll, notebook, journal, context, clock } = scene;
    const [a, b, c] = [await add('A'), await add('B'), await add('C')];
    // A: unknown outcome, no id known. B: created, but not read back. C: unknown outcome, created again, not read back.
    await fail(a, { createExperiment: 'lost' });
    await fail(b, { readExperiment: 'unreachable' });
    await fail(c, { createExperiment: 'lost' });
    clock.advance(GRACE_MS);
    const before = new Set(notebook.experiments.keys());
    const unread = intercept<Notebook>(notebook, ({ operation, args: [id], carryOut }) => {
      const isNew = notebook.experiments.has(Number(id)) && !before.has(Number(id));
      return operation === 'readExperiment' && isNew ? Promise.reject(FAULTS.unreachable.error()) : carryOut();
    });
    await expect(attempt(c, unread)).rejects.toThrow('refused');
    // While A is reconciled, B is read, which shows that titles are dropped and what a blank experiment looks like.
    let reads = 0;
    const facts = async () => {
      const known = await context.server.facts();
      if (++reads === at) await attempt(b);
      return known;
    };
    await deliver(await journal.outbox.load(a), { ...context, server: { ...context.server, facts } });
    for (const title of ['D', 'E']) await add(title);
    await deliverAll();
    scene.expectExactly(['A', 'B', 'C', 'D', 'E']);
  },
);

test('if blank experiments are interchangeable, absence is proved only after the grace period of the run that adopted one', async () => {
  const scene = await withKnown({ keepsTitle: false });
  const { run: first, add, fail, attempt, deliverAll, notebook, clock } = scene;
  await fail(first, { createExperiment: 'dropped' });
  clock.advance(GRACE_MS / 2);
  const second = await add('B');
  await fail(second, { createExperiment: 'dropped' });
  // The first run's creation appears, and the second run adopts it.
  notebook.addExperiment('Untitled', 1);
  await attempt(second);
  clock.advance(GRACE_MS / 2);
  await expect(attempt(first)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment('Untitled', 1);
  await deliverAll();
  scene.expectExactly(['known', 'A', 'B']);
});

test('a creation that appears with its title after its run has adopted a blank experiment is used by the next run', async () => {
  const scene = await withKnown({ keepsTitle: false });
  const { run: first, add, fail, attempt, deliverAll, notebook, clock, journal } = scene;
  await fail(first, { createExperiment: 'dropped' });
  const second = await add('B');
  await fail(second, { createExperiment: 'dropped' });
  notebook.addExperiment('Untitled', 1);
  await attempt(second);
  // By now the server keeps titles.
  const { reference } = await journal.outbox.load(second);
  notebook.addExperiment(`labfeed ${reference}`, 1);
  clock.advance(GRACE_MS);
  const created = creations(notebook);
  await deliverAll();
  scene.expectExactly(['known', 'A', 'B']);
  expect(creations(notebook)).toBe(created);
});

test('blank experiments of another user are not adopted, nor are more of our own than unknown outcomes', async () => {
  const { run, fail, deliverAll, notebook, journal, count } = await withKnown({ keepsTitle: false });
  await fail(run, { createExperiment: 'dropped' });
  notebook.addExperiment('Untitled', 7);
  // Two blank experiments of our account for one unknown outcome: a person created one of them.
  notebook.addExperiment('Untitled', 1);
  notebook.addExperiment('Untitled', 1);
  await deliverAll();
  expect(await journal.outbox.count()).toEqual({ done: 1, held: 1 });
  expect(count('Untitled')).toBe(3);
});

test('an id that is not above the highest known one halts delivery', async () => {
  const { run, attempt, notebook } = await withKnown();
  let created = 0;
  const restored: Notebook = { ...notebook, createExperiment: async () => 100 - ++created };
  for (let time = 0; time < 3; time++) await expect(attempt(run, restored)).rejects.toBeInstanceOf(HaltedError);
  expect(created).toBe(1);
});

/** A proxy removes the Location header. */
const withoutLocation = (notebook: FakeNotebook): FakeNotebook => ({
  ...notebook,
  async createExperiment(fields) {
    await notebook.createExperiment(fields);
    throw new NotebookError('server', 'no Location', { status: 201, outcomeUnknown: true, scope: 'run' });
  },
});

async function fileWithoutIds(clock: ManualClock, ...contents: string[]) {
  const notebook = fakeNotebook();
  const journal = await emptyJournal(clock);
  for (const content of contents) await see(journal, content);
  const context = contextOf(journal, withoutLocation(notebook), clock);
  await deliverAll(journal, context, clock);
  return { notebook, journal, context };
}

test.each([
  ['one run', ['a']],
  ['many runs', ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']],
])('a notebook that never reports ids is not filled with blank experiments: %s', async (_what, contents) => {
  const { notebook, journal } = await fileWithoutIds(manualClock(), ...contents);
  expect(notebook.experiments.size).toBe(3);
  const { halted } = await journal.outbox.server(SERVER).facts();
  expect(halted).toMatch(/does not report their ids: no Location\. .*labfeed recover --ids A-B/);
});

test('after recover, even a notebook that never reports ids gets every run once', async () => {
  const clock = manualClock();
  const { notebook, journal, context } = await fileWithoutIds(clock, 'a', 'b', 'c', 'd', 'e');
  await recoverInto(journal, notebook);
  await deliverAll(journal, context, clock);
  expectExactly(notebook, ['a', 'b', 'c', 'd', 'e']);
});

test.each([
  ['searched', false],
  ['found by its id, where the search is not supported,', true],
])('an unfinished experiment that somebody renamed is %s and gets no second one beside it', async (_, isOld) => {
  const { journal, notebook, clock, fail, context, deliverAll } = await withKnown({ dialect: 'elabftw' });
  await deliverAll();
  const renamed = newRun('C');
  const { run: lost } = await take(journal, renamed, draftOf('C', renamed));
  await fail(lost, { createExperiment: 'lost' });
  const [id = 0, entry] = [...notebook.experiments].at(-1) ?? [];
  Object.assign(entry ?? {}, { title: 'Our sample' });
  const before = creations(notebook);
  const refuse = async () => {
    throw new NotebookError('request', 'unknown search', { status: 400 });
  };
  const old = { ...notebook, searchTitles: refuse, searchBodies: refuse };
  await deliverAll({ ...contextOf(journal, isOld ? old : notebook, clock), unknown: context.unknown });
  expect(creations(notebook)).toBe(before);
  expect(entry?.title).toBe('Our sample');
  expect(await journal.outbox.count()).toEqual({ done: 2, held: 1 });
  const { answer } = await journal.requests.decide(
    { kind: 'adopt', run: lost, server: SERVER, experiment: id },
    { path: '', has: 'nothing' },
  );
  expect(answer.done).toBe(true);
  await deliverAll();
  expect(entry?.title).toBe('C');
});
