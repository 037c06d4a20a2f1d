import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { openReader } from '../../src/journal/reader.js';
import { openClient } from '../../src/journal/requests.js';
import type { RunChange } from '../../src/outbox.js';
import { decide, due, knows, recheck, refuse, take } from '../support/journal.js';
import { manualClock } from '../support/manual-clock.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { openTestJournal, type TestJournal } from '../support/test-journal.js';

const SERVER = 'https://eln.example.org';
const DONE: readonly RunChange[] = [
  { kind: 'intended', server: SERVER, floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'described' },
  { kind: 'commented', n: 1, comment: 7, found: false },
  { kind: 'finished' },
];
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed smith' };

/** A run whose name is in everything that the journal stores about it. */
async function fileSmith({ journal }: TestJournal, content: string, ...changes: RunChange[]): Promise<number> {
  const run = newRun(content, { path: `/data/smith-${content}.csv` });
  const added = await take(journal, run, someDraft(`smith ${content}`, ['readings of smith']));
  const id = added?.run ?? 0;
  if (changes.length > 0) await journal.outbox.record(id, ...changes);
  return id;
}

/** Whether the bytes of a text are in any of the journal's files. */
const isStored = (path: string, text: string): boolean =>
  ['', '-wal'].some((ending) => existsSync(path + ending) && readFileSync(path + ending).includes(text));

/** As the command does after the answer. */
async function scrub(path: string): Promise<boolean> {
  const client = openClient(path);
  try {
    return await client.scrub();
  } finally {
    await client.close();
  }
}

test('an erased name is in none of the files of the journal, and the content is not filed again', async () => {
  const scene = await openTestJournal();
  const { journal, path } = scene;
  const id = await fileSmith(scene, 'a', ...DONE);
  await refuse(journal, newRun('b', { path: '/data/smith-b.csv' }), new FileError('smith has no table'));
  await scene.ask({ kind: 'retry', run: id });
  expect(isStored(path, 'smith')).toBe(true);
  expect(await scene.ask({ kind: 'erase', run: id })).toEqual({
    done: true,
    text: 'run 1 is erased; its experiment 12 stays in the notebook',
  });
  expect(await scene.ask({ kind: 'erase', run: 2 })).toEqual({ done: true, text: 'run 2 is erased' });
  expect(await scrub(path)).toBe(true);
  expect(isStored(path, 'smith')).toBe(false);
  expect(await journal.outbox.count()).toEqual({ done: 1, ignored: 1 });

  // The next scan does not hash them again, nor read them under another mapping, nor store their names.
  for (const content of ['a', 'b']) {
    const run = newRun(content, { path: `/data/smith-${content}.csv`, mapping: 'm2' });
    expect(await journal.intake.unknown('balance', [run.file])).toEqual([]);
    expect(await journal.intake.unknown('balance', [{ ...run.file, mtimeNs: 5n }])).toHaveLength(1);
    expect(await knows(journal, { ...run, file: { ...run.file, mtimeNs: 5n } })).toBe(true);
    expect(await journal.intake.unknown('balance', [{ ...run.file, mtimeNs: 5n }])).toEqual([]);
    expect(await journal.intake.wasTaken('balance', { ...run.file, sha256: 'other' })).toBe(true);
  }
  expect(await recheck(journal, 'balance', 'm2')).toBe(0);
  await scrub(path);
  expect(isStored(path, 'smith')).toBe(false);
  const reader = openReader(path);
  expect(await reader.job(id)).toMatchObject({
    state: 'done',
    path: '',
    title: undefined,
    experiment: 12,
    paths: [],
    history: [{ event: 'erased' }],
    comments: [{ n: 1, text: '', comment: 7 }],
  });
  expect(await reader.files('erased', 10)).toEqual([]);
  await reader.close();
});

const REFUSED: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };

/** Whether a name is still in the journal after the run was erased. */
async function remainsAfterErase({ ask, path }: TestJournal, run: number, name: string): Promise<boolean> {
  expect(isStored(path, name)).toBe(true);
  expect(await ask({ kind: 'erase', run })).toMatchObject({ done: true });
  expect(await scrub(path)).toBe(true);
  return isStored(path, name);
}

test('the names of files that were moved are erased, also if one was hidden meanwhile', async () => {
  const scene = await openTestJournal();
  const { journal, path } = scene;
  const names = ['smith-1.csv', 'smith-2.csv'];
  const sources = names.map((name) => ({
    ...{ path: `/data/${name}`, location: `/data/${name}`, sha256: name, identity: '1:2:3', readyAt: 0 },
  }));
  const { run } = await journal.outbox.add(newRun('a', { sources }), { draft: someDraft('a') });
  await journal.outbox.record(run, ...DONE);
  const moved = { kind: 'sourceSettled', outcome: 'moved', to: '/filed/smith.csv' } as const;
  await journal.outbox.sources.record(run, { ...moved, n: 1, path: '/data/smith-1.csv' });
  const loaded = await journal.outbox.sources.load(run);
  expect(await journal.outbox.sources.begin('hide', loaded, [{ n: 2, target: '/filed/smith-2.csv' }])).toBe(true);
  expect(await scene.ask({ kind: 'erase', run })).toMatchObject({ done: true });
  expect((await journal.outbox.sources.load(run)).files).toMatchObject([{ n: 2, location: '/data/smith-2.csv' }]);
  await journal.outbox.sources.record(run, { ...moved, n: 2, path: '/data/smith-2.csv' });
  expect(await scrub(path)).toBe(true);
  expect(isStored(path, 'smith')).toBe(false);
  for (const name of names) expect(await journal.outbox.sources.hasLeft('balance', `/data/${name}`)).toBe(true);
});

test('erasing a run removes its earlier readings', async () => {
  const scene = await openTestJournal();
  const id = await fileSmith(scene, 'a', ...DONE.slice(0, -1), REFUSED);
  const again = newRun('a', { path: '/data/a.csv', mapping: 'm2' });
  await take(scene.journal, again, someDraft('read again', ['read again']));
  await scene.journal.outbox.record(id, REFUSED);
  expect(await remainsAfterErase(scene, id, 'smith')).toBe(false);
});

test('erasing a run removes its remap request and the answers to earlier requests', async () => {
  const scene = await openTestJournal();
  const { journal, path } = scene;
  const source = join(tempFolder(), 'smith.csv');
  writeFileSync(source, 'a');
  await take(journal, newRun('a', { path: source }), someDraft('A'));
  await journal.outbox.record(1, ...DONE);
  // Recently: an old answer is removed anyway.
  const client = openClient(path);
  const [asked = 0] = await client.ask([{ kind: 'remap', run: 1 }], manualClock().now());
  await decide(journal);
  expect(await client.answerTo(asked)).toMatchObject({
    done: true,
    text: expect.stringContaining('smith.csv'),
  });
  expect(await remainsAfterErase(scene, 1, 'smith')).toBe(false);
  expect(await client.answerTo(asked)).toMatchObject({ done: true, text: 'the run was erased since' });
  await client.close();
});

test('erasing a run removes its drift', async () => {
  const scene = await openTestJournal();
  const shaped = (...names: string[]) =>
    ({
      shape: { tables: [{ name: 'readings', columns: names.map((name) => ({ name })) }] },
      drift: 'warn',
      kinds: 1,
    }) as const;
  await take(scene.journal, newRun('a'), someDraft('A'), shaped('x', 'smith'));
  await take(scene.journal, newRun('b'), someDraft('B'), shaped('x'));
  await scene.journal.outbox.record(2, ...DONE);
  expect(await remainsAfterErase(scene, 2, 'smith')).toBe(false);
});

test('if copies are runs of their own, an erased run is known only at its path', async () => {
  const scene = await openTestJournal();
  const { journal, path } = scene;
  const copy = (name: string) => newRun('a', { path: name, copy: name });
  for (const name of ['/data/smith.csv', '/data/jones.csv']) await take(journal, copy(name), someDraft(name));
  await journal.outbox.record(1, ...DONE);
  expect(await scene.ask({ kind: 'erase', run: 1 })).toMatchObject({ done: true });
  await scrub(path);
  expect(isStored(path, 'smith')).toBe(false);
  expect(await knows(journal, copy('/data/smith.csv'))).toBe(true);
  expect(await knows(journal, copy('/data/jones.csv'))).toBe(true);
  expect(await knows(journal, copy('/data/brown.csv'))).toBe(false);

  expect(await scene.ask({ kind: 'refile', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await knows(journal, copy('/data/smith.csv'))).toBe(false);
  await take(journal, copy('/data/smith.csv'), someDraft('again'));
  expect(await due(journal, 1, 9)).toEqual([2, 3]);
  expect(scene.rows('SELECT count(DISTINCT reference) AS references_ FROM runs')).toEqual([{ references_: 3 }]);
});

test('a run that is being delivered or held is not erased', async () => {
  const scene = await openTestJournal();
  await fileSmith(scene, 'a');
  await fileSmith(scene, 'b', HELD);
  const before = scene.rows('SELECT * FROM runs');
  expect(await scene.ask({ kind: 'erase', run: 1 })).toMatchObject({
    done: false,
    text: expect.stringMatching(/is being delivered; only/),
  });
  expect(await scene.ask({ kind: 'erase', run: 2 })).toMatchObject({
    done: false,
    text: expect.stringMatching(/is held; first .*ignore run 2/),
  });
  expect(scene.rows('SELECT * FROM runs')).toEqual(before);
  await scene.ask({ kind: 'ignore', run: 2 });
  expect(await scene.ask({ kind: 'erase', run: 2 })).toMatchObject({ done: true });
  expect(await scene.ask({ kind: 'erase', run: 2 })).toEqual({ done: true, text: 'run 2 is already erased' });
  expect(await scene.ask({ kind: 'retry', run: 2 })).toEqual({
    done: false,
    text: 'run 2 was erased; to file it again: labfeed refile 2',
  });
});

test('the answer mentions a file that is still in the folder, without its name', async () => {
  const scene = await openTestJournal();
  const path = join(tempFolder(), 'smith.csv');
  writeFileSync(path, 'a');
  await take(scene.journal, newRun('a', { path }), someDraft('A'));
  await scene.journal.outbox.record(1, ...DONE);
  const { text } = await scene.ask({ kind: 'erase', run: 1 });
  expect(text).toContain('its file is still in the folder of balance');
  expect(text).not.toContain('smith');
});

test('an erased quarantined run can be refiled once its file is seen', async () => {
  const scene = await openTestJournal();
  const run = newRun('a');
  await refuse(scene.journal, run, new FileError('no table'));
  await scene.ask({ kind: 'erase', run: 1 });
  expect(await scene.ask({ kind: 'refile', run: 1 })).toMatchObject({
    done: true,
    text: 'run 1 will be re-read as soon as its file is seen',
  });
  expect(await scene.journal.intake.unknown('balance', [run.file])).toHaveLength(1);
  expect(await knows(scene.journal, run)).toBe(false);
  await take(scene.journal, run, someDraft('A'));
  expect(await due(scene.journal, 1, 9)).toEqual([1]);
});

test('an ignored run stays parked until it is retried: with its draft, or after its file is read again', async () => {
  const scene = await openTestJournal();
  const unread = newRun('b');
  await fileSmith(scene, 'a', HELD);
  await refuse(scene.journal, unread, new FileError('no table'));
  for (const run of [1, 2]) expect(await scene.ask({ kind: 'ignore', run })).toMatchObject({ done: true });
  expect(await scene.journal.outbox.count()).toEqual({ ignored: 2 });
  expect(await recheck(scene.journal, 'balance', 'm2')).toBe(0);
  expect(await knows(scene.journal, { ...unread, mapping: 'm2' })).toBe(true);
  expect(await scene.ask({ kind: 'ignore', run: 2 })).toMatchObject({ done: false });

  expect(await scene.ask({ kind: 'retry', run: 1 })).toMatchObject({ done: true });
  expect(await due(scene.journal, 1, 9)).toEqual([1]);
  expect(await scene.ask({ kind: 'retry', run: 2 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await scene.journal.outbox.count()).toEqual({ queued: 1, quarantined: 1 });
  expect(await knows(scene.journal, unread)).toBe(false);
});

test('ignoring a drifted run does not accept its shape; retrying it does', async () => {
  const scene = await openTestJournal();
  const shaped = (...names: string[]) =>
    ({
      shape: { tables: [{ name: 'readings', columns: names.map((name) => ({ name })) }] },
      drift: 'hold',
      kinds: 1,
    }) as const;
  await take(scene.journal, newRun('a'), someDraft('A'), shaped('x', 'y'));
  await take(scene.journal, newRun('b'), someDraft('B'), shaped('x'));
  await take(scene.journal, newRun('c'), someDraft('C'), shaped('x'));
  expect(await scene.ask({ kind: 'ignore', run: 2 })).toMatchObject({ done: true });
  expect(await scene.journal.outbox.count()).toEqual({ queued: 1, ignored: 1, held: 1 });
  expect(await scene.ask({ kind: 'retry', run: 2 })).toMatchObject({
    done: true,
    text: expect.stringContaining('1 other run held for the same drift'),
  });
  expect(await scene.journal.outbox.count()).toEqual({ queued: 3 });
});
