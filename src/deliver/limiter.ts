import type { Clock } from '../clock.js';
import { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';
import { createAllowance, createPace } from './allowance.js';
import { createDoor, type Pass } from './breaker.js';
import { StoppedError } from './context.js';

/** Every request of the daemon passes here, so that a limit of the server binds all workers at once. */
export interface Gate {
  /** A request whose signal is aborted while it waits does not leave, and takes nobody's place. */
  admit<T>(send: () => Promise<T>, signal?: AbortSignal): Promise<T>;
  state(): LimiterState;
  /** Turns away who waits, and whoever comes. */
  stop(): void;
}

interface GateOptions {
  readonly perSecond: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
}

interface Waiter {
  go(): void;
  turnAway(error: Error): void;
}

/**
 * Four things must agree before a request leaves: the ceiling (what the configuration allows in any second),
 * the allowance (what the server has shown it takes), the pace (that spreads it evenly) and the door (shut
 * while the server is in trouble or has asked for a pause).
 */
export function createGate({ perSecond, clock, log, random = Math.random }: GateOptions): Gate {
  const stopping = new AbortController();
  const ceiling = createCeiling(perSecond);
  const allowance = createAllowance(ceiling.perSecond, log);
  const door = createDoor({ allowance, pace: createPace(), clock, log, random });
  const waiting: Waiter[] = [];
  let sleeping = false;

  /** Lets pass whoever may, in the order in which they came; sleeps until the next may. */
  function letPass(): void {
    while (!sleeping && waiting.length > 0) {
      const now = clock.monotonic();
      const waitMs = Math.max(door.waitMs(now), ceiling.waitMs(now));
      // While a probe is under way, its answer is what wakes us.
      if (waitMs === Number.POSITIVE_INFINITY) return;
      if (waitMs > 0) sleep(waitMs);
      else waiting.shift()?.go();
    }
  }

  function sleep(ms: number): void {
    sleeping = true;
    // Timers cut fractions off: without rounding up, each wait would end with a second, tiny one.
    const slept = clock.sleep(Math.ceil(ms), stopping.signal);
    void slept.then(() => {
      sleeping = false;
      letPass();
    });
  }

  function leave(askedAt: number): Pass {
    ceiling.started(clock.monotonic());
    return door.pass(askedAt);
  }

  function answered(pass: Pass): void {
    door.answered(pass);
    letPass();
  }

  function failed(pass: Pass, error: unknown): void {
    if (!(error instanceof NotebookError)) door.failed(pass, undefined);
    else if (error.scope === 'everybody') door.failed(pass, error);
    else door.answered(pass);
    letPass();
  }

  function wait<T>(request: () => Promise<T>, signal?: AbortSignal): Promise<T> {
    const askedAt = clock.monotonic();
    return new Promise((resolve, reject) => {
      if (stopping.signal.aborted) return reject(new StoppedError('labfeed is stopping'));
      if (signal?.aborted) return reject(signal.reason);
      const giveUp = (): void => {
        waiting.splice(waiting.indexOf(waiter), 1);
        reject(signal?.reason);
      };
      const stay = (): void => signal?.removeEventListener('abort', giveUp);
      const waiter: Waiter = {
        go() {
          stay();
          resolve(send(request, askedAt));
        },
        turnAway(error) {
          stay();
          reject(error);
        },
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      waiting.push(waiter);
      letPass();
    });
  }

  async function send<T>(request: () => Promise<T>, askedAt: number): Promise<T> {
    const pass = leave(askedAt);
    try {
      const answer = await request();
      answered(pass);
      return answer;
    } catch (error) {
      failed(pass, error);
      throw error;
    }
  }

  return {
    admit: wait,
    state: door.state,
    stop() {
      stopping.abort();
      for (const { turnAway } of waiting.splice(0)) turnAway(new StoppedError('labfeed is stopping'));
    },
  };
}

/**
 * How much later than its neighbour a request may arrive at the server and still not put more than the
 * ceiling into one of the server's seconds. Costs 6 % of the ceiling.
 */
const JITTER_MS = 60;
/** Of how many starts the times are kept: above this ceiling, a fraction of the second is watched instead. */
const MOST_KEPT = 1000;

/** The configured rate, as a bound on every second and not on the average. */
interface Ceiling {
  /** What can be kept up for ever under it. */
  readonly perSecond: number;
  waitMs(now: number): number;
  started(now: number): void;
}

/** At most so many starts in any second; not even at the server, if they travel about equally long. */
function createCeiling(perSecond: number): Ceiling {
  // If no tenth of a second sees more than a tenth of the ceiling, no second sees more than the whole.
  const parts = Math.ceil(perSecond / MOST_KEPT);
  // Below one a second, the time watched is what one request may take.
  const most = Math.max(1, Math.floor(perSecond / parts));
  const windowMs = (most / perSecond) * 1000 + JITTER_MS / parts;
  const starts = new Float64Array(most).fill(Number.NEGATIVE_INFINITY);
  let oldest = 0;
  return {
    perSecond: (most / windowMs) * 1000,
    waitMs: (now) => (starts[oldest] ?? now) + windowMs - now,
    started(now) {
      starts[oldest] = now;
      oldest = (oldest + 1) % most;
    },
  };
}
