const FIRST_MS = 1000;
const LONGEST_MS = 5 * 60_000;

/** Doubles with every attempt; the upper half is left to chance, so that many who wait do not return together. */
export function backoffMs(attempts: number, random: () => number = Math.random): number {
  const full = Math.min(LONGEST_MS, FIRST_MS * 2 ** Math.min(attempts, 20));
  return Math.round(full * (0.5 + random() / 2));
}
