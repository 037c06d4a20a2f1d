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
}

/** The rate at which requests were sent when one failed. */
interface SendingRate {
  readonly perSecond: number;
  /** Whether the rate is still growing after an outage. */
  readonly isRecovering: boolean;
}

/** A limit that was reported within this time is not reported again. */
const REPORT_INTERVAL_MS = 3_600_000;

/**
 * Circuit breaker: while the server fails, single probes are sent, with growing waits in between. The first
 * success closes it.
 */
export class Breaker {
  readonly #clock: Clock;
  readonly #log: Log;
  readonly #random: () => number;
  #trip: Trip | undefined;
  #blockedUntil = 0;
  #isProbing = false;
  #trips = 0;
  /** Outages since the rate last recovered. A server that keeps failing is probed ever more rarely. */
  #relapses = 0;
  #limitReportedAt = Number.NEGATIVE_INFINITY;

  constructor(clock: Clock, log: Log, random: () => number) {
    this.#clock = clock;
    this.#log = log;
    this.#random = random;
  }

  get isOpen(): boolean {
    return this.#trip !== undefined;
  }

  /** Nothing is sent before this time of the monotonic clock, not even a probe. */
  get blockedUntil(): number {
    return this.#blockedUntil;
  }

  /** How long until a request may be sent. Infinite while a probe is in flight. */
  waitMs(now: number): number {
    return this.#isProbing ? Number.POSITIVE_INFINITY : this.#blockedUntil - now;
  }

  ticket(askedAt: number): Ticket {
    this.#isProbing = this.isOpen;
    return { askedAt, isProbe: this.#isProbing, trips: this.#trips };
  }

  /** The server answered. Returns the trip that this ends, if any. */
  succeeded({ isProbe }: Ticket): Trip | undefined {
    if (!isProbe) return undefined;
    const ended = this.#trip;
    this.#isProbing = false;
    this.#trip = undefined;
    return ended;
  }

  /**
   * The server refused or failed. Without a server error, the request failed on our side and proves nothing.
   * Returns whether this is new information about the server.
   */
  failed({ isProbe, trips }: Ticket, error: NotebookError | undefined, rate: SendingRate): boolean {
    if (isProbe && this.#trip) {
      this.#isProbing = false;
      if (error) blame(this.#trip, error);
      this.#wait(this.#trip, rate.perSecond, false);
      return true;
    }
    if (!error) return false;
    if (trips === this.#trips) {
      this.#open(error, rate);
      return true;
    }
    // Sent before the breaker last tripped: part of the same failure, so only its own Retry-After counts.
    if (this.#trip && error.failure !== 'rate') blame(this.#trip, error);
    if (error.retryAfterMs !== undefined) this.#block(requestedWaitMs(error, this.#random));
    return false;
  }

  /** Why requests are held back, or undefined if they are not. */
  state(): LimiterState | undefined {
    const blockedMs = this.#blockedUntil - this.#clock.monotonic();
    const until = this.#clock.now() + Math.max(0, Math.round(blockedMs));
    if (this.#trip?.isOutage) {
      const { since, error } = this.#trip;
      return { kind: 'down', since, probeAt: until, failure: error.failure, reason: error.message };
    }
    if (!this.#trip && blockedMs <= 0) return undefined;
    return { kind: 'held', until, reason: this.#trip?.error.message ?? 'the notebook asked for a pause' };
  }

  #open(error: NotebookError, { perSecond, isRecovering }: SendingRate): void {
    const now = this.#clock.monotonic();
    const isOutage = error.failure !== 'rate';
    if (!isRecovering) this.#relapses = 0;
    const isNews = isOutage ? this.#relapses === 0 : now - this.#limitReportedAt > REPORT_INTERVAL_MS;
    // At a limit, the first wait is at least the interval between two requests.
    const attempts = isOutage ? this.#relapses : Math.max(0, -Math.log2(perSecond));
    if (isOutage) this.#relapses += 1;
    else this.#limitReportedAt = now;
    this.#trips += 1;
    this.#trip = { error, isOutage, since: this.#clock.now(), openedAt: now, attempts, isReported: false };
    this.#wait(this.#trip, perSecond, isNews);
  }

  #wait(trip: Trip, perSecond: number, isNews: boolean): void {
    const ownMs = nextWaitMs(trip, perSecond, this.#clock.monotonic(), this.#random);
    const waitMs = Math.max(ownMs, requestedWaitMs(trip.error, this.#random));
    this.#block(waitMs);
    reportWait(this.#log, trip, waitMs, isNews);
  }

  #block(waitMs: number): void {
    this.#blockedUntil = Math.max(this.#blockedUntil, this.#clock.monotonic() + waitMs);
  }
}

function blame(trip: Trip, error: NotebookError): void {
  trip.error = error;
  trip.isOutage ||= error.failure !== 'rate';
}

/**
 * At a limit, waits grow to this, or to a third of the time since it was reached. A server that counts by the minute
 * is then not left idle for half of the next one.
 */
const MAX_LIMIT_WAIT_MS = 16_000;

/** How long until the next probe, by our own back-off; counts one more attempt. */
function nextWaitMs(trip: Trip, perSecond: number, now: number, random: () => number): number {
  const maxMs = Math.max(MAX_LIMIT_WAIT_MS, 3000 / perSecond, (now - trip.openedAt) / 3);
  const maxAttempts = trip.isOutage ? Number.POSITIVE_INFINITY : Math.log2(maxMs / 1000);
  const waitMs = backoffMs(Math.min(trip.attempts, maxAttempts), { random });
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
