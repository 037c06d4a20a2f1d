import type { Clock } from './clock.js';
import type { UsableConfig } from './config/load.js';
import { holdKey, type Key, readKey } from './config/secrets.js';
import type { NotebookConfig } from './config/settings.js';
import { Limiter } from './deliver/limiter.js';
import { NotebookError } from './errors.js';
import { createLog } from './log.js';
import { createNotebook, type Notebook } from './notebook/client.js';

/** Told of each request with the status of its answer; undefined where none came. */
export type Heard = (method: string, status: number | undefined) => void;

export type Admit = <T>(send: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** The notebook of the configuration, each request let in by `admit`. */
export function connect(config: NotebookConfig, key: Key, admit: Admit, heard?: Heard): Notebook {
  /** A refused key may have been replaced since it was read: the next request takes the new one. */
  function refreshKey(error: unknown): never {
    if (error instanceof NotebookError && error.failure === 'auth') key.refresh();
    throw error;
  }
  return createNotebook({
    url: config.url,
    key: key.current,
    timeoutMs: config.timeout,
    connections: config.concurrency,
    commentField: config.commentField,
    heard,
    admit: (send, signal) => admit(() => send().catch(refreshKey), signal),
  });
}

interface GateOptions {
  readonly clock: Clock;
  /** Once it is aborted, nothing more is sent. */
  readonly signal: AbortSignal;
  /** In the place of the configuration's. */
  readonly key?: Key;
}

/** The notebook as a command reaches it: with the configuration's key, and no faster than its rate. */
export function openNotebook(
  config: Pick<UsableConfig, 'notebook' | 'placeOf'>,
  { clock, signal, key = keyOf(config) }: GateOptions,
): Notebook {
  const { log } = createLog({ level: 'silent', pretty: false });
  const limiter = new Limiter({ perSecond: config.notebook.rate, clock, log });
  signal.addEventListener('abort', () => limiter.stop(), { once: true });
  return connect(config.notebook, key, (send, abort) => limiter.schedule(send, abort));
}

const keyOf = ({ notebook, placeOf }: Pick<UsableConfig, 'notebook' | 'placeOf'>): Key =>
  holdKey(
    () => readKey(notebook.key, placeOf(['notebook', 'key'])),
    () => undefined,
  );
