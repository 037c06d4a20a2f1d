import type { Clock } from '../clock.js';
import { backoffMs } from '../deliver/failures.js';
import { NotebookError } from '../errors.js';
import type { Ask } from './readable-notebook.js';

export interface PatienceDeps {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** The notebook does not answer for now. */
  trouble(reason: string): void;
  /** What is thrown when it was tried often enough. */
  brokenOff(cause: NotebookError): Error;
}

/** So often in a row a request is tried that could succeed: with the waits between, some minutes. */
const MOST_ATTEMPTS = 8;

/** Lets a long work of many requests outlast a notebook that is away for some minutes. */
export function createPatience({ clock, signal, trouble, brokenOff }: PatienceDeps): Ask {
  return async (request) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await request();
      } catch (error) {
        if (!(error instanceof NotebookError) || !error.retryable || error.failure === 'auth') throw error;
        if (attempt === MOST_ATTEMPTS) throw brokenOff(error);
        trouble(error.message);
        // Where everybody waits, the gate sees to it.
        if (error.scope === 'run') await clock.sleep(backoffMs(attempt), signal);
      }
    }
  };
}
