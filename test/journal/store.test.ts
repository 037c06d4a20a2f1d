import { DatabaseSync } from '@photostructure/sqlite';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createStore } from '../../src/journal/store.js';

/** A store whose syncs end when the test says so. */
function openStore() {
  const database = new DatabaseSync(':memory:');
  database.exec('CREATE TABLE notes (text TEXT)');
  onTestFinished(() => database.close());
  const syncs: { end(): void; fail(error: Error): void }[] = [];
  const sync = () => new Promise<void>((end, fail) => void syncs.push({ end, fail }));
  const store = createStore(database, () => 0, { sync });
  const write = (text: string) => () => {
    store.db.run`INSERT INTO notes VALUES (${text})`;
    return text;
  };
  const settled: string[] = [];
  const track = (work: Promise<string>): void => {
    work.then(
      (text) => settled.push(text),
      (error: Error) => settled.push(error.message),
    );
  };
  return { store, syncs, write, settled, track, texts: () => store.db.values<string>`SELECT text FROM notes` };
}

const turn = () => new Promise(setImmediate);

test('an applied change is in the database before any sync', async () => {
  const { store, syncs, write, texts } = openStore();
  expect(await store.apply(write('a'))).toBe('a');
  expect(texts()).toEqual(['a']);
  expect(syncs).toHaveLength(0);
});

test('a commit resolves only after a sync that began after it was written', async () => {
  const { store, syncs, write, settled, track } = openStore();
  track(store.commit(write('a')));
  await turn();
  track(store.commit(write('b')));
  await turn();
  expect(settled).toEqual([]);
  expect(syncs).toHaveLength(1);
  syncs[0]?.end();
  await turn();
  expect(settled).toEqual(['a']);
  expect(syncs).toHaveLength(2);
  syncs[1]?.end();
  await turn();
  expect(settled).toEqual(['a', 'b']);
});

test('after a failed sync nothing counts as durable any more', async () => {
  const { store, syncs, write, settled, track } = openStore();
  track(store.commit(write('a')));
  await turn();
  track(store.commit(write('b')));
  await turn();
  syncs[0]?.fail(new Error('EIO'));
  await turn();
  for (const text of ['c', 'd']) {
    track(store.commit(write(text)));
    await turn();
  }
  expect(settled).toEqual(Array(4).fill('cannot write the journal to disk: EIO'));
  expect(syncs).toHaveLength(1);
  expect(store.trouble()).toBe('cannot write the journal to disk: EIO');
});

test('changes that come during a sync are written together when it ends', async () => {
  const { store, syncs, write, texts, settled, track } = openStore();
  track(store.commit(write('a')));
  await turn();
  for (const text of ['b', 'c']) {
    track(store.apply(write(text)));
    await turn();
  }
  expect(texts()).toEqual(['a']);
  const run = vi.spyOn(store.db, 'run');
  syncs[0]?.end();
  await turn();
  expect(texts()).toEqual(['a', 'b', 'c']);
  expect(run.mock.calls.map(([sql]) => sql[0]).filter((sql) => sql === 'BEGIN IMMEDIATE')).toHaveLength(1);
  expect(settled).toEqual(['a', 'b', 'c']);
});

test('a change that fails leaves the others of its group, and needs no sync', async () => {
  const { store, syncs, write, texts } = openStore();
  const failing = store.commit(() => {
    store.db.run`INSERT INTO notes VALUES (${'half'})`;
    throw new Error('refused');
  });
  const applied = store.apply(write('a'));
  await expect(failing).rejects.toThrow('refused');
  await applied;
  expect(texts()).toEqual(['a']);
  expect(syncs).toHaveLength(0);
});

test('closing waits for the sync that others wait for', async () => {
  const { store, syncs, write, settled, track } = openStore();
  track(store.commit(write('a')));
  track(store.close().then(() => 'closed'));
  await turn();
  expect(settled).toEqual([]);
  syncs[0]?.end();
  await turn();
  expect(settled).toEqual(['a', 'closed']);
});

test('after a failed sync no change is written, and every caller gets the error', async () => {
  const { store, syncs, write, texts, settled, track } = openStore();
  track(store.commit(write('a')));
  await turn();
  store.check();
  syncs[0]?.fail(new Error('EIO'));
  await turn();
  track(store.apply(write('b')));
  await turn();
  expect(settled).toEqual(Array(2).fill('cannot write the journal to disk: EIO'));
  expect(texts()).toEqual(['a']);
  expect(store.check).toThrow('cannot write the journal to disk: EIO');
});
