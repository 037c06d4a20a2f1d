import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { LiveAlarm } from '../live.js';
import type { Log } from '../log.js';
import type { AlarmBook, Channel, Notice } from '../model.js';
import { formatDuration, terminalLine } from '../text.js';
import { Notifier, type Send } from './channels.js';
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
