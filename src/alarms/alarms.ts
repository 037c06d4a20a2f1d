import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { hostname } from 'node:os';
import { setImmediate } from 'node:timers/promises';
import { Agent, type Dispatcher, ProxyAgent, request } from 'undici';
import { backoffMs, type Clock } from '../clock.js';
import type { CommandLine } from '../config/settings.js';
import { explain, LabfeedError, systemCode } from '../errors.js';
import type { LiveAlarm } from '../live.js';
import type { Log } from '../log.js';
import type { AlarmBook, Channel, Notice } from '../model.js';
import { proxyFor } from '../system/process.js';
import { formatDuration, terminalLine } from '../text.js';
import { examine, type Facts, type Finding } from './conditions.js';

interface AlarmsDeps {
  facts(): Promise<Facts>;
  load(): Promise<AlarmBook>;
  /** May fail: the alarms stay in memory and are saved later. */
  save(book: AlarmBook): Promise<void>;
  /** How to notify people, according to the current configuration. */
  channels(): ReadonlyMap<Channel, Send>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reasons may quote a file. */
const MAX_TEXT_LENGTH = 1500;

/** If only the text of an alarm changes, it is saved no more often than this. */
const SAVE_TEXT_MS = 60_000;

/** Raises an alarm when a condition appears, clears it when the condition is gone, and notifies people of both. */
export class Alarms {
  readonly #deps: AlarmsDeps;
  readonly #notifier: Notifier;
  readonly #raised = new Map<string, LiveAlarm>();
  /** When conditions began that have not yet lasted long enough for an alarm, on the monotonic clock. */
  readonly #pending = new Map<string, number>();
  #isUnsaved = false;
  #savedAtMs: number;
  /** The failures that were logged, so that each is logged once. */
  readonly #failing = new Set<'check' | 'save'>();

  constructor(deps: AlarmsDeps) {
    this.#deps = deps;
    this.#savedAtMs = deps.clock.monotonic();
    this.#notifier = new Notifier({ ...deps, changed: () => this.#save() });
  }

  /** Loads the alarms that were raised before a restart. */
  async open(): Promise<void> {
    const { raised, unsent } = await this.#deps.load();
    for (const alarm of raised) this.#raised.set(keyOf(alarm), alarm);
    this.#notifier.resume(unsent);
  }

  /** Checks all conditions once. Never rejects. */
  async check(): Promise<void> {
    try {
      const raisedAt = (kind: LiveAlarm['kind'], instrument: string | undefined) =>
        this.#raised.get(keyOf({ kind, instrument }))?.since;
      this.#apply(examine(await this.#deps.facts(), raisedAt));
      this.#failing.delete('check');
    } catch (error) {
      this.#logOnce('check', { err: error }, 'cannot check the alarm conditions, retrying');
    }
    // Saved before anybody is notified, if possible: a crash in between must not notify twice.
    if (this.#isUnsaved) await this.#save();
    this.#notifier.sendDue();
  }

  raised(): readonly LiveAlarm[] {
    return [...this.#raised.values()];
  }

  /** Notices that are being sent are sent again after the next start. */
  stop(): Promise<void> {
    return this.#notifier.stop();
  }

  #apply(findings: readonly Finding[]): void {
    const seen = new Set(findings.map(keyOf));
    for (const key of this.#pending.keys()) if (!seen.has(key)) this.#pending.delete(key);
    for (const { text, ...finding } of findings) if (text !== undefined) this.#raise(finding, oneLine(text));
    for (const [key, alarm] of this.#raised) {
      if (seen.has(key)) continue;
      this.#raised.delete(key);
      const lastedMs = this.#deps.clock.now() - alarm.since;
      this.#announce('over', { ...alarm, text: `cleared after ${formatDuration(lastedMs)}: ${alarm.text}` });
    }
  }

  #raise({ kind, instrument, graceMs = 0 }: Finding, text: string): void {
    const { clock } = this.#deps;
    const key = keyOf({ kind, instrument });
    const known = this.#raised.get(key);
    if (known) {
      // The text may change while the alarm lasts, for example with the number of runs. That sends no notice.
      this.#raised.set(key, { ...known, text });
      this.#isUnsaved ||= text !== known.text && clock.monotonic() - this.#savedAtMs > SAVE_TEXT_MS;
      return;
    }
    const since = this.#pending.get(key) ?? clock.monotonic();
    const lastedMs = clock.monotonic() - since;
    if (lastedMs < graceMs) {
      this.#pending.set(key, since);
      return;
    }
    this.#pending.delete(key);
    const alarm = { kind, instrument, since: Math.round(clock.now() - lastedMs), text };
    this.#raised.set(key, alarm);
    this.#announce('raised', alarm);
  }

  #announce(state: Notice['state'], alarm: LiveAlarm): void {
    const { clock, log } = this.#deps;
    const { kind, instrument, since, text } = alarm;
    const fields = { alarm: kind, instrument, since: new Date(since).toISOString(), text };
    if (state === 'raised') log.warn(fields, 'alarm raised');
    else log.info(fields, 'alarm cleared');
    this.#notifier.add(state, alarm, clock.now());
    this.#isUnsaved = true;
  }

  async #save(): Promise<void> {
    try {
      this.#isUnsaved = false;
      this.#savedAtMs = this.#deps.clock.monotonic();
      await this.#deps.save({ raised: this.raised(), unsent: this.#notifier.unsent() });
      this.#failing.delete('save');
    } catch (error) {
      this.#isUnsaved = true;
      this.#logOnce('save', { reason: explain(error) }, 'cannot save the alarms, retrying');
    }
  }

  #logOnce(what: 'check' | 'save', fields: object, message: string): void {
    if (!this.#failing.has(what)) this.#deps.log.error(fields, message);
    this.#failing.add(what);
  }
}

const keyOf = ({ kind, instrument = '' }: Pick<Finding, 'kind' | 'instrument'>): string => `${kind} ${instrument}`;

/** The text goes into messages and into the environment of a program. */
function oneLine(text: string): string {
  const line = terminalLine(text).replaceAll(/\s+/g, ' ').trim();
  return line.length > MAX_TEXT_LENGTH ? `${line.slice(0, MAX_TEXT_LENGTH)}…` : line;
}

/** Sends one notice. Rejects if that failed. */
export type Send = (notice: Notice, signal: AbortSignal) => Promise<void>;

interface NotifierDeps {
  channels(): ReadonlyMap<Channel, Send>;
  readonly clock: Clock;
  readonly log: Log;
  /** Called when the unsent notices have changed. */
  changed(): Promise<void>;
}

const FIRST_RETRY_MS = 2000;
const MAX_RETRY_MS = 3_600_000;
const GIVE_UP_MS = 7 * 86_400_000;

/** Sends notices over the configured channels, each channel in order, until they arrive. */
export class Notifier {
  readonly #deps: NotifierDeps;
  readonly #stopping = new AbortController();
  readonly #sending = new Map<Channel, Promise<void>>();
  #unsent: readonly Notice[] = [];

  constructor(deps: NotifierDeps) {
    this.#deps = deps;
  }

  unsent(): readonly Notice[] {
    return this.#unsent;
  }

  /** Continues with the notices that an earlier process could not send. */
  resume(notices: AlarmBook['unsent']): void {
    this.#unsent = [...notices, ...this.#unsent];
  }

  add(state: Notice['state'], { kind, instrument, since, text }: LiveAlarm, at: number): void {
    for (const channel of this.#deps.channels().keys()) {
      const notice = { channel, state, kind, instrument, since, text, at, attempts: 0, dueAt: at };
      const earlier = this.#unsent.filter((other) => isSame(other, notice));
      // If an alarm was raised and cleared before it could be sent, only its last occurrence is sent.
      const isStale = earlier.at(-1)?.state === 'over';
      this.#unsent = [...this.#unsent.filter((other) => !(isStale && earlier.includes(other))), notice];
    }
  }

  /** Starts to send what is due, without waiting for it. */
  sendDue(): void {
    const channels = this.#deps.channels();
    this.#unsent = this.#unsent.filter(({ channel }) => channels.has(channel));
    for (const [channel, send] of channels) {
      if (this.#sending.has(channel)) continue;
      const sent = this.#sendAll(channel, send).finally(() => this.#sending.delete(channel));
      this.#sending.set(channel, sent);
    }
  }

  async stop(): Promise<void> {
    this.#stopping.abort();
    await Promise.all(this.#sending.values());
  }

  async #sendAll(channel: Channel, send: Send): Promise<void> {
    const { signal } = this.#stopping;
    for (;;) {
      const next = this.#unsent.find((notice) => notice.channel === channel);
      if (next === undefined || signal.aborted || !this.#isDue(next)) return;
      try {
        await send(next, signal);
        this.#replace(next, []);
      } catch (error) {
        if (signal.aborted) return;
        this.#replace(next, this.#retry(next, error));
      }
      await this.#deps.changed();
    }
  }

  /** The notice with its next attempt, or nothing after a week. */
  #retry(notice: Notice, error: unknown): readonly Notice[] {
    const { clock, log } = this.#deps;
    const { channel, kind, instrument, state } = notice;
    const reason = explain(error);
    const attempts = notice.attempts + 1;
    const fields = { channel, alarm: kind, instrument, state, attempts, reason };
    if (clock.now() - notice.at > GIVE_UP_MS) {
      log.error(fields, 'could not send an alarm for a week, giving up');
      return [];
    }
    const waitMs = backoffMs(notice.attempts, { firstMs: FIRST_RETRY_MS, maxMs: MAX_RETRY_MS });
    log[attempts === 1 ? 'warn' : 'debug']({ ...fields, waitMs }, 'could not send an alarm, retrying');
    return [{ ...notice, attempts, dueAt: clock.now() + waitMs }];
  }

  /** A wait above the maximum means that the clock was set back. */
  #isDue({ dueAt }: Notice): boolean {
    const waitMs = dueAt - this.#deps.clock.now();
    return waitMs <= 0 || waitMs > MAX_RETRY_MS;
  }

  #replace(notice: Notice, by: readonly Notice[]): void {
    this.#unsent = this.#unsent.flatMap((other) => (other === notice ? by : [other]));
  }
}

const isSame = (one: Notice, other: Notice): boolean =>
  one.channel === other.channel && one.kind === other.kind && one.instrument === other.instrument;

const COMMAND_TIMEOUT_MS = 30_000;

/** The rest of what the program prints is dropped. */
const MAX_OUTPUT_LENGTH = 4096;

interface CommandOptions {
  readonly command: CommandLine;
  readonly log: Log;
  /** Its environment, to which the alarm is added. */
  readonly env: NodeJS.ProcessEnv;
  /** The name of this machine. */
  readonly host?: string | undefined;
  readonly timeoutMs?: number;
}

/** Runs a program for each notice, without a shell, and waits until it exits. */
export function createCommand({ command, log, env, host, timeoutMs = COMMAND_TIMEOUT_MS }: CommandOptions): Send {
  const [program, ...args] = command;

  return async (notice, signal) => {
    const { state, kind, instrument, text, since } = messageOf(notice, host);
    const alarm = {
      LABFEED_ALARM_STATE: state,
      LABFEED_ALARM_KIND: kind,
      LABFEED_ALARM_INSTRUMENT: instrument ?? '',
      LABFEED_ALARM_TEXT: text,
      LABFEED_ALARM_SINCE: since,
    };
    // In a process group of its own, so that its children can be killed with it.
    const child = spawn(program, args, {
      env: { ...env, ...alarm },
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    const output = collectOutput(child);
    const ending = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
    try {
      const end = await exitOf(child, ending);
      if (end === 0) return;
      throw new LabfeedError(
        signal.aborted
          ? 'labfeed is stopping'
          : ending.aborted
            ? `${program} did not exit within ${timeoutMs / 1000} s and was killed`
            : `${program} exited with ${typeof end === 'number' ? `status ${end}` : end}`,
      );
    } finally {
      const printed = output().trim();
      if (printed !== '') log.info({ program, output: printed }, 'output of the alarm command');
      // A process that it left running may keep these open.
      child.stdout?.destroy();
      child.stderr?.destroy();
    }
  };
}

function collectOutput({ stdout, stderr }: ChildProcess): () => string {
  let output = '';
  for (const stream of [stdout, stderr]) {
    stream?.on('data', (chunk: Buffer) => {
      if (output.length < MAX_OUTPUT_LENGTH) output = (output + chunk.toString()).slice(0, MAX_OUTPUT_LENGTH);
    });
  }
  return () => output;
}

/** The exit status, or the signal that killed it. Rejects if it could not be started. */
async function exitOf(child: ChildProcess, ending: AbortSignal): Promise<number | string> {
  const kill = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // It has just exited.
    }
  };
  ending.addEventListener('abort', kill, { once: true });
  if (ending.aborted) kill();
  const [status, signal] = await once(child, 'exit').finally(() => ending.removeEventListener('abort', kill));
  // Its last output may still be in the pipe.
  await setImmediate();
  return status ?? signal;
}

const WEBHOOK_TIMEOUT_MS = 10_000;

/** Posts notices as JSON. The URL may contain a secret, so errors name only its host. */
export function createWebhook(url: string, timeoutMs = WEBHOOK_TIMEOUT_MS, name?: string): Send {
  const { host } = new URL(url);

  return async (notice, signal) => {
    const limit = AbortSignal.timeout(timeoutMs);
    const dispatcher = openDispatcher(new URL(url));
    const { statusCode, body } = await request(url, {
      dispatcher,
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(messageOf(notice, name)),
      signal: AbortSignal.any([signal, limit]),
      // The next alarm may be weeks away, so the connection is closed.
      reset: true,
    }).catch((error: unknown) => {
      const reason = limit.aborted ? `no response within ${timeoutMs / 1000} s` : (systemCode(error) ?? explain(error));
      throw new LabfeedError(`cannot reach the webhook at ${host}: ${reason}`);
    });
    // The body does not matter, whatever its size.
    await body.dump({ limit: 65_536, signal }).catch(() => undefined);
    if (statusCode >= 200 && statusCode < 300) return;
    throw new LabfeedError(`the webhook at ${host} returned status ${statusCode}`);
  };
}

/** Explicitly verified, so that NODE_TLS_REJECT_UNAUTHORIZED=0 does not apply: the URL may contain a secret. */
function openDispatcher(url: URL): Dispatcher {
  const tls = { rejectUnauthorized: true };
  const proxy = proxyFor(url);
  return proxy ? new ProxyAgent({ uri: proxy.href, requestTls: tls, proxyTls: tls }) : new Agent({ connect: tls });
}

/** What a webhook receives. Chats show only `text`. */
const messageOf = (notice: Notice, host = hostname()) => ({
  state: notice.state,
  kind: notice.kind,
  instrument: notice.instrument ?? null,
  since: new Date(notice.since).toISOString(),
  at: new Date(notice.at).toISOString(),
  text: `labfeed on ${host}: ${notice.text}`,
  host,
});

export type Message = ReturnType<typeof messageOf>;
