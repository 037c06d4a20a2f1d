import { type Inputs, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { WaitingFile } from '../../live.js';
import type { RunState } from '../../model.js';
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
import type { Job, JobDetail, JobsAnswer, PageState } from '../api.js';
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
  return (
    <>
      <ViewTitle>{route.search === undefined ? 'Runs' : `Runs that match “${route.search}”`}</ViewTitle>
      <Filters route={route} instruments={state?.overview.instruments.map(({ name }) => name) ?? []} />
      <p class="soft" role="status">
        {error ?? (value ? describeRuns(value, waiting, route) : route.search && 'Searching…')}
      </p>
      {waiting.length + shown.length > 0 && (
        <ul class="plain panel rows">
          {waiting.map((file) => (
            <WaitingRow key={file.path} file={file} />
          ))}
          {shown.map((job) => (
            <RunRow key={job.id} job={job} />
          ))}
        </ul>
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

const STATES: readonly RunState[] = ['waiting', 'queued', 'sending', 'done', 'quarantined', 'held', 'ignored'];

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
        options={[['', 'All states'], ...STATES.map((name) => [name, name] as const)]}
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

function describeRuns({ jobs, searchedTo }: JobsAnswer, waiting: readonly WaitingRun[], route: RunsRoute): string {
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
  ];
  if (searchedTo !== undefined)
    return `${joinWords(parts) || `No ${kind}runs${rest}`}. Only runs ${formatCount(searchedTo)} and newer were searched.`;
  if (parts.length > 0) return joinWords(parts);
  const advice =
    search === undefined
      ? ''
      : '. Copies, skipped files and the titles of old runs are not searched. To find a file, run labfeed why FILE.';
  return `No ${kind}runs${rest}${advice}`;
}

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
          ['In the notebook', job.experiment === undefined ? 'not yet' : <ExperimentLink job={job} />],
          ['File', job.paths.length > 0 ? <Lines lines={job.paths} /> : job.path || 'erased'],
          ['Growing', job.growing],
          ['Afterwards', sourceLines(job).length > 0 ? <Lines lines={sourceLines(job)} /> : undefined],
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
            ['Attempts to send it', job.attempts > 0 ? String(job.attempts) : undefined],
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

function SentDraft({ job: { id, state, draft, comments } }: { job: JobDetail }) {
  if (!draft) return null;
  return (
    <>
      <h2>{state === 'done' ? 'Sent to the notebook' : 'To be sent to the notebook'}</h2>
      <Draft {...draft} details={draft.date} frame={{ src: `/api/jobs/${id}/body` }} />
      {comments.map(({ n, text, comment }) => (
        <TextPanel
          head={`Comment ${n}, ${comment === undefined ? 'not sent yet' : `id ${comment} in the notebook`}`}
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
