import type { Clock } from '../clock.js';
import { explain } from '../errors.js';
import type { LiveAlarm } from '../live.js';
import type { Log } from '../log.js';
import type { AlarmBook, Channel, Notice } from '../model.js';
import { formatDuration } from '../text.js';
import { createTelling, type Tell } from './channels.js';
import { examine, type Facts, type Finding } from './conditions.js';

interface AlarmsDeps {
  facts(): Promise<Facts>;
  load(): Promise<AlarmBook>;
  /** May fail: the alarms are kept in memory until it can. */
  save(book: AlarmBook): Promise<void>;
  /** Whom to tell, and how, as the configuration has it now. */
  channels(): ReadonlyMap<Channel, Tell>;
  readonly clock: Clock;
  readonly log: Log;
}

/** Raises alarms, once for each trouble and once when it is over, and sees to it that people hear of them. */
export interface Alarms {
  /** Takes over what was raised before a restart. */
  open(): Promise<void>;
  /** Looks once at how things are. Does not reject. */
  look(): Promise<void>;
  raised(): readonly LiveAlarm[];
  /** Gives up what is being told; it is told after the next start. */
  stop(): Promise<void>;
}

/** Reasons may quote a file; a message is not the place for all of it. */
const LONGEST_TEXT = 1500;

/** Words that only changed need not be on disk at once. */
const REWRITE_MS = 60_000;

export function createAlarms({ facts, load, save, channels, clock, log }: AlarmsDeps): Alarms {
  const raised = new Map<string, LiveAlarm>();
  /** Since when a trouble lasts that is not worth an alarm yet, by the clock that only grows. */
  const pending = new Map<string, number>();
  const telling = createTelling({ channels, clock, log, changed: keep });
  let unsaved = false;
  let savedAtMs = clock.monotonic();
  let isBlind = false;
  let isForgetful = false;

  async function keep(): Promise<void> {
    try {
      unsaved = false;
      savedAtMs = clock.monotonic();
      await save({ raised: [...raised.values()], untold: telling.untold() });
      isForgetful = false;
    } catch (error) {
      unsaved = true;
      if (!isForgetful) log.error({ reason: explain(error) }, 'the alarms cannot be recorded, trying again');
      isForgetful = true;
    }
  }

  function announce(state: Notice['state'], alarm: LiveAlarm): void {
    const { kind, instrument, since, text } = alarm;
    const fields = { alarm: kind, instrument, since: new Date(since).toISOString(), text };
    if (state === 'raised') log.warn(fields, 'alarm raised');
    else log.info(fields, 'alarm over');
    telling.add(state, alarm, clock.now());
    unsaved = true;
  }

  function meet(finding: Finding): void {
    const { kind, instrument, graceMs } = finding;
    const key = keyOf(finding);
    const since = pending.get(key) ?? clock.monotonic();
    const waitedMs = clock.monotonic() - since;
    const known = raised.get(key);
    const text = printable(finding.text);
    if (known) {
      // The words may change while it lasts, as more of the same happens; nobody is called for that.
      raised.set(key, { ...known, text });
      unsaved ||= text !== known.text && clock.monotonic() - savedAtMs > REWRITE_MS;
    } else if (waitedMs < graceMs) {
      pending.set(key, since);
    } else {
      pending.delete(key);
      const alarm = { kind, instrument, since: Math.round(clock.now() - waitedMs), text };
      raised.set(key, alarm);
      announce('raised', alarm);
    }
  }

  function judge(findings: readonly Finding[]): void {
    const seen = new Set(findings.map(keyOf));
    for (const key of pending.keys()) if (!seen.has(key)) pending.delete(key);
    for (const finding of findings) if (finding.verdict === 'trouble') meet(finding);
    for (const [key, alarm] of raised) {
      if (seen.has(key)) continue;
      raised.delete(key);
      const text = `over after ${formatDuration(clock.now() - alarm.since)}: ${alarm.text}`;
      announce('over', { ...alarm, text });
    }
  }

  async function look(): Promise<void> {
    try {
      const raisedAt = (kind: LiveAlarm['kind'], instrument: string | undefined) =>
        raised.get(keyOf({ kind, instrument }))?.since;
      judge(examine(await facts(), raisedAt));
      isBlind = false;
    } catch (error) {
      if (!isBlind) log.error({ err: error }, 'alarms cannot be judged now, trying again');
      isBlind = true;
    }
    // On disk before anybody is called, where it can be: a crash in between must not call twice.
    if (unsaved) await keep();
    telling.ring();
  }

  return {
    async open() {
      const book = await load();
      for (const alarm of book.raised) raised.set(keyOf(alarm), alarm);
      telling.resume(book.untold);
    },
    look,
    raised: () => [...raised.values()],
    stop: telling.stop,
  };
}

const keyOf = ({ kind, instrument = '' }: Pick<Finding, 'kind' | 'instrument'>): string =>
  `${kind} ${instrument}`;

/** One line of bounded length: it goes into messages, and into a program's environment. */
function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what must not pass
  const line = text.replaceAll(/\s*[\u0000-\u001f\u007f]+\s*/g, ' ').trim();
  return line.length > LONGEST_TEXT ? `${line.slice(0, LONGEST_TEXT)}…` : line;
}
