import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { NotYetError } from './interruptions.js';

/** PHP runs a request on for 120 s after its connection was cut; seen: committed 6 s later, with a higher id. */
const ELABFTW_MS = 130_000;

/** After the grace, what was not carried out never will be; before it, not finding it proves nothing. */
export async function graceOver(run: OpenRun, pending: string, deps: DeliverDeps): Promise<void> {
  const { dialect } = await deps.memory.facts();
  const graceMs = Math.max(2 * deps.timeoutMs, dialect === 'elabftw' ? ELABFTW_MS : 0);
  const leftMs = graceMs - deps.losses.sinceMs(run.id);
  if (leftMs > 0) throw new NotYetError(pending, deps.clock.now() + leftMs);
}
