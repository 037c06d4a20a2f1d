import type { Key } from './config/key.js';
import type { NotebookConfig } from './config/schema.js';
import { NotebookError } from './errors.js';
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
