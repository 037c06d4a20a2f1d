import type { UnfiledRun } from '../../journal/evidence.js';
import type { Finding, FindingKind } from './findings.js';

/** What the journal says of a run that is not, or not yet, in the notebook. */
export function tellUnfiled(run: UnfiledRun): Finding {
  const { id, instrument, path, experiment } = run;
  return { kind: kindOf(run), instrument, run: id, experiment, path, text: textOf(run) };
}

function kindOf({ state, attempts }: UnfiledRun): FindingKind {
  if (state === 'held' || state === 'quarantined') return state;
  return attempts > 0 ? 'interrupted' : 'on its way';
}

/** The first line of a reason; the others say what to do, as `show` tells in full. */
const textOf = ({ state, reason }: UnfiledRun): string =>
  reason === undefined ? `it is ${state}` : (reason.split('\n', 1)[0] ?? '');
