import { formatDuration, formatTime } from '../text.js';
import {
  type Account,
  type Evidence,
  type Explanation,
  type Finding,
  type InstrumentEvidence,
  type KnownRun,
  matching,
  ownerOf,
  runPathOf,
} from './evidence.js';

/** Why a file was, or was not, ingested. Looks at nothing but the evidence. */
export function conclude(evidence: Evidence): Explanation {
  const run = runOf(evidence);
  const { outcome, answer, findings = [] } = run ? accountOfRun(run, evidence) : accountOfPath(evidence);
  return {
    path: evidence.path,
    outcome,
    answer,
    findings: [...findings, ...matching(evidence), ...fileFindings(evidence, run)],
    run: run?.id,
    experiment: run?.experiment,
    address: run && addressOf(run, evidence),
  };
}

/** The run that this very file is: by its bytes, where they are known, else by its path. */
function runOf(evidence: Evidence): KnownRun | undefined {
  const { path, file, instruments, runs } = evidence;
  const owner = ownerOf(instruments);
  const at = runPathOf(evidence);
  const own = runs.filter(({ instrument }) => owner === undefined || instrument === owner.name);
  // The bytes of one file say nothing about a run of several.
  if (at !== path || file.state !== 'present' || file.sha256 === undefined)
    return own.find((run) => run.path === at) ?? own[0];
  const same = own.filter(({ sha256 }) => sha256 === file.sha256);
  const here = same.find((run) => run.path === path);
  // Where copies are runs of their own, another one's fate says nothing about this file.
  return here ?? (owner?.duplicates === 'ingest' ? undefined : same[0]);
}

function fileFindings({ file, path, runs }: Evidence, run: KnownRun | undefined): Finding[] {
  switch (file.state) {
    case 'absent':
      return [{ text: 'the file itself is not there (any more)' }];
    case 'folder':
      return [];
    case 'unreadable':
      return [{ text: `the file cannot be looked at: ${file.reason}` }];
    case 'present': {
      const { size, modifiedMs, sha256, unread } = file;
      const read = sha256 === undefined ? ` and was not read: ${unread}` : '';
      const now = { text: `the file has ${size} bytes, was modified ${formatTime(modifiedMs)}${read}` };
      const others = runs.filter((other) => other.id !== run?.id);
      return [
        now,
        ...others.filter((other) => other.path === path && other.sha256 !== sha256).map(ofOtherBytes),
        ...others.filter((other) => other.path !== path && other.sha256 === sha256).map(ofTheSameBytes),
      ];
    }
  }
}

const ofOtherBytes = ({ id, state, addedAt }: KnownRun): Finding => ({
  text: `run ${id} (${state}) was made of other bytes under the same path, on ${formatTime(addedAt)}`,
});

const ofTheSameBytes = ({ id, state, instrument, path }: KnownRun): Finding => ({
  text: `run ${id} of ${instrument} (${state}) has the same bytes, ${path === '' ? 'and was erased' : `from ${path}`}`,
});

/** What became, or becomes, of a file that is no run. */
function accountOfPath(evidence: Evidence): Account {
  const { instruments, known, file, runs } = evidence;
  const path = runPathOf(evidence);
  const owner = ownerOf(instruments);
  const asked = known.find(({ verdict }) => verdict === 'asked');
  if (asked) return question(asked.instrument, instruments);
  const before = runs.find((run) => run.path === path);
  const skipped = known.find(({ verdict }) => verdict === 'skipped');
  if (skipped) return passedOver(skipped.instrument, before, instruments);
  if (file.state === 'folder' && owner === undefined) return FOLDER;
  if (owner === undefined || evidence.isJournal) return unclaimed(evidence);
  if (owner.mistakes.length > 0) return stopped(owner);
  if (file.state === 'absent') return absent(owner);
  return underWay(owner, before, evidence);
}

const FOLDER: Account = {
  outcome: 'unmatched',
  answer: { text: 'it is a folder, and no run', hint: 'ask for a file in it' },
};

const named = (name: string, instruments: readonly InstrumentEvidence[]) =>
  instruments.find((one) => one.name === name);

function question(name: string, instruments: readonly InstrumentEvidence[]): Account {
  const count = named(name, instruments)?.asked ?? 0;
  const text = `held by a question: it was there before labfeed first looked into the folder of ${name}${count > 1 ? `, as were ${count - 1} others` : ''}`;
  const hint = `answer it: labfeed backfill ${name}, or labfeed backfill ${name} --since DATE; or with \`existing\` in the configuration`;
  return { outcome: 'asked', answer: { text, hint } };
}

function passedOver(name: string, before: KnownRun | undefined, instruments: readonly InstrumentEvidence[]): Account {
  const instrument = named(name, instruments);
  if (before) {
    const text = `passed over: its bytes were changed after run ${before.id} was made of it, and \`changed: ignore\` of ${name} wants only the first`;
    const hint = `\`changed: new\` files what comes next as runs of their own; to file these bytes, copy the file to another name`;
    return { outcome: 'skipped', answer: { text, hint } };
  }
  const existing = instrument?.existing ?? 'skip';
  const text = `passed over: it was there before labfeed first looked into the folder of ${name} (existing: ${existing})`;
  return {
    outcome: 'skipped',
    answer: { text, hint: 'to file it after all, change its time: touch FILE makes labfeed look at it anew' },
  };
}

function unclaimed({ file, journal }: Evidence): Account {
  if (file.state === 'absent') {
    const text = `there is no such file, no instrument would take it, and ${journal ? 'the journal does not know it' : 'there is no journal yet'}`;
    return { outcome: 'unknown', answer: { text } };
  }
  return { outcome: 'unmatched', answer: { text: 'not ingested: no instrument takes it' } };
}

function stopped({ name, mistakes }: InstrumentEvidence): Account {
  const text = `not ingested: ${name} is stopped, and takes it when its mistake is mended: ${mistakes[0]}`;
  return { outcome: 'stopped', answer: { text, hint: 'labfeed check names every mistake' } };
}

function absent({ name, watch, folder }: InstrumentEvidence): Account {
  if (folder.state === 'present') {
    const text = `there is no such file, and the journal has never known it; ${name} would take it`;
    return { outcome: 'unknown', answer: { text } };
  }
  const text = `the folder ${watch} of ${name} is ${folder.state}: ${folder.reason}; what is in it is not known`;
  const hint = 'check the path, the mount and the permissions; it is picked up when it is back';
  return { outcome: 'unknown', answer: { text, hint } };
}

/** It is to become a run: what does it wait for? */
function underWay(owner: InstrumentEvidence, before: KnownRun | undefined, evidence: Evidence): Account {
  const { link, doneFile, waiting } = owner;
  const { daemon, now, file } = evidence;
  if (link !== undefined) {
    const text = `not ingested: ${link} is a link, and linked folders are not followed`;
    return { outcome: 'unmatched', answer: { text, hint: 'watch the folder that it leads to' } };
  }
  const again = before ? `its bytes were changed since run ${before.id}; ` : '';
  const wait = (text: string, hint?: string): Account => ({
    outcome: 'waiting',
    answer: { text: `not ingested yet: ${again}${text}`, ...(hint !== undefined && { hint }) },
    findings: daemon.running ? [] : [NOT_RUNNING],
  });
  if (file.state === 'unreadable') return wait(`it cannot be read: ${file.reason}`);
  if (doneFile && !doneFile.isThere)
    return wait(
      `its done-file ${doneFile.name} is missing`,
      'the instrument writes it when the file is complete (ready.doneFile)',
    );
  if (waiting) return wait(`${waiting.reason}, seen ${formatDuration(now - waiting.since)} ago`);
  if (!daemon.running) return wait('it is taken once labfeed runs');
  return wait(stillness(owner, evidence));
}

function stillness({ quietMs }: InstrumentEvidence, { file, now }: Evidence): string {
  const modified = file.state === 'present' ? `; it was modified ${formatDuration(now - file.modifiedMs)} ago` : '';
  return `it is taken once labfeed has seen it hold still for ${formatDuration(quietMs)}${modified}`;
}

/** What became of a file that is a run. */
function accountOfRun(run: KnownRun, evidence: Evidence): Account {
  const path = runPathOf(evidence);
  const known: Finding = {
    text: `known since ${formatTime(run.addedAt)} as run ${run.id} of ${run.instrument}${pathOf(run, path)}`,
  };
  if (isCopy(run, path)) {
    const text = `not filed again: the same bytes are run ${run.id} already (${inWords(run, evidence)}), from ${run.path}`;
    const hint = 'a run is known by its bytes; `duplicates: ingest` files copies under other paths as well';
    return { outcome: 'duplicate', answer: { text, hint }, findings: [known] };
  }
  const answer = { text: inWords(run, evidence), hint: run.nextStep };
  return { outcome: run.state, answer, findings: [...blockers(run, evidence), known] };
}

/** Erased runs have no path: nobody can say any more that it was another. */
const isCopy = (run: KnownRun, path: string): boolean => run.path !== '' && run.path !== path;

const pathOf = (run: KnownRun, path: string): string =>
  run.path === '' ? ', whose name and history were erased' : isCopy(run, path) ? `, under ${run.path}` : '';

function inWords(run: KnownRun, evidence: Evidence): string {
  const { state, experiment, reason } = run;
  const because = reason === undefined ? '' : `: ${reason}`;
  const made = experiment === undefined ? '' : `, as experiment ${experiment}`;
  switch (state) {
    case 'done':
      return `filed on ${formatTime(run.updatedAt)} as experiment ${experiment ?? '?'}: ${addressOf(run, evidence) ?? run.server ?? ''}`;
    case 'quarantined':
      return `quarantined${made}${because}`;
    case 'held':
      return `held, it needs a decision${made}${because}`;
    case 'ignored':
      return `ignored: a person decided that it is not to be filed${because}`;
    case 'queued':
    case 'waiting':
      return `taken, and waits to be sent${because}`;
    case 'sending':
      return `being sent${made}${because}`;
  }
}

/** What keeps a run from being sent. */
function blockers(run: KnownRun, { servers, daemon, now }: Evidence): Finding[] {
  if (run.state !== 'queued' && run.state !== 'sending') return [];
  const halted = servers.find(({ halted }) => halted !== undefined)?.halted;
  return [
    ...(halted === undefined ? [] : [{ text: `nothing is sent: ${halted}`, hint: 'labfeed recover' }]),
    ...(daemon.running ? gateFindings(daemon.gate) : [NOT_RUNNING]),
    ...(run.dueAt > now ? [{ text: `it is tried again at ${formatTime(run.dueAt)}` }] : []),
  ];
}

const NOT_RUNNING: Finding = {
  text: 'labfeed is not running',
  hint: 'start it: systemctl start labfeed, or labfeed run',
};

function gateFindings(gate: Evidence['daemon']['gate']): Finding[] {
  switch (gate?.kind) {
    case 'down':
      return [
        {
          text: `the notebook has not been available since ${formatTime(gate.since)}: ${gate.reason}`,
          ...(gate.failure === 'auth' && { hint: 'see labfeed keys: the notebook refuses the key' }),
        },
      ];
    case 'held':
      return [{ text: `the notebook takes no more for now, until ${formatTime(gate.until)}: ${gate.reason}` }];
    case 'slowed':
    case 'slow start':
      return [{ text: `requests leave slowly, ${gate.perSecond.toFixed(1)} a second: the notebook takes no more` }];
    case 'open':
    case undefined:
      return [];
  }
}

function addressOf({ server, experiment }: KnownRun, { servers }: Pick<Evidence, 'servers'>): string | undefined {
  if (server === undefined || experiment === undefined) return undefined;
  const isElabftw = servers.find(({ url }) => url === server)?.dialect === 'elabftw';
  return isElabftw
    ? `${server}/experiments.php?mode=view&id=${experiment}`
    : `${server}/api/v2/experiments/${experiment}`;
}
