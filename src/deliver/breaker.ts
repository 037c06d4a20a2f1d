import { backoffMs, type Clock } from '../clock.js';
import type { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';

/** A request in flight. */
export interface Ticket {
  /** When the caller asked to send it. */
  readonly askedAt: number;
  readonly isProbe: boolean;
  /** How often the breaker had tripped when the request was sent. */
  readonly trips: number;
}

/** Why the breaker is open. */
export interface Trip {
  error: NotebookError;
  /** The server is unavailable, or refuses the key. If false, it only refuses more requests. */
  isOutage: boolean;
  /** Wall-clock time, for people. */
  readonly since: number;
  /** The same on the monotonic clock. */
  readonly openedAt: number;
  /** Determines the next wait. */
  attempts: number;
  isReported: boolean;
  /** The key was refused, perhaps only for one request: the first probe follows at once and decides. */
  isUnconfirmed: boolean;
}

/** The rate at which requests were sent when one failed. */
interface SendingRate {
  readonly perSecond: number;
  /** Whether the rate is still growing after an outage. */
  readonly isRecovering: boolean;
}

interface BreakerOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** Whether the limiter sends probes by itself. If not, the next request is the probe. */
  readonly hasProbe: boolean;
}

/** A limit that was reported within this time is not reported again. */
const REPORT_INTERVAL_MS = 3_600_000;

/** The server is suspected after this many failures in a row, and then probed. Without probes, five open the breaker. */
const SUSPECT_AFTER = 3;
const OPEN_AFTER = 5;
/** The wait before the second probe of a suspected server. */
const SUSPECT_MS = 500;

/**
 * Circuit breaker. A single failure concerns its request only. After several in a row, or if most of the last 20 fail,
 * harmless probes decide whether the server is down. While it is, only such probes are sent, with growing waits in
 * between, and the first success closes the breaker. A refusal because of too many requests opens it at once; a request
 * that waits is then the probe, because it was certainly not carried out.
 */
export class Breaker {
  readonly #options: BreakerOptions;
  readonly #failures = new RecentFailures();
  #trip: Trip | undefined;
  #blockedUntil = 0;
  #isProbing = false;
  #trips = 0;
  /** When to probe a suspected server, and how many probes have failed. */
  #suspectAt: number | undefined;
  #failedProbes = 0;
  /** Outages since the rate last recovered. A server that keeps failing is probed more rarely. */
  #relapses = 0;
  #limitReportedAt = Number.NEGATIVE_INFINITY;

  constructor(options: BreakerOptions) {
    this.#options = options;
  }

  get isOpen(): boolean {
    return this.#trip !== undefined;
  }

  get isKeyRefused(): boolean {
    return this.#trip?.error.failure === 'auth';
  }

  /** Nothing is sent before this time of the monotonic clock, not even a probe. */
  get blockedUntil(): number {
    return this.#blockedUntil;
  }

  /** When the limiter has to send a probe; undefined if none is needed. */
  get probeAt(): number | undefined {
    if (this.#trip) return this.#isProbedByLimiter(this.#trip) ? this.#blockedUntil : undefined;
    return this.#suspectAt === undefined ? undefined : Math.max(this.#suspectAt, this.#blockedUntil);
  }

  /** The key was replaced: nothing that was said to the previous one counts. */
  unblock(): void {
    this.#blockedUntil = this.#options.clock.monotonic();
  }

  /** How long until a request may be sent. Infinite while it depends on a probe. */
  waitMs(now: number): number {
    if (this.#trip && (this.#isProbing || this.#isProbedByLimiter(this.#trip))) return Number.POSITIVE_INFINITY;
    return this.#blockedUntil - now;
  }

  ticket(askedAt: number): Ticket {
    this.#isProbing = this.isOpen;
    return { askedAt, isProbe: this.#isProbing, trips: this.#trips };
  }

  /** The server answered. Returns the trip that this ends, if any. */
  succeeded({ isProbe }: Ticket): Trip | undefined {
    this.#failures.add(false);
    if (this.#suspectAt !== undefined && !this.#failures.isSuspicious(SUSPECT_AFTER)) this.#suspectAt = undefined;
    if (!isProbe) return undefined;
    const ended = this.#trip;
    this.#isProbing = false;
    this.#trip = undefined;
    this.#forget();
    return ended?.isUnconfirmed ? undefined : ended;
  }

  /** A suspected server answered a probe: the failures concerned their requests. */
  cleared(): void {
    this.#forget();
  }

  /**
   * The server refused or failed. Without a server error, the request failed on our side and proves nothing.
   * Returns whether requests are held back from now on, or for longer.
   */
  failed({ isProbe, trips }: Ticket, error: NotebookError | undefined, rate: SendingRate): boolean {
    if (isProbe && this.#trip) {
      this.#isProbing = false;
      return this.#probeFailed(this.#trip, error, rate);
    }
    if (!error) return false;
    if (trips === this.#trips) return this.#count(error, rate);
    // Sent before the breaker last tripped: part of the same failure, so only its own Retry-After counts.
    if (this.#trip && error.failure !== 'rate') blame(this.#trip, error);
    if (error.retryAfterMs !== undefined) this.#block(requestedWaitMs(error, this.#options.random));
    return false;
  }

  /** A probe of a suspected server failed. */
  suspicionGrew(error: NotebookError, rate: SendingRate): boolean {
    if (this.#trip) return false;
    this.#failedProbes += 1;
    if (this.#failedProbes < OPEN_AFTER - SUSPECT_AFTER && !isLimit(error)) {
      this.#suspectAt = this.#options.clock.monotonic() + SUSPECT_MS;
      return false;
    }
    this.#open(error, rate);
    return true;
  }

  /** Why requests are held back, or undefined if they are not. */
  state(): LimiterState | undefined {
    const { clock } = this.#options;
    const blockedMs = this.#blockedUntil - clock.monotonic();
    const until = clock.now() + Math.max(0, Math.round(blockedMs));
    if (this.#trip?.isOutage) {
      const { since, error } = this.#trip;
      return { kind: 'down', since, probeAt: until, failure: error.failure, reason: error.message };
    }
    if (!this.#trip && blockedMs <= 0) return undefined;
    return { kind: 'held', until, reason: this.#trip?.error.message ?? 'the notebook asked for a pause' };
  }

  #isProbedByLimiter({ error }: Trip): boolean {
    return this.#options.hasProbe && error.failure !== 'rate';
  }

  #count(error: NotebookError, rate: SendingRate): boolean {
    if (isLimit(error)) return this.#open(error, rate);
    if (error.failure === 'auth') return this.#options.hasProbe ? this.#doubtKey(error) : this.#open(error, rate);
    if (error.retryAfterMs !== undefined) this.#block(requestedWaitMs(error, this.#options.random));
    this.#failures.add(true);
    if (!this.#options.hasProbe) return this.#failures.isSuspicious(OPEN_AFTER) && this.#open(error, rate);
    if (this.#suspectAt === undefined && this.#failures.isSuspicious(SUSPECT_AFTER))
      this.#suspectAt = this.#options.clock.monotonic();
    return false;
  }

  /** A key may be refused for writes only, which is not an outage. Nothing else is sent until a probe has shown it. */
  #doubtKey(error: NotebookError): boolean {
    this.#trips += 1;
    this.#trip = { ...this.#newTrip(error), isUnconfirmed: true };
    return false;
  }

  #probeFailed(trip: Trip, error: NotebookError | undefined, rate: SendingRate): boolean {
    if (trip.isUnconfirmed && error) return this.#open(error, rate);
    const wasOutage = trip.isOutage;
    if (error) blame(trip, error);
    const isNews = trip.isOutage && !wasOutage;
    if (isNews) trip.isReported = false;
    this.#wait(trip, rate.perSecond, isNews);
    return true;
  }

  #open(error: NotebookError, { perSecond, isRecovering }: SendingRate): true {
    const now = this.#options.clock.monotonic();
    if (!isRecovering) this.#relapses = 0;
    const trip = this.#newTrip(error);
    const { isOutage } = trip;
    const isNews = isOutage ? this.#relapses === 0 : now - this.#limitReportedAt > REPORT_INTERVAL_MS;
    // At a limit, the first wait is at least the interval between two requests.
    trip.attempts = isOutage ? this.#relapses : Math.max(0, -Math.log2(perSecond));
    if (isOutage) this.#relapses += 1;
    else this.#limitReportedAt = now;
    this.#trips += 1;
    this.#trip = trip;
    this.#forget();
    this.#wait(trip, perSecond, isNews);
    return true;
  }

  #newTrip(error: NotebookError): Trip {
    const { clock } = this.#options;
    const at = { since: clock.now(), openedAt: clock.monotonic() };
    return { error, isOutage: !isLimit(error), ...at, attempts: 0, isReported: false, isUnconfirmed: false };
  }

  #forget(): void {
    this.#failures.clear();
    this.#suspectAt = undefined;
    this.#failedProbes = 0;
  }

  #wait(trip: Trip, perSecond: number, isNews: boolean): void {
    const { clock, random, log } = this.#options;
    const ownMs = nextWaitMs(trip, perSecond, clock.monotonic(), random);
    const waitMs = Math.max(ownMs, requestedWaitMs(trip.error, random));
    this.#block(waitMs);
    reportWait(log, trip, waitMs, isNews);
  }

  #block(waitMs: number): void {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#options.clock.monotonic() + waitMs);
  }
}

/** Whether the server asks for fewer requests: some proxies answer 503 where others answer 429. */
const isLimit = ({ failure, status, retryAfterMs }: NotebookError): boolean =>
  failure === 'rate' || (status === 503 && retryAfterMs !== undefined);

function blame(trip: Trip, error: NotebookError): void {
  trip.error = error;
  // A 503 that even a probe gets is an outage, whatever it asks for.
  trip.isOutage ||= error.failure !== 'rate';
}

const WINDOW = 20;
const MOST = 12;

/** The last 20 answers, one bit each: 1 is a failure. */
class RecentFailures {
  #bits = 0;

  add(isFailure: boolean): void {
    this.#bits = ((this.#bits << 1) | (isFailure ? 1 : 0)) & (2 ** WINDOW - 1);
  }

  /** Whether the last answers were failures, or most of the window. */
  isSuspicious(inARow: number): boolean {
    const row = 2 ** inARow - 1;
    if ((this.#bits & row) === row) return true;
    return this.#bits.toString(2).replaceAll('0', '').length >= MOST;
  }

  clear(): void {
    this.#bits = 0;
  }
}

/** The longest wait between two probes, unless the server asks for more. */
const MAX_OUTAGE_WAIT_MS = 30_000;

/**
 * At a limit, waits grow to this, or to a third of the time since it was reached. A server that counts by the minute
 * is then not left idle for half of the next one.
 */
const MAX_LIMIT_WAIT_MS = 16_000;
const MAX_WAIT_MS = 300_000;

/** How long until the next probe, by our own back-off; counts one more attempt. */
function nextWaitMs(trip: Trip, perSecond: number, now: number, random: () => number): number {
  const limitMs = Math.min(MAX_WAIT_MS, Math.max(MAX_LIMIT_WAIT_MS, 3000 / perSecond, (now - trip.openedAt) / 3));
  const waitMs = backoffMs(trip.attempts, { maxMs: trip.isOutage ? MAX_OUTAGE_WAIT_MS : limitMs, random });
  trip.attempts += 1;
  return waitMs;
}

/** Other clients got the same Retry-After: up to a tenth of it, and at most this, is added at random. */
const MAX_SPREAD_MS = 5000;

const requestedWaitMs = ({ retryAfterMs = 0 }: NotebookError, random: () => number): number =>
  Math.round(retryAfterMs + random() * Math.min(retryAfterMs / 10, MAX_SPREAD_MS));

/** A wait of this length is reported even if the condition is not new. */
const LONG_WAIT_MS = 5000;

function reportWait(log: Log, trip: Trip, waitMs: number, isNews: boolean): void {
  const { failure, status, message: reason } = trip.error;
  const isWarning = !trip.isReported && (isNews || waitMs >= LONG_WAIT_MS);
  trip.isReported ||= isWarning;
  const message = trip.isOutage ? 'notebook unavailable, waiting' : 'rate limit reached, waiting';
  log[isWarning ? 'warn' : 'debug']({ failure, status, waitMs, reason }, message);
}
