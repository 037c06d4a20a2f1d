import { resolve } from 'node:path';
import type { Clock } from '../clock.js';
import type { InstrumentConfig } from '../config/schema.js';
import { isNetworkFilesystem } from '../filesystem.js';
import type { Log } from '../log.js';
import type { FoundFile } from '../model.js';
import { createAnswer } from './answer.js';
import type { Bells, BellsDeps } from './bells.js';
import { createHearing } from './hearing.js';
import { createMatcher } from './match.js';
import { pauseMs, retryMs } from './pause.js';
import { createPresence, type FolderState } from './presence.js';
import { createRings, type Rings } from './rings.js';
import { createRounds } from './rounds.js';
import { createScan, type ScanDeps } from './scan.js';
import type { Unmatched } from './unmatched.js';

/** Bells of one burst are answered together. */
const GATHER_MS = 75;

/** How long stopping waits for a share that may never answer. */
const STOP_MS = 2000;

export type WatchOptions = Pick<InstrumentConfig, 'watch' | 'files' | 'ignore' | 'ready' | 'poll'> &
  Partial<Pick<InstrumentConfig, 'run'>>;

export interface WatcherDeps {
  /** Files that are there; the same one may be offered again and again. The scan waits until they are received. */
  offer(files: FoundFile[], origin: 'scan' | 'event'): Promise<void>;
  /** A listing has ended. Only a complete one has met every file that this user may see. */
  scanned(result: { readonly complete: boolean; readonly files: number }): Promise<void>;
  /** Told at first, and whenever it changes. A folder that is gone says nothing about the files in it. */
  folder(state: FolderState, reason?: string): void;
  /** Told after each listing what of it no glob fits, but for files of others. */
  unmatched?(found: Unmatched): void;
  isOthers?(path: string): boolean;
  readonly clock: Clock;
  readonly log: Log;
  isNetwork?(path: string): Promise<boolean>;
  createBells?(deps: BellsDeps): Bells;
}

export interface Watcher {
  /** Resolves when the folder was scanned once, or at least looked for, and is being watched. */
  start(): Promise<void>;
  /** Resolves when a scan that began after this call has ended. */
  rescan(): Promise<void>;
  /** After it, nothing more is offered. */
  stop(): Promise<void>;
}

/**
 * Finds the files of one instrument. The scan is the truth; events only say where to look sooner.
 * A folder that is gone is looked for, and nothing that was found in it is forgotten.
 */
export function createWatcher(options: WatchOptions, deps: WatcherDeps): Watcher {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const root = resolve(options.watch);
  const matcher = createMatcher({ ...options, doneFile: options.ready.doneFile });
  const rings = createRings();
  const hearing = createHearing({ root, ring: rings.ring, log, signal, createBells: deps.createBells });
  const scope = { root, matcher, hearing, signal, clock, log };
  const scan = createScanOnce(options.poll, scope, deps);
  const rounds = createRounds({ scan, clock, signal });
  const answer = createAnswer({
    ...scope,
    offer: (files) => deps.offer(files, 'event'),
    rescan: () => void rounds.ask(),
  });
  let running: Promise<unknown> | undefined;

  return {
    start: () =>
      new Promise((begun) => {
        running = Promise.all([rounds.run(begun), keepAnswering(rings, answer, clock, signal)]);
      }),
    rescan: rounds.ask,
    async stop() {
      stopping.abort();
      rings.stop();
      hearing.forgetAll();
      const ended = new AbortController();
      const enough = clock.sleep(STOP_MS, ended.signal).catch(() => undefined);
      await Promise.race([running, enough]);
      ended.abort();
    },
  };
}

/** Makes the function that scans once, reports, and says how long to wait before the next time. */
function createScanOnce(
  poll: InstrumentConfig['poll'],
  scope: Omit<ScanDeps, 'offer' | 'isNetwork' | 'isOthers'>,
  deps: WatcherDeps,
): () => Promise<number> {
  const { root, hearing, signal, log } = scope;
  const found = createPresence({ root, log, folder: (state, reason) => deps.folder(state, reason) });
  const scan = createScan({
    ...scope,
    isNetwork: deps.isNetwork ?? isNetworkFilesystem,
    isOthers: deps.isOthers ?? (() => false),
    offer(files) {
      // Said before the receiver takes its time, which can be long for a backlog.
      found('present');
      return deps.offer(files, 'scan');
    },
  });
  let failures = 0;

  return async () => {
    try {
      const { listing, network, tookMs, unmatched } = await scan();
      found(listing.state, listing.state === 'present' ? undefined : listing.reason);
      if (listing.state !== 'present') {
        failures += 1;
        return retryMs(failures);
      }
      deps.unmatched?.(unmatched);
      await deps.scanned({
        complete: listing.unread.every(({ forbidden }) => forbidden),
        files: listing.files,
      });
      failures = 0;
      return pauseMs({ poll, network, deaf: hearing.isDeaf(), scanMs: tookMs });
    } catch (error) {
      failures += 1;
      if (!signal.aborted) log.error({ folder: root, err: error }, 'the scan failed, trying again');
      return retryMs(failures);
    }
  };
}

async function keepAnswering(
  rings: Rings,
  answer: ReturnType<typeof createAnswer>,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await rings.heard();
    await clock.sleep(GATHER_MS, signal).catch(() => undefined);
    for (const [folder, rung] of rings.take()) await answer(folder, rung);
  }
}
