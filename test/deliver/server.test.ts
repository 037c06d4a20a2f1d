import { expect, test } from 'vitest';
import { HaltedError, type Notebook } from '../../src/deliver/context.js';
import { prepareServer } from '../../src/deliver/server.js';
import { NotebookError } from '../../src/errors.js';
import type { Journal } from '../../src/journal/journal.js';
import { type Origin, provisionalTitle } from '../../src/markers.js';
import { type FakeNotebook, fakeNotebook, withFaults } from '../support/fake-notebook.js';
import { contextOf, deliverAll, emptyJournal, expectExactly, file, SERVER, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';
import { setUp } from './scene.js';

const OTHERS_KNOWN = { dialect: 'elabftw', instruments: ['balance'], isUnknownRun: async () => false } as const;
const ELABFTW = { dialect: 'elabftw', instruments: ['balance'], isUnknownRun: async () => true } as const;

test('on eLabFTW, a new journal sends nothing to a notebook that labfeed has filed into before', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const first = await emptyJournal(clock);
  await first.outbox.server(SERVER).learn({ dialect: 'elabftw' });
  await see(first, 'a');
  await deliverAll(first, contextOf(first, notebook, clock), clock);
  const journal = await emptyJournal(clock);
  const context = contextOf(journal, notebook, clock);
  // The runs of another labfeed need not be in this journal.
  await prepareServer({ ...ELABFTW, isUnknownRun: async () => false }, context);
  await expect(prepareServer(ELABFTW, context)).rejects.toBeInstanceOf(HaltedError);
  const halted = /experiment 101 was filed by labfeed, but it is not in the journal.*labfeed recover/;
  expect((await journal.outbox.server(SERVER).facts()).halted).toMatch(halted);
  // A restart does not forget it.
  const again = prepareServer({ ...ELABFTW, isUnknownRun: async () => false }, context);
  await expect(again).rejects.toThrow(halted);
});

/** Entries of another PC with an instrument of the same name. */
function addOthers(notebook: FakeNotebook, count: number): void {
  for (let n = 0; n < count; n++) {
    const body = `<p>labfeed balance ${n}.csv sha256:${String(n).padStart(64, '0')} journal:00000000</p>`;
    Object.assign(notebook.experiments.get(notebook.addExperiment('x', 1)) ?? {}, { body });
  }
}

test('on eLabFTW, a lost journal is noticed although another PC has filed the newest entries', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const found = (texts: readonly string[]) =>
    notebook.searchBodies(texts).then((all) => [...all].sort((a, b) => b.id - a.id).slice(0, 10));
  const limited: FakeNotebook = { ...notebook, searchBodies: found };
  const start = (journal: Journal) => prepareServer(OTHERS_KNOWN, contextOf(journal, limited, clock));
  await file(notebook, clock, 'a');
  addOthers(notebook, 30);
  // It has another id than the lost one, as after the PC was set up again.
  const journal = await emptyJournal(clock);
  await start(journal);
  await see(journal, 'b');
  await start(journal);
  await see(journal, 'a');
  await expect(start(journal)).rejects.toThrow(/experiment 101 was filed by labfeed, but it is not in the journal/);
});

test('on eLabFTW, a restored journal is noticed by its id, whatever was filed since', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const journal = await file(notebook, clock, 'a');
  const body = `<p>labfeed balance b.csv sha256:${'ab'.repeat(32)} journal:${journal.outbox.id}</p>`;
  Object.assign(notebook.experiments.get(notebook.addExperiment('b', 1)) ?? {}, { body });
  addOthers(notebook, 300);
  const ours = { ...OTHERS_KNOWN, isUnknownRun: async (origin: Origin) => origin.sha256 === 'ab'.repeat(32) };
  await expect(prepareServer(ours, contextOf(journal, notebook, clock))).rejects.toThrow('older than the notebook');
});

test('an entry that mentions labfeed does not halt delivery, nor does a version without search', async () => {
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const theirs = notebook.addExperiment('about labfeed');
  Object.assign(notebook.experiments.get(theirs) ?? {}, { body: 'labfeed ends with the sha256: of a file' });
  const journal = await emptyJournal(manualClock());
  await prepareServer(ELABFTW, contextOf(journal, notebook, manualClock()));
  const older: FakeNotebook = {
    ...notebook,
    searchBodies: () => Promise.reject(new NotebookError('request', 'no', { status: 400 })),
  };
  await prepareServer(ELABFTW, contextOf(journal, older, manualClock()));
  const away: FakeNotebook = {
    ...notebook,
    searchBodies: () => Promise.reject(new NotebookError('server', 'away')),
  };
  await expect(prepareServer(ELABFTW, contextOf(journal, away, manualClock()))).rejects.toThrow('away');
});

test('an experiment that an older journal does not know is used by its run, even if the file is seen later', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const journal = await file(notebook, clock, 'a');
  const newer = await emptyJournal(clock);
  for (const content of ['b', 'c']) {
    await see(newer, content);
  }
  const references = await Promise.all([1, 2].map(async (id) => (await newer.outbox.load(id)).reference));
  for (const reference of references) await notebook.createExperiment({ title: provisionalTitle(reference) });
  // The journal knows one of the runs as pending, the other not at all.
  await see(journal, 'b');
  const context = contextOf(journal, notebook, clock);
  const start = () =>
    prepareServer({ dialect: 'v2', instruments: ['balance'], isUnknownRun: async () => false }, context);
  await start();
  await start();
  await see(journal, 'c');
  const creations = notebook.writes.filter((write) => write === 'createExperiment').length;
  await deliverAll(journal, context, clock);
  expect(notebook.writes.filter((write) => write === 'createExperiment')).toHaveLength(creations);
  expectExactly(notebook, ['a', 'b', 'c']);
});

test.each([
  [1, 1],
  [3, 0],
])(
  'a creation with state %i that the journal does not know becomes %i spares: nobody uses what a person deleted',
  async (state, spares) => {
    const clock = manualClock();
    const notebook = fakeNotebook({ dialect: 'elabftw' });
    const journal = await file(notebook, clock, 'a');
    await see(journal, 'b');
    const { reference } = await journal.outbox.load(2);
    const id = await notebook.createExperiment({ title: provisionalTitle(reference) });
    const shown = {
      ...notebook,
      readExperiment: async (n: number) => ({ ...(await notebook.readExperiment(n)), state }),
    };
    const preparation = { dialect: 'elabftw', instruments: ['balance'], isUnknownRun: async () => false } as const;
    await prepareServer(preparation, contextOf(journal, shown, clock));
    const isSpare = await journal.outbox.server(SERVER).hasExperiment(id);
    expect(Number(isSpare)).toBe(spares);
  },
);

test('an experiment of ours above the highest known id means that the journal is older than the notebook', async () => {
  const { add, attempt, notebook, context, journal } = await setUp();
  await attempt(await add('A'));
  const body = `<p>labfeed balance a &amp; b.csv sha256:${'ab'.repeat(32)}</p>`;
  const addFiled = (title: string) => {
    Object.assign(notebook.experiments.get(notebook.addExperiment(title, 1)) ?? {}, { body });
  };
  addFiled('filed by another journal');
  await prepareServer({ dialect: 'v2', instruments: ['balance'], isUnknownRun: async () => false }, context);
  addFiled('filed yesterday');
  const origins: unknown[] = [];
  const isUnknownRun = async (origin: unknown) => origins.push(origin) > 0;
  await expect(prepareServer({ dialect: 'v2', instruments: ['balance'], isUnknownRun }, context)).rejects.toThrow(
    /older than the notebook/,
  );
  expect(origins).toEqual([{ label: 'balance a & b.csv', sha256: 'ab'.repeat(32) }]);
  expect((await journal.outbox.server(SERVER).facts()).halted).toMatch(/older than the notebook.*labfeed recover/);
});

test.each(['v2', 'elabftw'] as const)('the dialect %s is detected once', async (dialect) => {
  const { context, journal } = await setUp();
  const prepare = (notebook: Notebook) =>
    prepareServer(
      { dialect: 'auto', instruments: ['balance'], isUnknownRun: async () => false },
      { ...context, notebook },
    );
  await prepare(fakeNotebook({ dialect }));
  expect((await journal.outbox.server(SERVER).facts()).dialect).toBe(dialect);
  await prepare(withFaults<Notebook>(fakeNotebook({ dialect }), { listKeys: 'unreachable' }));
});
