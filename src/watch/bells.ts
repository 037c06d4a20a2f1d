import { FSWatcher, type Throttler, type ThrottleType } from 'chokidar';

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
