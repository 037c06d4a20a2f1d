import type { RunChange } from '../model.js';
import { isRefusal } from './failures.js';

/**
 * How often the notebook has refused each run since it last came a step further. In memory alone: a restart costs the
 * run a few more tries, nothing else.
 */
export interface Refusals {
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
      if (change.kind === 'rested') counts.delete(run);
      else if (isRefusal(error)) counts.set(run, (counts.get(run) ?? 0) + 1);
    },
    forget(run) {
      counts.delete(run);
    },
  };
}
