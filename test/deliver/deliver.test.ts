import { expect, test } from 'vitest';
import {
  type DeliveryContext,
  HaltedError,
  type Notebook,
  NotYetError,
  StoppedError,
} from '../../src/deliver/context.js';
import { deliver } from '../../src/deliver/deliver.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { prepareServer } from '../../src/deliver/reconcile.js';
import { NotebookError } from '../../src/errors.js';
import type { Journal } from '../../src/journal/journal.js';
import { commentMark } from '../../src/markers.js';
import {
  FAULTS,
  type FakeNotebook,
  fakeNotebook,
  intercept,
  type NotebookKind,
  withFaults,
} from '../support/fake-notebook.js';
import { contextOf } from '../support/filing.js';
import { due, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { memoryJournal } from '../support/memory-journal.js';
import { newRun, someDraft } from '../support/runs.js';

const SERVER = 'https://eln.example.org';
/** Twice the time-out. */
const GRACE_MS = 60_000;

async function setUp(options: NotebookKind = {}) {
  const clock = manualClock();
  const journal = memoryJournal(clock);
  const notebook = fakeNotebook(options);
  if (options.dialect) await journal.outbox.server(SERVER).learn({ dialect: options.dialect });
  return { clock, journal, notebook, deps: contextOf(journal, notebook, clock) };
}

async function add(journal: Journal, title: string, comments = ['first', 'second']): Promise<number> {
  await take(journal, newRun(title), someDraft(title, comments));
  return (await due(journal, Number.MAX_SAFE_INTEGER, 1000)).at(-1) ?? 0;
}

/** Delivers until nothing is left to do, letting time pass as the queue would. */
async function deliverAll(
  journal: Journal,
  deps: DeliveryContext,
  clock: ReturnType<typeof manualClock>,
): Promise<void> {
  for (let round = 0; round < 50; round++) {
    const [id] = await due(journal, Number.MAX_SAFE_INTEGER, 1);
    if (id === undefined) return;
    const run = await journal.outbox.load(id);
    try {
      await deliver(run, deps);
    } catch (error) {
      const change = afterFailure(error, { attempts: run.attempts, rejections: run.attempts }, clock.now());
      await journal.outbox.record(id, change);
      clock.advance(change.kind === 'postponed' ? Math.max(0, change.dueAt - clock.now()) : 0);
    }
  }
}

function expectExactly(notebook: FakeNotebook, titles: readonly string[], comments = 2): void {
  expect([...notebook.experiments.values()].map(({ title }) => title).sort()).toEqual([...titles].sort());
  for (const experiment of notebook.experiments.values()) {
    const marks = [...experiment.comments.values()].map((text) =>
      text
        .split('\n')
        .at(-1)
        ?.replace(/^labfeed \w+/, ''),
    );
    expect(marks).toEqual(Array.from({ length: comments }, (_, index) => `.${index + 1}`));
  }
}

test('a run becomes one experiment with its title, date and comments, each request sent once', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'A');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A']);
  expect([...notebook.experiments.values()][0]?.date).toBe('2026-01-02');
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment', 'postComment']);
});

class Crash extends Error {}

/** The process dies at the n-th thing it asks of notebook or journal, before or after that was carried out. */
function crashing(deps: DeliveryContext, at: number, when: 'before' | 'after') {
  let step = 0;
  const fragile =
    <A extends unknown[], R>(act: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      step += 1;
      const crash = step === at;
      if (crash && when === 'before') throw new Crash();
      const result = await act(...args);
      if (crash) throw new Crash();
      return result;
    };
  const fragileAll = <T extends object>(parts: T): T =>
    Object.fromEntries(
      Object.entries(parts).map(([name, part]) => [
        name,
        typeof part === 'function' ? fragile(part as never) : part,
      ]),
    ) as T;
  const fragileDeps: DeliveryContext = {
    ...deps,
    outbox: fragileAll({ record: deps.outbox.record }),
    server: fragileAll(deps.server),
    notebook: fragileAll(deps.notebook),
  };
  return { fragileDeps, steps: () => step };
}

const KINDS: readonly NotebookKind[] = [{}, { keepsTitle: false }, { dialect: 'elabftw' }];

for (const when of ['before', 'after'] as const) {
  for (const kind of KINDS) {
    for (const first of [false, true]) {
      const title = `${when} any step of ${first ? 'the very first run' : 'a run'} on a notebook ${JSON.stringify(kind)}`;
      test(`a crash ${title} leaves each run with exactly one experiment and exactly its comments`, () =>
        crashEverywhere(when, kind, first));
    }
  }
}

async function crashEverywhere(when: 'before' | 'after', kind: NotebookKind, first: boolean): Promise<void> {
  for (let at = 1; ; at++) {
    const { journal, notebook, deps, clock } = await setUp(kind);
    if (!first) {
      await add(journal, 'known');
      await deliverAll(journal, deps, clock);
    }
    const id = await add(journal, 'A');
    const { fragileDeps, steps } = crashing(deps, at, when);
    await deliver(await journal.outbox.load(id), fragileDeps).catch((error: unknown) => {
      if (!(error instanceof Crash)) throw error;
    });
    if (steps() < at) {
      expect(at).toBeGreaterThan(8);
      return;
    }
    const theirs = notebook.addExperiment('Untitled');
    await add(journal, 'B');
    await add(journal, 'C');
    await deliverAll(journal, deps, clock);
    expect(notebook.experiments.get(theirs)).toMatchObject({ title: 'Untitled', comments: new Map() });
    notebook.experiments.delete(theirs);
    expectExactly(notebook, [...(first ? [] : ['known']), 'A', 'B', 'C']);
  }
}

test('a creation that is carried out only after its answer was lost is found, not repeated', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'known', ['c']);
  await deliverAll(journal, deps, clock);
  const id = await add(journal, 'A');
  let lateTitle = '';
  const cut: Notebook = {
    ...notebook,
    async createExperiment({ title }) {
      lateTitle = title;
      throw new NotebookError('server', 'connection reset', { outcomeUnknown: true });
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow(
    'connection reset',
  );
  // Looked for at once: not there, and within the grace that proves nothing.
  await expect(deliver(await journal.outbox.load(id), deps)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment(lateTitle);
  await deliverAll(journal, deps, clock);
  expect([...notebook.experiments.values()].filter(({ title }) => title === 'A')).toHaveLength(1);
  expect(notebook.writes.filter((write) => write === 'createExperiment')).toHaveLength(1);
});

test('what comes while the look for it goes on is not missed, although the look ends after the grace', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'known', ['c']);
  await deliverAll(journal, deps, clock);
  const id = await add(journal, 'A');
  let late = '';
  const cut: Notebook = {
    ...notebook,
    createExperiment({ title }) {
      late = title;
      return Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true }));
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  let reads = 0;
  const slow: Notebook = {
    ...notebook,
    async readExperiment(experiment) {
      const read = notebook.readExperiment(experiment);
      reads += 1;
      // The first id was just seen to be missing when the late creation takes it, and the grace ends.
      if (reads === 1) {
        await read.catch(() => undefined);
        notebook.addExperiment(late, 1);
        clock.advance(GRACE_MS);
      }
      return read;
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: slow })).rejects.toBeInstanceOf(
    NotYetError,
  );
  await deliverAll(journal, deps, clock);
  expect(
    [...notebook.experiments.values()].filter(({ title }) => title === 'A' || title === late),
  ).toHaveLength(1);
});

test('a creation that was never carried out is made after the grace', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'known', ['c']);
  await deliverAll(journal, deps, clock);
  const id = await add(journal, 'A');
  const dead: Notebook = {
    ...notebook,
    createExperiment: () => Promise.reject(new NotebookError('server', 'timeout', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: dead })).rejects.toThrow(
    'timeout',
  );
  const before = clock.now();
  await deliverAll(journal, deps, clock);
  expect(clock.now() - before).toBeGreaterThanOrEqual(GRACE_MS);
  expect([...notebook.experiments.values()].filter(({ title }) => title === 'A')).toHaveLength(1);
});

test('404 from something that is not the notebook does not prove that a lost creation never happened', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'known', ['c']);
  await deliverAll(journal, deps, clock);
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    async createExperiment(fields) {
      await notebook.createExperiment(fields);
      throw new NotebookError('server', 'reset', { outcomeUnknown: true });
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  clock.advance(GRACE_MS);
  const nothing = () => Promise.reject(new NotebookError('conflict', 'no backend', { status: 404 }));
  const proxy: Notebook = { ...notebook, readExperiment: nothing, listKeys: nothing };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: proxy })).rejects.toThrow(
    'no backend',
  );
  await deliverAll(journal, deps, clock);
  expect([...notebook.experiments.values()].filter(({ title }) => title === 'A')).toHaveLength(1);
});

test('a refused creation is not looked for: the next attempt simply creates', async () => {
  const { journal, notebook, deps } = await setUp();
  const id = await add(journal, 'A');
  const busy: Notebook = {
    ...notebook,
    createExperiment: () => Promise.reject(new NotebookError('rate', 'slow down', { status: 429 })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: busy })).rejects.toThrow(
    'slow down',
  );
  expect((await journal.outbox.load(id)).step).toBe('pending');
  await deliver(await journal.outbox.load(id), deps);
  expectExactly(notebook, ['A']);
});

test('the very first creation on a notebook, once lost, is found below the next one and used', async () => {
  for (const kind of KINDS) {
    const { journal, notebook, deps, clock } = await setUp(kind);
    const id = await add(journal, 'A');
    const cut: Notebook = {
      ...notebook,
      async createExperiment(fields) {
        await notebook.createExperiment(fields);
        throw new NotebookError('server', 'reset', { outcomeUnknown: true });
      },
    };
    await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
    await add(journal, 'B');
    await deliverAll(journal, deps, clock);
    expectExactly(notebook, ['A', 'B']);
    expect(notebook.experiments.size).toBe(2);
  }
});

/**
 * A notebook that drops titles, which nobody knows yet: A has an id that was not read back, and B's creation was
 * carried out and lost.
 */
async function lostBeforeTitlesWereKnown() {
  const scene = await setUp({ keepsTitle: false });
  const { journal, notebook, deps, clock } = scene;
  const unreadable: Notebook = {
    ...notebook,
    readExperiment: () => Promise.reject(new NotebookError('server', 'away')),
  };
  const a = await add(journal, 'A');
  await expect(deliver(await journal.outbox.load(a), { ...deps, notebook: unreadable })).rejects.toThrow(
    'away',
  );
  const b = await add(journal, 'B');
  await expect(
    deliver(await journal.outbox.load(b), { ...deps, notebook: losing(notebook) }),
  ).rejects.toThrow('reset');
  clock.advance(GRACE_MS);
  return { ...scene, b };
}

const losing = (notebook: Notebook): Notebook => ({
  ...notebook,
  async createExperiment(fields) {
    await notebook.createExperiment(fields);
    throw new NotebookError('server', 'reset', { outcomeUnknown: true });
  },
});

test('what a look could not recognise is used, although another run makes known meanwhile what ours look like', async () => {
  const { journal, notebook, deps, clock, b } = await lostBeforeTitlesWereKnown();
  const c = await add(journal, 'C');
  const [openB, openC] = [await journal.outbox.load(b), await journal.outbox.load(c)];
  await Promise.all([deliver(openB, deps), deliver(openC, deps)]);
  await add(journal, 'D');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A', 'B', 'C', 'D']);
});

test('two creations of a run that were both lost before titles were known are both used', async () => {
  const { journal, notebook, deps, clock, b } = await lostBeforeTitlesWereKnown();
  await expect(
    deliver(await journal.outbox.load(b), { ...deps, notebook: losing(notebook) }),
  ).rejects.toThrow('reset');
  expect(notebook.experiments.size).toBe(3);
  await add(journal, 'C');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A', 'B', 'C']);
});

test.each([1, 2, 3, 4, 5, 6])(
  'what another run learns during a reconciliation does not change its result (at read %i of the facts)',
  async (at) => {
    const { journal, notebook, deps, clock } = await setUp({ keepsTitle: false });
    const attempt = async (run: number, faults: Parameters<typeof withFaults>[1]): Promise<void> => {
      const failing = { ...deps, notebook: withFaults(notebook, faults) };
      await expect(deliver(await journal.outbox.load(run), failing)).rejects.toThrow(/reset|refused/);
    };
    // A: lost before any id was known. B: created, but not read back. C: lost, created again, and not read back.
    const [a, b, c] = [await add(journal, 'A'), await add(journal, 'B'), await add(journal, 'C')];
    await attempt(a, { createExperiment: 'lost' });
    await attempt(b, { readExperiment: 'unreachable' });
    await attempt(c, { createExperiment: 'lost' });
    clock.advance(GRACE_MS);
    const before = new Set(notebook.experiments.keys());
    const unread = intercept(notebook, ({ operation, args: [id], carryOut }) => {
      const isNew = notebook.experiments.has(Number(id)) && !before.has(Number(id));
      return operation === 'readExperiment' && isNew
        ? Promise.reject(FAULTS.unreachable.error())
        : carryOut();
    });
    await expect(deliver(await journal.outbox.load(c), { ...deps, notebook: unread })).rejects.toThrow(
      'refused',
    );
    // While A is reconciled, B is read, which shows that titles are dropped and what a blank experiment looks like.
    let reads = 0;
    const facts = async () => {
      const known = await deps.server.facts();
      if (++reads === at) await deliver(await journal.outbox.load(b), deps);
      return known;
    };
    await deliver(await journal.outbox.load(a), { ...deps, server: { ...deps.server, facts } });
    for (const title of ['D', 'E']) await add(journal, title);
    await deliverAll(journal, deps, clock);
    expectExactly(notebook, ['A', 'B', 'C', 'D', 'E']);
  },
);

/** A creation that reaches the server only after its connection was cut. */
const cutOff = (notebook: Notebook): Notebook => ({
  ...notebook,
  createExperiment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
});

test('a run whose earlier creations could not be found waits for the last of them before it adopts one', async () => {
  const { journal, notebook, deps, clock, b } = await lostBeforeTitlesWereKnown();
  await expect(
    deliver(await journal.outbox.load(b), { ...deps, notebook: cutOff(notebook) }),
  ).rejects.toThrow('reset');
  await deliver(await journal.outbox.load(1), deps);
  await expect(deliver(await journal.outbox.load(b), deps)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment('Untitled', 1);
  await add(journal, 'C');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A', 'B', 'C']);
});

test('where blank experiments are interchangeable, absence is proved only after the grace period of the run that took one', async () => {
  const { journal, notebook, deps, clock } = await setUp({ keepsTitle: false });
  await add(journal, 'known');
  await deliverAll(journal, deps, clock);
  const cut = { ...deps, notebook: cutOff(notebook) };
  const first = await add(journal, 'first');
  await expect(deliver(await journal.outbox.load(first), cut)).rejects.toThrow('reset');
  clock.advance(GRACE_MS / 2);
  const second = await add(journal, 'second');
  await expect(deliver(await journal.outbox.load(second), cut)).rejects.toThrow('reset');
  // The first run's creation appears, and the second run adopts it.
  notebook.addExperiment('Untitled', 1);
  await deliver(await journal.outbox.load(second), deps);
  clock.advance(GRACE_MS / 2);
  await expect(deliver(await journal.outbox.load(first), deps)).rejects.toBeInstanceOf(NotYetError);
  notebook.addExperiment('Untitled', 1);
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['known', 'first', 'second']);
});

test("a person's own blank experiment is not taken for a lost creation, nor are more blanks than losses", async () => {
  const { journal, notebook, deps, clock } = await setUp({ keepsTitle: false });
  await add(journal, 'known');
  await deliverAll(journal, deps, clock);
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    createExperiment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  notebook.addExperiment('Untitled', 7);
  // Two blanks of the same account for one lost creation: one of them is a person's, and nobody knows which.
  notebook.addExperiment('Untitled', 1);
  notebook.addExperiment('Untitled', 1);
  await deliverAll(journal, deps, clock);
  expect(await journal.outbox.count()).toEqual({ done: 1, held: 1 });
  expect([...notebook.experiments.values()].filter(({ title }) => title === 'Untitled')).toHaveLength(3);
});

test('an id that is not above the highest one known stops the sending for good', async () => {
  const { journal, notebook, deps } = await setUp();
  const first = await add(journal, 'A');
  await deliver(await journal.outbox.load(first), deps);
  const second = await add(journal, 'B');
  let created = 0;
  const setBack: Notebook = { ...notebook, createExperiment: async () => 100 - ++created };
  for (let attempt = 0; attempt < 3; attempt++) {
    await expect(
      deliver(await journal.outbox.load(second), { ...deps, notebook: setBack }),
    ).rejects.toBeInstanceOf(HaltedError);
  }
  expect(created).toBe(1);
});

test('a comment that the notebook did not keep is posted again once the field name is right', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A', ['only']);
  const forgetful: Notebook = {
    ...notebook,
    postComment: (experiment) => notebook.postComment(experiment, ''),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: forgetful })).rejects.toThrow(
    /does not contain/,
  );
  await deliverAll(journal, deps, clock);
  const texts = [...([...notebook.experiments.values()][0]?.comments.values() ?? [])];
  expect(texts.filter((text) => text.startsWith('only'))).toHaveLength(1);
});

test('runs above our highest id that the journal does not know mean that the journal is the older one', async () => {
  const { journal, notebook, deps } = await setUp();
  const id = await add(journal, 'A');
  await deliver(await journal.outbox.load(id), deps);
  const origin = `<p>labfeed balance a &amp; b.csv sha256:${'ab'.repeat(32)}</p>`;
  const stray = notebook.addExperiment('filed yesterday', 1);
  Object.assign(notebook.experiments.get(stray) ?? {}, { body: origin });
  const asked: unknown[] = [];
  const isUnknownRun = async (found: unknown) => asked.push(found) > 0;
  await expect(prepareServer({ dialect: 'v2', isUnknownRun }, deps)).rejects.toThrow(
    /older than the notebook/,
  );
  expect(asked).toEqual([{ label: 'balance a & b.csv', sha256: 'ab'.repeat(32) }]);
  await prepareServer({ dialect: 'v2', isUnknownRun: async () => false }, deps);
});

test('a run that was begun at another notebook is held, not continued under the same id here', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    postComment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  const elsewhere = contextOf(journal, notebook, clock, { url: 'https://other.example.org' });
  await deliverAll(journal, elsewhere, clock);
  expect(await journal.outbox.count()).toEqual({ held: 1 });
  expect([...notebook.experiments.values()][0]?.comments.size).toBe(0);
});

test('auto finds out whether it speaks with eLabFTW, and remembers it', async () => {
  for (const dialect of ['v2', 'elabftw'] as const) {
    const { journal, deps } = await setUp();
    const keys = fakeNotebook({ dialect }).listKeys;
    await prepareServer(
      { dialect: 'auto', isUnknownRun: async () => false },
      { ...deps, notebook: { ...deps.notebook, listKeys: keys } },
    );
    expect((await journal.outbox.server(SERVER).facts()).dialect).toBe(dialect);
    const never = () => Promise.reject(new Error('asked again'));
    await prepareServer(
      { dialect: 'auto', isUnknownRun: async () => false },
      { ...deps, notebook: { ...deps.notebook, listKeys: never } },
    );
  }
});

test('on eLabFTW tags go to their own endpoint, and none is lost by a crash', async () => {
  const { journal, notebook, deps, clock } = await setUp({ dialect: 'elabftw' });
  await add(journal, 'A');
  await deliverAll(journal, deps, clock);
  expect([...notebook.experiments.values()][0]?.tags).toEqual(['balance']);
  expect(notebook.writes).toEqual([
    'createExperiment',
    'patchExperiment',
    'addTag',
    'postComment',
    'postComment',
  ]);
});

test('an experiment that somebody changed before labfeed filled it in is held, not overwritten', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    patchExperiment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  const [experiment] = [...notebook.experiments.values()];
  if (experiment) experiment.title = 'my own title';
  await deliverAll(journal, deps, clock);
  expect(experiment?.title).toBe('my own title');
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('an experiment that somebody deleted is held, not made again', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    patchExperiment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  notebook.experiments.clear();
  await deliverAll(journal, deps, clock);
  expect(notebook.experiments.size).toBe(0);
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('a PATCH that arrived although its answer did not is not sent again', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    async patchExperiment(experiment, changes) {
      await notebook.patchExperiment(experiment, changes);
      throw new NotebookError('server', 'reset', { outcomeUnknown: true });
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A']);
  expect(notebook.writes.filter((write) => write === 'patchExperiment')).toHaveLength(1);
});

test('a comment whose answer was lost is not posted again', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const cut: Notebook = {
    ...notebook,
    async postComment(experiment, text) {
      await notebook.postComment(experiment, text);
      throw new NotebookError('server', 'reset', { outcomeUnknown: true });
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A']);
});

test('a comment is not posted again while the list lacks one that we know of', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  let posts = 0;
  const cut: Notebook = {
    ...notebook,
    async postComment(experiment, text) {
      posts += 1;
      if (posts === 2) throw new NotebookError('server', 'reset', { outcomeUnknown: true });
      return notebook.postComment(experiment, text);
    },
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  [...notebook.experiments.values()][0]?.comments.clear();
  await deliverAll(journal, deps, clock);
  expect(await journal.outbox.count()).toEqual({ held: 1 });
});

test('a wrong field name that makes the notebook store nothing is noticed at the first comment', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  await add(journal, 'A');
  const forgetful: Notebook = {
    ...notebook,
    postComment: (experiment) => notebook.postComment(experiment, ''),
  };
  await deliverAll(journal, { ...deps, notebook: forgetful }, clock);
  expect(await journal.outbox.count()).toEqual({ quarantined: 1 });
});

test('what a person wrote that merely contains a mark is not taken for our comment', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A', ['only']);
  const cut: Notebook = {
    ...notebook,
    postComment: () => Promise.reject(new NotebookError('server', 'reset', { outcomeUnknown: true })),
  };
  await expect(deliver(await journal.outbox.load(id), { ...deps, notebook: cut })).rejects.toThrow('reset');
  const { reference } = await journal.outbox.load(id);
  const [experiment] = [...notebook.experiments.values()];
  experiment?.comments.set(1, `see ${commentMark(reference, 1)}`);
  experiment?.comments.set(2, commentMark(reference, 12));
  await deliverAll(journal, deps, clock);
  expect(experiment?.comments.size).toBe(3);
});

test('a stop between two steps leaves the run where it is, and the next start goes on from there', async () => {
  const { journal, notebook, deps, clock } = await setUp();
  const id = await add(journal, 'A');
  const stopping = new AbortController();
  const stopped: Notebook = {
    ...notebook,
    async patchExperiment(experiment, changes) {
      await notebook.patchExperiment(experiment, changes);
      stopping.abort(new StoppedError('stopping'));
    },
  };
  const context = { ...deps, notebook: stopped, stopping: stopping.signal };
  await expect(deliver(await journal.outbox.load(id), context)).rejects.toBeInstanceOf(StoppedError);
  expect((await journal.outbox.load(id)).step).toBe('described');
  await deliverAll(journal, deps, clock);
  expectExactly(notebook, ['A']);
  expect(notebook.writes).toEqual(['createExperiment', 'patchExperiment', 'postComment', 'postComment']);
});
