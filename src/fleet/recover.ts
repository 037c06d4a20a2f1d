import { systemClock } from '../clock.js';
import { type ListedInstrument, listInstrument, type UsableConfig } from '../config/load.js';
import { openNotebook } from '../connection.js';
import { LabfeedError } from '../errors.js';
import { createNotebookReader } from '../evidence.js';
import { fleetCopyOf } from '../journal/fleet-view.js';
import { openJournal } from '../journal/journal.js';
import { interrupted, type Recovered, type RecoverOptions, recover } from '../recover/recover.js';
import { Postgres } from './database.js';
import { leadForCommand } from './leader.js';
import { LEASE_MS } from './lease.js';
import { join } from './membership.js';
import { unreachable } from './migrate.js';
import { prepareSchema } from './upgrade.js';
import type { LeadingJournal } from './working-copy.js';

/** How long to wait for the lease of a machine that was killed. */
const WAIT_MS = 2 * LEASE_MS;

/**
 * Recovers the outbox of the fleet, with the same code as the journal of one machine. What members handed over since the
 * database was restored is applied first.
 */
export async function recoverFleet(
  config: UsableConfig,
  { signal, onRetry, ...deps }: RecoverOptions,
): Promise<Recovered> {
  const { fleet, journal: path } = config.settings;
  if (!fleet || fleet.role === 'watch')
    throw new LabfeedError('this machine only watches, and has no key for the notebook', {
      hint: 'run `labfeed recover` on a machine that delivers',
    });
  const server = config.notebook.url;
  const notebook = openNotebook(config, { signal });
  // Locked, since a daemon of this machine would use the working copy, too.
  const journal = await openJournal(path, systemClock);
  const postgres = new Postgres(fleet, () => undefined);

  async function refill(outbox: LeadingJournal): Promise<Recovered> {
    try {
      const instruments = await listAll(config, outbox, postgres);
      const reader = createNotebookReader(notebook, { signal, onRetry });
      return await recover({ server, instruments, journal: outbox, notebook: reader, ...deps });
    } catch (error) {
      throw signal.aborted ? await interrupted(server, outbox) : error;
    }
  }

  try {
    const { id } = await prepareSchema(postgres, true);
    const membership = await join(journal, fleet, id, postgres);
    for (const began = systemClock.monotonic(); ; ) {
      const done = await leadForCommand({ postgres, ...membership, path: fleetCopyOf(path) }, refill);
      if (done) return done.result;
      if (systemClock.monotonic() - began > WAIT_MS || signal.aborted) throw await busy(postgres);
      await systemClock.sleep(500, signal);
    }
  } catch (error) {
    throw error instanceof LabfeedError ? error : unreachable(error);
  } finally {
    await notebook.close();
    await postgres.close();
    await journal.close();
  }
}

async function busy(postgres: Postgres): Promise<LabfeedError> {
  const row = await postgres.row<{ name: string }>(
    'SELECT name FROM labfeed.members JOIN labfeed.fleet ON leader = members.id',
  );
  return new LabfeedError(`${row?.name ?? 'another machine'} delivers for the fleet`, {
    hint: 'stop labfeed on all machines that deliver, and run this command again',
  });
}

/** The instruments of all machines: each reports its own. */
async function listAll(
  { listed }: UsableConfig,
  { store: { db } }: LeadingJournal,
  postgres: Postgres,
): Promise<ListedInstrument[]> {
  const reported = await postgres.rows<{ listed: ListedInstrument[] | null }>(
    "SELECT live->'listed' AS listed FROM labfeed.members WHERE live IS NOT NULL ORDER BY seen_at",
  );
  const known = db.values<string>`SELECT DISTINCT instrument FROM tallies`.map((name) => listInstrument(name));
  const all = [...known, ...reported.flatMap((member) => member.listed ?? []), ...listed];
  return [...new Map(all.map((instrument) => [instrument.name, instrument])).values()];
}
