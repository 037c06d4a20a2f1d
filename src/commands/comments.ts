import type { Command } from 'commander';
import { openNotebook } from '../connection.js';
import { LabfeedError, UsageError } from '../errors.js';
import { commentMark, markComment, markIn } from '../markers.js';
import type { Notebook } from '../notebook/client.js';
import type { Comment } from '../notebook/responses.js';
import { terminalLine, terminalText } from '../text.js';
import {
  type ConfigOption,
  type JsonOption,
  parseNumber,
  usableConfigFrom,
  withExamples,
  withJson,
  yesOption,
} from './options.js';
import { type Column, confirm, formatTable, readInput, terminalWidth } from './terminal.js';

const EXAMPLES = {
  list: ['labfeed comments list 417'],
  show: ['labfeed comments show 417 12'],
  edit: [
    'labfeed comments edit 417 12 --text "Weighed again, see page 12."',
    'labfeed comments edit 417 12 < corrected.txt',
  ],
  delete: ['labfeed comments delete 417 12'],
};

export function addComments(comments: Command): void {
  withExamples(comments, Object.values(EXAMPLES).flat());
  const add = (name: keyof typeof EXAMPLES, description: string): Command =>
    withJson(comments.command(name).description(description), EXAMPLES[name]).argument(
      '<experiment>',
      'Experiment number in the notebook',
      parseNumber,
    );
  const comment = ['<comment>', 'Comment number', parseNumber] as const;
  add('list', 'List the comments on an experiment').action(listComments);
  add('show', 'Show one comment')
    .argument(...comment)
    .action(showComment);
  add('edit', 'Replace the text of a comment, but keep its marker line')
    .argument(...comment)
    .option('--text <text>', 'New text (default: standard input)')
    .action(editComment);
  add('delete', 'Delete a comment')
    .argument(...comment)
    .addOption(yesOption())
    .action(deleteComment);
}

type ShownComment = ReturnType<typeof describe>;

async function listComments(experiment: number, { json, ...options }: JsonOption): Promise<void> {
  await withNotebook(options, async (notebook, field) => {
    const listed = (await notebook.listComments(experiment)).map((record) => describe(record, field));
    if (json) return console.log(JSON.stringify(listed, null, 2));
    if (listed.length === 0) return console.log(`experiment ${experiment} has no comments`);
    console.log(formatTable(COLUMNS, listed, terminalWidth()));
  });
}

const COLUMNS: readonly Column<ShownComment>[] = [
  { title: 'comment', text: ({ id }) => String(id), align: 'right' },
  { title: 'created', text: ({ created }) => created ?? '' },
  { title: 'by', text: ({ author }) => author ?? '' },
  { title: 'text', text: ({ text }) => text ?? NO_TEXT, flexible: true },
];

async function showComment(experiment: number, id: number, { json, ...options }: JsonOption): Promise<void> {
  await withNotebook(options, async (notebook, field) => {
    const comment = describe(await notebook.readComment(experiment, id), field);
    console.log(json ? JSON.stringify(comment, null, 2) : terminalText(comment.text ?? NO_TEXT));
  });
}

async function editComment(
  experiment: number,
  id: number,
  { text, json, ...options }: JsonOption & { text?: string },
): Promise<void> {
  await withNotebook(options, async (notebook, field) => {
    const before = textOf(await notebook.readComment(experiment, id), field);
    if (before === undefined) throw noText(experiment, id, field);
    const input = text ?? (await readInput(`Enter the new text of comment ${id} on experiment ${experiment}`));
    const after = replaceText(before, input);
    const answer = await notebook.patchComment(experiment, id, after);
    // Not every server returns the comment in its answer to PATCH.
    const saved = textOf(answer, field) ?? textOf(await notebook.readComment(experiment, id), field);
    if (!isSame(after, saved ?? '')) throw notDone(experiment, id, 'changed');
    if (json) return console.log(JSON.stringify(describe({ ...answer, id }, field), null, 2));
    console.log(`comment ${id} on experiment ${experiment} was changed`);
    if (markIn(after)) console.log('its marker line was kept');
  });
}

async function deleteComment(
  experiment: number,
  id: number,
  { yes, json, ...options }: JsonOption & { yes?: boolean },
): Promise<void> {
  await withNotebook(options, async (notebook, field) => {
    const comment = describe(await notebook.readComment(experiment, id), field);
    const question = `Delete comment ${id} on experiment ${experiment}: ${preview(comment)}?`;
    if (!(await confirm(question, yes))) return console.log('nothing was deleted');
    await notebook.deleteComment(experiment, id);
    const left = await notebook.listComments(experiment);
    if (left.some((record) => record.id === id)) throw notDone(experiment, id, 'deleted');
    if (json) return console.log(JSON.stringify({ experiment, deleted: comment }, null, 2));
    console.log(`comment ${id} on experiment ${experiment} was deleted`);
  });
}

/** Passes the notebook, and the name of the field that holds the text of a comment. */
async function withNotebook(
  options: ConfigOption,
  use: (notebook: Notebook, field: string) => Promise<void>,
): Promise<void> {
  const config = usableConfigFrom(options);
  const notebook = openNotebook(config);
  try {
    await use(notebook, config.notebook.commentField);
  } finally {
    await notebook.close();
  }
}

/** Fields that the server does not return are undefined. */
function describe(record: Comment, field: string) {
  const first = (...names: string[]): string | undefined => {
    const value = names.map((name) => record[name]).find((one) => one !== undefined && one !== null);
    return value === undefined ? undefined : String(value);
  };
  const text = textOf(record, field);
  return {
    id: record.id,
    text,
    author: first('fullname', 'userid'),
    created: first('created_at'),
    modified: first('modified_at'),
    byLabfeed: text !== undefined && markIn(text) !== undefined,
  };
}

const MAX_PREVIEW = 60;

function preview({ text, byLabfeed }: ShownComment): string {
  const line = terminalLine(text ?? '');
  const start = line.length > MAX_PREVIEW ? `${line.slice(0, MAX_PREVIEW)}…` : line;
  return `"${start}"${byLabfeed ? ' (posted by labfeed, which will not post it again)' : ''}`;
}

const NO_TEXT = '(no text found: check notebook.commentField)';

const noText = (experiment: number, id: number, field: string): LabfeedError =>
  new LabfeedError(`comment ${id} on experiment ${experiment} has no field "${field}"`, {
    hint: 'set notebook.commentField to the name of the field that contains the comment text in this notebook',
  });

/** eLabFTW accepts changes to other people's comments and ignores them. */
const notDone = (experiment: number, id: number, what: 'changed' | 'deleted'): LabfeedError =>
  new LabfeedError(`the notebook accepted the request, but comment ${id} on experiment ${experiment} was not ${what}`, {
    hint: 'only the author of a comment can change or delete it',
  });

/** The text of a comment. The API does not name the field: the configured one, else that of eLabFTW. */
export function textOf(record: Readonly<Record<string, unknown>>, field: string): string | undefined {
  const text = record[field] ?? record['comment'];
  return typeof text === 'string' ? text : undefined;
}

/** The new text. A comment posted by labfeed keeps its marker line, which recovery relies on. */
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
      `the text contains the marker line of another comment: "${commentMark(foreign.reference, foreign.n)}"`,
      { hint: 'remove that line; otherwise recovery would confuse the two comments' },
    );
  }
  return mark ? markComment(rest, mark.reference, mark.n) : rest;
}

/** Ignores line endings and surrounding space, which servers may change. */
export const isSame = (sent: string, saved: string): boolean => normalize(sent) === normalize(saved);

const normalize = (text: string): string => text.replace(/\r\n?/g, '\n').trim();
