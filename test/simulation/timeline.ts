import type { Clock } from '../../src/clock.js';
import type { Random } from '../support/random.js';

/**
 * Time that passes only from event to event. Whatever waits, waits here; which of several events of the same
 * moment comes first is left to the seed.
 */
export interface Timeline {
  /** Returns how to call it off. */
  at(delayMs: number, act: () => void): () => void;
  /** Lives until it is killed: after that, nothing that it waits for happens any more. */
  process(): Life;
  /** Runs the next event; false when there is none. */
  step(): Promise<boolean>;
  /** Runs events until the work is done. */
  until<T>(work: Promise<T>): Promise<T>;
  elapsedMs(): number;
  /** Somebody sets the clock by so much; waits are not touched by it. */
  setClock(byMs: number): void;
}

export interface Life {
  readonly clock: Clock;
  readonly alive: () => boolean;
  at(delayMs: number, act: () => void): () => void;
  kill(): void;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly act: () => void;
}

const START = Date.UTC(2026, 0, 1);

export function createTimeline(random: Random): Timeline {
  let elapsed = 0;
  let wrongBy = 0;
  let events: Event[] = [];
  const at = (delayMs: number, act: () => void): (() => void) => {
    const event = { at: elapsed + Math.max(0, delayMs), order: random.next(), act };
    events.push(event);
    return () => {
      events = events.filter((other) => other !== event);
    };
  };

  async function step(): Promise<boolean> {
    // Everything that the last event set going in promises happens before the next one: Node runs a tick that was
    // asked for in a promise's reaction when no reaction is left.
    await new Promise<void>(process.nextTick);
    const [first, ...others] = events;
    if (!first) return false;
    const next = others.reduce((soonest, event) => (isBefore(event, soonest) ? event : soonest), first);
    events = events.filter((event) => event !== next);
    elapsed = next.at;
    next.act();
    return true;
  }

  return {
    at,
    step,
    async until(work) {
      let ended = false;
      const end = (): void => {
        ended = true;
      };
      work.then(end, end);
      while (!ended && (await step()));
      return work;
    },
    elapsedMs: () => elapsed,
    setClock(byMs) {
      wrongBy += byMs;
    },
    process: () => createLife(at, { now: () => START + elapsed + wrongBy, monotonic: () => elapsed }),
  };
}

const isBefore = (one: Event, other: Event): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

function createLife(at: Timeline['at'], time: Pick<Clock, 'now' | 'monotonic'>): Life {
  let alive = true;
  const mine = new Set<() => void>();
  const schedule: typeof at = (delayMs, act) => {
    if (!alive) return () => undefined;
    const cancel = at(delayMs, () => {
      mine.delete(cancel);
      act();
    });
    mine.add(cancel);
    return cancel;
  };
  return {
    clock: { ...time, sleep: (ms, signal) => sleep(schedule, ms, signal) },
    alive: () => alive,
    at: schedule,
    kill() {
      alive = false;
      for (const cancel of mine) cancel();
    },
  };
}

function sleep(schedule: Timeline['at'], ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve();
    const abort = (): void => {
      cancel();
      resolve();
    };
    const cancel = schedule(ms, () => {
      signal?.removeEventListener('abort', abort);
      resolve();
    });
    signal?.addEventListener('abort', abort, { once: true });
  });
}
