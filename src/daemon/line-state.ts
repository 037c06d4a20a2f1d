import { createStrangers, type Strangers } from '../alarms/strangers.js';
import type { Clock } from '../clock.js';
import type { LiveInstrument } from '../live.js';
import type { Unmatched } from '../watch/unmatched.js';
import { createWaiting, type Waiting } from '../watch/waiting.js';

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
