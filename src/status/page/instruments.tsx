import { useContext, useEffect, useMemo, useRef, useState } from 'preact/hooks';
import type uPlot from 'uplot';
import type { LiveInstrument } from '../../live.js';
import type { RunState } from '../../model.js';
import { formatCount, formatDay, plural } from '../../text.js';
import type { InstrumentSummary, PageState } from '../api.js';
import { Ago, Now, RunLink, StateChip } from './parts.js';
import { runsHref } from './route.js';
import {
  type DayCount,
  fileName,
  type InstrumentView,
  instrumentsOf,
  PLOT_DAYS,
  runsByDay,
  type Tone,
} from './summary.js';

export function InstrumentList({ state }: { state: PageState }) {
  const instruments = instrumentsOf(state);
  return (
    <section aria-labelledby="instruments-title">
      <h2 id="instruments-title">Instruments</h2>
      {instruments.length === 0 ? (
        <p class="empty">
          No instruments are configured. Add one to <code>{state.live.config}</code>.
        </p>
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

function InstrumentCard({ instrument }: { instrument: InstrumentView }) {
  const { name, live, summary, alarms } = instrument;
  const condition = conditionOf(live);
  const undecided = summary ? summary.runs.quarantined + summary.runs.held + summary.asked : 0;
  const tone = condition.tone === 'ok' && alarms.length + undecided > 0 ? 'warning' : condition.tone;
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
                <b>{formatCount(summary.runs[state])}</b> {state}
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

function conditionOf(live: LiveInstrument | undefined): { tone: Tone; readonly text: string } {
  if (!live) return { tone: 'warning', text: 'no longer configured' };
  if (live.line === 'stopped') return { tone: 'error', text: 'stopped' };
  if (live.folder.state === 'missing') return { tone: 'error', text: 'folder missing' };
  if (live.folder.state === 'unreadable') return { tone: 'error', text: 'folder unreadable' };
  return { tone: 'ok', text: live.line === 'starting' ? 'first scan…' : 'watching' };
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

function Notes({ instrument: { live, alarms } }: { instrument: InstrumentView }) {
  if (!live) return <p class="soft">Its folder is no longer watched. Its runs are kept.</p>;
  const { folder, waiting, unmatched, lastFileAt, watch } = live;
  const example = unmatched.example === undefined ? '' : `, for example ${fileName(unmatched.example)}`;
  return (
    <>
      {alarms.map(({ text }) => (
        <p class="alarm">{text}</p>
      ))}
      {folder.reason !== undefined && <p class="alarm">{folder.reason}</p>}
      {waiting.files > 0 && (
        <div>
          <p>{plural(waiting.files, 'file is', 'files are')} not ready yet:</p>
          <ul class="waiting">
            {waiting.first.slice(0, MAX_WAITING).map(({ path, reason }) => (
              <li>
                <b>{fileName(path)}</b>, {reason}
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
        </p>
      )}
      <p class="path">{watch}</p>
    </>
  );
}

const PLOT_HEIGHT = 56;

/** Runs per day. Drawn when it scrolls into view: drawing fifty plots at once would delay the page. */
function RunsPlot({ hours }: { hours: InstrumentSummary['hours'] }) {
  const now = useContext(Now);
  const container = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(undefined);
  const [hovered, setHovered] = useState<number | null>();
  // Each state brings equal hours in a new array; nothing is drawn again for those.
  const bars = useMemo(() => runsByDay(hours, now), [JSON.stringify(hours), formatDay(now)]);
  const latestBars = useRef(bars);
  latestBars.current = bars;

  useEffect(() => {
    const element = container.current;
    if (!element) return;
    return drawWhenVisible(element, async (width) => {
      const { default: UPlot } = await import('uplot');
      if (!element.isConnected) return undefined;
      plot.current = new UPlot(plotOptions(UPlot, width, setHovered), plotData(latestBars.current), element);
      return plot.current;
    });
  }, []);
  useEffect(() => plot.current?.setData(plotData(bars)), [bars]);

  return (
    <figure class="plot">
      <div ref={container} class="canvas" role="img" aria-label={`Runs per day: ${describeBars(bars)}`} />
      <figcaption class="soft">{describeBars(bars, hovered)}</figcaption>
    </figure>
  );
}

/** Calls `draw` once, shortly before the element comes into view, and keeps the plot's size and colours right. */
function drawWhenVisible(element: HTMLElement, draw: (width: number) => Promise<uPlot | undefined>): () => void {
  let plot: uPlot | undefined;
  const visibility = new IntersectionObserver(
    async (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      visibility.disconnect();
      plot = await draw(element.clientWidth);
    },
    { rootMargin: '300px' },
  );
  visibility.observe(element);
  const size = new ResizeObserver(() => {
    const width = element.clientWidth;
    if (plot && width > 0 && width !== plot.width) plot.setSize({ width, height: PLOT_HEIGHT });
  });
  size.observe(element);
  const scheme = matchMedia('(prefers-color-scheme: dark)');
  const redraw = (): void => plot?.redraw();
  scheme.addEventListener('change', redraw);
  return () => {
    visibility.disconnect();
    size.disconnect();
    scheme.removeEventListener('change', redraw);
    plot?.destroy();
  };
}

function describeBars(bars: readonly DayCount[], index?: number | null): string {
  const bar = typeof index === 'number' ? bars[index] : undefined;
  if (bar) return `${bar.day}: ${bar.runs === 0 ? 'no runs' : plural(bar.runs, 'run')}`;
  const total = bars.reduce((sum, { runs }) => sum + runs, 0);
  if (total === 0) return `no runs in ${PLOT_DAYS} days`;
  return `${plural(total, 'run')} in ${PLOT_DAYS} days, ${formatCount(bars.at(-1)?.runs ?? 0)} today`;
}

const plotData = (bars: readonly DayCount[]): uPlot.AlignedData => [
  bars.map((_, index) => index),
  bars.map(({ runs }) => runs),
];

const accentColour = (): string => getComputedStyle(document.documentElement).getPropertyValue('--accent');

function plotOptions(
  UPlot: typeof uPlot,
  width: number,
  onHover: (index: number | null | undefined) => void,
): uPlot.Options {
  const bars = UPlot.paths.bars?.({ size: [0.7, 40, 2], radius: 0.15 });
  return {
    width,
    height: PLOT_HEIGHT,
    padding: [4, 0, 0, 0],
    legend: { show: false },
    cursor: { x: false, y: false, points: { show: false }, drag: { x: false, y: false } },
    scales: {
      x: { time: false, range: [-0.5, PLOT_DAYS - 0.5] },
      y: { range: (_self, _min, max) => [0, Math.max(max, 4)] },
    },
    axes: [{ show: false }, { show: false }],
    series: [
      {},
      {
        fill: accentColour,
        stroke: accentColour,
        width: 0,
        points: { show: false },
        ...(bars && { paths: bars }),
      },
    ],
    hooks: { setCursor: [({ cursor }) => onHover(cursor.idx)] },
  };
}
