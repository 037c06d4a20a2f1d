import { backoffMs, type Clock } from '../clock.js';
import type { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';

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

/** Spreads requests evenly: what a server grants by the minute or the second is not spent in its first moment. */
export interface Pace {
  waitMs(now: number, perSecond: number): number;
  started(now: number, perSecond: number): void;
  /** Nothing is saved up before this time. */
  restart(at: number): void;
}

/** What a request is remembered by until its answer is there. */
export interface Pass {
  readonly askedAt: number;
  readonly probe: boolean;
  /** How often the door had closed when the request left. */
  readonly closings: number;
}

/**
 * Open, requests pass at the pace that the server allows. Shut while it is in trouble: then one request at a
 * time, whatever the pace, tries whether that has passed.
 */
interface Door {
  /** Infinite while a probe is under way. */
  waitMs(now: number): number;
  pass(askedAt: number): Pass;
  /** The server answered, be it with a refusal of this one run. */
  answered(pass: Pass): void;
  /** The server refuses everybody; or, without an error of its own, nobody knows what became of the request. */
  failed(pass: Pass, error: NotebookError | undefined): void;
  /** For people: why requests go as they go. */
  state(): LimiterState;
}

interface DoorOptions {
  readonly allowance: Allowance;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
}

/** Nobody is told of a limit again that was met within this time. */
const REMINDED_MS = 3_600_000;
/** A 503 that is over so soon was no outage, but how many a proxy says 429 (nginx, unless told otherwise). */
const BRIEF_MS = 2000;

export function createDoor({ allowance, pace, clock, log, random }: DoorOptions): Door {
  let trouble: Trouble | undefined;
  let shutUntil = 0;
  let probing = false;
  let closings = 0;
  /** Outages since the pace last recovered: a server that comes and goes is asked ever more rarely. */
  let relapses = 0;
  let limitMetAt = Number.NEGATIVE_INFINITY;

  function shut(waitMs: number): void {
    shutUntil = Math.max(shutUntil, clock.monotonic() + waitMs);
    pace.restart(shutUntil);
  }

  function wait(current: Trouble, news: boolean): void {
    const ours = nextWaitMs(current, allowance.perSecond(), clock.monotonic(), random);
    const waitMs = Math.max(ours, askedWaitMs(current.error, random));
    shut(waitMs);
    tellWait(log, current, waitMs, news);
  }

  function close(error: NotebookError): void {
    const now = clock.monotonic();
    const outage = error.failure !== 'rate';
    if (!allowance.recovering()) relapses = 0;
    const news = outage ? relapses === 0 : now - limitMetAt > REMINDED_MS;
    // At a limit, the first wait is not shorter than what the pace puts between two requests.
    const attempts = outage ? relapses : Math.max(0, -Math.log2(allowance.perSecond()));
    if (outage) relapses += 1;
    else limitMetAt = now;
    closings += 1;
    trouble = { error, outage, since: clock.now(), closedAt: now, attempts, warned: false };
    wait(trouble, news);
  }

  function blame(current: Trouble, error: NotebookError): void {
    current.error = error;
    current.outage ||= error.failure !== 'rate';
  }

  function open(past: Trouble): void {
    const now = clock.monotonic();
    const { outage, closedAt, error } = past;
    trouble = undefined;
    pace.restart(Math.max(now, shutUntil));
    if (!outage || (error.status === 503 && now - closedAt <= BRIEF_MS)) allowance.learn(now);
    if (outage) allowance.slowStart(now);
    tellEnd(log, past, allowance.perSecond(), now);
  }

  function state(): LimiterState {
    const shutMs = shutUntil - clock.monotonic();
    const until = clock.now() + Math.max(0, Math.round(shutMs));
    if (trouble?.outage) {
      const { since, error } = trouble;
      return { kind: 'down', since, probeAt: until, failure: error.failure, reason: error.message };
    }
    if (trouble || shutMs > 0) {
      return { kind: 'held', until, reason: trouble?.error.message ?? 'the notebook asked for a pause' };
    }
    const calm = allowance.limited() ? 'slowed' : 'open';
    return { kind: allowance.recovering() ? 'slow start' : calm, perSecond: allowance.perSecond() };
  }

  return {
    waitMs(now) {
      if (probing) return Number.POSITIVE_INFINITY;
      return Math.max(shutUntil - now, trouble ? 0 : pace.waitMs(now, allowance.perSecond()));
    },
    pass(askedAt) {
      probing = trouble !== undefined;
      if (!probing) pace.started(clock.monotonic(), allowance.perSecond());
      return { askedAt, probe: probing, closings };
    },
    answered(pass) {
      allowance.accepted(pass.askedAt, clock.monotonic());
      if (!pass.probe) return;
      probing = false;
      if (trouble) open(trouble);
    },
    failed(pass, error) {
      if (pass.probe && trouble) {
        probing = false;
        allowance.refused(pass.askedAt, clock.monotonic());
        if (error) blame(trouble, error);
        wait(trouble, false);
      } else if (error && pass.closings === closings) {
        allowance.refused(pass.askedAt, clock.monotonic());
        close(error);
      } else if (error) {
        // It left before the door last closed: the same trouble seen once more, so only its own wish counts.
        if (trouble && error.failure !== 'rate') blame(trouble, error);
        if (error.retryAfterMs !== undefined) shut(askedWaitMs(error, random));
      }
    },
    state,
  };
}

/** Why nobody but a probe may leave. */
interface Trouble {
  error: NotebookError;
  /** More is wrong than that we were too fast. */
  outage: boolean;
  /** Milliseconds since 1970, and of the clock that only grows. */
  readonly since: number;
  readonly closedAt: number;
  /** Waits so far, each longer than the last. */
  attempts: number;
  warned: boolean;
}

/**
 * At a limit, waits grow to this and then to a third of the time since it was met: what is granted anew each
 * minute is not left lying for half of it.
 */
const LIMIT_LONGEST_MS = 16_000;
/** Others were told the same time to come back: a tenth of it, and at most this, is left to chance. */
const SPREAD_MS = 5000;
/** So long a wait is told even where the trouble is no news. */
const LONG_MS = 5000;

/** How long until the next probe, as far as it is ours to say; counts one more attempt. */
function nextWaitMs(trouble: Trouble, perSecond: number, now: number, random: () => number): number {
  const longestMs = Math.max(LIMIT_LONGEST_MS, 3000 / perSecond, (now - trouble.closedAt) / 3);
  const most = trouble.outage ? Number.POSITIVE_INFINITY : Math.log2(longestMs / 1000);
  const waitMs = backoffMs(Math.min(trouble.attempts, most), { random });
  trouble.attempts += 1;
  return waitMs;
}

/** How long the server asks to be left alone. */
function askedWaitMs({ retryAfterMs = 0 }: NotebookError, random: () => number): number {
  return Math.round(retryAfterMs + random() * Math.min(retryAfterMs / 10, SPREAD_MS));
}

function tellWait(log: Log, trouble: Trouble, waitMs: number, news: boolean): void {
  const { error, outage } = trouble;
  const warns = !trouble.warned && (news || waitMs >= LONG_MS);
  trouble.warned ||= warns;
  const sentence = outage ? 'notebook not available, waiting' : 'notebook takes no more for now, waiting';
  const { failure, status, message: reason } = error;
  log[warns ? 'warn' : 'debug']({ failure, status, waitMs, reason }, sentence);
}

function tellEnd(log: Log, { closedAt, warned }: Trouble, perSecond: number, now: number): void {
  const fields = { afterMs: Math.round(now - closedAt), perSecond };
  log[warned ? 'info' : 'debug'](fields, 'notebook available again');
}
