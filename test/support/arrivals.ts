import { onTestFinished } from 'vitest';
import type { Control } from './sandbox.js';

const TICK_MS = 10;
/** Shorter than a second: requests can arrive some milliseconds closer to each other than they were sent. */
const WINDOW_MS = 950;

/**
 * Returns a function that tells how many requests were sent within a second at most. On a busy machine this process sees
 * requests late, and several at once: only those count that certainly arrived within that second.
 */
export function watchArrivals(control: Control): () => number {
  const arrivals: { readonly from: number; readonly to: number }[] = [];
  // A request that is seen now has arrived since the tick before the last one.
  let ticks: readonly [number, number] = [Date.now(), Date.now()];
  const timer = setInterval(() => {
    ticks = [ticks[1], Date.now()];
  }, TICK_MS);
  onTestFinished(() => clearInterval(timer));
  control.decide = ({ atMs }) => {
    arrivals.push({ from: ticks[0], to: atMs });
    return 'pass';
  };
  const following = (start: number): number =>
    arrivals.filter(({ from, to }) => from >= start && to < start + WINDOW_MS).length;
  return () => Math.max(0, ...arrivals.map(({ from }) => following(from)));
}
