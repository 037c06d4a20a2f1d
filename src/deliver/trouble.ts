import type { NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import { backoffMs } from './backoff.js';

/** Why nobody but a probe may leave. */
export interface Trouble {
  error: NotebookError;
  /** More is wrong than that we were too fast. */
  outage: boolean;
  /** Milliseconds since 1970, and of the clock that only grows. */
  readonly since: number;
  readonly closedAt: number;
  /** Waits so far, each longer than the last. */
  attempts: number;
  warned: boolean;
}

/**
 * At a limit, waits grow to this and then to a third of the time since it was met: what is granted anew each
 * minute is not left lying for half of it.
 */
const LIMIT_LONGEST_MS = 16_000;
/** Others were told the same time to come back: a tenth of it, and at most this, is left to chance. */
const SPREAD_MS = 5000;
/** So long a wait is told even where the trouble is no news. */
const LONG_MS = 5000;

/** How long until the next probe, as far as it is ours to say; counts one more attempt. */
export function nextWaitMs(trouble: Trouble, perSecond: number, now: number, random: () => number): number {
  const longestMs = Math.max(LIMIT_LONGEST_MS, 3000 / perSecond, (now - trouble.closedAt) / 3);
  const most = trouble.outage ? Number.POSITIVE_INFINITY : Math.log2(longestMs / 1000);
  const waitMs = backoffMs(Math.min(trouble.attempts, most), random);
  trouble.attempts += 1;
  return waitMs;
}

/** How long the server asks to be left alone. */
export function askedWaitMs({ retryAfterMs = 0 }: NotebookError, random: () => number): number {
  return Math.round(retryAfterMs + random() * Math.min(retryAfterMs / 10, SPREAD_MS));
}

export function tellWait(log: Log, trouble: Trouble, waitMs: number, news: boolean): void {
  const { error, outage } = trouble;
  const warns = !trouble.warned && (news || waitMs >= LONG_MS);
  trouble.warned ||= warns;
  const sentence = outage ? 'notebook not available, waiting' : 'notebook takes no more for now, waiting';
  const { failure, status, message: reason } = error;
  log[warns ? 'warn' : 'debug']({ failure, status, waitMs, reason }, sentence);
}

export function tellEnd(log: Log, { closedAt, warned }: Trouble, perSecond: number, now: number): void {
  const fields = { afterMs: Math.round(now - closedAt), perSecond };
  log[warned ? 'info' : 'debug'](fields, 'notebook available again');
}
