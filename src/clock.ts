import { setTimeout as delay } from 'node:timers/promises';

/** Time as the program sees it. Handed in, so that tests own it. */
export interface Clock {
  /** Milliseconds since 1970, for records. May jump when somebody sets the clock. */
  now(): number;
  /** Milliseconds that only ever grow, for waits. */
  monotonic(): number;
  /** Rejects with the signal's reason when it is aborted. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout takes no more than 2^31 - 1 ms and would otherwise fire at once. */
const LONGEST_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  sleep: (ms, signal) => delay(Math.min(ms, LONGEST_MS), undefined, signal ? { signal } : {}),
};
