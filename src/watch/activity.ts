import type { Clock } from '../clock.js';
import type { LiveInstrument, WaitingFile } from '../live.js';
import type { Unmatched } from './scan.js';
import type { Progress } from './settle.js';

/** What a file that was found and is not in the journal yet waits for. */
type Wait =
  | ({ readonly for: 'stillness' } & Progress)
  /** It is still, and its content is read as soon as those before it are. */
  | { readonly for: 'its turn' }
  | { readonly for: 'another attempt'; readonly reason: string };

/** The files of one instrument that are under way, for people who ask where theirs is. */
interface Waiting {
  begin(path: string): void;
  note(path: string, wait: Wait): void;
  end(path: string): void;
  list(): LiveInstrument['waiting'];
}

/** More than these nobody reads. */
const FIRST = 20;

export function createWaiting(clock: Clock): Waiting {
  const files = new Map<string, { readonly since: number; wait: Wait | undefined }>();

  function describe(path: string): WaitingFile[] {
    const file = files.get(path);
    return file ? [{ path, since: file.since, reason: reasonOf(file.wait, clock.monotonic()) }] : [];
  }

  return {
    begin: (path) => void files.set(path, { since: clock.now(), wait: undefined }),
    note(path, wait) {
      const file = files.get(path);
      if (file) file.wait = wait;
    },
    end: (path) => void files.delete(path),
    list: () => ({ files: files.size, first: leastOf(files.keys()).flatMap(describe) }),
  };
}

function reasonOf(wait: Wait | undefined, nowMs: number): string {
  switch (wait?.for) {
    case 'stillness': {
      if (wait.missing !== undefined) return `no ${wait.missing}`;
      // With the same unit on both sides, the words stay comparable: 0 s of 5 s, not 400 ms of 5 s.
      const stillMs = Math.max(0, Math.min(nowMs - wait.stillSinceMs, wait.quietMs));
      const still = wait.quietMs < 1000 ? `${Math.round(stillMs)} ms` : `${Math.floor(stillMs / 1000)} s`;
      const quiet = wait.quietMs < 1000 ? `${wait.quietMs} ms` : `${wait.quietMs / 1000} s`;
      return `still for ${still} of ${quiet}`;
    }
    case 'another attempt':
      return `cannot be taken yet: ${wait.reason}`;
    case 'its turn':
    case undefined:
      return 'waits for its turn to be read';
  }
}

/** The first few in order, in one pass: thousands may wait. */
function leastOf(paths: Iterable<string>): string[] {
  const least: string[] = [];
  for (const path of paths) {
    const last = least.at(-1);
    if (least.length === FIRST && last !== undefined && path > last) continue;
    const at = least.findIndex((other) => path < other);
    least.splice(at < 0 ? least.length : at, 0, path);
    if (least.length > FIRST) least.pop();
  }
  return least;
}

/** How one instrument's line is, kept as it changes: counts and a few names, however many files there are. */
export interface Activity {
  readonly waiting: Waiting;
  /** Files that came where runs should have come. */
  unmatchedArrivals: UnmatchedArrivals['seen'];
  is(line: LiveInstrument['line']): void;
  folder(state: LiveInstrument['folder']['state'], reason?: string): void;
  /** What the listing that goes on has met that no glob fits. */
  unmatched(found: Unmatched): void;
  /** A listing has ended. */
  scanned(result: { readonly complete: boolean; readonly files: number }): void;
  /** A file was found that the journal does not know. */
  found(): void;
  /** A file became a run, or was looked at for the first time. */
  came(at: number): void;
  live(): LiveInstrument;
}

export function createActivity(
  { name, watch }: { readonly name: string; readonly watch: string },
  clock: Clock,
): Activity {
  const waiting = createWaiting(clock);
  const arrivals = createUnmatchedArrivals();
  let line: LiveInstrument['line'] = 'starting';
  let folder: LiveInstrument['folder'] = { state: 'unknown' };
  let scannedAt: number | undefined;
  let files = 0;
  let unmatched: Unmatched = new Map();
  let fresh = 0;
  let lastFileAt: number | undefined;

  return {
    waiting,
    unmatchedArrivals: arrivals.seen,
    is(now) {
      line = now;
    },
    folder(state, reason) {
      folder = { state, reason };
    },
    unmatched(found) {
      unmatched = found;
    },
    scanned(result) {
      files = result.files;
      arrivals.listed(unmatched, files, fresh);
      if (result.complete) scannedAt = clock.now();
    },
    found() {
      fresh += 1;
    },
    came(at) {
      lastFileAt = Math.max(at, lastFileAt ?? at);
    },
    live: () => ({
      name,
      watch,
      line,
      folder,
      scannedAt,
      files,
      unmatched: summaryOf(unmatched),
      waiting: waiting.list(),
      lastFileAt,
    }),
  };
}

function summaryOf(unmatched: Unmatched): LiveInstrument['unmatched'] {
  const endings = [...unmatched.values()];
  return {
    files: endings.reduce((sum, { files }) => sum + files, 0),
    example: endings.map(({ example }) => example).reduce(greater, '') || undefined,
  };
}

const greater = (one: string, other: string): string => (one > other ? one : other);

/** Tells files that come where runs should come from those that always lie beside them. */
export interface UnmatchedArrivals {
  /**
   * After each listing of the folder: what no glob fits, by its ending; how many files fit; and how many have come
   * so far that fit.
   */
  listed(endings: Unmatched, files: number, came: number): void;
  /** On how many occasions strange files have come since a run did, and one of them. */
  seen(): { readonly occasions: number; readonly example: string | undefined };
}

/**
 * Usual is every ending that lies in the folder when a run has come: the logs and pictures that the instrument writes
 * beside it. Anything else is strange, and so is everything where no run ever came. An occasion is a listing that
 * finds more strange files than the one before: a person who copies a hundred files into the folder makes one.
 */
export function createUnmatchedArrivals(): UnmatchedArrivals {
  let usual: ReadonlySet<string> = new Set();
  let before: Unmatched | undefined;
  let cameBefore = 0;
  let occasions = 0;
  let example: string | undefined;

  return {
    listed(endings, files, came) {
      const hasRuns = before === undefined ? files > 0 : came > cameBefore;
      if (hasRuns) {
        usual = new Set(endings.keys());
        occasions = 0;
        example = undefined;
      } else if (before !== undefined) {
        const more = [...endings].filter(
          ([ending, { files }]) => !usual.has(ending) && files > (before?.get(ending)?.files ?? 0),
        );
        if (more.length > 0) occasions += 1;
        example = more.at(-1)?.[1].example ?? example;
      }
      before = endings;
      cameBefore = came;
    },
    seen: () => ({ occasions, example }),
  };
}
