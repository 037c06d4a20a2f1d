/**
 * How much later than its neighbour a request may arrive at the server and still not put more than the
 * ceiling into one of the server's seconds. Costs 6 % of the ceiling.
 */
const JITTER_MS = 60;
/** Of how many starts the times are kept: above this ceiling, a fraction of the second is watched instead. */
const MOST_KEPT = 1000;

/** The configured rate, as a bound on every second and not on the average. */
export interface Ceiling {
  /** What can be kept up for ever under it. */
  readonly perSecond: number;
  waitMs(now: number): number;
  started(now: number): void;
}

/** At most so many starts in any second; not even at the server, if they travel about equally long. */
export function createCeiling(perSecond: number): Ceiling {
  // If no tenth of a second sees more than a tenth of the ceiling, no second sees more than the whole.
  const parts = Math.ceil(perSecond / MOST_KEPT);
  // Below one a second, the time watched is what one request may take.
  const most = Math.max(1, Math.floor(perSecond / parts));
  const windowMs = (most / perSecond) * 1000 + JITTER_MS / parts;
  const starts = new Float64Array(most).fill(Number.NEGATIVE_INFINITY);
  let oldest = 0;
  return {
    perSecond: (most / windowMs) * 1000,
    waitMs: (now) => (starts[oldest] ?? now) + windowMs - now,
    started(now) {
      starts[oldest] = now;
      oldest = (oldest + 1) % most;
    },
  };
}
