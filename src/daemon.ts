import type { Clock } from './clock.js';
import { holdKey, readKey } from './config/key.js';
import type { LoadedConfig } from './config/load.js';
import { defaultJournal } from './config/locations.js';
import { explain, explainProblem, LabfeedError } from './errors.js';
import { type Journal, openJournal } from './journal/journal.js';
import type { Log } from './log.js';
import { checkMapping } from './mapping.js';
import { nobody, type Observer } from './observer.js';
import { createWorks, type UsableConfig, type Works } from './works.js';

export interface DaemonOptions {
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
  reload(config: LoadedConfig): Promise<void>;
  /** Takes nothing more, lets the steps under way end, and closes the journal. */
  stop(): Promise<void>;
  /** How many runs are in each step or resting place. */
  count(): Promise<Record<string, number>>;
}

/** The journal, which outlives every configuration, and the works that the present one sets going. */
export function createDaemon({
  config: first,
  clock,
  log,
  conceal,
  observer = nobody,
}: DaemonOptions): Daemon {
  const journalPath = pathOf(first);
  let journal: Journal | undefined;
  let works: Works | undefined;
  /** Reloads and the stop come one after the other, however fast they are asked for. */
  let turn: Promise<void> = Promise.resolve();
  const inTurn = (act: () => Promise<void>): Promise<void> => {
    turn = turn.then(act, act);
    return turn;
  };

  /** Reads the key and makes the new works before it ends the old: what is wrong shows while those still run. */
  async function change(config: UsableConfig, opened: Journal): Promise<void> {
    const key = holdKey(() => readKey(config.notebook.key, config.placeOf(['notebook', 'key'])), conceal);
    const next = createWorks({ config, journal: opened, clock, log, observer, key });
    await works?.stop();
    works = next;
    await next.start();
  }

  async function reload(config: LoadedConfig): Promise<void> {
    const refusal = refusalOf(config, journalPath);
    if (!journal || refusal !== undefined) {
      return log.error({ problems: refusal }, 'the new configuration is refused; the old one goes on');
    }
    try {
      await change(config as UsableConfig, journal);
      log.info({ config: config.file }, 'reloaded');
    } catch (error) {
      if (!(error instanceof LabfeedError)) throw error;
      log.error({ problems: explain(error) }, 'the new configuration is refused; the old one goes on');
    }
  }

  return {
    async start() {
      const opened = await openJournal(journalPath, clock);
      journal = opened;
      await change(first, opened);
    },
    reload: (config) => inTurn(() => reload(config)),
    stop: () =>
      inTurn(async () => {
        log.info('stopping');
        await works?.stop();
        await journal?.close();
        log.info('stopped');
      }),
    count: async () => (await journal?.runs.count()) ?? {},
  };
}

const pathOf = ({ settings }: LoadedConfig): string => settings.journal ?? defaultJournal();

/** Any mistake refuses a reload as a whole: what runs is better than half of what was meant. */
function refusalOf(config: LoadedConfig, journalPath: string): string | undefined {
  const problems = [...config.problems, ...config.instruments.flatMap(checkMapping)];
  if (problems.length > 0) return problems.map(explainProblem).join('\n');
  if (pathOf(config) !== journalPath) return 'another journal needs a restart';
  return undefined;
}
