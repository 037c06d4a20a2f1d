import { LabfeedError } from '../errors.js';
import { markIn } from '../markers.js';
import type { Notebook } from '../notebook/client.js';
import type { Comment } from '../notebook/responses.js';
import { isKept, replaceText, textOf } from '../tasks/comment-text.js';
import { printableLine, printableLines } from '../text.js';
import type { CommentsOptions, DeleteOptions, EditOptions } from './comments.js';
import { type ConfigOption, loadNamed, requireVital } from './config-option.js';
import { confirm, readInput } from './prompt.js';
import { asTable, type Column, outputWidth } from './table.js';
import { withNotebook } from './with-notebook.js';

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

export async function listComments(experiment: number, { json, ...options }: CommentsOptions): Promise<void> {
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

export async function showComment(
  experiment: number,
  id: number,
  { json, ...options }: CommentsOptions,
): Promise<void> {
  await within(options, async (notebook, field) => {
    const comment = shown(await notebook.readComment(experiment, id), field);
    console.log(json ? JSON.stringify(comment, null, 2) : printableLines(comment.text ?? NOT_FOUND));
  });
}

export async function editComment(
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

export async function deleteComment(
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
  const line = printableLine(text ?? '');
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
