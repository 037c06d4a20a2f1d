import { splitHint } from '../errors.js';
import { describeFollowed } from '../growth.js';
import type { RunState } from '../model.js';
import { describeSource, formatDuration, formatTime, joinWords, plural, relativeTime, shellWord } from '../text.js';
import { uploadObstacle } from '../uploads.js';
import { PRIVATE_HINT, PRIVATE_PREFIX } from '../watch/match.js';
import { type Evidence, type InstrumentEvidence, type KnownRun, ownerOf, runOf, runPathOf } from './gather.js';

/** The answer for one file. `why --json` prints it. */
export type Explanation = ReturnType<typeof conclude>;

/** The state of the run, if the file is one. */
type Outcome =
  | RunState
  /** A run has the same content. */
  | 'duplicate'
  /** Skipped, as configured. */
  | 'skipped'
  /** Part of a backlog that waits for a decision. */
  | 'asked'
  /** No instrument takes it. */
  | 'unmatched'
  /** The instrument that takes it is stopped by a mistake in the configuration. */
  | 'stopped'
  /** There is no such file, and the journal does not know it. */
  | 'unknown';

export interface Finding {
  readonly text: string;
  /** What can be done. */
  readonly hint?: string | undefined;
}

interface Answer {
  readonly outcome: Outcome;
  /** What happened to the file. */
  readonly answer: Finding;
  /** The evidence for the answer. */
  readonly findings: readonly Finding[];
}

const answer = (outcome: Outcome, text: string, hint?: string, findings: readonly Finding[] = []): Answer => ({
  outcome,
  answer: { text, hint },
  findings,
});

/** Why a file was or was not filed. Depends on the evidence alone. */
export function conclude(evidence: Evidence) {
  const run = runOf(evidence);
  const explained = run ? explainRun(run, evidence) : explainFile(evidence);
  return {
    path: evidence.path,
    ...explained,
    findings: [
      ...explained.findings,
      ...hiddenFinding(evidence.path),
      ...(evidence.followed ? [{ text: `the file keeps growing: ${describeFollowed(evidence.followed)}` }] : []),
      ...(evidence.elsewhere.machine === undefined
        ? [...matchFindings(evidence), ...fileFindings(evidence, run)]
        : machineFindings(evidence)),
    ],
    run: run?.id,
    experiment: run?.experiment,
    address: run && addressOf(run, evidence),
  };
}

/** A file of another machine of the fleet, which alone knows its folder. */
function machineFindings({ elsewhere: { machine, inside, seen, places }, now }: Evidence): Finding[] {
  const away = seen?.isAway ? `, which is away and was last seen ${relativeTime(seen.at, now)}` : '';
  const [place] = places;
  const watched = place ? `; ${place.instrument} watches ${place.watch} there` : '';
  return [
    { text: `its file is, or was, ${inside} on ${machine}${away}${watched}`, hint: askThere([machine ?? ''], inside) },
  ];
}

const askThere = (machines: readonly string[], path: string): string =>
  `for what only that machine knows, on ${joinWords(machines)}: labfeed why ${shellWord(path)}`;

/** A file that is not a run is known only to the machine that watches its folder. */
function explainElsewhere({ elsewhere: { machine, inside, places, isFleetUnknown } }: Evidence): Answer {
  const names = [...new Set(places.map((place) => (place.isAway ? `${place.machine} (away)` : place.machine)))];
  const watch = names.length === 1 ? 'watches' : 'watch';
  const such = places.length === 0 ? '' : `; ${joinWords(names)} ${watch} such a folder, and may know more`;
  const machines = [...new Set(places.map((place) => place.machine))];
  const runs = isFleetUnknown ? 'no run that this machine knows has it' : 'no run of the fleet has it';
  const text = `${runs}, and it is not on this machine${such}`;
  return answer('unknown', text, machine === undefined ? askThere(machines, inside) : undefined);
}

/** A file that labfeed was moving or deleting when it was killed. */
function hiddenFinding(path: string): Finding[] {
  const [, folder, name] = HIDDEN.exec(path) ?? [];
  if (name === undefined) return [];
  const text = `it is ${folder}${name}, with the name that labfeed gives a file while it moves or deletes it`;
  return [{ text, hint: PRIVATE_HINT }];
}

const HIDDEN = new RegExp(`^(.*/)\\${PRIVATE_PREFIX}[0-9a-f]+-([^/]+)$`, 's');

function explainRun(run: KnownRun, evidence: Evidence): Answer {
  const path = runPathOf(evidence);
  // The path of an erased run is unknown, so it is not called another path.
  const isCopy = run.path !== '' && run.path !== path;
  const where = run.path === '' ? '; its name and history were erased' : isCopy ? `, at ${run.path}` : '';
  const known = {
    text: `in the journal since ${formatTime(run.addedAt)} as run ${run.id} of ${run.instrument}${where}`,
  };
  if (isCopy && evidence.file.state === 'absent') {
    const text = `the file is gone; its content was recorded as run ${run.id}, whose file is now ${run.path} (${describeRun(run, evidence)})`;
    return answer(run.state, text, run.nextStep, [known]);
  }
  if (isCopy) {
    const text = `not filed again: run ${run.id}, from ${run.path}, has the same content (${describeRun(run, evidence)})`;
    const hint = 'runs are identified by their content; `duplicates: ingest` files copies at other paths, too';
    return answer('duplicate', text, hint, [known]);
  }
  return answer(run.state, describeRun(run, evidence), run.nextStep, [
    ...obstacles(run, evidence),
    ...sourceFindings(run, evidence),
    ...(run.versions === 0 ? [] : [{ text: versionsOf(run), hint: `labfeed show ${run.id} lists them` }]),
    known,
  ]);
}

const versionsOf = ({ versions }: KnownRun): string =>
  `the file has changed: labfeed has seen ${plural(versions, 'version')} of it`;

/** What became of the file. */
function sourceFindings({ id }: KnownRun, { sources, path }: Evidence): Finding[] {
  const files = sources.get(id) ?? [];
  const own = files.find((file) => file.path === path) ?? files[0];
  if (!own) return [];
  const words = describeSource(own);
  return words === undefined ? [] : [{ text: `its file ${words}` }];
}

function describeRun(run: KnownRun, evidence: Evidence): string {
  const { state, experiment, failure, reason } = run;
  const isUpdate = run.versions > 0 && experiment !== undefined;
  const as = experiment === undefined ? '' : ` (experiment ${experiment})`;
  const because = reason === undefined ? '' : `: ${reason}`;
  const failed = reason === undefined ? '' : `; the last attempt failed: ${reason}`;
  switch (state) {
    case 'done':
      return `filed on ${formatTime(run.updatedAt)} as experiment ${experiment ?? '?'}: ${addressOf(run, evidence) ?? run.server ?? ''}`;
    case 'quarantined':
      return `quarantined${as}${because}`;
    case 'held':
      return `held until a person decides${as}${because}`;
    case 'ignored':
      return failure === undefined ? `set aside${because}` : `ignored: a person decided not to file it${because}`;
    case 'queued':
    case 'waiting':
      return `waiting to be sent${failed}`;
    case 'sending':
      return isUpdate ? `its new version is to update experiment ${experiment}${failed}` : `being sent${as}${failed}`;
  }
}

/** What keeps a run from being sent, or its raw files from being attached. */
function obstacles(run: KnownRun, { servers, daemon, uploads, elsewhere, now }: Evidence): Finding[] {
  if (run.state === 'done') return run.attachments.flatMap((file) => describeFile(file, run, uploads));
  if (run.state !== 'queued' && run.state !== 'sending') return [];
  const halted = servers.find((server) => server.halted !== undefined)?.halted;
  return [
    ...(halted === undefined ? [] : [{ text: `nothing is sent: ${halted}`, hint: 'labfeed recover' }]),
    ...(daemon.running ? [...limiterFindings(daemon.gate), ...leaderFindings(elsewhere)] : [NOT_RUNNING]),
    ...(run.dueAt > now ? [{ text: `the next attempt is at ${formatTime(run.dueAt)}` }] : []),
  ];
}

/** In a fleet, another machine may deliver. */
function leaderFindings({ leader }: Evidence['elsewhere']): Finding[] {
  if (leader === undefined) return [];
  if (leader === null)
    return [{ text: 'no machine of the fleet delivers at present', hint: 'start one with `role: deliver`' }];
  return [{ text: `${leader} delivers for the fleet` }];
}

function describeFile(
  { kind, name, upload, isRefused, reason }: KnownRun['attachments'][number],
  run: KnownRun,
  uploads: Evidence['uploads'],
): Finding[] {
  if (kind === 'surplus') return [];
  const what = kind === 'plot' ? `its plot ${name}` : `its raw file ${name}`;
  if (upload !== undefined) return [{ text: `${what} is attached` }];
  if (isRefused) return reason === undefined ? [] : [{ text: reason }];
  const obstacle = uploadObstacle(run, uploads);
  const text = `${what} waits to be attached`;
  if (obstacle) return [{ text: `${text}: ${obstacle.text}`, hint: obstacle.hint }];
  return [{ text: reason ?? text }];
}

const NOT_RUNNING: Finding = {
  text: 'labfeed is not running',
  hint: 'start it: systemctl start labfeed, or labfeed run',
};

function limiterFindings(limiter: Evidence['daemon']['gate']): Finding[] {
  switch (limiter?.kind) {
    case 'down': {
      const text = `the notebook has been unavailable since ${formatTime(limiter.since)}: ${limiter.reason}`;
      return [limiter.failure === 'auth' ? { text, hint: 'replace the key: labfeed keys set' } : { text }];
    }
    case 'held':
      return [{ text: `no request is sent before ${formatTime(limiter.until)}: ${limiter.reason}` }];
    case 'slowed':
    case 'slow start': {
      const why = limiter.kind === 'slowed' ? 'the notebook accepts no more' : 'after an outage';
      return [{ text: `requests are limited to ${limiter.perSecond.toFixed(1)} per second: ${why}` }];
    }
    // Reported above, from the journal.
    case 'halted':
    case 'open':
    case undefined:
      return [];
  }
}

function addressOf({ server, experiment }: KnownRun, { servers }: Pick<Evidence, 'servers'>): string | undefined {
  if (server === undefined || experiment === undefined) return undefined;
  return servers.find(({ url }) => url === server)?.dialect === 'elabftw'
    ? `${server}/experiments.php?mode=view&id=${experiment}`
    : `${server}/api/v2/experiments/${experiment}`;
}

/** The answer for a file that is not a run, or not yet. */
function explainFile(evidence: Evidence): Answer {
  const { instruments, known, file, runs, elsewhere } = evidence;
  const owner = ownerOf(instruments);
  const isElsewhere = elsewhere.machine !== undefined || (elsewhere.places.length > 0 && file.state === 'absent');
  if (isElsewhere && known.length === 0) return explainElsewhere(evidence);
  const inBacklog = known.find(({ verdict }) => verdict === 'asked');
  if (inBacklog) return explainBacklog(inBacklog.instrument, instruments);
  const path = runPathOf(evidence);
  const earlier = runs.find((run) => run.path === path);
  const skipped = known.find(({ verdict }) => verdict === 'skipped');
  if (skipped) return explainSkipped(skipped.instrument, earlier, instruments);
  if (file.state === 'folder' && owner?.partOf === undefined)
    return answer('unmatched', 'it is a folder, not a run', 'give the path of a file in it');
  if (owner === undefined || evidence.isJournal) return explainUnmatched(evidence);
  if (evidence.isKept) return explainKept(evidence);
  const [mistake] = owner.mistakes ?? [];
  if (mistake !== undefined) return explainStopped(owner.name, mistake);
  if (file.state === 'absent') return explainAbsent(owner);
  return explainWaiting(owner, earlier, evidence);
}

function explainBacklog(name: string, instruments: readonly InstrumentEvidence[]): Answer {
  const count = instruments.find((one) => one.name === name)?.asked ?? 0;
  const others = count > 1 ? `, with ${plural(count - 1, 'other file')}` : '';
  const text = `waiting for a decision: it was in the folder of ${name} before the first scan${others}`;
  const hint = `decide: labfeed backfill ${name}, optionally with --since DATE or --skip; or set \`existing\` in the configuration`;
  return answer('asked', text, hint);
}

function explainSkipped(
  name: string,
  earlier: KnownRun | undefined,
  instruments: readonly InstrumentEvidence[],
): Answer {
  if (earlier) {
    const text = `skipped: its content changed after it became run ${earlier.id}, and ${name} has \`changed: ignore\``;
    const hint =
      'with `changed: new`, later changes become new runs, and with `changed: revise` they update this one; to file this content, copy it to another name';
    return answer('skipped', text, hint);
  }
  const existing = instruments.find((one) => one.name === name)?.existing ?? 'skip';
  const text = `skipped: it was in the folder of ${name} before the first scan (existing: ${existing})`;
  return answer('skipped', text, 'to file it, change its modification time: touch FILE');
}

function explainUnmatched({ file, journal }: Evidence): Answer {
  if (file.state !== 'absent') return answer('unmatched', 'not filed: no instrument matches it');
  const unknown = journal ? 'the journal does not know it' : 'there is no journal yet';
  return answer('unknown', `there is no such file, no instrument would match it, and ${unknown}`);
}

function explainStopped(name: string, mistake: string): Answer {
  const text = `not filed: ${name} is stopped by a mistake in the configuration: ${mistake}`;
  return answer('stopped', text, 'correct it; to see all mistakes: labfeed check');
}

function explainAbsent({ name, watch, folder }: InstrumentEvidence): Answer {
  if (folder.state === 'present')
    return answer('unknown', `there is no such file, and the journal does not know it; ${name} would take it`);
  const text = `unknown: the folder ${watch} of ${name} is ${folder.state}: ${folder.reason}`;
  const hint = 'check the path, the mount and the permissions; labfeed continues when the folder is back';
  return answer('unknown', text, hint);
}

/** In a fleet, a run has its number once it has reached the machine that delivers. */
function explainKept({ daemon, elsewhere: { trouble } }: Evidence): Answer {
  const until =
    trouble === undefined
      ? 'on its way to the machine that delivers for the fleet'
      : `kept on this machine until the database of the fleet is back: ${trouble}`;
  return answer('waiting', `taken, and ${until}`, undefined, daemon.running ? [] : [NOT_RUNNING]);
}

/** The file will become a run. */
function explainWaiting(
  owner: InstrumentEvidence,
  earlier: KnownRun | undefined,
  { daemon, now, file, isUntouched }: Evidence,
): Answer {
  const { link, doneFile, waiting, quietMs } = owner;
  if (link !== undefined) {
    const text = `not filed: ${link} is a symbolic link, and linked folders are not followed`;
    return answer('unmatched', text, 'watch the folder that the link points to');
  }
  const next = owner.changed === 'revise' ? ', which it will update' : '';
  const changed = earlier ? `its content changed after run ${earlier.id}${next}; ` : '';
  const waitFor = (text: string, hint?: string): Answer =>
    answer('waiting', `not filed yet: ${changed}${text}`, hint, daemon.running ? [] : [NOT_RUNNING]);
  if (file.state === 'unreadable') return waitFor(`it cannot be read: ${file.reason}`, file.hint);
  if (doneFile && !doneFile.isThere) {
    const hint = 'the instrument must write it when the file is complete (`ready.doneFile`)';
    return waitFor(`its done-file ${doneFile.name} is missing`, hint);
  }
  if (waiting) {
    const { what, hint } = splitHint(waiting.reason);
    return waitFor(`${what}; first seen ${formatDuration(now - waiting.since)} ago`, hint);
  }
  if (!daemon.running) return waitFor('labfeed takes it once it is running');
  if (earlier && isUntouched) {
    const text = 'its size and modification time are as before, so it is noticed when labfeed compares old files again';
    return waitFor(`${text}, at the latest in some weeks`, 'to have it taken now, change its time: touch FILE');
  }
  const modified = file.state === 'present' ? `; it was modified ${formatDuration(now - file.modifiedMs)} ago` : '';
  return waitFor(`labfeed takes it once it has been unchanged for ${formatDuration(quietMs)}${modified}`);
}

/** Which folders and globs match, or by which rules the file was missed. */
function matchFindings({ path, instruments, isJournal }: Evidence): Finding[] {
  if (isJournal) return [{ text: 'it belongs to the journal of labfeed' }];
  if (instruments.length === 0) return [{ text: 'the configuration has no instruments' }];
  const owner = ownerOf(instruments);
  const inside = instruments.filter(({ rule }) => rule.kind !== 'outside');
  if (owner)
    return [...describeOwner(owner), ...inside.filter((one) => one !== owner).map((one) => describeOther(one, owner))];
  if (inside.length > 0) return inside.map(describeMiss);
  const watched = instruments.find(({ watch }) => watch === path);
  if (watched) return [{ text: `it is the folder that ${watched.name} watches` }];
  const [nearest] = instruments.toSorted((a, b) => distanceOf(a) - distanceOf(b));
  return [{ text: `it is in no watched folder; the nearest is ${nearest?.watch}, of ${nearest?.name}` }];
}

const distanceOf = ({ rule }: InstrumentEvidence): number => (rule.kind === 'outside' ? rule.distance : 0);

function describeOwner({ name, watch, rule, folder, partOf }: InstrumentEvidence): Finding[] {
  const pattern = rule.kind === 'taken' ? rule.pattern : '';
  const problem = folder.state === 'present' ? '' : `, which is ${folder.state}: ${folder.reason}`;
  return [
    { text: `it matches "${pattern}" of ${name}, which watches ${watch}${problem}` },
    ...(partOf === undefined ? [] : [{ text: `it belongs to a run of several files: ${partOf}` }]),
  ];
}

/** Another instrument that watches the same folder. */
function describeOther(other: InstrumentEvidence, owner: InstrumentEvidence): Finding {
  if (other.rule.kind !== 'taken') return describeMiss(other);
  return {
    text: `it also matches "${other.rule.pattern}" of ${other.name}, but ${owner.name} comes first`,
    hint: 'a file belongs to the first instrument that matches it; if that is wrong, make the globs more specific',
  };
}

function describeMiss({ name, watch, files, rule }: InstrumentEvidence): Finding {
  const start = `${name} watches ${watch}, but`;
  switch (rule.kind) {
    case 'ignore':
      return {
        text: `${start} ignores it: \`ignore\` "${rule.pattern}" matches it or a folder above it`,
        hint: `if it should be filed, change \`ignore\` of ${name}`,
      };
    case 'doneFile':
      return { text: `${start} treats it as a done-file: its name matches "${rule.pattern}"` };
    case 'run':
      return {
        text: `${start} its runs consist of several files (${rule.pattern}), and this is not one of them`,
        hint: `if it belongs to a run, change \`run\` of ${name}`,
      };
    case 'files':
    case 'outside':
    case 'taken': {
      const otherCase = rule.kind === 'files' ? rule.otherCase : undefined;
      return {
        text: `${start} none of its globs matches: ${files.map((glob) => `"${glob}"`).join(', ')}`,
        hint:
          otherCase === undefined
            ? `if it should be filed, add a glob to \`files\` of ${name}`
            : `"${otherCase}" differs only in upper and lower case; add a glob in the other case to \`files\` of ${name}`,
      };
    }
  }
}

function fileFindings({ file, path, runs }: Evidence, run: KnownRun | undefined): Finding[] {
  switch (file.state) {
    case 'absent':
      return [{ text: 'the file does not exist' }];
    case 'folder':
      return [];
    case 'unreadable':
      return [{ text: `the file cannot be read: ${file.reason}` }];
    case 'present': {
      const { size, modifiedMs, sha256, unread } = file;
      const unhashed = sha256 === undefined ? `; its content was not compared: ${unread}` : '';
      const others = runs.filter((other) => other.id !== run?.id);
      return [
        { text: `the file has ${plural(size, 'byte')} and was modified on ${formatTime(modifiedMs)}${unhashed}` },
        ...others.filter((other) => other.path === path && other.sha256 !== sha256).map(describeSamePath),
        ...others.filter((other) => other.path !== path && other.sha256 === sha256).map(describeSameContent),
      ];
    }
  }
}

const describeSamePath = ({ id, state, addedAt }: KnownRun): Finding => ({
  text: `run ${id} (${state}), added on ${formatTime(addedAt)}, has the same path but other content`,
});

const describeSameContent = ({ id, state, instrument, path }: KnownRun): Finding => ({
  text: `run ${id} of ${instrument} (${state}) has the same content, ${path === '' ? 'and was erased' : `from ${path}`}`,
});
