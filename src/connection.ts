import type { Key } from './config/key.js';
import type { NotebookConfig } from './config/schema.js';
import { NotebookError } from './errors.js';
import { createNotebook, type Notebook } from './notebook/client.js';

export type Admit = <T>(send: () => Promise<T>, signal?: AbortSignal) => Promise<T>;

/** The notebook of the configuration, each request let in by `admit`. */
export function connect(config: NotebookConfig, key: Key, admit: Admit): Notebook {
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
    admit: (send, signal) => admit(() => send().catch(refreshKey), signal),
  });
}
