import type { Clock } from './clock.js';
import { holdKey, readKey } from './config/key.js';
import type { LoadedConfig } from './config/load.js';
import { connect } from './connection.js';
import { createGate } from './deliver/gate.js';
import { openJournal } from './journal/journal.js';
import { createLog } from './log.js';
import { brokenOff, type IdRange, type Recovered, recover } from './recover.js';

export interface RecoveryOptions {
  readonly config: LoadedConfig & Required<Pick<LoadedConfig, 'notebook'>>;
  /** Where the journal is. */
  readonly path: string;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly range: IdRange | undefined;
  progress(id: number, so: Recovered): void;
  trouble(reason: string): void;
}

/** From the notebook to the journal: the client, the gate and the journal that no daemon holds, put together. */
export async function recoverJournal(options: RecoveryOptions): Promise<Recovered> {
  const { config, path, clock, signal } = options;
  const { notebook: settings } = config;
  const key = holdKey(
    () => readKey(settings.key, config.placeOf(['notebook', 'key'])),
    () => undefined,
  );
  const { log } = createLog({ level: 'silent', pretty: false });
  const gate = createGate({ perSecond: settings.rate, clock, log });
  signal.addEventListener('abort', () => gate.stop(), { once: true });
  const journal = await openJournal(path, clock);
  const notebook = connect(settings, key, gate.admit);
  try {
    return await recover({
      ...options,
      server: settings.url,
      instruments: config.listed,
      journal,
      notebook,
    });
  } catch (error) {
    throw signal.aborted ? brokenOff('it was stopped') : error;
  } finally {
    await notebook.close();
    await journal.close();
  }
}
