import type { InstrumentConfig } from '../config/schema.js';

/** Network shares send no events: the rescan is all there is. */
const SHARE_MS = 10_000;
const DISK_MS = 60_000;
/** However often somebody asks for it. */
const SHORTEST_MS = 100;
/** Listing is to take no more than one part in so many of the time. */
const SCAN_COST = 20;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 10_000;

export interface PauseFacts {
  readonly poll: InstrumentConfig['poll'];
  readonly network: boolean;
  /** Whether some folder could not be watched, so that its changes ring no bell. */
  readonly deaf: boolean;
  /** How long the last listing took. */
  readonly scanMs: number;
}

/** How long to wait before the next rescan. */
export function pauseMs({ poll, network, deaf, scanMs }: PauseFacts): number {
  const affordable = (ms: number) => Math.max(ms, scanMs * SCAN_COST);
  const chosen =
    poll === 'never'
      ? Number.POSITIVE_INFINITY
      : poll === 'auto'
        ? affordable(network ? SHARE_MS : DISK_MS)
        : Math.max(poll, SHORTEST_MS);
  return deaf ? Math.min(chosen, affordable(SHARE_MS)) : chosen;
}

/** How long to wait before trying again what has failed so many times in a row. */
export function retryMs(failures: number): number {
  return Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** (failures - 1));
}
