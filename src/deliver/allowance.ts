import type { Log } from '../log.js';
import { estimate } from './estimate.js';
import { createMemory } from './memory.js';
import { createPatience } from './patience.js';

/** How many requests a second the server takes, as far as its answers have shown. */
export interface Allowance {
  perSecond(): number;
  /** The server has shown a limit below the ceiling. */
  limited(): boolean;
  /** On the way back to the pace before an outage. */
  recovering(): boolean;
  /** The server took a request that was asked for at that time. */
  accepted(askedAt: number, now: number): void;
  /** The server refused a request: from now on, only probes leave. */
  refused(askedAt: number, now: number): void;
  /** A probe was accepted, and before it there was too much. */
  learn(now: number): void;
  /** A probe was accepted, and before it the server was away: it is approached gently. */
  slowStart(now: number): void;
}

/** Slower than this is a wait rather than a pace, and waits are the door's. */
const LEAST_PER_SECOND = 1 / 60;
/** Between two requests of somebody who is busy; a longer silence says nothing about the server. */
const BREATH_MS = 100;
/** In the long run, so much of the rate at which refusals begin. */
const STAY_AT = 0.98;
/** After an outage, the pace starts at this part of what it was (or at one a second), and doubles every second. */
const SLOW_START = 1 / 32;

/**
 * Servers count by the second or the minute, in fixed or sliding windows or with a bucket, and do not say so.
 * What they take and refuse brackets their limit, and each refusal halves the bracket. Measured in simulation
 * over the first 1,000 requests, with 1 to 16 in flight and 5 to 500 ms of latency: under 15/s of any of these
 * kinds 0.2 to 1.4 % refused and 90 to 107 % of the limit used on average, 4 % and 81 % at worst; later 0.1 %
 * and 94 %. A limit that was raised fourfold is found in a minute.
 */
export function createAllowance(most: number, log: Log): Allowance {
  const memory = createMemory();
  const patience = createPatience();
  let rate = most;
  /** Where refusals begin, as far as known. */
  let limit = most;
  /** The pace before an outage, while it is not yet reached again. */
  let resume = 0;
  let answeredAt: number | undefined;
  let closedAt: number | undefined;
  let refusedAt = 0;

  const within = (perSecond: number): number => Math.min(most, Math.max(LEAST_PER_SECOND, perSecond));

  function remember(taken: number, askedAt: number, now: number): number {
    const sinceMs = now - (answeredAt ?? askedAt);
    memory.add(taken, closedAt === undefined ? Math.min(sinceMs, now - askedAt + BREATH_MS) : 0);
    answeredAt = now;
    return sinceMs;
  }

  function grow(ms: number): void {
    const doubled = rate * 2 ** (ms / 1000);
    if (rate < resume) {
      rate = Math.min(resume, doubled);
      return;
    }
    resume = 0;
    limit = Math.min(most, limit * (1 + patience.tried(ms)));
    const top = limit < most ? limit * STAY_AT : most;
    const nearer = rate + (top - rate) * Math.min(1, ms / patience.approachMs());
    if (rate < top) rate = Math.min(doubled, nearer);
  }

  function reopened(now: number): void {
    answeredAt = now;
    closedAt = undefined;
  }

  return {
    perSecond: () => rate,
    limited: () => limit < most,
    recovering: () => rate < resume,
    accepted(askedAt, now) {
      const sinceMs = remember(1, askedAt, now);
      // While nobody asks, nothing is tried: only as much time counts as the pace itself puts between two.
      if (closedAt === undefined) grow(Math.min(sinceMs, Math.max(1000, 2000 / rate)));
    },
    refused(askedAt, now) {
      remember(0, askedAt, now);
      closedAt ??= now;
      refusedAt = now;
    },
    learn(now) {
      const closedMs = now - (closedAt ?? now);
      const learned = estimate(memory, { rate, closedMs, refusingMs: refusedAt - (closedAt ?? refusedAt) });
      limit = within(learned.limit);
      rate = within(learned.rate);
      resume = 0;
      patience.refused(learned.was, limit, closedMs);
      log.debug({ was: learned.was, limit, perSecond: rate, closedMs }, 'pace learned');
      memory.clear();
      reopened(now);
    },
    slowStart(now) {
      resume = Math.max(resume, rate);
      rate = Math.max(resume * SLOW_START, Math.min(resume, 1));
      reopened(now);
    },
  };
}
