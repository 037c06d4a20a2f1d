import type { Clock } from '../clock.js';
import { holdKey, type Key, readKey } from '../config/key.js';
import type { UsableConfig } from '../config/load.js';
import { connect } from '../connection.js';
import { createGate } from '../deliver/gate.js';
import { createLog } from '../log.js';
import type { Notebook } from '../notebook/client.js';

export interface GateOptions {
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
  const gate = createGate({ perSecond: config.notebook.rate, clock, log });
  signal.addEventListener('abort', () => gate.stop(), { once: true });
  return connect(config.notebook, key, gate.admit);
}

const keyOf = ({ notebook, placeOf }: Pick<UsableConfig, 'notebook' | 'placeOf'>): Key =>
  holdKey(
    () => readKey(notebook.key, placeOf(['notebook', 'key'])),
    () => undefined,
  );
