import { type BigIntStats, readdirSync, readFileSync, statSync } from 'node:fs';
import { onTestFinished, vi } from 'vitest';
import { type Clock, systemClock } from '../../src/clock.js';
import { createLog } from '../../src/log.js';
import type { FoundFile } from '../../src/model.js';
import type { FolderMemory, SeenFolder } from '../../src/system/mounts.js';
import { stampOf } from '../../src/watch/identify.js';
import { createMatcher } from '../../src/watch/match.js';
import { type Listing, type ListOptions, list } from '../../src/watch/scan.js';
import {
  createWatcher,
  type FileOrigin,
  type ScanResult,
  type Watcher,
  type WatcherDeps,
  type WatchOptions,
} from '../../src/watch/watcher.js';

export const never = new AbortController().signal;

const everything = createMatcher({ files: ['**/*'], ignore: [] });

/** A file as a scan would find it now. */
export function found(path: string, location: string | Buffer = path): FoundFile {
  const stats: BigIntStats = statSync(location, { bigint: true });
  return { path, location, ...stampOf(stats) };
}

export async function listed(
  folder: string,
  options: Partial<ListOptions> = {},
): Promise<{ files: FoundFile[]; batches: number[]; listing: Listing }> {
  const files: FoundFile[] = [];
  const batches: number[] = [];
  const found = list(folder, { matcher: everything, signal: never, ...options });
  for (;;) {
    const next = await found.next();
    if (next.done) return { files, batches, listing: next.value };
    files.push(...next.value);
    batches.push(next.value.length);
  }
}

/** A clock whose sleeps return at once, and which lets the test act during each. */
export function sleepingClock(during: (elapsedMs: number) => void = () => undefined): Clock & { sleeps: number[] } {
  let elapsed = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    now: () => elapsed,
    monotonic: () => elapsed,
    async sleep(ms, signal) {
      if (signal?.aborted) return;
      sleeps.push(ms);
      elapsed += ms;
      during(elapsed);
    },
  };
}

/** Permissions do not apply to root: runs as another user if the tests run as root. */
export async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}

interface Logged {
  readonly level: number;
  readonly msg: string;
  readonly reason?: string;
  readonly hint?: string;
}

export const WARN = 40;
export const ERROR = 50;

export interface Watching extends Watcher {
  readonly batches: { files: FoundFile[]; origin: FileOrigin }[];
  readonly scans: Pick<ScanResult, 'complete' | 'files'>[];
  readonly states: string[];
  readonly logged: Logged[];
  /** The paths that were found, each once. */
  paths(origin?: FileOrigin): string[];
}

/** As the journal does. */
export function rememberFolders() {
  const folders = new Map<string, SeenFolder>();
  const memory: FolderMemory = {
    lastSeen: async (folder) => folders.get(folder),
    see: async (folder, seen) => void folders.set(folder, seen),
  };
  return { folders, memory };
}

/** A watcher that records what it finds, and is stopped after the test. */
export function watching(
  options: Partial<WatchOptions> & { watch: string },
  deps: Partial<WatcherDeps> = {},
  system: Parameters<typeof createWatcher>[2] = {},
): Watching {
  const batches: Watching['batches'] = [];
  const scans: Watching['scans'] = [];
  const states: string[] = [];
  const logged: Logged[] = [];
  const { log } = createLog({
    level: 'info',
    destination: { write: (line) => void logged.push(JSON.parse(line)) },
  });
  const watcher = createWatcher(
    { files: ['**/*'], ignore: [], ready: { quiet: 5000 }, poll: 'never', ...options },
    {
      found: async (files, origin) => void batches.push({ files, origin }),
      scanned: async ({ complete, files }) => void scans.push({ complete, files }),
      folder: (state) => void states.push(state),
      isOthers: () => false,
      memory: rememberFolders().memory,
      clock: systemClock,
      log,
      ...deps,
    },
    system,
  );
  onTestFinished(() => watcher.stop());
  const paths: Watching['paths'] = (origin) => {
    const wanted = batches.filter((batch) => origin === undefined || batch.origin === origin);
    return [...new Set(wanted.flatMap(({ files }) => files.map(({ path }) => path)))].toSorted();
  };
  return { ...watcher, batches, scans, states, logged, paths };
}

/** Retries until it holds, with a long limit: a busy machine is slow. */
export const eventually = (holds: () => void) => vi.waitFor(holds, { timeout: 15_000, interval: 20 });

/** The number of inotify watches of this process. */
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
