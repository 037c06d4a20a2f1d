import { lstat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import type { Clock } from '../clock.js';
import type { InstrumentConfig } from '../config/schema.js';
import { isNetworkFilesystem } from '../filesystem.js';
import type { Log } from '../log.js';
import type { FoundFile } from '../model.js';
import {
  type Bells,
  type BellsDeps,
  createHearing,
  createRings,
  type Hearing,
  type Rings,
  type Rung,
} from './events.js';
import { type Candidate, type Folder, look } from './folder.js';
import { createMatcher } from './match.js';
import { createScan, list, type ScanDeps, type Unmatched } from './scan.js';

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
      const enough = clock.sleep(STOP_MS, ended.signal);
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
    await clock.sleep(GATHER_MS, signal);
    for (const [folder, rung] of rings.take()) await answer(folder, rung);
  }
}

interface RoundsDeps {
  /** One scan; resolves with how long to wait before the next. Does not reject. */
  scan(): Promise<number>;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Scans again and again: never two at once, and sooner when asked. */
interface Rounds {
  /** Resolves when the signal has ended the rounds; `begun` is called after the first scan. */
  run(begun: () => void): Promise<void>;
  /** Resolves when a scan that began after this call has ended. */
  ask(): Promise<void>;
}

function createRounds({ scan, clock, signal }: RoundsDeps): Rounds {
  let asked: (() => void)[] = [];
  let nap = new AbortController();
  signal.addEventListener('abort', () => nap.abort(), { once: true });

  return {
    async run(begun) {
      while (!signal.aborted) {
        const waiting = asked;
        asked = [];
        const pauseMs = await scan();
        begun();
        for (const done of waiting) done();
        if (asked.length > 0 || signal.aborted) continue;
        nap = new AbortController();
        // Being woken is as good as having slept.
        await clock.sleep(pauseMs, nap.signal);
      }
      for (const done of asked) done();
    },
    ask() {
      if (signal.aborted) return Promise.resolve();
      return new Promise((done) => {
        asked.push(done);
        nap.abort();
      });
    },
  };
}

type FolderState = 'present' | 'missing' | 'unreadable';

interface PresenceDeps {
  readonly root: string;
  readonly log: Log;
  folder(state: FolderState, reason?: string): void;
}

/** Makes the function that is told each time how the folder was found, and passes on what changed: once. */
function createPresence({ root, log, folder }: PresenceDeps) {
  let state: FolderState | undefined;

  return (found: FolderState, reason?: string): void => {
    if (found === state) return;
    if (found !== 'present') {
      log.warn({ folder: root, reason }, 'the folder cannot be read: it is looked for until it can');
    } else if (state !== undefined) {
      log.info({ folder: root }, 'the folder is there: watching it');
    }
    state = found;
    folder(found, reason);
  };
}

interface AnswerDeps extends Omit<ScanDeps, 'isNetwork' | 'isOthers'> {
  /** Asks for a full scan. */
  rescan(): void;
}

/** Makes the function that looks at what rang in one folder, and offers what it finds. It does not reject. */
function createAnswer(deps: AnswerDeps): (folder: string, rung: Rung) => Promise<void> {
  const { signal, clock, log } = deps;
  let failures = 0;

  return async (folder, rung) => {
    if (signal.aborted) return;
    try {
      await (rung === 'anything' ? listAnew(folder, deps) : lookAt(folder, rung, deps));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      log.error({ folder, err: error }, 'a change could not be followed up, scanning instead');
      // Where the receiver is in trouble, a file that is always written to must not become a scan at each write.
      await clock.sleep(retryMs(failures), signal);
      deps.rescan();
    }
  };
}

/** Lists a folder, and what is new below it: a subfolder that has its own bell would have rung. */
async function listAnew(start: string, deps: AnswerDeps): Promise<void> {
  const { root, matcher, signal, hearing } = deps;
  const found = list(root, {
    matcher,
    signal,
    under: seenFrom(root, start),
    enter: async (folder) => {
      if (folder.path !== start && hearing.hears(folder)) return false;
      await hearing.listenTo(folder);
      return true;
    },
  });
  let next = await found.next();
  for (; !next.done; next = await found.next()) {
    await deps.offer(next.value);
    signal.throwIfAborted();
  }
  if (next.value.state === 'present') return;
  if (start === root) deps.rescan();
  else hearing.forget(start);
}

async function lookAt(folder: string, names: ReadonlySet<string>, deps: AnswerDeps): Promise<void> {
  const { root, matcher, signal, hearing } = deps;
  const candidates = [...names].map((name): Candidate => {
    const path = `${folder}/${name}`;
    return { path, location: path, relative: seenFrom(root, path) };
  });
  // What is neither a run as a file nor listed as a folder is not worth a look: a log that is always written to.
  const { files, folders, absent } = await look(
    candidates.filter(({ relative }) => matcher.takes(relative) || !matcher.prunes(relative)),
    matcher.takes,
  );
  signal.throwIfAborted();
  for (const { path } of absent) hearing.forget(path);
  // A folder that is deleted rings its own name; the watched one has no parent here that would ring too.
  if (folder === root && names.has(basename(root)) && !(await isStillThere(root, hearing))) deps.rescan();
  if (files.length > 0) await deps.offer([...files]);
  for (const found of folders) {
    if (!hearing.hears(found) && !(await isLink(found))) await listAnew(found.path, deps);
  }
}

async function isStillThere(root: string, hearing: Hearing): Promise<boolean> {
  const { folders } = await look([{ path: root, location: root, relative: '' }], () => false);
  return folders.some((folder) => hearing.hears(folder));
}

function seenFrom(root: string, path: string): string {
  return path.slice(root.length + 1);
}

async function isLink({ location }: Folder): Promise<boolean> {
  const stats = await lstat(location).catch(() => undefined);
  return stats?.isSymbolicLink() === true;
}

/** Network shares send no events: the rescan is all there is. */
const SHARE_MS = 10_000;
const DISK_MS = 60_000;
/** However often somebody asks for it. */
const SHORTEST_MS = 100;
/** Listing is to take no more than one part in so many of the time. */
const SCAN_COST = 20;
const FIRST_RETRY_MS = 1000;
const LONGEST_RETRY_MS = 10_000;

interface PauseFacts {
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
