import { NotebookError } from '../errors.js';
import type { DeliverDeps } from './deps.js';
import { HaltedError } from './interruptions.js';

/** Before the first id is known. One such answer may be an accident on the way; each leaves a blank experiment behind. */
const MOST_WITHOUT_ID = 3;

/**
 * A notebook, or a proxy before it, that makes experiments and never says which cannot be looked through either, since
 * no id is known: to go on would fill it with blank ones.
 */
export async function haltWithoutIds(error: unknown, { memory }: Pick<DeliverDeps, 'memory'>): Promise<void> {
  if (!(error instanceof NotebookError) || error.status !== 201) return;
  if ((await memory.countLost()) < MOST_WITHOUT_ID) return;
  const halted = `the notebook makes experiments and does not say which: ${error.message}. See whether a proxy takes the Location header away; then stop labfeed, run \`labfeed recover --ids A-B\` with the ids of the newest experiments, and start it again`;
  await memory.learn({ halted });
  throw new HaltedError(halted);
}
