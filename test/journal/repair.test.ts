import { expect, test } from 'vitest';
import type { RunChange } from '../../src/outbox.js';
import { due, take } from '../support/journal.js';
import { newRun, someDraft } from '../support/runs.js';
import { type AskedJournal, openAsked } from './asked-journal.js';

const SERVER = 'https://eln.example.org';
const FILED: readonly RunChange[] = [
  { kind: 'intended', server: SERVER, floor: 9, at: 1 },
  { kind: 'created', experiment: 12, found: false },
  { kind: 'described' },
  { kind: 'commentIntended', n: 1, at: 2 },
  { kind: 'commented', n: 1, comment: 71, found: false },
  { kind: 'commentIntended', n: 2, at: 3 },
  { kind: 'commented', n: 2, comment: 72, found: false },
  { kind: 'finished' },
];

async function withRun(...changes: readonly RunChange[]): Promise<AskedJournal> {
  const scene = await openAsked();
  await take(scene.journal, newRun('a'), someDraft('a', ['one', 'two']));
  if (changes.length > 0) await scene.journal.outbox.record(1, ...changes);
  return scene;
}

const missing = (n: number, comment: number) => ({ kind: 'repair', run: 1, comments: [{ n, comment }] }) as const;

test('repair opens a done run for the comment that is gone, and for no other', async () => {
  const scene = await withRun(...FILED);
  expect(await scene.ask(missing(2, 72))).toEqual({
    done: true,
    text: 'run 1 (a.csv): comment 2 on experiment 12 will be posted again',
  });
  expect(await due(scene.journal)).toEqual([1]);
  expect(await scene.journal.outbox.load(1)).toMatchObject({
    step: 'described',
    experiment: 12,
    comments: [
      { n: 1, comment: 71 },
      { n: 2, comment: undefined, intentAt: undefined, gone: 72 },
    ],
  });
  expect(scene.rows('SELECT event, detail FROM history ORDER BY id DESC LIMIT 1')).toEqual([
    { event: 'repaired', detail: '{"comments":[{"n":2,"comment":72}]}' },
  ]);
});

test('asked twice, or when the comment is there again under another id, repair changes nothing more', async () => {
  const scene = await withRun(...FILED);
  await scene.ask(missing(2, 72));
  expect(await scene.ask(missing(2, 72))).toEqual({
    done: true,
    text: 'run 1 (a.csv) is already being delivered',
  });
  await scene.journal.outbox.record(1, { kind: 'commented', n: 2, comment: 99, found: false }, { kind: 'finished' });
  expect(await scene.ask(missing(2, 72))).toEqual({ done: true, text: 'run 1 (a.csv) is already repaired' });
  expect(await due(scene.journal)).toEqual([]);
  expect((await scene.journal.outbox.load(1)).comments).toMatchObject([{ comment: 71 }, { comment: 99 }]);
});

test('a run that waits for its next attempt goes on at once; how often it failed is not forgotten', async () => {
  const postponed: RunChange = { kind: 'postponed', dueAt: 10 ** 14, failure: 'server', reason: 'away' };
  const scene = await withRun(...FILED.slice(0, 2), postponed);
  expect(await due(scene.journal, 10 ** 13, 9)).toEqual([]);
  expect(await scene.ask({ kind: 'repair', run: 1, comments: [] })).toEqual({
    done: true,
    text: 'run 1 (a.csv) continues now',
  });
  expect(await due(scene.journal, 10 ** 13, 9)).toEqual([1]);
  expect(await scene.journal.outbox.load(1)).toMatchObject({ step: 'created', attempts: 1 });
});

test('what a person has to decide is not repaired', async () => {
  const scene = await withRun(...FILED.slice(0, 3), {
    kind: 'parked',
    as: 'held',
    failure: 'conflict',
    reason: 'somebody changed it',
  });
  expect(await scene.ask(missing(1, 71))).toMatchObject({
    done: false,
    text: expect.stringMatching(/is held/),
  });
  expect(await due(scene.journal)).toEqual([]);
});

test('comments whose text the journal does not have are not repaired', async () => {
  const scene = await openAsked();
  await scene.journal.recovery.begin(SERVER);
  const { sha256 } = newRun('a').file;
  const comments = [{ id: 71, reference: '0123456789abcdef', n: 1 }];
  const filed = { server: SERVER, experiment: 12, file: 'a.csv', copies: false, comments };
  await scene.journal.recovery.take({ ...filed, instrument: 'balance', sha256 });
  expect(await scene.ask(missing(1, 71))).toMatchObject({
    done: false,
    text: expect.stringMatching(/has no draft.* refile 1$/),
  });
  expect(await due(scene.journal)).toEqual([]);
});
