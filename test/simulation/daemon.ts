import { notebookSchema } from '../../src/config/settings.js';
import { openDelivery } from '../../src/daemon/runtime.js';
import { createJournal } from '../../src/journal/journal.js';
import { createLog, type Log } from '../../src/log.js';
import { faultyNotebook, TIMEOUT_MS } from './faulty-notebook.js';
import type { Life } from './timeline.js';
import { runOf, type Trace, type World } from './world.js';

/** One life of the process: the delivery core and the journal as they are. */
export interface SimulatedDaemon {
  /** The n-th run of the history is found, and recorded. */
  add(n: number): Promise<void>;
  /** A person has had it redone: its file is found, and reads otherwise now. */
  redo(n: number, version: number): Promise<void>;
  ring(): void;
  /** Whether every run in the journal is done or rests. */
  isIdle(): Promise<boolean>;
  count(): Promise<Record<string, number>>;
  /** As by SIGTERM. */
  stop(): Promise<void>;
  /** As by SIGKILL, or when the power goes. */
  kill(): void;
}

const SETTINGS = notebookSchema.parse({
  url: 'https://eln.example.org',
  key: { env: 'KEY' },
  rate: '100/s',
  timeout: `${TIMEOUT_MS}ms`,
});

export function startDaemon(world: World): SimulatedDaemon {
  const { timeline, random, database, kind, trace } = world;
  const life = timeline.process();
  const journal = createJournal({
    database,
    clock: life.clock,
    release: () => undefined,
    schedule: (flush) => life.at(0, () => write(flush, world)),
  });
  let news = true;
  let idle = false;
  const noteNews = (): void => {
    news = true;
  };
  const delivery = openDelivery({
    notebook: {
      ...SETTINGS,
      concurrency: 1 + random.below(4),
      dialect: random.chance(0.5) ? 'auto' : kind.dialect,
    },
    instruments: ['balance'],
    journal,
    connect: (admit) => faultyNotebook(world, admit, life),
    clock: life.clock,
    log: logTo(trace, life),
    observer: { filed: noteNews, failed: (_, { kind }) => kind === 'parked' && noteNews() },
    random: random.next,
  });
  trace?.('process starts');
  delivery.start();
  async function take({ run, draft }: ReturnType<typeof runOf>): Promise<void> {
    // What could not be recorded is found again at the next scan.
    while (!(await timeline.until(journal.runs.add(run, draft)).catch(() => undefined)));
    noteNews();
    delivery.wake();
  }
  return {
    add: (n) => take(runOf(n)),
    redo: (n, version) => take(runOf(n, version)),
    ring: delivery.wake,
    count: journal.runs.count,
    async isIdle() {
      if (!news) return idle;
      news = false;
      idle = Object.keys(await journal.runs.count()).every((state) => AT_REST.has(state));
      return idle;
    },
    async stop() {
      await timeline.until(delivery.stop(2 * TIMEOUT_MS));
      life.kill();
    },
    kill: life.kill,
  };
}

const AT_REST: ReadonlySet<string> = new Set(['done', 'held', 'quarantined']);

function write(flush: () => void, { random, faults, database, trace }: World): void {
  const fails = random.chance(faults.ofWrites);
  if (fails) {
    trace?.('journal not writable');
    database.exec('PRAGMA query_only = ON');
  }
  flush();
  if (fails) database.exec('PRAGMA query_only = OFF');
}

function logTo(trace: Trace, life: Life): Log {
  if (!trace) return SILENT;
  const write = (line: string): void => {
    // The dead say nothing, and the time of day is not the history's.
    if (life.alive()) trace(line.replace(/"time":"[^"]*",/, '').trimEnd());
  };
  return createLog({ level: 'debug', pretty: false, destination: { write } }).log;
}

const SILENT = createLog({ level: 'silent', pretty: false }).log;
