import { basename } from 'node:path';
import { type Command, InvalidArgumentError } from 'commander';
import { systemClock } from '../clock.js';
import type { LoadedConfig } from '../config/load.js';
import { LabfeedError, splitHint } from '../errors.js';
import { describeGrowth } from '../growth.js';
import type { Found, Job } from '../journal/jobs.js';
import type { JobDetail } from '../journal/reader.js';
import type { Live, WaitingFile } from '../live.js';
import { RUN_STATES, type RunState } from '../model.js';
import { describeEvent } from '../status/history.js';
import {
  describeSource,
  formatBytes,
  formatShortTime,
  formatTime,
  hasWords,
  indent,
  nearest,
  plural,
  terminalLine,
  terminalText,
  versionLines,
  withoutPath,
} from '../text.js';
import {
  type JsonOption,
  olderRuns,
  parseNumber,
  requireInstrument,
  runningLive,
  withJson,
  withReader,
} from './options.js';
import { attentionLine, backlogAttention } from './status.js';
import { type Column, formatTable, htmlToText, terminalWidth } from './terminal.js';

interface JobsOptions extends JsonOption {
  readonly state?: RunState;
  readonly instrument?: string;
  readonly search?: string;
  readonly limit: number;
}

export function addJobs(command: Command): void {
  withJson(command, [
    'labfeed jobs --state quarantined',
    'labfeed jobs --search caffeine',
    'labfeed jobs --instrument nanodrop --limit 200',
  ])
    .option('--state <state>', `Only runs in this state: ${RUN_STATES.join(', ')}`, parseState)
    .option('--instrument <instrument>', 'Only runs of this instrument')
    .option('--search <text>', 'Only runs with these words in file name, title, instrument, tags, fields or body')
    .option('--limit <number>', 'Maximum number of runs', parseNumber, 50)
    .action(jobs);
}

function parseState(text: string): RunState {
  const state = RUN_STATES.find((known) => known === text);
  if (state) return state;
  const guess = nearest(text, RUN_STATES);
  throw new InvalidArgumentError(guess ? `Did you mean ${guess}?` : `Expected one of: ${RUN_STATES.join(', ')}.`);
}

async function jobs({ state, instrument, search, limit, json, ...options }: JobsOptions): Promise<void> {
  const { runs, backlogs, searchedTo, isWatcher } = await withReader(options, async (opened) => {
    if (instrument !== undefined) await requireInstrument(instrument, opened);
    const live = runningLive(opened.journal, systemClock.now());
    const waiting = state === undefined || state === 'waiting' ? waitingFiles(live, { instrument, search }) : [];
    // One more than requested shows whether there are more.
    const filter = { state, instrument, limit: limit + 1 };
    const { jobs: known, searchedTo }: Found =
      search === undefined
        ? { jobs: await opened.reader.jobs(filter) }
        : await opened.reader.search({ ...filter, search }, MAX_SEARCH_MS);
    const { instruments } = await opened.reader.overview();
    // A backlog without a decision is held too, although its files are not runs yet.
    const held = search === undefined && (state === undefined || state === 'held') ? instruments : [];
    const backlogs = held.filter(({ name }) => (instrument ?? name) === name).flatMap(backlogAttention);
    const isWatcher = opened.config.settings.fleet?.role === 'watch';
    return { runs: [...waiting, ...known], backlogs, searchedTo, isWatcher };
  });
  const listed = runs.slice(0, limit);
  if (json) return console.log(JSON.stringify(listed, null, 2));
  console.log(listed.length === 0 ? noRuns({ state, instrument, search }) : jobsTable(listed, systemClock.now()));
  for (const backlog of backlogs) console.log(attentionLine(backlog));
  if (searchedTo !== undefined)
    process.stderr.write(`only runs ${searchedTo} and newer were searched; to find an older one: labfeed why FILE\n`);
  if (isWatcher && runs.length <= limit)
    process.stderr.write(
      'older runs of other machines are listed on a machine that delivers; why and show know all runs\n',
    );
  if (runs.length > limit) process.stderr.write(`there are more runs; to list more: --limit ${4 * limit}\n`);
}

type Filter = Pick<JobsOptions, 'state' | 'instrument' | 'search'>;

const noRuns = ({ state, instrument, search }: { [K in keyof Filter]: Filter[K] | undefined }): string =>
  [
    `no ${state === undefined ? '' : `${state} `}runs`,
    ...(instrument === undefined ? [] : [`of ${instrument}`]),
    ...(search === undefined ? [] : [`match ${JSON.stringify(search)}. What is known about a file: labfeed why FILE`]),
  ].join(' ');

/** Longer than on the page: here nothing else has to wait. */
const MAX_SEARCH_MS = 20_000;

/** A file that is not settled yet; the journal does not know it. */
type WaitingJob = WaitingFile & { readonly state: 'waiting'; readonly instrument: string };

function waitingFiles(
  live: Live | undefined,
  { instrument, search = '' }: { instrument: string | undefined; search: string | undefined },
): WaitingJob[] {
  const instruments = (live?.instruments ?? []).filter(({ name }) => (instrument ?? name) === name);
  return instruments.flatMap(({ name, waiting }) =>
    waiting.first
      .filter(({ path }) => hasWords(`${name} ${path}`, search))
      .map((file) => ({ state: 'waiting', instrument: name, ...file })),
  );
}

type Listed = Job | WaitingJob;

export const jobsTable = (jobs: readonly Listed[], now: number): string =>
  formatTable(columns(now), jobs, terminalWidth());

const columns = (now: number): Column<Listed>[] => [
  { title: 'run', align: 'right', text: (job) => ('id' in job ? String(job.id) : '-') },
  { title: 'state', text: ({ state }) => state },
  { title: 'instrument', flexible: true, text: ({ instrument }) => instrument },
  { title: 'file', flexible: true, text: ({ path }) => (path === '' ? '(erased)' : basename(path)) },
  { title: 'since', text: (job) => formatShortTime('id' in job ? job.updatedAt : job.since, now) },
  { title: 'exp.', align: 'right', text: (job) => ('id' in job ? String(job.experiment ?? '') : '') },
  { title: 'details', flexible: true, text: reasonOrTitle },
];

function reasonOrTitle(job: Listed): string {
  const [reason = ''] = withoutPath(job.reason ?? '', job.path).split('\n');
  return reason || ('id' in job ? (job.title ?? '') : '');
}

export function addShow(command: Command): void {
  withJson(command, ['labfeed show 17']).argument('<run>', 'Run number', parseNumber).action(show);
}

async function olderRun(id: number, config: LoadedConfig): Promise<JobDetail | undefined> {
  const older = await olderRuns(config, { run: id });
  const found = await older?.job(id);
  await older?.close();
  return found;
}

async function show(id: number, { json, ...options }: JsonOption): Promise<void> {
  const { job, halted } = await withReader(options, async ({ config, reader }) => {
    const found = (await reader.job(id)) ?? (await olderRun(id, config));
    const { servers } = await reader.overview();
    if (found) return { job: found, halted: servers.find(({ url }) => url === config.notebook?.url)?.halted };
    const [last] = await reader.jobs({ limit: 1 });
    throw new LabfeedError(`there is no run ${id}`, {
      hint: last ? `the last run is ${last.id}; to list runs: labfeed jobs` : 'there are no runs yet',
    });
  });
  const next = nextStep(job, halted);
  if (json) console.log(JSON.stringify({ ...job, next }, null, 2));
  else
    console.log(
      [headline(job), ...facts(job), ...problems(job, next), ...versions(job), ...history(job), ...draft(job)].join(
        '\n',
      ),
    );
}

function headline({ id, state, experiment, server }: JobDetail): string {
  return `run ${id}: ${state}${experiment === undefined ? '' : `, experiment ${experiment} at ${server}`}`;
}

const fact = (name: string, value: string): string => `${name.padEnd(13)}${terminalLine(value)}`;

function facts(job: JobDetail): string[] {
  const { path, size, modifiedMs, paths } = job;
  const others = paths.filter((other) => other !== path);
  // For a run that was recovered from the notebook, only the file's name is known.
  const modified = modifiedMs === 0 ? '' : ` (${formatBytes(size)}, modified ${formatTime(modifiedMs)})`;
  return [
    fact('instrument', job.instrument),
    fact('file', path === '' ? '(erased)' : `${path}${modified}`),
    ...others.map((other) => fact('also seen as', other)),
    ...describeSources(job).map((line) => fact('afterwards', line)),
    fact('sha256', job.sha256),
    fact('added', `${formatTime(job.addedAt)}${job.backlog ? ' (from the backlog)' : ''}`),
    fact('last change', formatTime(job.updatedAt)),
    ...(job.growth ? [fact('growing', describeGrowth(job.growth))] : []),
  ];
}

/** Without the hint, if there is one. */
function describeSources({ sources }: JobDetail): string[] {
  const lines = sources.flatMap((source) => {
    const [words] = describeSource(source)?.split('\n') ?? [];
    return words === undefined ? [] : `${basename(source.path)} ${words}`;
  });
  const more = lines.length - MAX_SOURCES_SHOWN;
  return [...lines.slice(0, MAX_SOURCES_SHOWN), ...(more > 0 ? [`and ${plural(more, 'more file')}`] : [])];
}

/** Of a folder with thousands of files. */
const MAX_SOURCES_SHOWN = 10;

function problems(job: JobDetail, next: string): string[] {
  const { reason, attempts, drift } = job;
  const tries = attempts > 0 ? ` (after ${plural(attempts, 'attempt')})` : '';
  return [
    ...(reason === undefined ? [] : [`reason${tries}`, indent(terminalText(reason))]),
    ...(drift.length === 0 ? [] : ['differs from earlier runs', ...drift.map((one) => `  ${terminalLine(one)}`)]),
    fact('next step', next),
  ];
}

/** What a person can do about a run. `halted`: why nothing is sent until `recover`. */
export function nextStep(job: Job, halted?: string): string {
  const { id, state, path } = job;
  switch (state) {
    case 'waiting':
      return 'nothing to do: the file is taken as soon as it is complete';
    case 'queued':
    case 'sending':
      if (halted !== undefined) return `labfeed recover; nothing is sent before that: ${halted}`;
      return job.reason === undefined
        ? 'nothing to do: the run is sent as soon as the notebook accepts it'
        : `nothing to do: the next attempt is at ${formatTime(job.dueAt)}. If this continues, check the notebook`;
    case 'done':
      return path === '' ? 'nothing to do: the run was filed, then erased here' : 'nothing to do: the run is filed';
    case 'quarantined':
      return quarantined(job);
    case 'held':
      return held(job);
    case 'ignored':
      return `nothing to do. To file it after all: labfeed ${path === '' ? 'refile' : 'retry'} ${id}`;
  }
}

function quarantined({ id, failure }: Job): string {
  const fix =
    failure === 'file' ? 'fix the mapping or the file' : 'fix the mapping, or ask the administrator of the notebook';
  return `${fix}, then run: labfeed retry ${id} (reloading a changed mapping also retries it). ${orIgnore(id)}`;
}

function held({ id, step, failure, experiment, reason }: Job): string {
  if (step === 'done') return `to file it again: labfeed refile ${id}. ${orIgnore(id)}`;
  if (failure === 'drift')
    return `to file it and accept its columns for later runs: labfeed retry ${id}. Otherwise, change the mapping and reload. ${orIgnore(id)}`;
  const [what, which] =
    experiment === undefined ? ['an existing experiment', 'EXPERIMENT'] : [`experiment ${experiment}`, experiment];
  // A reason with a hint says whether adopting helps, and what it does.
  const adopt = splitHint(reason ?? '').hint ? '' : ` To overwrite ${what}: labfeed adopt ${id} ${which}.`;
  return `to check again: labfeed retry ${id}.${adopt} To create a new one: labfeed refile ${id}. ${orIgnore(id)}`;
}

const orIgnore = (id: number): string => `If it should not be filed: labfeed ignore ${id}`;

/** Newest last, as in the history. */
function versions({ versions: all }: JobDetail): string[] {
  if (all.length === 0) return [];
  return ['', 'versions of the file', ...versionLines(all).map((line) => `  ${line}`)];
}

function history({ history: events }: JobDetail): string[] {
  if (events.length === 0) return ['', fact('history', 'removed, because the run is older than `keep`')];
  const hanging = (text: string): string => text.replaceAll('\n', `\n${' '.repeat(23)}`);
  return [
    '',
    'history',
    ...events.map((event) => `  ${formatTime(event.at)}  ${hanging(terminalText(describeEvent(event)))}`),
  ];
}

function draft({ draft: sent, comments }: JobDetail): string[] {
  if (sent === undefined) return comments.length === 0 ? [] : ['', ...comments.map(posted)];
  return [
    '',
    fact('title', sent.title),
    fact('date', sent.date),
    fact('tags', sent.tags.join(', ')),
    fact('body', `${formatBytes(Buffer.byteLength(sent.body))} of HTML`),
    indent(terminalText(htmlToText(sent.body))),
    ...comments.flatMap((comment) => [
      posted(comment),
      ...(comment.text === '' ? [] : [indent(terminalText(comment.text))]),
    ]),
  ];
}

const posted = ({ n, comment }: JobDetail['comments'][number]): string =>
  fact(`comment ${n}`, comment === undefined ? 'not posted yet' : `posted as ${comment}`);
