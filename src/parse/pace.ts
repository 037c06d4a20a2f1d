import { setImmediate } from 'node:timers/promises';
import type { Refuse } from './refuse.js';

/** How long reading may keep the rest of the daemon waiting at a stretch. */
const STRETCH_MS = 8;

/** Keeps long work from blocking the daemon and from going on for ever. */
export interface Pace {
  /**
   * To be asked every few hundred steps of a loop, `if (pace.due()) await pace.rest()`:
   * asking costs next to nothing, an `await` at every step would not.
   */
  due(): boolean;
  /** Lets others run; throws once the time is up or the signal was given. */
  rest(): Promise<void>;
}

export interface PaceOptions {
  readonly maxMs: number;
  readonly signal?: AbortSignal | undefined;
  readonly refuse: Refuse;
}

export function createPace({ maxMs, signal, refuse }: PaceOptions): Pace {
  const start = performance.now();
  let resumed = start;
  return {
    due: () => performance.now() - resumed > STRETCH_MS,
    async rest() {
      if (performance.now() - start > maxMs) {
        throw refuse(`reading took longer than ${maxMs / 1000} s`, {
          hint: 'if such files are to be read, allow more: `limits: { seconds: 300 }`',
        });
      }
      signal?.throwIfAborted();
      await setImmediate();
      resumed = performance.now();
    },
  };
}
