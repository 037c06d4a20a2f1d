import { NotebookError } from '../errors.js';
import type { OpenRun } from '../model.js';
import { provisionalTitle } from '../reference.js';
import type { DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { NotYetError } from './interruptions.js';

/** After so many missing ids in a row, the end of the server's numbering is taken to be reached. */
const END_OF_IDS = 8;

/** The run's experiment: made, or found again if an earlier creation's answer was lost. */
export async function create(
  run: OpenRun,
  deps: DeliverDeps,
): Promise<{ experiment: number; fresh: boolean }> {
  if (run.step === 'creating') {
    const found = await deps.creations.exclude(() => findLost(run, deps));
    if (found !== undefined) return { experiment: found, fresh: false };
  }
  deps.goOn();
  const { highest } = await deps.facts();
  // Until one id is known there is no floor to look from, so the first creation goes alone.
  const together = highest === undefined ? deps.creations.exclude : deps.creations.share;
  return { experiment: await together(() => make(run, deps)), fresh: true };
}

async function make(run: OpenRun, deps: DeliverDeps): Promise<number> {
  const { notebook, record, facts, server, clock } = deps;
  const { highest, keepsTitle } = await facts();
  // Durable before the POST: a crash here looks for the experiment, never makes a second.
  await record(run.id, { kind: 'intended', server, floor: highest, at: clock.now() });
  const title = provisionalTitle(run.reference);
  const experiment = await notebook.createExperiment({ title }).catch(async (error: unknown) => {
    if (surelyNotDone(error)) await record(run.id, { kind: 'notCreated' });
    throw error;
  });
  await record(run.id, { kind: 'created', experiment, found: false });
  if (keepsTitle === undefined) {
    await deps.learn({ keepsTitle: (await notebook.readExperiment(experiment)).title === title });
  }
  return experiment;
}

/** Looks for what an earlier POST may have made. A find counts at once, a not-found only after the grace. */
async function findLost(run: OpenRun, deps: DeliverDeps): Promise<number | undefined> {
  const { notebook, record, clock, graceMs } = deps;
  const title = provisionalTitle(run.reference);
  const matches = await experimentsTitled(title, await searchableFloor(run, deps), deps);
  if (matches.length > 1) {
    throw held(
      `the creation's answer was lost, and the notebook has several experiments named ${title}: ${matches.join(', ')}`,
    );
  }
  const [experiment] = matches;
  if (experiment !== undefined) {
    await record(run.id, { kind: 'created', experiment, found: true });
    return experiment;
  }
  // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
  await notebook.listKeys();
  const until = (run.intentAt ?? 0) + graceMs;
  if (clock.now() < until) {
    throw new NotYetError('a creation whose answer was lost may still be carried out', until);
  }
  await record(run.id, { kind: 'notCreated' });
  return undefined;
}

/** The id above which a lost experiment must lie, where looking can decide at all. */
async function searchableFloor(run: OpenRun, { server, facts }: DeliverDeps): Promise<number> {
  if (run.server !== server) throw held(`the creation's answer was lost at another notebook, ${run.server}`);
  if (run.floor === undefined) throw held('the answer to the first creation on this notebook was lost');
  const { keepsTitle } = await facts();
  if (keepsTitle === false)
    throw held(
      "the creation's answer was lost, and this notebook does not keep the title by which it could be found",
    );
  return run.floor;
}

async function experimentsTitled(
  title: string,
  floor: number,
  { notebook, goOn }: DeliverDeps,
): Promise<number[]> {
  const matches: number[] = [];
  for (let id = floor + 1, missing = 0; missing < END_OF_IDS; id++) {
    goOn();
    const seen = await notebook.readExperiment(id).catch((error: unknown) => {
      if (error instanceof NotebookError && error.failure === 'conflict') return error;
      throw error;
    });
    if (seen instanceof NotebookError) {
      // A 403 is somebody else's private entry: an id that exists, and is not ours.
      missing = seen.status === 404 ? missing + 1 : 0;
    } else {
      missing = 0;
      if (seen.title === title) matches.push(id);
    }
  }
  return matches;
}

const held = (message: string): NotebookError =>
  new NotebookError('conflict', message, {
    lost: false,
    hint: 'look in the notebook whether the experiment is there; labfeed does not guess',
  });
