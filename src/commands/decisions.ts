import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { journalOf } from '../config/locations.js';
import type { Existing } from '../config/schema.js';
import { UsageError } from '../errors.js';
import { openClient } from '../journal/client.js';
import { ask, type Outcome, tellOutcomes } from './ask.js';
import {
  type ConfigOption,
  configOption,
  loadNamed,
  readDate,
  reading,
  readNumber,
  readNumbers,
  requireInstrument,
  requireJournal,
  requireVital,
  startOf,
} from './options.js';

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
  const outcomes = await ask(journal, async (client) => {
    if (quarantined) return (await client.quarantined()).map((run) => ({ kind: 'retry', run }));
    const runs = instrument === undefined ? jobs : await client.done(instrument);
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
  tellOutcomes(journal, await ask(journal, async () => jobs.map((run) => ({ kind: 'refile', run }))), json);
}

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
  tellOutcomes(journal, await ask(journal, async () => jobs.map((run) => ({ kind: 'ignore', run }))), json);
}

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
  tellOutcomes(journal, await ask(journal, async () => [{ kind: 'adopt', run, server, experiment }]), json);
}

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
  const outcomes = await ask(journal, async (client) =>
    (before === undefined ? jobs : await client.finishedBefore(startOf(before))).map((run) => ({
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
      if (await client.scrub()) return;
      await systemClock.sleep(PAUSE_MS);
    }
  } finally {
    await client.close();
  }
  process.stderr.write(
    `somebody still reads the journal as it was before (a backup?): ${journal}-wal holds what was erased until then\n`,
  );
}

interface BackfillOptions extends ConfigOption {
  readonly since?: string;
  readonly skip?: boolean;
  readonly json?: boolean;
}

export function addBackfill(program: Command): void {
  program
    .command('backfill')
    .description(
      'say what becomes of the many old files that the first scan of an instrument found: file them',
    )
    .argument('<instrument>', 'the instrument that asks')
    .addOption(configOption())
    .option('--since <date>', 'file those modified on this day or later, and pass over the others', readDate)
    .option('--skip', 'pass over all of them')
    .option('--json', 'print what became of it as JSON')
    .addHelpText('after', '\nExample:\n  labfeed backfill nanodrop --since 2026-01-01')
    .action(backfill);
}

async function backfill(
  instrument: string,
  { since, skip, json, ...options }: BackfillOptions,
): Promise<void> {
  if (since !== undefined && skip)
    throw new UsageError('expected one of --since and --skip', {
      hint: `for example: labfeed backfill ${instrument} --since ${since}`,
    });
  const existing: Existing = skip ? 'skip' : since === undefined ? 'ingest' : { since };
  const journal = await reading(options, async (opened) => {
    await requireInstrument(instrument, opened);
    return opened.journal;
  });
  tellOutcomes(journal, await ask(journal, async () => [{ kind: 'backfill', instrument, existing }]), json);
}
