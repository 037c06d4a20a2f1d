import { NotebookError } from '../errors.js';
import { markComment } from '../markers.js';
import type { OpenRun, PlannedComment, SurplusComment } from '../model.js';
import { findLostComment } from './comment.js';
import type { CommentRecord, DeliverDeps } from './deps.js';
import { edit } from './edit.js';

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
      lost: false,
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
      lost: false,
      hint: 'it may be another user’s: comments can be changed only with a key of the user who posted them',
    },
  );
