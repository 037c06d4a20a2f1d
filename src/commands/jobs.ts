import { basename } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import { LabfeedError } from '../errors.js';
import type { Job, JobDetail } from '../journal/reader.js';
import type { Live } from '../live.js';
import { RUN_STATES, type RunState } from '../model.js';
import { describeEvent } from '../status/history.js';
import {
  formatShortTime,
  formatTime,
  indent,
  nearest,
  terminalLine,
  terminalText,
  withoutPath,
} from '../text.js';
import { nextStep } from '../why/gather.js';
import {
  type ConfigOption,
  configOption,
  reading,
  readNumber,
  requireInstrument,
  runningLive,
} from './options.js';
import { asLine, oldFiles } from './status.js';
import { asTable, type Column, outputWidth } from './terminal.js';

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
  const { listed, more, questions } = await reading(options, async (opened) => {
    await requireInstrument(instrument, opened);
    const live = runningLive(opened.journal, systemClock.now());
    const waiting = state === undefined || state === 'waiting' ? waitingFiles(live, instrument) : [];
    // One more than asked for tells whether there are more.
    const runs = await opened.reader.jobs({ state, instrument, limit: limit + 1 });
    const all = [...waiting, ...runs];
    // Old files that nobody answered for are held too, though they are no runs yet.
    const { instruments } = await opened.reader.overview();
    const asked = state === undefined || state === 'held' ? instruments : [];
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

/** A file that is not still yet: the journal does not know it. */
interface WaitingJob {
  readonly state: 'waiting';
  readonly instrument: string;
  readonly path: string;
  readonly since: number;
  readonly reason: string;
}

type Listed = Job | WaitingJob;

export const jobsTable = (jobs: readonly Listed[], now: number): string =>
  asTable(columns(now), jobs, outputWidth());

const columns = (now: number): Column<Listed>[] => [
  { title: 'job', align: 'right', text: (job) => ('id' in job ? String(job.id) : '-') },
  { title: 'state', text: ({ state }) => state },
  { title: 'instrument', flexible: true, text: ({ instrument }) => instrument },
  { title: 'file', flexible: true, text: ({ path }) => (path === '' ? '(erased)' : basename(path)) },
  { title: 'since', text: (job) => formatShortTime('id' in job ? job.updatedAt : job.since, now) },
  {
    title: 'exp.',
    align: 'right',
    text: (job) => ('id' in job && job.experiment !== undefined ? String(job.experiment) : ''),
  },
  { title: 'what', flexible: true, text: what },
];

/** Why it is not filed, or as what it is. */
function what(job: Listed): string {
  const [reason = ''] = withoutPath(job.reason ?? '', job.path).split('\n');
  return reason || ('id' in job ? (job.title ?? '') : '');
}

/** One run for people: where it is, what to do, what happened, what is sent. */
function jobAsText(job: JobDetail): string {
  return [headline(job), ...facts(job), ...troubles(job), ...history(job), ...draft(job)].join('\n');
}

function headline({ id, state, experiment, server }: JobDetail): string {
  const where = experiment === undefined ? '' : `, experiment ${experiment} of ${server}`;
  return `run ${id}: ${state}${where}`;
}

const fact = (name: string, value: string): string => `${name.padEnd(13)}${terminalLine(value)}`;

function facts(job: JobDetail): string[] {
  const { path, size, modifiedMs, paths } = job;
  const others = paths.filter((other) => other !== path);
  // A run that was recovered from the notebook knows its file by name alone.
  const modified = modifiedMs === 0 ? '' : ` (${size} bytes, modified ${formatTime(modifiedMs)})`;
  return [
    fact('instrument', job.instrument),
    fact('file', path === '' ? '(erased)' : `${path}${modified}`),
    ...others.map((other) => fact('also seen as', other)),
    fact('sha256', job.sha256),
    fact('taken', `${formatTime(job.addedAt)}${job.backlog ? ', as one of the old files' : ''}`),
    fact('last change', formatTime(job.updatedAt)),
  ];
}

function troubles(job: JobDetail): string[] {
  const { reason, attempts, drift } = job;
  const tries = attempts > 0 ? ` (${attempts} attempts)` : '';
  return [
    ...(reason === undefined ? [] : [`why${tries}`, indent(terminalText(reason))]),
    ...(drift.length === 0
      ? []
      : ['not like the runs before it', ...drift.map((one) => `  ${terminalLine(one)}`)]),
    fact('to do', nextStep(job)),
  ];
}

function history({ history: happenings }: JobDetail): string[] {
  if (happenings.length === 0) return ['', 'history     none is kept of it any more'];
  return [
    '',
    'history',
    ...happenings.map(
      (happening) => `  ${formatTime(happening.at)}  ${hanging(terminalText(describeEvent(happening)))}`,
    ),
  ];
}

const hanging = (text: string): string => text.replaceAll('\n', `\n${' '.repeat(23)}`);

function draft({ draft: sent, comments }: JobDetail): string[] {
  if (sent === undefined) return comments.length === 0 ? [] : ['', ...comments.map(posted)];
  return [
    '',
    fact('title', sent.title),
    fact('date', sent.date),
    fact('tags', sent.tags.join(', ')),
    `body        ${Buffer.byteLength(sent.body)} bytes of HTML`,
    indent(terminalText(sent.body)),
    ...comments.flatMap((comment) => [
      posted(comment),
      ...(comment.text === '' ? [] : [indent(terminalText(comment.text))]),
    ]),
  ];
}

const posted = ({ n, comment }: JobDetail['comments'][number]): string =>
  `comment ${n}   ${comment === undefined ? 'not posted yet' : `posted, as ${comment}`}`;

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
  const job = await reading(options, async ({ reader }): Promise<JobDetail> => {
    const found = await reader.job(id);
    if (found) return found;
    const [last] = await reader.jobs({ limit: 1 });
    throw new LabfeedError(`there is no run ${id}`, {
      hint: last ? `the last one is ${last.id}; labfeed jobs lists them` : 'there are no runs yet',
    });
  });
  if (json) return console.log(JSON.stringify({ ...job, next: nextStep(job) }, null, 2));
  console.log(jobAsText(job));
}
