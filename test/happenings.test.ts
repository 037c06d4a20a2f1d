import { expect, test } from 'vitest';
import type { RunChange } from '../src/outbox.js';
import { happeningInWords } from '../src/status/history.js';

/** One of each that the journal writes down; the compiler names one that is missing. */
const CHANGES: { readonly [Kind in RunChange['kind']]: Extract<RunChange, { kind: Kind }> } = {
  intended: { kind: 'intended', server: 'https://eln', floor: 1, at: 1 },
  notCreated: { kind: 'notCreated' },
  created: { kind: 'created', experiment: 12, found: false },
  described: { kind: 'described' },
  commentIntended: { kind: 'commentIntended', n: 2, at: 1 },
  notCommented: { kind: 'notCommented', n: 2 },
  commented: { kind: 'commented', n: 2, comment: 31, found: true },
  commentRevised: { kind: 'commentRevised', n: 2 },
  commentDropped: { kind: 'commentDropped', n: 3 },
  finished: { kind: 'finished' },
  postponed: { kind: 'postponed', dueAt: 1, failure: 'server', reason: 'the notebook is away' },
  parked: { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' },
};

test('everything that happens to a run on its way is told in words, not in codes', () => {
  const told = Object.values(CHANGES).map(({ kind, ...detail }) =>
    happeningInWords({ event: kind === 'parked' ? 'rested' : kind, detail }),
  );
  expect(told).toEqual([
    'its experiment is to be created at https://eln',
    'the experiment was not created',
    'experiment 12 was created',
    'title, date, body and tags were written',
    'comment 2 is to be posted',
    'comment 2 was not posted',
    'comment 2 was found in the notebook, as 31',
    'comment 2 was changed to what the file reads as now',
    'comment 3, which the file no longer gives, is gone',
    'all of it is in the notebook',
    expect.stringMatching(/^put off until .*: the notebook is away$/),
    'held: somebody changed it',
  ]);
});

test('what people decided is told in words', () => {
  const tell = (event: string, detail?: unknown): string => happeningInWords({ event, detail });
  expect(tell('retried')).toBe('somebody had it tried again');
  expect(tell('retried', { with: 3 })).toBe('goes on together with run 3');
  expect(tell('repaired', { comments: [{ n: 2, comment: 31 }] })).toBe('posted again, since gone: comment 2');
  expect(tell('remapAsked')).toBe('somebody had its file read anew, with the mapping of that time');
  expect(tell('remapRefused', { reason: 'it is gone' })).toBe('it is gone');
  expect(tell('refiled', { as: 4 })).toBe('somebody had it filed anew, as run 4');
  expect(tell('refiled', { of: 3 })).toBe('it is run 3, filed anew');
  expect(tell('adopted', { server: 's', experiment: 9, before: null })).toBe('somebody gave it experiment 9');
  expect(tell('ignored', { was: 'held' })).toBe('somebody set it aside; it was held');
  expect(tell('erased')).toBe('its name, draft and history were erased');
  expect(tell('read', { path: '/a.csv', reason: null })).toBe('its file was read: /a.csv');
});

test('what this version does not know is shown as it is', () => {
  expect(happeningInWords({ event: 'danced', detail: { how: 'well' } })).toBe('danced {"how":"well"}');
  expect(happeningInWords({ event: 'rested', detail: { reason: 5 } })).toBe('rested {"reason":5}');
  expect(happeningInWords({ event: 'danced', detail: undefined })).toBe('danced');
});
