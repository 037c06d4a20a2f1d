import { join } from 'node:path';
import { describe, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { Postgres } from '../../src/fleet/database.js';
import { takeLease } from '../../src/fleet/lease.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, lead, openWorkingCopy } from '../../src/fleet/working-copy.js';
import { openReader } from '../../src/journal/reader.js';
import { type TestedOutbox, testOutbox } from '../journal/outbox-contract.js';
import { useCluster } from '../support/leading-fleet.js';
import { manualClock } from '../support/manual-clock.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';

const log = silentLog();

interface Leading {
  readonly postgres: Postgres;
  readonly id: string;
  readonly epoch: number;
}

/** The outbox of a leader. After a crash, another one with an empty disk has only what PostgreSQL has. */
async function open(leading: Leading): Promise<TestedOutbox> {
  const path = join(tempFolder(), 'fleet.db');
  const copy = openWorkingCopy(path);
  await follow(copy, leading.postgres);
  const journal = lead({ ...leading, clock: manualClock(), log, copy, fenced: () => undefined });
  const reader = openReader(path);
  onTestFinished(async () => {
    await reader.close();
    // The one before a crash cannot ship what the one after it does not know.
    await journal.close().catch(() => undefined);
  });
  const { outbox, store } = journal;
  return {
    ...journal,
    outbox: {
      ...outbox,
      // As `receive` does before it removes an operation.
      async add(...run) {
        const added = await outbox.add(...run);
        await store.commit(() => undefined);
        return added;
      },
    },
    reader,
    afterCrash: () => open(leading),
  };
}

describe.skipIf(noPostgres)('with PostgreSQL', () => {
  const newFleet = useCluster();
  let url: string | undefined;
  testOutbox('a fleet', async () => {
    // So many databases would take the server a minute to stop.
    url ??= (await newFleet()).url;
    const postgres = connectTo(url);
    onTestFinished(() => postgres.close());
    await postgres.run('DROP SCHEMA labfeed CASCADE');
    const { id } = await prepareSchema(postgres, true);
    const lease = await takeLease(postgres, 1, { clock: systemClock, log, lost: () => undefined });
    onTestFinished(() => lease?.release(true));
    return open({ postgres, id, epoch: lease?.epoch ?? 0 });
  });
});
