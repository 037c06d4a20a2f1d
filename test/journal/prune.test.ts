import { expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { openReader } from '../../src/journal/reader.js';
import type { RunChange } from '../../src/outbox.js';
import { knows, refuse, take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { openAsked } from './asked-journal.js';

const DONE = (experiment: number): RunChange[] => [
  { kind: 'intended', server: 'https://eln.example.org', floor: 9, at: 1 },
  { kind: 'created', experiment, found: false },
  { kind: 'commented', n: 1, comment: experiment, found: false },
  { kind: 'finished' },
];
const HELD: RunChange = { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' };
const LATER = Number.MAX_SAFE_INTEGER;

test('of runs finished long ago, history, draft and texts go; what they are known by and their ids stay', async () => {
  const { journal, path, ask } = await openAsked();
  for (const content of ['done', 'open', 'held']) await take(journal, newRun(content), someDraft(content));
  await refuse(journal, newRun('refused'), new FileError('no table'));
  await refuse(journal, newRun('ignored'), new FileError('no table'));
  await journal.outbox.record(1, ...DONE(12));
  await journal.outbox.record(3, HELD);
  await ask({ kind: 'ignore', run: 5 });
  expect(await journal.outbox.prune(0, 0)).toEqual({ runs: 0, next: undefined });
  expect(await journal.outbox.prune(LATER, 0)).toEqual({ runs: 2, next: undefined });
  const reader = openReader(path);
  expect(await reader.job(1)).toMatchObject({
    state: 'done',
    path: '/data/done.csv',
    experiment: 12,
    draft: undefined,
    history: [],
    comments: [{ n: 1, text: '', comment: 12 }],
    paths: ['/data/done.csv'],
  });
  for (const id of [2, 3]) expect((await reader.job(id))?.draft).toBeDefined();
  for (const id of [2, 3, 4]) expect((await reader.job(id))?.history).not.toEqual([]);
  await reader.close();
  for (const content of ['done', 'open', 'held', 'refused', 'ignored'])
    expect(await knows(journal, newRun(content))).toBe(true);
  expect(await journal.outbox.prune(LATER, 0)).toEqual({ runs: 0, next: undefined });
});

test('it goes in small batches, each from where the last one ended', async () => {
  const { journal } = await openAsked();
  for (let n = 1; n <= 100; n++) {
    await take(journal, newRun(`r${n}`), someDraft(`r${n}`));
    await journal.outbox.record(n, ...DONE(n));
  }
  let removed = 0;
  let batches = 0;
  for (let from: number | undefined = 0; from !== undefined; batches++) {
    const { runs, next } = await journal.outbox.prune(LATER, from);
    expect(runs).toBeLessThan(50);
    removed += runs;
    from = next;
  }
  expect(removed).toBe(100);
  expect(batches).toBeGreaterThan(2);
});

test('a run of which only the hash is left is filed anew from its file', async () => {
  const { journal, ask } = await openAsked();
  await take(journal, newRun('a'), someDraft('a'));
  await journal.outbox.record(1, ...DONE(12));
  await journal.outbox.prune(LATER, 0);
  expect(await ask({ kind: 'refile', run: 1 })).toMatchObject({ done: true, rescan: 'balance' });
  expect(await knows(journal, newRun('a'))).toBe(false);
});
