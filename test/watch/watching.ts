import { readdirSync, readFileSync } from 'node:fs';
import { onTestFinished, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import type { FoundFile } from '../../src/model.js';
import { createWatcher, type Watcher, type WatcherDeps, type WatchOptions } from '../../src/watch/watcher.js';

interface Logged {
  readonly level: number;
  readonly msg: string;
  readonly reason?: string;
  readonly hint?: string;
}

export const WARN = 40;
export const ERROR = 50;

export interface Watching extends Watcher {
  readonly offers: { files: FoundFile[]; origin: 'scan' | 'event' }[];
  readonly scans: { complete: boolean; files: number }[];
  readonly states: string[];
  readonly logged: Logged[];
  /** The paths that were offered, each once. */
  paths(origin?: 'scan' | 'event'): string[];
}

/** A watcher whose findings are gathered, and which is stopped with the test. */
export function watching(
  options: Partial<WatchOptions> & { watch: string },
  deps: Partial<WatcherDeps> = {},
): Watching {
  const offers: Watching['offers'] = [];
  const scans: Watching['scans'] = [];
  const states: string[] = [];
  const logged: Logged[] = [];
  const { log } = createLog({
    level: 'info',
    pretty: false,
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const watcher = createWatcher(
    { files: ['**/*'], ignore: [], ready: { quiet: 5000 }, poll: 'never', ...options },
    {
      offer: async (files, origin) => void offers.push({ files, origin }),
      scanned: async (result) => void scans.push(result),
      folder: (state) => void states.push(state),
      clock: systemClock,
      log,
      ...deps,
    },
  );
  onTestFinished(() => watcher.stop());
  const paths: Watching['paths'] = (origin) => {
    const wanted = offers.filter((offer) => origin === undefined || offer.origin === origin);
    return [...new Set(wanted.flatMap(({ files }) => files.map(({ path }) => path)))].toSorted();
  };
  return { ...watcher, offers, scans, states, logged, paths };
}

/** Tries until it holds; long, since a busy machine is slow and a right answer ends the wait at once. */
export const eventually = (holds: () => void) => vi.waitFor(holds, { timeout: 15_000, interval: 20 });

/** The folders that this process watches, as the kernel counts them. */
export function inotifyWatches(): number {
  return readdirSync('/proc/self/fdinfo')
    .map((descriptor) => {
      try {
        return readFileSync(`/proc/self/fdinfo/${descriptor}`, 'utf8').match(/^inotify wd:/gm)?.length ?? 0;
      } catch {
        return 0;
      }
    })
    .reduce((sum, count) => sum + count, 0);
}
