import { isAbsolute } from 'node:path';
import PQueue from 'p-queue';
import { atMost, type Clock, retry, takeTurns } from './clock.js';
import type { Instrument } from './config/load.js';
import { growingOf } from './config/schema.js';
import { NO_MAPPING } from './config/vocabulary.js';
import { type DeliveryContext, HaltedError, StoppedError } from './deliver/context.js';
import { deliver } from './deliver/deliver.js';
import { afterFailure, answers, logHaltOnce } from './deliver/failures.js';
import { createQueue, type Queue, type QueueDeps } from './deliver/queue.js';
import type { Writes } from './deliver/writes.js';
import { explain, FileChangedError, FileError, RunBusyError } from './errors.js';
import { createFollowing } from './growing/growing.js';
import type { LineReader } from './growing/growing-lines.js';
import type { Journal } from './journal/journal.js';
import type { Log } from './log.js';
import { type EarlyReading, type ReadOptions, type ReadRun, toReading } from './mapping/reading.js';
import { type FoundFile, filesOf, type IdentifiedFile } from './model.js';
import type { Added, Match, NewRun, OpenRun, Outbox, Reading, RunChange } from './outbox.js';
import { refuseSize } from './parse/source.js';
import { withoutSecrets } from './secrets.js';
import type { NewSource } from './sources.js';
import { FileBusyError, isGone, isSmall, withStandIns } from './watch/identify.js';
import { type Activity, createBacklog, createRechecks, createUnderWay } from './watch/intake.js';
import { createMatcher } from './watch/match.js';
import type { RawCopies, RawFiles } from './watch/raw-files.js';
import { createRuns, type Runs } from './watch/runs.js';
import { settle } from './watch/settle.js';
import { createWatcher, type FileOrigin, type ScanResult } from './watch/watcher.js';

/**
 * The story of one run, in two halves that meet only in the journal:
 *
 *   intake      folder → found → settled → identified → known? → parsed → mapped → outbox
 *   delivery    outbox → claimed → created → described → commented → done
 *
 * Once a run is in the outbox, its file is no longer needed. Either half can stop, crash or fall behind without the
 * other, and after a restart repeats whatever it had not recorded.
 */

/** Receives events about runs as they happen. */
export interface Observer {
  /** Files were found that were there before labfeed started, or before it first watched the folder. */
  foundBacklog?(): void;
  quarantined?(instrument: string, path: string, problem: FileError): void;
  filed?(run: OpenRun, experiment: number): void;
  /** A delivery has failed: the run is postponed, quarantined or held. */
  failed?(run: OpenRun, change: RunChange): void;
}

/* Intake: from the folder to the outbox, for one instrument. */

export interface IntakeDeps {
  readonly journal: Pick<Journal, 'intake' | 'outbox' | 'growing' | 'growths'>;
  readonly activity: Activity;
  /** Whether a file belongs to an instrument before this one, or to any other. */
  readonly claims: { isClaimed(path: string): boolean; isOthers(path: string): boolean };
  readonly reader: Reader;
  /** Absent if no raw files are attached. */
  readonly rawFiles?: RawFiles | undefined;
  /** What is to become of the files of a run after it is filed. By default, they stay. */
  readonly sourcesOf?: ((file: IdentifiedFile) => readonly NewSource[] | undefined) | undefined;
  /** A file of an earlier run has the private name under which it was to be moved or deleted. */
  readonly foundHidden?: ((location: string | Buffer) => void) | undefined;
  readonly observer: Observer;
  /** Whether a text contains the API key or another secret of labfeed. */
  isSecretIn(text: string): boolean;
  wakeDelivery(): void;
  readonly clock: Clock;
  readonly log: Log;
}

/** Reads the files of one instrument, in a thread with limits of time and memory. */
export interface Reader extends LineReader {
  /**
   * Hashes the file unless that was done before, parses and maps it, and draws its plot. Rejects if it could not try.
   */
  read(file: FoundFile | IdentifiedFile, nowMs: number, options?: ReadOptions): Promise<ReadRun>;
  /** Abandons what is being read. */
  close(): void;
}

export type Intake = ReturnType<typeof createIntake>;

export function createIntake(instrument: Instrument, deps: IntakeDeps) {
  const stopping = new AbortController();
  const intake = createState(instrument, deps, stopping.signal);
  const watcher = createWatcher(instrument, {
    found: (files, origin) => receive(files, origin, intake),
    scanned: (result) => endScan(result, intake),
    folder: deps.activity.setFolder,
    polled: deps.activity.setPolling,
    memory: deps.journal.intake,
    isOthers: deps.claims.isOthers,
    hidden: deps.foundHidden,
    clock: deps.clock,
    log: intake.log,
  });
  return {
    instrument: instrument.name,
    /** Resolves after the first scan, even if the folder is missing. */
    async start(): Promise<void> {
      await applyConfiguration(intake);
      await watcher.start();
      deps.activity.setState('watching');
    },
    /** Scans the folder. Runs found as backlog are delivered after those that arrive live. */
    async rescan(asBacklog: boolean): Promise<void> {
      if (asBacklog) return intake.backlog.during(watcher.rescan);
      const { clock, signal, log } = intake;
      const failed = (error: unknown) => log.error({ reason: explain(error) }, 'cannot write the journal, retrying');
      await retry(() => recheck(intake), { clock, signal, maxMs: MAX_RETRY_MS, failed });
      await watcher.rescan();
    },
    async stop(): Promise<void> {
      stopping.abort();
      deps.reader.close();
      await watcher.stop();
      // A share that hangs may never respond. What is not in the journal yet will be found again.
      await atMost(2000, deps.clock, intake.takes.onIdle());
    },
  };
}

/** Runs of one instrument on their way into the journal, mostly in their quiet period. Scans wait for room. */
const MAX_UNDER_WAY = 10_000;
const MAX_RETRY_MS = 60_000;

type IntakeState = ReturnType<typeof createState>;

function createState(instrument: Instrument, deps: IntakeDeps, signal: AbortSignal) {
  const { name, watch: root, run, existing, access, parse = [NO_MAPPING] } = instrument;
  const matcher = createMatcher(instrument);
  const log = deps.log.child({ instrument: name });
  const growing = growingOf(run);
  const isOwn = (path: string): boolean => matcher.takes(path.slice(root.length + 1)) && !deps.claims.isClaimed(path);
  return {
    ...deps,
    instrument,
    signal,
    log,
    following: growing && createFollowing({ ...deps, ...deps.claims, instrument, growing, isOwn, signal, log }),
    runs: createRuns({
      ...{ root, run, matcher, signal, access, isClaimed: deps.claims.isClaimed },
      refuse: (file) => refuseSize(file, parse),
    }),
    takes: new PQueue({ concurrency: MAX_UNDER_WAY }),
    underWay: createUnderWay(),
    // The contents of many files must not fill memory.
    reads: new PQueue({ concurrency: 4 }),
    turn: takeTurns(),
    rechecks: createRechecks(deps.clock.now),
    backlog: createBacklog(existing, async () => (await deps.journal.intake.firstScanAt(name)) !== undefined),
  };
}

/** A changed configuration can decide about a held backlog, and make quarantined files readable. */
async function applyConfiguration(intake: IntakeState): Promise<void> {
  const { instrument, journal, log } = intake;
  const { name, existing } = instrument;
  const decided = existing && (await journal.intake.decideBacklog(name, existing));
  if (decided && decided.files > 0) log.info({ files: decided.files, existing }, 'backlog decision applied');
  const again = await recheck(intake);
  if (again > 0) log.info({ files: again }, 're-reading the files of quarantined runs');
}

/** Schedules files to be read again, after a mapping change or at a person's request. Returns their number. */
async function recheck({ instrument: { name, mapping }, journal }: IntakeState): Promise<number> {
  return journal.intake.recheck(name, await journal.outbox.unread(name, mapping));
}

/** Found: the watcher hands over files that exist. A known, unchanged file costs one lookup. */
async function receive(files: readonly FoundFile[], origin: FileOrigin, intake: IntakeState): Promise<void> {
  const { instrument, journal, claims, runs, underWay, backlog } = intake;
  const own = files.filter((file) => !claims.isClaimed(file.path) && !underWay.sees(file));
  const changed = runs.group(await journal.intake.unknown(instrument.name, own, intake.rechecks.wants));
  const found = changed.filter((run) => !underWay.sees(run));
  // `existing` decides about the backlog; if it is large, a person does.
  const { take, skip, hold, isBacklog } = await backlog.sort(found, origin);
  if (isBacklog && found.length > 0) intake.observer.foundBacklog?.();
  if (skip.length > 0) await journal.intake.skip(instrument.name, skip);
  if (hold.length > 0) await journal.intake.holdBacklog(instrument.name, hold);
  await takeAll(take, isBacklog, intake);
}

/** The first scan ends only with a complete scan of an existing folder. This is recorded durably. */
async function endScan(result: ScanResult, intake: IntakeState): Promise<void> {
  const { instrument, journal, activity, backlog, log } = intake;
  activity.scanned(result);
  intake.rechecks.endScan();
  const ended = result.complete ? await backlog.endScan() : undefined;
  // Not awaited: the next scan must not wait until a large file is read.
  const { following } = intake;
  if (result.complete && following) void intake.takes.add(() => following.finishRotated());
  if (!ended) return;
  await takeAll(ended.take, true, intake);
  await journal.intake.endFirstScan(instrument.name);
  if (ended.heldFiles > 0) log.warn({ files: ended.heldFiles }, BACKLOG_HELD);
}

const BACKLOG_HELD =
  'the first scan found many files, which wait for a decision: run `labfeed backfill`, or set `existing` to ingest, skip or { since: DATE }';

async function takeAll(found: Iterable<FoundFile>, isBacklog: boolean, intake: IntakeState): Promise<void> {
  const { takes, underWay } = intake;
  for (const run of found) {
    if (underWay.sees(run)) continue;
    underWay.set(run);
    void takes.add(() => take(run, isBacklog, intake).finally(() => taken(run, intake)), priorityOf(isBacklog));
    await takes.onSizeLessThan(1);
  }
}

/** What instruments write now is read before a backlog. */
const priorityOf = (isBacklog: boolean) => ({ priority: isBacklog ? 0 : 1 });

/** A file that changed again after it was settled is received again: the next scan may be far off. */
function taken(run: FoundFile, intake: IntakeState): void {
  const changed = intake.underWay.end(run);
  if (!changed || intake.following || intake.signal.aborted) return;
  // If the journal cannot be read, a scan finds the file later.
  void receive(filesOf(changed), 'event', intake).catch(() => undefined);
}

/** One run, with as many attempts as it needs: a file in use, a missing share or a full disk only delays it. */
async function take(found: FoundFile, isBacklog: boolean, intake: IntakeState): Promise<void> {
  const { activity, signal, clock, log } = intake;
  const file = found.path;
  activity.found();
  activity.waiting.begin(file);
  const attempt = async (): Promise<void> => {
    const outcome = await ingest(found, isBacklog, intake);
    if (!NOTHING_NEW.has(outcome)) activity.fileArrived(clock.now());
    log.debug({ file, outcome }, 'file processed');
  };
  function failed(error: unknown, waitMs: number): void {
    const reason = explain(error);
    // A file that has changed only needs to settle again.
    const isExpected = error instanceof FileChangedError || error instanceof RunBusyError;
    if (!isExpected) log.warn({ file, waitMs, reason }, 'cannot take the file yet, retrying');
    activity.waiting.update(file, { for: 'retry', reason });
    activity.waiting.setUnreadable(file, error instanceof FileBusyError ? reason : undefined);
  }
  await retry(attempt, { clock, signal, maxMs: MAX_RETRY_MS, failed });
  activity.waiting.end(file);
}

type Outcome = 'gone' | 'skipped' | Added['outcome'];

const NOTHING_NEW: ReadonlySet<Outcome> = new Set(['gone', 'known', 'unchanged']);

/** Settled: nobody writes to the run any more. It is then read, a few runs at a time. */
async function ingest(found: FoundFile, isBacklog: boolean, intake: IntakeState): Promise<Outcome> {
  const { instrument, activity, runs, reads, following, signal, clock, log } = intake;
  if (following) return following.take(found, isBacklog);
  const settled = await settle(found, instrument.ready, {
    clock,
    log,
    signal,
    stat: runs.stat,
    progress: (progress) => activity.waiting.update(found.path, { for: 'quiet period', ...progress }),
  });
  if (!settled) return 'gone';
  intake.underWay.set(settled);
  activity.waiting.update(found.path, { for: 'reader' });
  return reads.add(async () => {
    await intake.turn();
    const copies = await intake.rawFiles?.begin(settled);
    try {
      return await read(settled, isBacklog, copies, intake);
    } finally {
      await copies?.end();
    }
  }, priorityOf(isBacklog));
}

/** Identified by its fingerprint, looked up in the outbox, parsed and mapped. */
async function read(
  settled: FoundFile,
  isBacklog: boolean,
  copies: RawCopies | undefined,
  intake: IntakeState,
): Promise<Outcome> {
  const { instrument, journal, runs, reader, clock } = intake;
  const { name, duplicates, changed, mapping } = instrument;
  const { parts, ...single } = settled;
  const isHiding = async () => parts !== undefined && (await journal.outbox.sources.isHiding(name, settled.path));
  // Before and after the files are listed once more: what is there just now is not all of the run.
  if (await isHiding()) throw new RunBusyError('other files of the run are being moved or deleted');
  // Most files are small and new: they are hashed, parsed and mapped in one go, before they are looked up.
  const isEarly = !parts && isSmall(single);
  const options = { copyTo: copies?.path, isPlotted: copies?.isPlotted ?? false };
  const early = isEarly ? toReading(await reader.read(single, clock.now(), options), instrument) : undefined;
  const { file, problem } =
    early?.sha256 === undefined ? await identify(settled, copies, runs) : { file: { sha256: early.sha256, ...single } };
  if (await isHiding()) throw new RunBusyError('other files of the run are being moved or deleted');
  const run: NewRun = {
    instrument: name,
    file,
    copy: duplicates === 'ingest' ? file.path : '',
    backlog: isBacklog,
    mapping,
    partOf: await journal.intake.partOf(name, file),
    revises: changed === 'revise' ? { last: await journal.intake.lastTaken(name, file) } : undefined,
  };
  const match = await journal.outbox.match(run);
  if (match.kind === 'known') await know(run, match, intake);
  // A busy run is to be remapped from this file, but is not delivered yet: a later scan reads the file.
  if (match.kind === 'known' || match.kind === 'busy') return 'known';
  if (changed === 'ignore' && (await journal.intake.wasTaken(name, file)) && !(await hasLeft(file, intake))) {
    await journal.intake.skip(name, [file]);
    return 'skipped';
  }
  if (match.kind === 'version' && match.isBusy) throw new RunBusyError('the version before is being sent');
  // Another file with the content that is replaced becomes a run of its own.
  if (match.kind === 'version') await journal.intake.recheckCopies(name, file, match.replaces);
  const known: EarlyReading | undefined = problem ? { problem } : early;
  const { isPlotted } = options;
  const result = known ?? toReading(await reader.read(file, clock.now(), { isPlotted }), instrument);
  const reading = withoutSecrets(result, file.path, intake.isSecretIn);
  // On disk before the run is accepted: from then on, the source may vanish.
  const attached = reading.draft && (await copies?.keep(file, early?.isCopied, result.plot));
  const outcome = await handOver({ ...run, ...attached, sources: intake.sourcesOf?.(file) }, reading, intake);
  // Once more, because one may have been looked up just before.
  if (match.kind === 'version') await journal.intake.recheckCopies(name, file, match.replaces);
  return outcome;
}

/** The content is known. A file that was renamed takes its run along, so that its next version is recognised. */
async function know(run: NewRun, match: Extract<Match, { kind: 'known' }>, intake: IntakeState): Promise<void> {
  const { outbox, intake: files } = intake.journal;
  const { path } = run.file;
  // Of a recovered run, only the name of its file is known.
  const isElsewhere = run.revises !== undefined && match.path !== path && !match.isErased;
  if (isElsewhere && (!isAbsolute(match.path) || (await isGone(match.path)))) await outbox.move(match.run, path);
  files.remember(run.instrument, run.file, match);
  for (const content of match.freed ?? []) await files.recheckCopies(run.instrument, run.file, content);
}

/** A file that was there before was moved or deleted by labfeed: this one is not a change of it. */
async function hasLeft(file: IdentifiedFile, { instrument, journal }: IntakeState): Promise<boolean> {
  for (const { path } of filesOf(file)) if (await journal.outbox.sources.hasLeft(instrument.name, path)) return true;
  return false;
}

/** A file that must not be read, such as a link to elsewhere, or is too large for its mapping, is not hashed. */
async function identify(
  settled: FoundFile,
  copies: RawCopies | undefined,
  runs: Runs,
): Promise<{ readonly file: IdentifiedFile; readonly problem?: FileError }> {
  try {
    return { file: await runs.identify(settled, copies?.copies()) };
  } catch (error) {
    if (!(error instanceof FileError)) throw error;
    return { file: withStandIns(settled), problem: error };
  }
}

/**
 * Into the outbox: queued, quarantined, or held if columns or units have drifted and the instrument wants a
 * decision. Only then does intake remember the file: after a crash in between, it is hashed again and its run is known.
 */
async function handOver(run: NewRun, reading: Reading, intake: IntakeState): Promise<Outcome> {
  const { journal, observer, wakeDelivery, log } = intake;
  const added = await journal.outbox.add(run, reading);
  if (added.outcome === 'busy') throw new RunBusyError('the version before is being sent');
  journal.intake.remember(run.instrument, run.file, added);
  for (const content of added.freed ?? []) await journal.intake.recheckCopies(run.instrument, run.file, content);
  const { outcome, drift } = added;
  const { problem } = reading;
  const reason = problem && explain(problem);
  const fields = {
    run: added.run,
    file: run.file.path,
    reason,
    since: drift?.since,
    changes: drift?.changes,
  };
  if (drift && outcome !== 'held') log.warn(fields, DRIFTED);
  log[problem || outcome === 'held' ? 'warn' : 'info'](fields, HANDED_OVER[outcome]);
  if (problem && outcome === 'quarantined') observer.quarantined?.(run.instrument, run.file.path, problem);
  if (outcome === 'queued' || outcome === 'revised' || outcome === 'changed') wakeDelivery();
  return outcome;
}

const DRIFTED = 'columns or units have changed since the previous run';

const HANDED_OVER: Readonly<Record<Added['outcome'], string>> = {
  known: 'run already known',
  queued: 'run queued',
  held: `run held: ${DRIFTED}; to file it as is, run \`labfeed retry\``,
  quarantined: 'run quarantined',
  revised: 'file re-read: updating the experiment',
  unchanged: 'file re-read: nothing changed, nothing sent',
  refused: 'file re-read: it no longer matches its mapping, experiment left unchanged',
  changed: 'file changed: its run takes the new version',
  parked: 'file changed: its run has the new version, but is held or ignored',
  busy: 'file changed: the version before is being sent',
};

/* Delivery: from the outbox to the notebook, for all instruments. */

export interface DeliveryDeps {
  /** The run is done; its raw files may be attached now. */
  readonly filed?: ((run: number) => void) | undefined;
  readonly outbox: Outbox;
  readonly context: DeliveryContext;
  /** Which writes the notebook accepts, and of which runs. */
  readonly writes: Writes;
  /** Finds out what must be known about the server before anything is sent. */
  prepare(): Promise<void>;
  /** Whether the server answers a harmless request now, whatever else it is busy with. */
  readonly isAnswering?: () => Promise<boolean>;
  /** How many requests may be in flight. */
  readonly concurrency: number;
  readonly observer: Observer;
  readonly log: Log;
  /** For back-off. */
  readonly random: () => number;
}

type Delivery = DeliveryDeps & { logHalt(error: HaltedError): void };

/** Due runs are delivered several at a time, as soon as there are any. */
export function createDelivery(deps: DeliveryDeps): Queue {
  const { outbox, concurrency, context, writes, isAnswering, log } = deps;
  const delivery = { ...deps, logHalt: logHaltOnce(log) };
  const work: QueueDeps['work'] = (id, signal, filled) => deliverRun(id, signal, filled, delivery);
  return createQueue({ outbox, concurrency, clock: context.clock, writes, isAnswering, log, work });
}

/** One run, from the step it has reached. Each step is recorded before and after its request. */
async function deliverRun(id: number, signal: AbortSignal, filled: () => void, delivery: Delivery): Promise<void> {
  const { context, writes } = delivery;
  let run: OpenRun | undefined;
  try {
    run = await delivery.outbox.load(id);
    await delivery.prepare();
    const experiment = await deliver(run, { filled, ...context, notebook: writes.observe(id, context.notebook) });
    // A plot, a note or new lines are added to a run that was filed before.
    const isUpdate = run.isAddition || (run.isGrowing && run.step !== 'pending' && run.step !== 'creating');
    const message = run.isAddition ? 'body updated' : isUpdate ? 'experiment updated' : 'run filed';
    delivery.log.info({ run: id, instrument: run.instrument, experiment }, message);
    writes.forget(id);
    if (run.hasFiles) delivery.filed?.(id);
    if (!isUpdate) delivery.observer.filed?.(run, experiment);
  } catch (error) {
    await handleFailure(error, id, run, signal, delivery);
  }
}

/**
 * A failure stops no other run. By the class of the error (see `afterFailure`), this one is
 *
 *   quarantined   if the notebook will never accept it, such as an invalid value, or fails only on this run
 *   held          if a person has to decide: the experiment was changed, locked or deleted
 *   postponed     if it can succeed later, with back-off: the server is down or overloaded, or refuses the key
 *
 * A halt concerns all runs: the journal or the server is older than the other, and nothing may be sent.
 */
async function handleFailure(
  error: unknown,
  id: number,
  run: OpenRun | undefined,
  signal: AbortSignal,
  { outbox, context: { clock, notebook }, writes, logHalt, observer, log, random }: Delivery,
): Promise<void> {
  // The run continues with the same step after the restart.
  if (error instanceof StoppedError) return;
  if (error instanceof HaltedError) {
    logHalt(error);
    return clock.sleep(HALT_CHECK_MS, signal);
  }
  const attempts = run?.attempts ?? 0;
  // The server is not to blame if it answers a harmless request now.
  const isToBlame = writes.isToBlame(id) && (await answers(notebook));
  const change = afterFailure(error, { attempts, isToBlame }, clock.now(), random);
  if (change.kind === 'parked') writes.forget(id);
  const fields = { run: id, instrument: run?.instrument, ...change };
  if (change.kind === 'parked') log.warn(fields, 'run parked');
  else log.info(fields, 'run postponed');
  try {
    await outbox.record(id, change);
    if (run) observer.failed?.(run, change);
  } catch (cause) {
    // The run stays due. Without a wait this would become a busy loop.
    log.error({ run: id, reason: explain(cause) }, 'cannot write the journal, retrying');
    await clock.sleep(JOURNAL_RETRY_MS, signal);
  }
}

/** How often to check whether a person has ended a halt. */
const HALT_CHECK_MS = 30_000;
const JOURNAL_RETRY_MS = 5000;
