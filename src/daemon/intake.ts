import { setMaxListeners } from 'node:events';
import PQueue from 'p-queue';
import type { Clock } from '../clock.js';
import type { Instrument } from '../config/load.js';
import { explain, FileChangedError } from '../errors.js';
import type { Remapped } from '../journal/drafts.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import { createMapping } from '../mapping/mapping.js';
import type { FoundFile } from '../model.js';
import { ingest, type Observer, type Outcome, type Stages } from '../pipeline.js';
import type { Activity } from '../watch/activity.js';
import { createIntake } from '../watch/intake.js';
import { createMatcher } from '../watch/match.js';
import { createRuns, type Runs } from '../watch/runs.js';
import { type Progress, settle } from '../watch/settle.js';
import { createWatcher } from '../watch/watcher.js';

interface LineDeps {
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  /** Whether the file belongs to an instrument that stands before this one in the configuration. */
  isClaimed(path: string): boolean;
  /** Whether the file is another instrument's, or no instrument's at all. */
  isOthers(path: string): boolean;
  /** Told how the line is. */
  readonly state: Activity;
  enqueue(): void;
  refused: Observer['refused'];
  /** Told when there are files before anybody has watched. */
  hasFiles(): void;
}

interface InstrumentLine {
  readonly instrument: string;
  /** Resolves when the folder was scanned once, or at least looked for, and is being watched. */
  start(): Promise<void>;
  /** Looks through the folder soon, although nothing has changed in it; for old files, or for what came anew. */
  rescan(isForOld: boolean): void;
  stop(): Promise<void>;
}

/** How long stopping waits for files that are being read. */
const STOP_MS = 2000;

/** How long a run of several files may lack one before that is worth a word. */
const LACK_TOLD_MS = 10 * 60_000;

/** How long a file that cannot be read for now is left alone, at first and at most. */
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 60_000;

/** One instrument's way from the folder into the journal: watcher, intake and pipeline, put together. */
export function createInstrumentLine(instrument: Instrument, deps: LineDeps): InstrumentLine {
  const { name } = instrument;
  const { journal, clock, state } = deps;
  const log = deps.log.child({ instrument: name });
  const stopping = new AbortController();
  // Thousands of files may wait for the same end; that is no leak.
  setMaxListeners(0, stopping.signal);
  const runs = createRuns({
    root: instrument.watch,
    run: instrument.run,
    matcher: createMatcher({ ...instrument, doneFile: instrument.ready.doneFile }),
    signal: stopping.signal,
    isClaimed: deps.isClaimed,
  });
  const stages = createStages(instrument, { ...deps, log }, runs, stopping.signal);

  async function take(found: FoundFile, backlog: boolean): Promise<void> {
    state.found();
    state.waiting.begin(found.path);
    await takeInTime(found, backlog).finally(() => state.waiting.end(found.path));
  }

  async function takeInTime(found: FoundFile, backlog: boolean): Promise<void> {
    for (
      let waitMs = FIRST_WAIT_MS;
      !stopping.signal.aborted;
      waitMs = Math.min(2 * waitMs, LONGEST_WAIT_MS)
    ) {
      try {
        const outcome = await ingest(found, backlog, instrument, stages);
        if (CAME[outcome]) state.fileArrived(clock.now());
        tell(log, found, outcome);
        return;
      } catch (error) {
        if (stopping.signal.aborted) return;
        state.waiting.update(found.path, { for: 'retry', reason: explain(error) });
        // Somebody writes to it again: that is no trouble, it only has to settle anew.
        if (!(error instanceof FileChangedError)) {
          log.warn({ file: found.path, waitMs, reason: explain(error) }, 'file cannot be taken yet, waiting');
        }
        await clock.sleep(waitMs, stopping.signal);
      }
    }
  }

  const intake = createIntake({
    existing: instrument.existing,
    unknown: async (files) =>
      runs.group(
        await journal.files.unknown(
          name,
          files.filter(({ path }) => !deps.isClaimed(path)),
        ),
      ),
    hadFirstScan: () => journal.files.hadFirstScan(name),
    endFirstScan: () => journal.files.endFirstScan(name),
    ask: (files) => journal.files.ask(name, files),
    skip: (files) => journal.files.skip(name, files),
    take,
    asked: (files) => log.warn({ files }, QUESTION),
  });
  let isStarting = true;
  const watcher = createWatcher(instrument, {
    found(files, origin) {
      if (isStarting && files.length > 0) deps.hasFiles();
      return intake.offer(files, origin);
    },
    scanned(result) {
      state.scanned(result);
      return intake.scanned(result);
    },
    folder: state.setFolder,
    isOthers: deps.isOthers,
    clock,
    log,
  });

  return {
    instrument: name,
    rescan: (isForOld) => void (isForOld ? intake.asBacklog(watcher.rescan) : watcher.rescan()),
    async start() {
      await prepare(instrument, journal, log);
      await watcher.start();
      isStarting = false;
      state.setState('watching');
    },
    async stop() {
      stopping.abort();
      await watcher.stop();
      // A share that hangs may never give its files back; what is not in the journal yet is found again.
      await Promise.race([intake.idle(), clock.sleep(STOP_MS)]);
    },
  };
}

/** Whether a file with this outcome is something new from the instrument, rather than one that is known already. */
const CAME: Readonly<Record<Outcome, boolean>> = {
  gone: false,
  known: false,
  unchanged: false,
  skipped: true,
  queued: true,
  held: true,
  refused: true,
};

const QUESTION =
  'many old files at the first scan: they are held until `labfeed backfill`, or existing: ingest, skip or { since: DATE } in the configuration, says what is to become of them';

const DRIFTED = 'columns or units have changed since the last run';
const HELD = 'run held: columns or units have changed since the last run; `labfeed retry` takes it as it is';

const REDONE: Readonly<Record<Remapped, string>> = {
  revised: 'run read anew: its experiment is revised',
  unchanged: 'run read anew: it reads as before, and nothing is sent',
  refused: 'run cannot be read anew: it stays as it was filed',
};

/** What a changed configuration settles: the question that old files raised, and files that could not be read. */
async function prepare({ name, existing, mapping }: Instrument, journal: Journal, log: Log): Promise<void> {
  const answered = existing === undefined ? 0 : await journal.files.answer(name, existing);
  if (answered > 0) log.info({ files: answered, existing }, 'the question about old files is answered');
  const anew = await journal.files.reconsider(name, mapping);
  if (anew > 0) log.info({ files: anew }, 'the mapping has changed: quarantined files are read anew');
}

function createStages(
  instrument: Instrument,
  { journal, clock, log, enqueue, refused, state: { waiting } }: LineDeps,
  runs: Runs,
  signal: AbortSignal,
): Stages {
  const mapping = createMapping(instrument);
  // A share that hangs must not take all threads for file access, nor thousands of files all the memory.
  const stats = new PQueue({ concurrency: 4 });
  const reads = new PQueue({ concurrency: 4 });
  return {
    async settle(found) {
      const warnOfMissing = createMissingWarning(found, log);
      const still = await settle(found, instrument.ready, {
        clock,
        signal,
        limit: (access) => stats.add(access),
        stat: runs.stat,
        progress: (progress) => {
          warnOfMissing(progress);
          waiting.update(found.path, { for: 'quiet period', ...progress });
        },
      });
      waiting.update(found.path, { for: 'reader' });
      return still;
    },
    inTurn: (work) => reads.add(work),
    identify: runs.identify,
    parse: (file) => mapping.parse(file, signal),
    map: (record, file) => mapping.map(record, file, clock.now()).draft,
    journal: {
      ...journal.runs,
      async add(run, draft, shape) {
        const { drift: policy, parse } = instrument;
        const added = await journal.runs.add(run, draft, { shape, drift: policy, kinds: parse?.length ?? 1 });
        const { drift, remapped } = added ?? {};
        if (remapped) log.info({ run: added?.id, file: run.file.path }, REDONE[remapped]);
        if (drift) {
          const told = { run: added?.id, file: run.file.path, since: drift.since, changes: drift.changes };
          log.warn(told, drift.held ? HELD : DRIFTED);
        }
        if (remapped === 'unchanged') return 'unchanged';
        return drift?.held ? 'held' : 'queued';
      },
      async refuse(run, problem) {
        const { id, remapped } = (await journal.runs.refuse(run, problem)) ?? {};
        const told = { run: id, file: run.file.path, reason: explain(problem) };
        if (remapped) return log.warn(told, REDONE[remapped]);
        log.warn(told, 'run quarantined');
        refused(instrument.name, run.file.path, problem);
      },
      wasTaken: journal.files.wasTaken,
      skip: (name, file) => journal.files.skip(name, [file]),
    },
    enqueue,
  };
}

/** Returns a function that warns once if a file of the run is missing for long. */
function createMissingWarning({ path }: FoundFile, log: Log): (progress: Progress) => void {
  let isWarned = false;
  return ({ missing }) => {
    if (isWarned || missing?.kind !== 'file' || missing.waitedMs < LACK_TOLD_MS) return;
    isWarned = true;
    const { name, waitedMs } = missing;
    log.warn({ file: path, missing: name, waitedMs }, 'a file of the run is missing, waiting for it');
  };
}

function tell(log: Log, { path }: FoundFile, outcome: Outcome): void {
  if (outcome === 'queued') log.info({ file: path }, 'run taken');
  else log.debug({ file: path, outcome }, 'nothing to take');
}
