import { type Clock, createSleep } from '../../src/clock.js';
import type { Random } from '../support/random.js';

/**
 * Simulated time, which passes from event to event. The seed decides the order of events at the same time.
 */
export interface Timeline {
  /** Returns a function that cancels it. */
  at(delayMs: number, act: () => void): () => void;
  /**
   * After it is killed, none of its events happens. `aheadMs`: how far its wall clock is ahead of the others. `pace`: how
   * many times as long a wait of this length takes, as long as it says so.
   */
  process(aheadMs?: number, pace?: (ms: number) => number): SimulatedProcess;
  /** Runs the next event; false when there is none. */
  step(): Promise<boolean>;
  /** Runs events until it is over, which is asked after each of them. There must always be another event. */
  pass(isOver: () => boolean): Promise<void>;
  /** Runs events until the work is done. */
  until<T>(work: Promise<T>): Promise<T>;
  /** As long as this work is not done, events wait for streams, too: these need many ticks of Node for each step. */
  streaming<T>(work: Promise<T>): Promise<T>;
  elapsedMs(): number;
  /** Shifts the wall clock by this much; waits are not affected. */
  setClock(byMs: number): void;
}

export interface SimulatedProcess {
  readonly clock: Clock;
  readonly alive: () => boolean;
  at(delayMs: number, act: () => void): () => void;
  /** Now, unless it is paused. */
  soon(act: () => void): void;
  /** As with SIGSTOP and, after this time, SIGCONT: its events wait, and time passes. */
  pause(ms: number): void;
  kill(): void;
}

interface Event {
  readonly at: number;
  readonly order: number;
  readonly act: () => unknown;
}

/** What an event returns that has only scheduled itself again, so that no promise reacts to it. Half of all events do. */
const NO_REACTION = Symbol('no reaction');

/** When a history begins. */
export const START = Date.UTC(2026, 0, 1);

/** The longest histories have a few thousand. */
const MAX_EVENTS = 100_000;

/** A history that does not end. */
export class EndlessError extends Error {
  override readonly name = 'EndlessError';
}

export function createTimeline(random: Random): Timeline {
  let elapsed = 0;
  let offsetMs = 0;
  let ran = 0;
  let hasReactions = true;
  let streams = 0;
  const events: Event[] = [];
  const remove = (event: Event): void => {
    const index = events.indexOf(event);
    const last = events.pop();
    if (last && last !== event) events[index] = last;
  };
  const at = (delayMs: number, act: () => unknown): (() => void) => {
    const event = { at: elapsed + Math.max(0, delayMs), order: random.next(), act };
    events.push(event);
    return () => {
      if (events.includes(event)) remove(event);
    };
  };

  // All promise reactions to the last event run before the next one: Node runs a tick that was requested in a
  // reaction when no reaction is left.
  const reactions = () => new Promise<void>(streams > 0 ? setImmediate : process.nextTick);

  function runNext(): boolean {
    let next = events[0];
    if (!next) return false;
    ran += 1;
    if (ran > MAX_EVENTS) throw new EndlessError(`it does not end within ${MAX_EVENTS} events`);
    for (const event of events) if (isBefore(event, next)) next = event;
    remove(next);
    elapsed = next.at;
    hasReactions = next.act() !== NO_REACTION;
    return true;
  }

  return {
    at,
    async step() {
      await reactions();
      return runNext();
    },
    async pass(isOver) {
      hasReactions = true;
      while (!isOver()) {
        if (hasReactions) await reactions();
        if (!runNext()) throw new EndlessError('nothing happens any more');
      }
    },
    async until(work) {
      let ended = false;
      const end = (): void => {
        ended = true;
      };
      work.then(end, end);
      hasReactions = true;
      do if (hasReactions) await reactions();
      while (!ended && runNext());
      return work;
    },
    streaming(work) {
      streams += 1;
      return work.finally(() => {
        streams -= 1;
      });
    },
    elapsedMs: () => elapsed,
    setClock(byMs) {
      offsetMs += byMs;
    },
    process: (aheadMs = 0, pace = () => 1) =>
      createProcess(at, pace, { now: () => START + elapsed + offsetMs + aheadMs, monotonic: () => elapsed }),
  };
}

const isBefore = (one: Event, other: Event): boolean =>
  one.at < other.at || (one.at === other.at && one.order < other.order);

/** Shorter waits are not those of a poll. */
const MIN_POLL_MS = 500;

function createProcess(
  at: (delayMs: number, act: () => unknown) => () => void,
  pace: (ms: number) => number,
  time: Pick<Clock, 'now' | 'monotonic'>,
): SimulatedProcess {
  let alive = true;
  let pausedUntil = 0;
  const mine = new Set<() => void>();
  const schedule: typeof at = (delayMs, act) => {
    if (!alive) return () => undefined;
    let cancelNow: () => void;
    const cancel = (): void => cancelNow();
    const fire = (): unknown => {
      const leftMs = pausedUntil - time.monotonic();
      if (leftMs > 0) {
        cancelNow = at(leftMs, fire);
        return NO_REACTION;
      }
      mine.delete(cancel);
      return act();
    };
    cancelNow = at(delayMs, fire);
    mine.add(cancel);
    return cancel;
  };
  const wait = (wake: () => void, ms: number): (() => void) => {
    let times = 0;
    const fire = (): unknown => {
      times += 1;
      if (times >= pace(ms)) return wake();
      cancel = schedule(ms, fire);
      return NO_REACTION;
    };
    let cancel = schedule(ms, fire);
    return () => cancel();
  };
  return {
    clock: { ...time, sleep: createSleep((wake, ms) => (ms < MIN_POLL_MS ? schedule(ms, wake) : wait(wake, ms))) },
    alive: () => alive,
    at: schedule,
    soon(act) {
      if (!alive) return;
      if (pausedUntil > time.monotonic()) schedule(0, act);
      else act();
    },
    pause(ms) {
      pausedUntil = Math.max(pausedUntil, time.monotonic() + ms);
    },
    kill() {
      alive = false;
      for (const cancel of mine) cancel();
    },
  };
}
