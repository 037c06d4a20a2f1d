import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { journalOf } from '../config/locations.js';
import { UsageError } from '../errors.js';
import { openClient } from '../journal/client.js';
import { ask, type Outcome, tellOutcomes } from './ask.js';
import { type ConfigOption, configOption, loadNamed, requireJournal } from './config-option.js';
import { readDate, startOf } from './date-argument.js';
import { readNumbers } from './number-argument.js';

interface EraseOptions extends ConfigOption {
  readonly before?: string;
  readonly json?: boolean;
}

export function addErase(program: Command): void {
  program
    .command('erase')
    .description(
      'remove names, draft and history of runs that are done, quarantined or ignored; only the hash is kept, so that the same bytes are never filed again',
    )
    .argument('[job...]', 'the numbers of the runs', readNumbers)
    .addOption(configOption())
    .option('--before <date>', 'all whose last change was before this day', readDate)
    .option('--json', 'print what became of each as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed erase 17\n  labfeed erase --before 2020-01-01\n\nIt cannot be undone. The file, the experiment in the notebook, the log and backups of the journal stay as they are.',
    )
    .action(erase);
}

async function erase(jobs: readonly number[], { before, json, ...options }: EraseOptions): Promise<void> {
  if ((jobs.length === 0) === (before === undefined)) {
    throw new UsageError('expected either the numbers of runs or --before', {
      hint: 'for example: labfeed erase 17',
    });
  }
  const config = loadNamed(options);
  requireJournal(config);
  const journal = journalOf(config);
  const outcomes = await ask(journal, (client) =>
    (before === undefined ? jobs : client.finishedBefore(startOf(before))).map((run) => ({
      kind: 'erase',
      run,
    })),
  );
  if (outcomes.some(({ outcome }) => outcome === 'done')) await scrub(journal);
  if (json || before === undefined) return tellOutcomes(journal, outcomes, json);
  console.log(summary(outcomes, before));
  tellOutcomes(
    journal,
    outcomes.filter(({ outcome }) => outcome !== 'done'),
    false,
  );
}

function summary(outcomes: readonly Outcome[], before: string): string {
  const erased = outcomes.filter(({ outcome }) => outcome === 'done').length;
  if (outcomes.length === 0) return `no run is left to be erased whose last change was before ${before}`;
  return `${erased === 1 ? '1 run' : `${erased} runs`} erased; their experiments stay in the notebook`;
}

const ATTEMPTS = 20;
const PAUSE_MS = 250;

/** What was erased stands in the write-ahead file until nobody reads the journal as it was before. */
async function scrub(journal: string): Promise<void> {
  const client = openClient(journal);
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt++) {
      if (client.scrub()) return;
      await systemClock.sleep(PAUSE_MS);
    }
  } finally {
    client.close();
  }
  process.stderr.write(
    `somebody still reads the journal as it was before (a backup?): ${journal}-wal holds what was erased until then\n`,
  );
}
