import { NotebookError } from '../errors.js';
import { commentMark, markComment } from '../markers.js';
import type { OpenRun, PlannedComment, SurplusComment } from '../outbox.js';
import { decodeEntities, singleLine } from '../text.js';
import type { CommentRecord, ExperimentRecord, Filing } from './context.js';
import { certainlyNotDone, isEntryStatus, sendEdit } from './failures.js';
import { gracePeriod } from './reconcile.js';

/** Posts a comment, unless an earlier POST of it took effect. Resolves with its id. */
export async function postComment(planned: PlannedComment, filing: Filing): Promise<number> {
  const { run, experiment, notebook, outbox, unknown, clock } = filing;
  const { n, text } = planned;
  const found = await findExisting(planned, filing);
  if (found !== undefined) {
    await outbox.record(run.id, { kind: 'commented', n, comment: found, found: true });
    return found;
  }
  await outbox.record(run.id, { kind: 'commentIntended', n, at: clock.now() });
  const comment = await notebook
    .postComment(experiment, markComment(text, run.reference, n))
    .catch(async (error: unknown) => {
      if (certainlyNotDone(error)) await outbox.record(run.id, { kind: 'notCommented', n });
      else unknown.posts.note(run.id);
      throw error;
    });
  await checkStored(n, comment, filing);
  // Stored together with the run's next change. After a power failure, the marker line tells.
  outbox.recordLater(run.id, { kind: 'commented', n, comment, found: false });
  return comment;
}

async function findExisting(planned: PlannedComment, filing: Filing): Promise<number | undefined> {
  const { n, intentAt, gone } = planned;
  if (intentAt !== undefined) return findPosted(planned, filing);
  if (gone === undefined) return undefined;
  const { run, experiment, notebook } = filing;
  // Somebody may have restored it, or a later journal has posted it. No POST of it is in flight.
  return findMarked(commentMark(run.reference, n), await notebook.listComments(experiment));
}

/** The comment that an earlier POST may have created. Absence counts only after the grace period. */
async function findPosted(
  { n, text }: { readonly n: number; readonly text?: string },
  filing: Filing,
): Promise<number | undefined> {
  const { run, experiment, notebook } = filing;
  const checkGrace = await gracePeriod(run, 'a comment with an unknown outcome may still be posted', filing);
  const listed = await notebook.listComments(experiment);
  const mark = commentMark(run.reference, n);
  const found = listed.find((record) => hasMark(record, mark));
  if (found && run.isGrowing && !run.adopted && !hasOneOf([text ?? ''], found, run, n))
    throw otherLines(found.id, filing);
  if (found) return found.id;
  // A list proves absence only if it contains every comment that we know.
  const ids = new Set(listed.map(({ id }) => id));
  const missing = run.comments.find(({ comment }) => comment !== undefined && !ids.has(comment));
  if (missing)
    throw new NotebookError('conflict', `comment ${missing.comment} on experiment ${experiment} is no longer listed`, {
      hint: 'somebody deleted it, or the list is incomplete; labfeed posts nothing more on this experiment',
    });
  checkGrace();
  return undefined;
}

/** The first comment on each server is read back: with a wrong field name, a server may answer 201 and store nothing. */
async function checkStored(n: number, comment: number, filing: Filing): Promise<void> {
  const { run, experiment, notebook, server, outbox } = filing;
  if ((await server.facts()).keepsComments) return;
  const record = await notebook.readComment(experiment, comment);
  if (!hasMark(record, commentMark(run.reference, n))) {
    await outbox.record(run.id, { kind: 'notCommented', n });
    throw new NotebookError(
      'request',
      `comment ${comment} on experiment ${experiment} does not contain the text that was sent`,
      { hint: 'set `notebook.commentField` to the name of the field that contains the comment text in this notebook' },
    );
  }
  await server.learn({ keepsComments: true });
}

const findMarked = (mark: string, listed: readonly CommentRecord[]): number | undefined =>
  listed.find((record) => hasMark(record, mark))?.id;

/** The marker line as a whole line of any text in the record, since the contract names no fields. */
export const hasMark = (record: CommentRecord, mark: string): boolean =>
  Object.values(record).some((value) => typeof value === 'string' && value.split(/\r?\n/).includes(mark));

/** Called before anything of the run is written. Throws if somebody changed or deleted one of its comments. */
export async function checkComments(filing: Filing, record: ExperimentRecord): Promise<void> {
  const { run, experiment, notebook } = filing;
  const known = [...run.comments, ...run.surplus].flatMap(({ comment }) => comment ?? []);
  if (known.length === 0) return;
  const listed = shownWith(record, known) ?? (await notebook.listComments(experiment));
  const find = async (id: number): Promise<CommentRecord | undefined> =>
    listed.find((record) => record.id === id) ?? (await readIfPresent(id, filing));
  for (const { n, comment, text, earlier } of run.comments) {
    if (comment === undefined) continue;
    const record = await find(comment);
    if (!record || !hasOneOf([text, ...earlier], record, run, n))
      throw changedByPerson(comment, record, earlier.at(-1) ?? text, filing);
  }
  for (const { n, comment, texts } of run.surplus) {
    const record = comment === undefined ? undefined : await find(comment);
    if (record && !hasOneOf(texts, record, run, n))
      throw changedByPerson(record.id, record, texts.at(-1) ?? '', filing);
  }
}

/** eLabFTW shows comments with the experiment. They prove that a comment exists, not that one is missing. */
function shownWith({ comments }: ExperimentRecord, known: readonly number[]): readonly CommentRecord[] | undefined {
  if (!Array.isArray(comments)) return undefined;
  const records = comments.filter(
    (one): one is CommentRecord => typeof one === 'object' && one !== null && typeof one.id === 'number',
  );
  return known.every((id) => records.some((record) => record.id === id)) ? records : undefined;
}

/** Replaces the text of an earlier reading with that of the draft. */
export async function reviseComment(
  { n, text, earlier }: PlannedComment,
  comment: number,
  filing: Filing,
): Promise<void> {
  const { run, experiment, notebook, outbox } = filing;
  const record = await readIfPresent(comment, filing);
  const isDone = record !== undefined && hasOneOf([text], record, run, n);
  const isEarlier = record !== undefined && isFromReading(earlier, record, run, n);
  // An adopted experiment is filled in whatever it contains, but a comment that somebody wrote is left alone.
  if (!isEarlier && !isDone && !run.adopted) throw changedByPerson(comment, record, earlier.at(-1) ?? text, filing);
  if (isEarlier && !isDone) {
    const wanted = markComment(text, run.reference, n);
    const patched = await sendEdit(filing, () => notebook.patchComment(experiment, comment, wanted));
    // eLabFTW answers 200 even if the user may not change the comment.
    if (!hasOneOf([text], patched, run, n)) throw leftUnchanged(comment, experiment);
  }
  await outbox.record(run.id, { kind: 'commentRevised', n });
}

/** Deletes a comment that the draft no longer has. */
export async function dropComment({ n, texts, ...known }: SurplusComment, filing: Filing): Promise<void> {
  const { run, experiment, notebook, outbox } = filing;
  const comment = known.comment ?? (await findPosted({ n }, filing));
  const record = comment === undefined ? undefined : await readIfPresent(comment, filing);
  const isOurs = record !== undefined && isFromReading(texts, record, run, n);
  if (record && !isOurs && !run.adopted) throw changedByPerson(record.id, record, texts.at(-1) ?? '', filing);
  if (record && isOurs) {
    await sendEdit(filing, () => notebook.deleteComment(experiment, record.id)).catch(ignoreMissing);
    // eLabFTW answers 204 even if the user may not delete the comment.
    if (await readIfPresent(record.id, filing)) throw leftUnchanged(record.id, experiment);
  }
  await outbox.record(run.id, { kind: 'commentDropped', n });
}

async function readIfPresent(comment: number, { experiment, notebook }: Filing): Promise<CommentRecord | undefined> {
  const record = await notebook.readComment(experiment, comment).catch(ignoreMissing);
  // A proxy that has lost its backend answers 404 to everything.
  if (record === undefined) await notebook.listKeys();
  return record;
}

function ignoreMissing(error: unknown): undefined {
  if (!isEntryStatus(error, 404)) throw error;
}

/** Whether the comment is as it was posted with one of these texts. The contract names no field for the text. */
function hasOneOf(texts: readonly string[], record: CommentRecord, run: OpenRun, n: number): boolean {
  const values = Object.values(record).flatMap((value) => (typeof value === 'string' ? [normalised(value)] : []));
  return texts.some((text) => values.includes(normalised(markComment(text, run.reference, n))));
}

/**
 * Whether the comment is that of an earlier reading. If the journal no longer has its text, the marker line tells, and
 * a person has said that the experiment is to be overwritten.
 */
const isFromReading = (texts: readonly string[], record: CommentRecord, run: OpenRun, n: number): boolean =>
  hasOneOf(texts, record, run, n) ||
  (run.adopted && texts.includes('') && hasMark(record, commentMark(run.reference, n)));

/** Servers store line breaks in different ways. */
const normalised = (text: string): string =>
  text
    .replace(/\r\n?/g, '\n')
    .replace(/<br ?\/?>\n?/gi, '\n')
    .trimEnd();

function changedByPerson(
  comment: number,
  record: CommentRecord | undefined,
  wrote: string,
  { run: { id }, experiment }: Filing,
): NotebookError {
  const adopt = `\`labfeed adopt ${id} ${experiment}\``;
  const what = `somebody ${record ? 'changed' : 'deleted'} comment ${comment} on experiment ${experiment} after labfeed wrote it`;
  return new NotebookError(
    'conflict',
    record ? `${what}\n  ${describeDifference('comment', withoutMark(textIn(record)), wrote)}` : what,
    {
      hint: record
        ? `labfeed does not overwrite it. Restore it and run \`labfeed retry ${id}\`, or keep it and update the rest: ${adopt}`
        : `labfeed does not post it again automatically. To post it again: ${adopt}`,
    },
  );
}

/** The contract names no field for the text: it is the longest one. */
const textIn = (record: CommentRecord): string =>
  Object.values(record).reduce<string>(
    (longest, value) => (typeof value === 'string' && value.length > longest.length ? value : longest),
    '',
  );

const withoutMark = (text: string): string => normalised(text).replace(/\n+labfeed [0-9a-f]{16}\.\d+$/, '');

/** The comments of a growing file are numbered as they are made: another journal made others of its lines. */
const otherLines = (comment: number, { run: { id }, experiment }: Filing): NotebookError =>
  new NotebookError(
    'conflict',
    `comment ${comment} on experiment ${experiment} has other lines than the journal: it was changed, or a later journal filed it`,
    {
      hint: `to file all lines again, in another experiment: \`labfeed refile ${id}\`; to keep it and add the rest: \`labfeed adopt ${id} ${experiment}\``,
    },
  );

const leftUnchanged = (comment: number, experiment: number): NotebookError =>
  new NotebookError(
    'conflict',
    `the notebook accepted a change to comment ${comment} on experiment ${experiment} but did not apply it`,
    { hint: 'only the author of a comment can change it. Use an API key of that user' },
  );

/** Longer texts are shortened around the first difference. */
const MAX_SHOWN = 60;
const BEFORE = 15;

/** One line for people: what the notebook has of a part, and what labfeed wrote. */
export function describeDifference(part: string, has: string, wrote: string): string {
  const [shown, written] = [singleLine(has).trim(), singleLine(wrote).trim()];
  if (shown === '') return `${part}: empty; labfeed wrote ${quote(written, 0)}`;
  if (shown === written) return `${part}: other markup, such as a picture or a link`;
  const at = firstDifference(shown, written);
  return `${part}: ${quote(shown, at)}; labfeed wrote ${quote(written, at)}`;
}

/** The text of markup as a reader sees it, on one line. */
export const readableText = (html: string): string =>
  decodeEntities(html.replace(/<[/!?a-z][^>]*>/gi, ' '))
    .replace(/\s+/g, ' ')
    .trim();

function firstDifference(a: string, b: string): number {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at;
}

function quote(text: string, at: number): string {
  const from = text.length <= MAX_SHOWN ? 0 : Math.max(0, Math.min(at, text.length) - BEFORE);
  const cut = text.slice(from, from + MAX_SHOWN);
  return `“${from > 0 ? '…' : ''}${singleLine(cut)}${from + MAX_SHOWN < text.length ? '…' : ''}”`;
}
