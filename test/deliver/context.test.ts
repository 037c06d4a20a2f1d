import { expect, test } from 'vitest';
import { OutcomeTimes } from '../../src/deliver/context.js';
import { manualClock } from '../support/manual-clock.js';

test('a time counts from the last note, or from the start of the process', () => {
  const clock = manualClock();
  const times = new OutcomeTimes(clock, 1000);
  clock.advance(500);
  times.note(1);
  clock.advance(300);
  expect([times.elapsedMs(1), times.elapsedMs(2)]).toEqual([300, 800]);
  times.note(1);
  expect(times.elapsedMs(1)).toBe(0);
});

test('old times are forgotten, recent ones are not', () => {
  const clock = manualClock();
  const times = new OutcomeTimes(clock, 1000);
  for (let run = 0; run < 100; run++) {
    times.note(run);
    clock.advance(100);
  }
  times.note(1000);
  // A forgotten time counts from the start of the process, which is more than enough.
  expect(times.elapsedMs(3)).toBe(10_000);
  expect(times.elapsedMs(95)).toBe(500);
});
