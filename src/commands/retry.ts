import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { UsageError } from '../errors.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';
import { readNumbers } from './number-argument.js';

interface RetryOptions extends ConfigOption {
  readonly quarantined?: boolean;
  readonly json?: boolean;
}

export function addRetry(program: Command): void {
  program
    .command('retry')
    .description(
      "let runs that are quarantined or held go on; what is quarantined is read anew with today's mapping",
    )
    .argument('[job...]', 'the numbers of the runs', readNumbers)
    .addOption(configOption())
    .option('--quarantined', 'all that are quarantined')
    .option('--json', 'print what became of each as JSON')
    .addHelpText('after', '\nExample:\n  labfeed retry 17\n  labfeed retry --quarantined')
    .action(retry);
}

async function retry(
  jobs: readonly number[],
  { quarantined, json, ...options }: RetryOptions,
): Promise<void> {
  if ((jobs.length === 0) === (quarantined === undefined)) {
    throw new UsageError('expected either the numbers of runs or --quarantined', {
      hint: 'for example: labfeed retry 17',
    });
  }
  const config = loadNamed(options);
  requireJournal(config);
  const { ask, tellOutcomes } = await import('./ask.js');
  const outcomes = await ask(journalOf(config), (client) =>
    (quarantined ? client.quarantined() : jobs).map((run) => ({ kind: 'retry', run })),
  );
  if (outcomes.length === 0 && !json) console.log('nothing is quarantined');
  else tellOutcomes(outcomes, json);
}
