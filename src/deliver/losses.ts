import type { Clock } from '../clock.js';

/**
 * When a request of a run whose answer is not known can last have been on its way. Counted in time that only grows:
 * the journal's times may be from before somebody set the clock, and a request can wait at the gate for hours
 * after its intent was recorded. What an earlier process sent may have left until the moment that this one began.
 */
export interface Losses {
  note(run: number): void;
  /** Milliseconds since then. */
  sinceMs(run: number): number;
  forget(run: number): void;
}

export function createLosses(clock: Clock): Losses {
  const began = clock.monotonic();
  const lostAt = new Map<number, number>();
  return {
    note: (run) => void lostAt.set(run, clock.monotonic()),
    sinceMs: (run) => clock.monotonic() - (lostAt.get(run) ?? began),
    forget: (run) => void lostAt.delete(run),
  };
}
