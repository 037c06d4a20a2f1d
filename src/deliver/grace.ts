import type { ServerFacts } from '../model.js';

/** PHP runs a request on for 120 s after its connection was cut; seen: committed 6 s later, with a higher id. */
const ELABFTW_MS = 130_000;

/** After this long, what was not carried out never will be; before, not finding it proves nothing. */
export function graceMs({ dialect }: ServerFacts, timeoutMs: number): number {
  return Math.max(2 * timeoutMs, dialect === 'elabftw' ? ELABFTW_MS : 0);
}
