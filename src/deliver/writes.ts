import { backoffMs, type Clock } from '../clock.js';
import { NotebookError } from '../errors.js';
import type { LimiterState } from '../live.js';
import type { Log } from '../log.js';
import type { Among } from '../outbox.js';
import type { Notebook } from './context.js';

const WRITES = [
  'createExperiment',
  'patchExperiment',
  'patchExtras',
  'linkItem',
  'addTag',
  'removeTag',
  'postComment',
  'patchComment',
  'deleteComment',
  'uploadFile',
] as const satisfies readonly (keyof Notebook)[];

/** A kind of write request. */
type Write = (typeof WRITES)[number];

interface WritesOptions {
  readonly clock: Clock;
  readonly log: Log;
  readonly random: () => number;
  /** Reads the key again, and tells whether it has changed. */
  readonly isKeyReplaced?: (() => boolean) | undefined;
  /** Called when a run is set aside because of a stalled write. */
  readonly onStalled?: () => void;
}

/** Some of the runs that may start now. */
export interface Lane {
  readonly limit: number;
  readonly among?: Among;
  /** Not before this time of the monotonic clock. */
  readonly at?: number;
  /** Whether runs may start before they are due. */
  readonly isUrgent?: boolean;
}

/** The runs whose writes of one kind failed in a row, since one was last accepted. The least recently tried is first. */
interface Streak {
  readonly runs: Set<number>;
  readonly since: number;
  error: NotebookError;
}

/** Trials while writes are suspended: of runs that failed already, and of others. Times of the monotonic clock. */
interface Trials {
  attempts: number;
  nextAt: number;
  freshAttempts: number;
  freshAt: number;
  isUrgent: boolean;
}

/** Writes of a kind are suspended after this many runs in a row; a refused key suspends them at once. */
const MAX_FAILED = 3;
const MAX_TRIAL_MS = 10_000;
/** Refusals cost nothing and change nothing, but they last. */
const MAX_REFUSED_TRIAL_MS = 30_000;
/**
 * While every change is refused, each run that is tried for the first time leaves a blank experiment. The first one is
 * tried soon: perhaps a firewall refuses only the content of the others.
 */
const FIRST_REFUSED_MS = 15_000;
const FRESH_REFUSED_MS = 600_000;
/** A creation that is refused leaves nothing behind. */
const FRESH_CREATION_MS = 60_000;
/** How often to check whether a refused key was replaced. */
const KEY_CHECK_MS = 1000;
/** A write without an answer for this long may concern only its run. A creation on a busy server takes less. */
export const STALLED_MS = 5000;
/** With more failed runs than this, others are tried more rarely: each may leave an unknown outcome. */
const MANY_FAILED = 8;

/**
 * Which writes the notebook accepts. A write that fails for several runs in a row, while reads may work, is suspended:
 * single runs are tried until one is accepted. A run whose write fails while the same write is accepted for others is
 * itself to blame. In memory only: a restart costs a few more attempts.
 */
export class Writes {
  readonly #options: WritesOptions;
  readonly #streaks = new Map<Write, Streak>();
  readonly #blame: Blame;
  /** When the write of a run was begun that has no answer yet. */
  readonly #pending = new Map<number, number>();
  readonly #stalled = new Set<number>();
  #trials: Trials | undefined;
  /** Whether a change was accepted since the start. Until then, few experiments are created at a time. */
  #isProven = false;
  #startedLast: number | undefined;

  constructor(options: WritesOptions) {
    this.#options = options;
    this.#blame = new Blame(options.clock);
  }

  /** The same notebook; the outcomes of this run's writes are noted. */
  observe(run: number, notebook: Notebook): Notebook {
    const observed =
      <A extends unknown[], R>(write: Write, request: (...args: A) => Promise<R>) =>
      async (...args: A): Promise<R> => {
        this.#pending.set(run, this.#options.clock.monotonic());
        try {
          const answer = await request(...args);
          this.accepted(run, write);
          return answer;
        } catch (error) {
          if (error instanceof NotebookError) this.failed(run, write, error);
          throw error;
        } finally {
          this.#pending.delete(run);
          this.#stalled.delete(run);
        }
      };
    return {
      ...notebook,
      createExperiment: observed('createExperiment', notebook.createExperiment),
      createFilledExperiment: this.#observeFilled(run, notebook.createFilledExperiment),
      patchExperiment: observed('patchExperiment', notebook.patchExperiment),
      patchExtras: observed('patchExtras', notebook.patchExtras),
      linkItem: observed('linkItem', notebook.linkItem),
      addTag: observed('addTag', notebook.addTag),
      removeTag: observed('removeTag', notebook.removeTag),
      postComment: observed('postComment', notebook.postComment),
      patchComment: observed('patchComment', notebook.patchComment),
      deleteComment: observed('deleteComment', notebook.deleteComment),
    };
  }

  /** Its content may be to blame for a refusal: only that of a creation without content counts. */
  #observeFilled(run: number, request: Notebook['createFilledExperiment']): Notebook['createFilledExperiment'] {
    return async (content) => {
      this.#pending.set(run, this.#options.clock.monotonic());
      try {
        const experiment = await request(content);
        this.accepted(run, 'createExperiment');
        return experiment;
      } catch (error) {
        if (error instanceof NotebookError && (error.failure === 'auth' || error.outcomeUnknown))
          this.failed(run, 'createExperiment', error);
        throw error;
      } finally {
        this.#pending.delete(run);
        this.#stalled.delete(run);
      }
    };
  }

  accepted(run: number, write: Write): void {
    if (write === 'patchExperiment') this.#isProven = true;
    this.#blame.accepted(run, write);
    if (this.#streaks.size === 0) return;
    this.#streaks.delete(write);
    this.#leave(run);
  }

  failed(run: number, write: Write, error: NotebookError): void {
    const isAuth = error.failure === 'auth';
    if (!isAuth && !isWriteFailure(error)) return;
    if (!isAuth) this.#blame.failed(run, write);
    const since = this.#options.clock.now();
    const streak = this.#streaks.get(write) ?? { runs: new Set(), since, error };
    this.#streaks.set(write, streak);
    streak.error = error;
    moveToEnd(streak.runs, run);
    if (isSuspended(streak)) this.#suspend(write, streak);
    // The key is no longer refused, but the server fails.
    else this.#resume();
  }

  /** The run is done or parked. */
  forget(run: number): void {
    this.#blame.forget(run);
    this.#leave(run);
  }

  /** Whether this run's writes keep failing while those of others are accepted. */
  isToBlame(run: number): boolean {
    return this.#blame.isEnough(run);
  }

  /** Whether this run's write has had no answer for so long that others should not wait for it. */
  isSlow(run: number): boolean {
    const begunAt = this.#pending.get(run) ?? Number.POSITIVE_INFINITY;
    return !this.#stalled.has(run) && this.#options.clock.monotonic() - begunAt >= STALLED_MS;
  }

  /** Its connection no longer counts. */
  setAside(run: number): void {
    this.#stalled.add(run);
    this.#options.onStalled?.();
  }

  /** How many writes stall although the server answers. */
  get stalled(): number {
    return this.#stalled.size;
  }

  /** Tries again at once: the server is available again, or the key was replaced. */
  retryNow(): void {
    if (!this.#trials) return;
    Object.assign(this.#trials, { attempts: 0, nextAt: 0, isUrgent: true });
  }

  /** Which runs may start now, in the order of preference. */
  lanes(active: ReadonlySet<number>, concurrency: number): Lane[] {
    const trials = this.#trials;
    if (trials) return this.#trialLanes(trials, active);
    const limit = Math.min(concurrency - active.size, this.#unprovenLimit(active));
    const failing = this.#blame.runs;
    if (failing.size === 0) return [{ limit }];
    // Their requests may take until the time-out, so they never occupy all workers.
    const most = Math.max(1, concurrency - 1) - count(active, failing);
    const again: Lane = { limit: Math.min(concurrency - active.size, most), among: { only: [...failing] } };
    const fresh: Lane = { limit, among: { except: failing } };
    const isTurnOfFresh = this.#startedLast !== undefined && failing.has(this.#startedLast);
    return concurrency === 1 && isTurnOfFresh ? [fresh, again] : [again, fresh];
  }

  started(run: number): void {
    this.#startedLast = run;
    const trials = this.#trials;
    if (!trials) return;
    const { clock, random } = this.#options;
    const now = clock.monotonic();
    const suspended = this.#suspended();
    const isRefused = suspended.every(({ error }) => !error.outcomeUnknown);
    const maxMs = isRefused ? MAX_REFUSED_TRIAL_MS : MAX_TRIAL_MS;
    if (suspended.some(({ runs }) => runs.has(run))) {
      for (const { runs } of suspended) if (runs.has(run)) moveToEnd(runs, run);
      trials.nextAt = now + backoffMs(trials.attempts, { maxMs, random });
      trials.attempts += 1;
      trials.isUrgent = false;
    } else {
      const factor = Math.max(1, (2 * triedRuns(suspended).size) / MANY_FAILED - 1);
      const leavesBlank = suspended.some((streak) => streak !== this.#streaks.get('createExperiment'));
      const refusedMs = leavesBlank ? FRESH_REFUSED_MS : FRESH_CREATION_MS;
      const waitMs = isRefused ? refusedMs : factor * backoffMs(trials.freshAttempts, { maxMs, random });
      trials.freshAt = now + waitMs;
      trials.freshAttempts += 1;
    }
  }

  /** Undefined unless writes are suspended. */
  state(): LimiterState | undefined {
    const [first] = this.#suspended();
    if (!first || !this.#trials) return undefined;
    const { clock } = this.#options;
    const { since, error } = first;
    const waitMs = Math.min(this.#trials.nextAt, this.#trials.freshAt) - clock.monotonic();
    const probeAt = clock.now() + Math.max(0, Math.round(waitMs));
    return { kind: 'down', since, probeAt, failure: error.failure, reason: error.message };
  }

  #suspended(): Streak[] {
    return [...this.#streaks.values()].filter(isSuspended);
  }

  #suspend(write: Write, { runs, error }: Streak): void {
    const now = this.#options.clock.monotonic();
    if (this.#trials) {
      // Refusals have become failures, which may concern single runs.
      if (error.outcomeUnknown) this.#trials.freshAt = Math.min(this.#trials.freshAt, now + MAX_TRIAL_MS);
      return;
    }
    const freshAt = error.outcomeUnknown ? now : now + FIRST_REFUSED_MS;
    const nextAt = now + backoffMs(0, { random: this.#options.random });
    this.#trials = { attempts: 1, nextAt, freshAttempts: 0, freshAt, isUrgent: false };
    const { failure, status, message: reason } = error;
    this.#options.log.warn({ write, runs: runs.size, failure, status, reason }, SUSPENDED);
  }

  /** The run no longer needs what failed. */
  #leave(run: number): void {
    for (const [write, { runs }] of this.#streaks) if (runs.delete(run) && runs.size === 0) this.#streaks.delete(write);
    this.#resume();
  }

  #resume(): void {
    if (!this.#trials || this.#suspended().length > 0) return;
    this.#trials = undefined;
    this.#options.log.info('the notebook accepts writes again');
  }

  #trialLanes(trials: Trials, active: ReadonlySet<number>): Lane[] {
    const { clock, isKeyReplaced } = this.#options;
    const suspended = this.#suspended();
    const tried = triedRuns(suspended);
    const retried = count(active, tried);
    const isKeyRefused = suspended.some(({ error }) => error.failure === 'auth');
    if (isKeyRefused && isKeyReplaced?.()) this.retryNow();
    const { nextAt, freshAt, isUrgent } = trials;
    // The queue asks again at the latest then, so that a replaced key is noticed.
    const at = isKeyRefused ? Math.min(nextAt, clock.monotonic() + KEY_CHECK_MS) : nextAt;
    return [
      { limit: 1 - retried, among: { only: [...tried] }, at, isUrgent },
      { limit: 1 - (active.size - retried), among: { except: tried }, at: freshAt },
    ];
  }

  /** Keeps the number of blank experiments low if every change is refused. */
  #unprovenLimit(active: ReadonlySet<number>): number {
    const refused = this.#streaks.get('patchExperiment');
    const isDoubtful = refused !== undefined && !refused.error.outcomeUnknown;
    if (this.#isProven && !isDoubtful) return Number.POSITIVE_INFINITY;
    const failed = isDoubtful ? refused.runs : new Set<number>();
    return Math.max(0, MAX_FAILED - failed.size - (active.size - count(active, failed)));
  }
}

const SUSPENDED = 'the notebook accepts no writes of this kind, trying single runs until it does';

/** Not a missing connection, which concerns reads too, and not an entry that is being edited. */
export const isWriteFailure = ({ failure, outcomeUnknown, status, scope }: NotebookError): boolean =>
  failure === 'server' && (outcomeUnknown || (status !== undefined && scope === 'server'));

const isSuspended = ({ runs, error }: Streak): boolean => runs.size >= MAX_FAILED || error.failure === 'auth';

const triedRuns = (streaks: readonly Streak[]): Set<number> => new Set(streaks.flatMap(({ runs }) => [...runs]));

const count = (active: ReadonlySet<number>, runs: ReadonlySet<number>): number =>
  [...active].filter((run) => runs.has(run)).length;

function moveToEnd(runs: Set<number>, run: number): void {
  runs.delete(run);
  runs.add(run);
}

/** A run is to blame after this many failures that count, if the first was this long ago. */
const ENOUGH = [
  { failures: 4, afterMs: 45_000 },
  { failures: 2, afterMs: 90_000 },
] as const;

interface Failures {
  readonly write: Write;
  /** On the monotonic clock. */
  readonly firstAt: number;
  /** How many counted. */
  counted: number;
  last: number;
}

/** The last acceptance of a write, and the last one by another run than that. Numbers count events. */
interface Acceptance {
  readonly run: number;
  readonly event: number;
  readonly otherEvent: number;
}

/**
 * Counts the failed writes of each run since it last made progress. A failure counts only if the same write was accepted
 * for another run before this run failed again: a spell of errors for all, of any length, counts against nobody.
 */
export class Blame {
  readonly #clock: Clock;
  readonly #failures = new Map<number, Failures>();
  readonly #runs = new Set<number>();
  readonly #accepted = new Map<Write, Acceptance>();
  #event = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Runs that failed since they last made progress. */
  get runs(): ReadonlySet<number> {
    return this.#runs;
  }

  accepted(run: number, write: Write): void {
    this.#event += 1;
    const before = this.#accepted.get(write);
    const otherEvent = before === undefined || before.run === run ? (before?.otherEvent ?? 0) : before.event;
    this.#accepted.set(write, { run, event: this.#event, otherEvent });
    // Tags are sent again at each attempt, so they are no progress.
    if (write !== 'addTag' && write !== 'removeTag') this.forget(run);
  }

  failed(run: number, write: Write): void {
    this.#event += 1;
    this.#runs.add(run);
    const known = this.#failures.get(run);
    if (known?.write !== write) {
      this.#failures.set(run, { write, firstAt: this.#clock.monotonic(), counted: 0, last: this.#event });
      return;
    }
    if (this.#acceptedForOthers(run, write) > known.last) known.counted += 1;
    known.last = this.#event;
  }

  forget(run: number): void {
    this.#failures.delete(run);
    this.#runs.delete(run);
  }

  isEnough(run: number): boolean {
    const known = this.#failures.get(run);
    if (!known) return false;
    const elapsedMs = this.#clock.monotonic() - known.firstAt;
    return ENOUGH.some(({ failures, afterMs }) => known.counted >= failures && elapsedMs >= afterMs);
  }

  #acceptedForOthers(run: number, write: Write): number {
    const accepted = this.#accepted.get(write);
    if (!accepted) return 0;
    return accepted.run === run ? accepted.otherEvent : accepted.event;
  }
}
