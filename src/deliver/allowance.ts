import type { Log } from '../log.js';

/** How many requests a second the server takes, as far as its answers have shown. */
export interface Allowance {
  perSecond(): number;
  /** On the way back to the pace before an outage. */
  recovering(): boolean;
  /** The server took a request that was asked for at that time. */
  accepted(askedAt: number, now: number): void;
  /** No request but a probe leaves from now on. */
  refused(askedAt: number, now: number): void;
  /** A probe was accepted: what was refused before it was too much. */
  learn(now: number): void;
  /** A probe was accepted: the server was away, and is approached gently. */
  slowStart(now: number): void;
}

/** Slower than this is a wait rather than a pace, and waits are the gate's. */
const LEAST_PER_SECOND = 1 / 300;
/** Between two requests of somebody who is busy; a longer silence says nothing about the server. */
const BREATH_MS = 100;
/** How far back the server's rate is averaged: several minutes, since many limits are by the minute. */
const MEMORY_MS = 240_000;
/** Right after a refusal, and in the long run: so much of the rate at which it came. */
const BACK_TO = 0.9;
const STAY_AT = 0.98;
/** How soon that part is approached; slower where the server was slow to forgive. */
const APPROACH_MS = { least: 5000, most: 30_000 };
/** For so long the limit is believed, then tried by a percent a second: finds a fourfold one in 140 s. */
const PATIENCE_MS = { least: 30_000, most: 600_000 };
const PATIENCE_REQUESTS = 60;
const TRIED_PER_MS = 0.01 / 1000;
/** After an outage the pace starts at this part, and doubles every second. */
const SLOW_START = 1 / 32;

export function createAllowance(most: number, log: Log): Allowance {
  let rate = most;
  /** The pace before the outage, while it is not yet reached again. */
  let resume = 0;
  /** Where refusals begin, as far as known. */
  let limit = most;
  let approachMs = APPROACH_MS.least;
  let patienceMs = 0;
  // Since the server last resumed: how many it took, in what time that they could have been sent in.
  let taken = 0;
  let openMs = 0;
  let answeredAt = Number.NEGATIVE_INFINITY;
  let closedAt: number | undefined;
  let refusedAt = 0;

  function open(askedAt: number, now: number): number {
    const sinceMs = now - answeredAt;
    answeredAt = now;
    openMs += Math.min(sinceMs, now - askedAt + BREATH_MS);
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
    if (patienceMs < 0) limit = Math.min(most, limit * (1 + ms * TRIED_PER_MS));
    const top = limit < most ? limit * STAY_AT : most;
    if (rate < top) rate = Math.min(doubled, rate + (top - rate) * Math.min(1, ms / approachMs));
  }

  return {
    perSecond: () => rate,
    recovering: () => rate < resume,
    accepted(askedAt, now) {
      taken += 1;
      if (closedAt !== undefined) return;
      // While nobody asks, nothing is tried: only as much time counts as the pace itself puts between two.
      grow(Math.min(open(askedAt, now), Math.max(1000, 2000 / rate)));
      if (openMs > MEMORY_MS) {
        openMs /= 2;
        taken /= 2;
      }
    },
    refused(askedAt, now) {
      if (closedAt === undefined) {
        open(askedAt, now);
        closedAt = now;
      }
      refusedAt = now;
    },
    /**
     * What the server took over the whole time, closed or open, it can take always. What it took over the
     * time up to the last refusal is too much. The pace starts between the two, half-way by ratio.
     */
    learn(now) {
      const closedMs = now - (closedAt ?? now);
      const surelyMs = Math.max(1, openMs + refusedAt - (closedAt ?? refusedAt));
      const too = (1000 * (taken + 1)) / surelyMs;
      const enough = (1000 * (taken + 1)) / (openMs + closedMs);
      limit = Math.min(rate, too);
      // No server counts in less than a second: a first burst looks faster than it can go on.
      const bound = Math.min(limit, (1000 * (taken + 1)) / Math.max(1000, surelyMs));
      rate = Math.max(LEAST_PER_SECOND, Math.min(BACK_TO * limit, Math.sqrt(enough * bound)));
      limit = Math.max(rate, limit);
      approachMs = Math.min(APPROACH_MS.most, Math.max(APPROACH_MS.least, closedMs / 2));
      patienceMs = Math.max(
        PATIENCE_MS.least,
        Math.min(PATIENCE_MS.most, 10 * closedMs),
        (1000 * PATIENCE_REQUESTS) / limit,
      );
      log.debug({ perSecond: rate, limit, enough, too, closedMs, openMs, taken, patienceMs }, 'pace learned');
      taken = 0;
      openMs = 0;
      answeredAt = now;
      closedAt = undefined;
    },
    slowStart(now) {
      resume = Math.max(resume, rate);
      rate = Math.max(resume * SLOW_START, Math.min(resume, 1));
      answeredAt = now;
      closedAt = undefined;
    },
  };
}
