import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { ask, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';
import { readNumbers } from './number-argument.js';

interface IgnoreOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addIgnore(program: Command): void {
  program
    .command('ignore')
    .description('set runs that are quarantined or held aside: they are not filed, and nobody is asked again')
    .argument('<job...>', 'the numbers of the runs', readNumbers)
    .addOption(configOption())
    .option('--json', 'print what became of each as JSON')
    .addHelpText('after', '\nExample:\n  labfeed ignore 17')
    .action(ignore);
}

async function ignore(jobs: readonly number[], { json, ...options }: IgnoreOptions): Promise<void> {
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  tellOutcomes(journal, await ask(journal, () => jobs.map((run) => ({ kind: 'ignore', run }))), json);
}
