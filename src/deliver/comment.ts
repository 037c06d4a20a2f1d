import { NotebookError } from '../errors.js';
import { commentMark, markComment } from '../markers.js';
import type { OpenRun, PlannedComment, SurplusComment } from '../outbox.js';
import { type CommentRecord, type DeliverDeps, lookWithGrace } from './context.js';
import { surelyNotDone } from './failures.js';
import { edit } from './revise.js';

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
const findLostComment = (
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

/** Throws where somebody has changed or deleted a comment of ours: before anything of the run is written. */
export async function refuseTouched(run: OpenRun, experiment: number, deps: DeliverDeps): Promise<void> {
  const known = [...run.comments, ...run.surplus].some(({ comment }) => comment !== undefined);
  if (!known) return;
  const listed = await deps.notebook.listComments(experiment);
  const find = async (id: number): Promise<CommentRecord | undefined> =>
    listed.find((record) => record.id === id) ?? (await readIfThere(experiment, id, deps));
  for (const { n, comment, text, earlier } of run.comments) {
    if (comment === undefined) continue;
    const record = await find(comment);
    if (!record || !readsAsOneOf(record, [text, ...earlier], run, n))
      throw touched(run, comment, experiment, record);
  }
  for (const { n, comment, texts } of run.surplus) {
    const record = comment === undefined ? undefined : await find(comment);
    if (record && !readsAsOneOf(record, texts, run, n)) throw touched(run, record.id, experiment, record);
  }
}

/** Has a comment read as the draft has it, where it reads as an earlier one had it. */
export async function reviseComment(
  run: OpenRun,
  { n, text, earlier }: PlannedComment,
  comment: number,
  experiment: number,
  deps: DeliverDeps,
): Promise<void> {
  const record = await readIfThere(experiment, comment, deps);
  const isOurs = record !== undefined && readsAsOneOf(record, earlier, run, n);
  const isDone = record !== undefined && readsAsOneOf(record, [text], run, n);
  // Told to fill the experiment in whatever it holds, labfeed still leaves alone what somebody wrote in a comment.
  if (!isOurs && !isDone && !run.adopted) throw touched(run, comment, experiment, record);
  if (isOurs && !isDone) {
    const wanted = markComment(text, run.reference, n);
    const patched = await edit(run, deps, () => deps.notebook.patchComment(experiment, comment, wanted));
    // eLabFTW says 200 to who may not change it.
    if (!readsAsOneOf(patched, [text], run, n)) throw refused(comment, experiment);
  }
  await deps.record(run.id, { kind: 'commentRevised', n });
}

/** Deletes a comment that the draft no longer has, unless it is gone already. */
export async function dropComment(
  run: OpenRun,
  surplus: SurplusComment,
  experiment: number,
  deps: DeliverDeps,
): Promise<void> {
  const { n, texts } = surplus;
  const comment = surplus.comment ?? (await findLostComment(run, n, experiment, deps));
  const record = comment === undefined ? undefined : await readIfThere(experiment, comment, deps);
  if (record && !readsAsOneOf(record, texts, run, n)) {
    if (!run.adopted) throw touched(run, record.id, experiment, record);
  } else if (record) {
    await edit(run, deps, () => deps.notebook.deleteComment(experiment, record.id)).catch(unlessGone);
    // eLabFTW says 204 to who may not delete it.
    if (await readIfThere(experiment, record.id, deps)) throw refused(record.id, experiment);
  }
  await deps.record(run.id, { kind: 'commentDropped', n });
}

async function readIfThere(
  experiment: number,
  comment: number,
  { notebook }: DeliverDeps,
): Promise<CommentRecord | undefined> {
  const record = await notebook.readComment(experiment, comment).catch(unlessGone);
  // A proxy that has lost the notebook behind it answers 404 to everything: absence counts only from the notebook.
  if (record === undefined) await notebook.listKeys();
  return record;
}

function unlessGone(error: unknown): undefined {
  if (error instanceof NotebookError && error.failure === 'conflict' && error.status === 404)
    return undefined;
  throw error;
}

/** Whether the comment still is as it was posted, with its mark. The contract names no field for the text. */
const readsAsOneOf = (
  record: CommentRecord,
  texts: readonly string[],
  { reference }: OpenRun,
  n: number,
): boolean =>
  texts.some((text) => {
    const posted = plain(markComment(text, reference, n));
    return Object.values(record).some((value) => typeof value === 'string' && plain(value) === posted);
  });

/** Some servers write line breaks in their own way. */
const plain = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/<br ?\/?>\n?/gi, '\n')
    .trimEnd();

const touched = (
  { id }: OpenRun,
  comment: number,
  experiment: number,
  record: CommentRecord | undefined,
): NotebookError =>
  new NotebookError(
    'conflict',
    `somebody ${record ? 'changed' : 'deleted'} comment ${comment} of experiment ${experiment} since labfeed wrote it`,
    {
      hint: record
        ? `labfeed does not overwrite it; put it back as it was and \`labfeed retry ${id}\`, or have the rest redone around it: \`labfeed adopt ${id} ${experiment}\``
        : `labfeed does not post it again unless it is told to: \`labfeed adopt ${id} ${experiment}\``,
    },
  );

const refused = (comment: number, experiment: number): NotebookError =>
  new NotebookError(
    'conflict',
    `the notebook left comment ${comment} of experiment ${experiment} as it was, although it said otherwise`,
    {
      hint: 'it may be another user’s: comments can be changed only with a key of the user who posted them',
    },
  );
