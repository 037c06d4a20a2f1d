import { UsageError } from '../errors.js';
import { commentMark, markComment, markIn } from '../markers.js';

type CommentRecord = Readonly<Record<string, unknown>>;

/** The text of a comment. The contract names no fields: the configured one, else that of eLabFTW. */
export function textOf(record: CommentRecord, field: string): string | undefined {
  const text = record[field] ?? record['comment'];
  return typeof text === 'string' ? text : undefined;
}

/**
 * The text that takes the place of another one. A comment that labfeed filed keeps its last line, by which it is known
 * again after a lost answer or a lost journal.
 */
export function replaceText(before: string, text: string): string {
  const mark = markIn(before);
  const own = mark && commentMark(mark.reference, mark.n);
  const lines = text.split(/\r?\n/).filter((line) => line !== own);
  const rest = lines.join('\n').trimEnd();
  if (rest.trim() === '') {
    throw new UsageError('a comment cannot be empty', {
      hint: 'to remove it: labfeed comments delete EXPERIMENT COMMENT',
    });
  }
  const foreign = markIn(rest);
  if (foreign) {
    throw new UsageError(
      `the text holds the line "${commentMark(foreign.reference, foreign.n)}", by which labfeed knows another comment`,
      { hint: 'leave that line out: recovery would take this comment for the other one' },
    );
  }
  return mark ? markComment(rest, mark.reference, mark.n) : rest;
}

/** Whether a server kept a text, but for the ends of lines and blanks around it. */
export const isKept = (sent: string, kept: string): boolean => bare(sent) === bare(kept);

const bare = (text: string): string => text.replace(/\r\n?/g, '\n').trim();
