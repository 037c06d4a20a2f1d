import { expect, test } from 'vitest';
import { HaltedError } from '../../src/deliver/context.js';
import { prepareServer } from '../../src/deliver/reconcile.js';
import { NotebookError } from '../../src/errors.js';
import { provisionalTitle } from '../../src/markers.js';
import { type FakeNotebook, fakeNotebook } from '../support/fake-notebook.js';
import { contextOf, deliverAll, emptyJournal, expectExactly, file, SERVER, see } from '../support/filing.js';
import { manualClock } from '../support/manual-clock.js';

const asElabftw = { dialect: 'elabftw', isUnknownRun: async () => true } as const;

test('on eLabFTW, a journal that knows nothing does not send where labfeed has filed before', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const first = await emptyJournal(clock);
  await first.outbox.server(SERVER).learn({ dialect: 'elabftw' });
  await see(first, 'a');
  await deliverAll(first, contextOf(first, notebook, clock), clock);
  const journal = await emptyJournal(clock);
  const deps = contextOf(journal, notebook, clock);
  await expect(prepareServer(asElabftw, deps)).rejects.toBeInstanceOf(HaltedError);
  await expect(prepareServer(asElabftw, deps)).rejects.toMatchObject({
    message: expect.stringContaining('experiment 101 was filed by labfeed'),
    hint: expect.stringContaining('labfeed recover'),
  });
  // Of another labfeed's instruments, nothing has to be known here.
  await prepareServer({ ...asElabftw, isUnknownRun: async () => false }, deps);
});

test('a person who only writes about labfeed does not stop it, nor does a version that cannot search', async () => {
  const notebook = fakeNotebook({ dialect: 'elabftw' });
  const theirs = notebook.addExperiment('about labfeed');
  Object.assign(notebook.experiments.get(theirs) ?? {}, { body: 'labfeed ends with the sha256: of a file' });
  const journal = await emptyJournal(manualClock());
  await prepareServer(asElabftw, contextOf(journal, notebook, manualClock()));
  const older: FakeNotebook = {
    ...notebook,
    searchBodies: () => Promise.reject(new NotebookError('request', 'no', { status: 400 })),
  };
  await prepareServer(asElabftw, contextOf(journal, older, manualClock()));
  const away: FakeNotebook = {
    ...notebook,
    searchBodies: () => Promise.reject(new NotebookError('server', 'away')),
  };
  await expect(prepareServer(asElabftw, contextOf(journal, away, manualClock()))).rejects.toThrow('away');
});

test('a creation that an older journal does not know of is taken by its run, although the file is seen only later', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const journal = await file(notebook, clock, 'a');
  const newer = await emptyJournal(clock);
  for (const content of ['b', 'c']) {
    await see(newer, content);
  }
  const references = await Promise.all([1, 2].map(async (id) => (await newer.outbox.load(id)).reference));
  for (const reference of references) await notebook.createExperiment({ title: provisionalTitle(reference) });
  // One of them the journal knows as not begun, the other not at all.
  await see(journal, 'b');
  const deps = contextOf(journal, notebook, clock);
  const start = () => prepareServer({ dialect: 'v2', isUnknownRun: async () => false }, deps);
  await start();
  await start();
  await see(journal, 'c');
  const creations = notebook.writes.filter((write) => write === 'createExperiment').length;
  await deliverAll(journal, deps, clock);
  expect(notebook.writes.filter((write) => write === 'createExperiment')).toHaveLength(creations);
  expectExactly(notebook, ['a', 'b', 'c']);
});

test('a proxy that lost the notebook, and answers 404 to everything, does not make it look set back', async () => {
  const clock = manualClock();
  const notebook = fakeNotebook();
  const journal = await file(notebook, clock, ...'abcdefgh');
  const missing = new NotebookError('conflict', 'not found', { status: 404 });
  const lost: FakeNotebook = {
    ...notebook,
    readExperiment: () => Promise.reject(missing),
    listKeys: () => Promise.reject(new NotebookError('server', 'no notebook there')),
  };
  const preparation = { dialect: 'v2', isUnknownRun: async () => false } as const;
  await expect(prepareServer(preparation, contextOf(journal, lost, clock))).rejects.toThrow(
    'no notebook there',
  );
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: undefined });
  // The notebook itself says the same: then it is so.
  const setBack: FakeNotebook = { ...notebook, readExperiment: () => Promise.reject(missing) };
  await expect(prepareServer(preparation, contextOf(journal, setBack, clock))).rejects.toBeInstanceOf(
    HaltedError,
  );
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({ halted: expect.any(String) });
});
