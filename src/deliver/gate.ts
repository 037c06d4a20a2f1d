import type { Clock } from '../clock.js';
import { NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import { backoffMs } from './backoff.js';
import { StoppedError } from './interruptions.js';

/** Every request of the daemon passes here, so that a limit of the server binds all workers at once. */
export interface Gate {
  admit<T>(send: () => Promise<T>): Promise<T>;
  /** Turns away who waits, and whoever comes. */
  stop(): void;
}

export interface GateOptions {
  readonly perSecond: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}

export function createGate({ perSecond, clock, log, random = Math.random }: GateOptions): Gate {
  const stopping = new AbortController();
  const ceiling = createCeiling(perSecond);
  let closedUntil = 0;
  let troubles = 0;
  /** While the server is in trouble, the one request that tries whether it has passed. */
  let probe: Promise<unknown> | undefined;
  let queue: Promise<unknown> = Promise.resolve();

  async function turn(): Promise<void> {
    for (;;) {
      if (stopping.signal.aborted) throw new StoppedError('labfeed is stopping');
      if (probe) {
        await probe;
        continue;
      }
      const now = clock.monotonic();
      const waitMs = Math.max(closedUntil - now, ceiling.waitMs(now));
      if (waitMs <= 0) return ceiling.start(now);
      await clock.sleep(waitMs, stopping.signal).catch(() => undefined);
    }
  }

  function close(error: NotebookError): void {
    const waitMs = Math.max(error.retryAfterMs ?? 0, backoffMs(troubles, random));
    troubles += 1;
    closedUntil = Math.max(closedUntil, clock.monotonic() + waitMs);
    log.warn(
      { failure: error.failure, status: error.status, waitMs, reason: error.message },
      'notebook not available, waiting',
    );
  }

  function learn(outcome: unknown): void {
    if (outcome instanceof NotebookError && outcome.scope === 'everybody') {
      close(outcome);
    } else {
      if (troubles > 0) log.info('notebook available again');
      troubles = 0;
    }
  }

  return {
    async admit(send) {
      // One after the other through the turnstile; side by side behind it.
      const mine = queue.then(turn);
      queue = mine.catch(() => undefined);
      await mine;
      const request = send();
      const answered = request.then(() => learn(undefined), learn);
      if (troubles > 0) probe = answered.finally(() => (probe = undefined));
      await answered;
      return request;
    },
    stop: () => stopping.abort(),
  };
}

/** At most so many starts in any window; short bursts pass, a second never sees more than the ceiling. */
function createCeiling(perSecond: number) {
  // Below one a second, the window is what one request takes; above, it is a second and a little,
  // so that jitter on the way does not put two windows' requests into one second of the server's.
  const most = Math.max(1, Math.floor(perSecond));
  const windowMs = (most / perSecond) * 1000 * 1.04;
  const starts = new Float64Array(most).fill(Number.NEGATIVE_INFINITY);
  let next = 0;
  return {
    waitMs: (now: number): number => (starts[next] ?? 0) + windowMs - now,
    start(now: number): void {
      starts[next] = now;
      next = (next + 1) % most;
    },
  };
}
