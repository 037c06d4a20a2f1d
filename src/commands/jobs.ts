import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import type { Live } from '../live.js';
import { RUN_STATES, type RunState } from '../model.js';
import { nearest } from '../text.js';
import { type ConfigOption, configOption } from './config-option.js';
import { runningLive } from './daemon-state.js';
import { jobsTable, type WaitingJob } from './jobs-table.js';
import { readNumber } from './number-argument.js';
import { reading, requireInstrument } from './reading.js';
import { asLine, oldFiles } from './status-text.js';

interface JobsOptions extends ConfigOption {
  readonly state?: RunState;
  readonly instrument?: string;
  readonly limit: number;
  readonly json?: boolean;
}

export function addJobs(program: Command): void {
  program
    .command('jobs')
    .description('list runs, the newest first, with where they are and what is wrong with them')
    .addOption(configOption())
    .option('--state <state>', `only those: ${RUN_STATES.join(', ')}`, readState)
    .option('--instrument <instrument>', 'only those of this instrument')
    .option('--limit <number>', 'so many at most', readNumber, 50)
    .option('--json', 'print them as JSON')
    .addHelpText(
      'after',
      '\nExample:\n  labfeed jobs --state quarantined\n  labfeed jobs --instrument nanodrop --limit 200',
    )
    .action(jobs);
}

function readState(text: string): RunState {
  const state = RUN_STATES.find((known) => known === text);
  if (state) return state;
  const guess = nearest(text, RUN_STATES);
  throw new InvalidArgumentError(
    guess ? `did you mean ${guess}?` : `expected one of: ${RUN_STATES.join(', ')}.`,
  );
}

async function jobs({ state, instrument, limit, json, ...options }: JobsOptions): Promise<void> {
  const { listed, more, questions } = reading(options, (opened) => {
    requireInstrument(instrument, opened);
    const live = runningLive(opened.journal, systemClock.now());
    const waiting = state === undefined || state === 'waiting' ? waitingFiles(live, instrument) : [];
    // One more than asked for tells whether there are more.
    const runs = opened.reader.jobs({ state, instrument, limit: limit + 1 });
    const all = [...waiting, ...runs];
    // Old files that nobody answered for are held too, though they are no runs yet.
    const asked = state === undefined || state === 'held' ? opened.reader.overview().instruments : [];
    const questions = asked.filter(({ name }) => (instrument ?? name) === name).flatMap(oldFiles);
    return { listed: all.slice(0, limit), more: all.length > limit, questions };
  });
  if (json) return console.log(JSON.stringify(listed, null, 2));
  console.log(listed.length === 0 ? nothing(state, instrument) : jobsTable(listed, systemClock.now()));
  for (const question of questions) console.log(asLine(question));
  if (more) process.stderr.write(`there are more: --limit ${4 * limit}\n`);
}

function waitingFiles(live: Live | undefined, instrument: string | undefined): WaitingJob[] {
  const lines = (live?.instruments ?? []).filter(
    ({ name }) => instrument === undefined || name === instrument,
  );
  return lines.flatMap(({ name, waiting }) =>
    waiting.first.map((file) => ({ state: 'waiting', instrument: name, ...file })),
  );
}

const nothing = (state: RunState | undefined, instrument: string | undefined): string =>
  [
    'no runs',
    ...(instrument === undefined ? [] : [`of ${instrument}`]),
    ...(state === undefined ? [] : [`that are ${state}`]),
  ].join(' ');
