import { expect, test } from 'vitest';
import { OutcomeTimes } from '../../src/deliver/context.js';
import { manualClock } from '../support/manual-clock.js';

test('a loss counts from when it was last noted, and one that is not known from the beginning', () => {
  const clock = manualClock();
  const times = new OutcomeTimes(clock, 1000);
  clock.advance(500);
  times.note(1);
  clock.advance(300);
  expect([times.elapsedMs(1), times.elapsedMs(2)]).toEqual([300, 800]);
  times.note(1);
  expect(times.elapsedMs(1)).toBe(0);
});

test('times that are old enough are forgotten, also of runs that were set aside; recent ones never', () => {
  const clock = manualClock();
  const times = new OutcomeTimes(clock, 1000);
  for (let run = 0; run < 100; run++) {
    times.note(run);
    clock.advance(100);
  }
  times.note(1000);
  // As old as the process, once it is forgotten: that is longer than it has to be.
  expect(times.elapsedMs(3)).toBe(10_000);
  expect(times.elapsedMs(95)).toBe(500);
});
