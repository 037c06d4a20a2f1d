import type { OpenRun } from '../model.js';
import { provisionalTitle } from '../reference.js';
import type { DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { anchorOf, findLost, sweep } from './find-lost.js';
import { learnTitles } from './ours.js';
import { haltSetBack } from './set-back.js';

/** The run's experiment. `fresh`: just made, so that nobody else can have touched it yet. */
export interface Created {
  readonly experiment: number;
  readonly fresh: boolean;
}

/** Makes the run's experiment, or finds the one that an earlier creation made although its answer was lost. */
export async function create(run: OpenRun, deps: DeliverDeps): Promise<Created> {
  const { creations, memory } = deps;
  const isLost = run.step === 'creating';
  if (isLost || (await memory.facts()).sweep !== undefined) {
    const found = await creations.exclude(async () => {
      // First, lest what another run's lost creation left behind be taken for this one's.
      await sweep(deps);
      return isLost ? findLost(run, deps) : undefined;
    });
    if (found !== undefined) return { experiment: found, fresh: false };
  }
  deps.goOn();
  const { highest, keepsTitle } = await memory.facts();
  // Until one id is known there is no floor to look from, and until one title was read back, nothing to look by.
  const together = highest === undefined || keepsTitle === undefined ? creations.exclude : creations.share;
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
  const isOld = highest !== undefined && experiment <= highest;
  if (isOld || (await memory.hasExperiment(experiment)))
    await haltSetBack(
      experiment,
      `it gave a new experiment the id ${experiment}, which was given out before`,
      deps,
    );
  const lostUnseen = run.step === 'creating' && (anchorOf(run) === undefined || keepsTitle === undefined);
  await record(run.id, {
    kind: 'created',
    experiment,
    found: false,
    ...(lostUnseen ? { sweepBelow: experiment } : {}),
  });
  if (keepsTitle === undefined) await learnTitles(await notebook.readExperiment(experiment), deps.memory);
  return experiment;
}
