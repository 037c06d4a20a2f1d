import { type Inputs, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { WaitingFile } from '../../live.js';
import { RUN_STATES, type RunState } from '../../model.js';
import {
  describeSource,
  formatBytes,
  formatClock,
  formatCount,
  formatTime,
  hasWords,
  joinWords,
  plural,
} from '../../text.js';
import type { FileAnswer, Job, JobDetail, JobsAnswer, PageState } from '../api.js';
import { fetchJob, fetchJobs } from './client.js';
import { RunChoices } from './decisions.js';
import {
  Ago,
  Draft,
  ExperimentLink,
  Facts,
  Lines,
  Now,
  nameOf,
  Reason,
  RunLink,
  Select,
  StateChip,
  shortReason,
  TextPanel,
  ViewTitle,
} from './parts.js';
import { type RunsRoute, runHref, runsHref } from './route.js';
import { fileName } from './summary.js';

interface Answer<T> {
  readonly value?: T;
  readonly error?: string;
}

/** Loads again when an input changes. If responses overtake each other, the one to the latest request counts. */
function useAnswer<T>(load: () => Promise<T>, inputs: Inputs): Answer<T> {
  const [answer, setAnswer] = useState<Answer<T>>({});
  const latest = useRef(0);
  useEffect(() => {
    latest.current += 1;
    const request = latest.current;
    const show = (next: Answer<T>): void => {
      if (request === latest.current) setAnswer(next);
    };
    load().then(
      (value) => show({ value }),
      (error: Error) => show({ error: error.message }),
    );
  }, inputs);
  return answer;
}

const PAGE_SIZE = 50;

/** How often a search is repeated. It costs much more than a list. */
const SEARCH_AGAIN_MS = 15_000;

export function RunList({ route, state }: { route: RunsRoute; state: PageState | undefined }) {
  const now = useContext(Now);
  const { view: _, ...filter } = route;
  const { value, error } = useAnswer(
    () => fetchJobs({ ...filter, limit: PAGE_SIZE + 1 }),
    [...Object.values(filter), route.search === undefined ? state : Math.floor(now / SEARCH_AGAIN_MS)],
  );
  const waiting = state && route.before === undefined ? waitingFiles(state, route) : [];
  const shown = value?.jobs.slice(0, PAGE_SIZE) ?? [];
  const files = value?.files ?? [];
  return (
    <>
      <ViewTitle>{route.search === undefined ? 'Runs' : `Runs that match “${route.search}”`}</ViewTitle>
      <Filters route={route} instruments={state?.overview.instruments.map(({ name }) => name) ?? []} />
      <p class="soft" role="status">
        {error ?? (value ? describeRuns(value, waiting, route) : route.search && 'Searching…')}
      </p>
      {waiting.length + shown.length + files.length > 0 && (
        <ul class="plain panel rows">
          {waiting.map((file) => (
            <WaitingRow key={file.path} file={file} />
          ))}
          {shown.map((job) => (
            <RunRow key={job.id} job={job} />
          ))}
          {files.map((file) => (
            <FileRow key={`${file.instrument} ${file.path}`} file={file} />
          ))}
        </ul>
      )}
      {state?.live.fleet?.delivers === false && value && value.jobs.length <= PAGE_SIZE && (
        <p class="soft">
          This machine does not keep the older runs of others. They are on the page of a machine that delivers;{' '}
          <code>labfeed why FILE</code> knows them here, too.
        </p>
      )}
      <nav class="paging" aria-label="Pages of runs">
        {route.before !== undefined && <a href={runsHref({ ...filter, before: undefined })}>Newest runs</a>}
        {value && value.jobs.length > PAGE_SIZE && (
          <a href={runsHref({ ...filter, before: shown.at(-1)?.id })} class="older">
            Older runs
          </a>
        )}
        {value?.searchedTo !== undefined && value.jobs.length <= PAGE_SIZE && (
          <a href={runsHref({ ...filter, before: value.searchedTo })}>Search older runs</a>
        )}
      </nav>
    </>
  );
}

function Filters({ route, instruments }: { route: RunsRoute; instruments: readonly string[] }) {
  const { state = '', instrument = '', search } = route;
  // The address may name an instrument that is not known (yet).
  const names = new Set([...instruments, ...(instrument === '' ? [] : [instrument])]);
  return (
    <div class="filters">
      <Select
        id="runs-state"
        label="State"
        value={state}
        options={[['', 'All states'], ...RUN_STATES.map((name) => [name, name] as const)]}
        onSelect={(state) => location.assign(runsHref({ state, instrument, search }))}
      />
      <Select
        id="runs-instrument"
        label="Instrument"
        value={instrument}
        options={[['', 'All instruments'], ...[...names].map((name) => [name, name] as const)]}
        onSelect={(instrument) => location.assign(runsHref({ state, instrument, search }))}
      />
      {search !== undefined && (
        <a class="button clear" href={runsHref({ state, instrument })}>
          Show all runs
        </a>
      )}
    </div>
  );
}

function describeRuns(answer: JobsAnswer, waiting: readonly WaitingRun[], route: RunsRoute): string {
  const { jobs, searchedTo, files = [], hasMoreFiles } = answer;
  const { state, instrument, search, before } = route;
  const kind = state === undefined ? '' : `${state} `;
  const older = before === undefined ? '' : `, older than run ${before}`;
  const rest = `${instrument === undefined ? '' : ` of ${instrument}`}${older}`;
  if (jobs.length > PAGE_SIZE) return `The newest ${PAGE_SIZE} ${kind}runs${rest}`;
  const unreadable = waiting.filter(({ isUnreadable }) => isUnreadable).length;
  const notReady = waiting.length - unreadable;
  const parts = [
    ...(unreadable > 0 ? [`${plural(unreadable, 'file')} that cannot be read`] : []),
    ...(notReady > 0 ? [`${plural(notReady, 'file')} not ready yet`] : []),
    ...(jobs.length > 0 ? [`${plural(jobs.length, `${kind}run`)}${rest}`] : []),
    ...(files.length > 0 ? [plural(files.length, 'other file')] : []),
  ];
  const missed = [
    ...(searchedTo === undefined ? [] : [`Only runs ${formatCount(searchedTo)} and newer were searched.`]),
    ...(hasMoreFiles ? ['There may be more files: add a word, or run labfeed why FILE.'] : []),
  ];
  const found = joinWords(parts) || `No ${kind}runs${rest}`;
  if (missed.length > 0) return `${found}. ${missed.join(' ')}`;
  return parts.length > 0 || search === undefined ? found : `${found}. ${NOT_FOUND}`;
}

const NOT_FOUND =
  'Titles and samples are not kept as long as file names. To find out why a file was not filed, run labfeed why FILE.';

interface WaitingRun extends WaitingFile {
  readonly instrument: string;
  readonly isUnreadable: boolean;
}

/** Files of this instrument that match, but are not runs yet. */
function waitingFiles({ live }: PageState, { state, instrument, search = '' }: RunsRoute): WaitingRun[] {
  if (state !== undefined && state !== 'waiting') return [];
  return live.instruments
    .filter(({ name }) => (instrument ?? name) === name)
    .flatMap(({ name, waiting, unreadable }) => {
      const blocked = new Set(unreadable.first.map(({ path }) => path));
      const others = waiting.first.filter(({ path }) => !blocked.has(path));
      return [...unreadable.first, ...others]
        .filter(({ path }) => hasWords(`${name} ${path}`, search))
        .map((file) => ({ ...file, instrument: name, isUnreadable: blocked.has(file.path) }));
    });
}

const WaitingRow = ({ file: { path, reason, since, instrument, isUnreadable } }: { file: WaitingRun }) => (
  <li class="row">
    {isUnreadable ? <StateChip state="quarantined" label="unreadable" /> : <StateChip state="waiting" />}
    <span class="what">
      <b>{fileName(path)}</b>
      <span class="why">{shortReason(reason, path)}</span>
    </span>
    <span class="soft">{instrument}</span>
    <span />
    <span class="soft when">
      <Ago at={since} />
    </span>
  </li>
);

/** A file that matches and did not become a run of its own, or whose run is too old to be among those searched. */
function FileRow({ file: { path, instrument, verdict, run, isOwn } }: { file: FileAnswer }) {
  if (run && isOwn) return <RunRow job={run} />;
  const [state, label] = FILE_STATES[verdict];
  return (
    <li class="row">
      <StateChip state={state} label={label} />
      <span class="what">
        <b>{fileName(path)}</b>
        <span class="why">
          {verdict === 'asked' &&
            'It was in the folder before the first scan: decide on the overview what to do with it.'}
          {verdict === 'skipped' && 'labfeed skipped it. To find out why, run labfeed why FILE.'}
          {verdict === 'taken' && (run ? `Its content is in run ${run.id} (${run.state}): ` : 'Its run was deleted.')}
          {run && <RunLink job={run} />}
        </span>
      </span>
      <span class="soft">{instrument}</span>
    </li>
  );
}

const FILE_STATES: Readonly<Record<FileAnswer['verdict'], readonly [RunState, string]>> = {
  taken: ['ignored', 'copy'],
  skipped: ['ignored', 'skipped'],
  asked: ['held', 'backlog'],
};

/** All of it is a link to the run, except for the link to the experiment. */
const RunRow = ({ job }: { job: Job }) => (
  <li class="row">
    <StateChip state={job.state} />
    <span class="what">
      <a href={runHref(job.id)} class="name">
        {nameOf(job)}
      </a>
      {job.title && job.path && <span class="path">{fileName(job.path)}</span>}
      {job.reason !== undefined && <span class="why">{shortReason(job.reason, job.path)}</span>}
    </span>
    <span class="soft">{job.instrument}</span>
    <span class="filed">
      <ExperimentLink job={job} />
    </span>
    <span class="soft when">
      <Ago at={job.addedAt} />
    </span>
  </li>
);

export function RunDetail({ id, state }: { id: number; state: PageState | undefined }) {
  const { value: job, error } = useAnswer(() => fetchJob(id), [state]);
  return (
    <>
      <p class="back">
        <a href="#/runs">← All runs</a>
      </p>
      {error !== undefined && (
        <>
          <ViewTitle>Run {id}</ViewTitle>
          <p>{error}</p>
        </>
      )}
      {job && (
        <>
          <RunHead job={job} />
          <SentDraft job={job} />
          <History job={job} />
        </>
      )}
    </>
  );
}

function RunHead({ job }: { job: JobDetail }) {
  const now = useContext(Now);
  const isOpen = job.state === 'queued' || job.state === 'sending';
  const notFiled = job.state === 'ignored' ? 'no' : 'not yet';
  return (
    <div>
      <ViewTitle>{nameOf(job)}</ViewTitle>
      <p class="summary-line">
        <StateChip state={job.state} /> Run {job.id} of {job.instrument}, added <Ago at={job.addedAt} />
      </p>
      {job.reason !== undefined && (
        <div class="panel item">
          <Reason reason={job.reason} path={job.path} />
          <RunChoices job={job} />
        </div>
      )}
      <Facts
        facts={[
          ['In the notebook', job.experiment === undefined ? notFiled : <ExperimentLink job={job} />],
          ['File', job.paths.length > 0 ? <Lines lines={job.paths} /> : job.path || 'erased'],
          ['Growing', job.growing],
          ['After filing', sourceLines(job).length > 0 ? <Lines lines={sourceLines(job)} /> : undefined],
          ['Versions', job.versions.length > 0 ? <Lines lines={job.versions} /> : undefined],
          ['Next attempt', isOpen && job.dueAt > now ? formatClock(job.dueAt, now) : undefined],
          ['Differs from previous run', job.drift.length > 0 ? <Lines lines={job.drift} /> : undefined],
        ]}
      />
      {job.reason === undefined && <RunChoices job={job} />}
      <details>
        <summary>More about the file</summary>
        <Facts
          facts={[
            ['Size', formatBytes(job.size)],
            ['Modified', job.modifiedMs === 0 ? undefined : formatTime(job.modifiedMs)],
            ['SHA-256', <code>{job.sha256}</code>],
            ['Delivery attempts', job.attempts > 0 ? String(job.attempts) : undefined],
          ]}
        />
      </details>
    </div>
  );
}

/** A folder can have thousands of files. */
const MAX_SOURCES = 20;

const sourceLines = ({ sources }: JobDetail): string[] =>
  sources.slice(0, MAX_SOURCES).flatMap((source) => {
    const words = describeSource(source);
    return words === undefined ? [] : `${source.path.replace(/.*\//, '')} ${words}`;
  });

/** In the other states, a person decides whether it is sent. */
const DRAFT_HEADINGS: Partial<Record<RunState, string>> = {
  done: 'Sent to the notebook',
  queued: 'To be sent to the notebook',
  sending: 'To be sent to the notebook',
};

function SentDraft({ job: { id, state, draft, comments } }: { job: JobDetail }) {
  if (!draft) return null;
  return (
    <>
      <h2>{DRAFT_HEADINGS[state] ?? 'Draft, not filed'}</h2>
      <Draft {...draft} details={draft.date} frame={{ src: `/api/jobs/${id}/body` }} />
      {comments.map(({ n, text, comment }) => (
        <TextPanel
          head={`Comment ${n}, ${comment === undefined ? 'not sent' : `id ${comment} in the notebook`}`}
          text={text}
        />
      ))}
    </>
  );
}

const History = ({ job: { history } }: { job: JobDetail }) => (
  <>
    <h2>History</h2>
    <ol class="plain panel history">
      {history.map(({ at, words }) => (
        <li class="event">
          <time class="event-time" dateTime={new Date(at).toISOString()}>
            {formatTime(at)}
          </time>
          <span>{words}</span>
        </li>
      ))}
    </ol>
  </>
);
