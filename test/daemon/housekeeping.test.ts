import { expect, test } from 'vitest';
import { createHousekeeping } from '../../src/daemon/works.js';
import type { Pruned } from '../../src/journal/maintenance.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

const DAY_MS = 86_400_000;

function setUp(keepMs: number | undefined, answer: (call: number) => Promise<Pruned>) {
  const clock = simulatedClock();
  const calls: { at: number; before: number; from: number }[] = [];
  const journal = {
    prune(before: number, from: number) {
      calls.push({ at: clock.monotonic(), before: clock.now() - before, from });
      return answer(calls.length);
    },
  };
  return { clock, calls, housekeeping: createHousekeeping({ journal, keepMs, clock, log: silentLog() }) };
}

test('old history is removed at the start and then daily, batch after batch with a pause between them', async () => {
  const { clock, calls, housekeeping } = setUp(30 * DAY_MS, async (call) => ({
    runs: 1,
    next: call === 1 ? 77 : undefined,
  }));
  housekeeping.start();
  await clock.run(clock.sleep(1.5 * DAY_MS));
  await housekeeping.stop();
  expect(calls.map(({ from }) => from)).toEqual([0, 77, 0]);
  const [first, second, third] = calls.map(({ at }) => at);
  expect(first).toBe(0);
  expect(second).toBeGreaterThan(0);
  expect(third).toBeGreaterThanOrEqual(DAY_MS);
  expect(calls[0]?.before).toBe(30 * DAY_MS);
});

test('a journal that cannot be written is tried again the next day', async () => {
  const { clock, calls, housekeeping } = setUp(DAY_MS, async (call) => {
    if (call === 1) throw new Error('disk full');
    return { runs: 0, next: undefined };
  });
  housekeeping.start();
  await clock.run(clock.sleep(1.5 * DAY_MS));
  await housekeeping.stop();
  expect(calls).toHaveLength(2);
});

test('where it is not known how long history is kept, nothing is removed', async () => {
  const { clock, calls, housekeeping } = setUp(undefined, async () => ({ runs: 0, next: undefined }));
  housekeeping.start();
  await clock.run(clock.sleep(3 * DAY_MS));
  await housekeeping.stop();
  expect(calls).toEqual([]);
});
