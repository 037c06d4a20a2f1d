import { basename } from 'node:path';
import { DateTime } from 'luxon';
import type { Silence, Weekday } from '../config/schema.js';
import type { LimiterState, Live, LiveAlarm, LiveInstrument } from '../live.js';
import { formatDuration, withoutPath } from '../text.js';

/** A notebook that is back sooner was being restarted. */
const OUTAGE_GRACE_MS = 5 * 60_000;

/** When an alarm was raised, if it is on. */
type RaisedAt = (kind: LiveAlarm['kind'], instrument: string | undefined) => number | undefined;

/** All that is wrong, and all that cannot be told at this moment. */
export function examine(facts: Facts, raisedAt: RaisedAt): Finding[] {
  const { now, notebook, instruments, problems, journal } = facts;
  return [
    ...(journal === undefined ? [] : [trouble('journal', undefined, unwritable(journal))]),
    ...notebookTroubles(notebook),
    ...configuration(facts),
    ...instruments.flatMap((instrument) =>
      instrumentTroubles(instrument, problems, now, (kind) => raisedAt(kind, instrument.live.name)),
    ),
  ];
}

const unwritable = (reason: string): string =>
  `the journal cannot be written: ${reason}. Nothing is sent that could not be recorded; check the space and the permissions of its disk`;

function notebookTroubles({ url, gate, answered, halted }: Facts['notebook']): Finding[] {
  const findings =
    halted === undefined ? [] : [trouble('held', undefined, `nothing is sent to ${url}: ${halted}`)];
  if (gate.kind !== 'down') {
    return answered ? findings : [...findings, unsure('auth'), unsure('outage')];
  }
  if (gate.failure === 'auth') {
    const text = `the notebook refuses the key, nothing is sent: ${gate.reason}`;
    return [...findings, trouble('auth', undefined, text)];
  }
  const text = `the notebook is away, files are taken and wait: ${gate.reason}`;
  // It says nothing about the key until it answers again.
  return [...findings, trouble('outage', undefined, text, OUTAGE_GRACE_MS), unsure('auth')];
}

/** What is wrong with the configuration beyond single instruments. */
function configuration({ refused, problems, page }: Facts): Finding[] {
  const general = problems.filter(({ instrument }) => instrument === undefined);
  const parts = [
    ...(refused ? [`the new configuration is refused, the old one goes on: ${first(refused.problems)}`] : []),
    ...(general.length > 0 ? [`the configuration has a mistake: ${first(general)}`] : []),
    ...(page === undefined ? [] : [page]),
  ];
  return parts.length === 0 ? [] : [trouble('configuration', undefined, parts.join('. '))];
}

function first([problem, ...others]: Live['problems']): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return problem ? `${problem.at}: ${problem.message}${more}` : 'no reason is known';
}

/** A share that is back within this time was not worth a call. */
const FOLDER_GRACE_MS = 60_000;

/** A stray readme is one occasion, and a second thought is two. */
const MIN_UNMATCHED_ARRIVALS = 3;

/** When an alarm of this kind was raised, if it is on. */
type InstrumentRaisedAt = (kind: LiveAlarm['kind']) => number | undefined;

/** What is wrong with one instrument. */
function instrumentTroubles(
  facts: InstrumentFacts,
  problems: Live['problems'],
  now: number,
  raisedAt: InstrumentRaisedAt,
): Finding[] {
  const { name } = facts.live;
  return [
    ...stopped(name, problems),
    ...folder(facts),
    ...silence(facts, now),
    ...unmatched(facts, raisedAt('unmatched')),
    ...quarantine(facts),
    ...held(facts),
  ];
}

function stopped(name: string, problems: Live['problems']): Finding[] {
  const [first, ...others] = problems.filter(({ instrument }) => instrument === name);
  if (first === undefined) return [];
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  const text = `${name} is stopped by its configuration, its files wait: ${first.at}: ${first.message}${more}`;
  return [trouble('configuration', name, text)];
}

function folder({ live: { name, watch, folder } }: InstrumentFacts): Finding[] {
  switch (folder.state) {
    case 'present':
      return [];
    case 'unknown':
      return [unsure('folder', name)];
    case 'missing':
    case 'unreadable': {
      const text = `${name}: the folder ${watch} is ${folder.state}: ${folder.reason ?? 'no reason is known'}`;
      return [trouble('folder', name, text, FOLDER_GRACE_MS)];
    }
  }
}

function silence({ live, silence, quietSince }: InstrumentFacts, now: number): Finding[] {
  if (silence === undefined) return [];
  const { name } = live;
  // Nothing can come from a folder that is gone, or to an instrument that is stopped: that is told already.
  if (quietSince === undefined || live.folder.state !== 'present' || live.line === 'stopped')
    return [unsure('silence', name)];
  if (!isSilent(silence, quietSince, now)) return [];
  const since = DateTime.fromMillis(quietSince).toFormat('yyyy-MM-dd HH:mm');
  const text = `${name}: no file has come since ${since}, for more than ${formatDuration(silence.afterMs)}`;
  return [trouble('silence', name, text)];
}

function unmatched({ live, unmatchedArrivals }: InstrumentFacts, raisedAt: number | undefined): Finding[] {
  const { name, lastFileAt, scannedAt } = live;
  if (unmatchedArrivals.occasions >= MIN_UNMATCHED_ARRIVALS) {
    const example = unmatchedArrivals.example ?? live.unmatched.example ?? '';
    const text = `${name}: files arrive, but none is taken: \`files\` fits none of them, such as ${example}`;
    return [trouble('unmatched', name, text)];
  }
  const hasRuns = raisedAt !== undefined && lastFileAt !== undefined && lastFileAt > raisedAt;
  const isEmpty = scannedAt !== undefined && live.unmatched.files === 0;
  return hasRuns || isEmpty ? [] : [unsure('unmatched', name)];
}

function quarantine({ live: { name }, quarantined }: InstrumentFacts): Finding[] {
  if (quarantined === undefined) return [];
  const runs = quarantined.runs === 1 ? 'a run is' : `${quarantined.runs} runs are`;
  return [trouble('quarantine', name, `${name}: ${runs} quarantined; ${newest(quarantined)}`)];
}

function held({ live: { name }, held, asked }: InstrumentFacts): Finding[] {
  const parts: string[] = [];
  if (asked > 0) {
    parts.push(
      `${asked} old files wait for an answer: labfeed backfill ${name}, or existing: ingest, skip or { since: DATE }`,
    );
  }
  if (held) {
    const runs = held.runs === 1 ? 'a run waits' : `${held.runs} runs wait`;
    parts.push(`${runs} for a decision; ${newest(held)}`);
  }
  return parts.length === 0 ? [] : [trouble('held', name, `${name}: ${parts.join('. ')}`)];
}

const newest = ({ path, reason }: Resting): string =>
  `the newest is ${basename(path) || 'erased'}: ${withoutPath(reason ?? 'no reason is known', path)}`;

/** All that alarms are judged by, as it is at one instant. */
export interface Facts {
  readonly now: number;
  readonly notebook: {
    readonly url: string;
    readonly gate: LimiterState;
    /** Whether it has done anything for us since the gate was made: before that, an open gate proves nothing. */
    readonly answered: boolean;
    /** Why nothing is sent until a person has recovered the journal. */
    readonly halted: string | undefined;
  };
  readonly instruments: readonly InstrumentFacts[];
  readonly problems: Live['problems'];
  readonly refused: Live['refused'];
  /** Why the status page is not there, though it should be. */
  readonly page: string | undefined;
  /** Why the journal cannot be written. */
  readonly journal: string | undefined;
}

export interface InstrumentFacts {
  readonly live: LiveInstrument;
  readonly silence: Silence | undefined;
  /** When its last file came, or else when its folder was first listed. */
  readonly quietSince: number | undefined;
  /** Files that came where runs should have come. */
  readonly unmatchedArrivals: { readonly occasions: number; readonly example: string | undefined };
  readonly quarantined: Resting | undefined;
  readonly held: Resting | undefined;
  /** How many old files wait for an answer. */
  readonly asked: number;
}

/** Runs that rest, and the one of them that came last. */
interface Resting {
  readonly runs: number;
  readonly path: string;
  readonly reason: string | undefined;
}

/** What was found out about one kind of trouble. Of what is not mentioned, there is none. */
export interface Finding {
  readonly kind: LiveAlarm['kind'];
  readonly instrument: string | undefined;
  /** Unsure: nothing can be said now, and what was said before stands. */
  readonly verdict: 'trouble' | 'unsure';
  readonly text: string;
  /** How long it must last before anybody is told. */
  readonly graceMs: number;
}

const trouble = (
  kind: LiveAlarm['kind'],
  instrument: string | undefined,
  text: string,
  graceMs = 0,
): Finding => ({ kind, instrument, verdict: 'trouble', text, graceMs });

const unsure = (kind: LiveAlarm['kind'], instrument?: string): Finding => ({
  kind,
  instrument,
  verdict: 'unsure',
  text: '',
  graceMs: 0,
});

/** Whether so much of the time between two instants was on the days that count, in the time of this zone. */
export function isSilent({ afterMs, days }: Silence, from: number, to: number, zone = 'local'): boolean {
  let elapsedMs = 0;
  let start = DateTime.fromMillis(from, { zone });
  while (start.toMillis() < to && elapsedMs < afterMs) {
    // A day is not always 24 hours long.
    const end = start.startOf('day').plus({ days: 1 });
    if (days.has(start.weekday as Weekday)) elapsedMs += Math.min(end.toMillis(), to) - start.toMillis();
    start = end;
  }
  return elapsedMs >= afterMs;
}
