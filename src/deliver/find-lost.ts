import { NotebookError } from '../errors.js';
import { provisionalReference } from '../markers.js';
import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { lookWithGrace } from './grace.js';
import { isOurCreation, isUntouched } from './ours.js';
import { readDownward, readUpward, type Seen } from './window.js';

/**
 * Looks for what an earlier POST of this run may have made. To be called alone: with another creation unanswered,
 * that one's experiment could be taken for this one's.
 */
export const findLost = (run: OpenRun, deps: DeliverDeps): Promise<number | undefined> =>
  lookWithGrace(run, 'a creation whose answer was lost may still be carried out', deps, () =>
    findCreated(run, deps),
  );

async function findCreated(run: OpenRun, deps: DeliverDeps): Promise<number | undefined> {
  const { notebook, record, memory, server } = deps;
  if (run.server !== server) throw held(`the creation's answer was lost at another notebook, ${run.server}`);
  const facts = await memory.facts();
  const candidates = await findCandidates(run, deps);
  // A title is one run's; blank experiments can be anybody's whose creation was lost. More of them than losses: hold.
  const explained = facts.keepsTitle === false ? await memory.countLost() : 1 + run.unseen;
  if (candidates.length > explained) {
    const ids = candidates.join(', ');
    throw held(`the creation's answer was lost, and more experiments than that could be it: ${ids}`);
  }
  const [experiment, ...others] = candidates;
  if (experiment === undefined) {
    // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
    await notebook.listKeys();
    return undefined;
  }
  const sweepBelow = run.unseen > 0 ? { sweepBelow: (others.at(-1) ?? experiment) + 1 } : {};
  await record(run.id, { kind: 'created', experiment, found: true, ...sweepBelow });
  return experiment;
}

/** The id above which all that creations of this run left behind must lie; none if one was lost unseen. */
export const anchorOf = ({ floor, unseen }: OpenRun): number | undefined => (unseen > 0 ? undefined : floor);

async function findCandidates(run: OpenRun, deps: DeliverDeps): Promise<number[]> {
  const facts = await deps.memory.facts();
  const { highest } = facts;
  const candidates: number[] = [];
  const collect = async (experiments: AsyncGenerator<Seen>): Promise<void> => {
    for await (const { id, record } of experiments) {
      if (isOurCreation(record, run.reference, facts) && !(await deps.memory.hasExperiment(id)))
        candidates.push(id);
    }
  };
  const anchor = anchorOf(run);
  if (anchor !== undefined) {
    await collect(readUpward(anchor, deps));
  } else if (highest !== undefined) {
    // Lost before any id or title was known: since then somebody's creation has shown where the ids are.
    await collect(readDownward(highest + 1, deps));
    await collect(readUpward(highest, deps));
  }
  return candidates.sort((a, b) => a - b);
}

/**
 * After the very first creation on a server was lost and another one made, the lost one may lie below it.
 * What is found there is used by the next run before any POST.
 */
export async function sweep(deps: DeliverDeps): Promise<void> {
  const { memory } = deps;
  const facts = await memory.facts();
  // Without knowing whether titles are kept, ours cannot be told from others: later, then.
  if (facts.sweep === undefined || facts.keepsTitle === undefined) return;
  for await (const { id, record } of readDownward(facts.sweep, deps)) {
    if (!isUntouched(record, facts) || (await memory.hasExperiment(id))) continue;
    const reference = typeof record.title === 'string' ? provisionalReference(record.title) : undefined;
    // Another labfeed may file into the same notebook: its creations bear references that are not in our journal.
    if (reference === undefined || (await memory.hasReference(reference)))
      await memory.addSpare(id, reference);
  }
  await memory.learn({ sweep: null });
}

const held = (message: string): NotebookError =>
  new NotebookError('conflict', message, {
    lost: false,
    hint: 'look in the notebook which one it is; labfeed does not guess',
  });
