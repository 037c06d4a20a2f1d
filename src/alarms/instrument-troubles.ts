import { basename } from 'node:path';
import { DateTime } from 'luxon';
import type { Live, LiveAlarm } from '../live.js';
import { spokenDuration, withoutPath } from '../text.js';
import { isSilent } from './days.js';
import { type Finding, type InstrumentFacts, type Resting, trouble, unsure } from './facts.js';

/** A share that is back within this time was not worth a call. */
const FOLDER_GRACE_MS = 60_000;

/** A stray readme is one occasion, and a second thought is two. */
const STRANGE_OCCASIONS = 3;

/** When an alarm of this kind was raised, if it is on. */
type RaisedAt = (kind: LiveAlarm['kind']) => number | undefined;

/** What is wrong with one instrument. */
export function instrumentTroubles(
  facts: InstrumentFacts,
  problems: Live['problems'],
  now: number,
  raisedAt: RaisedAt,
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
  const text = `${name}: no file has come since ${since}, for more than ${spokenDuration(silence.afterMs)}`;
  return [trouble('silence', name, text)];
}

function unmatched({ live, strangers }: InstrumentFacts, raisedAt: number | undefined): Finding[] {
  const { name, lastFileAt, scannedAt } = live;
  if (strangers.occasions >= STRANGE_OCCASIONS) {
    const example = strangers.example ?? live.unmatched.example ?? '';
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
