import { expect, test } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { prepareServer } from '../../src/deliver/reconcile.js';
import { NotebookError } from '../../src/errors.js';
import type { FakeNotebook, NotebookKind } from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  expectExactly,
  FIRST_ID,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { ask, recovered, setUp } from '../support/restored-server.js';

const KINDS: readonly NotebookKind[] = [{}, { keepsTitle: false }, { dialect: 'elabftw' }];

for (const kind of KINDS) {
  test(`set back, a notebook ${JSON.stringify(kind)} gets nothing more until recover; then new runs are filed, and what is gone waits for a person`, async () => {
    const scene = await setUp(kind);
    const { notebook, journal } = scene;
    await scene.file('a', 'b');
    const setBack = notebook.snapshot();
    await scene.file('c', 'd', 'e');
    setBack();
    await see(journal, 'f');
    await scene.halts();
    const writes = notebook.writes.length;
    await scene.halts();
    expect(notebook.writes).toHaveLength(writes);
    expect((await journal.outbox.server(SERVER).facts()).halted).toMatch(
      /id 103 a second time.*labfeed recover/,
    );

    expect(await recovered(scene)).toMatchObject({ from: 103, to: 103, gone: [3, 4, 5], reopened: [] });
    expect(await journal.outbox.server(SERVER).facts()).toMatchObject({
      highest: 103,
      halted: undefined,
      restoredFrom: undefined,
    });
    await scene.file('g', 'h');
    expectExactly(notebook, ['a', 'b', 'f', 'g', 'h']);
    expect(await scene.states()).toEqual({ done: 5, held: 3 });
    // Seen again, they are known: nothing is made again by itself.
    await scene.file('c', 'd', 'e');
    expect(await scene.states()).toEqual({ done: 5, held: 3 });

    expect(await ask(scene, { kind: 'retry', run: 4 })).toMatchObject({
      done: false,
      text: expect.stringContaining('refile 4'),
    });
    expect(await ask(scene, { kind: 'refile', run: 4 })).toMatchObject({ done: true });
    await scene.file();
    expectExactly(notebook, ['a', 'b', 'd', 'f', 'g', 'h']);
  });
}

test('where the last eight experiments are gone, it is noticed before anything is sent', async () => {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a', 'b');
  const setBack = notebook.snapshot();
  await scene.file('c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
  setBack();
  const deps = contextOf(journal, notebook, clock);
  const start = () => prepareServer({ dialect: 'v2', isUnknownRun: async () => false }, deps);
  const writes = notebook.writes.length;
  await expect(start()).rejects.toThrow(/103 to 110, are gone.*labfeed recover/);
  expect(notebook.writes).toHaveLength(writes);
  await see(journal, 'k');
  await scene.halts();
  expect(notebook.writes).toHaveLength(writes);
  expect((await recovered(scene)).gone).toHaveLength(8);
  await start();
  await scene.file();
  expectExactly(notebook, ['a', 'b', 'k']);
});

test('people who deleted the last experiments do not stop the sending', async () => {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i');
  for (let id = FIRST_ID + 2; id <= FIRST_ID + 8; id++) notebook.experiments.delete(id);
  await prepareServer(
    { dialect: 'v2', isUnknownRun: async () => false },
    contextOf(journal, notebook, clock),
  );
  await scene.file('j');
  expectExactly(notebook, ['a', 'b', 'j']);
});

test('an id that a run was given by a person, and that is given out again, stops the sending', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  await see(journal, 'b');
  const rested = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'which one?' } as const;
  await journal.outbox.record(2, rested);
  await ask(scene, { kind: 'adopt', run: 2, server: SERVER, experiment: FIRST_ID + 1 });
  await see(journal, 'c');
  const run = await journal.outbox.load(3);
  await expect(deliver(run, contextOf(journal, notebook, scene.clock))).rejects.toThrow(
    /assigned the id 102 a second time/,
  );
});

test('recover notices by itself that the notebook was set back, before the daemon has met it', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const setBack = notebook.snapshot();
  await scene.file('b', 'c', 'd', 'e', 'f', 'g', 'h', 'i');
  setBack();
  expect((await recovered(scene)).gone).toHaveLength(8);
  expect((await journal.outbox.server(SERVER).facts()).highest).toBe(FIRST_ID);
  await scene.file('j');
  expectExactly(notebook, ['a', 'j']);
});

test('broken off among the runs whose experiments are gone, it comes to the same end', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const setBack = notebook.snapshot();
  await scene.file('b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
  setBack();
  const stop = new AbortController();
  const stopping = {
    range: undefined,
    signal: stop.signal,
    progress: (id: number) => void (id < 106 && stop.abort()),
  };
  await expect(recoverInto(journal, notebook, stopping)).rejects.toThrow();
  expect(await scene.states()).toMatchObject({ held: 6 });
  expect((await recovered(scene)).gone).toHaveLength(3);
  await scene.file('k');
  expectExactly(notebook, ['a', 'k']);
});

test('404 from something that is not the notebook makes no run wait for a person', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a', 'b');
  await journal.outbox.server(SERVER).learn({ halted: 'set back', restoredFrom: FIRST_ID });
  const missing = (): NotebookError => new NotebookError('conflict', 'not found', { status: 404 });
  const nowhere = (): NotebookError => new NotebookError('server', 'no backend', { status: 404 });
  let keys = 0;
  const lost: FakeNotebook = {
    ...notebook,
    readExperiment: () => Promise.reject(missing()),
    listKeys: () => (keys++ === 0 ? notebook.listKeys() : Promise.reject(nowhere())),
  };
  await expect(recoverInto(journal, lost, { range: undefined })).rejects.toThrow(/broken off/);
  expect(await scene.states()).toEqual({ done: 2 });
  expect(await recovered(scene)).toMatchObject({ gone: [] });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

test('a notebook that was saved at any moment of a delivery, and set back to it, ends with each run once or held, and no blank', async () => {
  for (let at = 1; await savedAt(at); at++) expect(at).toBeLessThan(100);
});

/** Saves the notebook at the n-th request of deliveries, lets them end, sets it back and recovers. */
async function savedAt(at: number): Promise<boolean> {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a');
  let requests = 0;
  let setBack: (() => void) | undefined;
  const counting = Object.fromEntries(
    Object.entries(notebook).map(([name, part]) => [
      name,
      typeof part !== 'function'
        ? part
        : async (...args: unknown[]) => {
            requests += 1;
            if (requests === at) setBack = notebook.snapshot();
            return (part as (...args: unknown[]) => unknown)(...args);
          },
    ]),
  ) as unknown as FakeNotebook;
  for (const content of ['b', 'c', 'd']) await see(journal, content);
  await deliverAll(journal, contextOf(journal, counting, clock), clock);
  if (!setBack) return false;
  setBack();
  await see(journal, 'e');
  // With the last experiment in place, the ids go on as if nothing had happened; a person has to say that it did.
  const isHalted = notebook.experiments.size < 4;
  if (isHalted) await scene.halts();
  else await journal.outbox.server(SERVER).learn({ halted: 'a person says so', restoredFrom: FIRST_ID + 4 });
  const { gone } = await recovered(scene);
  await scene.file();
  const left = ['a', 'b', 'c', 'd'].filter((_, index) => !gone.includes(index + 1));
  expectExactly(notebook, [...left, 'e']);
  expect(await scene.states()).toEqual({
    done: left.length + 1,
    ...(gone.length > 0 ? { held: gone.length } : {}),
  });
  return true;
}

test('ids that people were given since are left to them, and their entries stay as they are', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const setBack = notebook.snapshot();
  await scene.file('b', 'c', 'd');
  setBack();
  const theirs = [notebook.addExperiment('their work'), notebook.addExperiment('Untitled')];
  await see(journal, 'e');
  await scene.halts();
  expect(await recovered(scene)).toMatchObject({ gone: [2, 3, 4], spares: 1, others: 2 });
  await scene.file('f');
  for (const id of theirs) {
    expect(notebook.experiments.get(id)).toMatchObject({ body: '', comments: new Map() });
    notebook.experiments.delete(id);
  }
  expectExactly(notebook, ['a', 'e', 'f']);
});

test('set back to before labfeed came, the count goes on from the last entry that is there', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  const last = notebook.addExperiment('an old entry');
  const setBack = notebook.snapshot();
  for (let n = 0; n < 20; n++) notebook.addExperiment('newer');
  await scene.file('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  setBack();
  await journal.outbox.server(SERVER).learn({ halted: 'set back', restoredFrom: FIRST_ID + 21 });
  expect((await recovered(scene)).gone).toHaveLength(8);
  expect((await journal.outbox.server(SERVER).facts()).highest).toBe(last);
  await scene.file('i');
  notebook.experiments.delete(last);
  expectExactly(notebook, ['i']);
});

test('if the newer state comes back after all, recover finds the runs that were held for it', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const setBack = notebook.snapshot();
  await scene.file('b', 'c');
  const setForward = notebook.snapshot();
  setBack();
  await journal.outbox.server(SERVER).learn({ halted: 'set back', restoredFrom: FIRST_ID + 1 });
  expect((await recovered(scene)).gone).toEqual([2, 3]);
  setForward();
  expect(await recovered(scene)).toMatchObject({ completed: 2 });
  await scene.file('b', 'c');
  expect(await scene.states()).toEqual({ done: 3 });
  expectExactly(notebook, ['a', 'b', 'c']);
});

test('a run that was filed anew is not held once more when its first experiment goes', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const setBack = notebook.snapshot();
  await scene.file('b');
  await ask(scene, { kind: 'refile', run: 2 });
  await scene.file();
  setBack();
  await journal.outbox.server(SERVER).learn({ halted: 'set back', restoredFrom: FIRST_ID + 1 });
  expect((await recovered(scene)).gone).toEqual([2, 3]);
  expect(await scene.states()).toEqual({ done: 1, held: 1, ignored: 1 });
});

test('a part of the notebook does not lift the halt, and the rest is still read afterwards', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  await journal.outbox.server(SERVER).learn({ halted: 'restored' });
  const stray = notebook.addExperiment('x');
  for (let n = 0; n < 5; n++) notebook.addExperiment('y');
  await recoverInto(journal, notebook, { range: { from: stray + 2, to: stray + 5 } });
  expect(await journal.outbox.server(SERVER).facts()).toMatchObject({
    halted: 'restored',
    highest: FIRST_ID,
  });
  expect(await recovered(scene)).toMatchObject({ from: stray, to: stray + 5 });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

test('broken off after the runs were held against the notebook, it goes on where it stopped', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a', 'b');
  const setBack = notebook.snapshot();
  await scene.file('c');
  setBack();
  await see(journal, 'd');
  await scene.halts();
  const stop = new AbortController();
  const stopping = {
    range: undefined,
    signal: stop.signal,
    progress: (id: number) => void (id > FIRST_ID + 3 && stop.abort()),
  };
  await expect(recoverInto(journal, notebook, stopping)).rejects.toThrow();
  expect((await journal.outbox.server(SERVER).facts()).halted).toContain('interrupted');
  expect(await recovered(scene)).toMatchObject({ from: FIRST_ID + 2, gone: [] });
  await scene.file();
  expectExactly(notebook, ['a', 'b', 'd']);
});
