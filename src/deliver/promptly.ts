import type { Clock } from '../clock.js';
import { LabfeedError } from '../errors.js';

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
  clock.sleep(withinMs, sent.signal).then(
    () => stale.abort(new StaleError('waited too long at the gate')),
    () => undefined,
  );
  try {
    return await send(stale.signal);
  } finally {
    sent.abort();
  }
}
