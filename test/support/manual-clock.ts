import type { Clock } from '../../src/clock.js';

/** A clock whose time passes only with `advance` and `sleep`, which returns at once. */
export function manualClock(startMs = Date.UTC(2026, 0, 1)): Clock & { advance(ms: number): void } {
  let elapsed = 0;
  return {
    now: () => startMs + elapsed,
    monotonic: () => elapsed,
    async sleep(ms, signal) {
      if (signal?.aborted) return;
      elapsed += ms;
      await new Promise((resolve) => setImmediate(resolve));
    },
    advance(ms) {
      elapsed += ms;
    },
  };
}
