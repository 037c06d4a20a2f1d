import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { Decision, Inbox } from '../journal/inbox.js';
import type { Log } from '../log.js';

export interface DecisionsDeps {
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly log: Log;
  /** There may be something to deliver. */
  ring(): void;
  /** There is something to read anew in this instrument's folder, or old files are to be taken from there. */
  rescan(instrument: string, isForOld: boolean): void;
}

export interface Decisions {
  start(): void;
  /** Resolves when the journal is no longer used. */
  stop(): Promise<void>;
}

/** How often the inbox is looked into: one lookup in an index that is mostly empty. */
const LOOK_MS = 500;
const TROUBLE_MS = 5000;

/** What people decide through commands, carried out by the daemon that holds the journal. */
export function createDecisions({ inbox, clock, log, ring, rescan }: DecisionsDeps): Decisions {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function look(): Promise<number> {
    try {
      const decisions = await inbox.apply();
      for (const decision of decisions) tell(decision, log);
      if (decisions.some(({ done }) => done)) ring();
      for (const isForOld of [false, true]) {
        const rescans = decisions.filter(({ request }) => (request?.kind === 'backfill') === isForOld);
        for (const instrument of new Set(rescans.map(({ rescan }) => rescan)))
          if (instrument !== undefined) rescan(instrument, isForOld);
      }
      return decisions.length > 0 ? 0 : LOOK_MS;
    } catch (error) {
      log.error({ reason: explain(error) }, 'requests of people cannot be read, trying again');
      return TROUBLE_MS;
    }
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) await clock.sleep(await look(), stopping.signal).catch(() => undefined);
  }

  return {
    start() {
      running = keepLooking();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function tell({ done, text, request }: Decision, log: Log): void {
  if (done) log.info({ ...request, text }, 'a person decided');
  else log.warn({ ...request, reason: text }, 'what a person asked for was refused');
}
