import { expect, test } from 'vitest';
import { deliver } from '../../src/deliver/deliver.js';
import { checkRestored } from '../../src/deliver/restored.js';
import { NotebookError } from '../../src/errors.js';
import { referenceOf } from '../../src/markers.js';
import { type FakeNotebook, NOTEBOOK_KINDS } from '../support/fake-notebook.js';
import {
  contextOf,
  deliverAll,
  emptyJournal,
  expectExactly,
  FIRST_ID,
  recoverInto,
  SERVER,
  see,
} from '../support/filing.js';
import { ask, recovered, setUp } from '../support/restored-server.js';
import { sha256 } from '../support/runs.js';

for (const kind of NOTEBOOK_KINDS) {
  test(`after a restore, a notebook ${JSON.stringify(kind)} is sent nothing until recover; then new runs are filed and missing ones are held`, async () => {
    const scene = await setUp(kind);
    const { notebook, journal } = scene;
    await scene.file('a', 'b');
    const restore = notebook.snapshot();
    await scene.file('c', 'd', 'e');
    restore();
    await see(journal, 'f');
    await scene.expectHalt();
    const writes = notebook.writes.length;
    await scene.expectHalt();
    expect(notebook.writes).toHaveLength(writes);
    expect((await journal.outbox.server(SERVER).facts()).halted).toMatch(/id 103 a second time.*labfeed recover/);

    expect(await recovered(scene)).toMatchObject({ from: 103, to: 103, gone: [3, 4, 5], reopened: [] });
    expect(await journal.outbox.server(SERVER).facts()).toMatchObject({
      highest: 103,
      halted: undefined,
      restoredFrom: undefined,
    });
    await scene.file('g', 'h');
    expectExactly(notebook, ['a', 'b', 'f', 'g', 'h']);
    expect(await scene.states()).toEqual({ done: 5, held: 3 });
    // Their files are still known, so nothing is filed again without a decision.
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

test('an empty experiment of ours that now is another one is not used after recover', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await journal.outbox.server(SERVER).addSpare(await notebook.createExperiment({ title: 'labfeed 0000000000000000' }));
  await scene.file('b', 'c');
  restore();
  for (const title of ['Untitled', 'theirs', 'theirs', 'theirs']) notebook.addExperiment(title);
  await journal.outbox.server(SERVER).addSpare(FIRST_ID + 1);
  expect(await recovered(scene)).toMatchObject({ gone: [2, 3] });
  await scene.file('d');
  expect(await scene.states()).toEqual({ done: 2, held: 2 });
  expect(notebook.experiments.get(FIRST_ID + 1)).toMatchObject({ title: 'Untitled', userid: 2 });
});

test('a run in a spare that another run had created is filled in again if the restored state is older', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  const spare = await notebook.createExperiment({ title: 'labfeed 0000000000000000' });
  await scene.file('a');
  const restore = notebook.snapshot();
  await journal.outbox.server(SERVER).addSpare(spare);
  await scene.file('b', 'c');
  restore();
  await see(journal, 'd');
  await scene.expectHalt();
  expect(await recovered(scene)).toMatchObject({ gone: [3], reopened: [2] });
  await scene.file();
  expectExactly(notebook, ['a', 'b', 'd']);
});

test('a run in a spare is filled in again if the restored state has the experiment above it', async () => {
  const scene = await setUp({ keepsTitle: false });
  const { notebook, journal } = scene;
  await scene.file('a');
  const spare = await notebook.createExperiment({ title: 'labfeed 0000000000000000' });
  const unused = await notebook.createExperiment({ title: 'labfeed 0000000000000000' });
  await scene.file('b');
  const restore = notebook.snapshot();
  await journal.outbox.server(SERVER).addSpare(spare);
  await scene.file('c');
  await journal.outbox.server(SERVER).addSpare(unused);
  restore();
  expect(await recovered(scene)).toMatchObject({ gone: [], reopened: [3] });
  // A creation has to confirm the end of the ids before another spare is used.
  await scene.file('d');
  await scene.file('e');
  expectExactly(notebook, ['a', 'b', 'c', 'd', 'e']);
});

test('a run that was filled in after the clock was set back is filled in again, too', async () => {
  const scene = await setUp({ keepsTitle: false });
  const { notebook, journal, clock } = scene;
  const spare = await notebook.createExperiment({ title: 'labfeed 0000000000000000' });
  await scene.file('a');
  const restore = notebook.snapshot();
  clock.advance(-600_000);
  await journal.outbox.server(SERVER).addSpare(spare);
  await scene.file('b', 'c');
  restore();
  expect(await recovered(scene)).toMatchObject({ gone: [3], reopened: [2] });
  await scene.file();
  expectExactly(notebook, ['a', 'b']);
});

test('if the last eight experiments are gone, sending halts before the first request that writes', async () => {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a', 'b');
  const restore = notebook.snapshot();
  await scene.file('c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
  restore();
  const deps = contextOf(journal, notebook, clock);
  const start = () => checkRestored(deps);
  const writes = notebook.writes.length;
  await expect(start()).rejects.toThrow(/103 to 110, no longer exist.*labfeed recover/);
  expect(notebook.writes).toHaveLength(writes);
  await see(journal, 'k');
  await scene.expectHalt();
  expect(notebook.writes).toHaveLength(writes);
  expect((await recovered(scene)).gone).toHaveLength(8);
  await start();
  await scene.file();
  expectExactly(notebook, ['a', 'b', 'k']);
});

test('sending does not halt because people deleted the last experiments', async () => {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i');
  for (let id = FIRST_ID + 2; id <= FIRST_ID + 8; id++) notebook.experiments.delete(id);
  await checkRestored(contextOf(journal, notebook, clock));
  await scene.file('j');
  expectExactly(notebook, ['a', 'b', 'j']);
});

test('sending halts if the server assigns an id that a person gave to a run by adopt', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  await see(journal, 'b');
  const parked = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'which one?' } as const;
  await journal.outbox.record(2, parked);
  await ask(scene, { kind: 'adopt', run: 2, server: SERVER, experiment: FIRST_ID + 1 });
  await see(journal, 'c');
  const run = await journal.outbox.load(3);
  await expect(deliver(run, contextOf(journal, notebook, scene.clock))).rejects.toThrow(
    /assigned the id 102 a second time/,
  );
});

test('recover detects a restored server that the daemon has not noticed yet', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await scene.file('b', 'c', 'd', 'e', 'f', 'g', 'h', 'i');
  restore();
  expect((await recovered(scene)).gone).toHaveLength(8);
  expect((await journal.outbox.server(SERVER).facts()).highest).toBe(FIRST_ID);
  await scene.file('j');
  expectExactly(notebook, ['a', 'j']);
});

test('an interrupted reconciliation is completed by the next recover', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await scene.file('b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j');
  restore();
  const stop = new AbortController();
  const stopping = {
    range: undefined,
    signal: stop.signal,
    onProgress: (id: number) => void (id < 106 && stop.abort()),
  };
  await expect(recoverInto(journal, notebook, stopping)).rejects.toThrow();
  expect(await scene.states()).toMatchObject({ held: 5 });
  expect((await recovered(scene)).gone).toHaveLength(4);
  await scene.file('k');
  expectExactly(notebook, ['a', 'k']);
});

test('404s from a proxy that has lost its backend do not cause runs to be held', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a', 'b');
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: FIRST_ID });
  const missing = (): NotebookError => new NotebookError('conflict', 'not found', { status: 404 });
  const nowhere = (): NotebookError => new NotebookError('server', 'no backend', { status: 404 });
  let keys = 0;
  const lost: FakeNotebook = {
    ...notebook,
    readExperiment: () => Promise.reject(missing()),
    listKeys: () => (keys++ === 0 ? notebook.listKeys() : Promise.reject(nowhere())),
  };
  await expect(recoverInto(journal, lost, { range: undefined })).rejects.toThrow(/stopped early/);
  expect(await scene.states()).toEqual({ done: 2 });
  expect(await recovered(scene)).toMatchObject({ gone: [] });
  expect((await journal.outbox.server(SERVER).facts()).halted).toBeUndefined();
});

test('each run is filed once or held, whenever the restored state was saved, and no blank experiment remains', async () => {
  for (let at = 1; await savedAt(at); at++) expect(at).toBeLessThan(100);
});

/** Saves the notebook at the n-th request of deliveries, lets them end, restores the notebook and recovers. */
async function savedAt(at: number): Promise<boolean> {
  const scene = await setUp();
  const { notebook, journal, clock } = scene;
  await scene.file('a');
  let requests = 0;
  let restore: (() => void) | undefined;
  const counting = Object.fromEntries(
    Object.entries(notebook).map(([name, part]) => [
      name,
      typeof part !== 'function'
        ? part
        : async (...args: unknown[]) => {
            requests += 1;
            if (requests === at) restore = notebook.snapshot();
            return (part as (...args: unknown[]) => unknown)(...args);
          },
    ]),
  ) as unknown as FakeNotebook;
  for (const content of ['b', 'c', 'd']) await see(journal, content);
  await deliverAll(journal, contextOf(journal, counting, clock), clock);
  if (!restore) return false;
  restore();
  await see(journal, 'e');
  // If the last experiment exists, ids continue as if nothing had happened, and only a person can tell.
  const isHalted = notebook.experiments.size < 4;
  if (isHalted) await scene.expectHalt();
  else await journal.outbox.server(SERVER).learn({ halted: 'by a person', restoredFrom: FIRST_ID + 4 });
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

test('ids that were assigned to people after the restore stay theirs, and their entries are not changed', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await scene.file('b', 'c', 'd');
  restore();
  const theirs = [notebook.addExperiment('their work'), notebook.addExperiment('Untitled')];
  await see(journal, 'e');
  await scene.expectHalt();
  expect(await recovered(scene)).toMatchObject({ gone: [2, 3, 4], spares: 1, others: 2 });
  await scene.file('f');
  for (const id of theirs) {
    expect(notebook.experiments.get(id)).toMatchObject({ body: '', comments: new Map() });
    notebook.experiments.delete(id);
  }
  expectExactly(notebook, ['a', 'e', 'f']);
});

test('after a restore to before the first run, ids count from the last existing entry', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  const last = notebook.addExperiment('an old entry');
  const restore = notebook.snapshot();
  for (let n = 0; n < 20; n++) notebook.addExperiment('newer');
  await scene.file('a', 'b', 'c', 'd', 'e', 'f', 'g', 'h');
  restore();
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: FIRST_ID + 21 });
  expect((await recovered(scene)).gone).toHaveLength(8);
  expect((await journal.outbox.server(SERVER).facts()).highest).toBe(last);
  await scene.file('i');
  notebook.experiments.delete(last);
  expectExactly(notebook, ['i']);
});

test('if the newer state is restored after all, recover completes the held runs', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await scene.file('b', 'c');
  const restoreNewer = notebook.snapshot();
  restore();
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: FIRST_ID + 1 });
  expect((await recovered(scene)).gone).toEqual([2, 3]);
  restoreNewer();
  expect(await recovered(scene)).toMatchObject({ completed: 2 });
  await scene.file('b', 'c');
  expect(await scene.states()).toEqual({ done: 3 });
  expectExactly(notebook, ['a', 'b', 'c']);
});

test('recovered runs that the restored server has without their comments are listed, and empty ones are held', async () => {
  const scene = await setUp();
  const { notebook, clock } = scene;
  await scene.file('a', 'b', 'c');
  const [blank, bare, last] = [FIRST_ID, FIRST_ID + 1, FIRST_ID + 2];
  const journal = await emptyJournal(clock);
  await recoverInto(journal, notebook);
  notebook.experiments.get(bare)?.comments.clear();
  const reference = referenceOf({ instrument: 'balance', sha256: sha256('a'), copy: '', refiling: 0 });
  Object.assign(notebook.experiments.get(blank) ?? {}, {
    title: `labfeed ${reference}`,
    body: '',
    comments: new Map(),
  });
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: last + 1 });
  const result = await recoverInto(journal, notebook, { range: undefined });
  expect(result).toMatchObject({ gone: [1], reopened: [], withoutComments: [bare] });
  expect(await journal.outbox.server(SERVER).hasExperiment(blank)).toBe(true);
});

test('a refiled run is held once, and its first filing is ignored', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a');
  const restore = notebook.snapshot();
  await scene.file('b');
  await ask(scene, { kind: 'refile', run: 2 });
  await scene.file();
  restore();
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: FIRST_ID + 1 });
  expect((await recovered(scene)).gone).toEqual([2, 3]);
  expect(await scene.states()).toEqual({ done: 1, held: 1, ignored: 1 });
});

test('a range that leaves a gap does not lift the halt, and the gap is read afterwards', async () => {
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

test('an interruption after the reconciliation continues where it stopped', async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a', 'b');
  const restore = notebook.snapshot();
  await scene.file('c');
  restore();
  await see(journal, 'd');
  await scene.expectHalt();
  const stop = new AbortController();
  const stopping = {
    range: undefined,
    signal: stop.signal,
    onProgress: (id: number) => void (id > FIRST_ID + 3 && stop.abort()),
  };
  await expect(recoverInto(journal, notebook, stopping)).rejects.toThrow();
  expect((await journal.outbox.server(SERVER).facts()).halted).toContain('interrupted');
  expect(await recovered(scene)).toMatchObject({ from: FIRST_ID + 2, gone: [] });
  await scene.file();
  expectExactly(notebook, ['a', 'b', 'd']);
});

test("an experiment whose origin line a person removed is still the run's, if it has its comments", async () => {
  const scene = await setUp();
  const { notebook, journal } = scene;
  await scene.file('a', 'b');
  Object.assign(notebook.experiments.get(FIRST_ID + 1) ?? {}, { title: 'better', body: 'all new' });
  await journal.outbox.server(SERVER).learn({ halted: 'restored', restoredFrom: FIRST_ID + 1 });
  expect(await recovered(scene)).toMatchObject({ gone: [], reopened: [] });
  expect(await scene.states()).toEqual({ done: 2 });
});
