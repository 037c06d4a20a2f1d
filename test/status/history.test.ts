import { expect, test } from 'vitest';
import type { RunChange } from '../../src/outbox.js';
import { describeEvent } from '../../src/status/history.js';

/** One of each kind that is part of the history; the compiler reports a missing one. */
const CHANGES: { readonly [Kind in Exclude<RunChange['kind'], 'describing'>]: Extract<RunChange, { kind: Kind }> } = {
  intended: { kind: 'intended', server: 'https://eln', floor: 1, at: 1 },
  notCreated: { kind: 'notCreated' },
  created: { kind: 'created', experiment: 12, found: false },
  described: { kind: 'described' },
  commentIntended: { kind: 'commentIntended', n: 2, at: 1 },
  notCommented: { kind: 'notCommented', n: 2 },
  commented: { kind: 'commented', n: 2, comment: 31, found: true },
  commentRevised: { kind: 'commentRevised', n: 2 },
  commentDropped: { kind: 'commentDropped', n: 3 },
  additionDropped: { kind: 'additionDropped' },
  bodyKept: { kind: 'bodyKept', reason: 'somebody changed the body' },
  finished: { kind: 'finished' },
  postponed: {
    kind: 'postponed',
    dueAt: new Date(2026, 2, 4, 14, 3).getTime(),
    failure: 'server',
    reason: 'the notebook is down',
  },
  parked: { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' },
};

const AT = new Date(2026, 2, 4, 14, 0).getTime();

const describe = (event: string, detail?: unknown): string => describeEvent({ at: AT, event, detail });

test('every step of a delivery is described in a sentence', () => {
  const sentences = Object.values(CHANGES).map(({ kind, ...detail }) =>
    // The stored name of this event is older.
    describe(kind === 'parked' ? 'rested' : kind, detail),
  );
  expect(sentences).toEqual([
    'About to create an experiment on https://eln',
    'Experiment not created',
    'Experiment 12 created',
    'Title, date, body and tags written',
    'About to post comment 2',
    'Comment 2 not posted',
    'Comment 2 found in the notebook, id 31',
    'Comment 2 updated',
    'Comment 3 removed: the file no longer contains it',
    'The body was left as it is, without plot or note: somebody changed it, or the notebook refused it',
    'The experiment stays as it is, and only comments are added: somebody changed the body',
    'Filed: everything is in the notebook',
    'Postponed until 14:03:00: the notebook is down',
    'Held: somebody changed it',
  ]);
});

test('a postponement to another day names the day', () => {
  expect(describe('postponed', { dueAt: AT + 86_400_000, reason: 'no answer' })).toBe(
    'Postponed until 2026-03-05 14:00: no answer',
  );
});

test('repeated postponements are one sentence with their number', () => {
  const detail = { dueAt: AT + 240_000, reason: 'no answer', times: 37, lastAt: AT + 180_000 };
  expect(describe('postponed', detail)).toBe(
    'Postponed 37 times since then, the last time at 14:03:00 until 14:04:00: no answer',
  );
});

test('every decision is described in a sentence', () => {
  expect(describe('retried')).toBe('Retry requested');
  expect(describe('retried', { with: 3 })).toBe('Released together with run 3');
  expect(describe('repaired', { comments: [{ n: 2, comment: 31 }] })).toBe(
    'Missing comments are posted again: comment 2',
  );
  expect(describe('remapAsked')).toBe('Update with the current mapping requested');
  expect(describe('remapRefused', { reason: 'the file is gone' })).toBe('Not updated: the file is gone');
  expect(describe('refiled', { as: 4 })).toBe('Refiled as run 4');
  expect(describe('refiled', { of: 3 })).toBe('Refiled from run 3');
  expect(describe('adopted', { server: 's', experiment: 9, before: null })).toBe('Experiment 9 adopted');
  expect(describe('recovered', { experiment: 9, comments: 1 })).toBe(
    'Recovered from the notebook: experiment 9, 1 comment',
  );
  expect(describe('setBack', { experiment: 9, became: 'released' })).toBe(
    'The notebook was restored: experiment 9 no longer exists',
  );
  expect(describe('ignored', { was: 'held' })).toBe('Ignored; was held');
  expect(describe('ignoreUndone', { became: 'held' })).toBe('No longer ignored: held again');
  expect(describe('erased')).toBe('File name, draft and history erased');
  expect(describe('read', { path: '/a.csv', reason: null })).toBe('File read: /a.csv');
});

test('an unknown event is shown as it is stored', () => {
  expect(describe('danced', { how: 'well' })).toBe('danced {"how":"well"}');
  expect(describe('rested', { reason: 5 })).toBe('rested {"reason":5}');
  expect(describe('danced')).toBe('danced');
});
