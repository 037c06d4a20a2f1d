import type { OpenRun } from '../model.js';
import { provisionalTitle } from '../reference.js';
import type { DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { findLost, sweep } from './find-lost.js';
import { HaltedError } from './interruptions.js';
import { learnTitles } from './ours.js';

/** The run's experiment. `fresh`: just made, so that nobody else can have touched it yet. */
export interface Created {
  readonly experiment: number;
  readonly fresh: boolean;
}

/** Makes the run's experiment, or finds the one that an earlier creation made although its answer was lost. */
export async function create(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  const { creations, memory } = deps;
  if (run.step === 'creating') {
    const found = await creations.exclude(() => findLost(run, deps));
    if (found !== undefined) return { experiment: found, fresh: false };
  }
  deps.goOn();
  const { highest, sweep: sweepBelow } = await memory.facts();
  if (sweepBelow !== undefined) await creations.exclude(() => sweep(deps));
  // Until one id is known there is no floor to look from, so the first creation goes alone.
  const together = highest === undefined ? creations.exclude : creations.share;
  return together(async () => {
    const spare = await memory.claimSpare(run);
    return spare === undefined
      ? { experiment: await make(run, deps), fresh: true }
      : { experiment: spare, fresh: false };
  });
}

async function make(run: OpenRun, deps: DeliverDeps): Promise<number> {
  const { notebook, record, memory, server, clock } = deps;
  const { highest, keepsTitle } = await memory.facts();
  // Durable before the POST: a crash here looks for the experiment, never makes a second.
  await record(run.id, { kind: 'intended', server, floor: highest, at: clock.now() });
  const title = provisionalTitle(run.reference);
  const experiment = await notebook.createExperiment({ title }).catch(async (error: unknown) => {
    if (!surelyNotDone(error)) deps.losses.note(run.id);
    else await record(run.id, { kind: 'notCreated' });
    throw error;
  });
  if (highest !== undefined && experiment <= highest) await halt(experiment, highest, deps);
  const lostUnseen = run.step === 'creating' && run.floor === undefined;
  await record(run.id, { kind: 'created', experiment, found: false, sweepBelow: lostUnseen });
  if (keepsTitle === undefined) await learnTitles(await notebook.readExperiment(experiment), deps.memory);
  return experiment;
}

/** Ids only ever grow, unless the server was set back to an older state: then no window can be trusted there. */
async function halt(experiment: number, highest: number, { memory }: DeliverDeps): Promise<never> {
  const halted = `the notebook gave a new experiment the id ${experiment}, although ${highest} was given out before: it was set back to an older state, or does not count upwards`;
  await memory.learn({ halted });
  throw new HaltedError(halted);
}
