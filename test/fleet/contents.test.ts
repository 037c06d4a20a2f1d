import { createHash } from 'node:crypto';
import { Readable } from 'node:stream';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { attachFromDatabase, storeContent, sweepContents } from '../../src/fleet/contents.js';
import { isAway } from '../../src/fleet/database.js';
import { createMember } from '../../src/fleet/member.js';
import { join } from '../../src/fleet/membership.js';
import { FLEET_TABLES } from '../../src/fleet/tables.js';
import { forwardingOutbox } from '../../src/journal/forwards.js';
import type { NewRun } from '../../src/outbox.js';
import type { Spool } from '../../src/spool.js';
import type { PlannedUpload } from '../../src/uploads.js';
import { useCluster } from '../support/leading-fleet.js';
import { memoryJournal } from '../support/memory-journal.js';
import { memberOf, noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';

const newSchema = useCluster();

const METHOD = Buffer.alloc(2_500_000, 'method ');
const SHA256 = createHash('sha256').update(METHOD).digest('hex');
const content = { sha256: SHA256, size: METHOD.length, path: '/data/method.txt', kind: 'raw' as const };

/** Has one copy. `removals`: whether it was still needed, each time somebody wanted to remove it. */
function createSpool(
  read: () => AsyncIterable<Buffer> = async function* () {
    yield METHOD;
  },
) {
  const removals: boolean[] = [];
  const spool = {
    open: async () => ({ createReadStream: () => Readable.from(read()), close: async () => undefined }),
    remove: async (_: string, isNeeded: () => Promise<boolean>) => void removals.push(await isNeeded()),
  } as unknown as Spool;
  return { spool, removals };
}

async function newDatabase() {
  const { url, postgres, id } = await newSchema();
  const leading = memoryJournal(systemClock);
  leading.store.db.database.exec(FLEET_TABLES);
  return {
    url,
    id,
    postgres,
    leading,
    size: async () =>
      (await postgres.row<{ size: number }>('SELECT sum(length(bytes))::integer AS size FROM labfeed.contents'))
        ?.size ?? 0,
    isComplete: async () => (await postgres.row('SELECT 1 FROM labfeed.complete')) !== undefined,
    age: () => postgres.run("UPDATE labfeed.contents SET at = now() - interval '3 days'"),
    uploaded: () =>
      attachFromDatabase(postgres, leading, ['balance'], () => false).uploaded({ sha256: SHA256 } as PlannedUpload),
  };
}

const newRun = (name: string): NewRun => ({
  instrument: 'balance',
  file: {
    path: `/data/${name}`,
    location: `/data/${name}`,
    size: 1,
    mtimeNs: 5_000_000n,
    inode: 1n,
    sha256: name.padStart(64, 'f'),
  },
  copy: '',
  backlog: false,
  mapping: 'm',
  attachments: [{ ...content, name: 'method.txt' }],
});

/** A member that hands over runs, each with the same raw file. */
async function handOver(runs: number, { url, id, postgres }: Awaited<ReturnType<typeof newDatabase>>) {
  const journal = memoryJournal(systemClock);
  const { member } = await join(journal, memberOf(url), id, postgres);
  const outbox = forwardingOutbox(journal.store, journal.outbox);
  for (let n = 0; n < runs; n++)
    await outbox.add(newRun(String(n)), { draft: { title: '', date: '2026-01-01', body: '', tags: [], comments: [] } });
  const { spool, removals } = createSpool();
  const sending = createMember({
    ...{ journal, postgres, name: 'pc1', spool, clock: systemClock, log: silentLog(), listEveryMs: 0 },
    member: () => member,
    rejoin: async () => undefined,
    rescan: () => undefined,
    followed: () => undefined,
    live: () => ({}) as never,
    notebook: () => undefined,
    listed: () => [],
  });
  onTestFinished(() => sending.stop());
  await vi.waitFor(() => expect(sending.kept()).toBe(0), 40_000);
  await sending.stop();
  return { removals, journal };
}

describe.skipIf(noPostgres)('contents in the database', () => {
  test('stay while an operation that waits needs them, however old it is, and while one that was set aside does', async () => {
    const { postgres, leading, size, age, uploaded } = await newDatabase();
    await storeContent(content, createSpool().spool, postgres);
    await age();
    await postgres.run("INSERT INTO labfeed.operations (member, number, operation, contents) VALUES (1, 1, '{}', $1)", [
      [SHA256],
    ]);
    await sweepContents(postgres, leading);
    await uploaded();
    expect(await size()).toBe(METHOD.length);
    await postgres.run('DELETE FROM labfeed.operations');
    const { db } = leading.store;
    db.run`INSERT INTO failures VALUES (1, 'pc1', 1, 0, 'why', ${JSON.stringify({ sha256: SHA256 })})`;
    await sweepContents(postgres, leading);
    expect(await size()).toBe(METHOD.length);
    db.run`DELETE FROM failures`;
    // A machine that leaves may fetch it days later.
    db.run`INSERT INTO departures VALUES (1, 1, ${JSON.stringify({ sha256: SHA256 })})`;
    await sweepContents(postgres, leading);
    expect(await size()).toBe(METHOD.length);
    db.run`DELETE FROM departures`;
    await sweepContents(postgres, leading);
    expect(await size()).toBe(0);
  });

  test('are complete only if no piece was removed while the others were stored', async () => {
    const { postgres, size, isComplete } = await newDatabase();
    const { spool } = createSpool(async function* () {
      yield METHOD.subarray(0, 1_500_000);
      await vi.waitFor(async () => expect(await size()).toBeGreaterThan(0), 30_000);
      await postgres.run('DELETE FROM labfeed.contents');
      yield METHOD.subarray(1_500_000);
    });
    await storeContent(content, spool, postgres);
    expect(await isComplete()).toBe(false);
    await storeContent(content, createSpool().spool, postgres);
    expect([await isComplete(), await size()]).toEqual([true, METHOD.length]);
  });

  test('are stored again for an operation if those of an equal file were removed before it arrived', async () => {
    const database = await newDatabase();
    const { postgres, uploaded, isComplete, size } = database;
    await storeContent(content, createSpool().spool, postgres);
    const transaction = postgres.transaction.bind(postgres);
    const removing = vi.spyOn(postgres, 'transaction').mockImplementationOnce(async (work, begin) => {
      await uploaded();
      expect(await isComplete()).toBe(false);
      return transaction(work, begin);
    });
    await handOver(1, database);
    expect(removing).toHaveBeenCalled();
    expect([await isComplete(), await size()]).toEqual([true, METHOD.length]);
    expect(await postgres.rows('SELECT contents FROM labfeed.operations')).toEqual([{ contents: [SHA256] }]);
  });

  test('keep their copy on the member until the last run that needs it is handed over', async () => {
    const database = await newDatabase();
    const { removals, journal } = await handOver(60, database);
    expect(removals).toEqual([true, false]);
    expect(journal.store.db.value`SELECT count(*) FROM attachments WHERE upload IS NULL`).toBe(0);
    expect(journal.store.db.exists`SELECT 1 FROM forwarded`).toBe(false);
  });
});

test.skipIf(noPostgres)(
  'a connection that breaks in the middle of a transaction fails it, and nothing else',
  async () => {
    const { postgres } = await newSchema();
    const broken = postgres.transaction(async (client) => {
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid');
      await postgres.rows('SELECT pg_terminate_backend($1)', [rows[0]?.pid]);
      // Nobody waits for the connection when it ends.
      await new Promise((resolve) => setTimeout(resolve, 500));
      await client.query('SELECT 1');
    });
    await expect(broken).rejects.toSatisfy(isAway);
    expect(await postgres.rows('SELECT 1 AS one')).toEqual([{ one: 1 }]);
  },
);
