import type { Clock } from '../clock.js';
import type { NotebookConfig } from '../config/schema.js';
import type { Admit } from '../connection.js';
import {
  createCreations,
  createLosses,
  type DeliverDeps,
  longestGraceMs,
  type Notebook,
  StoppedError,
} from '../deliver/context.js';
import { deliver, proven } from '../deliver/deliver.js';
import { Limiter } from '../deliver/limiter.js';
import { createQueue } from '../deliver/queue.js';
import { prepare } from '../deliver/reconcile.js';
import type { Journal } from '../journal/journal.js';
import type { Log } from '../log.js';
import type { Origin } from '../markers.js';
import type { ServerOutbox } from '../outbox.js';
import type { Observer } from '../pipeline.js';

export interface DeliveryDeps {
  readonly notebook: NotebookConfig;
  /** The names of all instruments. */
  readonly instruments: readonly string[];
  readonly journal: Journal;
  /** Opens the way to the notebook; every request on it goes through `admit`. */
  connect(admit: Admit): Connected;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
  /** Chance, for the waits. */
  readonly random?: () => number;
}

/** The notebook as delivery uses it, and the end of it. */
export type Connected = Notebook & { close(): Promise<void> };

export interface Delivery {
  start(): void;
  /** There may be something new to deliver. */
  ring(): void;
  /** Why requests leave, or why they wait. */
  gate: Limiter['state'];
  /** Lets the steps under way end, for so long at most. */
  stop(withinMs: number): Promise<void>;
}

/** From the journal to the notebook: the queue, the limiter and the client, put together. */
export function createDelivery({
  notebook: config,
  journal,
  connect,
  clock,
  log,
  observer,
  instruments,
  random = Math.random,
}: DeliveryDeps): Delivery {
  const server = config.url;
  const limiter = new Limiter({ perSecond: config.rate, clock, log, random });
  const notebook = connect((send, signal) => limiter.schedule(send, signal));
  let stopping = false;
  const deps: DeliverDeps = {
    notebook: proven(notebook),
    server,
    timeoutMs: config.timeout,
    clock,
    creations: createCreations(),
    memory: memoryOf(server, journal),
    losses: createLosses(clock, longestGraceMs(config.timeout)),
    edits: createLosses(clock, longestGraceMs(config.timeout)),
    record: journal.runs.record,
    goOn() {
      if (stopping) throw new StoppedError('labfeed is stopping');
    },
  };
  const prepared = once(() =>
    prepare(
      { dialect: config.dialect, isUnknownRun: (origin) => isUnknownRun(origin, instruments, journal) },
      deps,
    ),
  );
  const queue = createQueue({
    concurrency: config.concurrency,
    random,
    clock,
    log,
    ...journal.queue,
    open: journal.runs.open,
    record: journal.runs.record,
    async deliver(run) {
      await prepared();
      return deliver(run, deps);
    },
    filed: observer.filed,
    setBack: observer.setBack,
  });
  return {
    start: queue.start,
    ring: queue.ring,
    gate: () => limiter.state(),
    async stop(withinMs) {
      stopping = true;
      limiter.stop();
      const ended = new AbortController();
      const ending = Promise.all([queue.stop(), notebook.close()]).finally(() => ended.abort());
      await Promise.race([ending, clock.sleep(withinMs, ended.signal)]);
    },
  };
}

/** The journal's part for one server. */
export function memoryOf(server: string, { servers }: Journal): ServerOutbox {
  return {
    facts: () => servers.server(server),
    learn: (facts) => servers.learn(server, facts),
    claimSpare: (run) => servers.claimSpare(server, run),
    addSpare: (experiment, reference) => servers.addSpare(server, experiment, reference),
    hasExperiment: (experiment) => servers.hasExperiment(server, experiment),
    lastExperiments: (count) => servers.lastExperiments(server, count),
    hasReference: servers.hasReference,
    isCreating: servers.isCreating,
    countUnknown: () => servers.countUnknown(server),
  };
}

/** Another labfeed may file into the same notebook: only what comes from an instrument of ours should be known here. */
async function isUnknownRun(
  { label, sha256 }: Origin,
  instruments: readonly string[],
  { runs }: Journal,
): Promise<boolean> {
  const ours = instruments.filter((name) => label.startsWith(`${name} `));
  const known = await Promise.all(ours.map((name) => runs.hasContent(name, sha256)));
  return ours.length > 0 && !known.includes(true);
}

/** Runs until it has succeeded once; whoever asks meanwhile waits for the same attempt. */
function once(act: () => Promise<void>): () => Promise<void> {
  let attempt: Promise<void> | undefined;
  return () => {
    attempt ??= act().catch((error: unknown) => {
      attempt = undefined;
      throw error;
    });
    return attempt;
  };
}
