import type { Clock } from '../clock.js';
import type { LoadedConfig, UsableConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import { holdKey, readKey } from '../config/secrets.js';
import { ConfigError, explain, LabfeedError, type Problem } from '../errors.js';
import { type Journal, openJournal } from '../journal/journal.js';
import type { Live } from '../live.js';
import type { Log } from '../log.js';
import { checkMapping } from '../mapping/mapping.js';
import { runGoldenTests } from '../mapping/tests.js';
import { nobody, type Observer } from '../pipeline.js';
import { version } from '../process.js';
import type { StatusAddress } from '../status/api.js';
import { createStatusPage, statusAddressOf } from './page.js';
import { createReporting, createRequestCounter, type Reporting } from './reporting.js';
import { createWorks, shownRefusal, type Works, watchedInstruments } from './works.js';

interface DaemonOptions {
  readonly config: UsableConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes the key out of everything that is logged. */
  conceal(secret: string): void;
  readonly observer?: Observer;
}

export interface Daemon {
  /** Resolves when every folder was scanned once and is being watched. */
  start(): Promise<void>;
  /** Goes on with another configuration, unless it is wrong: then it is told, and the old one stays. */
  reload(load: () => LoadedConfig): Promise<void>;
  /** Takes nothing more, lets the steps under way end, and closes the journal. */
  stop(): Promise<void>;
  /** How many runs are in each step or resting place. */
  count(): Promise<Record<string, number>>;
  /** How it is at this moment, beyond what the journal knows. */
  live(): Live;
}

/** The journal, which outlives every configuration, and the works that the present one sets going. */
export function createDaemon({
  config: first,
  clock,
  log,
  conceal,
  observer = nobody,
}: DaemonOptions): Daemon {
  const journalPath = journalOf(first);
  let journal: Journal | undefined;
  let works: Works | undefined;
  let reporting: Reporting | undefined;
  let refused: Live['refused'];
  const requests = createRequestCounter();
  /** What the page shows until the mappings are tested and the works are there. */
  const awaited = watchedInstruments(first, [], clock);
  const started = { pid: process.pid, version: version(), startedAt: clock.now() };
  const live = (): Live => liveWith(reporting?.alarms() ?? []);
  const page = createStatusPage({ journal: journalPath, clock, log, live });
  const stopping = new AbortController();
  /** Opening, reloads and the stop come one after the other, however fast they are asked for. */
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    turn = turn.then(act, act);
    return turn;
  };

  /** Reads the key and makes the works: what is wrong shows here, while the old ones still run. */
  function makeWorks(
    config: UsableConfig,
    opened: Journal,
    failedTests: readonly Problem[],
    isFirst: boolean,
  ): Works {
    const key = holdKey(() => readKey(config.notebook.key, config.placeOf(['notebook', 'key'])), conceal);
    const heard = requests.count;
    return createWorks({ config, journal: opened, clock, log, observer, key, failedTests, isFirst, heard });
  }

  const liveWith = (alarms: Live['alarms']): Live => ({
    at: clock.now(),
    ...started,
    config: first.file,
    problems: works?.problems ?? [],
    refused,
    notebook: {
      url: (works?.config ?? first).notebook.url,
      gate: works?.gate() ?? { kind: 'open', perSecond: first.notebook.rate },
      requests: requests.list(),
    },
    instruments: (works?.instruments ?? awaited).map(({ state }) => state.live()),
    alarms,
  });

  /** What the mappings' own tests find wrong; undefined when a stop was asked for meanwhile. */
  async function testMappings({ instruments }: LoadedConfig): Promise<Problem[] | undefined> {
    const usable = instruments.filter((instrument) => checkMapping(instrument).length === 0);
    const results = await runGoldenTests(usable, { clock, signal: stopping.signal });
    return stopping.signal.aborted ? undefined : results.flatMap(({ problems }) => problems);
  }

  async function open(): Promise<void> {
    const address = statusAddressOf(first, conceal);
    const opened = await openJournal(journalPath, clock);
    journal = opened;
    // Before tests and scans, which can take their time: that is when people look.
    await page.show(first, address);
    const failedTests = await testMappings(first);
    if (failedTests) works = makeWorks(first, opened, failedTests, true);
    reporting = createReporting({
      journal: opened,
      journalPath,
      works: () => works,
      live: liveWith,
      page: () => page.problem()?.text,
      clock,
      log,
      conceal,
    });
    await reporting.start();
  }

  async function reload(load: () => LoadedConfig): Promise<void> {
    if (!journal) return;
    let config: UsableConfig;
    let next: Works;
    let address: StatusAddress | undefined;
    try {
      const loaded: LoadedConfig = load();
      refuseMistakes(loaded, journalPath);
      config = loaded;
      address = statusAddressOf(config, conceal);
      const failedTests = await testMappings(config);
      if (!failedTests) return;
      if (failedTests.length > 0) throw new ConfigError(failedTests);
      next = makeWorks(config, journal, failedTests, false);
      log.level = config.settings.log;
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      refused = { at: clock.now(), problems: shownRefusal(error, first.file) };
      return log.error({ problems: explain(error) }, 'the new configuration is refused; the old one goes on');
    }
    await works?.stop();
    works = next;
    await page.show(config, address);
    refused = undefined;
    log.info('reloaded');
    // Not waited for: a stop must not have to wait until the first scan of a large folder has ended.
    next
      .start()
      .catch((error: unknown) => log.fatal({ err: error }, 'the new configuration could not be started'));
  }

  return {
    async start() {
      await inTurn(open);
      await works?.start();
    },
    reload: (load) => inTurn(() => reload(load)),
    stop() {
      // Tests of mappings that are still under way are given up: a stop cannot wait for them.
      stopping.abort();
      return inTurn(async () => {
        // What could not be started has told why, and does not stop.
        if (works) log.info('stopping');
        await works?.stop();
        await page.stop();
        await reporting?.stop();
        await journal?.close();
        if (works) log.info('stopped');
      });
    },
    live,
    count: async () => (await journal?.runs.count()) ?? {},
  };
}

/** Any mistake refuses a reload as a whole: what runs is better than half of what was meant. */
function refuseMistakes(config: LoadedConfig, journalPath: string): asserts config is UsableConfig {
  const problems = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  if (problems.length > 0) throw new ConfigError(problems);
  if (journalOf(config) !== journalPath) throw new LabfeedError('another journal needs a restart');
}
