import { backoffMs, type Clock } from '../clock.js';
import { explain, type FailureClass, LabfeedError, NotebookError } from '../errors.js';
import type { RunChange } from '../outbox.js';
import { NotYetError, StoppedError } from './context.js';

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
interface Tries {
  readonly attempts: number;
  /** How many of them ended as `isRefusal` says: an outage, or a grace, says nothing about the run's values. */
  readonly refusals: number;
}

/**
 * Whether the notebook itself, and no proxy before it, failed at what the run wanted written. Nothing that is read
 * can be refused for its values; and what is read may be another's: looks go past everybody's experiments.
 */
const isRefusal = (error: unknown): boolean =>
  error instanceof NotebookError &&
  error.scope === 'run' &&
  (error.status ?? 0) >= 500 &&
  error.outcomeUnknown;

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
    return postponed(now + backoffMs(attempts, { random }), 'server', reason);
  const { failure, retryAfterMs = 0 } = error;
  const treatment = TREATMENT[failure];
  if (treatment !== 'again') return { kind: 'parked', as: treatment, failure, reason };
  if (isRefusal(error) && refusals + 1 >= MOST_REFUSALS) {
    return { kind: 'parked', as: 'quarantined', failure, reason };
  }
  return postponed(now + Math.max(retryAfterMs, backoffMs(attempts, { random })), failure, reason);
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
  (error instanceof NotebookError && !error.outcomeUnknown);

/**
 * How often the notebook has refused each run since it last came a step further. In memory alone: a restart costs the
 * run a few more tries, nothing else.
 */
interface Refusals {
  /** `attempts`: as the journal counts them, which begins anew with each step. */
  before(run: number, attempts: number): number;
  note(run: number, error: unknown, change: RunChange): void;
  forget(run: number): void;
}

export function createRefusals(): Refusals {
  const counts = new Map<number, number>();
  return {
    before(run, attempts) {
      if (attempts === 0) counts.delete(run);
      return counts.get(run) ?? 0;
    },
    note(run, error, change) {
      if (change.kind === 'parked') counts.delete(run);
      else if (isRefusal(error)) counts.set(run, (counts.get(run) ?? 0) + 1);
    },
    forget(run) {
      counts.delete(run);
    },
  };
}

/** What was true when the request was decided on may no longer be: it was not sent. */
export class StaleError extends LabfeedError {
  override readonly name = 'StaleError';
}

/** Sends a request unless the gate keeps it waiting for so long that its reason has gone stale. */
export async function promptly<T>(
  withinMs: number,
  clock: Clock,
  send: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const stale = new AbortController();
  const sent = new AbortController();
  void clock.sleep(withinMs, sent.signal).then(() => {
    if (!sent.signal.aborted) stale.abort(new StaleError('waited too long at the gate'));
  });
  try {
    return await send(stale.signal);
  } finally {
    sent.abort();
  }
}
