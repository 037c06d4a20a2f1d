import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { shownProblem } from '../daemon/works.js';
import { type ConfigOption, configOption } from './config-option.js';
import { daemonState } from './daemon-state.js';
import { reading } from './reading.js';
import { needsPerson, statusAsText } from './status-text.js';
import { outputWidth } from './table.js';

interface StatusOptions extends ConfigOption {
  readonly json?: boolean;
}

export function addStatus(program: Command): void {
  program
    .command('status')
    .description(
      'say whether the daemon runs and what it does: instruments, queue, notebook, what is wrong, what waits for a person',
    )
    .addOption(configOption())
    .option('--json', 'print it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed status')
    .action(status);
}

async function status({ json, ...options }: StatusOptions): Promise<void> {
  const now = systemClock.now();
  const state = reading(options, ({ config, journal, reader }) => ({
    at: now,
    journal,
    ...daemonState(journal, now),
    problems: config.problems.map(shownProblem),
    notebook: config.notebook?.url,
    /** Also those of which nothing has come yet. */
    listed: config.listed.map(({ name }) => name),
    overview: reader.overview(),
  }));
  if (!json) return console.log(statusAsText(state, outputWidth()));
  const { listed, notebook, ...told } = state;
  console.log(JSON.stringify({ ...told, attention: needsPerson(state) }, null, 2));
}
