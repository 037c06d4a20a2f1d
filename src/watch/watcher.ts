import { lstat } from 'node:fs/promises';
import { basename, resolve } from 'node:path';
import { atMost, backoffMs, type Clock, every, type Loop } from '../clock.js';
import type { InstrumentConfig } from '../config/schema.js';
import type { Log } from '../log.js';
import type { FoundFile } from '../model.js';
import { slowMountOf, statOne } from '../system/disk.js';
import { type FolderMemory, type Mount, missingMount, mountOf } from '../system/mounts.js';
import {
  type ChangedNames,
  createFolderWatches,
  createPendingEvents,
  type FolderWatches,
  type MissingEvents,
  type WatchFolder,
} from './events.js';
import { createMatcher, type Matcher } from './match.js';
import {
  addUnmatched,
  type Candidate,
  type Folder,
  type Listing,
  list,
  statCandidates,
  type Unmatched,
  type Unread,
} from './scan.js';

/** Events of one burst are processed together. */
const GATHER_MS = 25;

/** How long stopping waits for a share that may never respond. */
const STOP_MS = 2000;

export type WatchOptions = Pick<InstrumentConfig, 'watch' | 'files' | 'ignore' | 'ready' | 'poll'> &
  Partial<Pick<InstrumentConfig, 'run'>>;

export type FileOrigin = 'scan' | 'event';

export interface ScanResult {
  /** Whether the scan found every file that this user may see. */
  readonly complete: boolean;
  readonly files: number;
  /** Files that match no glob, without those of other instruments. */
  readonly unmatched: Unmatched;
  /** Paths that could not be read. */
  readonly unread: readonly Unread[];
}

export interface WatcherDeps {
  /** Receives files that exist; the same file may come again. A scan waits until the receiver has accepted them. */
  found(files: FoundFile[], origin: FileOrigin): Promise<void>;
  scanned(result: ScanResult): Promise<void>;
  /** Called with the first state of the folder and with each change. A missing folder says nothing about its files. */
  folder(state: FolderState, reason?: string): void;
  /** Called after each scan. */
  polled?(polling: Polling): void;
  readonly memory: FolderMemory;
  /** Whether a file that matches no glob belongs to another instrument or to none. */
  isOthers(path: string): boolean;
  /** Called for each file that a scan finds under a private name, see `dispose.ts`. */
  readonly hidden?: ((location: string | Buffer) => void) | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

/** How often a folder is scanned. */
interface Polling {
  /** Null: never, unless events ask for it. */
  readonly everyMs: number | null;
  /** Why events are not enough; undefined if they are. */
  readonly because: string | undefined;
}

/** Replaced in tests. */
interface SystemCalls {
  readonly slowMount?: typeof slowMountOf;
  readonly watchFolder?: WatchFolder;
}

export type Watcher = ReturnType<typeof createWatcher>;

/**
 * Finds the files of one instrument. The periodic scan is the source of truth; events only make it faster.
 * A missing folder is retried, and nothing found in it before is forgotten.
 */
export function createWatcher(
  options: WatchOptions,
  deps: WatcherDeps,
  { slowMount = slowMountOf, watchFolder }: SystemCalls = {},
) {
  const { clock, log } = deps;
  const stopping = new AbortController();
  const { signal } = stopping;
  const root = resolve(options.watch);
  let scans: Loop | undefined;
  let events: Loop | undefined;
  let requests: (() => void)[] = [];
  const pending = createPendingEvents();
  const watches = createFolderWatches({
    root,
    log,
    signal,
    slowMount,
    open: watchFolder,
    event(folder, name) {
      pending.add(folder, name);
      events?.wake();
    },
  });
  const matcher = createMatcher(options);
  const context: WatchContext = { ...deps, root, matcher, watches, signal, rescan };
  const scan = createScan(context, options.poll);
  const processEvents = createEventProcessor(context);

  function rescan(): Promise<void> {
    if (signal.aborted) return Promise.resolve();
    return new Promise((done) => {
      requests.push(done);
      scans?.wake();
    });
  }

  return {
    /** Resolves after the first scan, even if the folder is missing. */
    start(): Promise<void> {
      const firstScan = rescan();
      scans = every(Number.POSITIVE_INFINITY, clock, async () => {
        const served = requests;
        requests = [];
        const waitMs = await scan();
        for (const done of served) done();
        return waitMs;
      });
      events = every(Number.POSITIVE_INFINITY, clock, async () => {
        await clock.sleep(GATHER_MS, signal);
        for (const [folder, names] of pending.take()) await processEvents(folder, names);
      });
      return firstScan;
    },
    /** Resolves at the end of a scan that began after this call. */
    rescan,
    /** After it resolves, no more files are handed over. */
    async stop(): Promise<void> {
      stopping.abort();
      watches.removeAll();
      await atMost(STOP_MS, clock, Promise.all([scans?.stop(), events?.stop()]));
      for (const done of requests) done();
    },
  };
}

interface WatchContext extends WatcherDeps {
  readonly root: string;
  readonly matcher: Matcher;
  readonly watches: FolderWatches;
  readonly signal: AbortSignal;
  rescan(): Promise<void>;
}

/** Returns a function that scans the folder, reports the result and returns the wait before the next scan. */
function createScan(context: WatchContext, poll: InstrumentConfig['poll']): () => Promise<number> {
  const { root, watches, signal, scanned, polled, memory, log } = context;
  const report = createFolderReport(root, log, context.folder);
  const checkMount = createMountCheck(root, memory);
  const warnOfSkipped = createSkipWarnings(log);
  let failures = 0;

  async function scan(): Promise<number> {
    const mount = mountOf(root);
    watches.beginScan();
    const { listing: listed, unmatched, tookMs } = await listAll(context, report);
    const listing = await checkMount(listed, mount);
    if (listing.state !== 'present') {
      watches.removeAll();
      report(listing.state, listing.reason);
      failures += 1;
      return retryMs(failures);
    }
    watches.endScan();
    report('present');
    warnOfSkipped(listing);
    const complete = listing.unread.every(({ forbidden }) => forbidden);
    await scanned({ complete, files: listing.files, unmatched, unread: listing.unread });
    failures = 0;
    const missing = await watches.missing(EVENT_MS);
    const everyMs = rescanMs({ poll, missing, scanMs: tookMs });
    polled?.({ everyMs: Number.isFinite(everyMs) ? everyMs : null, because: missing?.because });
    return everyMs;
  }

  return () =>
    scan().catch((error: unknown) => {
      failures += 1;
      if (!signal.aborted) log.error({ folder: root, err: error }, 'scan failed, retrying');
      return retryMs(failures);
    });
}

/** Lists the whole folder, watches all folders in it and hands over the files. */
async function listAll(
  { root, matcher, watches, signal, clock, found, hidden, isOthers }: WatchContext,
  report: FolderReport,
): Promise<{ listing: Listing; unmatched: Unmatched; tookMs: number }> {
  const unmatched = new Map();
  const listing = list(root, {
    matcher,
    signal,
    hidden,
    enter: async (folder) => {
      await watches.add(folder);
      return true;
    },
    unmatched(path) {
      if (!isOthers(path)) addUnmatched(unmatched, path);
    },
  });
  // The cost of a listing does not include the start of the process that reads a share, nor the work of the receiver.
  await statOne(root);
  let tookMs = 0;
  for (;;) {
    const since = clock.monotonic();
    const next = await listing.next();
    tookMs += clock.monotonic() - since;
    if (next.done) return { listing: next.value, unmatched, tookMs };
    // Reported before the receiver is called, which can take long for a backlog.
    report('present');
    await found(next.value, 'scan');
    signal.throwIfAborted();
  }
}

/** Returns a function that warns about each path a scan skips, once for as long as the cause persists. */
function createSkipWarnings(log: Log): (listing: Extract<Listing, { state: 'present' }>) => void {
  let warned = new Set<string>();
  return ({ unread, links }) => {
    for (const { path, reason } of unread) {
      if (!warned.has(path)) log.warn({ path, reason }, 'cannot read this path, skipping it');
    }
    for (const path of links) {
      if (!warned.has(path)) log.warn({ path }, 'symbolic links to folders are not followed: watch the target instead');
    }
    warned = new Set([...unread.map(({ path }) => path), ...links]);
  };
}

/** Returns a function that hands over the files that events in one folder concern. It does not reject. */
function createEventProcessor(context: WatchContext): (folder: string, names: ChangedNames) => Promise<void> {
  const { signal, clock, log } = context;
  let failures = 0;
  return async (folder, names) => {
    if (signal.aborted) return;
    try {
      await (names === 'all' ? listChanged(folder, context) : checkNames(folder, names, context));
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      log.error({ folder, err: error }, 'cannot process file events, rescanning');
      // While the receiver fails, a file that is written to continuously must not cause a scan at each write.
      await clock.sleep(retryMs(failures), signal);
      void context.rescan();
    }
  };
}

/** Lists a folder and its new subfolders. Subfolders that are already watched send events of their own. */
async function listChanged(start: string, context: WatchContext): Promise<void> {
  const { root, matcher, signal, watches } = context;
  const listing = list(root, {
    matcher,
    signal,
    under: relativeTo(root, start),
    enter: async (folder) => {
      if (folder.path !== start && watches.has(folder)) return false;
      await watches.add(folder);
      return true;
    },
  });
  let next = await listing.next();
  for (; !next.done; next = await listing.next()) {
    await context.found(next.value, 'event');
    signal.throwIfAborted();
  }
  if (next.value.state === 'present') return;
  if (start === root) void context.rescan();
  else watches.remove(start);
}

async function checkNames(folder: string, names: ReadonlySet<string>, context: WatchContext): Promise<void> {
  const { root, matcher, signal, watches } = context;
  const candidates = [...names].map((name): Candidate => {
    const path = `${folder}/${name}`;
    return { path, location: path, relative: relativeTo(root, path) };
  });
  // Skips names that can be neither a run nor a folder to list, such as a log that is written to continuously.
  const { files, folders, absent } = await statCandidates(
    candidates.filter(({ relative }) => matcher.takes(relative) || !matcher.prunes(relative)),
    matcher.takes,
  );
  signal.throwIfAborted();
  for (const { path } of absent) watches.remove(path);
  // A deleted folder sends an event with its own name. The watched folder has no watched parent that would send one.
  if (folder === root && names.has(basename(root)) && !(await isSameFolder(root, watches))) {
    void context.rescan();
  }
  if (files.length > 0) await context.found(files, 'event');
  for (const found of folders) {
    if (!watches.has(found) && !(await isLink(found))) await listChanged(found.path, context);
  }
}

async function isSameFolder(root: string, watches: FolderWatches): Promise<boolean> {
  const { folders } = await statCandidates([{ path: root, location: root, relative: '' }], () => false);
  return folders.some((folder) => watches.has(folder));
}

const relativeTo = (root: string, path: string): string => path.slice(root.length + 1);

async function isLink({ location }: Folder): Promise<boolean> {
  const stats = await lstat(location).catch(() => undefined);
  return stats?.isSymbolicLink() === true;
}

/** Network shares send no events for changes made elsewhere, so they depend on rescans. */
const RESCAN_SHARE_MS = 10_000;
const RESCAN_DISK_MS = 60_000;
/** Lower bound for a configured interval. */
const MIN_RESCAN_MS = 100;
/** Listing takes at most one twentieth of the time. */
const MAX_SCAN_SHARE = 20;

interface RescanFacts extends Pick<InstrumentConfig, 'poll'> {
  /** Why events are not enough. */
  readonly missing: Pick<MissingEvents, 'isShare'> | undefined;
  /** Duration of the last listing. */
  readonly scanMs: number;
}

/** The wait before the next rescan. */
export function rescanMs({ poll, missing, scanMs }: RescanFacts): number {
  const affordable = (ms: number) => Math.max(ms, scanMs * MAX_SCAN_SHARE);
  const chosen =
    poll === 'never'
      ? Number.POSITIVE_INFINITY
      : poll === 'auto'
        ? affordable(missing ? RESCAN_SHARE_MS : RESCAN_DISK_MS)
        : Math.max(poll, MIN_RESCAN_MS);
  // That a share sends no events was known when `poll` was set.
  return missing && !missing.isShare ? Math.min(chosen, affordable(RESCAN_SHARE_MS)) : chosen;
}

/** How long the events of the last changes may take. */
const EVENT_MS = 2000;

const retryMs = (failures: number): number => backoffMs(failures - 1, { maxMs: 10_000 });

/** Whether a folder is there: a share can disappear, hang, or leave an empty folder behind. */
type FolderState = 'present' | 'missing' | 'unreadable';

type FolderReport = (state: FolderState, reason?: string) => void;

/** Returns a function that reports the state of the folder when it changes. */
function createFolderReport(root: string, log: Log, folder: FolderReport): FolderReport {
  let reported: FolderState | undefined;
  let because: string | undefined;
  return (state, reason) => {
    if (state === reported && reason === because) return;
    if (state !== 'present') log.warn({ folder: root, reason }, 'cannot read the folder, retrying');
    else if (reported !== undefined) log.info({ folder: root }, 'the folder is available again');
    reported = state;
    because = reason;
    folder(state, reason);
  };
}

/**
 * Returns a function that recognises a folder without its share: an empty folder says nothing about the files of a share
 * that is not mounted, or that has just come back without them. `before`: the mount when the listing began.
 */
function createMountCheck(root: string, memory: FolderMemory) {
  /** The mount that was last accepted. */
  let known: string | undefined;
  return async (listing: Listing, before: Mount): Promise<Listing> => {
    const mount = mountOf(root);
    const { id, point } = mount;
    const isKnown = id === known;
    known = undefined;
    if (listing.state !== 'present') return listing;
    const last = await memory.lastSeen(root);
    if (listing.empty) {
      const missing = await missingMount(root, memory);
      const isBack = !isKnown && last?.isEmpty === false && (mount.mayHang || point === root);
      const reason = missing === undefined ? isBack && CAME_BACK_EMPTY : notMounted(missing);
      if (reason) return { state: 'missing', reason };
      // It was mounted while it was listed.
      if (id !== before.id) return { state: 'missing', reason: 'it has just been mounted' };
    }
    known = id;
    if (last?.point !== point || last.isEmpty !== listing.empty)
      await memory.see(root, { point, isEmpty: listing.empty });
    return listing;
  };
}

const notMounted = (point: string): string =>
  `nothing is mounted at ${point}. If the folder is meant to be on this disk, put a file into it`;

const CAME_BACK_EMPTY =
  'the share or disk had files, and is empty now. If that is intended, put a file into the folder';
