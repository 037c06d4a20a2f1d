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
const LEAST_PER_SECOND = 1 / 60;
/** Between two requests of somebody who is busy; a longer silence says nothing about the server. */
const BREATH_MS = 100;
/** How far back the server's rate is averaged: over the shortest that is this much longer than it was closed. */
const MEMORIES_MS = [2000, 10_000, 60_000, 240_000];
const MEMORY_TO_REFUSING = 2;
/** Right after a refusal, and in the long run: so much of the rate at which it came. */
const BACK_TO = 0.9;
const STAY_AT = 0.98;
/** How soon that part is approached; slower where the server was slow to forgive. */
const APPROACH_MS = { least: 5000, most: 30_000 };
/**
 * For so long the limit is believed: the longer, the more a refusal costs, and twice as long each time that
 * refusals begin where they did before.
 */
const PATIENCE_MS = { least: 60_000, most: 600_000 };
const PATIENCE_TO_CLOSED = 20;
const PATIENCE_REQUESTS = 100;
const MOST_CONFIRMED = 2;
const CONFIRMS_WITHIN = 1.1;
/** Then more is tried, first a percent a second, then faster: finds a limit that was raised fourfold in a minute. */
const TRIED = 0.05;
const TRIED_PER_REQUEST = 0.005;
/** After an outage the pace starts at this part, and doubles every second. */
const SLOW_START = 1 / 32;

export function createAllowance(most: number, log: Log): Allowance {
  let rate = most;
  /** The pace before the outage, while it is not yet reached again. */
  let resume = 0;
  /** Where refusals begin, as far as known. */
  let limit = most;
  let scaleMs = 0;
  let approachMs = APPROACH_MS.least;
  let patienceMs = 0;
  let confirmed = 0;
  let believed = most;
  // Since the server last resumed: how many it took, in what time that they could have been sent in.
  const memories = MEMORIES_MS.map((horizonMs) => ({ horizonMs, taken: 0, openMs: 0 }));
  let answeredAt = Number.NEGATIVE_INFINITY;
  let closedAt: number | undefined;
  let refusedAt = 0;

  function remember(askedAt: number, now: number, taken: number): number {
    const sinceMs = now - answeredAt;
    const openMs = closedAt === undefined ? Math.min(sinceMs, now - askedAt + BREATH_MS) : 0;
    answeredAt = now;
    for (const memory of memories) {
      memory.taken += taken;
      memory.openMs += openMs;
      if (memory.openMs > memory.horizonMs) {
        memory.taken /= 2;
        memory.openMs /= 2;
      }
    }
    return sinceMs;
  }

  function recall(ms: number): { taken: number; openMs: number } {
    return memories.find(({ horizonMs }) => horizonMs >= ms) ?? memories.at(-1) ?? { taken: 0, openMs: 0 };
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
      const tried = (TRIED * ms * (1 - patienceMs / approachMs)) / approachMs;
      limit = Math.min(most, limit * (1 + Math.min(tried, TRIED_PER_REQUEST)));
    }
    const top = limit < most ? limit * STAY_AT : most;
    if (rate < top) rate = Math.min(doubled, rate + (top - rate) * Math.min(1, ms / approachMs));
  }

  return {
    perSecond: () => rate,
    recovering: () => rate < resume,
    accepted(askedAt, now) {
      const sinceMs = remember(askedAt, now, 1);
      // While nobody asks, nothing is tried: only as much time counts as the pace itself puts between two.
      if (closedAt === undefined) grow(Math.min(sinceMs, Math.max(1000, 2000 / rate)));
    },
    refused(askedAt, now) {
      remember(askedAt, now, 0);
      closedAt ??= now;
      refusedAt = now;
    },
    /**
     * What the server took over the whole time, closed or open, it can take always. What it took over the
     * time up to the last refusal is too much. The pace starts between the two, half-way by ratio.
     */
    learn(now) {
      const closedMs = now - (closedAt ?? now);
      const refusingMs = refusedAt - (closedAt ?? refusedAt);
      const recent = recall(MEMORY_TO_REFUSING * refusingMs);
      const overall = recall(Number.POSITIVE_INFINITY);
      const was = Math.min(rate, perSecond(recent.taken, recent.openMs));
      const ratio = was / believed;
      confirmed =
        ratio < CONFIRMS_WITHIN && ratio > 1 / CONFIRMS_WITHIN ? Math.min(confirmed + 1, MOST_CONFIRMED) : 0;
      // No server counts in less than a second: a first burst looks faster than it can go on.
      const bound = perSecond(recent.taken, Math.max(1000, recent.openMs) + refusingMs);
      const too = perSecond(recent.taken, recent.openMs + refusingMs);
      const enough = perSecond(overall.taken, overall.openMs + closedMs);
      limit = Math.max(LEAST_PER_SECOND, was / (1 + recent.taken / 4), Math.min(was, too, Math.max(was * 0.95, Math.sqrt(was * enough))));
      rate = Math.max(
        LEAST_PER_SECOND,
        Math.min(BACK_TO * limit, Math.sqrt(enough * Math.min(limit, bound))),
      );
      scaleMs = Math.max(closedMs, 0.8 * scaleMs);
      approachMs = Math.min(APPROACH_MS.most, Math.max(APPROACH_MS.least, scaleMs / 2));
      const patience = Math.max(
        PATIENCE_MS.least,
        Math.min(PATIENCE_MS.most, PATIENCE_TO_CLOSED * scaleMs),
        (1000 * PATIENCE_REQUESTS) / limit,
      );
      patienceMs = patience * 4 ** (confirmed - 2);
      believed = was;
      log.debug(
        {
          perSecond: rate,
          limit,
          enough,
          was,
          refusingMs,
          closedMs,
          openMs: recent.openMs,
          taken: recent.taken,
          patienceMs,
          confirmed,
        },
        'pace learned',
      );
      for (const each of memories) Object.assign(each, { taken: 0, openMs: 0 });
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

const perSecond = (taken: number, ms: number): number => (1000 * (taken + 1)) / Math.max(1, ms);
