import { sep } from 'node:path';
import { systemCode } from '../errors.js';
import type { Log } from '../log.js';
import { type Bells, type BellsDeps, createBells } from './bells.js';
import type { Folder } from './look.js';
import { isAbsent } from './stamp.js';

const FORBIDDEN = new Set(['EACCES', 'EPERM']);

export interface HearingDeps {
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
