import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import type { Live } from '../live.js';
import { RUN_STATES } from '../model.js';
import type { Overview } from './api.js';
import type { StatusDeps } from './deps.js';

/** For Prometheus: made anew at each scrape from what the page shows. */
export interface Metrics {
  collect(): Promise<{ readonly type: string; readonly text: string }>;
}

type MetricsDeps = Pick<StatusDeps, 'version' | 'clock' | 'log' | 'live' | 'overview' | 'journalBytes'>;

export function createMetrics({ version, clock, log, live, overview, journalBytes }: MetricsDeps): Metrics {
  let ofProcess: Registry | undefined;

  async function readOverview(): Promise<Overview | undefined> {
    try {
      return await overview();
    } catch (error) {
      log.warn({ err: error }, 'the journal cannot be read for the metrics');
      return undefined;
    }
  }

  return {
    async collect() {
      // At the first scrape: watching the garbage collector costs a little, and is for those who ask.
      ofProcess ??= watchProcess();
      const bytes = await journalBytes().catch(() => undefined);
      const read = await readOverview();
      const own = measure({ version, nowMs: clock.now(), live: live(), overview: read, bytes });
      const texts = await Promise.all([own.metrics(), ofProcess.metrics()]);
      return { type: own.contentType, text: texts.join('\n') };
    },
  };
}

function watchProcess(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  return registry;
}

interface Measured {
  readonly version: string;
  readonly nowMs: number;
  readonly live: Live;
  /** Undefined where the journal cannot be read: better no number than a wrong one. */
  readonly overview: Overview | undefined;
  readonly bytes: number | undefined;
}

type Define = (name: string, help: string, labelNames?: readonly string[]) => Gauge;

/** A registry for this one scrape: what is gone since the last one, an instrument or an alarm, is not in it. */
function measure({ version, nowMs, live, overview, bytes }: Measured): Registry {
  const registry = new Registry();
  const define: Define = (name, help, labelNames = []) =>
    new Gauge({ name: `labfeed_${name}`, help, labelNames, registers: [registry] });
  define('build_info', 'The version that runs; always 1.', ['version', 'node']).set(
    { version, node: process.versions.node },
    1,
  );
  measureNotebook(live, define, registry);
  measureInstruments(live, nowMs, define);
  if (overview) measureRuns(overview, live, nowMs, define);
  if (bytes !== undefined) define('journal_bytes', 'What the journal takes on the disk.').set(bytes);
  return registry;
}

const GATES: readonly Live['notebook']['gate']['kind'][] = ['open', 'slowed', 'slow start', 'held', 'down'];

function measureNotebook({ notebook }: Live, define: Define, registry: Registry): void {
  const requests = new Counter({
    name: 'labfeed_requests_total',
    help: 'Requests to the notebook by the status of their answers; none where no answer came.',
    labelNames: ['method', 'status'],
    registers: [registry],
  });
  for (const { method, status, count } of notebook.requests) requests.inc({ method, status }, count);
  const { gate } = notebook;
  const state = define('gate_state', 'Whether requests leave: 1 for the state that it is in.', ['state']);
  for (const kind of GATES) state.set({ state: kind }, kind === gate.kind ? 1 : 0);
  define('gate_rate', 'Requests that may leave in a second.').set('perSecond' in gate ? gate.perSecond : 0);
}

function measureInstruments({ instruments, alarms }: Live, nowMs: number, define: Define): void {
  const alarm = define('alarm', 'Troubles that a person should know of.', ['kind', 'instrument']);
  for (const { kind, instrument = '' } of alarms) alarm.set({ kind, instrument }, 1);
  const folder = define('folder_up', 'Whether the folder of the instrument is there.', ['instrument']);
  const age = define('last_file_age_seconds', 'How long ago a file last came.', ['instrument']);
  for (const {
    name,
    folder: { state },
    lastFileAt,
  } of instruments) {
    if (state !== 'unknown') folder.set({ instrument: name }, state === 'present' ? 1 : 0);
    if (lastFileAt !== undefined) age.set({ instrument: name }, seconds(nowMs - lastFileAt));
  }
}

function measureRuns({ instruments }: Overview, live: Live, nowMs: number, define: Define): void {
  const runs = define('runs', 'Runs by instrument and state.', ['instrument', 'state']);
  for (const { name, runs: counts } of instruments)
    for (const state of RUN_STATES) runs.set({ instrument: name, state }, counts[state]);
  // What is not still yet only the daemon knows.
  for (const { name, waiting } of live.instruments)
    runs.set({ instrument: name, state: 'waiting' }, waiting.files);
  const queued = instruments.reduce((sum, { runs }) => sum + runs.queued + runs.sending, 0);
  define('queue_length', 'Runs that are to be delivered.').set(queued);
  const oldest = Math.min(nowMs, ...instruments.flatMap(({ oldestAt }) => oldestAt ?? []));
  define('oldest_waiting_seconds', 'How long the oldest of them has waited; 0 where there is none.').set(
    seconds(nowMs - oldest),
  );
}

/** The clock may have been set back since. */
const seconds = (ms: number): number => Math.max(0, ms / 1000);
