import fc from 'fast-check';
import { expect, onTestFinished, test, vi } from 'vitest';
import { retryAfterMs } from '../../src/notebook/errors.js';

const NOW = Date.UTC(2026, 0, 31, 12, 0, 0);
const HOUR_MS = 3_600_000;

test.each([
  ['0', 0],
  ['5', 5000],
  [' 5 ', 5000],
  ['1.5', 1500],
  ['3600', HOUR_MS],
])('%j is a wait in seconds', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test.each([
  ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
  ['Saturday, 31-Jan-26 12:00:30 GMT', 30_000],
  ['Sat Jan 31 12:00:30 2026', 30_000],
])('%j is a wait until that time', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test('a date means GMT, also on a machine with another clock', () => {
  vi.stubEnv('TZ', 'America/New_York');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(retryAfterMs('Sat Jan 31 12:00:30 2026', NOW)).toBe(30_000);
});

test.each([
  ['-5', 0],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ['3601', HOUR_MS],
  ['9'.repeat(400), HOUR_MS],
  ['Fri, 31 Dec 9999 23:59:59 GMT', HOUR_MS],
])('%j is absurd and becomes a wait that is not', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test.each([
  undefined,
  '',
  'soon',
  'in 5 minutes',
  '5 s',
  'Sat, 99 Foo 2026 12:00:30 GMT',
  '1e3',
  'NaN',
  '2026-01-31',
])('%j says nothing', (header) => {
  expect(retryAfterMs(header, NOW)).toBeUndefined();
});

test('whatever a server sends, the wait is between nothing and an hour, or not known', () => {
  const headers = fc.oneof(
    fc.string(),
    fc.double().map(String),
    fc.date().map(String),
    fc.bigInt().map(String),
  );
  fc.assert(
    fc.property(headers, fc.integer(), (header, now) => {
      const wait = retryAfterMs(header, now);
      expect(wait === undefined || (wait >= 0 && wait <= HOUR_MS)).toBe(true);
    }),
  );
});
