import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import type { Key } from '../config/secrets.js';
import { openNotebook } from '../connection.js';
import { LabfeedError, UsageError } from '../errors.js';
import { commentMark, markComment, markIn } from '../markers.js';
import type { Notebook } from '../notebook/client.js';
import type { Comment } from '../notebook/responses.js';
import { terminalLine, terminalText } from '../text.js';
import { type ConfigOption, configOption, loadNamed, readNumber, requireVital } from './options.js';
import { asTable, type Column, confirm, outputWidth, readInput } from './terminal.js';

export interface CommentsOptions extends ConfigOption {
  readonly json?: boolean;
}

export interface EditOptions extends CommentsOptions {
  readonly text?: string;
}

export interface DeleteOptions extends CommentsOptions {
  readonly yes?: boolean;
}

const EXAMPLES = `
Example:
  labfeed comments list 417
  labfeed comments show 417 12
  labfeed comments edit 417 12 --text "Weighed again, see page 12."
  labfeed comments edit 417 12 < corrected.txt
  labfeed comments delete 417 12`;

export function addComments(program: Command): void {
  const comments = program
    .command('comments')
    .description('the comments of an experiment')
    .addHelpText('after', EXAMPLES);
  comments
    .command('list')
    .description('list the comments of an experiment')
    .argument('<experiment>', 'the number of the experiment in the notebook', readNumber)
    .addOption(configOption())
    .option('--json', 'print them as JSON')
    .addHelpText('after', '\nExample:\n  labfeed comments list 417')
    .action(listComments);
  withComment(comments.command('show').description('show one comment as the notebook holds it'))
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed comments show 417 12')
    .action(showComment);
  withComment(
    comments
      .command('edit')
      .description('replace the text of a comment; the line by which labfeed knows its own stays'),
  )
    .option('--text <text>', 'the new text (default: standard input)')
    .option('--json', 'print the changed comment as JSON')
    .addHelpText('after', '\nExample:\n  labfeed comments edit 417 12 < corrected.txt')
    .action(editComment);
  withComment(comments.command('delete').description('delete a comment; asks first'))
    .option('--yes', 'do not ask')
    .option('--json', 'print what was deleted as JSON')
    .addHelpText('after', '\nExample:\n  labfeed comments delete 417 12 --yes')
    .action(deleteComment);
}

const withComment = (command: Command): Command =>
  command
    .argument('<experiment>', 'the number of the experiment in the notebook', readNumber)
    .argument('<comment>', 'the number of the comment', readNumber)
    .addOption(configOption());

/** A comment as people see it. What a server does not tell is undefined. */
interface ShownComment {
  readonly id: number;
  readonly text: string | undefined;
  readonly author: string | undefined;
  readonly created: string | undefined;
  readonly modified: string | undefined;
  /** Whether labfeed filed it. */
  readonly byLabfeed: boolean;
}

async function listComments(experiment: number, { json, ...options }: CommentsOptions): Promise<void> {
  await within(options, async (notebook, field) => {
    const listed = (await notebook.listComments(experiment)).map((record) => shown(record, field));
    if (json) return console.log(JSON.stringify(listed, null, 2));
    if (listed.length === 0) return console.log(`experiment ${experiment} has no comments`);
    console.log(asTable(COLUMNS, listed, outputWidth()));
  });
}

const COLUMNS: readonly Column<ShownComment>[] = [
  { title: 'comment', text: ({ id }) => String(id), align: 'right' },
  { title: 'made', text: ({ created }) => created ?? '' },
  { title: 'by', text: ({ author }) => author ?? '' },
  { title: 'text', text: ({ text }) => text ?? NOT_FOUND, flexible: true },
];

async function showComment(
  experiment: number,
  id: number,
  { json, ...options }: CommentsOptions,
): Promise<void> {
  await within(options, async (notebook, field) => {
    const comment = shown(await notebook.readComment(experiment, id), field);
    console.log(json ? JSON.stringify(comment, null, 2) : terminalText(comment.text ?? NOT_FOUND));
  });
}

async function editComment(
  experiment: number,
  id: number,
  { text, json, ...options }: EditOptions,
): Promise<void> {
  await within(options, async (notebook, field) => {
    const before = textOf(await notebook.readComment(experiment, id), field);
    if (before === undefined) throw noText(experiment, id, field);
    const after = replaceText(
      before,
      text ?? (await readInput(`the new text of comment ${id} of experiment ${experiment}`)),
    );
    const answered = await notebook.patchComment(experiment, id, after);
    // What the answer to a PATCH holds is not for every server to say: then it is read back.
    const kept = textOf(answered, field) ?? textOf(await notebook.readComment(experiment, id), field);
    if (!isKept(after, kept ?? '')) throw notKept(`comment ${id} of experiment ${experiment}`, 'changed');
    if (json) return console.log(JSON.stringify(shown({ ...answered, id }, field), null, 2));
    console.log(`comment ${id} of experiment ${experiment} is changed`);
    if (markIn(after)) console.log('the last line, by which labfeed knows it, was kept');
  });
}

async function deleteComment(
  experiment: number,
  id: number,
  { yes, json, ...options }: DeleteOptions,
): Promise<void> {
  await within(options, async (notebook, field) => {
    const comment = shown(await notebook.readComment(experiment, id), field);
    const asked = `delete comment ${id} of experiment ${experiment}: ${opening(comment)}?`;
    if (!(await confirm(asked, yes))) return console.log('nothing was deleted');
    await notebook.deleteComment(experiment, id);
    const left = await notebook.listComments(experiment);
    if (left.some((record) => record.id === id))
      throw notKept(`comment ${id} of experiment ${experiment}`, 'deleted');
    if (json) return console.log(JSON.stringify({ experiment, deleted: comment }, null, 2));
    console.log(`comment ${id} of experiment ${experiment} is deleted`);
  });
}

async function within(
  options: ConfigOption,
  act: (notebook: Notebook, field: string) => Promise<void>,
): Promise<void> {
  const config = loadNamed(options);
  requireVital(config);
  await withNotebook(config, (notebook) => act(notebook, config.notebook.commentField));
}

function shown(record: Comment, field: string): ShownComment {
  const told = (...names: string[]): string | undefined => {
    const value = names.map((name) => record[name]).find((one) => one !== undefined && one !== null);
    return value === undefined ? undefined : String(value);
  };
  const text = textOf(record, field);
  return {
    id: record.id,
    text,
    author: told('fullname', 'userid'),
    created: told('created_at'),
    modified: told('modified_at'),
    byLabfeed: text !== undefined && markIn(text) !== undefined,
  };
}

const LONGEST_OPENING = 60;

function opening({ text, byLabfeed }: ShownComment): string {
  const line = terminalLine(text ?? '');
  const start = line.length > LONGEST_OPENING ? `${line.slice(0, LONGEST_OPENING)}…` : line;
  return `"${start}"${byLabfeed ? ' (labfeed filed it, and does not file it again)' : ''}`;
}

const NOT_FOUND = '(its text was not found: check notebook.commentField)';

const noText = (experiment: number, id: number, field: string): LabfeedError =>
  new LabfeedError(`comment ${id} of experiment ${experiment} has no text under the name "${field}"`, {
    hint: 'set notebook.commentField to the name that this notebook uses for the text of a comment',
  });

/** eLabFTW says yes to whoever changes or deletes another person's comment, and does nothing. */
const notKept = (what: string, done: string): LabfeedError =>
  new LabfeedError(`the notebook said yes, but ${what} was not ${done}`, {
    hint: "it may be another person's: only who wrote a comment can change it",
  });

/** Hands a command the notebook of the configuration, and closes it at the end. Ctrl-C ends it where it stands. */
async function withNotebook<T>(
  config: UsableConfig,
  act: (notebook: Notebook) => Promise<T>,
  key?: Key,
): Promise<T> {
  const notebook = openNotebook(config, {
    clock: systemClock,
    signal: new AbortController().signal,
    ...(key && { key }),
  });
  try {
    return await act(notebook);
  } finally {
    await notebook.close();
  }
}

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
