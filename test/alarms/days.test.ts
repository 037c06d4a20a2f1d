import { expect, test } from 'vitest';
import { isSilent } from '../../src/alarms/conditions.js';
import type { Weekday } from '../../src/config/schema.js';

const HOUR = 3_600_000;
const ZURICH = 'Europe/Zurich';
const EVERY_DAY = new Set<Weekday>([1, 2, 3, 4, 5, 6, 7]);
const WORKDAYS = new Set<Weekday>([1, 2, 3, 4, 5]);

/** Whether 24 hours on these days are over, from one local time to another. */
const after24h = (days: ReadonlySet<Weekday>, from: string, to: string): boolean =>
  isSilent({ afterMs: 24 * HOUR, days }, Date.parse(from), Date.parse(to), ZURICH);

test('without days, all time counts', () => {
  expect(after24h(EVERY_DAY, '2026-01-03T12:00:00+01:00', '2026-01-04T11:59:59+01:00')).toBe(false);
  expect(after24h(EVERY_DAY, '2026-01-03T12:00:00+01:00', '2026-01-04T12:00:00+01:00')).toBe(true);
});

test('a weekend does not count where days are mon-fri: Friday 18 o’clock is followed by Monday 18 o’clock', () => {
  const friday = '2026-01-02T18:00:00+01:00';
  expect(after24h(WORKDAYS, friday, '2026-01-05T17:59:59+01:00')).toBe(false);
  expect(after24h(WORKDAYS, friday, '2026-01-05T18:00:00+01:00')).toBe(true);
});

test('the days are those of the local clock, not of UTC', () => {
  // 23:30 UTC on Sunday is Monday half past midnight in Zurich.
  const days = new Set<Weekday>([1]);
  const from = Date.parse('2026-01-04T23:30:00Z');
  expect(isSilent({ afterMs: HOUR, days }, from, from + HOUR, ZURICH)).toBe(true);
  expect(isSilent({ afterMs: HOUR, days }, from, from + HOUR, 'UTC')).toBe(false);
});

test('a day that has 23 hours counts as 23', () => {
  const sunday = new Set<Weekday>([7]);
  const from = Date.parse('2026-03-29T00:00:00+01:00');
  const silent = (afterMs: number) => isSilent({ afterMs, days: sunday }, from, from + 100 * HOUR, ZURICH);
  expect(silent(23 * HOUR)).toBe(true);
  expect(silent(23 * HOUR + 1)).toBe(false);
});

test('a clock that was set back is no silence, and years are', () => {
  expect(after24h(EVERY_DAY, '2026-01-04T12:00:00Z', '2026-01-01T12:00:00Z')).toBe(false);
  expect(after24h(WORKDAYS, '1970-01-01T12:00:00Z', '2026-01-01T12:00:00Z')).toBe(true);
});
