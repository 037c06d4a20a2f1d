import { expect, test } from 'vitest';
import { type Notebook, NotYetError, trackUnknownOutcomes } from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { prepareServer } from '../../src/deliver/server.js';
import { MAX_SKIPPED } from '../../src/deliver/window.js';
import { NotebookError } from '../../src/errors.js';
import { provisionalTitle } from '../../src/markers.js';
import { type FakeNotebook, intercept, type NotebookKind } from '../support/fake-notebook.js';
import { SERVER } from '../support/filing.js';
import { GRACE_MS, setUp } from './scene.js';

/** A scene with a known id and title, in which requests are counted and entries can be unreadable. */
async function setUpCounted(kind: NotebookKind = {}) {
  const scene = await setUp(kind);
  await scene.add('known');
  await scene.deliverAll();
  const requests: string[] = [];
  const unreadable = new Set<number>();
  const notebook = intercept<Notebook>(scene.notebook, ({ operation, args: [id], carryOut }) => {
    requests.push(operation);
    if (operation === 'readExperiment' && unreadable.has(Number(id)))
      throw new NotebookError('server', 'internal error', { status: 500 });
    return carryOut();
  });
  const context = { ...scene.context, notebook };
  return {
    ...scene,
    context,
    requests,
    unreadable,
    prepare: (other = context) =>
      prepareServer(
        { dialect: kind.dialect ?? 'v2', instruments: ['balance'], isUnknownRun: async () => false },
        other,
      ),
    attempt: (run: number) => scene.attempt(run, notebook),
    deliverAll: (other = context) => scene.deliverAll(other),
    /** A new process, which remembers nothing. */
    restarted: () => ({ ...context, unknown: trackUnknownOutcomes(scene.clock, context.server.timeoutMs) }),
    /** The titles of our experiments. */
    ours: () => [...scene.notebook.experiments.values()].filter(({ userid }) => userid === 1).map(({ title }) => title),
  };
}

/** Other people create entries; every other one is private. */
function addForeign({ addExperiment, privateIds }: FakeNotebook, count: number): void {
  for (let n = 0; n < count; n++) {
    const id = addExperiment(`entry ${n}`);
    if (n % 2 === 0) privateIds.add(id);
  }
}

/** Ids that were assigned and rolled back, or deleted. */
function skipIds({ addExperiment, experiments }: FakeNotebook, count: number): void {
  for (let n = 0; n < count; n++) experiments.delete(addExperiment('gone'));
}

test('a restart among 600 new entries of other people, half of them private, costs at most 50 requests', async () => {
  const { notebook, requests, prepare, restarted, journal } = await setUpCounted();
  addForeign(notebook, 600);
  await prepare(restarted());
  expect(requests.length).toBeLessThanOrEqual(50);
  // The end is remembered: the next start reads only what is new.
  expect((await journal.outbox.server(SERVER).facts()).highest).toBeGreaterThan(690);
  requests.length = 0;
  await prepare(restarted());
  expect(requests.length).toBeLessThanOrEqual(20);
});

test('one unknown outcome among 600 entries of other people costs at most 700 requests', async () => {
  const { add, fail, notebook, requests, prepare, restarted, deliverAll, ours } = await setUpCounted();
  await fail(await add('A'), { createExperiment: 'dropped' });
  addForeign(notebook, 600);
  const context = restarted();
  await prepare(context);
  await deliverAll(context);
  expect(requests.length).toBeLessThanOrEqual(700);
  expect(ours()).toEqual(['known', 'A']);
});

test('all unknown outcomes are settled in one pass', async () => {
  const { add, fail, notebook, requests, clock, deliverAll, ours } = await setUpCounted();
  const titles = ['A', 'B', 'C', 'D', 'E', 'F'];
  for (const [n, title] of titles.entries())
    await fail(await add(title), { createExperiment: n % 2 === 0 ? 'lost' : 'dropped' });
  addForeign(notebook, 100);
  clock.advance(GRACE_MS);
  await deliverAll();
  expect(ours().sort()).toEqual([...titles, 'known'].sort());
  // 100 entries, our three creations, 40 missing ids at the end, and what is read again before it is filled in.
  expect(requests.filter((request) => request === 'readExperiment').length).toBeLessThanOrEqual(150);
});

test.each<NotebookKind>([{}, { keepsTitle: false }])(
  'a lost creation behind a gap of 39 ids is found (%j)',
  async (kind) => {
    const { add, fail, attempt, notebook, requests, clock, deliverAll, ours } = await setUpCounted(kind);
    const run = await add('A');
    skipIds(notebook, 39);
    await fail(run, { createExperiment: 'lost' });
    // Before the grace period ends, a short walk is enough.
    await expect(attempt(run)).rejects.toBeInstanceOf(NotYetError);
    expect(requests.length).toBeLessThanOrEqual(12);
    clock.advance(GRACE_MS);
    await deliverAll();
    expect(ours().sort()).toEqual(['A', 'known']);
  },
);

test.each<NotebookKind>([{}, { keepsTitle: false }])(
  'a lost creation behind a gap of 50 ids is used by the next run (%j)',
  async (kind) => {
    const { add, fail, notebook, clock, deliverAll, journal, ours } = await setUpCounted(kind);
    const run = await add('A');
    skipIds(notebook, 50);
    await fail(run, { createExperiment: 'lost' });
    clock.advance(GRACE_MS);
    await deliverAll();
    expect(ours()).toHaveLength(3);
    expect((await journal.outbox.server(SERVER).facts()).sweep).toBeUndefined();
    await add('B');
    await deliverAll();
    expect(ours().sort()).toEqual(['A', 'B', 'known']);
  },
);

test.each<NotebookKind>([{}, { keepsTitle: false }])(
  'a lost creation behind a gap is found if another run was created after the grace period (%j)',
  async (kind) => {
    const { add, fail, notebook, clock, attempt, deliverAll, ours } = await setUpCounted(kind);
    const run = await add('A');
    skipIds(notebook, 50);
    await fail(run, { createExperiment: 'lost' });
    clock.advance(GRACE_MS);
    await attempt(await add('B'));
    await deliverAll();
    expect(ours().sort()).toEqual(['A', 'B', 'known']);
  },
);

test('a crash after the second creation of a run does not hide the first one, behind a gap', async () => {
  const { add, fail, notebook, clock, deliverAll, restarted, ours } = await setUpCounted();
  const run = await add('A');
  skipIds(notebook, 50);
  await fail(run, { createExperiment: 'lost' });
  clock.advance(GRACE_MS);
  skipIds(notebook, 50);
  await fail(run, { createExperiment: 'lost' });
  await deliverAll(restarted());
  for (const title of ['B', 'C']) await add(title);
  await deliverAll();
  expect(ours().sort()).toEqual(['A', 'B', 'C', 'known']);
});

test('an entry that cannot be read stops neither a start nor other runs; a run that may own it waits', async () => {
  const scene = await setUpCounted();
  const { add, fail, attempt, notebook, unreadable, requests, clock, prepare, deliverAll, ours } = scene;
  const run = await add('A');
  await fail(run, { createExperiment: 'lost' });
  const [own = 0] = [...notebook.experiments.keys()].slice(-1);
  unreadable.add(own);
  clock.advance(GRACE_MS);
  for (const _ of [1, 2]) await expect(prepare()).rejects.toThrow('internal error');
  await prepare();
  await expect(attempt(run)).rejects.toThrow(`it may be experiment ${own}, which cannot be read`);
  await attempt(await add('B'));
  requests.length = 0;
  await expect(attempt(run)).rejects.toBeInstanceOf(NotYetError);
  expect(requests.length).toBeLessThanOrEqual(12);
  unreadable.clear();
  await deliverAll();
  expect(ours().sort()).toEqual(['A', 'B', 'known']);
});

test('a run that may own an entry that cannot be read uses a spare with its title, and what it left is found later', async () => {
  const scene = await setUpCounted();
  const { add, fail, attempt, notebook, unreadable, clock, context, journal, deliverAll, ours } = scene;
  const run = await add('A');
  // As after `recover`: an older journal does not know the first of two creations.
  const { reference } = await journal.outbox.load(run);
  const spare = await notebook.createExperiment({ title: provisionalTitle(reference) });
  await fail(run, { createExperiment: 'lost' });
  await context.server.addSpare(spare, reference);
  const [own = 0] = [...notebook.experiments.keys()].slice(-1);
  addForeign(notebook, 1);
  unreadable.add(own);
  clock.advance(GRACE_MS);
  for (const _ of [1, 2]) await expect(attempt(run)).rejects.toThrow('internal error');
  await attempt(run);
  expect(notebook.experiments.get(spare)?.title).toBe('A');
  unreadable.clear();
  clock.advance(60_000);
  for (const title of ['B', 'C', 'D']) {
    await add(title);
    await deliverAll();
  }
  expect(ours().sort()).toEqual(['A', 'B', 'C', 'D', 'known']);
});

test('a run with several creations uses the one that was found, even if a neighbour cannot be read', async () => {
  const { add, fail, attempt, notebook, unreadable, clock, deliverAll, ours } = await setUpCounted();
  const run = await add('A');
  await fail(run, { createExperiment: 'dropped' });
  clock.advance(GRACE_MS);
  await fail(run, { createExperiment: 'lost' });
  const [own = 0] = [...notebook.experiments.keys()].slice(-1);
  addForeign(notebook, 1);
  unreadable.add(own + 1);
  clock.advance(GRACE_MS);
  for (const _ of [1, 2]) await expect(attempt(run)).rejects.toThrow('internal error');
  await attempt(run);
  expect(notebook.experiments.get(own)?.title).toBe('A');
  await add('B');
  await deliverAll();
  expect(ours().sort()).toEqual(['A', 'B', 'known']);
});

test('while a run waits for an entry that cannot be read, ids that are missing below it are not read again', async () => {
  const { add, fail, attempt, notebook, unreadable, requests, clock, deliverAll, ours } = await setUpCounted();
  const run = await add('A');
  skipIds(notebook, 30);
  await fail(run, { createExperiment: 'lost' });
  const [own = 0] = [...notebook.experiments.keys()].slice(-1);
  addForeign(notebook, 1);
  unreadable.add(own);
  clock.advance(GRACE_MS);
  const notYet = () => expect(attempt(run)).rejects.toThrow(/./);
  for (let n = 0; n < 3; n++) await notYet();
  clock.advance(60_000);
  requests.length = 0;
  await notYet();
  // Above the last one, everything is.
  expect(requests.length).toBeLessThanOrEqual(MAX_SKIPPED + 5);
  unreadable.clear();
  await deliverAll();
  expect(ours().sort()).toEqual(['A', 'known']);
});

test('one unknown outcome on eLabFTW costs at most 20 requests, a restart included', async () => {
  const scene = await setUpCounted({ dialect: 'elabftw' });
  const { add, fail, notebook, requests, prepare, restarted, deliverAll, clock, ours } = scene;
  for (const fault of ['dropped', 'lost'] as const) {
    await fail(await add(fault), { createExperiment: fault });
    addForeign(notebook, 300);
    const context = restarted();
    clock.advance(1000);
    requests.length = 0;
    await prepare(context);
    await deliverAll(context);
    const writes = 4 + requests.filter((request) => request === 'addTag').length;
    expect(requests.length - writes).toBeLessThanOrEqual(20);
  }
  expect(ours().sort()).toEqual(['dropped', 'known', 'lost']);
});

test('a search that does not find what is known to exist proves nothing: the ids are read', async () => {
  const { add, fail, context, deliverAll, requests, ours } = await setUpCounted({ dialect: 'elabftw' });
  await fail(await add('A'), { createExperiment: 'lost' });
  const blind = { ...context, notebook: { ...context.notebook, searchTitles: async () => [] } };
  await deliverAll(blind);
  expect(ours()).toEqual(['known', 'A']);
  const refused = new NotebookError('request', 'no such search', { status: 400 });
  await fail(await add('B'), { createExperiment: 'lost' });
  requests.length = 0;
  const older = { ...context, notebook: { ...context.notebook, searchTitles: () => Promise.reject(refused) } };
  await deliverAll(older);
  expect(ours()).toEqual(['known', 'A', 'B']);
  expect(requests).toContain('readExperiment');
});

test('an experiment that a reload has adopted while its creation was still unanswered is no sign of a restored server', async () => {
  const { add, context, attempt, journal, notebook, restarted, deliverAll, ours } = await setUpCounted();
  const run = await add('A');
  const slow = intercept<Notebook>(notebook, async ({ operation, carryOut }) => {
    const result = await carryOut();
    if (operation === 'createExperiment') await deliverAll(restarted());
    return result;
  });
  await deliver(await journal.outbox.load(run), { ...context, notebook: slow });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
  expect(ours()).toEqual(['known', 'A']);
  await attempt(await add('B'));
});

test('a server that starts to keep titles is noticed at the next start, once no outcome is unknown', async () => {
  const scene = await setUpCounted({ keepsTitle: false });
  const { add, fail, notebook, context, restarted, deliverAll, journal, clock } = scene;
  const keeps = async () => (await journal.outbox.server(SERVER).facts()).keepsTitle;
  await fail(await add('A'), { createExperiment: 'lost' });
  const upgraded = intercept<Notebook>(notebook, async ({ operation, args: [fields], carryOut }) => {
    const result = await carryOut();
    if (operation === 'createExperiment')
      Object.assign(notebook.experiments.get(Number(result)) ?? {}, { title: (fields as { title: string }).title });
    return result;
  });
  const next = { ...restarted(), notebook: upgraded };
  await deliver(await journal.outbox.load(await add('B')), next);
  // The blank experiment of A would no longer be recognised.
  expect(await keeps()).toBe(false);
  clock.advance(GRACE_MS);
  await deliverAll(next);
  await deliver(await journal.outbox.load(await add('C')), next);
  expect(await keeps()).toBe(true);
  expect(scene.ours().sort()).toEqual(['A', 'B', 'C', 'known']);
  await deliver(await journal.outbox.load(await add('D')), { ...context, notebook: upgraded });
});

test('a server that starts to keep titles does not make our earlier blank experiments look edited', async () => {
  const { add, fail, notebook, restarted, deliverAll, journal, clock, ours } = await setUpCounted({
    keepsTitle: false,
  });
  const run = await add('A');
  await fail(run, { patchExperiment: 'dropped' });
  notebook.keepTitles();
  const next = restarted();
  await deliver(await journal.outbox.load(await add('B')), next);
  expect((await journal.outbox.server(SERVER).facts()).keepsTitle).toBe(true);
  clock.advance(GRACE_MS);
  await deliverAll(next);
  expect(await journal.outbox.count()).toEqual({ done: 3 });
  expect(ours().sort()).toEqual(['A', 'B', 'known']);
});

test('where titles are dropped and somebody else uses the account, a blank experiment is not adopted', async () => {
  const { add, fail, notebook, clock, deliverAll, journal, ours } = await setUpCounted({ keepsTitle: false });
  await fail(await add('A'), { createExperiment: 'dropped' });
  notebook.addExperiment('written by hand', 1);
  notebook.addExperiment('Untitled', 1);
  clock.advance(GRACE_MS);
  await deliverAll();
  expect(await journal.outbox.count()).toEqual({ done: 1, held: 1 });
  // This is remembered, and does not concern a run without such candidates.
  await fail(await add('B'), { createExperiment: 'dropped' });
  clock.advance(GRACE_MS);
  await deliverAll();
  await fail(await add('C'), { createExperiment: 'dropped' });
  notebook.addExperiment('Untitled', 1);
  await deliverAll();
  expect(await journal.outbox.count()).toEqual({ done: 2, held: 2 });
  expect(ours().sort()).toEqual(['B', 'Untitled', 'Untitled', 'known', 'written by hand']);
});

test('a run that cannot be decided is not created again because another run found nothing', async () => {
  const { add, fail, notebook, clock, attempt, ours, journal } = await setUpCounted();
  const [disputed, other] = [await add('A'), await add('B')];
  await fail(disputed, { createExperiment: 'lost' });
  await fail(other, { createExperiment: 'dropped' });
  notebook.addExperiment(ours().at(-1) ?? '', 1);
  clock.advance(GRACE_MS);
  await attempt(other);
  await expect(attempt(disputed)).rejects.toThrow('too many experiments match');
  expect((await journal.outbox.load(disputed)).step).toBe('creating');
});
