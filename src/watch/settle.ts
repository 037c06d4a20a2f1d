import { posix } from 'node:path';
import type { Clock } from '../clock.js';
import type { Ready } from '../config/schema.js';
import type { Log } from '../log.js';
import { type FoundFile, filesOf } from '../model.js';
import { statOne } from '../system/disk.js';
import { isAbsent, sameStamp, stampOf } from './identify.js';
import { doneFileOf } from './match.js';

/** Applies if neither a quiet period nor a done-file is configured, so that no half-written file is ever taken. */
const DEFAULT_QUIET_MS = 5000;

export const quietMsOf = ({ quiet, doneFile }: Ready): number =>
  quiet ?? (doneFile === undefined ? DEFAULT_QUIET_MS : 0);

/** Checks for a done-file become less frequent: the interval is a tenth of the time it has been missing. */
const MIN_DONE_CHECK_MS = 1000;
const MAX_DONE_CHECK_MS = 10_000;
const DONE_CHECK_SHARE = 0.1;

/** After this time, a missing file of a run is reported. */
const MISSING_WARN_MS = 10 * 60_000;

/** The wait before the next check if a share does not respond. */
const NO_ANSWER_MS = 10_000;

interface SettleOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log?: Log;
  /** The current state of a run; by default of a single file. */
  readonly stat?: (run: FoundFile) => Promise<RunSnapshot>;
  /** Called at the start and after each check. */
  readonly progress?: (progress: Progress) => void;
}

export interface Progress {
  /** In monotonic time. */
  readonly unchangedSinceMs: number;
  readonly quietMs: number;
  readonly missing: Missing | undefined;
}

/** The done-file, or the file of the run, that does not exist yet. */
interface Missing {
  readonly kind: 'done-file' | 'file';
  readonly name: string;
  readonly waitedMs: number;
}

/** `missing`: a file without which the run is not complete. */
export type RunSnapshot = (FoundFile & { readonly missing?: string }) | 'absent' | 'no answer';

/**
 * Waits until a run is complete: unchanged for the quiet period, with its done-file and all its parts. Resolves with
 * its final state, or with undefined if it is gone. Only changes that we observe count: an old modification time
 * proves nothing, because copying preserves it and the clocks of shares are wrong.
 */
export async function settle(
  run: FoundFile,
  ready: Ready,
  { clock, signal, log, stat = statFile, progress }: SettleOptions,
): Promise<FoundFile | undefined> {
  const quietMs = quietMsOf(ready);
  const doneFile = ready.doneFile === undefined ? undefined : doneFileOf(run.location, ready.doneFile);
  const startedMs = clock.monotonic();
  let last = run;
  let isWarned = false;
  let unchangedSinceMs = startedMs;
  progress?.({ unchangedSinceMs, quietMs, missing: missingOf(doneFile, undefined, 0) });
  // With several files, only those found so far are known: the quiet period begins with the first complete check.
  let waitMs = run.parts ? 0 : quietMs;

  for (;;) {
    if (waitMs > 0) await clock.sleep(waitMs, signal);
    signal.throwIfAborted();
    // The done-file first: whatever was written before it appeared is then part of the snapshot.
    const isDone = doneFile === undefined || !((await statOne(doneFile)) instanceof Error);
    const now = await stat(run);
    signal.throwIfAborted();
    if (now === 'absent') return undefined;
    const nowMs = clock.monotonic();
    if (now === 'no answer' || !isSame(now, last)) unchangedSinceMs = nowMs;
    const missing = missingOf(isDone ? undefined : doneFile, now, nowMs - startedMs);
    progress?.({ unchangedSinceMs, quietMs, missing });
    if (missing?.kind === 'file' && missing.waitedMs >= MISSING_WARN_MS && !isWarned) {
      isWarned = true;
      log?.warn({ file: run.path, missing: missing.name }, 'a file of the run is missing, waiting for it');
    }
    if (now === 'no answer') {
      waitMs = NO_ANSWER_MS;
      continue;
    }
    last = now;
    const quietLeftMs = unchangedSinceMs + Math.max(quietMs, coarseMs(now, quietMs)) - nowMs;
    if (missing === undefined && quietLeftMs <= 0) return now;
    waitMs = missing === undefined ? quietLeftMs : Math.max(quietLeftMs, doneCheckMs(missing.waitedMs));
  }
}

/** Some shares and disks store times in steps of up to 2 s. */
const COARSE_MS = 2000;
const SECOND_NS = 1_000_000_000n;

/** A file that is written to again within such a step looks unchanged, unless the quiet period is longer. */
const coarseMs = (run: FoundFile, quietMs: number): number =>
  quietMs > 0 && filesOf(run).some(({ mtimeNs }) => mtimeNs % SECOND_NS === 0n) ? COARSE_MS : 0;

function missingOf(
  doneFile: string | Buffer | undefined,
  now: RunSnapshot | undefined,
  waitedMs: number,
): Missing | undefined {
  if (doneFile !== undefined) {
    return { kind: 'done-file', name: posix.basename(String(doneFile)), waitedMs };
  }
  return typeof now === 'object' && now.missing !== undefined
    ? { kind: 'file', name: now.missing, waitedMs }
    : undefined;
}

const doneCheckMs = (waitedMs: number): number =>
  Math.min(MAX_DONE_CHECK_MS, Math.max(MIN_DONE_CHECK_MS, waitedMs * DONE_CHECK_SHARE));

/** Whether no file of a run was changed, replaced, added or removed. */
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

/** A share that does not respond is not a proof that the file is gone. */
export async function statFile(file: FoundFile): Promise<RunSnapshot> {
  const stats = await statOne(file.location);
  if (stats instanceof Error) return isAbsent(stats) ? 'absent' : 'no answer';
  if (!stats.isFile()) return 'absent';
  return { path: file.path, location: file.location, ...stampOf(stats) };
}
