import type { Live, LiveAlarm } from '../live.js';
import { type Facts, type Finding, trouble, unsure } from './facts.js';
import { instrumentTroubles } from './instrument-troubles.js';

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
