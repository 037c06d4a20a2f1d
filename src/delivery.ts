import type { Clock } from './clock.js';
import type { Key } from './config/key.js';
import type { NotebookConfig } from './config/schema.js';
import { createCreations } from './deliver/creations.js';
import { deliver } from './deliver/deliver.js';
import { createGate } from './deliver/gate.js';
import { StoppedError } from './deliver/interruptions.js';
import { createQueue } from './deliver/queue.js';
import { NotebookError } from './errors.js';
import type { Journal } from './journal/journal.js';
import type { Log } from './log.js';
import { createNotebook } from './notebook/client.js';
import type { Observer } from './observer.js';

export interface DeliveryDeps {
  readonly notebook: NotebookConfig;
  readonly journal: Journal;
  readonly key: Key;
  readonly clock: Clock;
  readonly log: Log;
  readonly observer: Observer;
}

export interface Delivery {
  start(): void;
  /** There may be something new to deliver. */
  ring(): void;
  /** Lets the steps under way end, for so long at most. */
  stop(withinMs: number): Promise<void>;
}

/** From the journal to the notebook: the queue, the gate and the client, put together. */
export function createDelivery({
  notebook: config,
  journal,
  key,
  clock,
  log,
  observer,
}: DeliveryDeps): Delivery {
  const server = config.url;
  const gate = createGate({ perSecond: config.rate, clock, log });
  const notebook = createNotebook({
    url: server,
    key: key.current,
    timeoutMs: config.timeout,
    connections: config.concurrency,
    commentField: config.commentField,
    admit: (send) => gate.admit(() => send().catch(refreshKey)),
  });
  /** A refused key may have been replaced since it was read: the next request takes the new one. */
  function refreshKey(error: unknown): never {
    if (error instanceof NotebookError && error.failure === 'auth') key.refresh();
    throw error;
  }
  let stopping = false;
  const deps = {
    notebook,
    server,
    // A request that was cut off has been carried out by then, or never will be.
    graceMs: 2 * config.timeout,
    clock,
    creations: createCreations(),
    record: journal.runs.record,
    facts: () => journal.servers.server(server),
    learn: (facts: Parameters<typeof journal.servers.learn>[1]) => journal.servers.learn(server, facts),
    goOn() {
      if (stopping) throw new StoppedError('labfeed is stopping');
    },
  };
  const queue = createQueue({
    concurrency: config.concurrency,
    clock,
    log,
    ...journal.queue,
    open: journal.runs.open,
    record: journal.runs.record,
    deliver: (run) => deliver(run, deps),
    filed: observer.filed,
    setBack: observer.setBack,
  });
  return {
    start: queue.start,
    ring: queue.ring,
    async stop(withinMs) {
      stopping = true;
      gate.stop();
      const ended = new AbortController();
      const ending = Promise.all([queue.stop(), notebook.close()]).finally(() => ended.abort());
      await Promise.race([ending, clock.sleep(withinMs, ended.signal).catch(() => undefined)]);
    },
  };
}
