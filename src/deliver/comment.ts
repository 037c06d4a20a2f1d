import { NotebookError } from '../errors.js';
import { commentMark, markComment } from '../markers.js';
import type { OpenRun, PlannedComment } from '../model.js';
import type { CommentRecord, DeliverDeps } from './deps.js';
import { surelyNotDone } from './failures.js';
import { lookWithGrace } from './grace.js';

/** Posts one comment, unless an earlier POST of it turns out to have arrived. Resolves with its id. */
export async function postComment(
  run: OpenRun,
  comment: PlannedComment,
  experiment: number,
  deps: DeliverDeps,
): Promise<number> {
  const { n, text } = comment;
  const found = await findEarlier(run, comment, experiment, deps);
  if (found !== undefined) {
    await deps.record(run.id, { kind: 'commented', n, comment: found, found: true });
    return found;
  }
  await deps.record(run.id, { kind: 'commentIntended', n, at: deps.clock.now() });
  const posted = await deps.notebook
    .postComment(experiment, markComment(text, run.reference, n))
    .catch(async (error: unknown) => {
      if (!surelyNotDone(error)) deps.losses.note(run.id);
      else await deps.record(run.id, { kind: 'notCommented', n });
      throw error;
    });
  await proveKept(run, n, experiment, posted, deps);
  await deps.record(run.id, { kind: 'commented', n, comment: posted, found: false });
  return posted;
}

/** The comment, where the notebook has it already. */
async function findEarlier(
  run: OpenRun,
  { n, intentAt, gone }: PlannedComment,
  experiment: number,
  deps: DeliverDeps,
): Promise<number | undefined> {
  if (intentAt !== undefined) return findLostComment(run, n, experiment, deps);
  if (gone === undefined) return undefined;
  // It was missed a while ago, and somebody may have put it back; no POST of it is under way.
  return bearerOf(commentMark(run.reference, n), await deps.notebook.listComments(experiment));
}

/** The comment that an earlier POST may have made. */
export const findLostComment = (
  run: OpenRun,
  n: number,
  experiment: number,
  deps: DeliverDeps,
): Promise<number | undefined> =>
  lookWithGrace(run, 'a comment whose answer was lost may still be posted', deps, () =>
    findPosted(run, commentMark(run.reference, n), experiment, deps),
  );

/** A list proves absence only if it shows all that we know of. */
async function findPosted(
  run: OpenRun,
  mark: string,
  experiment: number,
  deps: DeliverDeps,
): Promise<number | undefined> {
  const listed = await deps.notebook.listComments(experiment);
  const found = bearerOf(mark, listed);
  if (found !== undefined) return found;
  const ids = new Set(listed.map(({ id }) => id));
  const vanished = run.comments.find(({ comment }) => comment !== undefined && !ids.has(comment));
  if (vanished) {
    throw new NotebookError(
      'conflict',
      `comment ${vanished.comment} of experiment ${experiment} is no longer listed`,
      {
        lost: false,
        hint: 'somebody deleted it, or the list is not complete; labfeed does not post again',
      },
    );
  }
  return undefined;
}

/** The first comment on each server is read back: under a wrong field name a server may say 201 and store nothing. */
async function proveKept(
  run: OpenRun,
  n: number,
  experiment: number,
  posted: number,
  deps: DeliverDeps,
): Promise<void> {
  if ((await deps.memory.facts()).keepsComments) return;
  const record = await deps.notebook.readComment(experiment, posted);
  if (!bears(record, commentMark(run.reference, n))) {
    await deps.record(run.id, { kind: 'notCommented', n });
    throw new NotebookError(
      'request',
      `comment ${posted} of experiment ${experiment} does not hold the text that was sent`,
      {
        lost: false,
        hint: 'set notebook.commentField to the name that this notebook uses for the text of a comment',
      },
    );
  }
  await deps.memory.learn({ keepsComments: true });
}

const bearerOf = (mark: string, listed: readonly CommentRecord[]): number | undefined =>
  listed.find((record) => bears(record, mark))?.id;

/** The mark as a whole line of any text in the record: the contract names no fields. */
const bears = (record: CommentRecord, mark: string): boolean =>
  Object.values(record).some((value) => typeof value === 'string' && value.split(/\r?\n/).includes(mark));
