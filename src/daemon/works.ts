import { relative } from 'node:path';
import type { Clock } from '../clock.js';
import type { Claim, Instrument, LoadedConfig, UsableConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import type { Key } from '../config/secrets.js';
import { connect, type Heard } from '../connection.js';
import type { Limiter } from '../deliver/limiter.js';
import {
  ConfigError,
  explain,
  explainProblem,
  formatPlace,
  type LabfeedError,
  type Problem,
} from '../errors.js';
import type { Decision, Inbox } from '../journal/inbox.js';
import type { Journal } from '../journal/journal.js';
import type { Pruning } from '../journal/maintenance.js';
import { type ConfigProblem, describeProblem } from '../live.js';
import type { Log } from '../log.js';
import { checkMapping } from '../mapping/mapping.js';
import type { Observer } from '../pipeline.js';
import { type Activity, createActivity } from '../watch/activity.js';
import { claimedBy, claimsBefore } from '../watch/match.js';
import { createDelivery } from './delivery.js';
import { createInstrumentLine } from './intake.js';

interface WorksDeps {
  readonly config: UsableConfig;
  readonly journal: Journal;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  readonly key: Key;
  /** What the mappings' own tests found wrong. */
  readonly failedTests: readonly Problem[];
  /** Whether these are the first since the journal was opened. */
  readonly isFirst: boolean;
  /** Counts every request by how it ended. */
  readonly heard?: Heard;
}

export interface Works {
  readonly config: UsableConfig;
  /** What is wrong with the configuration. */
  readonly problems: readonly ConfigProblem[];
  /** Every instrument that is written down, also those that are stopped. */
  readonly instruments: readonly WatchedInstrument[];
  readonly gate: Limiter['state'];
  /** Whether the notebook has done anything for these works. */
  hasAnswered(): boolean;
  /** Resolves when every folder was scanned once and is being watched. */
  start(): Promise<void>;
  /** Takes nothing more, and lets the steps under way end. */
  stop(): Promise<void>;
}

/** Of the 10 s that a stop may take, what is left to requests under way. */
const FINISH_WITHIN_MS = 8000;

const NEW_JOURNAL =
  'the journal was made just now, and there are files already: if there was a journal before, stop labfeed at once and run labfeed recover, or what was filed before is filed again';

/** All that one configuration sets going: a line an instrument, the delivery, and people's decisions. */
export function createWorks(deps: WorksDeps): Works {
  const { config, journal, clock, log, observer, key, failedTests, isFirst } = deps;
  let hasAnswered = false;
  const heard: Heard = (method, status) => {
    hasAnswered ||= status !== undefined && status >= 200 && status < 300;
    deps.heard?.(method, status);
  };
  const delivery = createDelivery({
    notebook: config.notebook,
    instruments: config.instruments.map(({ name }) => name),
    journal,
    connect: (admit) => connect(config.notebook, key, admit, heard),
    clock,
    log,
    observer,
  });
  const warnOnce = once(() => {
    if (isFirst && journal.isNew) log.warn({ journal: journalOf(config) }, NEW_JOURNAL);
  });
  const mistakes = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  tellMistakes(mistakes, failedTests, config, log);
  const problems = [...mistakes, ...failedTests].map(describeProblem);
  const instruments = watchedInstruments(config, problems, clock);
  const lines = instruments.flatMap(({ usable, state }) =>
    usable === undefined
      ? []
      : createInstrumentLine(usable, {
          journal,
          clock,
          log,
          state,
          ...belonging(usable, config),
          enqueue: delivery.ring,
          refused: observer.refused,
          hasFiles: warnOnce,
        }),
  );
  const decisions = createDecisions({
    inbox: journal.inbox,
    clock,
    log,
    ring: delivery.ring,
    rescan: (name, isForOld) => lines.find(({ instrument }) => instrument === name)?.rescan(isForOld),
  });
  const housekeeping = createHousekeeping({ journal: journal.pruning, keepMs: keepOf(config), clock, log });
  /** A restart must not make an instrument look as if it had never sent anything. */
  async function recall({ name, state }: WatchedInstrument): Promise<void> {
    const lastFileAt = await journal.resting.lastFileAt(name);
    if (lastFileAt !== undefined) state.fileArrived(lastFileAt);
  }

  return {
    config,
    problems,
    instruments,
    gate: delivery.gate,
    hasAnswered: () => hasAnswered,
    async start() {
      decisions.start();
      delivery.start();
      housekeeping.start();
      await Promise.all([...instruments.map(recall), ...lines.map((line) => line.start())]);
      log.info({ instruments: lines.length, runs: await journal.runs.count() }, 'ready');
    },
    async stop() {
      const parts = [decisions, housekeeping, ...lines].map((part) => part.stop());
      await Promise.all([...parts, delivery.stop(FINISH_WITHIN_MS)]);
    },
  };
}

/** A mistake in `keep` must not cost anybody their history. */
const keepOf = ({ wrong, settings }: LoadedConfig): number | undefined =>
  wrong.has('keep') ? undefined : settings.keep;

function once(act: () => void): () => void {
  let isDone = false;
  return () => {
    if (!isDone) act();
    isDone = true;
  };
}

function tellMistakes(
  mistakes: readonly Problem[],
  failedTests: readonly Problem[],
  { warnings }: LoadedConfig,
  log: Log,
): void {
  for (const problem of mistakes) log.error(fields(problem), 'configuration mistake');
  for (const problem of failedTests)
    log.error(fields(problem), 'a test of the mapping fails: the instrument is stopped');
  for (const problem of warnings) log.warn(fields(problem), 'configuration warning');
}

/** Whether a path belongs to an instrument before this one, or to any other. */
function belonging(instrument: Instrument, config: LoadedConfig) {
  const journal = journalOf(config);
  const isClaimed = claimedBy(claimsBefore(instrument, config));
  const isTaken = claimedBy(claimsNear(instrument, config));
  return {
    // Somebody may keep the journal, with its side files, in a watched folder: it is no run.
    isClaimed: (path: string) => path.startsWith(journal) || isClaimed(path),
    isOthers: (path: string) => path.startsWith(journal) || isTaken(path),
  };
}

/** What others claim in the folder of this one, or around it. */
const claimsNear = ({ name, watch }: Instrument, { claims }: LoadedConfig): readonly Claim[] =>
  claims.filter(
    (claim) => claim.name !== name && (isWithin(watch, claim.watch) || isWithin(claim.watch, watch)),
  );

const isWithin = (inner: string, outer: string): boolean => !relative(outer, inner).startsWith('..');

const fields = (problem: Problem) => ({
  ...(typeof problem.stops === 'object' ? problem.stops : {}),
  problem: explainProblem(problem),
});

/** An instrument as people ask about it: how its line is, be it stopped. */
interface WatchedInstrument {
  readonly name: string;
  readonly state: Activity;
  /** Undefined where a mistake or a failed test stops it. */
  readonly usable: Instrument | undefined;
}

/** Every instrument that is written down, each once. */
export function watchedInstruments(
  { listed, claims, instruments }: LoadedConfig,
  problems: readonly ConfigProblem[],
  clock: Clock,
): WatchedInstrument[] {
  const broken = new Set(problems.map(({ instrument }) => instrument));
  return [...new Set(listed.map(({ name }) => name))].map((name) => {
    const watch = claims.find((claim) => claim.name === name)?.watch ?? '';
    const usable = instruments.find((instrument) => instrument.name === name && !broken.has(name));
    const state = createActivity({ name, watch }, clock);
    if (usable === undefined) state.setState('stopped');
    return { name, state, usable };
  });
}

interface DecisionsDeps {
  readonly inbox: Inbox;
  readonly clock: Clock;
  readonly log: Log;
  /** There may be something to deliver. */
  ring(): void;
  /** There is something to read anew in this instrument's folder, or old files are to be taken from there. */
  rescan(instrument: string, isForOld: boolean): void;
}

interface Decisions {
  start(): void;
  /** Resolves when the journal is no longer used. */
  stop(): Promise<void>;
}

/** How often the inbox is looked into: one lookup in an index that is mostly empty. */
const LOOK_MS = 500;
const TROUBLE_MS = 5000;

/** What people decide through commands, carried out by the daemon that holds the journal. */
export function createDecisions({ inbox, clock, log, ring, rescan }: DecisionsDeps): Decisions {
  const stopping = new AbortController();
  let running: Promise<void> = Promise.resolve();

  async function look(): Promise<number> {
    try {
      const decisions = await inbox.apply();
      for (const decision of decisions) tell(decision, log);
      if (decisions.some(({ done }) => done)) ring();
      for (const isForOld of [false, true]) {
        const rescans = decisions.filter(({ request }) => (request?.kind === 'backfill') === isForOld);
        for (const instrument of new Set(rescans.map(({ rescan }) => rescan)))
          if (instrument !== undefined) rescan(instrument, isForOld);
      }
      return decisions.length > 0 ? 0 : LOOK_MS;
    } catch (error) {
      log.error({ reason: explain(error) }, 'requests of people cannot be read, trying again');
      return TROUBLE_MS;
    }
  }

  async function keepLooking(): Promise<void> {
    while (!stopping.signal.aborted) await clock.sleep(await look(), stopping.signal);
  }

  return {
    start() {
      running = keepLooking();
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

function tell({ done, text, request }: Decision, log: Log): void {
  if (done) log.info({ ...request, text }, 'a person decided');
  else log.warn({ ...request, reason: text }, 'what a person asked for was refused');
}

interface HousekeepingDeps {
  readonly journal: Pruning;
  /** How long the history of finished runs is kept; undefined where that is not known. */
  readonly keepMs: number | undefined;
  readonly clock: Clock;
  readonly log: Log;
}

interface Housekeeping {
  start(): void;
  /** Resolves when the journal is no longer used. */
  stop(): Promise<void>;
}

const DAY_MS = 86_400_000;

/** Between two batches, so that files and deliveries get their turn. */
const PAUSE_MS = 50;

/** What the journal need not keep for ever, removed at the start and then daily. */
export function createHousekeeping({ journal, keepMs, clock, log }: HousekeepingDeps): Housekeeping {
  const stopping = new AbortController();
  const { signal } = stopping;
  let running: Promise<void> = Promise.resolve();
  const pause = (ms: number): Promise<void> => clock.sleep(ms, signal);

  async function prune(before: number): Promise<number> {
    let removed = 0;
    for (let from: number | undefined = 0; from !== undefined && !signal.aborted; await pause(PAUSE_MS)) {
      const { runs, next } = await journal.prune(before, from);
      removed += runs;
      from = next;
    }
    return removed;
  }

  async function keepPruning(olderMs: number): Promise<void> {
    while (!signal.aborted) {
      try {
        const runs = await prune(clock.now() - olderMs);
        if (runs > 0) log.info({ runs }, 'the history of old runs is removed');
      } catch (error) {
        log.error(
          { reason: explain(error) },
          'the history of old runs cannot be removed, trying again in a day',
        );
      }
      await pause(DAY_MS);
    }
  }

  return {
    start() {
      if (keepMs !== undefined) running = keepPruning(keepMs);
    },
    async stop() {
      stopping.abort();
      await running;
    },
  };
}

/** Why a configuration was refused; what has no place of its own concerns the file. */
export function shownRefusal(error: LabfeedError, file: string): ConfigProblem[] {
  if (error instanceof ConfigError) return error.problems.map(describeProblem);
  const { message, hint, where = { file } } = error;
  return [{ at: formatPlace(where), message, hint, instrument: undefined }];
}
