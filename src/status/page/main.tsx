import { render } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { formatClock } from '../../text.js';
import type { PageState } from '../api.js';
import { type Connection, subscribe } from './client.js';
import { Decisions } from './decisions.js';
import { Overview } from './overview.js';
import { IsAway, Navigation, Now } from './parts.js';
import { parseRoute, type Route, runsHref } from './route.js';
import { RunDetail, RunList } from './runs.js';
import { healthOf, isAway } from './summary.js';
import { TryFile, useFileDrop } from './try.js';
import './page.css';

/** How often ages such as `5 minutes ago` are updated. */
const TICK_MS = 5000;

function App() {
  const { state, connection, now } = useFeed();
  const { route, visited } = useRoute();
  const [dropped, setDropped] = useState<{ readonly file: File }>();
  const isOver = useFileDrop((file) => {
    setDropped({ file });
    location.assign('#/try');
  });
  const health = state && healthOf(state, now);
  useEffect(() => {
    document.title = health && health.tone !== 'ok' ? `${health.sentence} · labfeed` : 'labfeed';
  }, [health?.tone, health?.sentence]);
  return (
    <Now.Provider value={now}>
      <Navigation.Provider value={visited}>
        <IsAway.Provider value={state !== undefined && isAway(state)}>
          <Decisions>
            <Header route={route} connection={connection} text={describeConnection(connection, state, now)} />
            <main id="main" tabIndex={-1}>
              {route.view === 'overview' && <Overview state={state} health={health} isStale={connection === 'lost'} />}
              {route.view === 'runs' && <RunList route={route} state={state} />}
              {route.view === 'run' && <RunDetail key={route.id} id={route.id} state={state} />}
              {/* Always mounted, so that a preview survives a visit to another view. */}
              <div hidden={route.view !== 'try'}>
                <TryFile state={state} dropped={dropped} isOver={isOver} />
              </div>
            </main>
            {isOver && route.view !== 'try' && (
              <p class="drop over anywhere">Drop the file to see the experiment it would become</p>
            )}
            <footer class="foot">
              {state && `labfeed ${state.version}, process ${state.live.pid}, configuration ${state.live.config}`}
            </footer>
          </Decisions>
        </IsAway.Provider>
      </Navigation.Provider>
    </Now.Provider>
  );
}

/** The state as it changes, and the time by the server's clock. */
function useFeed(): { state: PageState | undefined; connection: Connection; now: number } {
  const [state, setState] = useState<PageState>();
  const [connection, setConnection] = useState<Connection>('connecting');
  const [aheadMs, setAheadMs] = useState(0);
  const [, setTicks] = useState(0);
  useEffect(() => {
    subscribe((next) => {
      setState(next);
      setAheadMs(next.at - Date.now());
    }, setConnection);
    setInterval(() => setTicks((ticks) => ticks + 1), TICK_MS);
  }, []);
  return { state, connection, now: Date.now() + aheadMs };
}

/** The current route, and the address if somebody navigated to it on this page. */
function useRoute(): { route: Route; visited: string | undefined } {
  const [hash, setHash] = useState(location.hash);
  const [isVisited, setVisited] = useState(false);
  useEffect(() => {
    addEventListener('hashchange', () => {
      // The skip link is not a route.
      if (location.hash === '#main') return;
      scrollTo(0, 0);
      setHash(location.hash);
      setVisited(true);
    });
  }, []);
  return { route: parseRoute(hash), visited: isVisited ? hash : undefined };
}

const TABS = [
  { view: 'overview', href: '#/', label: 'Overview' },
  { view: 'runs', href: '#/runs', label: 'Runs' },
  { view: 'try', href: '#/try', label: 'Try a file' },
] as const;

function Header({ route, connection, text }: { route: Route; connection: Connection; text: string }) {
  const current = route.view === 'run' ? 'runs' : route.view;
  return (
    <>
      <a class="skip" href="#main">
        Skip to content
      </a>
      <header class="top">
        <a class="brand" href="#/">
          labfeed
        </a>
        <nav class="tabs" aria-label="Views">
          {TABS.map(({ view, href, label }) => (
            <a class="tab" href={href} aria-current={view === current ? 'page' : undefined}>
              {label}
            </a>
          ))}
        </nav>
        <SearchForm route={route} />
        <p class="connection" role="status" data-connection={connection}>
          {text}
        </p>
      </header>
    </>
  );
}

/** Finds a run from every view. The filters of the list are kept. */
function SearchForm({ route }: { route: Route }) {
  const input = useRef<HTMLInputElement>(null);
  const shown = route.view === 'runs' ? (route.search ?? '') : '';
  useEffect(() => {
    if (input.current) input.current.value = shown;
  }, [shown]);
  function submit(event: Event): void {
    event.preventDefault();
    const filter = route.view === 'runs' ? { state: route.state, instrument: route.instrument } : {};
    location.assign(runsHref({ ...filter, search: input.current?.value.trim() }));
  }
  return (
    <search>
      <form class="search" onSubmit={submit}>
        <input
          ref={input}
          type="search"
          aria-label="Search runs"
          placeholder="File name, title, sample…"
          maxLength={200}
        />
        <button type="submit">Search</button>
      </form>
    </search>
  );
}

function describeConnection(connection: Connection, state: PageState | undefined, now: number): string {
  if (connection === 'live') return 'Live';
  if (connection === 'connecting') return 'Connecting…';
  const shown = state ? ` Showing the state at ${formatClock(state.at, now)}.` : '';
  return `No connection to labfeed.${shown} Reconnecting…`;
}

render(<App />, document.getElementById('app') as HTMLElement);
