import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { NotYetError } from './interruptions.js';

/** PHP runs a request on for 120 s after its connection was cut; seen: committed 6 s later, with a higher id. */
const ELABFTW_MS = 130_000;

/** How long a request whose answer was lost may still be carried out, whoever the server is. */
export const longestGraceMs = (timeoutMs: number): number => Math.max(2 * timeoutMs, ELABFTW_MS);

/** The same of the server that is spoken to. */
export async function graceMsOf({ memory, timeoutMs }: DeliverDeps): Promise<number> {
  const { dialect } = await memory.facts();
  return dialect === 'elabftw' ? longestGraceMs(timeoutMs) : 2 * timeoutMs;
}

/**
 * Looks for what a request of this run may have left behind. A find counts at once; a not-found only if the look
 * began after the grace, since what was not there when it passed may have come while it went on.
 */
export async function lookWithGrace<T>(
  run: OpenRun,
  pending: string,
  deps: DeliverDeps,
  look: () => Promise<T | undefined>,
): Promise<T | undefined> {
  const graceMs = await graceMsOf(deps);
  const leftMs = (): number => graceMs - deps.losses.sinceMs(run.id);
  const isEarly = leftMs() > 0;
  const found = await look();
  if (found === undefined && isEarly)
    throw new NotYetError(pending, deps.clock.now() + Math.max(0, leftMs()));
  return found;
}
