import { systemClock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import type { Key } from '../config/secrets.js';
import { openNotebook } from '../connection.js';
import type { Notebook } from '../notebook/client.js';

/** Hands a command the notebook of the configuration, and closes it at the end. Ctrl-C ends it where it stands. */
export async function withNotebook<T>(
  config: UsableConfig,
  act: (notebook: Notebook) => Promise<T>,
  key?: Key,
): Promise<T> {
  const notebook = openNotebook(config, {
    clock: systemClock,
    signal: new AbortController().signal,
    ...(key && { key }),
  });
  try {
    return await act(notebook);
  } finally {
    await notebook.close();
  }
}
