import { atTime } from '../text.js';
import type { Explanation, Finding } from './account.js';
import { accountOfPath } from './account-of-path.js';
import { accountOfRun, addressOf } from './account-of-run.js';
import type { Evidence, KnownRun } from './evidence.js';
import { matching, ownerOf, runPathOf } from './matching.js';

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
      const now = { text: `the file has ${size} bytes, was modified ${atTime(modifiedMs)}${read}` };
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
  text: `run ${id} (${state}) was made of other bytes under the same path, on ${atTime(addedAt)}`,
});

const ofTheSameBytes = ({ id, state, instrument, path }: KnownRun): Finding => ({
  text: `run ${id} of ${instrument} (${state}) has the same bytes, ${path === '' ? 'and was erased' : `from ${path}`}`,
});
