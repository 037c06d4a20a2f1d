import type { Dialect } from '../model.js';
import { type Origin, originIn } from '../reference.js';
import type { DeliverDeps } from './deps.js';
import { HaltedError } from './interruptions.js';
import { readUpward } from './window.js';

export interface Preparation {
  /** As configured; `auto` finds out. */
  readonly dialect: 'auto' | Dialect;
  /** Whether a filed experiment that says so is one that this journal should know. */
  isUnknownRun(origin: Origin): Promise<boolean>;
}

/** What has to be known of a server before anything is sent to it. */
export async function prepare({ dialect, isUnknownRun }: Preparation, deps: DeliverDeps): Promise<void> {
  const { memory } = deps;
  const facts = await memory.facts();
  const spoken = dialect === 'auto' ? (facts.dialect ?? (await findDialect(deps))) : dialect;
  if (spoken !== facts.dialect) await memory.learn({ dialect: spoken });
  if (facts.highest !== undefined) await compareAges(facts.highest, isUnknownRun, deps);
}

/** A documented request whose answer differs: eLabFTW's records name the team. */
async function findDialect({ notebook }: DeliverDeps): Promise<Dialect> {
  const keys = await notebook.listKeys();
  return keys.some((key) => 'team' in key && 'can_write' in key) ? 'elabftw' : 'v2';
}

/** Runs above our highest id that bear our mark and are not in the journal: the journal is older than the notebook. */
async function compareAges(
  highest: number,
  isUnknownRun: Preparation['isUnknownRun'],
  deps: DeliverDeps,
): Promise<void> {
  for await (const { id, record } of readUpward(highest, deps)) {
    const origin = typeof record['body'] === 'string' ? originIn(record['body']) : undefined;
    if (origin === undefined || !(await isUnknownRun(origin))) continue;
    throw new HaltedError(
      `experiment ${id} was filed by labfeed, but the journal does not know it: the journal is older than the notebook`,
      {
        hint: 'run `labfeed recover`, which refills the journal from the notebook; nothing is sent until then',
      },
    );
  }
}
