import type { Clock } from '../clock.js';
import type { LiveInstrument, WaitingFile } from '../live.js';
import type { Progress } from './settle.js';

/** What a file that was found and is not in the journal yet waits for. */
export type Wait =
  | ({ readonly for: 'stillness' } & Progress)
  /** It is still, and its content is read as soon as those before it are. */
  | { readonly for: 'its turn' }
  | { readonly for: 'another attempt'; readonly reason: string };

/** The files of one instrument that are under way, for people who ask where theirs is. */
export interface Waiting {
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
