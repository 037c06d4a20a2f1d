import { NotebookError } from '../errors.js';
import type { OpenRun } from '../model.js';
import { originIn } from '../reference.js';
import type { DeliverDeps } from './deps.js';
import { isUntouched, learnTitles } from './ours.js';

/** Gives the experiment its real title, date, body and tags. */
export async function describe(
  run: OpenRun,
  experiment: number,
  fresh: boolean,
  deps: DeliverDeps,
): Promise<void> {
  // Only straight after our own 201 nobody can have touched it; any later change looks first.
  const described = !fresh && (await isDescribed(run, experiment, deps));
  const { dialect } = await deps.memory.facts();
  if (dialect === 'elabftw') await describeElabftw(run, experiment, described, deps);
  else if (!described) await deps.notebook.patchExperiment(experiment, run.draft);
  await deps.record(run.id, { kind: 'described' });
}

/** eLabFTW's PATCH refuses tags after having saved the rest, and bodies are markdown unless told otherwise. */
async function describeElabftw(
  { draft }: OpenRun,
  experiment: number,
  described: boolean,
  { notebook, goOn }: DeliverDeps,
): Promise<void> {
  const { tags, ...fields } = draft;
  if (!described) await notebook.patchExperiment(experiment, { ...fields, content_type: HTML });
  for (const tag of tags) {
    goOn();
    await notebook.addTag(experiment, tag);
  }
}

const HTML = 1;

async function isDescribed(
  run: OpenRun,
  experiment: number,
  { notebook, memory }: DeliverDeps,
): Promise<boolean> {
  const record = await notebook.readExperiment(experiment);
  // A crash between the first creation and its reading back: with nothing in it, it is still as it was made.
  if ((await memory.facts()).keepsTitle === undefined && !record['body']) await learnTitles(record, memory);
  if (run.adopted || isUntouched(record, await memory.facts())) return false;
  // An earlier PATCH arrived, perhaps only in part, and its answer did not.
  if (record.title === run.draft.title && record.date === run.draft.date) {
    const { body } = record;
    // Servers clean the body they store, so only its last line is compared.
    if (typeof body !== 'string' || originIn(body)?.sha256 === originIn(run.draft.body)?.sha256) return true;
    if (body.trim() === '') return false;
  }
  throw new NotebookError(
    'conflict',
    `somebody changed experiment ${experiment} before labfeed had filled it in`,
    {
      lost: false,
      hint: 'labfeed does not overwrite it; finish it by hand, or give it back its provisional title',
    },
  );
}
