import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { Pruning } from '../journal/maintenance.js';
import type { Log } from '../log.js';

export interface HousekeepingDeps {
  readonly journal: Pruning;
  /** How long the history of finished runs is kept; undefined where that is not known. */
  readonly keepMs: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Housekeeping {
  start(): void;
  /** Resolves when the journal is no longer used. */
  stop(): Promise<void>;
}

const DAY_MS = 86_400_000;

/** Between two batches, so that files and deliveries get their turn. */
const PAUSE_MS = 50;

/** What the journal need not keep for ever, removed at the start and then daily. */
export function createHousekeeping({ journal, keepMs, clock, log }: HousekeepingDeps): Housekeeping {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> = Promise.resolve();
  const pause = (ms: number): Promise<void> => clock.sleep(ms, signal).catch(() => undefined);

  async function prune(before: number): Promise<number> {
    let removed = 0;
    for (let from: number | undefined = 0; from !== undefined && !signal.aborted; await pause(PAUSE_MS)) {
      const { runs, next } = await journal.prune(before, from);
      removed += runs;
      from = next;
    }
    return removed;
  }

  async function keepPruning(olderMs: number): Promise<void> {
    while (!signal.aborted) {
      try {
        const runs = await prune(clock.now() - olderMs);
        if (runs > 0) log.info({ runs }, 'the history of old runs is removed');
      } catch (error) {
        log.error(
          { reason: explain(error) },
          'the history of old runs cannot be removed, trying again in a day',
        );
      }
      await pause(DAY_MS);
    }
  }

  return {
    start() {
      if (keepMs !== undefined) running = keepPruning(keepMs);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}
