import { NotebookError } from '../errors.js';
import type { OpenRun } from '../model.js';
import { blame } from './blame.js';
import { postComment } from './comment.js';
import { create } from './create.js';
import type { DeliverDeps } from './deps.js';
import { describe } from './describe.js';
import { HaltedError } from './interruptions.js';
import { dropComment, reviseComment } from './revise-comments.js';

/**
 * Brings one run into the notebook from wherever it stands. Record, then act, then record:
 * after a crash at any line, the next delivery of the same run does what is missing and nothing twice.
 * Resolves with the experiment's id.
 */
export async function deliver(run: OpenRun, deps: DeliverDeps): Promise<number> {
  try {
    return await bring(run, deps);
  } catch (error) {
    throw await blame(error, deps.notebook);
  }
}

async function bring(run: OpenRun, deps: DeliverDeps): Promise<number> {
  const { halted } = await deps.memory.facts();
  if (halted !== undefined) throw new HaltedError(halted);
  if (run.experiment !== undefined && run.server !== deps.server) throw atAnotherNotebook(run);
  const { experiment, fresh } =
    run.experiment === undefined ? await create(run, deps) : { experiment: run.experiment, fresh: false };
  if (run.step !== 'described') {
    deps.goOn();
    await describe(run, experiment, fresh, deps);
  }
  for (const comment of run.comments) {
    const isRevised = comment.earlier.length === 0;
    if (comment.comment !== undefined && isRevised) continue;
    deps.goOn();
    const id = comment.comment ?? (await postComment(run, comment, experiment, deps));
    if (!isRevised) await reviseComment(run, comment, id, experiment, deps);
  }
  for (const comment of run.surplus) {
    deps.goOn();
    await dropComment(run, comment, experiment, deps);
  }
  await deps.record(run.id, { kind: 'finished' });
  return experiment;
}

/** Its id means something else here. */
const atAnotherNotebook = ({ experiment, server }: OpenRun): NotebookError =>
  new NotebookError(
    'conflict',
    `the run was begun as experiment ${experiment} at another notebook, ${server}`,
    {
      lost: false,
      hint: 'set notebook.url back to finish it there, or refile it to have it filed here as well',
    },
  );
