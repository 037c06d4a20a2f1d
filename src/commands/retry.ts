import type { Command } from 'commander';
import { journalOf } from '../config/locations.js';
import { UsageError } from '../errors.js';
import { ask, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';
import { readNumbers } from './number-argument.js';

interface RetryOptions extends ConfigOption {
  readonly quarantined?: boolean;
  readonly remap?: boolean;
  readonly instrument?: string;
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
    .option(
      '--remap',
      "redo runs that are done with today's mapping, in the experiments that they have; what a person has changed there stays",
    )
    .option('--instrument <name>', 'with --remap: all done runs of this instrument')
    .option('--json', 'print what became of each as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed retry 17\n  labfeed retry --quarantined\n  labfeed retry 17 18 --remap\n  labfeed retry --remap --instrument nanodrop',
    )
    .action(retry);
}

async function retry(jobs: readonly number[], options: RetryOptions): Promise<void> {
  requireOneChoice(jobs, options);
  const { quarantined, remap, instrument, json } = options;
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  const outcomes = await ask(journal, (client) => {
    if (quarantined) return client.quarantined().map((run) => ({ kind: 'retry', run }));
    const runs = instrument === undefined ? jobs : client.done(instrument);
    return runs.map((run) => ({ kind: remap ? 'remap' : 'retry', run }));
  });
  if (outcomes.length > 0 || json) tellOutcomes(journal, outcomes, json);
  else console.log(quarantined ? 'nothing is quarantined' : `no run of ${instrument} is done`);
}

function requireOneChoice(jobs: readonly number[], { quarantined, remap, instrument }: RetryOptions): void {
  if (instrument !== undefined && !remap) {
    throw new UsageError('--instrument goes with --remap: it means all done runs of an instrument', {
      hint: `for example: labfeed retry --remap --instrument ${instrument}`,
    });
  }
  if (quarantined && remap) {
    throw new UsageError("what is quarantined is read anew with today's mapping in any case", {
      hint: 'leave out --remap, which is for runs that are done',
    });
  }
  const choices = [jobs.length > 0, quarantined === true, instrument !== undefined].filter(Boolean);
  if (choices.length === 1) return;
  const others = remap ? '--instrument' : '--quarantined';
  throw new UsageError(`expected either the numbers of runs or ${others}`, {
    hint: remap ? 'for example: labfeed retry 17 --remap' : 'for example: labfeed retry 17',
  });
}
