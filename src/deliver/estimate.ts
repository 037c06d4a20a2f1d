import type { Memory } from './memory.js';

/** A time in which the server refused. */
export interface Refusal {
  /** The pace at which we were too fast. */
  readonly rate: number;
  /** From the first refusal to the next acceptance. */
  readonly closedMs: number;
  /** From the first refusal to the last. */
  readonly refusingMs: number;
}

export interface Estimate {
  /** How fast we really were; those who send may be slower than their pace. */
  readonly was: number;
  /** Where refusals begin. */
  readonly limit: number;
  /** Where to go on. */
  readonly rate: number;
}

/** A server that goes on refusing counts over a long time: over many times that, its rate is averaged. */
const RECENT_TO_REFUSING = 10;
/** Refusals begin at least this near to where they were met, unless the server went on refusing. */
const NEAR = 0.95;
/** Go on no faster than this part of the limit. */
const BACK_TO = 0.9;

/**
 * What the server took over all the time, open or closed, it can take always. What it took until its last
 * refusal was too much. The limit lies between the two, and so does the pace: half-way, by ratio.
 */
export function estimate(memory: Memory, { rate, closedMs, refusingMs }: Refusal): Estimate {
  const recent = memory.recall(RECENT_TO_REFUSING * refusingMs);
  const overall = memory.recall(Number.POSITIVE_INFINITY);
  const was = Math.min(rate, perSecond(recent.taken, recent.openMs));
  const enough = perSecond(overall.taken, overall.openMs + closedMs);
  const tooMuch = perSecond(recent.taken, recent.openMs + refusingMs);
  // A long refusal after a few requests says little about a rate.
  const least = was / (1 + recent.taken / 4);
  const limit = Math.max(least, Math.min(tooMuch, Math.max(NEAR * was, Math.sqrt(was * enough))));
  // No server counts in less than a second: what a first burst of less reached cannot go on.
  const sustained = perSecond(recent.taken, Math.max(1000, recent.openMs) + refusingMs);
  return { was, limit, rate: Math.min(BACK_TO * limit, Math.sqrt(enough * Math.min(limit, sustained))) };
}

/** One more than was seen, so that nothing seen is not taken for nothing possible. */
const perSecond = (taken: number, ms: number): number => (1000 * (taken + 1)) / Math.max(1, ms);
