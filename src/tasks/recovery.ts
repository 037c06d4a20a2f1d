import type { Clock } from '../clock.js';
import type { UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { LabfeedError } from '../errors.js';
import { openJournal } from '../journal/journal.js';
import { brokenOff, type IdRange, type Recovered, recover } from './recover.js';

export interface RecoveryOptions {
  readonly config: UsableConfig;
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
  // The key is read first: where there is none, no journal is made.
  const notebook = openNotebook(config, { clock, signal });
  const journal = await openJournal(path, clock);
  try {
    return await recover({
      ...options,
      server: config.notebook.url,
      instruments: config.listed,
      journal,
      notebook,
    });
  } catch (error) {
    if (!signal.aborted) throw error;
    const { halted } = await journal.servers.server(config.notebook.url);
    throw halted === undefined
      ? new LabfeedError('stopped before anything was read or changed')
      : brokenOff('it was stopped');
  } finally {
    await notebook.close();
    await journal.close();
  }
}
