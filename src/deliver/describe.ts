import { NotebookError } from '../errors.js';
import type { OpenRun } from '../model.js';
import { provisionalTitle } from '../reference.js';
import type { DeliverDeps } from './deps.js';

/** Gives the experiment its real title, date, body and tags. */
export async function describe(
  run: OpenRun,
  experiment: number,
  fresh: boolean,
  deps: DeliverDeps,
): Promise<void> {
  // Only straight after our own 201 nobody can have touched it; any later change looks first.
  const described = !fresh && (await isDescribed(run, experiment, deps));
  if (!described) await deps.notebook.patchExperiment(experiment, run.draft);
  await deps.record(run.id, { kind: 'described' });
}

async function isDescribed(run: OpenRun, experiment: number, { notebook }: DeliverDeps): Promise<boolean> {
  const { title, date } = await notebook.readExperiment(experiment);
  if (title === provisionalTitle(run.reference)) return false;
  // An earlier PATCH arrived and its answer did not. Bodies are cleaned by servers and not compared.
  if (title === run.draft.title && date === run.draft.date) return true;
  throw new NotebookError(
    'conflict',
    `somebody changed experiment ${experiment} before labfeed had filled it in`,
    {
      lost: false,
      hint: 'labfeed does not overwrite it; finish it by hand, or give it back its provisional title',
    },
  );
}
