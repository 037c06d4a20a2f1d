import { explain, type FailureClass, NotebookError } from '../errors.js';
import type { RunChange } from '../model.js';
import { backoffMs } from './backoff.js';
import { NotYetError, StoppedError } from './interruptions.js';
import { StaleError } from './promptly.js';

/**
 * What a failure does, by its class (which `notebook/verdict.ts` decides):
 *
 * | class      | e.g.                            | the run         | the others                | the log |
 * |------------|---------------------------------|-----------------|---------------------------|---------|
 * | `file`     | does not read as its mapping    | quarantined     | go on                     | warning |
 * | `request`  | 400, 422, 413                   | quarantined     | go on                     | warning |
 * | `conflict` | edited, locked, deleted, 403    | held            | go on                     | warning |
 * | `auth`     | 401, read-only key              | tried again     | wait at the gate          | warning, once |
 * | `rate`     | 429                             | tried again     | slow down at the gate     | warning, once |
 * | `server`   | no answer, 5xx, HTML            | tried again     | wait at the gate          | warning, once |
 * | `server`, of one run | 500 in JSON, being edited | tried again; a write that gets 500 a few times, then quarantined | go on | info |
 */
const TREATMENT: Record<FailureClass, 'quarantined' | 'held' | 'again'> = {
  file: 'quarantined',
  request: 'quarantined',
  conflict: 'held',
  auth: 'again',
  rate: 'again',
  server: 'again',
};

/** A server that is well enough to answer in JSON says 500 mostly because it will never take the value. */
const MOST_REFUSALS = 5;

/** What has failed since the run last came a step further. */
export interface Tries {
  readonly attempts: number;
  /** How many of them ended as `isRefusal` says: an outage, or a grace, says nothing about the run's values. */
  readonly refusals: number;
}

/**
 * Whether the notebook itself, and no proxy before it, failed at what the run wanted written. Nothing that is read
 * can be refused for its values; and what is read may be another's: looks go past everybody's experiments.
 */
export const isRefusal = (error: unknown): boolean =>
  error instanceof NotebookError && error.scope === 'run' && (error.status ?? 0) >= 500 && error.lost;

/** How a run goes on after its delivery broke off. Undefined: as it is, as soon as labfeed runs again. */
export function treat(
  error: unknown,
  { attempts, refusals }: Tries,
  now: number,
  random: () => number = Math.random,
): RunChange | undefined {
  if (error instanceof StoppedError) return undefined;
  const reason = explain(error);
  if (error instanceof NotYetError) return postponed(error.untilMs, 'server', reason);
  if (!(error instanceof NotebookError))
    return postponed(now + backoffMs(attempts, random), 'server', reason);
  const { failure, retryAfterMs = 0 } = error;
  const treatment = TREATMENT[failure];
  if (treatment !== 'again') return { kind: 'rested', as: treatment, failure, reason };
  if (isRefusal(error) && refusals + 1 >= MOST_REFUSALS) {
    return { kind: 'rested', as: 'quarantined', failure, reason };
  }
  return postponed(now + Math.max(retryAfterMs, backoffMs(attempts, random)), failure, reason);
}

const postponed = (dueAt: number, failure: FailureClass, reason: string): RunChange => ({
  kind: 'postponed',
  // A clock that only grows counts in fractions; the journal's times are whole milliseconds.
  dueAt: Math.ceil(dueAt),
  failure,
  reason,
});

/** Whether the server certainly did not carry out what was asked. */
export const surelyNotDone = (error: unknown): boolean =>
  error instanceof StoppedError ||
  error instanceof StaleError ||
  (error instanceof NotebookError && !error.lost);
