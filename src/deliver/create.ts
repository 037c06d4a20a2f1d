import { provisionalTitle } from '../markers.js';
import type { OpenRun } from '../model.js';
import type { DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { anchorOf, findLost, sweep } from './find-lost.js';
import { HaltedError } from './interruptions.js';
import { learnTitles } from './ours.js';
import { haltSetBack } from './set-back.js';
import { haltWithoutIds } from './without-ids.js';

/** The run's experiment. `fresh`: just made, so that nobody else can have touched it yet. */
export interface Created {
  readonly experiment: number;
  readonly fresh: boolean;
}

/** Makes the run's experiment, or finds the one that an earlier creation made although its answer was lost. */
export async function create(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  const { creations, memory } = deps;
  const { highest, keepsTitle, sweep: pending } = await memory.facts();
  if (run.step === 'creating' || pending !== undefined)
    return creations.exclude(() => lookAndMake(run, deps));
  // Until one id is known there is no floor to look from, and until one title was read back, nothing to look by.
  const together = highest === undefined || keepsTitle === undefined ? creations.exclude : creations.share;
  return together(() => useSpareOrMake(run, 0, deps));
}

/** In one go: a creation in between could make known what the look had to do without. */
async function lookAndMake(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  // First, lest what another run's lost creation left behind be taken for this one's.
  await sweep(deps);
  if (run.step !== 'creating') return useSpareOrMake(run, 0, deps);
  const { keepsTitle } = await deps.memory.facts();
  const found = await findLost(run, deps);
  if (found !== undefined) return { experiment: found, fresh: false };
  const isUnseen = anchorOf(run) === undefined || keepsTitle === undefined;
  return useSpareOrMake(run, isUnseen ? run.unseen + 1 : 0, deps);
}

async function useSpareOrMake(run: OpenRun, unseen: number, deps: DeliverDeps): Promise<Created> {
  deps.goOn();
  const spare = await deps.memory.claimSpare(run);
  if (spare !== undefined) return { experiment: spare, fresh: false };
  return { experiment: await make(run, unseen, deps), fresh: true };
}

/** `unseen`: how many earlier creations of the run may have left behind what nobody could look for. */
async function make(run: OpenRun, unseen: number, deps: DeliverDeps): Promise<number> {
  const { notebook, record, memory, server, clock } = deps;
  const { highest, keepsTitle, halted } = await memory.facts();
  // While this one waited for its turn, another may have met what nothing more may be sent after.
  if (halted !== undefined) throw new HaltedError(halted);
  // Durable before the POST: a crash here looks for the experiment, never makes a second.
  await record(run.id, { kind: 'intended', server, floor: highest, unseen, at: clock.now() });
  const title = provisionalTitle(run.reference);
  const experiment = await notebook.createExperiment({ title }).catch(async (error: unknown) => {
    if (surelyNotDone(error)) await record(run.id, { kind: 'notCreated' });
    else deps.losses.note(run.id);
    if (highest === undefined) await haltWithoutIds(error, deps);
    throw error;
  });
  const isOld = highest !== undefined && experiment <= highest;
  if (isOld || (await memory.hasExperiment(experiment)))
    await haltSetBack(
      experiment,
      `it gave a new experiment the id ${experiment}, which was given out before`,
      deps,
    );
  const sweepBelow = unseen > 0 ? { sweepBelow: experiment } : {};
  await record(run.id, { kind: 'created', experiment, found: false, ...sweepBelow });
  if (keepsTitle === undefined) await learnTitles(await notebook.readExperiment(experiment), deps.memory);
  return experiment;
}
