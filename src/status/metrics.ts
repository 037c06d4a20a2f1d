import type { FastifyInstance, FastifyRequest } from 'fastify';
import { Counter, collectDefaultMetrics, Gauge, Registry } from 'prom-client';
import { explain } from '../errors.js';
import type { Live } from '../live.js';
import { isSilent, type Place } from '../members.js';
import { RUN_STATES } from '../model.js';
import { totalUploads } from '../uploads.js';
import type { Overview, StatusDeps } from './api.js';

interface MonitoringDeps extends Pick<StatusDeps, 'live' | 'journal'> {
  readonly metrics: ReturnType<typeof createMetrics>;
  isAuthorized(request: FastifyRequest): boolean;
}

export function serveMonitoring(app: FastifyInstance, { live, journal, metrics, isAuthorized }: MonitoringDeps): void {
  // Checks nothing else: a restart would not bring back a notebook that is down.
  app.get('/healthz', async () => ({ status: 'ok' }));

  app.get('/readyz', async (request, reply) => {
    const reasons = await readinessProblems(live(), journal);
    if (reasons.length === 0) return { status: 'ready' };
    reply.code(503);
    // The reasons name folders and instruments.
    return { status: 'not ready', ...(isAuthorized(request) && { reasons }) };
  });

  app.get('/metrics', async (_request, reply) => {
    const { type, text } = await metrics.collect();
    return reply.type(type).send(text);
  });
}

/** Something that keeps runs from being filed. */
interface ReadinessProblem {
  readonly part: 'journal' | 'notebook' | 'database' | 'folder' | 'instrument';
  readonly instrument?: string;
  readonly text: string;
}

async function readinessProblems(
  { notebook, instruments, alarms, fleet }: Live,
  journal: StatusDeps['journal'],
): Promise<ReadinessProblem[]> {
  const found: ReadinessProblem[] = [];
  // A machine that only watches keeps what it reads until the database is back, as long as it has room.
  const hasRoom = !alarms.some(({ kind }) => kind === 'spool');
  if (fleet?.trouble !== undefined && (fleet.delivers || !hasRoom))
    found.push({ part: 'database', text: `the database of the fleet is away: ${fleet.trouble}` });
  const journalProblem = await journal.problem();
  if (journalProblem !== undefined) found.push({ part: 'journal', text: journalProblem });
  try {
    const { servers } = await journal.overview();
    const halted = servers.find(({ url }) => url === notebook.url)?.halted;
    if (halted !== undefined) found.push({ part: 'notebook', text: halted });
  } catch (error) {
    if (journalProblem === undefined)
      found.push({ part: 'journal', text: `the journal cannot be read: ${explain(error)}` });
  }
  if (notebook.gate.kind === 'down') found.push({ part: 'notebook', text: notebook.gate.reason });
  for (const { kind, text } of alarms) if (kind === 'overdue') found.push({ part: 'notebook', text });
  for (const { kind, instrument, text } of alarms)
    if ((kind === 'unreadable' || kind === 'stuck') && instrument !== undefined)
      found.push({ part: 'folder', instrument, text });
  return [...found, ...instruments.flatMap(instrumentProblems)];
}

function instrumentProblems({ name, line, folder, watch }: Live['instruments'][number]): ReadinessProblem[] {
  const problem = (part: ReadinessProblem['part'], text: string) => [{ part, instrument: name, text }];
  if (line === 'stopped') return problem('instrument', `${name} is stopped by a configuration error or a failed test`);
  if (line === 'starting')
    return problem('instrument', `${name} is still starting: the first scan of ${watch} is running`);
  if (folder.state === 'present') return [];
  const reason = folder.reason === undefined ? '' : ` (${folder.reason})`;
  return problem('folder', `the folder ${watch} of ${name} is ${folder.state}${reason}`);
}

/** Metrics for Prometheus, collected at each scrape. */
export function createMetrics({ clock, log, live, journal }: StatusDeps) {
  let processMetrics: Registry | undefined;

  async function readOverview(): Promise<Overview | undefined> {
    try {
      return await journal.overview();
    } catch (error) {
      log.warn({ err: error }, 'cannot read the journal for the metrics');
      return undefined;
    }
  }

  return {
    async collect() {
      // From the first scrape on: observing the garbage collector is not free.
      processMetrics ??= observeProcess();
      const bytes = await journal.bytes().catch(() => undefined);
      const own = measure({ nowMs: clock.now(), live: live(), overview: await readOverview(), bytes });
      const texts = await Promise.all([own.metrics(), processMetrics.metrics()]);
      return { type: own.contentType, text: texts.join('\n') };
    },
  };
}

function observeProcess(): Registry {
  const registry = new Registry();
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  // Gauges that are named like counters, which `promtool check metrics` reports.
  for (const what of ['handles', 'requests', 'resources']) registry.removeSingleMetric(`nodejs_active_${what}_total`);
  return registry;
}

interface Measured {
  readonly nowMs: number;
  readonly live: Live;
  /** Undefined if the journal cannot be read: no number is better than a wrong one. */
  readonly overview: Overview | undefined;
  readonly bytes: number | undefined;
}

type Define = (name: string, help: string, labelNames?: readonly string[]) => Gauge;

/** Fills a new registry for each scrape, so that it has no samples of former instruments and alarms. */
function measure({ nowMs, live, overview, bytes }: Measured): Registry {
  const registry = new Registry();
  const define: Define = (name, help, labelNames = []) =>
    new Gauge({ name: `labfeed_${name}`, help, labelNames, registers: [registry] });
  const build = define('build_info', 'The running version; always 1.', ['version', 'node']);
  build.set({ version: live.version, node: process.versions.node }, 1);
  measureNotebook(live, define, registry);
  measureInstruments(live, nowMs, define);
  if (live.fleet) measureFleet(live.fleet, nowMs, define);
  if (overview) measureRuns(overview, live, nowMs, define);
  if (overview) measureUploads(overview, live, nowMs, define);
  if (bytes !== undefined) define('journal_bytes', 'Size of the journal on disk.').set(bytes);
  return registry;
}

const GATE_STATES: readonly Live['notebook']['gate']['kind'][] = [
  'open',
  'slowed',
  'slow start',
  'held',
  'down',
  'halted',
];

function measureNotebook({ notebook }: Live, define: Define, registry: Registry): void {
  const requests = new Counter({
    name: 'labfeed_requests_total',
    help: 'Requests to the notebook by response status; none if there was no response.',
    labelNames: ['method', 'status'],
    registers: [registry],
  });
  for (const { method, status, count } of notebook.requests) requests.inc({ method, status }, count);
  const { gate } = notebook;
  const state = define('gate_state', 'Delivery state; 1 for the current state.', ['state']);
  for (const kind of GATE_STATES) state.set({ state: kind }, kind === gate.kind ? 1 : 0);
  define('gate_rate', 'Requests allowed per second.').set('perSecond' in gate ? gate.perSecond : 0);
}

function measureInstruments({ instruments, alarms }: Live, nowMs: number, define: Define): void {
  const alarm = define('alarm', 'Raised alarms.', ['kind', 'instrument']);
  for (const { kind, instrument = '' } of alarms) alarm.set({ kind, instrument }, 1);
  const folder = define('folder_up', "Whether the instrument's folder is present.", ['instrument']);
  const unread = define('unreadable_files', 'Files and folders that cannot be read.', ['instrument']);
  const stuckFiles = define('stuck_files', 'Files that have been waiting for more than a day.', ['instrument']);
  const age = define('last_file_age_seconds', 'Time since the last file arrived.', ['instrument']);
  for (const { name: instrument, folder: watched, lastFileAt, unreadable, stuck } of instruments) {
    stuckFiles.set({ instrument }, stuck.files);
    unread.set({ instrument }, unreadable.files);
    if (watched.state !== 'unknown') folder.set({ instrument }, watched.state === 'present' ? 1 : 0);
    if (lastFileAt !== undefined) age.set({ instrument }, seconds(nowMs - lastFileAt));
  }
}

function measureFleet({ trouble, kept, members }: NonNullable<Live['fleet']>, nowMs: number, define: Define): void {
  define('fleet_database_up', '1 if the database of the fleet can be reached.').set(trouble === undefined ? 1 : 0);
  define('fleet_kept_operations', 'Operations that wait on this machine for the database.').set(kept);
  const info = define('fleet_member_info', 'The machines of the fleet; always 1.', ['member', 'role', 'version']);
  const up = define('fleet_member_up', '1 if a machine of the fleet was seen within a minute.', ['member']);
  const seen = define('fleet_member_seen_seconds', 'Time since a machine of the fleet was seen.', ['member']);
  const waiting = define('fleet_member_operations', 'Operations that the leader has not applied yet.', ['member']);
  const leads = define('fleet_member_leads', '1 for the machine that delivers.', ['member']);
  const skew = define('fleet_member_skew_seconds', "How far a machine's clock is ahead of the database's.", ['member']);
  const alarms = define('fleet_member_alarms', 'Raised alarms of a machine.', ['member']);
  const measurePlace = definePlaces(nowMs, define);
  for (const one of members) {
    const { name: member, role, version } = one;
    info.set({ member, role, version }, 1);
    up.set({ member }, one.isAway ? 0 : 1);
    seen.set({ member }, Math.max(0, (nowMs - one.seenAt) / 1000));
    waiting.set({ member }, one.waiting);
    leads.set({ member }, one.leads ? 1 : 0);
    skew.set({ member }, one.skewMs / 1000);
    alarms.set({ member }, one.alarms.length);
    for (const folder of one.folders) measurePlace({ member: one, folder });
  }
}

/** An instrument on a machine. If that is away, only the time of the last file is known for certain. */
function definePlaces(nowMs: number, define: Define): (place: Place) => void {
  const labels = ['member', 'instrument'];
  const up = define('fleet_folder_up', 'Whether the folder of an instrument is present.', labels);
  const files = define('fleet_waiting_files', 'Files that are not in the journal yet.', labels);
  const age = define('fleet_last_file_age_seconds', 'Time since the last file arrived.', labels);
  const silent = define('fleet_silent', '1 if no file has arrived for longer than `silence`.', labels);
  const asked = define('fleet_backlog_files', 'Existing files that wait for a decision.', labels);
  const runs = define('fleet_runs', 'Runs of a machine that are not filed, by state.', [...labels, 'state']);
  return (place) => {
    const { member, folder } = place;
    const labelled = { member: member.name, instrument: folder.instrument };
    if (folder.lastFileAt != null) age.set(labelled, seconds(nowMs - folder.lastFileAt));
    if (member.isAway) return;
    if (folder.state !== 'unknown') up.set(labelled, folder.state === 'present' ? 1 : 0);
    files.set(labelled, folder.waiting);
    if (folder.silenceMs != null) silent.set(labelled, isSilent(place) ? 1 : 0);
    if (folder.asked != null) asked.set(labelled, folder.asked);
    for (const [state, count] of Object.entries(folder.runs ?? {})) runs.set({ ...labelled, state }, count);
  };
}

function measureRuns({ instruments }: Overview, live: Live, nowMs: number, define: Define): void {
  const runs = define('runs', 'Runs by instrument and state.', ['instrument', 'state']);
  for (const { name, runs: counts } of instruments)
    for (const state of RUN_STATES) runs.set({ instrument: name, state }, counts[state]);
  // Waiting files are not in the journal.
  for (const { name, waiting } of live.instruments) runs.set({ instrument: name, state: 'waiting' }, waiting.files);
  const queued = instruments.reduce((sum, { runs }) => sum + runs.queued + runs.sending, 0);
  define('queue_length', 'Runs waiting for delivery.').set(queued);
  const oldest = Math.min(nowMs, ...instruments.flatMap(({ oldestAt }) => oldestAt ?? []));
  const waited = define(
    'oldest_waiting_seconds',
    'Time since the oldest run waiting for delivery was queued; 0 if there is none.',
  );
  waited.set(seconds(nowMs - oldest));
}

function measureUploads({ uploads }: Overview, { spool }: Live, nowMs: number, define: Define): void {
  const { files = 0, since = nowMs } = totalUploads(uploads) ?? {};
  define('uploads_waiting', 'Raw files of filed runs that wait to be attached.').set(files);
  const waited = define(
    'uploads_oldest_waiting_seconds',
    'Time since the oldest run was queued whose raw file waits to be attached; 0 if there is none.',
  );
  waited.set(seconds(nowMs - since));
  if (!spool) return;
  define('spool_bytes', 'Size of the copies of raw files that wait to be attached.').set(spool.bytes);
  define('spool_max_bytes', 'How much these copies may take.').set(spool.maxBytes);
}

/** Not negative: the system clock may have been set back. */
const seconds = (ms: number): number => Math.max(0, ms / 1000);
