import { getEventListeners } from 'node:events';
import { describe, expect, test } from 'vitest';
import { atMost, backoffMs, every, retry, systemClock } from '../src/clock.js';
import { manualClock } from './support/manual-clock.js';
import { simulatedClock } from './support/simulated-clock.js';

describe('sleep', () => {
  test.each([
    ['the system clock', systemClock],
    ['the simulated clock', simulatedClock()],
    ['the manual clock', manualClock()],
  ])('%s resolves when the signal is aborted, before or during the sleep', async (_name, clock) => {
    await clock.sleep(60_000, AbortSignal.abort());
    const during = new AbortController();
    const slept = clock.sleep(60_000, during.signal);
    during.abort();
    expect(await slept).toBeUndefined();
  });

  test('many sleeps on one signal share one listener, and all end when it is aborted', async () => {
    const stopping = new AbortController();
    const { signal } = stopping;
    const sleeps = Array.from({ length: 100 }, () => systemClock.sleep(60_000, signal));
    await systemClock.sleep(1, signal);
    expect(getEventListeners(signal, 'abort')).toHaveLength(1);
    stopping.abort();
    expect(await Promise.all(sleeps)).toHaveLength(100);
  });
});

describe('retry', () => {
  test('repeats a task with growing waits until it succeeds', async () => {
    const clock = simulatedClock();
    const waits: number[] = [];
    let attempts = 0;
    const options = {
      clock,
      random: () => 1,
      failed: (_: unknown, waitMs: number) => void waits.push(waitMs),
    };
    const task = async () => {
      attempts += 1;
      if (attempts < 4) throw new Error('busy');
    };
    await clock.run(retry(task, { ...options, signal: new AbortController().signal }));
    expect(waits).toEqual([1000, 2000, 4000]);
    expect(clock.monotonic()).toBe(7000);
  });

  test('ends without an error when the signal is aborted', async () => {
    const stopping = new AbortController();
    const failed = () => stopping.abort();
    const task = () => Promise.reject(new Error('busy'));
    expect(await retry(task, { clock: systemClock, signal: stopping.signal, failed })).toBeUndefined();
  });
});

test('atMost resolves when the work is done or the time is up, whichever comes first', async () => {
  const clock = simulatedClock();
  const ended: number[] = [];
  const wait = async (workMs: number): Promise<void> => {
    await atMost(1000, clock, clock.sleep(workMs));
    ended.push(clock.monotonic());
  };
  await clock.run(Promise.all([wait(100), wait(5000)]));
  expect(ended).toEqual([100, 1000]);
});

describe('backoffMs', () => {
  const waits = (random: number, attempts: readonly number[]): number[] =>
    attempts.map((attempt) => backoffMs(attempt, { firstMs: 1000, maxMs: 10_000, random: () => random }));

  test('doubles with every attempt up to the maximum', () => {
    expect(waits(1, [0, 1, 2, 3, 4, 1000])).toEqual([1000, 2000, 4000, 8000, 10_000, 10_000]);
  });

  test('at most half of the delay is random', () => {
    expect(waits(0, [0, 1, 2, 1000])).toEqual([500, 1000, 2000, 5000]);
  });
});

describe('every', () => {
  test('runs at once, then after the interval or the delay that the task returned', async () => {
    const clock = simulatedClock();
    const ranAt: number[] = [];
    const loop = every(1000, clock, async () => {
      ranAt.push(clock.monotonic());
      return ranAt.length === 2 ? 50 : undefined;
    });
    await clock.run(clock.sleep(2100));
    await loop.stop();
    expect(ranAt).toEqual([0, 1000, 1050, 2050]);
  });

  test('all waits that are not cancelled have the same signal', async () => {
    const clock = simulatedClock();
    const signals = new Set<AbortSignal | undefined>();
    const sleep: typeof clock.sleep = (ms, signal) => {
      signals.add(signal);
      return clock.sleep(ms, signal);
    };
    const loop = every(1000, { ...clock, sleep }, async () => undefined);
    await clock.run(clock.sleep(5500));
    await loop.stop();
    expect(signals.size).toBe(1);
  });

  test('wake ends the wait; while the task is running, it skips the next one', async () => {
    const clock = simulatedClock();
    let runs = 0;
    const loop = every(60_000, clock, async () => {
      runs += 1;
      if (runs === 1) loop.wake();
    });
    await clock.run(clock.sleep(1));
    expect(runs).toBe(2);
    loop.wake();
    await clock.run(clock.sleep(1));
    expect(runs).toBe(3);
    await loop.stop();
  });

  test('after a wake, a shorter wait ends in time, and a longer one is not cut short by the earlier one', async () => {
    const clock = simulatedClock();
    const ranAt: number[] = [];
    const waits = [1000, 50, 5000, 60_000, 60_000];
    const loop = every(0, clock, async () => {
      ranAt.push(clock.monotonic());
      return waits[ranAt.length - 1];
    });
    await clock.run(clock.sleep(100));
    loop.wake();
    await clock.run(clock.sleep(900));
    // The alarm of the wait until 5,150 stays, and wakes nobody.
    loop.wake();
    await clock.run(clock.sleep(20_000));
    await loop.stop();
    expect(ranAt).toEqual([0, 100, 150, 1000]);
  });

  test('stop aborts the signal, waits for the running task and ends the loop', async () => {
    const clock = simulatedClock();
    const steps: string[] = [];
    const loop = every(10, clock, async (signal) => {
      steps.push('begins');
      await clock.sleep(500, signal);
      steps.push(signal.aborted ? 'ends, aborted' : 'ends');
    });
    await clock.run(clock.sleep(100));
    await clock.run(loop.stop());
    expect(steps).toEqual(['begins', 'ends, aborted']);
  });
});
