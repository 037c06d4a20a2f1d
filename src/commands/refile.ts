import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { ask, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';
import { readNumbers } from './number-argument.js';

interface RefileOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addRefile(program: Command): void {
  program
    .command('refile')
    .description('file runs that are done, or rest, once more: each gets an experiment of its own')
    .argument('<job...>', 'the numbers of the runs', readNumbers)
    .addOption(configOption())
    .option('--json', 'print what became of each as JSON')
    .addHelpText('after', '\nExample:\n  labfeed refile 17')
    .action(refile);
}

async function refile(jobs: readonly number[], { json, ...options }: RefileOptions): Promise<void> {
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  tellOutcomes(journal, await ask(journal, () => jobs.map((run) => ({ kind: 'refile', run }))), json);
}
