import type { Clock } from '../../src/clock.js';
import type { Random } from './random.js';

/**
 * Time that passes only from event to event. Whatever waits, waits here; which of several events of the same
 * moment comes first is left to the seed.
 */
export interface Timeline {
  readonly clock: Clock;
  /** Returns how to call it off. */
  at(delayMs: number, act: () => void): () => void;
  /** Lives until it is killed: after that, nothing that it waits for happens any more. */
  process(): Life;
  /** Runs the next event; false when there is none. */
  step(): Promise<boolean>;
  now(): number;
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
  let events: Event[] = [];
  const at = (delayMs: number, act: () => void): (() => void) => {
    const event = { at: elapsed + Math.max(0, delayMs), order: random.next(), act };
    events.push(event);
    return () => {
      events = events.filter((other) => other !== event);
    };
  };

  function clockOf(schedule: typeof at): Clock {
    return {
      now: () => START + elapsed,
      monotonic: () => elapsed,
      sleep: (ms, signal) =>
        new Promise((resolve, reject) => {
          if (signal?.aborted) return reject(signal.reason);
          const abort = (): void => {
            cancel();
            reject(signal?.reason);
          };
          const cancel = schedule(ms, () => {
            signal?.removeEventListener('abort', abort);
            resolve();
          });
          signal?.addEventListener('abort', abort, { once: true });
        }),
    };
  }

  return {
    clock: clockOf(at),
    at,
    now: () => elapsed,
    process() {
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
        clock: clockOf(schedule),
        alive: () => alive,
        at: schedule,
        kill() {
          alive = false;
          for (const cancel of mine) cancel();
        },
      };
    },
    async step() {
      // Everything that the last event set going in promises happens before the next one: Node runs a tick that was
      // asked for in a promise's reaction when no reaction is left.
      await new Promise<void>(process.nextTick);
      let next: Event | undefined;
      for (const event of events) {
        if (!next || event.at < next.at || (event.at === next.at && event.order < next.order)) next = event;
      }
      if (!next) return false;
      events = events.filter((event) => event !== next);
      elapsed = next.at;
      next.act();
      return true;
    },
  };
}
