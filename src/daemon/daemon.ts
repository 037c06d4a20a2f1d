import type { Clock } from '../clock.js';
import { type LoadedConfig, loadConfig, NO_NOTEBOOK, requireInstruments, type UsableConfig } from '../config/load.js';
import { holdKey, readKey } from '../config/secrets.js';
import { trackUnknownOutcomes, type UnknownOutcomes } from '../deliver/context.js';
import { ConfigError, explain, formatPlace, LabfeedError, type Problem } from '../errors.js';
import type { Fleet } from '../fleet/fleet.js';
import { refuseMoved } from '../journal/fleet-view.js';
import { type Journal, openJournal } from '../journal/journal.js';
import { type ConfigProblem, describeProblem, type Live } from '../live.js';
import type { Log } from '../log.js';
import { checkMapping } from '../map/draft.js';
import { runGoldenTests } from '../mapping/tests.js';
import type { Observer } from '../pipeline.js';
import { Spool, spoolOf } from '../spool.js';
import type { StatusAddress } from '../status/api.js';
import { version } from '../system/process.js';
import { createCommandServer } from './command-server.js';
import { createStatusPage, type StatusPage, statusAddressOf } from './page.js';
import { createReaders, type Readers } from './readers.js';
import { createReporting, createRequestCounter, type Reporting } from './reporting.js';
import { createRuntime, listInstruments, type Runtime } from './runtime.js';

interface DaemonOptions {
  readonly config: UsableConfig;
  readonly clock: Clock;
  readonly log: Log;
  /** Removes a secret from everything that is logged. */
  conceal(secret: string): void;
  /** Whether a text contains one of those secrets. */
  isSecretIn(text: string): boolean;
  readonly observer?: Observer;
}

export type Daemon = ReturnType<typeof createDaemon>;

interface Parts extends Required<DaemonOptions> {
  readonly journalPath: string;
  readonly readers: Readers;
  readonly page: StatusPage;
  readonly requests: ReturnType<typeof createRequestCounter>;
  readonly outcomes: ReturnType<typeof rememberOutcomes>;
  readonly started: Pick<Live, 'pid' | 'version' | 'startedAt'>;
  /** Shown on the page until the runtime exists. */
  readonly starting: Runtime['instruments'];
  readonly stopping: AbortSignal;
  journal?: Journal;
  /** Set if this machine is a member of a fleet. */
  fleet?: Fleet;
  readonly spool: Spool;
  readonly commands: ReturnType<typeof createCommandServer>;
  /** Of the current configuration. */
  runtime?: Runtime;
  reporting?: Reporting;
  refused?: Live['refused'];
}

/** The composition root: the journal, status file, alarms and page, and the runtime of the current configuration. */
export function createDaemon(options: DaemonOptions) {
  const { config, clock, log, observer = {} } = options;
  const journalPath = config.settings.journal;
  const started = { pid: process.pid, version: version(), startedAt: clock.now() };
  const stopping = new AbortController();
  const readers = createReaders();
  const live = (): Live => liveOf(daemon, daemon.reporting?.alarms() ?? [], daemon.reporting?.halted());
  const reloadFile = async (): Promise<string | undefined> => {
    await inTurn(() => reload(() => loadConfig(config.file), daemon));
    return daemon.refused?.problems.map(({ at, message }) => `${at}: ${message}`).join('; ');
  };
  const daemon: Parts = {
    ...options,
    observer,
    journalPath,
    readers,
    page: createStatusPage(journalPath, { readers, clock, log, live, reload: reloadFile, conceal: options.conceal }),
    requests: createRequestCounter(),
    outcomes: rememberOutcomes(clock, log),
    started,
    spool: new Spool(spoolOf(journalPath)),
    starting: listInstruments(config, [], clock),
    commands: createCommandServer(config.file, log),
    stopping: stopping.signal,
  };
  /** Start, reloads and stop run one after the other. */
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    turn = turn.then(act, act);
    return turn;
  };
  return {
    /** Resolves after the first scan of every folder. */
    async start(): Promise<void> {
      await inTurn(() => open(daemon));
      await daemon.runtime?.start();
    },
    /** Continues with another configuration. If that has mistakes, it is refused and the current one stays. */
    reload: (load: () => LoadedConfig): Promise<void> => inTurn(() => reload(load, daemon)),
    /** Starts nothing new, waits for the current steps, and closes the journal. */
    stop(): Promise<void> {
      // Ends mapping tests that are still running.
      stopping.abort();
      return inTurn(() => close(daemon));
    },
    live,
    /** Rejects, or does not settle, if the journal cannot be used until a restart. */
    checkJournal: async (): Promise<void> => daemon.journal?.respond(),
    /** The number of runs in each step or parked state. */
    count: async (): Promise<Record<string, number>> => (await daemon.journal?.outbox.count()) ?? {},
  };
}

async function open(daemon: Parts): Promise<void> {
  const { config, journalPath, page, clock, log, conceal } = daemon;
  const address = statusAddressOf(config, conceal);
  const opened = await openJournal(journalPath, clock);
  daemon.journal = opened;
  const journal = await joinFleet(opened, daemon);
  daemon.commands.start();
  await daemon.spool.clean(await journal.outbox.uploads.needed());
  // Before tests and scans, which can take long.
  await page.show(config, address);
  const failedTests = await testMappings(config, daemon);
  if (failedTests) daemon.runtime = makeRuntime(config, journal, failedTests, daemon);
  daemon.reporting = createReporting({
    journal,
    journalPath,
    spool: daemon.spool,
    runtime: () => daemon.runtime,
    live: (alarms, halted) => liveOf(daemon, alarms, halted),
    page: page.problem,
    fleet: daemon.fleet?.alarms,
    clock,
    log,
    conceal,
  });
  await daemon.reporting.start();
}

/** The journal of a member of a fleet forwards what intake hands over. */
async function joinFleet(journal: Journal, daemon: Parts): Promise<Journal> {
  const { config, stopping, requests } = daemon;
  const { fleet } = config.settings;
  if (!fleet) refuseMoved(journal.store, daemon.journalPath);
  if (!fleet) return journal;
  // Loaded here, so that a single machine does not load it.
  const joined = await import('../fleet/fleet.js');
  const live = () => liveOf(daemon, daemon.reporting?.alarms() ?? [], daemon.reporting?.halted());
  daemon.fleet = await joined.joinFleet({ ...daemon, fleet, journal, stopping, onResponse: requests.count, live });
  daemon.journal = daemon.fleet.journal;
  return daemon.journal;
}

async function reload(load: () => LoadedConfig, daemon: Parts): Promise<void> {
  const { journal, page, clock, log } = daemon;
  if (!journal) return;
  let config: UsableConfig;
  let next: Runtime;
  let address: StatusAddress | undefined;
  try {
    const loaded: LoadedConfig = load();
    refuseMistakes(loaded, daemon);
    config = loaded;
    address = statusAddressOf(config, daemon.conceal);
    const failedTests = await testMappings(config, daemon);
    if (!failedTests) return;
    if (failedTests.length > 0) throw new ConfigError(failedTests);
    next = makeRuntime(config, journal, failedTests, daemon);
    log.level = config.settings.log;
  } catch (error) {
    if (!(error instanceof LabfeedError)) throw error;
    daemon.refused = { at: clock.now(), problems: refusalProblems(error, daemon.config.file) };
    return log.error({ problems: explain(error) }, 'new configuration rejected, keeping the current one');
  }
  await daemon.runtime?.stop(() => daemon.runtime?.wake());
  daemon.runtime = next;
  await daemon.fleet?.use(config);
  await page.show(config, address);
  daemon.refused = undefined;
  log.info('configuration reloaded');
  // Not awaited: a stop must not wait for the first scan of a large folder.
  next.start().catch((error: unknown) => log.fatal({ err: error }, 'cannot start with the new configuration'));
}

/** A reload is all or nothing: the current configuration is better than half of the new one. */
function refuseMistakes(config: LoadedConfig, before: Parts): asserts config is UsableConfig {
  const problems = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  if (problems.length > 0) throw new ConfigError(problems);
  requireInstruments(config);
  const membership = ({ settings: { fleet } }: LoadedConfig): string =>
    JSON.stringify([fleet?.url, fleet?.role, fleet?.name]);
  const isSame = config.settings.journal === before.journalPath && membership(config) === membership(before.config);
  if (isSame) return;
  throw new LabfeedError('the settings `journal`, `role` and `fleet` cannot be changed while labfeed is running', {
    hint: 'restart labfeed to use them',
  });
}

/** Why a configuration was refused. An error without a location concerns the whole file. */
function refusalProblems(error: LabfeedError, file: string): ConfigProblem[] {
  if (error instanceof ConfigError) return error.problems.map(describeProblem);
  const { message, hint, where = { file } } = error;
  return [{ at: formatPlace(where), message, hint, instrument: undefined }];
}

async function close({ runtime, fleet, page, commands, readers, reporting, journal, log }: Parts): Promise<void> {
  // Without a runtime, the daemon could not start and has reported why.
  if (runtime) log.info('stopping');
  commands.stop();
  await runtime?.stop();
  await page.stop();
  await readers.stop();
  await reporting?.stop();
  await fleet?.stop();
  await journal?.close();
  if (runtime) log.info('stopped');
}

/** Runs the tests of the mappings and returns their failures; undefined if a stop was requested meanwhile. */
async function testMappings(
  { instruments }: LoadedConfig,
  { clock, readers, stopping: signal }: Parts,
): Promise<Problem[] | undefined> {
  const tested = instruments.filter(({ tests }) => tests.length > 0);
  const usable = tested.filter((instrument) => checkMapping(instrument).length === 0);
  const results = await runGoldenTests(usable, { clock, signal, run: readers.test });
  return signal.aborted ? undefined : results.flatMap(({ problems }) => problems);
}

/** Reads the key and creates the runtime, so that errors show while the previous runtime still runs. */
function makeRuntime(
  config: UsableConfig,
  journal: Journal,
  failedTests: readonly Problem[],
  { runtime, fleet, readers, requests, outcomes, spool, clock, log, observer, conceal, isSecretIn }: Parts,
): Runtime {
  // A watcher of a fleet has none.
  const read = () => readKey(config.notebook.key, config.placeOf(['notebook', 'key']));
  const key = holdKey(config.settings.fleet?.role === 'watch' ? () => '' : read, conceal);
  const isFirst = runtime === undefined;
  const onResponse = requests.count;
  const shared = { config, journal, readers, spool, clock, log, observer, key, isSecretIn };
  return createRuntime({ ...shared, failedTests, isFirst, outcomes, onResponse, fleet: fleet?.part });
}

/**
 * A creation that is in flight during a reload still excludes reconciliations by the next runtime. By time-out too: it
 * decides how long outcomes are remembered.
 */
function rememberOutcomes(clock: Clock, log: Log) {
  const known = new Map<string, UnknownOutcomes>();
  return (url: string, timeoutMs: number): UnknownOutcomes => {
    const name = `${timeoutMs} ${url}`;
    const outcomes = known.get(name) ?? trackUnknownOutcomes(clock, timeoutMs, log);
    known.set(name, outcomes);
    return outcomes;
  };
}

const addressOf = ({ notebook: { url } }: UsableConfig) => (url === NO_NOTEBOOK.url ? undefined : url);

const liveOf = (
  { config, page, runtime, fleet, started, starting, refused, requests, spool, clock }: Parts,
  alarms: Live['alarms'],
  halted: string | undefined,
): Live => ({
  at: clock.now(),
  ...started,
  config: config.file,
  page: page.url(),
  problems: runtime?.problems ?? [],
  refused,
  notebook: {
    url: addressOf(runtime?.config ?? config),
    gate:
      halted === undefined
        ? (runtime?.gate() ?? { kind: 'open', perSecond: config.notebook.rate })
        : { kind: 'halted', reason: halted },
    requests: requests.list(),
  },
  spool: { bytes: spool.bytes, maxBytes: (runtime?.config ?? config).settings.spool },
  instruments: (runtime?.instruments ?? starting).map(({ activity, usable }) => {
    const silenceMs = usable?.silence?.afterMs;
    return { ...activity.live(), ...(silenceMs !== undefined && { silenceMs }) };
  }),
  alarms,
  fleet: fleet?.live(),
});
