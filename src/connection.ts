import { readFileSync } from 'node:fs';
import { systemClock } from './clock.js';
import type { UsableConfig } from './config/load.js';
import { holdKey, type Key, readKey } from './config/secrets.js';
import type { NotebookConfig } from './config/settings.js';
import { Limiter } from './deliver/limiter.js';
import { NotebookError } from './errors.js';
import { createLog } from './log.js';
import { createNotebook, type Notebook } from './notebook/client.js';

/** Called after each request with its status, or undefined if there was no response. */
export type OnResponse = (method: string, status: number | undefined) => void;

/** Sends the request when it is its turn. */
export type Schedule = <T>(request: () => Promise<T>, isWrite?: boolean) => Promise<T>;

/** A client for the configured notebook. */
export function connect(config: NotebookConfig, key: Key, schedule: Schedule, onResponse?: OnResponse): Notebook {
  /** A rejected key may have been replaced since it was read: the next request uses the new one. */
  function refreshKey(error: unknown): never {
    if (error instanceof NotebookError && error.failure === 'auth') key.refresh();
    throw error;
  }
  return createNotebook({
    url: config.url,
    key: key.current,
    timeoutMs: config.timeout,
    // The limiter keeps to `concurrency`, apart from writes that stall.
    connections: 2 * config.concurrency,
    ca: config.ca === undefined ? undefined : readFileSync(config.ca, 'utf8'),
    commentField: config.commentField,
    onResponse,
    schedule: (request, isWrite) => schedule(() => request().catch(refreshKey), isWrite),
  });
}

/**
 * The client of a command: within the configured rate, and with the configured key unless another one is given.
 * After the signal is aborted, nothing more is sent.
 */
export function openNotebook(
  config: Pick<UsableConfig, 'notebook' | 'placeOf'>,
  { signal, key = keyOf(config) }: { readonly signal?: AbortSignal; readonly key?: Key } = {},
): Notebook {
  const { log } = createLog({ level: 'silent' });
  const { rate: perSecond, concurrency } = config.notebook;
  const limiter = new Limiter({ perSecond, connections: () => concurrency, clock: systemClock, log });
  signal?.addEventListener('abort', () => limiter.stop(), { once: true });
  return connect(config.notebook, key, (request) => limiter.schedule(request));
}

/** The configured key. */
export const keyOf = ({ notebook, placeOf }: Pick<UsableConfig, 'notebook' | 'placeOf'>): Key =>
  holdKey(
    () => readKey(notebook.key, placeOf(['notebook', 'key'])),
    () => undefined,
  );
