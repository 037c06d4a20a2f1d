import { expect, test } from 'vitest';
import { NotYetError } from '../../src/deliver/context.js';
import { afterFailure } from '../../src/deliver/failures.js';
import { type FailureClass, NotebookError } from '../../src/errors.js';

const NOW = 1_000_000;
const tries = (attempts: number, rejections = 0) => ({ attempts, rejections });
const failed = (failure: FailureClass, details: Partial<NotebookError> = {}) =>
  new NotebookError(failure, 'said no', { ...details });

test('what a person must mend is quarantined, what a person has touched is held', () => {
  expect(afterFailure(failed('request'), tries(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'quarantined',
    failure: 'request',
  });
  expect(afterFailure(failed('file'), tries(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'quarantined',
    failure: 'file',
  });
  expect(afterFailure(failed('conflict'), tries(0), NOW)).toMatchObject({
    kind: 'parked',
    as: 'held',
    failure: 'conflict',
  });
});

test('what passes by itself is tried for ever, with growing waits, and never set aside', () => {
  for (const failure of ['auth', 'rate', 'server'] as const) {
    expect(afterFailure(failed(failure, { status: 503 }), tries(1000), NOW, () => 1)).toMatchObject({
      kind: 'postponed',
      dueAt: NOW + 5 * 60_000,
    });
  }
  expect(afterFailure(failed('rate', { retryAfterMs: 3_600_000 }), tries(0), NOW)).toMatchObject({
    dueAt: NOW + 3_600_000,
  });
});

test('a write that gets 500 in JSON is tried a few times, then quarantined; an entry that is being edited is waited for', () => {
  const own500 = failed('server', { status: 500, scope: 'run', outcomeUnknown: true });
  expect(
    [0, 1, 2, 3, 4].map((rejections) => afterFailure(own500, tries(rejections, rejections), NOW).kind),
  ).toEqual(['postponed', 'postponed', 'postponed', 'postponed', 'parked']);
  expect(afterFailure(failed('server', { status: 400, scope: 'run' }), tries(50), NOW).kind).toBe(
    'postponed',
  );
});

test('a single 500 after many outages quarantines nothing, nor does anything that is only read', () => {
  const written = failed('server', { status: 500, scope: 'run', outcomeUnknown: true });
  expect(afterFailure(written, tries(50), NOW).kind).toBe('postponed');
  const read = failed('server', { status: 500, scope: 'run' });
  expect(afterFailure(read, tries(50, 50), NOW).kind).toBe('postponed');
});

test('a grace that ends within a millisecond is waited for to its end: the journal takes whole ones only', () => {
  expect(afterFailure(new NotYetError('later', NOW + 7.25), tries(0), NOW)).toMatchObject({ dueAt: NOW + 8 });
});

test('a grace period is waited for, and a fault of our own is no verdict on the run', () => {
  expect(afterFailure(new NotYetError('later', NOW + 6.2), tries(0), NOW)).toMatchObject({
    kind: 'postponed',
    dueAt: NOW + 7,
  });
  expect(afterFailure(new TypeError('oops'), tries(0), NOW)).toMatchObject({
    kind: 'postponed',
    failure: 'server',
  });
});
