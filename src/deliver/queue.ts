import PQueue from 'p-queue';
import { type Clock, every, type Loop, retry } from '../clock.js';
import { explain } from '../errors.js';
import type { Log } from '../log.js';
import type { Deliveries } from '../outbox.js';
import { type Lane, STALLED_MS, type Writes } from './writes.js';

export interface QueueDeps {
  /** How many runs may be on their way to a filled experiment at the same time. */
  readonly concurrency: number;
  readonly clock: Clock;
  readonly log: Log;
  readonly outbox: Pick<Deliveries, 'claim' | 'release' | 'nextDueAt'>;
  /** Which runs may start now. By default, any. */
  readonly writes?: Pick<Writes, 'lanes' | 'started' | 'isSlow' | 'setAside'>;
  /** Whether the server answers a harmless request now. */
  readonly isAnswering?: (() => Promise<boolean>) | undefined;
  /** Works on one run. Does not reject. The signal is aborted when the queue stops. */
  work(run: number, signal: AbortSignal, filled: () => void): Promise<void>;
}

/** The wait if the journal cannot be read. */
const JOURNAL_RETRY_MS = 5000;

/** With nothing due or no worker free, the queue waits to be woken; this limits the wait. */
const IDLE_MS = 60_000;

export type Queue = ReturnType<typeof createQueue>;

/**
 * Takes due runs from the journal as workers become free. Only the runs being worked on are in memory, so that a
 * backlog of any length waits on disk.
 *
 * A run whose experiment is filled and that lacks only comments makes room for the next one. So while some runs wait for
 * the disk, others use the connections, and there are never more blank experiments than `concurrency`. A run whose write
 * gets no answer, although the server answers, makes room too: the server may fail on this run alone.
 */
export function createQueue({ concurrency, clock, log, outbox, writes, isAnswering, work }: QueueDeps) {
  const workers = new PQueue({ concurrency: 2 * concurrency });
  const active = new Set<number>();
  /** Runs that have made room. */
  const aside = new Set<number>();
  const stopping = new AbortController();
  let loop: Loop | undefined;
  let isProbing = false;

  async function run(id: number): Promise<void> {
    await work(id, stopping.signal, () => makeRoom(id));
    // Also while this queue stops: after a reload, another queue works with the same outbox.
    const failed = (error: unknown) =>
      log.error({ run: id, reason: explain(error) }, 'cannot release the run, retrying');
    await retry(() => outbox.release(id), { clock, signal: stopping.signal, failed });
    if (!aside.delete(id)) active.delete(id);
    loop?.wake();
  }

  function makeRoom(id: number): void {
    if (aside.size === concurrency || !active.delete(id)) return;
    aside.add(id);
    loop?.wake();
  }

  async function passSlow(): Promise<void> {
    const slow = () => [...active, ...aside].filter((id) => writes?.isSlow(id));
    if (isProbing || slow().length === 0) return;
    isProbing = true;
    const isServerWorking = await isAnswering?.();
    isProbing = false;
    if (!isServerWorking) return;
    for (const id of slow()) {
      makeRoom(id);
      if (aside.has(id)) writes?.setAside(id);
    }
  }

  /** Resolves with the time until something can be due. */
  async function startDue(): Promise<number> {
    const lanes = writes?.lanes(active, concurrency) ?? [{ limit: concurrency - active.size }];
    let waitMs = IDLE_MS;
    for (const lane of lanes) waitMs = Math.min(waitMs, await startLane(lane));
    if (active.size + aside.size === 0) return waitMs;
    void passSlow();
    return Math.min(waitMs, STALLED_MS);
  }

  async function startLane({ limit, among, at = 0, isUrgent = false }: Lane): Promise<number> {
    const free = Math.min(limit, concurrency - active.size);
    if (free <= 0) return IDLE_MS;
    const waitMs = Math.ceil(at - clock.monotonic());
    if (waitMs > 0) return waitMs;
    const ids = await outbox.claim(isUrgent ? Number.MAX_SAFE_INTEGER : clock.now(), free, among);
    for (const id of ids) {
      active.add(id);
      writes?.started(id);
      void workers.add(() => run(id));
    }
    if (ids.length === free) return IDLE_MS;
    const dueAt = await outbox.nextDueAt(among);
    return dueAt === undefined ? IDLE_MS : Math.max(0, dueAt - clock.now());
  }

  return {
    start(): void {
      loop = every(IDLE_MS, clock, async (signal) => {
        try {
          return await startDue();
        } catch (error) {
          log.error({ reason: explain(error) }, 'cannot read the journal, retrying');
          await clock.sleep(JOURNAL_RETRY_MS, signal);
          return 0;
        }
      });
    },
    /** Checks for due runs now, unless all workers are busy. */
    wake(): void {
      if (active.size < concurrency) loop?.wake();
    },
    /** Starts no more runs, and resolves when the current ones have ended. */
    async stop(): Promise<void> {
      stopping.abort();
      await loop?.stop();
      await workers.onIdle();
    },
  };
}
