import { createStrangers, type Strangers } from '../alarms/conditions.js';
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
export interface LineState {
  readonly waiting: Waiting;
  /** Files that came where runs should have come. */
  strangers: Strangers['seen'];
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

export function createLineState(
  { name, watch }: { readonly name: string; readonly watch: string },
  clock: Clock,
): LineState {
  const waiting = createWaiting(clock);
  const strangers = createStrangers();
  let line: LiveInstrument['line'] = 'starting';
  let folder: LiveInstrument['folder'] = { state: 'unknown' };
  let scannedAt: number | undefined;
  let files = 0;
  let unmatched: Unmatched = new Map();
  let fresh = 0;
  let lastFileAt: number | undefined;

  return {
    waiting,
    strangers: strangers.seen,
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
      strangers.listed(unmatched, files, fresh);
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
