import { type ChildProcess, spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { request } from 'undici';
import type { Clock } from '../clock.js';
import type { CommandLine } from '../config/settings.js';
import { LabfeedError } from '../errors.js';
import type { LiveAlarm } from '../live.js';
import type { Log } from '../log.js';
import { type AlarmBook, CHANNELS, type Channel, type Notice } from '../model.js';

/** Tells one notice to one receiver; rejects where that did not work. */
export type Tell = (notice: Notice, signal: AbortSignal) => Promise<void>;

interface TellingDeps {
  channels(): ReadonlyMap<Channel, Tell>;
  readonly clock: Clock;
  readonly log: Log;
  /** What is still to be told has changed. */
  changed(): Promise<void>;
}

interface Telling {
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

const COMMAND_TIMEOUT_MS = 30_000;

/** Of what the program prints, the rest is dropped. */
const MOST_OUTPUT = 4096;

interface CommandOptions {
  readonly words: CommandLine;
  readonly log: Log;
  /** The environment that it gets, beside what it is told. */
  readonly env: NodeJS.ProcessEnv;
  readonly timeoutMs?: number;
}

/** Starts a program for each notice, without a shell, and waits for its end. */
export function createCommand({ words, log, env, timeoutMs = COMMAND_TIMEOUT_MS }: CommandOptions): Tell {
  const [program, ...args] = words;

  return async (notice, signal) => {
    const { state, kind, instrument, text, since } = messageOf(notice);
    const told = {
      LABFEED_ALARM_STATE: state,
      LABFEED_ALARM_KIND: kind,
      LABFEED_ALARM_INSTRUMENT: instrument ?? '',
      LABFEED_ALARM_TEXT: text,
      LABFEED_ALARM_SINCE: since,
    };
    // In a group of its own, so that it can be ended with all that it started.
    const child = spawn(program, args, {
      env: { ...env, ...told },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const output = listen(child);
    const ending = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const end = await endOf(child, ending);
      if (end === 0) return;
      throw new LabfeedError(
        signal.aborted
          ? 'labfeed is stopping'
          : ending.aborted
            ? `${program} did not end within ${timeoutMs / 1000} s, and was ended`
            : `${program} ended with ${typeof end === 'number' ? `status ${end}` : end}`,
      );
    } finally {
      const said = output().trim();
      if (said !== '') log.info({ program, output: said }, 'the command of an alarm said');
      // What it left running may hold these for ever.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }
  };
}

function listen({ stdout, stderr }: ChildProcess): () => string {
  let output = '';
  for (const stream of [stdout, stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      if (output.length < MOST_OUTPUT) output = (output + chunk.toString()).slice(0, MOST_OUTPUT);
    });
  }
  return () => output;
}

/** Its exit status, or the signal that ended it. Rejects where it could not be started. */
function endOf(child: ChildProcess, ending: AbortSignal): Promise<number | string> {
  return new Promise((resolve, reject) => {
    const kill = (): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
      } catch {
        // It has ended by itself just now.
      }
    };
    ending.addEventListener('abort', kill, { once: true });
    child.once('error', reject);
    child.once('exit', (status, signal) => {
      ending.removeEventListener('abort', kill);
      // What it wrote last may still be on its way.
      setImmediate(() => resolve(status ?? signal ?? 'no status'));
    });
    if (ending.aborted) kill();
  });
}

const WEBHOOK_TIMEOUT_MS = 10_000;

/** Posts notices as JSON. The address may hold a secret: only its host is ever in an error. */
export function createWebhook(url: string, timeoutMs = WEBHOOK_TIMEOUT_MS): Tell {
  const { host } = new URL(url);

  return async (notice, signal) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const { statusCode, body } = await request(url, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(messageOf(notice)),
      signal: AbortSignal.any([signal, limit]),
      // Nothing is kept open for the next alarm, which may be weeks away.
      reset: true,
    }).catch((error: unknown) => {
      const reason = limit.aborted ? `no answer within ${timeoutMs / 1000} s` : messageOfError(error);
      throw new LabfeedError(`the webhook at ${host} cannot be reached: ${reason}`);
    });
    // What it says does not matter, and how much must not either.
    await body.dump({ limit: 65_536, signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return;
    throw new LabfeedError(`the webhook at ${host} answered ${statusCode}`);
  };
}

const messageOfError = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error);
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message;
};

/** What a webhook gets. `text` alone says it all: chats show just that. */
export interface Message {
  readonly state: Notice['state'];
  readonly kind: Notice['kind'];
  readonly instrument: string | null;
  /** ISO 8601, as `at`. */
  readonly since: string;
  readonly at: string;
  readonly text: string;
  readonly host: string;
}

const messageOf = (notice: Notice, host = hostname()): Message => ({
  state: notice.state,
  kind: notice.kind,
  instrument: notice.instrument ?? null,
  since: new Date(notice.since).toISOString(),
  at: new Date(notice.at).toISOString(),
  text: `labfeed on ${host}: ${notice.text}`,
  host,
});
