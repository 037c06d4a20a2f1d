import { spokenDuration } from '../text.js';
import type { Account } from './account.js';
import { NOT_RUNNING } from './account-of-run.js';
import type { Evidence, InstrumentEvidence, KnownRun } from './evidence.js';
import { ownerOf, runPathOf } from './matching.js';

/** What became, or becomes, of a file that is no run. */
export function accountOfPath(evidence: Evidence): Account {
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

function passedOver(
  name: string,
  before: KnownRun | undefined,
  instruments: readonly InstrumentEvidence[],
): Account {
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
  if (waiting) return wait(`${waiting.reason}, seen ${spokenDuration(now - waiting.since)} ago`);
  if (!daemon.running) return wait('it is taken once labfeed runs');
  return wait(stillness(owner, evidence));
}

function stillness({ quietMs }: InstrumentEvidence, { file, now }: Evidence): string {
  const modified =
    file.state === 'present' ? `; it was modified ${spokenDuration(now - file.modifiedMs)} ago` : '';
  return `it is taken once labfeed has seen it hold still for ${spokenDuration(quietMs)}${modified}`;
}
