import { type Command, InvalidArgumentError } from 'commander';
import { z } from 'zod';
import { systemClock } from '../clock.js';
import type { LoadedConfig } from '../config/load.js';
import { EXIT, UsageError } from '../errors.js';
import { isFree, JournalInUseError } from '../journal/database.js';
import { type Request, subjectOf } from '../journal/decisions.js';
import { movedTo } from '../journal/fleet-view.js';
import { openJournal } from '../journal/journal.js';
import { applyRequests, type JournalClient, openClient, withoutRuns } from '../journal/requests.js';
import { plural } from '../text.js';
import { sourceProbe } from '../watch/identify.js';
import {
  configFrom,
  type JsonOption,
  parseNumber,
  parseNumbers,
  requireInstrument,
  requireJournal,
  requireUsable,
  withJson,
  withReader,
} from './options.js';

/** The result of one request. `waiting`: it is saved in the journal, but the daemon has not answered yet. */
export interface RequestResult {
  readonly run?: number;
  /** For a request that is not about a run. */
  readonly instrument?: string;
  readonly outcome: 'done' | 'refused' | 'waiting';
  readonly text: string;
}

type ChooseRequests = (client: JournalClient) => Promise<readonly Request[]>;

/** The daemon reads its inbox twice a second. */
const MAX_WAIT_MS = 10_000;
const POLL_MS = 100;

/** Puts requests into the inbox of the journal and waits until they are carried out. */
export async function sendRequests(journal: string, choose: ChooseRequests): Promise<RequestResult[]> {
  const client = openClient(journal);
  try {
    const requests = await choose(client);
    const ids = await client.ask(requests, systemClock.now());
    await waitForAnswers(ids, journal, client);
    return await Promise.all(requests.map((request, n) => resultOf(request, ids[n] ?? 0, client)));
  } finally {
    await client.close();
  }
}

/** Gives up after ten seconds without any answer. */
async function waitForAnswers(ids: readonly number[], journal: string, client: JournalClient): Promise<void> {
  let open = ids;
  let deadline = systemClock.monotonic() + MAX_WAIT_MS;
  do {
    await applyWithoutDaemon(journal);
    const answers = await Promise.all(open.map((id) => client.answerTo(id)));
    const left = open.filter((_, n) => answers[n] === undefined);
    if (left.length === 0) return;
    if (left.length < open.length) deadline = systemClock.monotonic() + MAX_WAIT_MS;
    open = left;
    await systemClock.sleep(POLL_MS);
  } while (systemClock.monotonic() < deadline);
}

/** If no daemon runs, the command carries out the requests itself. */
async function applyWithoutDaemon(path: string): Promise<void> {
  if (!isFree(path)) return;
  try {
    const journal = await openJournal(path, systemClock);
    const requests = movedTo(journal.store.db) ? withoutRuns(journal.requests) : journal.requests;
    try {
      while ((await applyRequests({ ...journal, requests }, sourceProbe)).length > 0);
    } finally {
      await journal.close();
    }
  } catch (error) {
    // A daemon has started in the meantime and will answer.
    if (!(error instanceof JournalInUseError)) throw error;
  }
}

async function resultOf(request: Request, id: number, client: JournalClient): Promise<RequestResult> {
  const subject = 'run' in request ? { run: request.run } : { instrument: request.instrument };
  // Read before the answer, which may arrive in between.
  const isWaiting = await client.isWaiting(id);
  const answer = await client.answerTo(id);
  if (answer) return { ...subject, outcome: answer.done ? 'done' : 'refused', text: answer.text };
  return isWaiting
    ? { ...subject, outcome: 'waiting', text: `${subjectOf(request)}: ${NOT_ANSWERED}` }
    : { ...subject, outcome: 'refused', text: `${subjectOf(request)}: ${LOST_REQUEST}` };
}

const NOT_ANSWERED = 'the daemon has not responded yet. The request is saved in the journal and will be carried out.';
const LOST_REQUEST = 'the request is no longer in the journal, and its result is unknown. Run the command again.';
export const NO_DAEMON = 'the daemon is not running; the rest will be done once you start it: `labfeed run`';

interface Decision extends JsonOption {
  /** The requests; their results are the command's output. */
  choose(client: JournalClient, config: LoadedConfig): Promise<readonly Request[]>;
  /** What to print if there are no requests. */
  readonly none?: string;
  /** Printed in place of the results of requests that were carried out. */
  summarize?(done: number): string;
}

/** The skeleton of all commands below. Returns the journal and the number of requests that were carried out. */
async function decide({ choose, none, summarize, json, ...options }: Decision) {
  const config = configFrom(options);
  const journal = requireJournal(config);
  const results = await sendRequests(journal, (client) => choose(client, config));
  const done = results.filter(({ outcome }) => outcome === 'done');
  if (json) console.log(JSON.stringify(results, null, 2));
  else if (results.length === 0 && none !== undefined) console.log(none);
  else {
    if (summarize) console.log(summarize(done.length));
    for (const { outcome, text } of results) {
      if (outcome !== 'done') process.stderr.write(`${text}\n`);
      else if (!summarize) console.log(text);
    }
    if (done.length > 0 && !summarize && isFree(journal)) process.stderr.write(`${NO_DAEMON}\n`);
  }
  // A request that is still waiting is not done either: scripts must not continue as if it were.
  if (done.length < results.length) process.exitCode = EXIT.failed;
  return { journal, done: done.length };
}

const requestsFor = (kind: 'retry' | 'remap' | 'refile' | 'ignore' | 'erase', runs: readonly number[]): Request[] =>
  runs.map((run) => ({ kind, run }));

interface RetryOptions extends JsonOption {
  readonly quarantined?: boolean;
  readonly held?: boolean;
  readonly remap?: boolean;
  readonly instrument?: string;
}

export function addRetry(command: Command): void {
  withJson(command, [
    'labfeed retry 17',
    'labfeed retry --quarantined',
    'labfeed retry --held',
    'labfeed retry 17 18 --remap',
    'labfeed retry --remap --instrument nanodrop',
  ])
    .argument('[run...]', 'Run numbers', parseNumbers)
    .option('--quarantined', 'Retry all quarantined runs')
    .option('--held', 'Retry all held runs, and accept the changed columns of those held for drift')
    .option('--remap', 'Re-read done runs and update their experiments, keeping edits made in the notebook')
    .option('--instrument <instrument>', 'With --remap: all done runs of this instrument')
    .action(retry);
}

async function retry(runs: readonly number[], options: RetryOptions): Promise<void> {
  requireOneChoice(runs, options);
  const { remap, instrument } = options;
  const only = options.quarantined ? 'quarantined' : options.held ? 'held' : undefined;
  if (instrument !== undefined) await withReader(options, (opened) => requireInstrument(instrument, opened));
  await decide({
    ...options,
    none: only ? `no runs are ${only}` : `${instrument} has no done runs`,
    async choose(client) {
      if (only) return (await client.parked(only)).map((run) => ({ kind: 'retry', run, only }));
      const chosen = instrument === undefined ? runs : await client.done(instrument);
      return requestsFor(remap ? 'remap' : 'retry', chosen);
    },
  });
}

function requireOneChoice(runs: readonly number[], { quarantined, held, remap, instrument }: RetryOptions): void {
  if (instrument !== undefined && !remap) {
    throw new UsageError('--instrument can only be used with --remap', {
      hint: `for example: labfeed retry --remap --instrument ${instrument}`,
    });
  }
  if (remap && (quarantined || held)) {
    throw new UsageError(`--remap cannot be used with --${quarantined ? 'quarantined' : 'held'}`, {
      hint: 'leave out --remap: it is for done runs; quarantined runs are always read with the current mapping',
    });
  }
  const choices = [runs.length > 0, quarantined === true, held === true, instrument !== undefined];
  if (choices.filter(Boolean).length === 1) return;
  throw new UsageError(`expected either run numbers${remap ? ' or --instrument' : ', --quarantined or --held'}`, {
    hint: `for example: labfeed retry 17${remap ? ' --remap' : ''}`,
  });
}

const addRunsCommand =
  (kind: 'refile' | 'ignore') =>
  (command: Command): void => {
    withJson(command, [`labfeed ${kind} 17`, ...(kind === 'ignore' ? ['labfeed ignore 17 --undo'] : [])])
      .argument('<run...>', 'Run numbers', parseNumbers)
      .action(async (runs: readonly number[], { undo, ...options }: JsonOption & { undo?: true }) => {
        const choose = async () =>
          undo ? runs.map((run) => ({ kind: 'ignore', run, undo }) as const) : requestsFor(kind, runs);
        await decide({ ...options, choose });
      });
    if (kind === 'ignore') command.option('--undo', 'Put ignored runs back, so that they need a decision again');
  };

export const addRefile = addRunsCommand('refile');
export const addIgnore = addRunsCommand('ignore');

export function addAdopt(command: Command): void {
  withJson(command, ['labfeed adopt 17 4711'], ADOPT_NOTE)
    .argument('<run>', 'Run number', parseNumber)
    .argument('<experiment>', 'Experiment number in the notebook', parseNumber)
    .action(async (run: number, experiment: number, options: JsonOption) => {
      await decide({
        ...options,
        async choose(_, config) {
          requireUsable(config);
          return [{ kind: 'adopt', run, server: config.notebook.url, experiment }];
        },
      });
    });
}

const ADOPT_NOTE = 'Replaces the title, date and body of the experiment, and adds the tags and comments of the run.';

export function addErase(command: Command): void {
  withJson(command, ['labfeed erase 17', 'labfeed erase --before 2020-01-01'], ERASE_NOTE)
    .argument('[run...]', 'Run numbers', parseNumbers)
    .option('--before <date>', 'Erase all runs that were last changed before this date', parseDate)
    .action(erase);
}

const ERASE_NOTE = `Removes the file name, draft and history of runs that are done, quarantined or
ignored. The fingerprint stays, so that the same content is never filed again.
The file, the experiment in the notebook, the log and backups of the journal are
not changed. This cannot be undone.`;

async function erase(runs: readonly number[], options: JsonOption & { before?: string }): Promise<void> {
  const { before } = options;
  if ((runs.length === 0) === (before === undefined)) {
    throw new UsageError('expected either run numbers or --before', {
      hint: 'for example: labfeed erase 17',
    });
  }
  const { journal, done } = await decide({
    ...options,
    none: `no runs to erase before ${before}`,
    choose: async (client) =>
      requestsFor('erase', before === undefined ? runs : await client.finishedBefore(startOfDay(before))),
    ...(before !== undefined && {
      summarize: (erased: number) => `${plural(erased, 'run')} erased; the experiments stay in the notebook`,
    }),
  });
  if (done > 0) await scrub(journal);
}

const SCRUB_ATTEMPTS = 20;
const SCRUB_PAUSE_MS = 250;

/** Erased data stays in the write-ahead log until nobody reads an older state of the journal. */
async function scrub(journal: string): Promise<void> {
  const client = openClient(journal);
  try {
    for (let attempt = 0; attempt < SCRUB_ATTEMPTS; attempt++) {
      if (await client.scrub()) return;
      await systemClock.sleep(SCRUB_PAUSE_MS);
    }
  } finally {
    await client.close();
  }
  process.stderr.write(
    `${journal}-wal still holds the erased data, because another process is reading the journal (perhaps a backup)\n`,
  );
}

export function addBackfill(command: Command): void {
  withJson(command, ['labfeed backfill nanodrop', 'labfeed backfill nanodrop --since 2026-01-01'])
    .argument('<instrument>', 'Instrument whose backlog needs a decision')
    .option('--since <date>', 'File only files modified on or after this date, and skip the others', parseDate)
    .option('--skip', 'Skip the entire backlog')
    .option('--undo', 'Put the files that you skipped back into the backlog')
    .action(backfill);
}

interface BackfillOptions extends JsonOption {
  readonly since?: string;
  readonly skip?: boolean;
  readonly undo?: boolean;
}

async function backfill(instrument: string, options: BackfillOptions): Promise<void> {
  const { since, skip, undo } = options;
  if ([since !== undefined, skip, undo].filter(Boolean).length > 1) {
    throw new UsageError('only one of --since, --skip and --undo can be used', {
      hint: `for example: labfeed backfill ${instrument} --since 2026-01-01`,
    });
  }
  await withReader(options, (opened) => requireInstrument(instrument, opened));
  const existing = undo ? 'undo' : skip ? 'skip' : since === undefined ? 'ingest' : { since };
  await decide({ ...options, choose: async () => [{ kind: 'backfill', instrument, existing }] });
}

/** A day, as in the configuration. */
function parseDate(text: string): string {
  const { success, data } = z.iso.date().safeParse(text);
  if (!success) throw new InvalidArgumentError('Expected a date such as 2026-01-01.');
  return data;
}

/** In the local time zone. */
const startOfDay = (date: string): number => new Date(`${date}T00:00:00`).getTime();
