import { expect, test } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { prepareServer } from '../../src/deliver/reconcile.js';
import { contextOf, expectExactly, FIRST_ID, SERVER, see } from '../support/filing.js';
import { ask, recovered, setUp } from '../support/set-back.js';
import type { SimulationOptions } from '../support/simulated-notebook.js';

const KINDS: readonly SimulationOptions[] = [{}, { keepsTitle: false }, { dialect: 'elabftw' }];

for (const kind of KINDS) {
  test(`set back, a notebook ${JSON.stringify(kind)} gets nothing more until recover; then new runs are filed, and what is gone waits for a person`, async () => {
    const scene = await setUp(kind);
    const { notebook, journal } = scene;
    await scene.file('a', 'b');
    const setBack = notebook.save();
    await scene.file('c', 'd', 'e');
    setBack();
    await see(journal, 'f');
    await scene.halts();
    const writes = notebook.writes.length;
    await scene.halts();
    expect(notebook.writes).toHaveLength(writes);
    expect((await journal.servers.server(SERVER)).halted).toMatch(/id 103 a second time.*labfeed recover/);

    expect(await recovered(scene)).toMatchObject({ from: 103, to: 103, gone: [3, 4, 5], reopened: [] });
    expect(await journal.servers.server(SERVER)).toMatchObject({
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
  const setBack = notebook.save();
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
  await journal.runs.record(2, rested);
  await ask(scene, { kind: 'adopt', run: 2, server: SERVER, experiment: FIRST_ID + 1 });
  await see(journal, 'c');
  const run = await journal.runs.open(3);
  await expect(deliver(run, contextOf(journal, notebook, scene.clock))).rejects.toThrow(
    /assigned the id 102 a second time/,
  );
});
