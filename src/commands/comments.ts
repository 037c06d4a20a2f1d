import type { Command } from 'commander';
import { deleteComment, editComment, listComments, showComment } from './comment-actions.js';
import { type ConfigOption, configOption } from './config-option.js';
import { readNumber } from './number-argument.js';

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
