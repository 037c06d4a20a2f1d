import { randomBytes } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { explain, systemCode } from '../errors.js';
import type { Job, Overview, PageState } from './api.js';
import type { Place, StatusDeps } from './deps.js';
import { createMetrics } from './metrics.js';
import { createServer, type Server, type ServerDeps } from './server.js';

/** The page, wherever the configuration wants it at the moment. */
export interface Status {
  /** Listens there from now on; nowhere where it is undefined. Does not wait for a port that others use. */
  moveTo(place: Place | undefined): Promise<void>;
  /** Why it does not listen where it should, for people. */
  trouble(): StatusTrouble | undefined;
  stop(): Promise<void>;
}

export interface StatusTrouble {
  readonly since: number;
  readonly text: string;
}

const RETRY_MS = 5000;

export function createStatus(deps: StatusDeps): Status {
  const { clock, log } = deps;
  const parts: ServerDeps = {
    ...deps,
    metrics: createMetrics(deps),
    // A new one for each process; it outlasts a reload, so that an open page goes on.
    pageToken: randomBytes(24).toString('base64url'),
    state: createPageState(deps),
  };
  let place: Place | undefined;
  let server: Server | undefined;
  let trouble: StatusTrouble | undefined;
  let leaving = new AbortController();
  let trying: Promise<void> = Promise.resolve();

  async function listen(at: Place): Promise<boolean> {
    const next = createServer(parts, at);
    try {
      const url = await next.start();
      server = next;
      trouble = undefined;
      log.info({ url }, 'the status page is here');
      return true;
    } catch (error) {
      await next.stop();
      const text = explainListening(error, at);
      if (trouble?.text !== text) log.error({ err: error }, text);
      trouble = { since: trouble?.since ?? clock.now(), text };
      return false;
    }
  }

  /** What files runs does not stop for a page that cannot be shown: only a wrong address keeps labfeed from starting. */
  async function keepTrying(at: Place, signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await clock.sleep(RETRY_MS, signal);
      if (!signal.aborted && (await listen(at))) return;
    }
  }

  async function leave(): Promise<void> {
    leaving.abort();
    await trying;
    await server?.stop();
    server = undefined;
    trouble = undefined;
  }

  return {
    async moveTo(next) {
      if (isDeepStrictEqual(next, place)) return;
      await leave();
      place = next;
      if (next === undefined || (await listen(next))) return;
      leaving = new AbortController();
      trying = keepTrying(next, leaving.signal);
    },
    trouble: () => trouble,
    stop: leave,
  };
}

function explainListening(error: unknown, { host, port }: Place): string {
  const at = `the status page cannot be shown at ${host}, port ${port}`;
  switch (systemCode(error)) {
    case 'EADDRINUSE':
      return `${at}: another program uses that port; end it, or write another one into status. Trying again`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `${at}: this machine does not have that address now. Trying again`;
    case 'EACCES':
      return `${at}: this user may not use that port; write one above 1023 into status. Trying again`;
    default:
      return `${at}: ${error instanceof Error ? error.message : error}. Trying again`;
  }
}

/** All that the page shows at first sight. Made once a second at most, and only while somebody looks. */
export function createPageState({
  version,
  clock,
  live,
  overview,
  jobs,
}: Pick<StatusDeps, 'version' | 'clock' | 'live' | 'overview' | 'jobs'>): () => Promise<PageState> {
  let made: { readonly state: Promise<PageState>; readonly at: number } | undefined;

  async function attention(): Promise<readonly Job[]> {
    const waiting = await Promise.all([
      jobs({ state: 'quarantined', limit: MOST }),
      jobs({ state: 'held', limit: MOST }),
    ]);
    return waiting
      .flat()
      .sort((one, other) => other.id - one.id)
      .slice(0, MOST);
  }

  async function make(): Promise<PageState> {
    const known = { at: clock.now(), version, live: live() };
    try {
      const read = await overview();
      return { ...known, overview: read, attention: await attention(), attentionCount: countAttention(read) };
    } catch (error) {
      // Without its journal, the daemon still knows how it is; that is when people look.
      const text = `the journal cannot be read: ${explain(error)}`;
      const alarm = { kind: 'journal', instrument: undefined, since: known.at, text } as const;
      const alarms = [...known.live.alarms, alarm];
      return {
        ...known,
        live: { ...known.live, alarms },
        overview: NOTHING,
        attention: [],
        attentionCount: 0,
      };
    }
  }

  return () => {
    const at = clock.monotonic();
    if (made === undefined || at - made.at >= FRESH_MS) made = { state: make(), at };
    return made.state;
  };
}

const MOST = 100;

/** A little less than the second at which those who look are told, so that each time they are told what is new. */
const FRESH_MS = 900;

const NOTHING: Overview = { instruments: [], servers: [] };

const countAttention = ({ instruments }: Overview): number =>
  instruments.reduce((sum, { runs }) => sum + runs.quarantined + runs.held, 0);
