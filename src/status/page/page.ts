import type { PageState } from '../api.js';
import { createAsk } from './ask.js';
import { createAttention } from './attention.js';
import { createBanner } from './banner.js';
import { createDecide } from './decide.js';
import { byId, setText } from './dom.js';
import { type Connection, startFeed } from './feed.js';
import { createInstruments } from './instruments.js';
import { createMistakes } from './mistakes.js';
import { ageTimes } from './parts.js';
import { createQueue } from './queue.js';
import { type Route, readRoute } from './route.js';
import { createRun } from './run.js';
import { createRuns } from './runs.js';
import { createTry } from './try.js';
import { focusView, showView } from './views.js';

/** Times age at this pace. */
const TICK_MS = 5000;

/** Puts the parts together: the feed brings the state, the address says what is looked at. */
function start(): void {
  let state: PageState | undefined;
  let connected: Connection = 'connecting';
  /** The server's clock is the one that counts; this machine's may be wrong. */
  let aheadMs = 0;
  const now = (): number => Date.now() + aheadMs;

  // The server then answers with its log-in form.
  const ask = createAsk(() => location.reload());
  const decide = createDecide(byId('outcomes'), ask.decide);
  const attention = createAttention({ decide, now });
  const banner = createBanner();
  const instruments = createInstruments(now);
  const mistakes = createMistakes(now);
  const queue = createQueue();
  const runs = createRuns({ ask, now, go: (hash) => location.assign(hash) });
  const run = createRun({ ask, decide, now });
  const sample = createTry(ask);

  function show(next: PageState): void {
    if (state && state.live.startedAt !== next.live.startedAt) void ask.renew();
    state = next;
    aheadMs = next.at - Date.now();
    tick();
    mistakes(next);
    attention(next);
    instruments(next);
    sample.refresh(next);
    setText(byId('footer'), `labfeed ${next.version} on process ${next.live.pid}, with ${next.live.config}`);
    const { view } = readRoute(location.hash);
    if (view === 'runs') void runs.refresh(next);
    if (view === 'run') void run.refresh(next);
  }

  function tick(): void {
    ageTimes(now());
    banner.connection(connected, now());
    if (!state) return;
    banner.show(state, now());
    queue(state, now());
  }

  async function open(route: Route, byPerson: boolean): Promise<void> {
    showView(route.view);
    if (route.view === 'runs') await runs.open(route);
    if (route.view === 'run') await run.open(route.id);
    if (byPerson) focusView(route.view);
  }

  startFeed({
    show,
    connection(next) {
      connected = next;
      banner.connection(next, now());
    },
    refused: () => void ask.state().catch(() => undefined),
  });
  addEventListener('hashchange', () => void open(readRoute(location.hash), true));
  setInterval(tick, TICK_MS);
  void open(readRoute(location.hash), false);
}

start();
