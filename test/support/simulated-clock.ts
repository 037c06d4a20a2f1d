import type { Clock } from '../../src/clock.js';

export interface SimulatedClock extends Clock {
  /** Advances time from one wake-up to the next until the work is done. Throws if nobody will wake up. */
  run<T>(work: Promise<T>): Promise<T>;
}

interface Sleeper {
  readonly at: number;
  readonly order: number;
  wake(): void;
}

/**
 * A clock for many concurrent sleepers. They wake in order, and everything that follows from one wake-up is done
 * before the next. Deterministic.
 */
export function simulatedClock(startMs = Date.UTC(2026, 0, 1)): SimulatedClock {
  const sleepers: Sleeper[] = [];
  let elapsed = 0;
  let order = 0;

  function sleep(ms: number, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const onAbort = (): void => {
        sleepers.splice(sleepers.indexOf(sleeper), 1);
        resolve();
      };
      const sleeper: Sleeper = {
        at: elapsed + Math.max(0, ms),
        order: order++,
        wake() {
          signal?.removeEventListener('abort', onAbort);
          resolve();
        },
      };
      signal?.addEventListener('abort', onAbort, { once: true });
      insert(sleepers, sleeper);
    });
  }

  return {
    now: () => startMs + elapsed,
    monotonic: () => elapsed,
    sleep,
    async run(work) {
      let done = false;
      const finished = work.finally(() => {
        done = true;
      });
      finished.catch(() => undefined);
      for (;;) {
        await new Promise((resolve) => setImmediate(resolve));
        if (done) return finished;
        const next = sleepers.shift();
        if (!next) throw new Error(`no sleeper is left ${elapsed} ms after the start`);
        elapsed = next.at;
        next.wake();
      }
    },
  };
}

/** Earliest first; at the same time, in the order of their calls. */
function insert(sleepers: Sleeper[], sleeper: Sleeper): void {
  let index = sleepers.length;
  while (index > 0 && (sleepers[index - 1]?.at ?? 0) > sleeper.at) index--;
  sleepers.splice(index, 0, sleeper);
}
