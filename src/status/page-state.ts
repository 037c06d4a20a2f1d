import { explain } from '../errors.js';
import type { Job, Overview, PageState } from './api.js';
import type { StatusDeps } from './deps.js';

/** All that the page shows at first sight. Made once a second at most, and only while somebody looks. */
export function createPageState({
  version,
  clock,
  live,
  overview,
  jobs,
}: Pick<StatusDeps, 'version' | 'clock' | 'live' | 'overview' | 'jobs'>): () => PageState {
  let made: { readonly state: PageState; readonly at: number } | undefined;

  function attention(): readonly Job[] {
    const waiting = [...jobs({ state: 'quarantined', limit: MOST }), ...jobs({ state: 'held', limit: MOST })];
    return waiting.sort((one, other) => other.id - one.id).slice(0, MOST);
  }

  function make(): PageState {
    const known = { at: clock.now(), version, live: live() };
    try {
      const read = overview();
      return { ...known, overview: read, attention: attention(), attentionCount: countAttention(read) };
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
