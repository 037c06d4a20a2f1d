import type { Clock } from '../clock.js';
import type { LiveAlarm } from '../live.js';
import type { Log } from '../log.js';
import { type AlarmBook, CHANNELS, type Channel, type Notice } from '../model.js';

/** Tells one notice to one receiver; rejects where that did not work. */
export type Tell = (notice: Notice, signal: AbortSignal) => Promise<void>;

export interface TellingDeps {
  channels(): ReadonlyMap<Channel, Tell>;
  readonly clock: Clock;
  readonly log: Log;
  /** What is still to be told has changed. */
  changed(): Promise<void>;
}

export interface Telling {
  add(state: Notice['state'], alarm: LiveAlarm, at: number): void;
  /** Goes on with what an earlier process could not tell. */
  resume(untold: AlarmBook['untold']): void;
  untold(): readonly Notice[];
  /** Tells what is due, each channel one after the other; does not wait for it. */
  ring(): void;
  stop(): Promise<void>;
}

const FIRST_WAIT_MS = 2000;
const LONGEST_WAIT_MS = 3_600_000;

/** What nobody could be told for so long is no news. */
const GIVE_UP_MS = 7 * 86_400_000;

export function createTelling({ channels, clock, log, changed }: TellingDeps): Telling {
  const stopping = new AbortController();
  const busy = new Map<Channel, Promise<void>>();
  let untold: readonly Notice[] = [];

  function put(notice: Notice): void {
    const earlier = untold.filter((other) => isSame(other, notice));
    // A trouble that came and went untold, and comes again: only the last time is news. So the list stays short.
    const isStale = earlier.at(-1)?.state === 'over';
    untold = [...untold.filter((other) => !(isStale && earlier.includes(other))), notice];
  }

  const replace = (notice: Notice, by: readonly Notice[]): void => {
    untold = untold.flatMap((other) => (other === notice ? by : [other]));
  };

  function failed(notice: Notice, error: unknown): void {
    const { channel, kind, instrument, state } = notice;
    const reason = error instanceof Error ? error.message : String(error);
    const attempts = notice.attempts + 1;
    const waitMs = Math.min(LONGEST_WAIT_MS, FIRST_WAIT_MS * 2 ** (attempts - 1));
    const fields = { channel, alarm: kind, instrument, state, attempts, reason };
    if (clock.now() - notice.at > GIVE_UP_MS) {
      log.error(fields, 'an alarm could not be told for a week, given up');
      replace(notice, []);
      return;
    }
    log[attempts === 1 ? 'warn' : 'debug']({ ...fields, waitMs }, 'an alarm could not be told, trying again');
    replace(notice, [{ ...notice, attempts, dueAt: clock.now() + waitMs }]);
  }

  /** Longer than the longest wait it can only be where the clock was set back: that must not silence anybody. */
  function isDue({ dueAt }: Notice): boolean {
    const waitMs = dueAt - clock.now();
    return waitMs <= 0 || waitMs > LONGEST_WAIT_MS;
  }

  async function tellAll(channel: Channel, tell: Tell): Promise<void> {
    for (;;) {
      const next = untold.find((notice) => notice.channel === channel);
      if (next === undefined || stopping.signal.aborted || !isDue(next)) return;
      try {
        await tell(next, stopping.signal);
        replace(next, []);
      } catch (error) {
        if (stopping.signal.aborted) return;
        failed(next, error);
      }
      await changed();
    }
  }

  return {
    add(state, { kind, instrument, since, text }, at) {
      for (const channel of channels().keys())
        put({ channel, state, kind, instrument, since, text, at, attempts: 0, dueAt: at });
    },
    resume(notices) {
      untold = [...notices, ...untold];
    },
    untold: () => untold,
    ring() {
      const ways = channels();
      untold = untold.filter(({ channel }) => ways.has(channel));
      for (const channel of CHANNELS) {
        const tell = ways.get(channel);
        if (!tell || busy.has(channel)) continue;
        busy.set(
          channel,
          tellAll(channel, tell).finally(() => busy.delete(channel)),
        );
      }
    },
    async stop() {
      stopping.abort();
      await Promise.all(busy.values());
    },
  };
}

const isSame = (one: Notice, other: Notice): boolean =>
  one.channel === other.channel && one.kind === other.kind && one.instrument === other.instrument;
