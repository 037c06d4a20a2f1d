import { useContext } from 'preact/hooks';
import type { ConfigProblem } from '../../live.js';
import {
  describeClock,
  describeFolder,
  describeOlder,
  describeQueue,
  describeRole,
  describeSeen,
  placesElsewhere,
} from '../../members.js';
import { formatCount, formatDuration, plural } from '../../text.js';
import type { PageState } from '../api.js';
import { BacklogChoices, MayNotDecide, RunChoices } from './decisions.js';
import { InstrumentList } from './instruments.js';
import { Ago, Facts, Hint, Lines, Now, Reason, RunLink, ServerLink, StateChip, Table, ViewTitle } from './parts.js';
import { runsHref } from './route.js';
import { describeNotebook, describeUploads, type Health, isAway, rateOf, totalsOf } from './summary.js';

interface OverviewProps {
  state: PageState | undefined;
  health: Health | undefined;
  isStale: boolean;
}

export const Overview = ({ state, health, isStale }: OverviewProps) => (
  <>
    <HealthBanner health={health} isStale={isStale} />
    {state && (
      <>
        <ConfigProblems state={state} />
        <AttentionList state={state} />
        <InstrumentList state={state} />
        <Machines state={state} />
        <QueuePanel state={state} />
      </>
    )}
  </>
);

const MAX_OTHERS = 6;

function HealthBanner({ health, isStale }: Omit<OverviewProps, 'state'>) {
  const others = health?.others ?? [];
  const hidden = others.length - MAX_OTHERS;
  const rest = hidden > 0 ? [`and ${plural(hidden, 'more problem')}`] : [];
  return (
    <section
      id="health"
      class="health"
      aria-live="polite"
      aria-atomic="true"
      data-tone={health?.tone ?? 'unknown'}
      data-stale={String(isStale)}
    >
      <ViewTitle>{health?.sentence ?? 'Loading…'}</ViewTitle>
      {others.length > 0 && <Lines class="also" lines={[...others.slice(0, MAX_OTHERS), ...rest]} />}
    </section>
  );
}

function ConfigProblems({ state: { live } }: { state: PageState }) {
  const { problems, refused, config } = live;
  if (problems.length === 0 && refused === undefined) return null;
  return (
    <section aria-labelledby="problems-title">
      <h2 id="problems-title">Configuration</h2>
      <div class="items">
        {problems.length > 0 && (
          <div class="panel item bad">
            <h3>{plural(problems.length, 'error')} in the running configuration</h3>
            <ProblemList problems={problems} />
            <p class="soft">
              Edit <code>{config}</code>, run <code>labfeed check</code>, then reload labfeed (SIGHUP).
            </p>
          </div>
        )}
        {refused !== undefined && (
          <div class="panel item bad">
            <h3>New configuration rejected; the previous one stays in effect</h3>
            <p class="soft">
              Reload requested <Ago at={refused.at} />. It takes effect once all errors are fixed.
            </p>
            <ProblemList problems={refused.problems} />
          </div>
        )}
      </div>
    </section>
  );
}

const ProblemList = ({ problems }: { problems: readonly ConfigProblem[] }) => (
  <ul class="plain problems">
    {problems.map(({ at, message, hint, instrument }) => (
      <li>
        <code>{at}</code>
        <p>{message}</p>
        {hint !== undefined && <Hint>{hint}</Hint>}
        {instrument !== undefined && (
          <p class="soft">{instrument} is stopped until this is fixed. Other instruments keep running.</p>
        )}
      </li>
    ))}
  </ul>
);

const MAX_ATTENTION = 20;

/** What needs a person: backlogs, and runs that are quarantined or held. */
function AttentionList({ state }: { state: PageState }) {
  const { overview, attention, attentionCount } = state;
  const backlogs = overview.instruments.filter(({ asked }) => asked > 0);
  const elsewhere = placesElsewhere(state.live.fleet).filter(({ folder }) => (folder.asked ?? 0) > 0);
  if (backlogs.length + elsewhere.length + attentionCount === 0) return null;
  const shown = attention.slice(0, MAX_ATTENTION);
  const hidden = attentionCount - shown.length;
  return (
    <section id="attention" aria-labelledby="attention-title">
      <h2 id="attention-title">Needs a decision</h2>
      <MayNotDecide />
      <ul id="attention-list" class="plain items">
        {backlogs.map(({ name, asked }) => (
          <li key={`backlog ${name}`} class="panel item">
            <h3>
              <StateChip state="held" label="backlog" />
              {plural(asked, 'existing file')} of {name}
            </h3>
            <p>
              {plural(asked, 'file was', 'files were')} in the folder of {name} before labfeed first scanned it. Should
              labfeed file {asked === 1 ? 'it' : 'them'} in the notebook?
            </p>
            <BacklogChoices instrument={name} asked={asked} />
          </li>
        ))}
        {elsewhere.map(({ member: { name, isAway }, folder: { instrument, asked } }) => (
          <li key={`backlog ${name} ${instrument}`} class="panel item">
            <h3>
              <StateChip state="held" label="backlog" />
              {plural(asked ?? 0, 'existing file')} of {instrument} on {name}
            </h3>
            <p>
              Decide on {name}
              {isAway && ', which is away'}: <code>labfeed backfill {instrument}</code>
            </p>
          </li>
        ))}
        {shown.map((job) => (
          <li key={`run ${job.id}`} class="panel item">
            <h3>
              <StateChip state={job.state} />
              <RunLink job={job} />
            </h3>
            <p class="soft">
              Run {job.id} of {job.instrument}, <Ago at={job.updatedAt} />
            </p>
            {job.reason !== undefined && <Reason reason={job.reason} path={job.path} />}
            <RunChoices job={job} />
          </li>
        ))}
      </ul>
      {hidden > 0 && (
        <p>
          {plural(hidden, 'more run')}: <a href={runsHref({ state: 'quarantined' })}>all quarantined runs</a>,{' '}
          <a href={runsHref({ state: 'held' })}>all held runs</a>
        </p>
      )}
    </section>
  );
}

/** The machines of a fleet, with what each of them watches. One that is away shows what it last reported. */
function Machines({ state: { live } }: { state: PageState }) {
  const now = useContext(Now);
  const { fleet } = live;
  if (!fleet) return null;
  const kept = plural(fleet.kept, 'operation waits', 'operations wait');
  return (
    <section id="machines" aria-labelledby="machines-title">
      <h2 id="machines-title">Machines of the fleet</h2>
      {fleet.trouble !== undefined && (
        <p>
          {fleet.name} cannot reach the database: {fleet.trouble}. {kept} here until it is back.
          {fleet.listedAt !== undefined && (
            <>
              {' '}
              The machines are shown as they were <Ago at={fleet.listedAt} />.
            </>
          )}
        </p>
      )}
      <Table
        columns={['Machine', 'Version', 'Seen', 'Folders', 'Queue', 'Attention']}
        rows={fleet.members.map((member) => [
          `${member.name} (${describeRole(member)})`,
          member.version,
          `${describeSeen(member, now)}, ${describeClock(member)}`,
          [
            ...(member.isAway && member.folders.length > 0 ? ['as last reported'] : []),
            ...member.folders.map((folder) => `${folder.instrument}: ${describeFolder({ member, folder }, now)}`),
          ].join('; '),
          describeQueue(member).join(', ') || 'empty',
          [...describeOlder(member), ...member.alarms.map(({ text }) => text)].join('; '),
        ])}
      />
    </section>
  );
}

function QueuePanel({ state }: { state: PageState }) {
  const now = useContext(Now);
  const { url, gate } = state.live.notebook;
  const [headline, detail] = describeNotebook(gate, now);
  const { inProgress, notReady, oldestAt } = totalsOf(state);
  return (
    <section aria-labelledby="queue-title">
      <h2 id="queue-title">Queue and notebook</h2>
      <div class="panel queue">
        <div>
          <p class="big">{headline}</p>
          <p>{detail}</p>
        </div>
        <Facts
          facts={[
            [
              isAway(state) ? 'Waiting for the notebook' : 'In progress',
              inProgress === 0 ? 'no runs' : plural(inProgress, 'run'),
            ],
            ['Oldest', oldestAt === undefined ? undefined : `waiting for ${formatDuration(now - oldestAt)}`],
            ['Raw files to attach', describeUploads(state, now)],
            ['Files not ready yet', notReady === 0 ? 'none' : formatCount(notReady)],
            ['Notebook', url === undefined ? undefined : <ServerLink url={url}>{url}</ServerLink>],
          ]}
        />
        <Requests state={state} />
      </div>
    </section>
  );
}

/** For administrators. */
function Requests({ state: { live, overview } }: { state: PageState }) {
  const { url, gate, requests } = live.notebook;
  const total = requests.reduce((sum, { count }) => sum + count, 0);
  return (
    <details>
      <summary>Requests to the notebook</summary>
      <Facts
        facts={[
          ['Since the start', plural(total, 'request')],
          ['At most', gate.kind === 'open' ? rateOf(gate.perSecond) : undefined],
          ['Dialect', overview.servers.find((server) => server.url === url)?.dialect],
        ]}
      />
      <Table
        columns={['Method', 'Response', 'Count']}
        rows={requests.map(({ method, status, count }) => [
          method,
          status === 'none' ? 'no response' : status,
          formatCount(count),
        ])}
      />
    </details>
  );
}
