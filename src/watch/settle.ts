import { posix } from 'node:path';
import type { Clock } from '../clock.js';
import type { Ready } from '../config/schema.js';
import { type FoundFile, filesOf } from '../model.js';
import { isAbsent, sameStamp, stampOf, statAll } from './identify.js';
import { doneFileOf } from './match.js';

/** What holds where the configuration asks for nothing: nothing half-written is ever taken. */
export const DEFAULT_QUIET_MS = 5000;

/** A done-file is looked for often at first, and less often the longer it keeps one waiting. */
const DONE_FIRST_MS = 1000;
const DONE_LONGEST_MS = 10_000;
const DONE_SHARE = 0.1;

/** How long to wait before looking again where a share does not answer. */
const NO_ANSWER_MS = 10_000;

interface SettleOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Goes through this one at a time or a few: a share that hangs must not take every thread for file access. */
  readonly lane?: <T>(work: () => Promise<T>) => Promise<T>;
  /** What of a run there is now; without it, it is one file. */
  readonly look?: (run: FoundFile) => Promise<RunSnapshot>;
  /** Told at each look at which a part of the run is not there. */
  readonly lacks?: (part: string, waitedMs: number) => void;
  /** Told at first, and after each look. */
  readonly progress?: (progress: Progress) => void;
}

/** How far a file is from being complete. */
export interface Progress {
  /** Of the clock that only grows. */
  readonly stillSinceMs: number;
  readonly quietMs: number;
  /** The done-file, or the part of the run, that is not there. */
  readonly missing: string | undefined;
}

/** `lacks`: a file without which the run is not whole. */
export type RunSnapshot = (FoundFile & { readonly missing?: string }) | 'absent' | 'no answer';

/**
 * Resolves with the file as it is once nobody writes to it any more, or undefined when it is gone.
 * What counts is the stillness that we saw: a modification time long ago proves nothing,
 * since copying preserves it and the clocks of shares are wrong.
 */
export async function settle(
  file: FoundFile,
  ready: Ready,
  { clock, signal, lane = (work) => work(), look = statFile, lacks, progress }: SettleOptions,
): Promise<FoundFile | undefined> {
  const quietMs = ready.quiet ?? (ready.doneFile === undefined ? DEFAULT_QUIET_MS : 0);
  const doneFile = ready.doneFile === undefined ? undefined : doneFileOf(file.location, ready.doneFile);
  const startedMs = clock.monotonic();
  let seen = file;
  let stillSinceMs = startedMs;
  // Of several files only those that were met are known: all of them have to be still from the first look on.
  let waitMs = file.parts ? 0 : quietMs;
  const missing = doneFile === undefined ? undefined : `done-file ${posix.basename(String(doneFile))}`;
  progress?.({ stillSinceMs, quietMs, missing });

  for (;;) {
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    signal.throwIfAborted();
    // The done-file first: what is written before it appears is then in the glance that follows.
    const isDone = doneFile === undefined || (await lane(() => exists(doneFile)));
    const now = await lane(() => look(file));
    signal.throwIfAborted();
    if (now === 'absent') return undefined;
    const nowMs = clock.monotonic();
    if (now === 'no answer' || !isSame(now, seen)) stillSinceMs = nowMs;
    progress?.({ stillSinceMs, quietMs, missing: isDone ? lackOf(now) : missing });
    if (now === 'no answer') {
      waitMs = NO_ANSWER_MS;
      continue;
    }
    seen = now;
    const quietLeftMs = stillSinceMs + quietMs - nowMs;
    if (now.missing !== undefined) lacks?.(now.missing, nowMs - startedMs);
    const isWhole = isDone && now.missing === undefined;
    if (isWhole && quietLeftMs <= 0) return now;
    waitMs = isWhole ? quietLeftMs : Math.max(quietLeftMs, doneWaitMs(nowMs - startedMs));
  }
}

const lackOf = (now: RunSnapshot): string | undefined =>
  typeof now === 'string' || now.missing === undefined ? undefined : `file ${now.missing}`;

/** Whether nothing of a run was written to, replaced, added or taken away. */
export function isSame(a: FoundFile, b: FoundFile): boolean {
  const [now, then] = [filesOf(a), filesOf(b)];
  return (
    now.length === then.length &&
    now.every((file, n) => {
      const other = then[n];
      return other !== undefined && file.path === other.path && sameStamp(file, other);
    })
  );
}

function doneWaitMs(waitedMs: number): number {
  return Math.min(DONE_LONGEST_MS, Math.max(DONE_FIRST_MS, waitedMs * DONE_SHARE));
}

async function exists(location: string | Buffer): Promise<boolean> {
  const [stats] = await statAll([location]);
  return stats !== undefined && !(stats instanceof Error);
}

/** A share that does not answer is no proof that the file is gone. */
export async function statFile(file: FoundFile): Promise<RunSnapshot> {
  const [stats] = await statAll([file.location]);
  if (stats === undefined || stats instanceof Error) return isAbsent(stats) ? 'absent' : 'no answer';
  if (!stats.isFile()) return 'absent';
  return { path: file.path, location: file.location, ...stampOf(stats) };
}
