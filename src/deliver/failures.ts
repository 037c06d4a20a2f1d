import { backoffMs, type Clock } from '../clock.js';
import { explain, type FailureClass, LabfeedError, NotebookError } from '../errors.js';
import type { Log } from '../log.js';
import type { RunChange } from '../outbox.js';
import { type Filing, HaltedError, type Notebook, NotYetError, StoppedError } from './context.js';

/** The request was not sent while its reason was still valid. */
export class ExpiredError extends LabfeedError {
  override readonly name = 'ExpiredError';
}

/** Whether the server certainly did not carry out the request. */
export const certainlyNotDone = (error: unknown): boolean =>
  error instanceof StoppedError ||
  error instanceof HaltedError ||
  error instanceof ExpiredError ||
  (error instanceof NotebookError && !error.outcomeUnknown);

/** Whether the server may have refused the content of a request, and certainly did not carry it out. */
export const isContentRefused = (error: unknown): boolean =>
  error instanceof NotebookError &&
  error.failure !== 'auth' &&
  REFUSALS.has(error.status ?? 0) &&
  !error.outcomeUnknown;

const REFUSALS: ReadonlySet<number> = new Set([400, 403, 405, 413, 422]);

/** eLabFTW creates the experiment before it refuses a tag. */
export const isRefusedTag = (error: unknown, tags: readonly string[] | undefined): error is NotebookError =>
  isContentRefused(error) && tags !== undefined && tags.length > 0 && (error as NotebookError).status === 400;

/** Sends an idempotent change. If its outcome is unknown, it may still take effect later, which is noted. */
export async function sendEdit<T>({ run, unknown }: Filing, send: () => Promise<T>): Promise<T> {
  try {
    return await send();
  } catch (error) {
    if (!certainlyNotDone(error)) unknown.edits.note(run.id);
    throw error;
  }
}

/** Whether the error says that an entry has this status; not that the key or the server has a problem. */
export const isEntryStatus = (error: unknown, status: 403 | 404): error is NotebookError =>
  error instanceof NotebookError && error.failure === 'conflict' && error.status === status;

/**
 * A 404 concerns the run, unless the keys cannot be listed either: then a proxy has lost its backend.
 * Resolves with the error that tells the cause.
 */
export async function attributeNotFound(error: unknown, { listKeys }: Notebook): Promise<unknown> {
  if (!isEntryStatus(error, 404)) return error;
  return listKeys().then(
    () => error,
    (cause: unknown) => cause,
  );
}

/**
 * Ensures that a 403 concerns the entry and not the key: if the keys cannot be listed either, that error is thrown
 * instead. The request is then repeated, since the check may have waited until a refused key was replaced. This is
 * safe: a request answered with 403 was certainly not carried out.
 */
export async function confirmForbidden<T>({ listKeys }: Notebook, request: () => Promise<T>): Promise<T> {
  try {
    return await request();
  } catch (error) {
    if (!isEntryStatus(error, 403)) throw error;
    await listKeys();
    return request();
  }
}

/** All operations, except for `readExperiment`: windows of ids contain many private entries. */
export function confirmingForbidden<N extends Notebook>(notebook: N): N {
  const confirmed =
    <A extends unknown[], R>(request: (...args: A) => Promise<R>) =>
    (...args: A): Promise<R> =>
      confirmForbidden(notebook, () => request(...args));
  const operations = Object.entries(notebook).map(([name, part]) => [
    name,
    typeof part === 'function' && !UNCONFIRMED.has(name) ? confirmed(part) : part,
  ]);
  return Object.fromEntries(operations) as N;
}

/** Attempts of one read, and the waits in between. While the server is down, they wait in the limiter. */
const READ_ATTEMPTS = 5;
const READ_BACKOFF = { firstMs: 250, maxMs: 4000 };

interface ReadOptions {
  readonly clock: Clock;
  readonly random: () => number;
  readonly stopping: AbortSignal;
}

/**
 * Repeats a read that fails because of the server, so that a reconciliation continues where it was instead of starting
 * again. The last failure is passed on.
 */
export function repeatReads<N extends Notebook>(notebook: N, { clock, random, stopping }: ReadOptions): N {
  const repeated =
    <A extends unknown[], R>(read: (...args: A) => Promise<R>) =>
    async (...args: A): Promise<R> => {
      for (let attempt = 0; ; attempt += 1) {
        try {
          return await read(...args);
        } catch (error) {
          const isTemporary = error instanceof NotebookError && TEMPORARY.has(error.failure);
          if (!isTemporary || attempt + 1 === READ_ATTEMPTS || stopping.aborted) throw error;
          await clock.sleep(backoffMs(attempt, { ...READ_BACKOFF, random }), stopping);
        }
      }
    };
  const operations = Object.entries(notebook).map(([name, part]) => [
    name,
    typeof part === 'function' && /^(read|list|search)/.test(name) ? repeated(part) : part,
  ]);
  return Object.fromEntries(operations) as N;
}

const TEMPORARY: ReadonlySet<FailureClass> = new Set(['server', 'rate']);
const UNCONFIRMED: ReadonlySet<string> = new Set(['listKeys', 'readExperiment'] satisfies (keyof Notebook)[]);

/**
 * What follows from a failure, by its class (assigned in `notebook/errors.ts`):
 *
 * | class      | example                      | this run    | other runs           | log           |
 * |------------|------------------------------|-------------|----------------------|---------------|
 * | `file`     | does not match its mapping   | quarantined | continue             | warning       |
 * | `request`  | 400, 422, 413                | quarantined | continue             | warning       |
 * | `conflict` | edited, locked, deleted, 403 | held        | continue             | warning       |
 * | `auth`     | 401, read-only key           | retried     | wait                 | warning, once |
 * | `rate`     | 429                          | retried     | slow down            | warning, once |
 * | `server`   | no response, 5xx, 405, HTML  | retried     | continue, or wait if the server is down (`breaker.ts`) or accepts no writes (`writes.ts`) | info |
 *
 * A write of class `server` that keeps failing while others succeed concerns its run, which is then quarantined.
 */
const PARKED_AS: Readonly<Record<FailureClass, 'quarantined' | 'held' | undefined>> = {
  file: 'quarantined',
  request: 'quarantined',
  conflict: 'held',
  auth: undefined,
  rate: undefined,
  server: undefined,
};

/** How long a run waits after a failed write or a refusal: breaker, limiter and suspension cover the rest. */
const MAX_WAIT_MS = 15_000;
/** After a read that failed several times in a row. */
const MAX_READ_WAIT_MS = 60_000;

/** Failures since the run last made a step. */
interface Failures {
  readonly attempts: number;
  /** The notebook keeps failing on this run, while it accepts the same write of others. */
  readonly isToBlame?: boolean;
}

/** The change to record after the delivery of a run failed. */
export function afterFailure(
  error: unknown,
  { attempts, isToBlame = false }: Failures,
  now: number,
  random: () => number = Math.random,
): RunChange {
  const reason = explain(error);
  if (error instanceof NotYetError) return postponed(error.untilMs, 'server', reason);
  if (!(error instanceof NotebookError)) return postponed(now + backoffMs(attempts, { random }), 'server', reason);
  const { failure, retryAfterMs = 0 } = error;
  const as = PARKED_AS[failure];
  if (as !== undefined) return { kind: 'parked', as, failure, reason };
  if (isToBlame)
    return { kind: 'parked', as: 'quarantined', failure, reason: `${BLAMED}: ${error.message}${BLAMED_HINT}` };
  const maxMs = failure === 'server' && !error.outcomeUnknown ? MAX_READ_WAIT_MS : MAX_WAIT_MS;
  const retryAt = now + backoffMs(attempts, { maxMs, random });
  return postponed(Math.max(now + retryAfterMs, retryAt), failure, reason);
}

const BLAMED = 'the notebook keeps failing on this run, but accepts the same request for other runs';
const BLAMED_HINT =
  '\n  → check whether the notebook or a firewall in front of it rejects the content or the size of this run; then run `labfeed retry`';

const postponed = (dueAt: number, failure: FailureClass, reason: string): RunChange => ({
  kind: 'postponed',
  // The monotonic clock counts fractions, the outbox whole milliseconds.
  dueAt: Math.ceil(dueAt),
  failure,
  reason,
});

/** Every delivery fails with the halt until labfeed is restarted, so only the first one is logged. */
export function logHaltOnce(log: Log): (error: HaltedError) => void {
  let isLogged = false;
  return (error) => {
    if (!isLogged) log.error({ reason: explain(error) }, 'delivery is halted until `labfeed recover` has run');
    isLogged = true;
  };
}

/** Whether the notebook answers a harmless request now. */
export const answers = ({ listKeys }: Pick<Notebook, 'listKeys'>): Promise<boolean> =>
  listKeys().then(
    () => true,
    () => false,
  );
