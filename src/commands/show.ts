import type { Command } from 'commander';
import { LabfeedError } from '../errors.js';
import type { JobDetail } from '../journal/reader.js';
import { nextStep } from '../why/gather.js';
import { type ConfigOption, configOption } from './config-option.js';
import { jobAsText } from './job-text.js';
import { readNumber } from './number-argument.js';
import { reading } from './reading.js';

interface ShowOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addShow(program: Command): void {
  program
    .command('show')
    .description('show one run: what became of it and when, what is sent for it, and what to do next')
    .argument('<job>', 'the number of the run', readNumber)
    .addOption(configOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed show 17')
    .action(show);
}

async function show(id: number, { json, ...options }: ShowOptions): Promise<void> {
  const job = reading(options, ({ reader }): JobDetail => {
    const found = reader.job(id);
    if (found) return found;
    const [last] = reader.jobs({ limit: 1 });
    throw new LabfeedError(`there is no run ${id}`, {
      hint: last ? `the last one is ${last.id}; labfeed jobs lists them` : 'there are no runs yet',
    });
  });
  if (json) return console.log(JSON.stringify({ ...job, next: nextStep(job) }, null, 2));
  console.log(jobAsText(job));
}
