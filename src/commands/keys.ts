import { type Command, InvalidArgumentError } from 'commander';
import { type ConfigOption, configOption } from './config-option.js';
import { createKey, deleteKeys, listKeys, rotateKey, setKey } from './key-actions.js';
import { readNumbers } from './number-argument.js';

export interface KeysOptions extends ConfigOption {
  readonly json?: boolean;
}

export interface CreateOptions extends KeysOptions {
  readonly readOnly?: boolean;
}

export interface DeleteKeysOptions extends KeysOptions {
  readonly yes?: boolean;
}

const EXAMPLES = `
Example:
  labfeed keys list
  labfeed keys set < new-key.txt
  labfeed keys rotate
  labfeed keys create "plate reader PC"
  labfeed keys delete 7`;

export function addKeys(program: Command): void {
  const keys = program
    .command('keys')
    .description('the API keys of the account, and the one that labfeed uses')
    .addHelpText('after', EXAMPLES);
  keys
    .command('list')
    .description("list the account's keys, and which of them labfeed uses")
    .addOption(configOption())
    .option('--json', 'print them as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys list')
    .action(listKeys);
  keys
    .command('create')
    .description('make a key and show it, this once; labfeed goes on with its own')
    .argument('<name>', 'what it is called in the notebook', readName)
    .addOption(configOption())
    .option('--read-only', 'a key that may only read')
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys create "plate reader PC"')
    .action(createKey);
  keys
    .command('set')
    .description('take a key from standard input, prove it, and write it where the configuration reads it')
    .addOption(configOption())
    .option('--json', 'print what was done as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys set < new-key.txt')
    .action(setKey);
  keys
    .command('delete')
    .description('delete keys of the account; asks first')
    .argument('<key...>', 'their numbers, as list shows them', readNumbers)
    .addOption(configOption())
    .option('--yes', 'do not ask')
    .option('--json', 'print what was deleted as JSON')
    .addHelpText('after', '\nExample:\n  labfeed keys delete 7')
    .action(deleteKeys);
  keys
    .command('rotate')
    .description(
      'make a new key, prove it, write it where the configuration reads it, and delete the old one',
    )
    .addOption(configOption())
    .option('--json', 'print what was done as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed keys rotate\n\nThe daemon goes on with the new key by itself. Broken off, it is repaired by running it again.',
    )
    .action(rotateKey);
}

/** The notebook would make up a name, by which nobody knows the key again. */
function readName(text: string): string {
  if (text.trim() === '') throw new InvalidArgumentError('expected a name.');
  return text;
}
