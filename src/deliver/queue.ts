import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { Log } from '../log.js';
import type { OpenRun, RunChange } from '../outbox.js';
import { HaltedError } from './context.js';
import { createRefusals, treat } from './failures.js';

export interface QueueDeps {
  readonly concurrency: number;
  /** Chance, for the waits. */
  readonly random: () => number;
  readonly clock: Clock;
  readonly log: Log;
  due(now: number, limit: number, except: ReadonlySet<number>): Promise<number[]>;
  nextDueAt(except: ReadonlySet<number>): Promise<number | undefined>;
  open(run: number): Promise<OpenRun>;
  /** Resolves with the experiment's id. */
  deliver(run: OpenRun): Promise<number>;
  record(run: number, change: RunChange): Promise<void>;
  filed?(run: OpenRun, experiment: number): void;
  /** Told when a run is quarantined, held or postponed. */
  setBack?(run: OpenRun, change: RunChange): void;
}

export interface Queue {
  start(): void;
  /** There may be something new to deliver. */
  ring(): void;
  /** Takes nothing more, and resolves when the steps under way have ended. */
  stop(): Promise<void>;
}

/** How long the journal is left alone after it could not be read or written. */
const JOURNAL_TROUBLE_MS = 5000;

/** With nothing due, or nobody free, only the bell matters; this is for the one that was missed. */
const IDLE_MS = 60_000;

/** How often it is looked whether a person has. */
const HALTED_MS = 30_000;

/**
 * Takes due runs from the journal as workers become free. Only as many as are worked on are in memory,
 * so a backlog of any length waits on disk.
 */
export function createQueue(deps: QueueDeps): Queue {
  const { clock, log, concurrency } = deps;
  const workers = new PQueue({ concurrency });
  const underWay = new Set<number>();
  const refusals = createRefusals();
  const stopping = new AbortController();
  let bell = new AbortController();
  let feeding: Promise<void> = Promise.resolve();

  async function work(id: number): Promise<void> {
    let run: OpenRun | undefined;
    try {
      run = await deps.open(id);
      const experiment = await deps.deliver(run);
      log.info({ run: id, instrument: run.instrument, experiment }, 'run filed');
      refusals.forget(id);
      deps.filed?.(run, experiment);
    } catch (error) {
      await setBack(id, run, error);
    } finally {
      underWay.delete(id);
      ring();
    }
  }

  async function setBack(id: number, run: OpenRun | undefined, error: unknown): Promise<void> {
    if (error instanceof HaltedError) {
      log.error(
        { reason: explain(error) },
        'nothing is sent to the notebook until a person has looked at it',
      );
      await clock.sleep(HALTED_MS, stopping.signal);
      return;
    }
    const attempts = run?.attempts ?? 0;
    const tries = { attempts, refusals: refusals.before(id, attempts) };
    const change = treat(error, tries, clock.now(), deps.random);
    if (change === undefined) return;
    refusals.note(id, error, change);
    const level = change.kind === 'parked' ? 'warn' : 'info';
    log[level](
      { run: id, instrument: run?.instrument, ...change },
      change.kind === 'parked' ? 'run set aside' : 'run postponed',
    );
    try {
      await deps.record(id, change);
      if (run) deps.setBack?.(run, change);
    } catch (cause) {
      // The run stays due as it was; only the pace is at stake, and that must not become a hot loop.
      log.error(
        { run: id, reason: cause instanceof Error ? cause.message : cause },
        'journal not writable, waiting',
      );
      await clock.sleep(JOURNAL_TROUBLE_MS, stopping.signal);
    }
  }

  async function feed(): Promise<void> {
    while (!stopping.signal.aborted) {
      bell = new AbortController();
      try {
        await feedOnce(concurrency - underWay.size);
      } catch (error) {
        log.error({ reason: explain(error) }, 'journal not readable, waiting');
        await clock.sleep(JOURNAL_TROUBLE_MS, stopping.signal);
      }
    }
  }

  async function feedOnce(free: number): Promise<void> {
    if (free <= 0) return rung(IDLE_MS);
    const ids = await deps.due(clock.now(), free, underWay);
    for (const id of ids) {
      underWay.add(id);
      void workers.add(() => work(id));
    }
    if (ids.length < free) await rest();
  }

  /** Until somebody rings, or the next postponed run is due. */
  async function rest(): Promise<void> {
    const dueAt = await deps.nextDueAt(underWay);
    await rung(dueAt === undefined ? IDLE_MS : Math.max(0, dueAt - clock.now()));
  }

  async function rung(withinMs: number): Promise<void> {
    await clock.sleep(withinMs, bell.signal);
  }

  function ring(): void {
    bell.abort();
  }

  return {
    start() {
      feeding = feed();
    },
    ring,
    async stop() {
      stopping.abort();
      ring();
      await feeding;
      await workers.onIdle();
    },
  };
}
