import type { Clock } from '../clock.js';
import { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';
import { type Allowance, createDoor, type Pace, type Pass } from './breaker.js';
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
    else if (error.scope === 'server') door.failed(pass, error);
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
function createAllowance(most: number, log: Log): Allowance {
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

/** A time in which the server refused. */
interface Refusal {
  /** The pace at which we were too fast. */
  readonly rate: number;
  /** From the first refusal to the next acceptance. */
  readonly closedMs: number;
  /** From the first refusal to the last. */
  readonly refusingMs: number;
}

interface Estimate {
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
function estimate(memory: Memory, { rate, closedMs, refusingMs }: Refusal): Estimate {
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

/** How many requests the server took, and over how much time in which they could have been sent. */
interface Taken {
  readonly taken: number;
  readonly openMs: number;
}

interface Memory {
  add(taken: number, openMs: number): void;
  /** Over about this long, or as far back as is known. */
  recall(ms: number): Taken;
  clear(): void;
}

const HORIZONS_MS = [2000, 10_000, 60_000, 240_000];

/** What lies further back than a horizon fades by halves, so that no times of single requests are kept. */
function createMemory(): Memory {
  const spans = HORIZONS_MS.map((horizonMs) => ({ horizonMs, taken: 0, openMs: 0 }));
  return {
    add(taken, openMs) {
      for (const span of spans) {
        span.taken += taken;
        span.openMs += openMs;
        if (span.openMs > span.horizonMs) {
          span.taken /= 2;
          span.openMs /= 2;
        }
      }
    },
    recall: (ms) => spans.find(({ horizonMs }) => horizonMs >= ms) ?? spans.at(-1) ?? { taken: 0, openMs: 0 },
    clear() {
      for (const span of spans) {
        span.taken = 0;
        span.openMs = 0;
      }
    },
  };
}

/** How long a limit is believed, how soon it is approached, and how fast more is tried afterwards. */
interface Patience {
  /** Refusals were met at this pace, and cost so much time; the limit is now taken to be there. */
  refused(was: number, limit: number, closedMs: number): void;
  approachMs(): number;
  /** After so much more time without a refusal: by what part the limit may be raised. */
  tried(ms: number): number;
}

/** An approach takes half the time that the server took to forgive, within these bounds. */
const APPROACH_MS = { least: 3000, most: 30_000 };
/** A limit is believed for twenty times what a refusal costs, in time and in requests. */
const BELIEVED = { leastMs: 60_000, mostMs: 400_000, toClosed: 20, requests: 100 };
/** But only for a ninth or a third of that until refusals have been met about there twice more. */
const SURE = 2;
const ABOUT = 1.1;
/** Then this much more is tried in the time of an approach, and ever faster. */
const TRIED = { perApproach: 0.03, perRequest: 0.005 };

function createPatience(): Patience {
  let lastWas = 0;
  let confirmed = 0;
  /** How long the server takes to forgive; fades, so that one long pause is not held against it for ever. */
  let forgivesMs = 0;
  let approachMs = APPROACH_MS.least;
  let leftMs = 0;
  return {
    refused(was, limit, closedMs) {
      const same = was < lastWas * ABOUT && was > lastWas / ABOUT;
      confirmed = same ? Math.min(confirmed + 1, SURE) : 0;
      lastWas = was;
      forgivesMs = Math.max(closedMs, 0.8 * forgivesMs);
      approachMs = Math.min(APPROACH_MS.most, Math.max(APPROACH_MS.least, forgivesMs / 2));
      const forTime = Math.min(BELIEVED.mostMs, Math.max(BELIEVED.leastMs, BELIEVED.toClosed * forgivesMs));
      leftMs = Math.max(forTime, (1000 * BELIEVED.requests) / limit) * 3 ** (confirmed - SURE);
    },
    approachMs: () => approachMs,
    tried(ms) {
      leftMs -= ms;
      if (leftMs >= 0) return 0;
      return Math.min(TRIED.perRequest, (TRIED.perApproach * ms * (1 - leftMs / approachMs)) / approachMs);
    },
  };
}

/**
 * So much may be caught up on after a late timer or a short lull. A timer's grain is a millisecond: at
 * 2,000 a second, each wake lets a few pass.
 */
const SLACK_MS = 100;

function createPace(): Pace {
  /** Requests that may go at once; grows with time. */
  let credit = 0;
  let creditAt = Number.NEGATIVE_INFINITY;

  function settle(now: number, perSecond: number): void {
    if (now <= creditAt) return;
    const most = Math.max(1, (perSecond * SLACK_MS) / 1000);
    credit = Math.min(most, credit + ((now - creditAt) * perSecond) / 1000);
    creditAt = now;
  }

  return {
    waitMs(now, perSecond) {
      settle(now, perSecond);
      return credit >= 1 ? 0 : ((1 - credit) / perSecond) * 1000 + creditAt - now;
    },
    started(now, perSecond) {
      settle(now, perSecond);
      credit -= 1;
    },
    restart(at) {
      credit = 0;
      creditAt = at;
    },
  };
}
