import { expect, test } from 'vitest';
import {
  type Change,
  decide,
  decideBackfill,
  type Facts,
  type RunRequest,
  type RunRow,
} from '../../src/journal/decisions.js';

const DONE: RunRow = {
  id: 7,
  instrument: 'balance',
  sha256: 'a'.repeat(64),
  copy: '',
  refiling: 0,
  path: '/data/a.csv',
  size: 1,
  step: 'done',
  parked: null,
  failure: null,
  experiment: 12,
  dueAt: 0,
  hasDraft: true,
  refiledAs: null,
  grows: false,
};

const FACTS: Facts = {
  at: 1000,
  source: { path: '/data/a.csv', has: 'itsBytes' },
  owner: undefined,
  comments: [{ n: 1, comment: 71 }],
  uploads: [{ n: 1, upload: 81 }],
  driftPeers: undefined,
  refiling: 1,
  nextRun: 20,
};

const run = (changes: Partial<RunRow>): RunRow => ({ ...DONE, ...changes });
const queued = run({ step: 'pending', experiment: null });
const sending = run({ step: 'described' });
const quarantined = run({ step: 'pending', parked: 'quarantined', failure: 'file', experiment: null });
const held = run({ step: 'created', parked: 'held', failure: 'conflict' });
const drifted = run({ step: 'pending', parked: 'held', failure: 'drift', experiment: null });
const ignored = run({ step: 'created', parked: 'ignored', failure: 'conflict' });
const refiled = run({ refiledAs: 9 });
const recovered = run({ hasDraft: false });
const erased = run({ path: '', hasDraft: false });
const gone = run({ parked: 'held', failure: 'conflict', experiment: null });

const REQUESTS: Readonly<Record<RunRequest['kind'], RunRequest>> = {
  retry: { kind: 'retry', run: 7 },
  adopt: { kind: 'adopt', run: 7, server: 's', experiment: 44 },
  refile: { kind: 'refile', run: 7 },
  remap: { kind: 'remap', run: 7 },
  ignore: { kind: 'ignore', run: 7 },
  erase: { kind: 'erase', run: 7 },
  repair: { kind: 'repair', run: 7, comments: [{ n: 1, comment: 71 }] },
};

const kindsOf = (changes: readonly Change[]): string[] => changes.map(({ kind }) => kind);

const A = 'accepted';
const R = 'refused';

/** Which request is accepted for which run. */
test.each([
  //                       retry adopt refile remap ignore erase repair
  ['queued', queued, [R, R, R, R, R, R, A]],
  ['sending', sending, [R, R, R, R, R, R, A]],
  ['done', DONE, [R, R, A, A, R, A, A]],
  ['quarantined', quarantined, [A, R, A, R, A, A, R]],
  ['held', held, [A, A, A, R, A, R, R]],
  ['held for drift', drifted, [A, A, A, R, A, R, R]],
  ['ignored', ignored, [A, R, A, R, R, A, R]],
  ['refiled', refiled, [R, R, R, R, R, A, A]],
  ['recovered', recovered, [R, R, A, R, R, A, R]],
  ['erased', erased, [R, R, A, R, R, A, R]],
  ['held because its experiment is gone', gone, [R, A, A, R, A, R, R]],
] as const)('requests for a run that is %s', (_, row, expected) => {
  const outcomes = Object.values(REQUESTS).map((request) => {
    const { answer, changes } = decide(row, request, FACTS);
    // A refused request changes nothing.
    if (!answer.done) expect(changes).toEqual([]);
    return answer.done ? A : R;
  });
  expect(outcomes).toEqual(expected);
});

test('an unknown run is refused', () => {
  expect(decide(undefined, REQUESTS.retry, FACTS)).toEqual({
    answer: { done: false, text: 'there is no run 7' },
    changes: [],
  });
});

test('a retry of all runs in a state leaves runs alone that have left it', () => {
  const only = { kind: 'retry', run: 7, only: 'held' } as const;
  expect(decide(held, only, FACTS).changes).toHaveLength(2);
  expect(decide(sending, only, FACTS)).toEqual({
    answer: { done: true, text: 'run 7 (a.csv) is no longer held' },
    changes: [],
  });
  expect(decide(gone, only, FACTS).answer).toMatchObject({ done: false, text: expect.stringContaining('refile 7') });
});

test('retry reads the file of a quarantined run again, or sends the earlier reading if the file is gone', () => {
  const again = decide(quarantined, REQUESTS.retry, FACTS);
  expect(again.answer).toEqual({
    done: true,
    text: 'run 7 (a.csv) will be re-read as soon as /data/a.csv is seen',
    rescan: 'balance',
  });
  expect(again.changes[0]).toEqual({ kind: 'set', values: { mapping: '', parked: 'quarantined' } });
  const without = decide(quarantined, REQUESTS.retry, { ...FACTS, source: { path: '', has: 'nothing' } });
  expect(without.answer.text).toBe(
    'run 7 (a.csv) starts again; none of it is in the notebook yet; its file is no longer at /data/a.csv, so the existing draft is sent',
  );
  expect(without.changes[0]).toMatchObject({ kind: 'set', values: { parked: null, dueAt: 0 } });
});

test.each([
  [held, 'continues where it stopped, and keeps experiment 12'],
  [run({ ...held, step: 'creating', experiment: null }), 'searches again for the experiment whose creation'],
])('retry of a held run says where it continues', (row, text) => {
  expect(decide(row, REQUESTS.retry, FACTS).answer.text).toContain(text);
});

test('accepting a drift lets the runs continue that are held for the same one', () => {
  const { answer, changes } = decide(drifted, REQUESTS.retry, { ...FACTS, driftPeers: [8, 9] });
  expect(answer.text).toMatch(/; 2 other runs held for the same drift continue too$/);
  expect(changes.slice(2)).toEqual([
    { kind: 'acceptShape' },
    { kind: 'set', run: 8, values: { parked: null, failure: null, reason: null } },
    { kind: 'history', run: 8, event: 'retried', detail: { with: 7 } },
    { kind: 'set', run: 9, values: { parked: null, failure: null, reason: null } },
    { kind: 'history', run: 9, event: 'retried', detail: { with: 7 } },
  ]);
  expect(kindsOf(decide(drifted, REQUESTS.ignore, { ...FACTS, driftPeers: [8] }).changes)).not.toContain('acceptShape');
});

test('adopt refuses an experiment of another run, and looks for comments before it posts them', () => {
  expect(decide(held, REQUESTS.adopt, { ...FACTS, owner: 3 }).answer.text).toBe(
    'run 7 (a.csv) cannot adopt experiment 44, which belongs to run 3',
  );
  const { changes } = decide(held, REQUESTS.adopt, FACTS);
  expect(kindsOf(changes)).toEqual(['set', 'lookForComments', 'dropSpare', 'history']);
  expect(changes[0]).toMatchObject({ values: { experiment: 44, adopted: 1, step: 'created', parked: null } });
});

test('refile replaces a parked run, leaves a done one, and reads a file again that was never read', () => {
  const reference = expect.stringMatching(/^[0-9a-f]{16}$/);
  expect(decide(DONE, REQUESTS.refile, FACTS).changes).toEqual([
    { kind: 'cancelRemap' },
    { kind: 'refile', as: 20, refiling: 1, reference },
    { kind: 'history', event: 'refiled', detail: { as: 20 } },
    { kind: 'history', run: 20, event: 'refiled', detail: { of: 7 } },
  ]);
  expect(decide(held, REQUESTS.refile, FACTS).changes[2]).toEqual({
    kind: 'set',
    values: { parked: 'ignored', reason: 'refiled as run 20' },
  });
  const unread = decide(run({ ...quarantined, hasDraft: false }), REQUESTS.refile, FACTS);
  expect(unread.answer).toMatchObject({ done: true, rescan: 'balance' });
  expect(kindsOf(unread.changes)).toEqual(['set', 'history']);
});

test.each([
  ['nothing', 'cannot be remapped: its file is no longer at /data/a.csv'],
  ['otherBytes', 'cannot be remapped: the content of /data/a.csv has changed'],
] as const)('remap is refused if there is %s at the path', (has, text) => {
  const source = { path: '/data/a.csv', has };
  expect(decide(DONE, REQUESTS.remap, { ...FACTS, source }).answer).toEqual({
    done: false,
    text: `run 7 (a.csv) ${text}; its experiment stays as it is`,
  });
});

test('erase names no file in its answer, and says what remains', () => {
  const { answer, changes } = decide(run({ refiledAs: 9 }), REQUESTS.erase, FACTS);
  expect(answer.text).toBe(
    'run 7 is erased; its experiment 12 stays in the notebook; its file is still in the folder of balance and will not be filed again unless it changes; it was refiled as run 9, which still has the file name',
  );
  expect(kindsOf(changes)).toEqual(['erase', 'history']);
  expect(decide(erased, REQUESTS.erase, FACTS)).toEqual({
    answer: { done: true, text: 'run 7 is already erased' },
    changes: [],
  });
});

test('repair wakes a run that waits, and posts only comments that still have the missing id', () => {
  expect(decide(run({ ...sending, dueAt: 5000 }), REQUESTS.repair, FACTS).changes).toEqual([
    { kind: 'set', values: { dueAt: 0 } },
  ]);
  expect(decide(sending, REQUESTS.repair, FACTS).changes).toEqual([]);
  expect(kindsOf(decide(DONE, REQUESTS.repair, FACTS).changes)).toEqual(['repostComments', 'set', 'history']);
  const since = { ...FACTS, comments: [{ n: 1, comment: 99 }] };
  expect(decide(DONE, REQUESTS.repair, since)).toEqual({
    answer: { done: true, text: 'run 7 (a.csv) is already repaired' },
    changes: [],
  });
});

test.each([
  [{ isScanned: false, files: 0, toFile: 0 }, false, 'the first scan of balance has not finished'],
  [{ isScanned: true, files: 0, toFile: 0 }, false, 'balance has no backlog that needs a decision'],
  [{ isScanned: true, files: 2, toFile: 2 }, true, 'balance: 2 files of the backlog will be filed, after'],
  [{ isScanned: true, files: 1, toFile: 0 }, true, 'balance: 1 file of the backlog skipped'],
  [{ isScanned: true, files: 3, toFile: 1 }, true, 'filed, after new files; 2 files of the backlog skipped'],
])('backfill with %o', (facts, done, text) => {
  expect(decideBackfill('balance', 'skip', facts)).toMatchObject({ done, text: expect.stringContaining(text) });
});

test('an ignored run can be put back into the state it had, and only an ignored one', () => {
  const undo = { kind: 'ignore', run: 7, undo: true } as const;
  const parked = (row: RunRow) => decide(row, undo, FACTS).changes.find(({ kind }) => kind === 'set');
  expect(parked(ignored)).toEqual({ kind: 'set', values: { parked: 'held' } });
  expect(parked({ ...ignored, failure: 'drift' })).toEqual({ kind: 'set', values: { parked: 'held' } });
  expect(parked({ ...ignored, failure: 'file' })).toEqual({ kind: 'set', values: { parked: 'quarantined' } });
  expect(decide(DONE, undo, FACTS)).toMatchObject({ answer: { done: false }, changes: [] });
  expect(decide({ ...ignored, path: '' }, undo, FACTS)).toMatchObject({ answer: { done: false }, changes: [] });
  expect(decide({ ...ignored, refiledAs: 9 }, undo, FACTS)).toMatchObject({ answer: { done: false }, changes: [] });
  // labfeed itself has set it aside, or has not kept what came meanwhile.
  expect(decide({ ...ignored, failure: null }, undo, FACTS)).toMatchObject({ answer: { done: false }, changes: [] });
  expect(decide({ ...ignored, generation: 3 }, undo, FACTS)).toMatchObject({ answer: { done: false }, changes: [] });
});
