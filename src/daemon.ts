import { relative, sep } from 'node:path';
import type { Clock } from './clock.js';
import { holdKey, readKey } from './config/key.js';
import type { Instrument, LoadedConfig } from './config/load.js';
import { defaultJournal } from './config/locations.js';
import { connect } from './connection.js';
import { createDelivery, type Delivery } from './delivery.js';
import { explainProblem, type Problem } from './errors.js';
import { createInstrumentLine, type InstrumentLine } from './instrument-line.js';
import { type Journal, openJournal } from './journal/journal.js';
import type { Log } from './log.js';
import { checkMapping } from './mapping.js';
import { nobody, type Observer } from './observer.js';
import { createMatcher } from './watch/match.js';

export interface DaemonOptions {
  readonly config: LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>>;
  readonly clock: Clock;
  readonly log: Log;
  /** Takes the key out of everything that is logged. */
  conceal(secret: string): void;
  readonly observer?: Observer;
}

export interface Daemon {
  /** Resolves when every folder was scanned once and is being watched. */
  start(): Promise<void>;
  /** Takes nothing more, lets the steps under way end, and closes the journal. */
  stop(): Promise<void>;
  /** How many runs are in each step or resting place. */
  count(): Promise<Record<string, number>>;
}

/** Of the 10 s that a stop may take, what is left to requests under way. */
const FINISH_WITHIN_MS = 8000;

export function createDaemon({ config, clock, log, conceal, observer = nobody }: DaemonOptions): Daemon {
  let journal: Journal | undefined;
  let delivery: Delivery | undefined;
  let lines: InstrumentLine[] = [];

  return {
    async start() {
      const where = config.placeOf(['notebook', 'key']);
      const key = holdKey(() => readKey(config.notebook.key, where), conceal);
      const opened = await openJournal(config.settings.journal ?? defaultJournal(), clock);
      journal = opened;
      const sending = createDelivery({
        notebook: config.notebook,
        instruments: config.instruments.map(({ name }) => name),
        journal: opened,
        connect: (admit) => connect(config.notebook, key, admit),
        clock,
        log,
        observer,
      });
      delivery = sending;
      lines = usableInstruments(config, log).map(({ instrument, isClaimed }) =>
        createInstrumentLine(instrument, {
          journal: opened,
          clock,
          log,
          isClaimed,
          enqueue: sending.ring,
          refused: observer.refused,
        }),
      );
      sending.start();
      await Promise.all(lines.map((line) => line.start()));
      log.info({ instruments: lines.length, runs: await opened.runs.count() }, 'ready');
    },
    async stop() {
      log.info('stopping');
      await Promise.all([...lines.map((line) => line.stop()), delivery?.stop(FINISH_WITHIN_MS)]);
      await journal?.close();
      log.info('stopped');
    },
    count: async () => (await journal?.runs.count()) ?? {},
  };
}

/** The instruments without a mistake, each with whether a path belongs to one before it; mistakes are told. */
function usableInstruments(config: LoadedConfig, log: Log) {
  const mistakes = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  for (const problem of mistakes) log.error(fields(problem), 'configuration mistake');
  for (const problem of config.warnings) log.warn(fields(problem), 'configuration warning');
  const broken = new Set(
    mistakes.map(({ stops }) => (typeof stops === 'object' ? stops.instrument : undefined)),
  );
  const usable = config.instruments.filter(({ name }) => !broken.has(name));
  return usable.map((instrument, index) => ({ instrument, isClaimed: claimedBy(usable.slice(0, index)) }));
}

const fields = (problem: Problem) => ({
  ...(typeof problem.stops === 'object' ? problem.stops : {}),
  problem: explainProblem(problem),
});

/** A file belongs to the first instrument that matches it. */
export function claimedBy(instruments: readonly Instrument[]): (path: string) => boolean {
  const claims = instruments.map(({ watch, files, ignore, ready }) => {
    const matcher = createMatcher({ files, ignore, doneFile: ready.doneFile });
    return (path: string): boolean => {
      const inside = relative(watch, path);
      return (
        !inside.startsWith('..') && matcher.verdict(sep === '/' ? inside : inside.replaceAll(sep, '/')).taken
      );
    };
  });
  return (path) => claims.some((takes) => takes(path));
}
