import { expect, test } from 'vitest';
import { createLosses } from '../../src/deliver/context.js';
import { manualClock } from '../support/manual-clock.js';

test('a loss counts from when it was last noted, and one that is not known from the beginning', () => {
  const clock = manualClock();
  const losses = createLosses(clock, 1000);
  clock.advance(500);
  losses.note(1);
  clock.advance(300);
  expect([losses.sinceMs(1), losses.sinceMs(2)]).toEqual([300, 800]);
  losses.note(1);
  expect(losses.sinceMs(1)).toBe(0);
});

test('losses that are old enough are forgotten, also of runs that were set aside; recent ones never', () => {
  const clock = manualClock();
  const losses = createLosses(clock, 1000);
  for (let run = 0; run < 100; run++) {
    losses.note(run);
    clock.advance(100);
  }
  losses.note(1000);
  // As old as the process, once it is forgotten: that is longer than it has to be.
  expect(losses.sinceMs(3)).toBe(10_000);
  expect(losses.sinceMs(95)).toBe(500);
});
