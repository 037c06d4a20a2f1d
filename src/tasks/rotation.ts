import { hostname } from 'node:os';
import type { Clock } from '../clock.js';
import type { KeyFile } from '../config/key-file.js';
import type { UsableConfig } from '../config/load.js';
import { readKey } from '../config/secrets.js';
import { openNotebook } from '../connection.js';
import { openMemory } from '../keys/memory.js';
import { type KeyRing, type Rotated, rotate } from '../keys/rotate.js';

export interface RotationOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** What a key of the labfeed on this machine is called in the notebook. */
export const keyName = (host: string = hostname()): string => `labfeed@${host}`;

/** From the old key to the new one: the notebook, the key's file and the memory beside it, put together. */
export async function rotateKey(
  config: UsableConfig,
  file: KeyFile,
  options: RotationOptions,
): Promise<Rotated> {
  const current = readKey(config.notebook.key, config.placeOf(['notebook', 'key']));
  const memory = openMemory(file.path, config.notebook.url);
  const { as, close } = openRings(config, options);
  try {
    return await rotate({ name: keyName(), current, as, memory, write: file.write });
  } finally {
    await close();
    memory.close();
  }
}

export interface KeyRings {
  as(key: string): KeyRing;
  close(): Promise<void>;
}

/** The notebook under one key or another, through one gate. One request at a time. */
export function openRings(config: UsableConfig, options: RotationOptions): KeyRings {
  let key = '';
  const notebook = openNotebook(config, {
    ...options,
    key: { current: () => key, refresh: () => undefined },
  });
  return {
    as(wanted) {
      const asking = <T>(request: () => Promise<T>): Promise<T> => {
        key = wanted;
        return request();
      };
      return {
        listKeys: () => asking(() => notebook.listKeys()),
        createKey: (fields) => asking(() => notebook.createKey(fields)),
        deleteKey: (id) => asking(() => notebook.deleteKey(id)),
      };
    },
    close: () => notebook.close(),
  };
}
