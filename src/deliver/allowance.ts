import type { Log } from '../log.js';
import { createMemory } from './memory.js';

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
/** A server that goes on refusing counts over a long time: over many times that, its rate is averaged. */
const RECENT_TO_REFUSING = 10;

/** Right after a refusal, and in the long run: so much of the rate at which refusals begin. */
const BACK_TO = 0.9;
const STAY_AT = 0.98;
/** How soon that part is approached: in half the time that the server took to forgive, within these bounds. */
const APPROACH_MS = { least: 3000, most: 30_000 };

/**
 * For so long the limit is believed: twenty times what a refusal costs, in time and in requests. Only a third
 * or a ninth of that as long as refusals have not begun about there twice before.
 */
const PATIENCE = { leastMs: 60_000, mostMs: 600_000, toClosed: 20, requests: 100 };
const TWICE = 2;
const ABOUT = 1.1;
/** Then more is tried: so much in the time of an approach, and ever faster. */
const TRIED = { perApproach: 0.03, perRequest: 0.005 };

/** After an outage, the pace starts at this part of what it was (or at one a second), and doubles every second. */
const SLOW_START = 1 / 32;

/**
 * Servers count by the second or the minute, in fixed or sliding windows or with a bucket, and do not say so.
 * What they take and refuse brackets their limit, and each refusal halves the bracket. Measured in simulation
 * (test/deliver/gate-limits.test.ts) over the first 1,000 requests, with 1 to 16 in flight and 5 to 500 ms of
 * latency: under 15/s by any of these, 0.2 to 1.5 % refused and 90 % or more of the limit used on average;
 * later 0.1 % and 94 %. A limit raised fourfold is found in a minute.
 */
export function createAllowance(most: number, log: Log): Allowance {
  const memory = createMemory();
  let rate = most;
  /** Where refusals begin, as far as known, and how fast we were when they last did. */
  let limit = most;
  let refusedWas = 0;
  let confirmed = 0;
  /** How long the server takes to forgive; fades, so that one long pause is not held against it for ever. */
  let forgivesMs = 0;
  let approachMs = APPROACH_MS.least;
  let patienceMs = 0;
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
    patienceMs -= ms;
    if (patienceMs < 0) {
      const tried = (TRIED.perApproach * ms * (1 - patienceMs / approachMs)) / approachMs;
      limit = Math.min(most, limit * (1 + Math.min(tried, TRIED.perRequest)));
    }
    const top = limit < most ? limit * STAY_AT : most;
    if (rate < top) rate = Math.min(doubled, rate + (top - rate) * Math.min(1, ms / approachMs));
  }

  function bracket(closedMs: number, refusingMs: number): { was: number; limit: number; rate: number } {
    const recent = memory.recall(RECENT_TO_REFUSING * refusingMs);
    const overall = memory.recall(Number.POSITIVE_INFINITY);
    const was = Math.min(rate, perSecond(recent.taken, recent.openMs));
    // What the server took over all the time, open or closed, it can take always.
    const enough = perSecond(overall.taken, overall.openMs + closedMs);
    // What it took until the last refusal was too much; but a long refusal after a few requests says little.
    const tooMuch = perSecond(recent.taken, recent.openMs + refusingMs);
    const least = was / (1 + recent.taken / 4);
    const bounded = Math.min(tooMuch, Math.max(0.95 * was, Math.sqrt(was * enough)));
    const newLimit = within(Math.max(least, bounded));
    // No server counts in less than a second: what a first burst of less reached cannot go on.
    const sustained = perSecond(recent.taken, Math.max(1000, recent.openMs) + refusingMs);
    const between = Math.sqrt(enough * Math.min(newLimit, sustained));
    return { was, limit: newLimit, rate: within(Math.min(BACK_TO * newLimit, between)) };
  }

  /** How long to leave the new limit alone, and how to approach it. */
  function bePatient(was: number, closedMs: number): void {
    const same = was < refusedWas * ABOUT && was > refusedWas / ABOUT;
    confirmed = same ? Math.min(confirmed + 1, TWICE) : 0;
    refusedWas = was;
    forgivesMs = Math.max(closedMs, 0.8 * forgivesMs);
    approachMs = Math.min(APPROACH_MS.most, Math.max(APPROACH_MS.least, forgivesMs / 2));
    const forTime = Math.min(PATIENCE.mostMs, Math.max(PATIENCE.leastMs, PATIENCE.toClosed * forgivesMs));
    patienceMs = Math.max(forTime, (1000 * PATIENCE.requests) / limit) * 3 ** (confirmed - TWICE);
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
      const learned = bracket(closedMs, refusedAt - (closedAt ?? refusedAt));
      limit = learned.limit;
      rate = learned.rate;
      resume = 0;
      bePatient(learned.was, closedMs);
      log.debug({ ...learned, closedMs, patienceMs, confirmed }, 'pace learned');
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

/** One more than was seen, so that nothing seen is not taken for nothing possible. */
const perSecond = (taken: number, ms: number): number => (1000 * (taken + 1)) / Math.max(1, ms);
