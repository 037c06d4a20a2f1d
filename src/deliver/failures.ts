import { explain, type FailureClass, NotebookError } from '../errors.js';
import type { RunChange } from '../model.js';
import { backoffMs } from './backoff.js';
import { NotYetError, StoppedError } from './interruptions.js';

/** What a failure does to the run that met it. What it does to all others is the gate's business. */
const TREATMENT: Record<FailureClass, 'quarantined' | 'held' | 'again'> = {
  file: 'quarantined',
  request: 'quarantined',
  conflict: 'held',
  auth: 'again',
  rate: 'again',
  server: 'again',
};

/** How a run goes on after its delivery broke off. Undefined: as it is, as soon as labfeed runs again. */
export function treat(
  error: unknown,
  attempts: number,
  now: number,
  random: () => number = Math.random,
): RunChange | undefined {
  if (error instanceof StoppedError) return undefined;
  if (error instanceof NotYetError) {
    return { kind: 'postponed', dueAt: error.untilMs, failure: 'server', reason: explain(error) };
  }
  const failure = error instanceof NotebookError ? error.failure : 'server';
  const treatment = TREATMENT[failure];
  const reason = explain(error);
  if (treatment !== 'again') return { kind: 'rested', as: treatment, failure, reason };
  const retryAfterMs = error instanceof NotebookError ? (error.retryAfterMs ?? 0) : 0;
  return {
    kind: 'postponed',
    dueAt: now + Math.max(retryAfterMs, backoffMs(attempts, random)),
    failure,
    reason,
  };
}

/** Whether the server certainly did not carry out what was asked. */
export const surelyNotDone = (error: unknown): boolean =>
  error instanceof StoppedError || (error instanceof NotebookError && !error.lost);
