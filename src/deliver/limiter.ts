import type { Clock } from '../clock.js';
import { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';
import { Breaker, type Ticket, type Trip } from './breaker.js';
import { StoppedError } from './context.js';

interface LimiterOptions {
  /** The configured ceiling. */
  readonly perSecond: number;
  /** How many requests may be in flight. */
  readonly connections?: () => number;
  readonly clock: Clock;
  readonly log: Log;
  readonly random?: () => number;
  /** Without it, the next request is the probe. */
  readonly probe?: ProbeOptions | undefined;
}

interface ProbeOptions {
  /** A harmless request that does not wait in this limiter. */
  send(): Promise<unknown>;
  /** Whether the key was replaced since the last request. */
  readonly isKeyReplaced?: (() => boolean) | undefined;
  /** Called when the server is available again after an outage. */
  readonly onAvailable?: () => void;
}

interface Waiting {
  start(): void;
  reject(error: Error): void;
}

/** How often to check whether a refused key was replaced. */
const KEY_CHECK_MS = 1000;

/**
 * Rate limiter and circuit breaker for one server. All requests go through it, so that a limit applies to all workers
 * together. A request is sent when the configured ceiling, the learned rate, the token bucket and the breaker allow it.
 */
export class Limiter {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #ceiling: Ceiling;
  readonly #rate: LearnedRate;
  readonly #bucket = new TokenBucket();
  readonly #breaker: Breaker;
  readonly #probe: ProbeOptions | undefined;
  readonly #waiting: Waiting[] = [];
  readonly #stopping = new AbortController();
  readonly #connections: () => number;
  #inFlight = 0;
  #isSleeping = false;
  #isProbing = false;

  constructor(options: LimiterOptions) {
    const { perSecond, clock, log, random = Math.random, probe } = options;
    this.#connections = options.connections ?? (() => Number.POSITIVE_INFINITY);
    this.#clock = clock;
    this.#log = log;
    this.#probe = probe;
    this.#ceiling = new Ceiling(perSecond);
    this.#rate = new LearnedRate(this.#ceiling.perSecond, log);
    this.#breaker = new Breaker({ clock, log, random, hasProbe: probe !== undefined });
  }

  /** Sends the request when it is its turn. */
  schedule<T>(request: () => Promise<T>): Promise<T> {
    const askedAt = this.#clock.monotonic();
    return new Promise((resolve, reject) => {
      if (this.#stopping.signal.aborted) return reject(stopped());
      this.#waiting.push({ start: () => resolve(this.#send(request, askedAt)), reject });
      this.#startDue();
    });
  }

  state(): LimiterState {
    const calm = this.#rate.isLimited ? 'slowed' : 'open';
    const kind = this.#rate.isRecovering ? 'slow start' : calm;
    return this.#breaker.state() ?? { kind, perSecond: this.#rate.perSecond };
  }

  /** Sends what waited for a connection, if there are more now. */
  admit(): void {
    this.#startDue();
  }

  /** Rejects everything that waits, and every later request. */
  stop(): void {
    this.#stopping.abort();
    for (const waiting of this.#waiting.splice(0)) waiting.reject(stopped());
  }

  /** Starts what may be sent now, in the order of arrival, and sleeps until the next may. */
  #startDue(): void {
    while (!this.#isSleeping && this.#waiting.length > 0 && this.#inFlight < this.#connections()) {
      const waitMs = this.#waitMs(this.#clock.monotonic());
      // The answer to a probe continues here.
      if (waitMs === Number.POSITIVE_INFINITY) return;
      if (waitMs > 0) this.#sleep(waitMs);
      else this.#waiting.shift()?.start();
    }
  }

  #waitMs(now: number): number {
    const bucketMs = this.#breaker.isOpen ? 0 : this.#bucket.waitMs(now, this.#rate.perSecond);
    return Math.max(this.#breaker.waitMs(now), bucketMs, this.#ceiling.waitMs(now));
  }

  #sleep(ms: number): void {
    this.#isSleeping = true;
    // Timers truncate: without rounding up, each wait would end with a second, tiny one.
    void this.#clock.sleep(Math.ceil(ms), this.#stopping.signal).then(() => {
      this.#isSleeping = false;
      this.#startDue();
    });
  }

  async #send<T>(request: () => Promise<T>, askedAt: number): Promise<T> {
    const now = this.#clock.monotonic();
    this.#ceiling.started(now);
    if (!this.#breaker.isOpen) this.#bucket.take(now, this.#rate.perSecond);
    const ticket = this.#breaker.ticket(askedAt);
    this.#inFlight += 1;
    try {
      const answer = await request();
      this.#succeeded(ticket);
      return answer;
    } catch (error) {
      // An answer that concerns one run shows that the server is available.
      if (error instanceof NotebookError && error.scope === 'run') this.#succeeded(ticket);
      else this.#failed(ticket, error instanceof NotebookError ? error : undefined);
      throw error;
    } finally {
      this.#inFlight -= 1;
      this.#startDue();
    }
  }

  #succeeded(ticket: Ticket): void {
    this.#rate.accepted(ticket.askedAt, this.#clock.monotonic());
    const ended = this.#breaker.succeeded(ticket);
    if (ended) this.#resume(ended);
  }

  #failed(ticket: Ticket, error: NotebookError | undefined): void {
    this.#holdBack(ticket.askedAt, () => this.#breaker.failed(ticket, error, this.#rate));
    if (this.#probe && this.#breaker.probeAt !== undefined && !this.#isProbing) void this.#probeServer(this.#probe);
  }

  #holdBack(askedAt: number, fails: () => boolean): void {
    const before = this.#breaker.blockedUntil;
    if (fails()) this.#rate.refused(askedAt, this.#clock.monotonic());
    if (this.#breaker.blockedUntil !== before) this.#bucket.restart(this.#breaker.blockedUntil);
  }

  /** Sends probes while the server is suspected or down. */
  async #probeServer(probe: ProbeOptions): Promise<void> {
    this.#isProbing = true;
    for (let at = this.#breaker.probeAt; at !== undefined; at = this.#breaker.probeAt) {
      if (this.#stopping.signal.aborted) break;
      const now = this.#clock.monotonic();
      const waitMs = Math.max(at - now, this.#ceiling.waitMs(now));
      const isAuth = this.#breaker.isKeyRefused;
      if (waitMs <= 0) await this.#sendProbe(probe);
      else if (isAuth && probe.isKeyReplaced?.()) this.#breaker.unblock();
      else await this.#clock.sleep(Math.ceil(isAuth ? Math.min(waitMs, KEY_CHECK_MS) : waitMs), this.#stopping.signal);
    }
    this.#isProbing = false;
  }

  async #sendProbe({ send }: ProbeOptions): Promise<void> {
    const now = this.#clock.monotonic();
    this.#ceiling.started(now);
    const ticket = this.#breaker.isOpen ? this.#breaker.ticket(now) : undefined;
    const error: unknown = await send().then(
      () => undefined,
      (reason: unknown) => reason,
    );
    const failure = error instanceof NotebookError && error.scope !== 'run' ? error : undefined;
    const isAnswered = error === undefined || (error instanceof NotebookError && !failure);
    if (ticket && isAnswered) this.#succeeded(ticket);
    else if (ticket) this.#holdBack(now, () => this.#breaker.failed(ticket, failure, this.#rate));
    else if (failure) this.#holdBack(now, () => this.#breaker.suspicionGrew(failure, this.#rate));
    else this.#breaker.cleared();
    this.#startDue();
  }

  #resume({ isOutage, openedAt, isReported }: Trip): void {
    const now = this.#clock.monotonic();
    this.#bucket.restart(Math.max(now, this.#breaker.blockedUntil));
    if (isOutage) this.#rate.slowStart(now);
    else this.#rate.learn(now);
    const fields = { afterMs: Math.round(now - openedAt), perSecond: this.#rate.perSecond };
    this.#log[isReported ? 'info' : 'debug'](fields, 'notebook available again');
    if (isOutage) this.#probe?.onAvailable?.();
  }
}

const stopped = (): StoppedError => new StoppedError('labfeed is stopping');

/** How much later than its neighbour a request may reach the server without exceeding the ceiling there. Costs 6 %. */
const JITTER_MS = 60;
/** How many start times are kept. Above this ceiling, a fraction of a second is metered instead. */
const MAX_STARTS = 1000;

/** The configured rate, as a limit on every second and not on the average. */
class Ceiling {
  /** The rate that can be sustained below it. */
  readonly perSecond: number;
  readonly #starts: Float64Array;
  readonly #windowMs: number;
  #oldest = 0;

  constructor(perSecond: number) {
    // If no tenth of a second sees more than a tenth of the ceiling, no second sees more than the ceiling.
    const parts = Math.ceil(perSecond / MAX_STARTS);
    // Below one per second, the window is the time that one request may take.
    const max = Math.max(1, Math.floor(perSecond / parts));
    this.#windowMs = (max / perSecond) * 1000 + JITTER_MS / parts;
    this.#starts = new Float64Array(max).fill(Number.NEGATIVE_INFINITY);
    this.perSecond = (max / this.#windowMs) * 1000;
  }

  waitMs(now: number): number {
    return (this.#starts[this.#oldest] ?? now) + this.#windowMs - now;
  }

  started(now: number): void {
    this.#starts[this.#oldest] = now;
    this.#oldest = (this.#oldest + 1) % this.#starts.length;
  }
}

/** Tokens for this time may be saved up: timers are late, and have a resolution of a millisecond. */
const MAX_BURST_MS = 100;

/** Spreads requests evenly, so that the quota of a second or a minute is not used up at its start. */
class TokenBucket {
  #tokens = 0;
  #filledAt = Number.NEGATIVE_INFINITY;

  waitMs(now: number, perSecond: number): number {
    this.#fill(now, perSecond);
    return this.#tokens >= 1 ? 0 : ((1 - this.#tokens) / perSecond) * 1000 + this.#filledAt - now;
  }

  take(now: number, perSecond: number): void {
    this.#fill(now, perSecond);
    this.#tokens -= 1;
  }

  /** Empties the bucket; it fills from this time on. */
  restart(at: number): void {
    this.#tokens = 0;
    this.#filledAt = at;
  }

  #fill(now: number, perSecond: number): void {
    if (now <= this.#filledAt) return;
    const max = Math.max(1, (perSecond * MAX_BURST_MS) / 1000);
    this.#tokens = Math.min(max, this.#tokens + ((now - this.#filledAt) * perSecond) / 1000);
    this.#filledAt = now;
  }
}

/** Below this, the breaker waits instead. */
const MIN_PER_SECOND = 1 / 60;
/** A longer pause between two requests is our own, and says nothing about the server. */
const MAX_IDLE_MS = 100;
/** In the long run, stay this close to the learned limit. */
const HEADROOM = 0.98;
/** After an outage, start at this fraction of the previous rate (or at one per second) and double every second. */
const SLOW_START = 1 / 32;

/**
 * The rate that the server accepts. Servers count by the second or the minute, in fixed or sliding windows or with a
 * bucket, and do not say which. What they accept and refuse brackets their limit, and each refusal halves the bracket.
 * Measured in simulation over the first 1,000 requests, with 1 to 16 in flight and 5 to 500 ms latency: with a limit of
 * 15/s of any of these kinds, 0.2 to 1.4 % are refused and 90 to 107 % of the limit is used on average, 4 % and 81 % at
 * worst; later 0.1 % and 94 %. A limit that was raised fourfold is found within a minute.
 */
class LearnedRate {
  readonly #max: number;
  readonly #log: Log;
  readonly #throughput = new Throughput();
  readonly #trust = new LimitTrust();
  #perSecond: number;
  /** Where refusals begin, as far as known. */
  #limit: number;
  /** The rate before an outage, until it is reached again. */
  #resumeTo = 0;
  #answeredAt: number | undefined;
  #refusedFrom: number | undefined;
  #refusedUntil = 0;

  constructor(max: number, log: Log) {
    this.#max = max;
    this.#log = log;
    this.#perSecond = max;
    this.#limit = max;
  }

  get perSecond(): number {
    return this.#perSecond;
  }

  /** Whether the server has shown a limit below the ceiling. */
  get isLimited(): boolean {
    return this.#limit < this.#max;
  }

  get isRecovering(): boolean {
    return this.#perSecond < this.#resumeTo;
  }

  /** The server accepted a request that the caller asked to send at that time. */
  accepted(askedAt: number, now: number): void {
    const sinceMs = this.#answered(1, askedAt, now);
    // Idle time tests nothing: at most the interval between two requests at this rate counts.
    if (this.#refusedFrom === undefined) this.#grow(Math.min(sinceMs, Math.max(1000, 2000 / this.#perSecond)));
  }

  /** The server refused a request. */
  refused(askedAt: number, now: number): void {
    this.#answered(0, askedAt, now);
    this.#refusedFrom ??= now;
    this.#refusedUntil = now;
  }

  /** The server accepts requests again, after there were too many. */
  learn(now: number): void {
    const from = this.#refusedFrom ?? now;
    const closedMs = now - from;
    const refusingMs = this.#refusedFrom === undefined ? 0 : this.#refusedUntil - from;
    const { was, limit, rate } = estimateLimit(this.#throughput, this.#perSecond, closedMs, refusingMs);
    this.#limit = this.#bounded(limit);
    this.#perSecond = this.#bounded(rate);
    this.#resumeTo = 0;
    this.#trust.confirm(was, this.#limit, closedMs);
    this.#log.debug({ was, limit: this.#limit, perSecond: this.#perSecond, closedMs }, 'rate limit learned');
    this.#throughput.clear();
    this.#reopen(now);
  }

  /** The server is available again after an outage. */
  slowStart(now: number): void {
    this.#resumeTo = Math.max(this.#resumeTo, this.#perSecond);
    this.#perSecond = Math.max(this.#resumeTo * SLOW_START, Math.min(this.#resumeTo, 1));
    this.#reopen(now);
  }

  /** Returns the time since the previous answer. */
  #answered(accepted: number, askedAt: number, now: number): number {
    const sinceMs = now - (this.#answeredAt ?? askedAt);
    const openMs = this.#refusedFrom === undefined ? Math.min(sinceMs, now - askedAt + MAX_IDLE_MS) : 0;
    this.#throughput.add(accepted, openMs);
    this.#answeredAt = now;
    return sinceMs;
  }

  #grow(ms: number): void {
    const doubled = this.#perSecond * 2 ** (ms / 1000);
    if (this.isRecovering) {
      this.#perSecond = Math.min(this.#resumeTo, doubled);
      return;
    }
    this.#resumeTo = 0;
    this.#limit = Math.min(this.#max, this.#limit * (1 + this.#trust.raise(ms)));
    const top = this.isLimited ? this.#limit * HEADROOM : this.#max;
    if (this.#perSecond >= top) return;
    const closer = this.#perSecond + (top - this.#perSecond) * Math.min(1, ms / this.#trust.approachMs);
    this.#perSecond = Math.min(doubled, closer);
  }

  #reopen(now: number): void {
    this.#answeredAt = now;
    this.#refusedFrom = undefined;
  }

  #bounded(perSecond: number): number {
    return Math.min(this.#max, Math.max(MIN_PER_SECOND, perSecond));
  }
}

/** A server that keeps refusing counts over a long time: its rate is averaged over a multiple of that. */
const RECENT_TO_REFUSING = 10;
/** Refusals begin at least this close to where they were met, unless the server kept refusing. */
const CLOSE = 0.95;
/** Continue no faster than this fraction of the limit. */
const BACK_OFF_TO = 0.9;

/**
 * The server can sustain its average over all the time, refusals included. The rate up to its last refusal was too
 * high. The limit, and the rate to continue with, lie between the two: half-way, by ratio.
 * `was`: the rate at which requests were actually sent, which may be below the permitted one.
 */
function estimateLimit(
  throughput: Throughput,
  permitted: number,
  closedMs: number,
  refusingMs: number,
): { was: number; limit: number; rate: number } {
  const recent = throughput.over(RECENT_TO_REFUSING * refusingMs);
  const overall = throughput.over(Number.POSITIVE_INFINITY);
  const was = Math.min(permitted, perSecond(recent.accepted, recent.openMs));
  const enough = perSecond(overall.accepted, overall.openMs + closedMs);
  const tooMuch = perSecond(recent.accepted, recent.openMs + refusingMs);
  // A long refusal after a few requests says little about a rate.
  const min = was / (1 + recent.accepted / 4);
  const limit = Math.max(min, Math.min(tooMuch, Math.max(CLOSE * was, Math.sqrt(was * enough))));
  // No server counts over less than a second: the rate of a shorter burst cannot be sustained.
  const sustained = perSecond(recent.accepted, Math.max(1000, recent.openMs) + refusingMs);
  const rate = Math.min(BACK_OFF_TO * limit, Math.sqrt(enough * Math.min(limit, sustained)));
  return { was, limit, rate };
}

/** One more than was counted, so that a count of zero does not become a rate of zero. */
const perSecond = (accepted: number, ms: number): number => (1000 * (accepted + 1)) / Math.max(1, ms);

const HORIZONS_MS = [2000, 10_000, 60_000, 240_000];

/** Accepted requests, and the time in which they could be sent. Beyond each horizon, the past decays by halves. */
class Throughput {
  readonly #spans = HORIZONS_MS.map((horizonMs) => ({ horizonMs, accepted: 0, openMs: 0 }));

  add(accepted: number, openMs: number): void {
    for (const span of this.#spans) {
      span.accepted += accepted;
      span.openMs += openMs;
      if (span.openMs > span.horizonMs) {
        span.accepted /= 2;
        span.openMs /= 2;
      }
    }
  }

  /** Over about this time, or the longest that is kept. */
  over(ms: number): { readonly accepted: number; readonly openMs: number } {
    const span = this.#spans.find(({ horizonMs }) => horizonMs >= ms) ?? this.#spans.at(-1);
    return span ?? { accepted: 0, openMs: 0 };
  }

  clear(): void {
    for (const span of this.#spans) Object.assign(span, { accepted: 0, openMs: 0 });
  }
}

/** The limit is approached in half the time that the server took to accept again, within these bounds. */
const APPROACH_MS = { min: 3000, max: 30_000 };
/** A limit is trusted for twenty times the cost of a refusal, in time and in requests. */
const TRUSTED = { minMs: 60_000, maxMs: 400_000, toClosed: 20, requests: 100 };
/** Until refusals were met near it twice more, it is trusted only for a ninth or a third of that. */
const CONFIRMATIONS = 2;
const NEAR = 1.1;
/** Then the limit is raised by this much within the time of an approach, and ever faster. */
const RAISE = { perApproach: 0.03, perRequest: 0.005 };

/** How long a learned limit is trusted, how soon it is approached, and how fast it is raised afterwards. */
class LimitTrust {
  #lastRate = 0;
  #confirmed = 0;
  /** How long the server refuses; decays, so that one long pause does not count forever. */
  #closedMs = 0;
  #approachMs = APPROACH_MS.min;
  #leftMs = 0;

  get approachMs(): number {
    return this.#approachMs;
  }

  /** Refusals began at this rate and lasted this long. */
  confirm(rate: number, limit: number, closedMs: number): void {
    const isNear = rate < this.#lastRate * NEAR && rate > this.#lastRate / NEAR;
    this.#confirmed = isNear ? Math.min(this.#confirmed + 1, CONFIRMATIONS) : 0;
    this.#lastRate = rate;
    this.#closedMs = Math.max(closedMs, 0.8 * this.#closedMs);
    this.#approachMs = Math.min(APPROACH_MS.max, Math.max(APPROACH_MS.min, this.#closedMs / 2));
    const forTime = Math.min(TRUSTED.maxMs, Math.max(TRUSTED.minMs, TRUSTED.toClosed * this.#closedMs));
    const forRequests = (1000 * TRUSTED.requests) / limit;
    this.#leftMs = Math.max(forTime, forRequests) * 3 ** (this.#confirmed - CONFIRMATIONS);
  }

  /** By what fraction to raise the limit after this much more time without a refusal. */
  raise(ms: number): number {
    this.#leftMs -= ms;
    if (this.#leftMs >= 0) return 0;
    const acceleration = 1 - this.#leftMs / this.#approachMs;
    return Math.min(RAISE.perRequest, (RAISE.perApproach * ms * acceleration) / this.#approachMs);
  }
}
