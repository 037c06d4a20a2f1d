/** Time, injected so that tests control it. */
export interface Clock {
  /** Milliseconds since 1970, for records. Jumps when somebody sets the system clock. */
  now(): number;
  /** Milliseconds that never go backwards, for measuring and waiting. */
  monotonic(): number;
  /** Resolves after `ms`, or as soon as the signal is aborted. Never rejects. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
}

/** setTimeout accepts at most 2^31 - 1 ms and fires at once beyond that. */
const MAX_TIMER_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  now: Date.now,
  monotonic: () => performance.now(),
  sleep: createSleep((wake, ms) => {
    const timer = setTimeout(wake, Math.min(ms, MAX_TIMER_MS));
    return () => clearTimeout(timer);
  }),
};

/**
 * All sleeps on one signal share a listener: adding a listener to an AbortSignal searches the existing ones, so 10,000
 * sleeps with one each would take seconds of CPU time. `schedule` returns a function that cancels it.
 */
export function createSleep(schedule: (wake: () => void, ms: number) => () => void): Clock['sleep'] {
  const sleepers = new WeakMap<AbortSignal, Set<() => void>>();

  function wakersOf(signal: AbortSignal): Set<() => void> {
    const known = sleepers.get(signal);
    if (known) return known;
    const wakers = new Set<() => void>();
    sleepers.set(signal, wakers);
    const wakeAll = (): void => {
      for (const wake of wakers) wake();
    };
    signal.addEventListener('abort', wakeAll, { once: true });
    return wakers;
  }

  return (ms, signal) =>
    new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const wakers = signal && wakersOf(signal);
      const cancel = schedule(wake, ms);
      function wake(): void {
        cancel();
        wakers?.delete(wake);
        resolve();
      }
      wakers?.add(wake);
    });
}

export interface BackoffOptions {
  readonly firstMs?: number;
  readonly maxMs?: number;
  readonly random?: () => number;
}

/** Doubles with every attempt (from 0). The upper half is random, so that clients do not retry in step. */
export function backoffMs(
  attempt: number,
  { firstMs = 1000, maxMs = 5 * 60_000, random = Math.random }: BackoffOptions = {},
): number {
  const fullMs = Math.min(maxMs, firstMs * 2 ** Math.min(attempt, 20));
  return Math.round(fullMs * (0.5 + random() / 2));
}

export type Loop = ReturnType<typeof every>;

/** Runs the task now and then every `intervalMs`, or after the milliseconds that the task returns, until it is stopped. */
export function every(intervalMs: number, clock: Clock, task: (signal: AbortSignal) => Promise<number | undefined>) {
  const stopping = new AbortController();
  /** Kept when the loop is woken, unless the next wait is shorter: a busy loop is woken hundreds of times a second. */
  let alarm: { readonly at: number } | undefined;
  /** Used for all alarms until one is cancelled: a controller and its listener cost more than the alarm. */
  let cancelling = new AbortController();
  let isWoken = false;
  let endWait: (() => void) | undefined;

  async function repeat(): Promise<void> {
    while (!stopping.signal.aborted) {
      isWoken = false;
      const waitMs = (await task(stopping.signal)) ?? intervalMs;
      await waitUntil(clock.monotonic() + waitMs);
    }
  }

  async function waitUntil(at: number): Promise<void> {
    while (!isWoken && clock.monotonic() < at) {
      setAlarm(at);
      await new Promise<void>((resolve) => {
        endWait = resolve;
      });
    }
  }

  function setAlarm(at: number): void {
    if (alarm && alarm.at <= at) return;
    if (alarm) {
      cancelling.abort();
      cancelling = new AbortController();
    }
    const next = { at };
    alarm = next;
    void clock.sleep(at - clock.monotonic(), cancelling.signal).then(() => {
      if (alarm !== next) return;
      alarm = undefined;
      endWait?.();
    });
  }

  function wake(): void {
    isWoken = true;
    endWait?.();
  }

  const running = Promise.resolve().then(repeat);
  return {
    /** Ends the current wait. If the task is running, it is repeated without a wait. */
    wake,
    /** Resolves when the current execution has ended. */
    async stop(): Promise<void> {
      stopping.abort();
      wake();
      await running;
      cancelling.abort();
    },
  };
}

export interface RetryOptions extends BackoffOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Called before each wait. */
  failed(error: unknown, waitMs: number): void;
}

/** Repeats the task, with back-off, until it succeeds or the signal is aborted; it runs at least once in any case. */
export async function retry(
  task: () => Promise<unknown>,
  { clock, signal, failed, ...backoff }: RetryOptions,
): Promise<void> {
  for (let attempt = 0; attempt === 0 || !signal.aborted; attempt += 1) {
    try {
      await task();
      return;
    } catch (error) {
      if (signal.aborted) return;
      const waitMs = backoffMs(attempt, backoff);
      failed(error, waitMs);
      await clock.sleep(waitMs, signal);
    }
  }
}

/** The result of the work, or undefined if it takes longer than `ms`. */
export function atMost<T>(ms: number, clock: Clock, work: Promise<T>): Promise<T | undefined> {
  const ended = new AbortController();
  const tooLate = clock.sleep(ms, ended.signal).then(() => undefined);
  return Promise.race([work, tooLate]).finally(() => ended.abort());
}

/** Requests to the notebook must not wait until many files are read: one file in so many iterations of the event loop. */
const ITERATIONS_PER_FILE = 3;

/** The result resolves when it is the caller's turn. */
export function takeTurns(): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    last = last.then(async () => {
      for (let n = 0; n < ITERATIONS_PER_FILE; n++) await new Promise((resolve) => setImmediate(resolve));
    });
    return last;
  };
}
