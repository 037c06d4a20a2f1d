import { originIn } from '../markers.js';
import type { OpenRun } from '../model.js';
import type { DeliverDeps, ExperimentChanges } from './deps.js';
import { edit, outwaitEdits } from './edit.js';
import { isUntouched, learnTitles } from './ours.js';
import { promptly, StaleError } from './promptly.js';
import { refuseTouched } from './revise-comments.js';
import { changedBefore, isRevised } from './revision.js';
import { setTags } from './set-tags.js';

/** Gives the experiment its real title, date, body and tags. */
export async function describe(
  run: OpenRun,
  experiment: number,
  fresh: boolean,
  deps: DeliverDeps,
): Promise<void> {
  const { dialect } = await deps.memory.facts();
  const { tags: _, ...fields } = run.draft;
  // eLabFTW's PATCH refuses tags after having saved the rest; and there, bodies are markdown unless told otherwise.
  const changes = dialect === 'elabftw' ? { ...fields, content_type: HTML } : run.draft;
  if (!fresh || !(await patchFresh(run, experiment, changes, deps))) {
    if (!(await isDescribed(run, experiment, deps)))
      await edit(run, deps, () => deps.notebook.patchExperiment(experiment, changes));
  }
  if (dialect === 'elabftw') await setTags(run, experiment, deps);
  await deps.record(run.id, { kind: 'described' });
}

/**
 * Only straight after our own 201 nobody can have touched it, and the PATCH may go without a look.
 * False where it waited at the gate until that was no longer sure.
 */
async function patchFresh(
  run: OpenRun,
  experiment: number,
  changes: ExperimentChanges,
  deps: DeliverDeps,
): Promise<boolean> {
  const { notebook, timeoutMs, clock } = deps;
  try {
    await edit(run, deps, () =>
      promptly(timeoutMs, clock, (signal) => notebook.patchExperiment(experiment, changes, signal)),
    );
    return true;
  } catch (error) {
    if (error instanceof StaleError) return false;
    throw error;
  }
}

const HTML = 1;

async function isDescribed(run: OpenRun, experiment: number, deps: DeliverDeps): Promise<boolean> {
  const { notebook, memory } = deps;
  if (run.earlier.length > 0) await outwaitEdits(run, deps);
  const record = await notebook.readExperiment(experiment);
  // A crash between the first creation and its reading back: with nothing in it, it is still as it was made.
  if ((await memory.facts()).keepsTitle === undefined && !record['body']) await learnTitles(record, memory);
  if (run.adopted || isUntouched(record, await memory.facts())) return false;
  // The file was read otherwise before: what became of that is replaced, where nobody has touched it.
  if (run.earlier.length > 0) {
    const { dialect } = await memory.facts();
    const isDone = isRevised(record, run, experiment, dialect);
    await refuseTouched(run, experiment, deps);
    return isDone;
  }
  // An earlier PATCH arrived, perhaps only in part, and its answer did not.
  if (record.title === run.draft.title && record.date === run.draft.date) {
    const { body } = record;
    // Servers clean the body they store, so only its last line is compared.
    if (typeof body !== 'string' || originIn(body)?.sha256 === originIn(run.draft.body)?.sha256) return true;
    if (body.trim() === '') return false;
  }
  throw changedBefore(experiment);
}
