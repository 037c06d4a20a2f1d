import type { Clock } from '../clock.js';
import type { FailureClass, NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import type { Allowance } from './allowance.js';
import { backoffMs } from './backoff.js';
import type { Pace } from './pace.js';

/** What a request is remembered by until its answer is there. */
export interface Pass {
  readonly askedAt: number;
  readonly probe: boolean;
  /** How often the door had closed when the request left. */
  readonly closings: number;
}

/** For people: why requests go as they go. Times are milliseconds since 1970. */
export type GateState =
  | { readonly kind: 'open' | 'slow start'; readonly perSecond: number }
  | { readonly kind: 'held'; readonly until: number; readonly reason: string }
  | {
      readonly kind: 'down';
      readonly since: number;
      readonly probeAt: number;
      readonly failure: FailureClass;
      readonly reason: string;
    };

/** Shut while the server is in trouble: then one request at a time tries whether it has passed. */
export interface Door {
  waitMs(now: number): number;
  pass(askedAt: number): Pass;
  /** The server answered, be it with a refusal of this one run. */
  answered(pass: Pass): void;
  /** The server refused everybody, or (without an error of its own) nobody knows what became of the request. */
  failed(pass: Pass, error: NotebookError | undefined): void;
  state(): GateState;
}

export interface DoorOptions {
  readonly allowance: Allowance;
  readonly pace: Pace;
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
}

interface Trouble {
  error: NotebookError;
  readonly since: number;
  readonly sinceMonotonic: number;
  /** Waits so far, each longer than the last. */
  attempts: number;
  probes: number;
  warned: boolean;
}

/** Shorter waits are the usual ones at a limit that is known already. */
const NOTABLE_MS = 5000;
/** Others were told the same time to come back: a tenth of it, and at most this, is left to chance. */
const SPREAD_MS = 5000;

export function createDoor({ allowance, pace, clock, log, random }: DoorOptions): Door {
  let trouble: Trouble | undefined;
  let shutUntil = 0;
  let probing = false;
  let closings = 0;
  /** Outages since the pace last recovered: a server that comes and goes is asked ever more rarely. */
  let relapses = 0;
  let limited = false;

  function hold(error: NotebookError | undefined, leastMs: number): number {
    const asked = error?.retryAfterMs ?? 0;
    const waitMs = Math.max(asked + random() * Math.min(asked / 10, SPREAD_MS), leastMs);
    shutUntil = Math.max(shutUntil, clock.monotonic() + waitMs);
    pace.restart(shutUntil);
    return waitMs;
  }

  function close(error: NotebookError): void {
    closings += 1;
    if (!allowance.recovering()) relapses = 0;
    const outage = error.failure !== 'rate';
    // At a limit, the first wait is not shorter than what the pace puts between two requests.
    const attempts = outage ? relapses++ : Math.max(0, Math.ceil(-Math.log2(allowance.perSecond())));
    const since = { since: clock.now(), sinceMonotonic: clock.monotonic() };
    trouble = { error, ...since, attempts, probes: 0, warned: false };
    wait(trouble, outage ? attempts === 0 : !limited);
    limited ||= !outage;
  }

  function wait(current: Trouble, news: boolean): void {
    const { error } = current;
    const elapsedMs = clock.monotonic() - current.sinceMonotonic;
    const mostMs = error.failure === 'rate' ? Math.max(16_000, elapsedMs / 3) : Number.POSITIVE_INFINITY;
    const waitMs = hold(error, Math.min(backoffMs(current.attempts, random), mostMs * (0.5 + random() / 2)));
    current.attempts += 1;
    const level = !current.warned && (news || waitMs >= NOTABLE_MS) ? 'warn' : 'debug';
    current.warned ||= level === 'warn';
    const fields = { failure: error.failure, status: error.status, waitMs, reason: error.message };
    if (error.failure === 'rate') log[level](fields, 'notebook refuses more requests, waiting');
    else log[level](fields, 'notebook not available, waiting');
  }

  function open({ error, probes, sinceMonotonic, warned }: Trouble): void {
    trouble = undefined;
    const now = clock.monotonic();
    pace.restart(Math.max(now, shutUntil));
    // A 503 that is over at the first try is how many a proxy says 429 (nginx's limit_req, unless told otherwise).
    const tooFast = error.failure === 'rate' || (error.status === 503 && probes === 1);
    if (tooFast) allowance.learn(now);
    if (error.failure !== 'rate') allowance.slowStart(now);
    const fields = { afterMs: Math.round(now - sinceMonotonic), perSecond: allowance.perSecond() };
    log[warned ? 'info' : 'debug'](fields, 'notebook available again');
  }

  return {
    waitMs: (now) => (probing ? Number.POSITIVE_INFINITY : shutUntil - now),
    pass(askedAt) {
      probing = trouble !== undefined;
      if (trouble) trouble.probes += 1;
      return { askedAt, probe: probing, closings };
    },
    answered(pass) {
      allowance.accepted(pass.askedAt, clock.monotonic());
      if (!pass.probe) return;
      probing = false;
      if (trouble) open(trouble);
    },
    failed(pass, error) {
      const now = clock.monotonic();
      if (pass.probe && trouble) {
        probing = false;
        trouble.error = error ?? trouble.error;
        allowance.refused(pass.askedAt, now);
        wait(trouble, false);
      } else if (error && pass.closings === closings) {
        allowance.refused(pass.askedAt, now);
        close(error);
      } else if (error) {
        // It left before the door closed: the same trouble once more, not another. Only what it asks for counts.
        if (error.failure !== 'rate' && trouble) trouble.error = error;
        if (error.retryAfterMs !== undefined) hold(error, 0);
      }
    },
    state() {
      const shutMs = shutUntil - clock.monotonic();
      const until = clock.now() + Math.max(0, Math.round(shutMs));
      if (trouble && trouble.error.failure !== 'rate') {
        const { since, error } = trouble;
        return { kind: 'down', since, probeAt: until, failure: error.failure, reason: error.message };
      }
      if (trouble || shutMs > 0) {
        return { kind: 'held', until, reason: trouble?.error.message ?? 'the notebook asked for a pause' };
      }
      const kind = allowance.recovering() ? 'slow start' : 'open';
      return { kind, perSecond: allowance.perSecond() };
    },
  };
}
