import { relative } from 'node:path';
import type { Clock } from '../clock.js';
import type { Claim, Instrument, LoadedConfig, UsableConfig } from '../config/load.js';
import { journalOf } from '../config/locations.js';
import type { Key } from '../config/secrets.js';
import { connect, type Heard } from '../connection.js';
import type { Gate } from '../deliver/limiter.js';
import { explainProblem, type Problem } from '../errors.js';
import type { Journal } from '../journal/journal.js';
import type { ConfigProblem } from '../live.js';
import type { Log } from '../log.js';
import { checkMapping } from '../mapping/mapping.js';
import { claimedBy, claimsBefore } from '../watch/match.js';
import { createDecisions } from './decisions.js';
import { createDelivery } from './delivery.js';
import { createHousekeeping } from './housekeeping.js';
import { createInstrumentLine } from './instrument-line.js';
import { shownProblem } from './live-problems.js';
import type { Observer } from './observer.js';
import { type WatchedInstrument, watchedInstruments } from './watched.js';

export interface WorksDeps {
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
  readonly gate: Gate['state'];
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
  const problems = [...mistakes, ...failedTests].map(shownProblem);
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
    if (lastFileAt !== undefined) state.came(lastFileAt);
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
