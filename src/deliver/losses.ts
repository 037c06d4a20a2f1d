import type { Clock } from '../clock.js';

/**
 * When a request of a run whose answer is not known can last have been on its way. Counted in time that only grows:
 * the journal's times may be from before somebody set the clock, and a request can wait at the gate for hours
 * after its intent was recorded. What an earlier process sent may have left until the moment that this one began.
 */
export interface Losses {
  note(run: number): void;
  /** Whether this process has noted one, and not long ago. */
  isNoted(run: number): boolean;
  /** Milliseconds since then. */
  sinceMs(run: number): number;
}

/** A loss from longer ago than `keptMs` is as old as any: it is forgotten. */
export function createLosses(clock: Clock, keptMs: number): Losses {
  const began = clock.monotonic();
  /** The oldest first. */
  const lostAt = new Map<number, number>();
  return {
    note(run) {
      const now = clock.monotonic();
      lostAt.delete(run);
      lostAt.set(run, now);
      for (const [other, at] of lostAt) {
        if (now - at <= keptMs) break;
        lostAt.delete(other);
      }
    },
    isNoted: (run) => lostAt.has(run),
    sinceMs: (run) => clock.monotonic() - (lostAt.get(run) ?? began),
  };
}
