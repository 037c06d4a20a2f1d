import { useContext, useMemo, useState } from 'preact/hooks';
import { splitHint } from '../../errors.js';
import type { LiveInstrument } from '../../live.js';
import { describeFolder, describeSeen, isSilent, type Place } from '../../members.js';
import type { RunState } from '../../model.js';
import { formatCount, formatDay, formatDuration, plural } from '../../text.js';
import type { InstrumentSummary, PageState } from '../api.js';
import { role } from './client.js';
import { Ago, IsAway, labelOf, Now, Reason, RunLink, StateChip } from './parts.js';
import { runsHref } from './route.js';
import {
  conditionOf,
  fileName,
  type InstrumentView,
  instrumentsOf,
  PLOT_DAYS,
  runsByDay,
  type Tone,
} from './summary.js';

/** With more instruments, the compact view is the default. */
const MAX_CARDS = 8;
/** Where the browser keeps the choice. */
const VIEW = 'labfeed-instruments';

export function InstrumentList({ state }: { state: PageState }) {
  const instruments = instrumentsOf(state);
  const [chosen, setChosen] = useState(() => localStorage.getItem(VIEW));
  const isCompact = chosen === null ? instruments.length > MAX_CARDS : chosen === 'compact';
  function toggle(): void {
    const next = isCompact ? 'cards' : 'compact';
    localStorage.setItem(VIEW, next);
    setChosen(next);
  }
  return (
    <section aria-labelledby="instruments-title">
      <div class="section-head">
        <h2 id="instruments-title">Instruments</h2>
        {role === 'edit' && <a href="#/try">Add an instrument</a>}
        {instruments.length > 0 && (
          <button type="button" class="quiet" aria-pressed={isCompact} onClick={toggle}>
            Compact view
          </button>
        )}
      </div>
      {instruments.length === 0 ? (
        <p class="empty">
          No instruments are configured. Add one to <code>{state.live.config}</code>.
        </p>
      ) : isCompact ? (
        <ul class="plain panel lines">
          {instruments.map((instrument) => (
            <InstrumentLine key={instrument.name} instrument={instrument} />
          ))}
        </ul>
      ) : (
        <ul class="plain cards">
          {instruments.map((instrument) => (
            <InstrumentCard key={instrument.name} instrument={instrument} />
          ))}
        </ul>
      )}
    </section>
  );
}

const SHOWN_STATES: readonly RunState[] = ['done', 'queued', 'sending', 'quarantined', 'held', 'ignored'];

const undecidedOf = (summary: InstrumentSummary | undefined): number =>
  summary ? summary.runs.quarantined + summary.runs.held + summary.asked : 0;

/** What somebody should look at on another machine. */
const needsPerson = (place: Place): boolean => {
  const { unreadable, stuck, asked } = place.folder;
  return isSilent(place) || (unreadable ?? 0) + (stuck ?? 0) + (asked ?? 0) > 0;
};

function toneOf(instrument: InstrumentView): Tone {
  const { summary, alarms, places } = instrument;
  const { tone } = conditionOf(instrument);
  const isUnwell = alarms.length + undecidedOf(summary) > 0 || places.some(needsPerson);
  return tone === 'ok' && isUnwell ? 'warning' : tone;
}

const SIGNS: Readonly<Record<Tone, string>> = { ok: '✓', warning: '!', error: '✕' };

/** One line: what is wrong, or else the last run. */
function InstrumentLine({ instrument }: { instrument: InstrumentView }) {
  const { name, summary, alarms, places } = instrument;
  const now = useContext(Now);
  const tone = toneOf(instrument);
  const undecided = undecidedOf(summary);
  const condition = conditionOf(instrument);
  const unwell = places.find(needsPerson);
  const problem =
    condition.tone === 'ok'
      ? undecided > 0
        ? plural(undecided, 'decision needed', 'decisions needed')
        : (alarms[0]?.text ?? (unwell && `${unwell.member.name}: ${describeFolder(unwell, now)}`))
      : condition.text;
  const last = summary?.last;
  return (
    <li class="line" data-tone={tone}>
      <span class="sign" aria-hidden="true">
        {SIGNS[tone]}
      </span>
      <a class="run" href={runsHref({ instrument: name })}>
        {name}
      </a>
      {problem === undefined ? (
        <span>{last ? <RunLink job={last} /> : 'No runs yet'}</span>
      ) : (
        <span class={`condition ${tone}`}>{problem}</span>
      )}
      <span class="soft">{last && <Ago at={last.addedAt} />}</span>
    </li>
  );
}

function InstrumentCard({ instrument }: { instrument: InstrumentView }) {
  const { name, summary } = instrument;
  const isAway = useContext(IsAway);
  const condition = conditionOf(instrument);
  const tone = toneOf(instrument);
  return (
    <li class="panel card" data-tone={tone}>
      <div class="card-head">
        <h3>{name}</h3>
        <span class={`condition ${condition.tone}`}>{condition.text}</span>
      </div>
      <div class="last">
        <LastRun summary={summary} />
      </div>
      <RunsPlot hours={summary?.hours ?? []} />
      <ul class="plain counts">
        {summary &&
          SHOWN_STATES.filter((state) => summary.runs[state] > 0).map((state) => (
            <li key={state}>
              <a href={runsHref({ state, instrument: name })} class={`tally ${state}`}>
                <b>{formatCount(summary.runs[state])}</b> {labelOf(state, isAway)}
              </a>
            </li>
          ))}
      </ul>
      <div class="notes">
        <Notes instrument={instrument} />
      </div>
    </li>
  );
}

function LastRun({ summary }: { summary: InstrumentSummary | undefined }) {
  const last = summary?.last;
  if (!last) return <p class="soft">No runs yet</p>;
  return (
    <>
      <p class="title">
        <RunLink job={last} />
      </p>
      <p>
        <StateChip state={last.state} /> <Ago at={last.addedAt} />
      </p>
    </>
  );
}

const MAX_WAITING = 3;

function Notes({ instrument }: { instrument: InstrumentView }) {
  const { live, places } = instrument;
  if (!live && places.length === 0) return <p class="soft">Its folder is no longer watched. Its runs are kept.</p>;
  return (
    <>
      {live && <OwnNotes live={live} alarms={instrument.alarms} />}
      {places.slice(0, MAX_PLACES).map((place) => (
        <PlaceNote place={place} />
      ))}
      {places.length > MAX_PLACES && (
        <p class="soft">and {plural(places.length - MAX_PLACES, 'more machine')}, in the list of machines</p>
      )}
    </>
  );
}

const MAX_PLACES = 5;

/** The instrument on another machine. */
function PlaceNote({ place }: { place: Place }) {
  const now = useContext(Now);
  const { member, folder } = place;
  const isUnwell = member.isAway || needsPerson(place) || folder.state !== 'present';
  const away = member.isAway ? `${describeSeen(member, now)}; it last reported: ` : '';
  return (
    <p class={isUnwell ? 'alarm' : 'soft'}>
      <b>{member.name}</b>: {away}
      {describeFolder(place, now)}
    </p>
  );
}

function OwnNotes({ live, alarms }: { live: LiveInstrument; alarms: InstrumentView['alarms'] }) {
  const { folder, waiting, unreadable, unmatched, lastFileAt, silenceMs, watch } = live;
  const others = waiting.first.filter(({ path }) => !unreadable.first.some((one) => one.path === path));
  const notReady = waiting.files - waiting.unreadable;
  const example = unmatched.example === undefined ? '' : `, for example ${fileName(unmatched.example)}`;
  return (
    <>
      {alarms.map(({ text }) => (
        <p class="alarm">{text}</p>
      ))}
      {folder.reason !== undefined && <p class="alarm">{folder.reason}</p>}
      {unreadable.files > 0 && (
        <div class="alarm">
          <p>{plural(unreadable.files, 'file or folder', 'files or folders')} cannot be read:</p>
          <ul class="waiting">
            {unreadable.first.slice(0, MAX_WAITING).map(({ path, reason }) => (
              <li>
                <b>{fileName(path)}</b> <Reason reason={reason} path={path} />
              </li>
            ))}
          </ul>
        </div>
      )}
      {notReady > 0 && (
        <div>
          <p>{plural(notReady, 'file is', 'files are')} not ready yet:</p>
          <ul class="waiting">
            {others.slice(0, MAX_WAITING).map(({ path, reason }) => (
              <li>
                <b>{fileName(path)}</b>, {splitHint(reason).what}
              </li>
            ))}
          </ul>
        </div>
      )}
      {unmatched.files > 0 && (
        <p>
          {plural(unmatched.files, 'file matches', 'files match')} no pattern{example}
        </p>
      )}
      {lastFileAt !== undefined && (
        <p class="soft">
          Last file <Ago at={lastFileAt} />
          {silenceMs !== undefined && `, expected every ${formatDuration(silenceMs)}`}
        </p>
      )}
      <p class="path">{watch}</p>
    </>
  );
}

/** Runs per day. Thirty bars need no plotting library: SVG follows the size and the colours of the page by itself. */
function RunsPlot({ hours }: { hours: InstrumentSummary['hours'] }) {
  const now = useContext(Now);
  const [hovered, setHovered] = useState<number>();
  const bars = useMemo(() => runsByDay(hours, now), [hours, formatDay(now)]);
  const top = Math.max(MIN_TOP, ...bars.map(({ runs }) => runs));
  const hover = ({ clientX, currentTarget }: { clientX: number; currentTarget: Element }): void => {
    const { left, width } = currentTarget.getBoundingClientRect();
    setHovered(Math.floor(((clientX - left) / width) * bars.length));
  };
  return (
    <figure class="plot" onMouseMove={hover} onMouseLeave={() => setHovered(undefined)}>
      <svg
        role="img"
        aria-label={`Runs per day: ${describeBars(bars)}`}
        viewBox={`0 0 ${bars.length} ${top}`}
        preserveAspectRatio="none"
      >
        {bars.map(({ runs }, day) => (
          <rect x={day + 0.15} y={top - runs} width={0.7} height={runs} />
        ))}
      </svg>
      <figcaption class="soft">{describeBars(bars, hovered)}</figcaption>
    </figure>
  );
}

/** A single run is not a full bar. */
const MIN_TOP = 4;

function describeBars(bars: ReturnType<typeof runsByDay>, index = -1): string {
  const bar = bars[index];
  if (bar) return `${bar.day}: ${bar.runs === 0 ? 'no runs' : plural(bar.runs, 'run')}`;
  const total = bars.reduce((sum, { runs }) => sum + runs, 0);
  if (total === 0) return `no runs in ${PLOT_DAYS} days`;
  return `${plural(total, 'run')} in ${PLOT_DAYS} days, ${formatCount(bars.at(-1)?.runs ?? 0)} today`;
}
