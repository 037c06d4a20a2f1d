import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { type ConfigOption, configOption } from './config-option.js';

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
  const [{ reading }, { daemonState }, { needsPerson, statusAsText }, { outputWidth }, { shownProblem }] =
    await Promise.all([
      import('./reading.js'),
      import('./daemon-state.js'),
      import('./status-text.js'),
      import('./table.js'),
      import('../daemon/live-problems.js'),
    ]);
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
