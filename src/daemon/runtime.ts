import { atMost, type Clock, type Loop, retry } from '../clock.js';
import type { Instrument, LoadedConfig, UsableConfig } from '../config/load.js';
import type { Key } from '../config/secrets.js';
import type { NotebookConfig } from '../config/settings.js';
import { connect, type OnResponse, type Schedule } from '../connection.js';
import {
  type DeliveryContext,
  HaltedError,
  type Notebook,
  StoppedError,
  trackUnknownOutcomes,
  type UnknownOutcomes,
} from '../deliver/context.js';
import { answers, confirmingForbidden, repeatReads } from '../deliver/failures.js';
import { Limiter } from '../deliver/limiter.js';
import { checkRestored, createWriteGuard, RECOVER, rememberHalts } from '../deliver/restored.js';
import { prepareServer } from '../deliver/server.js';
import { type AttachOptions, createUploads } from '../deliver/uploads.js';
import { Writes } from '../deliver/writes.js';
import { explainProblem, type Problem } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import { applyRequests, type Outcome } from '../journal/requests.js';
import { type ConfigProblem, describeProblem, type LimiterState } from '../live.js';
import type { Log } from '../log.js';
import { checkMapping } from '../map/draft.js';
import type { Origin } from '../markers.js';
import type { Outbox } from '../outbox.js';
import { createDelivery, createIntake, type Observer, type Reader } from '../pipeline.js';
import type { Spool } from '../spool.js';
import { sourceProbe } from '../watch/identify.js';
import { createActivity } from '../watch/intake.js';
import { type Claims, createClaims } from '../watch/match.js';
import type { DisposalContext } from './disposal.js';
import type { Readers } from './readers.js';
import {
  attachFrom,
  createProof,
  disposeOfSources,
  rawFilesOf,
  sourcesOf,
  sweepSpool,
  unchangedMs,
} from './sources.js';
import { applyDecisions, correctDueTimes, pruneDaily } from './upkeep.js';

interface RuntimeDeps {
  readonly config: UsableConfig;
  readonly journal: Journal;
  readonly readers: Readers;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  readonly key: Key;
  /** Whether a text contains the API key or another secret of labfeed. */
  isSecretIn(text: string): boolean;
  /** Mistakes found by the tests of the mappings. */
  readonly failedTests: readonly Problem[];
  /** Whether this is the first runtime since the journal was opened. */
  readonly isFirst: boolean;
  /** The requests of this process whose outcomes are unknown. They outlive a reload. */
  outcomes(url: string, timeoutMs: number): UnknownOutcomes;
  /** Called after each request. */
  readonly onResponse: OnResponse;
  readonly spool: Spool;
  /** Set if this machine is a member of a fleet. */
  readonly fleet?: FleetPart | undefined;
}

/** How runs get to the notebook: from here, or handed over to the fleet, whose leader delivers them. */
interface DeliveryPart extends Pick<ReturnType<typeof openDelivery>, 'start' | 'wake' | 'queued' | 'gate' | 'stop'> {
  /** See `DisposalContext.prove`. */
  proof(signal: AbortSignal): DisposalContext['prove'];
}

/** What a member of a fleet does differently. */
export interface FleetPart {
  /** The journal's id in origin lines: one for the fleet. */
  readonly id: string;
  readonly delivery: DeliveryPart;
  /** Whether the notebook has accepted a request, as far as this machine has to know. */
  hasAnswered(): boolean;
  /** Reads no faster than runs are handed over. Growing files that begin alike on two machines are two runs. */
  reader(reader: Reader): Reader;
  /** Applies the decisions that people make. `rescan`: scans a folder for files to read again, from now on. */
  decide(rescan: (instrument: string) => void): Promise<Outcome[]>;
}

export type Runtime = ReturnType<typeof createRuntime>;

/** A stop may take 10 s; this part of it is for pending requests. */
const FINISH_WITHIN_MS = 8000;

const NEW_JOURNAL =
  'the journal is new, but the folders already contain files. If you had a journal before, stop labfeed now and run `labfeed recover`; otherwise runs that are already filed will be filed again';

/** Everything that runs for one configuration. A reload replaces it. */
export function createRuntime(deps: RuntimeDeps) {
  const { config, journal, readers, clock, log, observer, failedTests, fleet } = deps;
  const mistakes = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  for (const problem of mistakes) log.error(fields(problem), 'configuration error');
  for (const problem of failedTests) log.error(fields(problem), 'mapping test failed, instrument stopped');
  const problems = [...mistakes, ...failedTests].map(describeProblem);
  const instruments = listInstruments(config, problems, clock);
  let hasAnswered = false;
  const onResponse: OnResponse = (method, status) => {
    hasAnswered ||= status !== undefined && status >= 200 && status < 300;
    deps.onResponse(method, status);
  };
  const delivery = deps.fleet?.delivery ?? openOwnDelivery(deps, onResponse);
  let isWarned = !(deps.isFirst && journal.isNew);
  function foundBacklog(): void {
    if (!isWarned) log.warn({ journal: config.settings.journal }, NEW_JOURNAL);
    isWarned = true;
  }
  const { isSecretIn } = deps;
  const observed = { observer: { ...observer, foundBacklog }, wakeDelivery: delivery.queued };
  const shared = { journal, ...observed, isSecretIn, clock, log };
  const claims = createClaims(config.claims);
  const intakes = instruments.flatMap(({ usable, activity }) => {
    if (!usable) return [];
    const reader = readers.open(usable, fleet?.id ?? journal.outbox.id);
    return createIntake(usable, {
      ...shared,
      reader: fleet?.reader(reader) ?? reader,
      rawFiles: rawFilesOf(usable, deps),
      sourcesOf: (file) => sourcesOf(usable, file, clock.now() + unchangedMs()),
      foundHidden: (location) => disposal?.foundHidden(usable.name, location),
      activity,
      claims: claimsAround(usable, claims, config.settings.journal),
    });
  });
  const rescan = (name: string, asBacklog: boolean): void =>
    void intakes.find(({ instrument }) => instrument === name)?.rescan(asBacklog);
  let loops: Loop[] = [];
  let disposal: ReturnType<typeof disposeOfSources> | undefined;

  return {
    config,
    problems,
    instruments,
    gate: delivery.gate,
    /** Checks for runs to deliver now. */
    wake: delivery.wake,
    /** Files with private names that no labfeed gives their own names again. */
    strays: (): readonly string[] => disposal?.strays() ?? [],
    /** Whether the notebook has accepted a request. */
    hasAnswered: () => fleet?.hasAnswered() ?? hasAnswered,
    /** Resolves after the first scan of every folder. */
    async start(): Promise<void> {
      const apply = () => fleet?.decide((name) => rescan(name, false)) ?? applyRequests(journal, sourceProbe);
      loops = [applyDecisions({ apply, clock, log, wakeDelivery: delivery.wake, rescan })];
      // A mistake in `keep` must not remove anybody's history.
      const keepMs = config.invalidSettings.has('keep') ? undefined : config.settings.keep;
      if (keepMs !== undefined) loops.push(pruneDaily(journal.outbox, keepMs, clock, log));
      if (journal.notes.isBehind) await haltBehind(journal, config.notebook.url, config.settings.journal);
      loops.push(sweepSpool(deps));
      disposal = disposeOfSources({
        ...{ config, journal, instruments, clock, log, proof: delivery.proof, unchangedMs: unchangedMs() },
      });
      delivery.start();
      const restored = instruments.map((instrument) => restoreLastFile(instrument, journal));
      await Promise.all([...restored, ...intakes.map((intake) => intake.start())]);
      log.info({ instruments: intakes.length, runs: await journal.outbox.count() }, 'ready');
    },
    /** Starts nothing new, and waits for the current steps. */
    async stop(ended?: () => void): Promise<void> {
      const parts = [...loops, ...(disposal ? [disposal] : []), ...intakes].map((part) => part.stop());
      await Promise.all([...parts, delivery.stop(FINISH_WITHIN_MS, ended)]);
    },
  };
}

/** The notebook of this machine, with its own key. */
function openOwnDelivery(deps: RuntimeDeps, onResponse: OnResponse): DeliveryPart {
  const { config, journal, clock, log, observer, key } = deps;
  const delivery = openDelivery({
    notebook: config.notebook,
    connect: (schedule) => connect(config.notebook, key, schedule, onResponse),
    isKeyReplaced: () => isReplaced(key),
    instruments: config.instruments.map(({ name }) => name),
    outbox: journal.outbox,
    unknown: deps.outcomes(config.notebook.url, config.notebook.timeout),
    attach: attachFrom(deps),
    clock,
    log,
    observer,
  });
  const { notebook } = delivery;
  return { ...delivery, proof: (signal) => createProof({ config, journal, notebook, clock, log, signal }) };
}

function isReplaced(key: Key): boolean {
  const before = key.current();
  key.refresh();
  return key.current() !== before;
}

/** Durable before anything is sent. If a halt is already recorded, its reason stays. */
export async function haltBehind(
  { isNew, outbox }: Pick<Journal, 'isNew' | 'outbox'>,
  url: string,
  path: string,
): Promise<void> {
  const server = outbox.server(url);
  if ((await server.facts()).halted !== undefined) return;
  const what = isNew ? `the journal ${path} was lost: it is new, but` : `the journal ${path} was restored or replaced:`;
  await server.learn({ halted: `${what} ${path}.seen shows that a later one was used here. ${RECOVER}` });
}

const fields = (problem: Problem) => ({
  ...(typeof problem.stops === 'object' ? problem.stops : {}),
  problem: explainProblem(problem),
});

/** All configured instruments, each once. One that is stopped by a mistake or a failed test is not `usable`. */
export function listInstruments(
  { listed, claims, instruments }: LoadedConfig,
  problems: readonly ConfigProblem[],
  clock: Clock,
) {
  const broken = new Set(problems.map(({ instrument }) => instrument));
  // Of two with the same name, the first counts.
  const folders = new Map(claims.toReversed().map(({ name, watch }) => [name, watch]));
  const byName = new Map(instruments.toReversed().map((instrument) => [instrument.name, instrument]));
  return [...new Set(listed.map(({ name }) => name))].map((name) => {
    const watch = folders.get(name) ?? '';
    const usable = broken.has(name) ? undefined : byName.get(name);
    const activity = createActivity({ name, watch }, clock);
    if (usable === undefined) activity.setState('stopped');
    return { name, activity, usable };
  });
}

type RunningInstrument = ReturnType<typeof listInstruments>[number];

/** So that an instrument does not look silent after a restart. */
async function restoreLastFile({ name, activity }: RunningInstrument, { outbox }: Journal): Promise<void> {
  const lastFileAt = await outbox.lastAddedAt(name);
  if (lastFileAt !== undefined) activity.fileArrived(lastFileAt);
}

/** Which files belong to instruments before this one, and which to any other. */
const claimsAround = (instrument: Instrument, claims: Claims, journal: string) => ({
  // The journal and its side files can be in a watched folder.
  isClaimed: (path: string) => path.startsWith(journal) || claims.before(instrument, path) !== undefined,
  isOthers: (path: string) => path.startsWith(journal) || claims.isOthers(instrument, path),
});

interface DeliveryOptions {
  readonly notebook: NotebookConfig;
  /** Opens the connection to the notebook. Requests go through `schedule`. */
  connect(schedule: Schedule): Notebook & { close(): Promise<void> };
  /** Reads the key again, and tells whether it has changed. */
  readonly isKeyReplaced?: () => boolean;
  /** The names of all instruments. */
  readonly instruments: readonly string[];
  readonly outbox: Outbox;
  readonly unknown?: UnknownOutcomes;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  /** How raw files are attached. By default, they are not. */
  readonly attach?: AttachOptions;
  /** For back-off. */
  readonly random?: () => number;
}

/** Puts together the limiter, the notebook client and the delivery queue. */
export function openDelivery(options: DeliveryOptions) {
  const { notebook: config, instruments, outbox, clock, log, observer, random = Math.random } = options;
  // Probes do not wait for their turn: they decide when others get theirs.
  const direct = options.connect((send) => send());
  const { isKeyReplaced } = options;
  const writes = new Writes({ clock, log, random, isKeyReplaced, onStalled: () => limiter.admit() });
  const guard = createWriteGuard(() => checkRestored(context), clock);
  function onAvailable(): void {
    guard.distrust();
    writes.retryNow();
    wake();
  }
  function wake(): void {
    queue.wake();
    uploads?.wake();
  }
  const probe = { send: direct.listKeys, isKeyReplaced, onAvailable };
  let uploading = 0;
  const connections = () => config.concurrency + writes.stalled + uploading;
  const limiter = new Limiter({ perSecond: config.rate, connections, clock, log, random, probe });
  const notebook = options.connect((send, isWrite) => {
    const schedule = (request: typeof send) => limiter.schedule(request);
    return isWrite ? guard.write(send, schedule) : schedule(send);
  });
  const uploader =
    options.attach &&
    options.connect((send) =>
      guard.write(
        () => upload(send),
        (request) => limiter.schedule(request),
      ),
    );
  /** Uploads have connections of their own, and need only a turn: they can take hours. */
  function upload<T>(send: () => Promise<T>): Promise<T> {
    uploading += 1;
    return send().finally(() => {
      uploading -= 1;
    });
  }
  const stopping = new AbortController();
  const unknown = options.unknown ?? trackUnknownOutcomes(clock, config.timeout, log);
  const server = rememberHalts(outbox.server(config.url), unknown.window);
  const isUnknownRun = (origin: Origin) => isMissing(origin, instruments, outbox);
  const context: DeliveryContext = {
    notebook: confirmingForbidden(repeatReads(notebook, { clock, random, stopping: stopping.signal })),
    server: {
      ...server,
      // Runs that are being delivered stop before their next write.
      learn: (facts) => server.learn(facts).finally(() => facts.halted !== undefined && guard.distrust()),
      url: config.url,
      timeoutMs: config.timeout,
    },
    outbox,
    unknown,
    clock,
    isUnknownRun,
    stopping: stopping.signal,
  };
  const prepare = once(async () => {
    await prepareServer({ dialect: config.dialect, instruments, isUnknownRun }, context);
    await guard.ensure();
  });
  const uploads =
    options.attach &&
    uploader &&
    createUploads({
      ...options.attach,
      context,
      prepare,
      wakeDelivery: () => queue.wake(),
      send: uploader.uploadFile,
      random,
      log,
    });
  const queue = createDelivery({
    filed: uploads?.filed,
    outbox,
    context,
    writes,
    prepare,
    isAnswering: () => answers(direct),
    concurrency: config.concurrency,
    observer,
    log,
    random,
  });
  let correction: Loop | undefined;
  /** Without a run to deliver, nobody else would notice that the server was restored. */
  async function checkAtStart(): Promise<void> {
    if ((await server.lastFiled(1)).length > 0) await guard.ensure().catch(ignoreHalt);
  }
  return {
    start(): void {
      correction = correctDueTimes(outbox, clock, log, wake);
      queue.start();
      uploads?.start();
      void retry(checkAtStart, { clock, random, signal: stopping.signal, failed: () => undefined });
    },
    wake,
    /** A run was queued. Its files are due once it is filed. */
    queued: queue.wake,
    gate: () => showState(limiter.state(), writes.state()),
    notebook: context.notebook,
    /** `ended` is called when the requests that take longer have ended, too: until then, their runs are claimed. */
    async stop(withinMs: number, ended: () => void = () => undefined) {
      stopping.abort(new StoppedError('labfeed is stopping'));
      limiter.stop();
      const connections = [notebook, direct, uploader].map((connection) => connection?.close());
      const parts = [correction?.stop(), queue.stop(), uploads?.stop(), ...connections];
      await atMost(withinMs, clock, Promise.all(parts).finally(ended));
    },
  };
}

/** A halt is recorded, and status, page and alarms show it. */
function ignoreHalt(error: unknown): void {
  if (!(error instanceof HaltedError)) throw error;
}

/** An outage explains why writes fail, and not the other way round. */
const showState = (requests: LimiterState, writes: LimiterState | undefined): LimiterState =>
  requests.kind === 'down' ? requests : (writes ?? requests);

/**
 * Whether a run that was filed from this journal is missing from it. Another PC may have an instrument of the same
 * name; the journal's id tells whose run it is. A line without one is ours if the instrument is.
 */
async function isMissing(
  { label, sha256, journal }: Origin,
  instruments: readonly string[],
  outbox: Outbox,
): Promise<boolean> {
  if (journal !== undefined && journal !== outbox.id) return false;
  const ours = instruments.filter((name) => label.startsWith(`${name} `));
  const known = await Promise.all(ours.map((name) => outbox.hasContent(name, sha256)));
  return ours.length > 0 && !known.includes(true);
}

/** Repeats the task until it has succeeded once. Concurrent callers share one attempt. */
function once(task: () => Promise<void>): () => Promise<void> {
  let attempt: Promise<void> | undefined;
  return () => {
    attempt ??= task().catch((error: unknown) => {
      attempt = undefined;
      throw error;
    });
    return attempt;
  };
}
