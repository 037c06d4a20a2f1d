import type { OpenRun } from '../model.js';
import { postComment } from './comment.js';
import { create } from './create.js';
import type { DeliverDeps } from './deps.js';
import { describe } from './describe.js';

/**
 * Brings one run into the notebook from wherever it stands. Record, then act, then record:
 * after a crash at any line, the next delivery of the same run does what is missing and nothing twice.
 * Resolves with the experiment's id.
 */
export async function deliver(run: OpenRun, deps: DeliverDeps): Promise<number> {
  const { experiment, fresh } =
    run.experiment === undefined ? await create(run, deps) : { experiment: run.experiment, fresh: false };
  if (run.step !== 'described') {
    deps.goOn();
    await describe(run, experiment, fresh, deps);
  }
  for (const comment of run.comments) {
    if (comment.comment !== undefined) continue;
    deps.goOn();
    await postComment(run, comment, experiment, deps);
  }
  await deps.record(run.id, { kind: 'finished' });
  deps.losses.forget(run.id);
  return experiment;
}
