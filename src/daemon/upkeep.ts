import { type Clock, every, type Loop } from '../clock.js';
import { explain } from '../errors.js';
import type { Outcome } from '../journal/requests.js';
import type { Log } from '../log.js';
import type { Outbox } from '../outbox.js';

/** What is done with the outbox again and again, beside delivery. */

interface DecisionsDeps {
  /** Decides about the requests that wait. */
  apply(): Promise<Outcome[]>;
  readonly clock: Clock;
  readonly log: Log;
  wakeDelivery(): void;
  /** Scans the folder of an instrument for files to read again, or for its backlog. */
  rescan(instrument: string, asBacklog: boolean): void;
}

/** How often to poll for decisions: one lookup in an index that is usually empty. */
const DECISIONS_MS = 500;
const DECISIONS_RETRY_MS = 5000;

/** Applies the decisions that people make with commands or on the page. */
export function applyDecisions({ apply, clock, log, wakeDelivery, rescan }: DecisionsDeps): Loop {
  return every(DECISIONS_MS, clock, async () => {
    try {
      const decisions = await apply();
      for (const decision of decisions) logDecision(decision, log);
      if (decisions.some(({ done }) => done)) wakeDelivery();
      for (const asBacklog of [false, true]) {
        const rescans = decisions.filter(({ request }) => (request?.kind === 'backfill') === asBacklog);
        for (const instrument of new Set(rescans.map(({ rescan }) => rescan)))
          if (instrument !== undefined) rescan(instrument, asBacklog);
      }
      return decisions.length > 0 ? 0 : DECISIONS_MS;
    } catch (error) {
      log.error({ reason: explain(error) }, 'cannot apply decisions, retrying');
      return DECISIONS_RETRY_MS;
    }
  });
}

function logDecision({ done, text, request }: Outcome, log: Log): void {
  if (done) log.info({ ...request, text }, 'decision applied');
  else log.warn({ ...request, reason: text }, 'decision refused');
}

/** Longer than any wait between two attempts; `Retry-After` is limited to an hour. */
const MAX_POSTPONED_MS = 2 * 3_600_000;
const CLOCK_CHECK_MS = 60_000;

/** A clock that was ahead and is right now would postpone runs until the time that it showed. */
export function correctDueTimes(
  outbox: Pick<Outbox, 'pullForward'>,
  clock: Clock,
  log: Log,
  wakeDelivery: () => void,
): Loop {
  return every(CLOCK_CHECK_MS, clock, async () => {
    try {
      const runs = await outbox.pullForward(clock.now() + MAX_POSTPONED_MS);
      if (runs === 0) return undefined;
      log.warn({ runs }, 'runs were postponed by a clock that was ahead; they are due now');
      wakeDelivery();
    } catch (error) {
      log.error({ reason: explain(error) }, 'cannot correct the times of postponed runs, retrying');
    }
    return undefined;
  });
}

const DAY_MS = 86_400_000;

/** The wait between two batches, so that intake and delivery are not delayed. */
const PRUNE_PAUSE_MS = 50;

/** Removes history of finished runs that is older than `keepMs` from the journal, now and then once a day. */
export function pruneDaily(outbox: Pick<Outbox, 'prune' | 'provenTime'>, keepMs: number, clock: Clock, log: Log): Loop {
  return every(DAY_MS, clock, async (signal) => {
    let removed = 0;
    try {
      // By two clocks: this one may be years ahead.
      const before = Math.min(clock.now(), (await outbox.provenTime()) ?? 0) - keepMs;
      for (let from: number | undefined = 0; from !== undefined && !signal.aborted; ) {
        const { runs, next } = await outbox.prune(before, from);
        removed += runs;
        from = next;
        await clock.sleep(PRUNE_PAUSE_MS, signal);
      }
      if (removed > 0) log.info({ runs: removed }, 'removed the history of old runs');
    } catch (error) {
      log.error({ reason: explain(error) }, 'cannot remove old history, retrying in a day');
    }
  });
}
