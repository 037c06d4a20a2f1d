import { afterAll, beforeAll, onTestFinished } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { takeLease } from '../../src/fleet/lease.js';
import { forward } from '../../src/fleet/member.js';
import { join } from '../../src/fleet/membership.js';
import { receive } from '../../src/fleet/receive.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, lead, openWorkingCopy } from '../../src/fleet/working-copy.js';
import { forwardingGrowths, forwardingOutbox } from '../../src/journal/forwards.js';
import type { Journal } from '../../src/journal/journal.js';
import type { NewRun, Reading } from '../../src/outbox.js';
import { Spool } from '../../src/spool.js';
import { memoryJournal } from './memory-journal.js';
import { type Cluster, connectTo, memberOf, noPostgres, startCluster } from './postgres.js';
import { silentLog } from './silent-log.js';
import { tempFolder } from './temp-folder.js';

/** One server for all tests of a file. Returns a function that creates the schema of a fleet in a new database. */
export function useCluster() {
  let cluster: Cluster | undefined;
  beforeAll(async () => {
    if (!noPostgres) cluster = await startCluster();
  }, 60_000);
  afterAll(async () => cluster?.remove(), 60_000);
  return async () => {
    const url = (await cluster?.createDatabase()) ?? '';
    const postgres = connectTo(url);
    onTestFinished(() => postgres.close());
    const { id } = await prepareSchema(postgres, true);
    return { url, postgres, id };
  };
}

/** The same. Returns a function that makes a fleet whose leader is the test. */
export function useFleets() {
  const newDatabase = useCluster();
  return async () => {
    const { url, postgres, id } = await newDatabase();
    const shared = { clock: systemClock, log: silentLog() };
    const lease = await takeLease(postgres, 1000, { ...shared, lost: () => undefined });
    onTestFinished(() => lease?.release(true));
    const copy = openWorkingCopy(':memory:');
    await follow(copy, postgres);
    const journal = lead({ ...shared, copy, postgres, id, epoch: lease?.epoch ?? 0, fenced: () => undefined });
    const { db } = journal.store;
    return {
      url,
      postgres,
      id,
      journal,
      receive: () => receive(journal, postgres, silentLog()),
      runs: () =>
        db.rows<{ id: number; path: string; sha256: string; step: string; parked: string | null }>`
          SELECT id, path, sha256, step, parked FROM runs ORDER BY id`,
      comments: () => db.values<string>`SELECT text FROM comments ORDER BY run, n`,
      failures: () => db.rows<{ number: number; reason: string }>`SELECT number, reason FROM failures ORDER BY number`,
      /** `moving`: the journal of a machine that has runs already, and hands them over. */
      async member(name: string, moving?: Journal) {
        const own = moving ?? memoryJournal(systemClock);
        const { member } = await join(own, memberOf(url, name), id, postgres, moving !== undefined);
        const spool = new Spool(tempFolder());
        return {
          own,
          member,
          spool,
          outbox: forwardingOutbox(own.store, own.outbox),
          growths: forwardingGrowths(own.store),
          /** As the member does. */
          async forward(): Promise<void> {
            while (await forward({ journal: own, postgres, member: () => member, spool }));
            while ((await receive(journal, postgres, silentLog())) > 0);
          },
          /** Whatever was sent before is sent again. */
          async send(): Promise<void> {
            const rows = own.store.db.rows<{ id: number; operation: string }>`SELECT id, operation FROM forwards`;
            for (const { id: number, operation } of rows)
              await postgres.run(
                'INSERT INTO labfeed.operations (member, number, operation) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING',
                [...[member, number, operation]],
              );
          },
        };
      },
    };
  };
}

export const newRun = (content: string, path = `/data/${content}`, more: Partial<NewRun> = {}): NewRun => ({
  instrument: 'balance',
  file: { path, location: path, size: 1, mtimeNs: 5_000_000n, inode: 1n, sha256: content.padStart(64, 'f') },
  copy: '',
  backlog: false,
  mapping: 'm',
  ...more,
});
export const reading = (text: string): Extract<Reading, { problem?: never }> => ({
  draft: { title: text, date: '2026-01-01', body: text, tags: [], comments: [text] },
});
