import { atTime } from '../text.js';
import type { Account, Finding } from './account.js';
import type { Evidence, KnownRun } from './evidence.js';
import { runPathOf } from './matching.js';

/** What became of a file that is a run. */
export function accountOfRun(run: KnownRun, evidence: Evidence): Account {
  const path = runPathOf(evidence);
  const known: Finding = {
    text: `known since ${atTime(run.addedAt)} as run ${run.id} of ${run.instrument}${pathOf(run, path)}`,
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
      return `filed on ${atTime(run.updatedAt)} as experiment ${experiment ?? '?'}: ${addressOf(run, evidence) ?? run.server ?? ''}`;
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
    ...(run.dueAt > now ? [{ text: `it is tried again at ${atTime(run.dueAt)}` }] : []),
  ];
}

export const NOT_RUNNING: Finding = {
  text: 'labfeed is not running',
  hint: 'start it: systemctl start labfeed, or labfeed run',
};

function gateFindings(gate: Evidence['daemon']['gate']): Finding[] {
  switch (gate?.kind) {
    case 'down':
      return [
        {
          text: `the notebook has not been available since ${atTime(gate.since)}: ${gate.reason}`,
          ...(gate.failure === 'auth' && { hint: 'see labfeed keys: the notebook refuses the key' }),
        },
      ];
    case 'held':
      return [{ text: `the notebook takes no more for now, until ${atTime(gate.until)}: ${gate.reason}` }];
    case 'slowed':
    case 'slow start':
      return [
        { text: `requests leave slowly, ${gate.perSecond.toFixed(1)} a second: the notebook takes no more` },
      ];
    case 'open':
    case undefined:
      return [];
  }
}

export function addressOf(
  { server, experiment }: KnownRun,
  { servers }: Pick<Evidence, 'servers'>,
): string | undefined {
  if (server === undefined || experiment === undefined) return undefined;
  const isElabftw = servers.find(({ url }) => url === server)?.dialect === 'elabftw';
  return isElabftw
    ? `${server}/experiments.php?mode=view&id=${experiment}`
    : `${server}/api/v2/experiments/${experiment}`;
}
