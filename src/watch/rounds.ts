import type { Clock } from '../clock.js';

export interface RoundsDeps {
  /** One scan; resolves with how long to wait before the next. Does not reject. */
  scan(): Promise<number>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Scans again and again: never two at once, and sooner when asked. */
export interface Rounds {
  /** Resolves when the signal has ended the rounds; `begun` is called after the first scan. */
  run(begun: () => void): Promise<void>;
  /** Resolves when a scan that began after this call has ended. */
  ask(): Promise<void>;
}

export function createRounds({ scan, clock, signal }: RoundsDeps): Rounds {
  let asked: (() => void)[] = [];
  let nap = new AbortController();
  signal.addEventListener('abort', () => nap.abort(), { once: true });

  return {
    async run(begun) {
      while (!signal.aborted) {
        const waiting = asked;
        asked = [];
        const pauseMs = await scan();
        begun();
        for (const done of waiting) done();
        if (asked.length > 0 || signal.aborted) continue;
        nap = new AbortController();
        // Being woken is as good as having slept.
        await clock.sleep(pauseMs, nap.signal).catch(() => undefined);
      }
      for (const done of asked) done();
    },
    ask() {
      if (signal.aborted) return Promise.resolve();
      return new Promise((done) => {
        asked.push(done);
        nap.abort();
      });
    },
  };
}
