import { sep } from 'node:path';
import { FSWatcher, type Throttler, type ThrottleType } from 'chokidar';
import { systemCode } from '../errors.js';
import type { Log } from '../log.js';
import type { Folder } from './folder.js';
import { isAbsent } from './identify.js';

/**
 * chokidar, held to one inotify watch a folder. By itself it lists the folder and stats every file in it
 * at each event: ten writes a second into a folder of 50,000 files then cost it more than a whole core,
 * and 0.4 % of one without. What a folder holds is asked of the listing instead; events are only the bell.
 */
class FolderBell extends FSWatcher {
  /** chokidar asks this before it lists a folder: the answer is no. */
  override _throttle(action: ThrottleType, path: string, timeoutMs: number): Throttler | false {
    return action === 'readdir' ? false : super._throttle(action, path, timeoutMs);
  }
}

export interface BellsDeps {
  /** Something happened in a folder; to what, is not always known. */
  ring(folder: string, name: string | undefined): void;
  /** The system grants no watch on a folder, or has taken it back. */
  lost(folder: string, error: unknown): void;
}

/** One bell a folder. A folder is named by its path, and known by its identity. */
export interface Bells {
  /** Resolves when the bell hangs there, or `lost` was told why it does not. */
  hang(folder: string, id: string): Promise<void>;
  has(folder: string, id?: string): boolean;
  /** Takes down what hangs in a folder and in all below it. */
  drop(folder: string): void;
  /** Takes down all but these. */
  keep(folders: ReadonlySet<string>): void;
  close(): void;
}

interface Hung {
  readonly id: string;
  close(): void;
}

export function createBells({ ring, lost }: BellsDeps): Bells {
  const bells = new Map<string, Hung>();

  function takeDown(folder: string): void {
    bells.get(folder)?.close();
    bells.delete(folder);
  }

  return {
    async hang(folder, id) {
      if (bells.get(folder)?.id === id) return;
      takeDown(folder);
      await new Promise<void>((resolve) => {
        const bell = open(folder);
        const close = () => {
          void bell.close();
          // Closing takes all listeners away, and an error that comes late must not find none.
          bell.on('error', () => undefined);
          resolve();
        };
        bells.set(folder, { id, close });
        bell.once('ready', resolve);
        bell.on('raw', (_event, name, details) => {
          if (isAt(folder, details)) ring(folder, name ?? undefined);
          else takeDown(folder);
        });
        bell.on('error', (error) => {
          takeDown(folder);
          lost(folder, error);
        });
      });
    },
    has: (folder, id) => bells.has(folder) && (id === undefined || bells.get(folder)?.id === id),
    drop(folder) {
      for (const hung of [...bells.keys()]) {
        if (hung === folder || hung.startsWith(`${folder}/`)) takeDown(hung);
      }
    },
    keep(folders) {
      for (const hung of [...bells.keys()]) if (!folders.has(hung)) takeDown(hung);
    },
    close() {
      for (const hung of [...bells.keys()]) takeDown(hung);
    },
  };
}

function open(folder: string): FSWatcher {
  return new FolderBell({
    depth: 0,
    ignoreInitial: true,
    ignored: (_path, stats) => stats?.isFile() === true,
    // chokidar's idea of an editor's temporary file would pass over a folder such as `data~`.
    atomic: false,
    // Otherwise chokidar shares one watch among all who watch the same path,
    // and none of them can get a new one when another folder comes to stand there.
    persistent: false,
  }).add(folder);
}

/** Where a folder vanishes before it is watched, chokidar watches the one above instead. */
function isAt(folder: string, details: unknown): boolean {
  return (
    typeof details === 'object' &&
    details !== null &&
    'watchedPath' in details &&
    details.watchedPath === folder
  );
}

const FORBIDDEN = new Set(['EACCES', 'EPERM']);

interface HearingDeps {
  readonly root: string;
  ring: BellsDeps['ring'];
  readonly log: Log;
  readonly signal: AbortSignal;
  readonly createBells?: ((deps: BellsDeps) => Bells) | undefined;
}

/** Which folders ring when something changes in them, and whether some do not. */
export interface Hearing {
  /** Hangs a bell in a folder. */
  listenTo(folder: Folder): Promise<void>;
  hears(folder: Folder): boolean;
  forget(path: string): void;
  forgetAll(): void;
  /** Called before a full scan, which tries anew what the system refused. */
  beginScan(): void;
  /** Called after it: folders that it did not meet are no longer there. */
  endScan(): void;
  /** Whether a folder stays silent because the system grants no more watches. */
  isDeaf(): boolean;
}

export function createHearing(deps: HearingDeps): Hearing {
  const { root, ring, log, signal } = deps;
  let deaf = false;
  let warned = false;
  /** The folders that the scan under way has met, also by way of events meanwhile. */
  let met: Set<string> | undefined;
  const unwatchable = new Set<string>();
  const bells = (deps.createBells ?? createBells)({
    ring,
    lost(folder, error) {
      // A folder that may not be read, or has gone, is the listing's to tell.
      if (isAbsent(error) || FORBIDDEN.has(systemCode(error) ?? '')) return;
      deaf = true;
      if (!warned) warnOf(error, folder, log);
      warned = true;
    },
  });

  return {
    async listenTo({ path, location, id }) {
      met?.add(path);
      if (deaf || signal.aborted || bells.has(path, id)) return;
      if (isWatchable(location)) await bells.hang(path, id);
      else if (!unwatchable.has(path)) {
        unwatchable.add(path);
        log.warn({ folder: path }, 'a folder of this name cannot be watched: it is read at each rescan only');
      }
    },
    hears: ({ path, id }) => bells.has(path, id),
    forget(path) {
      if (bells.has(path)) bells.drop(path);
    },
    forgetAll: () => bells.close(),
    beginScan() {
      deaf = false;
      met = new Set();
    },
    endScan() {
      if (met) bells.keep(met);
      met = undefined;
      if (warned && !deaf) {
        warned = false;
        log.info({ folder: root }, 'every folder is watched again');
      }
    },
    isDeaf: () => deaf,
  };
}

/** chokidar takes text only, and a backslash for a separator. */
function isWatchable(location: string | Buffer): boolean {
  return typeof location === 'string' && (sep === '\\' || !location.includes('\\'));
}

function warnOf(error: unknown, folder: string, log: Log): void {
  const reason = error instanceof Error ? error.message : String(error);
  log.warn({ folder, reason, hint: hintFor(error) }, 'no watch on the folder: it is read every 10 s instead');
}

function hintFor(error: unknown): string {
  if (systemCode(error) === 'ENOSPC') {
    return 'raise the system limit: sysctl fs.inotify.max_user_watches=524288';
  }
  if (systemCode(error) === 'EMFILE') {
    return 'raise the system limit: sysctl fs.inotify.max_user_instances=512, and LimitNOFILE of the service';
  }
  return 'nothing is lost, but files are noticed later';
}

/** What rang in one folder: these names, or too many, or something without a name. */
export type Rung = ReadonlySet<string> | 'anything';

/** More names than this in one folder, and listing it is cheaper than looking at each. */
const MANY = 200;

export interface Rings {
  ring(folder: string, name: string | undefined): void;
  /** Resolves when something has rung, or nothing will any more. */
  heard(): Promise<void>;
  /** What has rung since the last time, by folder. */
  take(): ReadonlyMap<string, Rung>;
  stop(): void;
}

/** Gathers bells, so that a burst of them is answered once. Holds a bounded number of names, however long it is. */
export function createRings(): Rings {
  let rung = new Map<string, Set<string> | 'anything'>();
  let wake: (() => void) | undefined;
  let stopped = false;

  return {
    ring(folder, name) {
      const names = rung.get(folder) ?? new Set<string>();
      // U+FFFD stands for bytes that are not UTF-8: that name opens nothing.
      const nameless = name === undefined || name === '' || name.includes('\ufffd');
      if (names === 'anything' || nameless || names.size >= MANY) rung.set(folder, 'anything');
      else rung.set(folder, names.add(name));
      wake?.();
    },
    async heard() {
      if (rung.size > 0 || stopped) return;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
      wake = undefined;
    },
    take() {
      const taken = rung;
      rung = new Map();
      return taken;
    },
    stop() {
      stopped = true;
      wake?.();
    },
  };
}
