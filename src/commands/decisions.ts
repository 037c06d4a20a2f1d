import type { Command } from 'commander';
import { systemClock } from '../clock.js';
import { journalOf } from '../config/locations.js';
import type { Existing } from '../config/schema.js';
import { EXIT, UsageError } from '../errors.js';
import { type JournalClient, openClient } from '../journal/client.js';
import { isFree, JournalInUseError } from '../journal/database.js';
import { openJournal } from '../journal/journal.js';
import { type Request, subjectOf } from '../journal/requests.js';
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

/** What became of one request. `waiting`: it is in the journal, durably, for a daemon that has not answered yet. */
export interface Outcome {
  readonly run?: number;
  /** Of a request that is about no run. */
  readonly instrument?: string;
  readonly outcome: 'done' | 'refused' | 'waiting';
  readonly text: string;
}

/** The daemon looks twice a second; longer than this it does not answer only when something is wrong with it. */
const WAIT_MS = 10_000;
const LOOK_MS = 100;

/** Leaves the requests in the journal's inbox, and resolves with what whoever holds the journal made of them. */
export async function ask(
  path: string,
  choose: (client: JournalClient) => Promise<readonly Request[]>,
): Promise<Outcome[]> {
  const client = openClient(path);
  try {
    const requests = await choose(client);
    const asked = await client.ask(requests, systemClock.now());
    await answered(asked, path, client);
    return await Promise.all(
      requests.map(async (request, index) => ({
        ...('run' in request ? { run: request.run } : { instrument: request.instrument }),
        ...(await outcomeOf(request, asked[index] ?? 0, client)),
      })),
    );
  } finally {
    await client.close();
  }
}

/** Waits for the answers, for as long as there are more of them from time to time. */
async function answered(asked: readonly number[], path: string, client: JournalClient): Promise<void> {
  let open = asked;
  let until = systemClock.monotonic() + WAIT_MS;
  do {
    await applyIfFree(path);
    const answers = await Promise.all(open.map((id) => client.answerTo(id)));
    const left = open.filter((_, index) => answers[index] === undefined);
    if (left.length === 0) return;
    if (left.length < open.length) until = systemClock.monotonic() + WAIT_MS;
    open = left;
    await systemClock.sleep(LOOK_MS);
  } while (systemClock.monotonic() < until);
}

/** Where no daemon runs, the command is one for a moment. */
async function applyIfFree(path: string): Promise<void> {
  if (!isFree(path)) return;
  try {
    const journal = await openJournal(path, systemClock);
    try {
      while ((await journal.inbox.apply()).length > 0);
    } finally {
      await journal.close();
    }
  } catch (error) {
    // A daemon has started meanwhile: it answers.
    if (!(error instanceof JournalInUseError)) throw error;
  }
}

async function outcomeOf(
  request: Request,
  asked: number,
  client: JournalClient,
): Promise<Omit<Outcome, 'run'>> {
  // Looked at before the answer, which may come in between.
  const isWaiting = await client.isWaiting(asked);
  const answer = await client.answerTo(asked);
  if (answer) return { outcome: answer.done ? 'done' : 'refused', text: answer.text };
  if (isWaiting) {
    const text = `${subjectOf(request)}: not answered yet; it is recorded in the journal, and the daemon carries it out as soon as it can`;
    return { outcome: 'waiting', text };
  }
  const text = `${subjectOf(request)}: what was asked is no longer in the journal, and what became of it is not known; ask again`;
  return { outcome: 'refused', text };
}

/** `path`: of the journal. */
function tellOutcomes(path: string, outcomes: readonly Outcome[], json: boolean | undefined): void {
  if (json) console.log(JSON.stringify(outcomes, null, 2));
  else {
    for (const { outcome, text } of outcomes) {
      if (outcome === 'done') console.log(text);
      else process.stderr.write(`${text}\n`);
    }
  }
  if (!json && outcomes.some(({ outcome }) => outcome === 'done') && isFree(path))
    process.stderr.write('no daemon runs: what is to be sent or read goes on with the next `labfeed run`\n');
  // What waits is not done: a script that goes on as if it were would be wrong.
  if (outcomes.some(({ outcome }) => outcome !== 'done')) process.exitCode = EXIT.failed;
}

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
