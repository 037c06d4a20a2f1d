import { type Inputs, useContext, useEffect, useRef, useState } from 'preact/hooks';
import type { RunState } from '../../model.js';
import { describeSource, formatBytes, formatClock, formatTime, plural } from '../../text.js';
import type { Job, JobDetail, PageState } from '../api.js';
import { fetchJob, fetchJobs } from './client.js';
import { RunChoices } from './decisions.js';
import {
  Ago,
  Draft,
  Facts,
  Lines,
  Now,
  nameOf,
  Reason,
  Select,
  ServerLink,
  StateChip,
  TextPanel,
  ViewTitle,
} from './parts.js';
import { type RunsRoute, runHref, runsHref } from './route.js';

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

export function RunList({ route, state }: { route: RunsRoute; state: PageState | undefined }) {
  const { view: _, ...filter } = route;
  const { value, error } = useAnswer(
    () => fetchJobs({ ...filter, limit: PAGE_SIZE + 1 }),
    [...Object.values(filter), state],
  );
  const jobs = value?.jobs;
  const shown = jobs?.slice(0, PAGE_SIZE) ?? [];
  return (
    <>
      <ViewTitle>Runs</ViewTitle>
      <Filters route={route} instruments={state?.overview.instruments.map(({ name }) => name) ?? []} />
      <p class="soft" role="status">
        {error ?? (jobs && describeRuns(jobs.length, route))}
      </p>
      {shown.length > 0 && (
        <ul class="plain panel rows">
          {shown.map((job) => (
            <RunRow key={job.id} job={job} />
          ))}
        </ul>
      )}
      <nav class="paging" aria-label="Pages of runs">
        {route.before !== undefined && <a href={runsHref({ ...filter, before: undefined })}>Newest runs</a>}
        {jobs && jobs.length > PAGE_SIZE && (
          <a href={runsHref({ ...filter, before: shown.at(-1)?.id })} class="older">
            Older runs
          </a>
        )}
      </nav>
    </>
  );
}

/** The states of runs in the journal. */
const STATES: readonly RunState[] = ['queued', 'sending', 'done', 'quarantined', 'held', 'ignored'];

function Filters({ route, instruments }: { route: RunsRoute; instruments: readonly string[] }) {
  const { state = '', instrument = '' } = route;
  // The address may name an instrument that is not known (yet).
  const names = new Set([...instruments, ...(instrument === '' ? [] : [instrument])]);
  return (
    <div class="filters">
      <Select
        id="runs-state"
        label="State"
        value={state}
        options={[['', 'All states'], ...STATES.map((name) => [name, name] as const)]}
        onSelect={(state) => location.assign(runsHref({ state, instrument }))}
      />
      <Select
        id="runs-instrument"
        label="Instrument"
        value={instrument}
        options={[['', 'All instruments'], ...[...names].map((name) => [name, name] as const)]}
        onSelect={(instrument) => location.assign(runsHref({ state, instrument }))}
      />
    </div>
  );
}

function describeRuns(found: number, { state, instrument, before }: RunsRoute): string {
  const kind = state === undefined ? '' : `${state} `;
  const older = before === undefined ? '' : `, older than run ${before}`;
  const rest = `${instrument === undefined ? '' : ` of ${instrument}`}${older}`;
  if (found === 0) return `No ${kind}runs${rest}`;
  if (found > PAGE_SIZE) return `The newest ${PAGE_SIZE} ${kind}runs${rest}`;
  return `${plural(found, `${kind}run`)}${rest}`;
}

const RunRow = ({ job }: { job: Job }) => (
  <li class="row">
    <a href={runHref(job.id)} class="row-link">
      <StateChip state={job.state} />
      <span class="name">{nameOf(job)}</span>
      <span class="soft">{job.instrument}</span>
      <span class="soft">{job.experiment === undefined ? '' : `experiment ${job.experiment}`}</span>
      <span class="soft when">
        <Ago at={job.addedAt} />
      </span>
    </a>
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
          <RunHead job={job} servers={state?.overview.servers ?? []} />
          <SentDraft job={job} />
          <History job={job} />
        </>
      )}
    </>
  );
}

type Servers = PageState['overview']['servers'];

function RunHead({ job, servers }: { job: JobDetail; servers: Servers }) {
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
          ['Experiment', <ExperimentLink job={job} servers={servers} />],
          ['File', job.paths.length > 0 ? <Lines lines={job.paths} /> : job.path || 'erased'],
          ['Afterwards', sourceLines(job).length > 0 ? <Lines lines={sourceLines(job)} /> : undefined],
          ['Versions', job.versions.length > 0 ? <Lines lines={job.versions} /> : undefined],
          ['Size', formatBytes(job.size)],
          ['Growing', job.growing],
          ['Modified', formatTime(job.modifiedMs)],
          ['SHA-256', <code>{job.sha256}</code>],
          ['Attempts', job.attempts > 0 ? String(job.attempts) : undefined],
          ['Next attempt', isOpen && job.dueAt > now ? formatClock(job.dueAt, now) : undefined],
          ['Differs from previous run', job.drift.length > 0 ? <Lines lines={job.drift} /> : undefined],
        ]}
      />
      {job.reason === undefined && <RunChoices job={job} />}
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

/** The address of an experiment's page is known for eLabFTW only; elsewhere the link leads to the notebook. */
function ExperimentLink({ job: { experiment, server }, servers }: { job: JobDetail; servers: Servers }) {
  if (experiment === undefined) return 'none yet';
  if (server === undefined) return experiment;
  const isElabftw = servers.find(({ url }) => url === server)?.dialect === 'elabftw';
  if (!isElabftw) return <ServerLink url={server}>{`${experiment} at ${server}`}</ServerLink>;
  const page = `${server.replace(/\/$/, '')}/experiments.php?mode=view&id=${experiment}`;
  return <ServerLink url={page}>{String(experiment)}</ServerLink>;
}

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
