import type { Clock } from './clock.js';
import { holdKey, readKey } from './config/key.js';
import { connect } from './connection.js';
import { createGate } from './deliver/gate.js';
import { createLog } from './log.js';
import type { Notebook } from './notebook/client.js';
import type { UsableConfig } from './works.js';

export interface GateOptions {
  readonly clock: Clock;
  /** Once it is aborted, nothing more is sent. */
  readonly signal: AbortSignal;
}

/** The notebook as a command reaches it: with the configuration's key, and no faster than its rate. */
export function openNotebook(
  { notebook: settings, placeOf }: Pick<UsableConfig, 'notebook' | 'placeOf'>,
  { clock, signal }: GateOptions,
): Notebook {
  const key = holdKey(
    () => readKey(settings.key, placeOf(['notebook', 'key'])),
    () => undefined,
  );
  const { log } = createLog({ level: 'silent', pretty: false });
  const gate = createGate({ perSecond: settings.rate, clock, log });
  signal.addEventListener('abort', () => gate.stop(), { once: true });
  return connect(settings, key, gate.admit);
}
