import { sep } from 'node:path';
import { FSWatcher, type Throttler, type ThrottleType } from 'chokidar';
import { explain, isForbidden, systemCode } from '../errors.js';
import type { Log } from '../log.js';
import type { Mount } from '../system/mounts.js';
import { isAbsent } from './identify.js';
import type { Folder } from './scan.js';

/**
 * chokidar with one inotify watch per folder. chokidar itself lists the folder and stats every file at each event:
 * ten writes a second into a folder of 50,000 files use more than one core, and 0.4 % of one without the listing.
 * chokidar has no option to turn that off; the override is tested in `test/watch/watcher.test.ts`.
 */
class FolderWatcher extends FSWatcher {
  /** chokidar calls this before it lists a folder; false prevents the listing. */
  override _throttle(action: ThrottleType, path: string, timeoutMs: number): Throttler | false {
    return action === 'readdir' ? false : super._throttle(action, path, timeoutMs);
  }
}

interface FolderWatchHandlers {
  /** Something in the folder has changed. The system does not always say what. */
  event(name: string | undefined): void;
  /** The watch has ended: with the error if the system refuses it, without one if the folder is gone. */
  ended(error?: unknown): void;
}

/** A watch on one folder, without its subfolders. */
interface FolderWatch {
  /** Resolves when events arrive, or when the watch has ended. */
  readonly ready: Promise<void>;
  close(): void;
}

export type WatchFolder = (folder: string, handlers: FolderWatchHandlers) => FolderWatch;

export const watchFolder: WatchFolder = (folder, { event, ended }) => {
  const watcher = new FolderWatcher({
    depth: 0,
    ignoreInitial: true,
    ignored: (_path, stats) => stats?.isFile() === true,
    // chokidar would treat a folder such as `data~` as an editor's temporary file.
    atomic: false,
    // Persistent watches on the same path share one instance, which keeps watching a folder that was replaced.
    persistent: false,
  }).add(folder);
  const closed = new AbortController();
  const ready = new Promise<void>((resolve) => {
    watcher.once('ready', resolve);
    closed.signal.addEventListener('abort', () => resolve());
  });
  watcher.on('raw', (_event, name, details) => (isOf(folder, details) ? event(name ?? undefined) : ended()));
  watcher.on('error', ended);
  return {
    ready,
    close() {
      closed.abort();
      void watcher.close();
      // Closing removes all listeners, and a late error without a listener would end the process.
      watcher.on('error', () => undefined);
    },
  };
};

/** If a folder disappears before it is watched, chokidar watches its parent instead. */
const isOf = (folder: string, details: unknown): boolean =>
  typeof details === 'object' && details !== null && 'watchedPath' in details && details.watchedPath === folder;

interface FolderWatchesDeps {
  readonly root: string;
  event(folder: string, name: string | undefined): void;
  readonly log: Log;
  readonly signal: AbortSignal;
  /** The mount of a folder that may hang. */
  readonly slowMount: (folder: string | Buffer) => Mount | undefined;
  readonly open?: WatchFolder | undefined;
}

/** `mtimeNs`: of the folder, at the last scan. `events`: how many came since. */
interface OpenWatch extends FolderWatch {
  readonly id: string;
  mtimeNs: bigint | undefined;
  events: number;
}

/** Why events are not enough to notice new files. */
export interface MissingEvents {
  readonly because: string;
  /** By the type of the file system. */
  readonly isShare: boolean;
}

/** Why a folder on this mount is not watched. */
export const whySlow = ({ share }: Mount): string => (share ? `network share (${share})` : 'FUSE file system');

export type FolderWatches = ReturnType<typeof createFolderWatches>;

/** The watches on the folders of one instrument. */
export function createFolderWatches({ root, event, log, signal, slowMount, open = watchFolder }: FolderWatchesDeps) {
  const watches = new Map<string, OpenWatch>();
  /** Folders that have changed without an event since the scan before. */
  const silent = new Set<string>();
  let isSilent = false;
  /** Folders on such a mount are not watched: that could hang, and changes by other machines send no events. */
  let slow: Mount | undefined;
  /** The folders found by the current scan, or by events since it began. */
  let found: Set<string> | undefined;
  const unwatchable = new Set<string>();
  let refused = false;
  let isWarned = false;

  function remove(path: string): void {
    watches.get(path)?.close();
    watches.delete(path);
  }

  /** Not at the first visit: what changed before the watch was ready sent no event. */
  function noteChange(path: string, watch: OpenWatch, mtimeNs: bigint): void {
    if (watch.mtimeNs !== undefined && watch.mtimeNs !== mtimeNs && watch.events === 0) silent.add(path);
    watch.mtimeNs = mtimeNs;
    watch.events = 0;
  }

  function ended(path: string, error: unknown): void {
    remove(path);
    // The scan reports folders that are gone or forbidden.
    if (error === undefined || isAbsent(error) || isForbidden(systemCode(error))) return;
    refused = true;
    if (!isWarned) warnRefused(path, error, log);
    isWarned = true;
  }

  return {
    /** Resolves when events arrive from the folder, or when it cannot be watched. */
    async add({ path, location, id, mtimeNs }: Folder): Promise<void> {
      found?.add(path);
      const mount = slowMount(location);
      slow ??= mount;
      if (mount) return remove(path);
      const known = watches.get(path);
      if (known?.id === id && mtimeNs !== undefined) noteChange(path, known, mtimeNs);
      if (refused || signal.aborted || watches.get(path)?.id === id) return;
      if (isWatchable(location)) {
        remove(path);
        const watch = open(path, {
          event(name) {
            const own = watches.get(path);
            if (own) own.events += 1;
            silent.delete(path);
            event(path, name);
          },
          ended: (error) => ended(path, error),
        });
        watches.set(path, { ...watch, id, mtimeNs: undefined, events: 0 });
        await watch.ready;
      } else if (!unwatchable.has(path)) {
        unwatchable.add(path);
        log.warn({ folder: path }, 'cannot watch a folder with this name, using rescans only');
      }
    },
    has: ({ path, id }: Folder): boolean => watches.get(path)?.id === id,
    /** Removes the watch on a folder and on everything below it. */
    remove(path: string): void {
      if (!watches.has(path)) return;
      for (const other of [...watches.keys()]) if (other === path || other.startsWith(`${path}/`)) remove(other);
    },
    removeAll(): void {
      for (const path of [...watches.keys()]) remove(path);
    },
    /** Called before a full scan, which retries watches that the system refused. */
    beginScan(): void {
      refused = false;
      slow = undefined;
      found = new Set();
    },
    /** Called after a full scan: folders it did not find no longer exist. */
    endScan(): void {
      for (const path of [...watches.keys()]) if (found?.has(path) === false) remove(path);
      found = undefined;
      if (!isWarned || refused) return;
      isWarned = false;
      log.info({ folder: root }, 'all folders are watched again');
    },
    /**
     * Why events are not enough, if so. The events of the last changes may still be on their way when a scan ends, so
     * they are waited for.
     */
    async missing(waitMs: number): Promise<MissingEvents | undefined> {
      if (!isSilent && silent.size > 0) {
        await new Promise((resolve) => setTimeout(resolve, waitMs));
        const [folder] = silent;
        isSilent = folder !== undefined;
        if (isSilent) log.warn({ folder }, 'the folder sends no events for changes, rescanning every 10 s instead');
      }
      silent.clear();
      if (slow) return { because: whySlow(slow), isShare: true };
      if (isSilent) return { because: 'no events for changes', isShare: false };
      return refused ? { because: 'the system refuses to watch folders', isShare: false } : undefined;
    },
  };
}

/** chokidar accepts only text, and treats a backslash as a separator. */
const isWatchable = (location: string | Buffer): boolean =>
  typeof location === 'string' && (sep === '\\' || !location.includes('\\'));

function warnRefused(folder: string, error: unknown, log: Log): void {
  log.warn(
    { folder, reason: explain(error), hint: hintFor(error) },
    'cannot watch the folder, rescanning every 10 s instead',
  );
}

function hintFor(error: unknown): string {
  switch (systemCode(error)) {
    case 'ENOSPC':
      return 'raise the system limit: sysctl fs.inotify.max_user_watches=524288';
    case 'EMFILE':
      return 'raise the system limits: sysctl fs.inotify.max_user_instances=512, and LimitNOFILE of the service';
    default:
      return 'no file is lost, but files are noticed later';
  }
}

/** The names of the files that changed, or `all` if there are too many or a name is unknown. */
export type ChangedNames = ReadonlySet<string> | 'all';

/**
 * A listing costs a stat call for each file of the folder, also for those that have not changed. But after this many names,
 * the system may have dropped events.
 */
const MAX_NAMES = 2000;

/** File events not yet processed, by folder. Holds a bounded number of names for each. */
export function createPendingEvents() {
  let pending = new Map<string, Set<string> | 'all'>();
  return {
    add(folder: string, name: string | undefined): void {
      const names = pending.get(folder) ?? new Set<string>();
      // U+FFFD stands for bytes that are not UTF-8: a file with that name cannot be opened.
      const isUnknown = name === undefined || name === '' || name.includes('\ufffd');
      if (names === 'all' || isUnknown || names.size >= MAX_NAMES) pending.set(folder, 'all');
      else pending.set(folder, names.add(name));
    },
    /** Removes and returns all of them. */
    take(): ReadonlyMap<string, ChangedNames> {
      const taken = pending;
      pending = new Map();
      return taken;
    },
  };
}
