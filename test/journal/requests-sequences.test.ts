import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { filesOf } from '../../src/model.js';
import type { NewRun, RunChange } from '../../src/outbox.js';
import { createMatcher } from '../../src/watch/match.js';
import { createRuns } from '../../src/watch/runs.js';
import { SERVER } from '../support/filing.js';
import { due, knows, recheck, take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { tempFolder } from '../support/temp-folder.js';
import { openTestJournal } from '../support/test-journal.js';

const filedAs = (experiment: number): RunChange[] => [
  { kind: 'intended', server: SERVER, floor: 9, at: 1 },
  { kind: 'created', experiment, found: false },
  { kind: 'described' },
  { kind: 'commented', n: 1, comment: 41, found: false },
  { kind: 'finished' },
];
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };
const REFUSED: RunChange = { kind: 'parked', as: 'quarantined', failure: 'request', reason: '422' };
const LATER = Number.MAX_SAFE_INTEGER;

function oneFile(): NewRun {
  const path = join(tempFolder(), 'a.csv');
  writeFileSync(path, 'a');
  return newRun('a', { path });
}

/** A run of a folder as it is on the disk now. */
async function folderRun(root: string): Promise<NewRun> {
  const at = join(root, 's1.D');
  const run = { folder: '*.D' };
  const matcher = createMatcher({ files: ['**/*'], ignore: [], run });
  const { signal } = new AbortController();
  const runs = createRuns({ root, run, matcher, signal, isClaimed: () => false });
  const seen = await runs.stat({ path: at, location: at, size: 0, mtimeNs: 0n, inode: 0n, parts: [] });
  if (typeof seen === 'string') expect.fail(seen);
  return newRun('', { file: await runs.identify(seen) });
}

function folderWith(...names: string[]): string {
  const root = tempFolder();
  mkdirSync(join(root, 's1.D'));
  for (const name of names) writeFileSync(join(root, 's1.D', name), name);
  return root;
}

test('a folder that lost files since it was filed is not filed again by a remap', async () => {
  const { journal, ask, rows } = await openTestJournal();
  const root = folderWith('a.csv', 'b.bin');
  await take(journal, await folderRun(root), someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  expect(await ask({ kind: 'remap', run: 1 })).toMatchObject({ done: true });
  rmSync(join(root, 's1.D', 'b.bin'));
  expect(await ask({ kind: 'remap', run: 1 })).toMatchObject({
    done: false,
    text: expect.stringContaining('no longer'),
  });
  const rest = await folderRun(root);
  expect(await journal.intake.unknown('balance', filesOf(rest.file))).toHaveLength(1);
  expect(await knows(journal, rest)).toBe(true);
  expect(await journal.intake.unknown('balance', filesOf(rest.file))).toEqual([]);
  expect(rows('SELECT id, reason FROM runs')).toEqual([
    { id: 1, reason: expect.stringContaining('some of its files are gone') },
  ]);
});

test('a folder with a changed file is a run of its own, even if the earlier run was to be remapped', async () => {
  const { journal, ask } = await openTestJournal();
  const root = folderWith('a.csv', 'b.bin');
  await take(journal, await folderRun(root), someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  await ask({ kind: 'remap', run: 1 });
  writeFileSync(join(root, 's1.D', 'b.bin'), 'B.BIN');
  expect(await knows(journal, await folderRun(root))).toBe(false);
});

test('a run that is repaired while it waits for a remap is still read again afterwards', async () => {
  const { journal, ask } = await openTestJournal();
  const run = oneFile();
  await take(journal, run, someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  await ask({ kind: 'remap', run: 1 });
  await ask({ kind: 'repair', run: 1, comments: [{ n: 1, comment: 41 }] });
  const remapped = { ...run, mapping: 'm2' };
  expect(await knows(journal, remapped)).toBe(true);
  await journal.outbox.record(1, { kind: 'commented', n: 1, comment: 50, found: false }, { kind: 'finished' });
  expect(await journal.intake.unknown('balance', [run.file])).toHaveLength(1);
  expect(await knows(journal, remapped)).toBe(false);
});

test('a run that is refiled instead of remapped leaves its file to the new run', async () => {
  const { journal, ask, rows } = await openTestJournal();
  const run = oneFile();
  await take(journal, run, someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  await ask({ kind: 'remap', run: 1 });
  await ask({ kind: 'refile', run: 1 });
  await journal.outbox.record(2, REFUSED);
  await recheck(journal, 'balance', 'm2');
  await take(journal, { ...run, mapping: 'm2' }, someDraft('two'));
  expect(rows('SELECT id, step, parked FROM runs')).toEqual([
    { id: 1, step: 'done', parked: null },
    { id: 2, step: 'pending', parked: null },
  ]);
});

test('a copy whose name was erased with an earlier filing can still be remapped', async () => {
  const { journal, ask } = await openTestJournal();
  const single = oneFile();
  const run = { ...single, copy: single.file.path };
  await take(journal, run, someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  await ask({ kind: 'refile', run: 1 });
  await ask({ kind: 'erase', run: 1 });
  await journal.outbox.record(2, ...filedAs(13));
  expect(await ask({ kind: 'remap', run: 2 })).toMatchObject({ done: true });
  expect(await knows(journal, { ...run, mapping: 'm2' })).toBe(false);
});

test('a run that waits for a remap is not pruned', async () => {
  const { journal, ask } = await openTestJournal();
  const run = oneFile();
  await take(journal, run, someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12));
  await ask({ kind: 'remap', run: 1 });
  await journal.outbox.prune(LATER, 0);
  const added = await take(journal, { ...run, mapping: 'm2' }, someDraft('two'));
  expect(added).toMatchObject({ run: 1, outcome: 'revised' });
});

test('retry reads the file of an ignored run whose draft was pruned', async () => {
  const { journal, ask } = await openTestJournal();
  await take(journal, oneFile(), someDraft('one'));
  await journal.outbox.record(1, ...filedAs(12).slice(0, 2), HELD);
  await ask({ kind: 'ignore', run: 1 });
  await journal.outbox.prune(LATER, 0);
  expect(await ask({ kind: 'retry', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await due(journal, LATER, 9)).toEqual([]);
});

test('a drifted, ignored and pruned run can be retried and refiled', async () => {
  const { journal, ask } = await openTestJournal();
  const shaped = (name: string) =>
    ({ shape: { tables: [{ name: 't', columns: [{ name }] }] }, drift: 'hold', kinds: 1 }) as const;
  await take(journal, newRun('p'), someDraft('p'), shaped('x'));
  await take(journal, oneFile(), someDraft('one'), shaped('y'));
  await ask({ kind: 'ignore', run: 2 });
  await journal.outbox.prune(LATER, 0);
  expect(await ask({ kind: 'retry', run: 2 })).toMatchObject({ done: true });
});

test('a folder that is retried twice is read again both times', async () => {
  const { journal, ask } = await openTestJournal();
  const run = await folderRun(folderWith('a.csv', 'b.bin'));
  await take(journal, run, someDraft('one'));
  await journal.outbox.record(1, REFUSED);
  for (let n = 0; n < 2; n++)
    expect((await ask({ kind: 'retry', run: 1 })).text).toContain('will be re-read as soon as');
  expect(await due(journal, LATER, 9)).toEqual([]);
});
