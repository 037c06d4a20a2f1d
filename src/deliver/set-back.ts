import type { DeliverDeps } from './deps.js';
import { HaltedError } from './interruptions.js';

/**
 * Ids only ever grow, unless the server was set back to an older state: then no window can be trusted there.
 * From this id on, at the latest, it may hold anything.
 */
export async function haltSetBack(id: number, sign: string, { memory }: DeliverDeps): Promise<never> {
  const halted = `the notebook was set back to an older state, or does not count upwards: ${sign}. Stop labfeed, run \`labfeed recover\` and start it again`;
  await memory.learn({ halted, setBack: id });
  throw new HaltedError(halted);
}
