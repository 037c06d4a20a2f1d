import { expect, test } from 'vitest';
import { createWaiting } from '../../src/watch/activity.js';
import { manualClock } from '../support/manual-clock.js';

const START = Date.UTC(2026, 0, 1);

test('each file that waits says for what, in words that follow the clock', () => {
  const clock = manualClock(START);
  const waiting = createWaiting(clock);
  waiting.begin('/data/a.csv');
  waiting.note('/data/a.csv', { for: 'stillness', stillSinceMs: 0, quietMs: 5000, missing: undefined });
  const reason = () => waiting.list().first[0]?.reason;
  expect(reason()).toBe('still for 0 s of 5 s');
  clock.advance(2900);
  expect(reason()).toBe('still for 2 s of 5 s');
  clock.advance(60_000);
  expect(reason()).toBe('still for 5 s of 5 s');
  waiting.note('/data/a.csv', {
    for: 'stillness',
    stillSinceMs: 0,
    quietMs: 0,
    missing: 'done-file a.csv.done',
  });
  expect(reason()).toBe('no done-file a.csv.done');
  waiting.note('/data/a.csv', { for: 'its turn' });
  expect(reason()).toBe('waits for its turn to be read');
  waiting.note('/data/a.csv', { for: 'another attempt', reason: 'this user may not read it' });
  expect(reason()).toBe('cannot be taken yet: this user may not read it');
  expect(waiting.list()).toMatchObject({ files: 1, first: [{ path: '/data/a.csv', since: START }] });
  waiting.end('/data/a.csv');
  waiting.note('/data/a.csv', { for: 'its turn' });
  expect(waiting.list()).toEqual({ files: 0, first: [] });
});

test('of thousands, the first twenty by name are shown, and all are counted', () => {
  const waiting = createWaiting(manualClock());
  const paths = Array.from({ length: 5000 }, (_, n) => `/data/${(n * 7919) % 5000}.csv`);
  for (const path of paths) waiting.begin(path);
  const { files, first } = waiting.list();
  expect(files).toBe(5000);
  expect(first.map(({ path }) => path)).toEqual(paths.toSorted().slice(0, 20));
});
