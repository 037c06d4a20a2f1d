import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { ask, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption, loadNamed, requireVital } from './config-option.js';
import { readNumber } from './number-argument.js';

interface AdoptOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addAdopt(program: Command): void {
  program
    .command('adopt')
    .description('say which experiment is that of a run that is held; its title, date and body are replaced')
    .argument('<job>', 'the number of the run', readNumber)
    .argument('<experiment>', 'the number of the experiment in the notebook', readNumber)
    .addOption(configOption())
    .option('--json', 'print what became of it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed adopt 17 4711')
    .action(adopt);
}

async function adopt(run: number, experiment: number, { json, ...options }: AdoptOptions): Promise<void> {
  const config = loadNamed(options);
  requireVital(config);
  const server = config.notebook.url;
  const journal = journalOf(config);
  tellOutcomes(journal, await ask(journal, () => [{ kind: 'adopt', run, server, experiment }]), json);
}
