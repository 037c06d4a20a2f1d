import { basename } from 'node:path';
import { DateTime } from 'luxon';
import type { Silence } from '../config/schema.js';
import type { LimiterState, Live, LiveAlarm, LiveInstrument } from '../live.js';
import type { OverdueRun, ParkedRuns } from '../outbox.js';
import type { SourceTrouble } from '../sources.js';
import { formatBytes, formatDuration, formatTime, plural, withoutPath } from '../text.js';
import { type UploadSettings, uploadObstacle } from '../uploads.js';

/** A restart of the notebook is not an outage. */
const OUTAGE_GRACE_MS = 5 * 60_000;

/** When an alarm was raised, if it is raised now. */
type RaisedAt = (kind: LiveAlarm['kind'], instrument: string | undefined) => number | undefined;

/** Every condition that is present, and every one that cannot be judged now. */
export function examine(facts: Facts, raisedAt: RaisedAt): Finding[] {
  const { now, notebook, instruments, problems, journal } = facts;
  return [
    ...(journal === undefined ? [] : [{ kind: 'journal', text: journalText(journal) } as const]),
    ...(facts.database === undefined ? notebookFindings(notebook) : databaseFindings(facts.database)),
    ...operationFindings(facts.setAside),
    ...overdueFindings(facts),
    ...spoolFindings(facts.spool),
    ...sourceFindings(facts),
    ...configurationFindings(facts),
    ...instruments.flatMap((instrument) =>
      instrumentFindings(instrument, problems, now, (kind) => raisedAt(kind, instrument.live.name)),
    ),
  ];
}

const journalText = (reason: string): string =>
  `cannot write the journal: ${reason}. Nothing is sent until this is fixed; check the disk space and permissions`;

/** Nothing is sent without it, so nothing is learnt about the notebook. */
const databaseFindings = (reason: string): Finding[] => [
  {
    kind: 'outage',
    text: `the database of the fleet is unavailable (new files are recorded and sent later): ${reason}`,
    graceMs: OUTAGE_GRACE_MS,
  },
  { kind: 'auth' },
  { kind: 'held' },
];

function notebookFindings({ url, gate, answered }: Facts['notebook']): Finding[] {
  // Nothing is sent, so nothing is learnt about the key and the server.
  if (gate.kind === 'halted')
    return [
      { kind: 'held', text: `nothing is sent to ${url ?? 'the notebook'}: ${gate.reason}` },
      { kind: 'auth' },
      { kind: 'outage' },
    ];
  if (gate.kind !== 'down') return answered ? [] : [{ kind: 'auth' }, { kind: 'outage' }];
  if (gate.failure === 'auth') {
    const text = `the notebook rejects the API key, so nothing is sent: ${gate.reason}`;
    return [{ kind: 'auth', text }];
  }
  const text = `the notebook is unavailable (new files are recorded and sent later): ${gate.reason}`;
  // Whether it accepts the key is unknown until it answers again.
  return [{ kind: 'outage', text, graceMs: OUTAGE_GRACE_MS }, { kind: 'auth' }];
}

/** Lines of a growing file that waited for a decision are applied within a minute after it. */
const DECIDED_GRACE_MS = 3 * 60_000;

/** The text names only the first one, so that all machines that deliver say the same. */
function operationFindings(setAside: Facts['setAside']): Finding[] {
  if (setAside === undefined) return [];
  if (setAside === 'unknown') return [{ kind: 'operation' }];
  const { member, number, reason, isGrowth } = setAside;
  const text = `operation ${number} of ${member} cannot be applied and was set aside, so runs may be missing in the notebook: ${reason}. labfeed tries again every minute; see the table labfeed.failures, and update labfeed on the machines that deliver`;
  return [{ kind: 'operation', text, graceMs: isGrowth ? DECIDED_GRACE_MS : 0 }];
}

function overdueFindings({ overdue, uploads }: Facts): Finding[] {
  if (overdue === undefined) return [];
  const { run, instrument, path, state, since, reason, upload } = overdue;
  const file = basename(path);
  if (upload) {
    const { text: obstacle, hint } = uploadObstacle({ instrument, server: upload.server }, uploads) ?? {};
    const why = obstacle ?? (reason === undefined ? 'it waits for its turn' : withoutPath(reason, path));
    const text = `the raw file ${upload.file} of run ${run} of ${instrument} has not been attached for more than an hour (since ${formatTime(since)}): ${why}`;
    return [{ kind: 'overdue', text: hint === undefined ? text : `${text}; ${hint}` }];
  }
  const why = reason === undefined ? 'it waits for its turn' : withoutPath(reason, path);
  const text = `run ${run} of ${instrument}${file === '' ? '' : ` (${file})`} has not been filed for more than an hour (since ${formatTime(since)}); it is ${state}: ${why}`;
  return [{ kind: 'overdue', text }];
}

function spoolFindings({ shortage, bytes, maxBytes }: Facts['spool']): Finding[] {
  if (shortage === undefined) return [];
  const why =
    shortage === 'limit'
      ? `the copies of raw files take ${formatBytes(bytes)} of ${formatBytes(maxBytes)} (\`spool\`)`
      : 'the disk of the journal has too little space for copies of raw files';
  const text = `${why}: new files are attached from their folder, if they are still there. See in \`labfeed status\` why files wait, ${shortage === 'limit' ? 'or raise `spool`' : 'or make space'}`;
  return [{ kind: 'spool', text }];
}

function sourceFindings({ sources, strays }: Facts): Finding[] {
  const parts: string[] = [];
  if (sources) {
    const {
      files,
      path,
      reason = 'it still has the private name that labfeed gave it, and gets its own as soon as possible',
    } = sources;
    const what = plural(files, 'filed file is', 'filed files are');
    parts.push(`${what} neither moved nor deleted; for example ${basename(path)}: ${reason}`);
  }
  const [stray] = strays;
  if (stray !== undefined)
    parts.push(
      `${plural(strays.length, 'file has a name', 'files have names')} that labfeed gave with another journal, such as ${stray}. If that journal no longer exists, rename the file: its own name follows the second hyphen`,
    );
  return parts.length === 0 ? [] : [{ kind: 'source', text: parts.join('. ') }];
}

/** Mistakes that do not belong to one instrument. */
function configurationFindings({ refused, problems, page }: Facts): Finding[] {
  const general = problems.filter(({ instrument }) => instrument === undefined);
  const parts = [
    ...(refused
      ? [`the new configuration was rejected; the previous one stays in effect: ${firstOf(refused.problems)}`]
      : []),
    ...(general.length > 0 ? [`the configuration has an error: ${firstOf(general)}`] : []),
    ...(page === undefined ? [] : [page]),
  ];
  return parts.length === 0 ? [] : [{ kind: 'configuration', text: parts.join('. ') }];
}

function firstOf([problem, ...others]: Live['problems']): string {
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return problem ? `${problem.at}: ${problem.message}${more}` : NO_REASON;
}

const NO_REASON = 'no reason given';

/** A share that returns within this time raises no alarm. */
const FOLDER_GRACE_MS = 60_000;

/** A stray readme file is not an alarm. */
const MIN_UNMATCHED_ARRIVALS = 3;

function instrumentFindings(
  facts: InstrumentFacts,
  problems: Live['problems'],
  now: number,
  raisedAt: (kind: LiveAlarm['kind']) => number | undefined,
): Finding[] {
  const { name } = facts.live;
  return [
    ...findStopped(name, problems),
    ...findFolder(facts),
    ...findSilence(facts, now),
    ...findUnmatched(facts, raisedAt('unmatched')),
    ...findUnreadable(facts),
    ...findStuck(facts, raisedAt('stuck')),
    ...findQuarantined(facts),
    ...findHeld(facts),
  ];
}

function findStopped(name: string, problems: Live['problems']): Finding[] {
  const own = problems.filter(({ instrument }) => instrument === name);
  if (own.length === 0) return [];
  const text = `${name} is stopped by a configuration error, and its files are waiting: ${firstOf(own)}`;
  return [{ kind: 'configuration', instrument: name, text }];
}

function findFolder({ live: { name, watch, folder } }: InstrumentFacts): Finding[] {
  switch (folder.state) {
    case 'present':
      return [];
    case 'unknown':
      return [{ kind: 'folder', instrument: name }];
    case 'missing':
    case 'unreadable': {
      const text = `${name}: the folder ${watch} is ${folder.state}: ${folder.reason ?? NO_REASON}`;
      return [{ kind: 'folder', instrument: name, text, graceMs: FOLDER_GRACE_MS }];
    }
  }
}

function findSilence({ live, silence, quietSince }: InstrumentFacts, now: number): Finding[] {
  if (silence === undefined) return [];
  const { name } = live;
  // A missing folder and a stopped instrument have alarms of their own.
  if (quietSince === undefined || live.folder.state !== 'present' || live.line === 'stopped')
    return [{ kind: 'silence', instrument: name }];
  if (!isSilent(silence, quietSince, now)) return [];
  const since = DateTime.fromMillis(quietSince).toFormat('yyyy-MM-dd HH:mm');
  const text = `${name}: no file has arrived for more than ${formatDuration(silence.afterMs)} (since ${since})`;
  return [{ kind: 'silence', instrument: name, text }];
}

function findUnmatched({ live, unmatchedArrivals }: InstrumentFacts, raisedAt: number | undefined): Finding[] {
  const { name, lastFileAt, scannedAt } = live;
  if (unmatchedArrivals.occasions >= MIN_UNMATCHED_ARRIVALS) {
    const example = unmatchedArrivals.example ?? live.unmatched.example ?? '';
    const text = `${name}: files are arriving, but \`files\` matches none of them (for example ${example})`;
    return [{ kind: 'unmatched', instrument: name, text }];
  }
  const hasRuns = raisedAt !== undefined && lastFileAt !== undefined && lastFileAt > raisedAt;
  const isEmpty = scannedAt !== undefined && live.unmatched.files === 0;
  return hasRuns || isEmpty ? [] : [{ kind: 'unmatched', instrument: name }];
}

/** Software of the instrument may lock a file for as long. */
const UNREADABLE_GRACE_MS = 60_000;

function findUnreadable({ live: { name, unreadable } }: InstrumentFacts): Finding[] {
  const [first] = unreadable.first;
  if (!first) return [];
  const more = unreadable.files > 1 ? ` (and ${unreadable.files - 1} more)` : '';
  const text = `${name}: ${basename(first.path)}${more} cannot be read: ${withoutPath(first.reason, first.path)}`;
  return [{ kind: 'unreadable', instrument: name, text, graceMs: UNREADABLE_GRACE_MS }];
}

function findStuck(
  { live: { name, stuck, waiting, scannedAt } }: InstrumentFacts,
  raisedAt: number | undefined,
): Finding[] {
  const [first] = stuck.first;
  if (!first) {
    // After a restart, the waiting time of files starts at zero.
    const isUnknown = raisedAt !== undefined && (waiting.files > 0 || scannedAt === undefined);
    return isUnknown ? [{ kind: 'stuck', instrument: name }] : [];
  }
  const more = stuck.files > 1 ? ` (and ${stuck.files - 1} more)` : '';
  const text = `${name}: ${basename(first.path)}${more} cannot be filed: ${withoutPath(first.reason, first.path)}`;
  return [{ kind: 'stuck', instrument: name, text }];
}

function findQuarantined({ live: { name }, quarantined }: InstrumentFacts): Finding[] {
  if (quarantined === undefined) return [];
  const runs = plural(quarantined.runs, 'run is', 'runs are');
  return [{ kind: 'quarantine', instrument: name, text: `${name}: ${runs} quarantined; ${latest(quarantined)}` }];
}

function findHeld({ live: { name }, held, asked }: InstrumentFacts): Finding[] {
  const parts: string[] = [];
  if (asked > 0) {
    const files = plural(asked, 'existing file needs', 'existing files need');
    parts.push(`${files} a decision: run \`labfeed backfill ${name}\`, or set \`existing\``);
  }
  if (held) {
    const runs = plural(held.runs, 'run needs', 'runs need');
    parts.push(`${runs} a decision; ${latest(held)}`);
  }
  return parts.length === 0 ? [] : [{ kind: 'held', instrument: name, text: `${name}: ${parts.join('. ')}` }];
}

const latest = ({ path, reason }: ParkedRuns): string =>
  `the latest is ${basename(path) || '(erased)'}: ${withoutPath(reason ?? NO_REASON, path)}`;

export interface SetAside {
  /** The name of the machine. */
  readonly member: string;
  readonly number: number;
  readonly reason: string;
  /** Whether it is about a growing file. */
  readonly isGrowth: boolean;
}

/** Everything that alarms depend on, at one moment. */
export interface Facts extends Pick<Live, 'problems' | 'refused'> {
  readonly now: number;
  readonly notebook: {
    readonly url: string | undefined;
    readonly gate: LimiterState;
    /** Whether it has answered since labfeed started. Before that, an open limiter proves nothing. */
    readonly answered: boolean;
  };
  /** On a machine that delivers for a fleet: why the database cannot be reached. */
  readonly database?: string | undefined;
  /** On a machine that delivers for a fleet: the first operation of a member that could not be applied. */
  readonly setAside?: SetAside | 'unknown' | undefined;
  /** The run that has been on its way for the longest time, if that is too long. */
  readonly overdue: OverdueRun | undefined;
  readonly uploads: UploadSettings;
  readonly spool: {
    /** Why a raw file has no room for its copy. */
    readonly shortage: 'limit' | 'disk' | undefined;
    readonly bytes: number;
    readonly maxBytes: number;
  };
  /** Filed files that could not be moved or deleted. */
  readonly sources: SourceTrouble | undefined;
  /** Files with private names of another journal. */
  readonly strays: readonly string[];
  readonly instruments: readonly InstrumentFacts[];
  /** Why the status page is not available, if it should be. */
  readonly page: string | undefined;
  /** Why the journal cannot be written. */
  readonly journal: string | undefined;
}

export interface InstrumentFacts {
  readonly live: LiveInstrument;
  readonly silence: Silence | undefined;
  /** When its last file arrived, else when its folder was first listed. */
  readonly quietSince: number | undefined;
  /** Files that arrived and match no glob. */
  readonly unmatchedArrivals: { readonly occasions: number; readonly example: string | undefined };
  readonly quarantined: ParkedRuns | undefined;
  readonly held: ParkedRuns | undefined;
  /** How many existing files wait for a decision. */
  readonly asked: number;
}

/** One condition. A condition that is not among the findings is absent. */
export interface Finding {
  readonly kind: LiveAlarm['kind'];
  readonly instrument?: string | undefined;
  /** Undefined if it cannot be judged now: an alarm that is raised stays raised. */
  readonly text?: string;
  /** How long it must last before the alarm is raised. */
  readonly graceMs?: number;
}

/** Whether enough of the time between two moments was on days that count. */
export function isSilent({ afterMs, days }: Silence, from: number, to: number, zone = 'local'): boolean {
  let elapsedMs = 0;
  let start = DateTime.fromMillis(from, { zone });
  while (start.toMillis() < to && elapsedMs < afterMs) {
    // A day may have 23 or 25 hours.
    const end = start.startOf('day').plus({ days: 1 });
    if (days.has(start.weekday)) elapsedMs += Math.min(end.toMillis(), to) - start.toMillis();
    start = end;
  }
  return elapsedMs >= afterMs;
}
