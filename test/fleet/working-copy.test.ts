import { rmSync } from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import type { ClientBase } from 'pg';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import type { UsableConfig } from '../../src/config/load.js';
import { applyChanges, fromPostgres, readChangeset, toPostgres } from '../../src/fleet/changes.js';
import { Postgres } from '../../src/fleet/database.js';
import { joinFleet } from '../../src/fleet/fleet.js';
import { LEASE_MS, takeLease } from '../../src/fleet/lease.js';
import { FLEET_STEPS } from '../../src/fleet/tables.js';
import { prepareSchema } from '../../src/fleet/upgrade.js';
import { follow, lead, openWorkingCopy, type WorkingCopy } from '../../src/fleet/working-copy.js';
import { createJournal, openJournal } from '../../src/journal/journal.js';
import { MIGRATIONS } from '../../src/journal/migrations.js';
import type { NewRun, Reading } from '../../src/outbox.js';
import { Spool } from '../../src/spool.js';
import { useCluster } from '../support/leading-fleet.js';
import { connectTo, memberOf, noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';
import { someLive } from '../support/status-server.js';
import { tempFolder } from '../support/temp-folder.js';

const newFleet = useCluster();

const options = { clock: systemClock, log: silentLog() };

async function leading(postgres: Postgres, id: string, copy: WorkingCopy, member = 1) {
  const lease = await takeLease(postgres, member, { ...options, lost: () => undefined });
  if (!lease) throw new Error('the lease is taken');
  onTestFinished(() => lease.release(true));
  await follow(copy, postgres);
  let isFenced = false;
  const fenced = (): void => {
    isFenced = true;
  };
  const journal = lead({ ...options, copy, postgres, id, epoch: lease.epoch, fenced });
  return { lease, journal, isFenced: () => isFenced };
}

const newRun = (n: number, text = ''): NewRun => ({
  instrument: `i${n % 3}`,
  file: {
    path: `pc1:/data/${n}${text}`,
    location: '',
    size: n,
    mtimeNs: 1_000_000n,
    inode: 0n,
    sha256: String(n).padStart(64, 'a'),
  },
  copy: '',
  backlog: n % 2 === 0,
  mapping: 'm',
});
const reading = (text: string): Reading => ({
  draft: { title: text, date: '2026-01-01', body: `<p>${text}</p>`, tags: [text], comments: [text, 'b'] },
});

const dump = ({ db: { database }, tables }: WorkingCopy) =>
  Object.fromEntries(
    [...tables.values()].map(({ name, key }) => [
      name,
      database.prepare(`SELECT * FROM ${name} ORDER BY ${key.join(', ')}`).all(),
    ]),
  );

test('every text survives the way through PostgreSQL', () => {
  fc.assert(
    fc.property(
      fc.string({ unit: 'binary' }),
      (text) => fromPostgres(toPostgres(text)) === text && !toPostgres(text).includes('\0'),
    ),
  );
  expect(fromPostgres(toPostgres('a\0\u{e000}0\0'))).toBe('a\0\u{e000}0\0');
});

test('what one run gives up, another one can take in the same shipment', async () => {
  const [first, second] = [openWorkingCopy(':memory:'), openWorkingCopy(':memory:')];
  const { tables } = first;
  const { database } = first.db;
  let session = database.createSession();
  const ship = (): void => {
    const changes = readChangeset(session.changeset(), tables);
    session.close();
    session = database.createSession();
    applyChanges(second.db, changes, tables);
  };
  const journal = createJournal({
    database,
    clock: systemClock,
    sync: async () => undefined,
    release: () => undefined,
  });
  for (let n = 1; n <= 40; n++) await journal.outbox.add(newRun(n), reading(String(n)));
  ship();
  expect(dump(second)).toEqual(dump(first));
  // Of three runs, the first one goes, the next one takes its content, and a new one that of the second.
  for (let n = 1; n <= 37; n += 4) {
    const content = (run: number): string => String(run).padStart(64, 'a');
    database.exec(`
      DELETE FROM runs WHERE id = ${n};
      UPDATE runs SET instrument = 'i${n % 3}', sha256 = '${content(n)}' WHERE id = ${n + 1}`);
    await journal.outbox.add(newRun(n + 1), reading('again'));
  }
  ship();
  expect(dump(second)).toEqual(dump(first));
  session.close();
});

test('a standby compiles the statement of a change once', () => {
  const { db, tables } = openWorkingCopy(':memory:');
  const prepare = vi.spyOn(db, 'statement');
  const statements = () => new Set(prepare.mock.results.map(({ value }) => value)).size;
  for (const number of [1, 2, 3]) applyChanges(db, [{ t: 'received', o: 'i', v: { member: number, number } }], tables);
  expect(statements()).toBe(1);
  expect(db.values<number>`SELECT number FROM received`).toEqual([1, 2, 3]);
});

describe.skipIf(noPostgres)('with PostgreSQL', () => {
  test('whatever is written, a standby that follows and one that loads have the same rows', async () => {
    const change = fc.oneof(
      fc.record({
        kind: fc.constant('add' as const),
        n: fc.integer({ min: 0, max: 30 }),
        text: fc.string({ unit: 'binary', maxLength: 20 }),
      }),
      fc.record({ kind: fc.constant('file' as const), n: fc.integer({ min: 1, max: 20 }) }),
      fc.record({
        kind: fc.constant('park' as const),
        n: fc.integer({ min: 1, max: 20 }),
        text: fc.string({ unit: 'binary', maxLength: 20 }),
      }),
      fc.record({
        kind: fc.constant('sql' as const),
        n: fc.integer({ min: 1, max: 20 }),
        which: fc.integer({ min: 0, max: 6 }),
      }),
      fc.record({ kind: fc.constant('ship' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(change, { maxLength: 40 }), async (changes) => {
        const { postgres, id } = await newFleet();
        const [first, second] = [openWorkingCopy(':memory:'), openWorkingCopy(':memory:')];
        const { journal } = await leading(postgres, id, first);
        await follow(second, postgres);
        for (const one of changes) {
          if (one.kind === 'add') await journal.outbox.add(newRun(one.n, one.text), reading(one.text));
          else if (one.kind === 'file')
            await journal.outbox
              .apply(
                one.n,
                { kind: 'intended', server: 's', floor: 1, at: 5 },
                { kind: 'created', experiment: one.n, found: false },
                { kind: 'finished' },
              )
              .catch(() => undefined);
          else if (one.kind === 'park')
            await journal.outbox
              .apply(one.n, { kind: 'parked', as: 'held', failure: 'conflict', reason: one.text })
              .catch(() => undefined);
          else if (one.kind === 'sql')
            await journal.store
              .commit(() => journal.store.db.database.exec(STATEMENTS(one.n)[one.which] ?? ''))
              .catch(() => undefined);
          else await journal.store.commit(() => undefined);
        }
        await journal.store.commit(() => undefined);
        await follow(second, postgres);
        const third = openWorkingCopy(':memory:');
        await follow(third, postgres);
        expect(dump(second)).toEqual(dump(first));
        expect(dump(third)).toEqual(dump(first));
      }),
      { numRuns: 6 },
    );
  }, 120_000);

  test('a copy that cannot apply a shipment loads everything again', async () => {
    const { postgres, id } = await newFleet();
    const [first, second] = [openWorkingCopy(':memory:'), openWorkingCopy(':memory:')];
    const { journal } = await leading(postgres, id, first);
    for (const n of [1, 2]) await journal.outbox.add(newRun(n), reading(String(n)));
    const sql = (text: string) => journal.store.commit(() => journal.store.db.database.exec(text));
    await sql("UPDATE runs SET server = 's', experiment = 10 + id");
    await follow(second, postgres);
    await sql(
      'UPDATE runs SET experiment = 5 WHERE id = 1; UPDATE runs SET experiment = 11 WHERE id = 2; UPDATE runs SET experiment = 12 WHERE id = 1',
    );
    await follow(second, postgres);
    expect(dump(second)).toEqual(dump(first));
  });

  test('a leader whose epoch is over records nothing, and learns it', async () => {
    const { postgres, id } = await newFleet();
    const old = await leading(postgres, id, openWorkingCopy(':memory:'));
    await old.journal.outbox.add(newRun(1), reading('a'));
    await old.journal.store.commit(() => undefined);
    await postgres.run("UPDATE labfeed.fleet SET until = '-infinity'");
    const next = await leading(postgres, id, openWorkingCopy(':memory:'), 2);
    await old.journal.outbox.add(newRun(2), reading('b'));
    await expect(old.journal.store.commit(() => undefined)).rejects.toThrow(
      /^another member of the fleet delivers now$/,
    );
    expect(old.isFenced()).toBe(true);
    await next.journal.outbox.add(newRun(3), reading('c'));
    await next.journal.store.commit(() => undefined);
    const { rows } = { rows: await postgres.rows<{ size: number }>('SELECT size FROM labfeed.runs ORDER BY id') };
    expect(rows.map(({ size }) => size)).toEqual([1, 3]);
  });

  test('a lease is not taken while it is held, and is after it was given back', async () => {
    const { postgres } = await newFleet();
    const lost = () => undefined;
    const first = await takeLease(postgres, 1, { ...options, lost });
    expect(first?.isHeld()).toBe(true);
    expect(await takeLease(postgres, 2, { ...options, lost })).toBeUndefined();
    await first?.release(true);
    const second = await takeLease(postgres, 2, { ...options, lost });
    expect(second).toMatchObject({ epoch: (first?.epoch ?? 0) + 1, predecessor: undefined });
    await second?.recordSender('https://eln', 7);
    await second?.release(false);
    // One that never sent does not hide who did.
    const third = await takeLease(postgres, 1, { ...options, lost });
    await third?.release(true);
    const fourth = await takeLease(postgres, 3, { ...options, lost });
    expect(fourth?.predecessor).toEqual({ isSelf: false, notebook: 'https://eln', sessionKey: 7 });
    await expect(third?.recordSender('https://eln', 8)).rejects.toThrow('another member of the fleet delivers now');
    await fourth?.recordSender('https://eln', 9);
    await fourth?.release(true);
    const fifth = await takeLease(postgres, 1, { ...options, lost });
    expect(fifth?.predecessor).toBeUndefined();
    await fifth?.release(true);
  });

  test.each(['monotonic', 'now'] as const)('a lease is over for its holder by any of its clocks (%s)', async (kind) => {
    const { postgres } = await newFleet();
    let asleepMs = 0;
    const clock = { ...systemClock, [kind]: () => systemClock[kind]() + asleepMs };
    const lease = await takeLease(postgres, 1, { ...options, clock, lost: () => undefined });
    expect(lease?.isHeld()).toBe(true);
    asleepMs = LEASE_MS;
    expect(lease?.isHeld()).toBe(false);
    await lease?.release(true);
  });

  test('a copy that was leading when its process ended is loaded again', async () => {
    const { postgres, id } = await newFleet();
    const path = join(tempFolder(), 'fleet.db');
    const { journal, lease } = await leading(postgres, id, openWorkingCopy(path));
    await journal.outbox.add(newRun(1), reading('a'));
    await journal.store.commit(() => undefined);
    // Written, but not shipped.
    await journal.outbox.add(newRun(2), reading('b'));
    journal.store.db.database.close();
    await lease.release(false);
    const again = openWorkingCopy(path);
    expect(again.position()).toBeUndefined();
    await follow(again, postgres);
    expect((dump(again)['runs'] as unknown[] | undefined)?.length).toBe(1);
    again.db.database.close();
    rmSync(path);
  });

  test('a copy does not follow the shipments of a database that was restored from a backup, and its leader records nothing', async () => {
    const { postgres, id } = await newFleet();
    const [backup, standby] = [openWorkingCopy(':memory:'), openWorkingCopy(':memory:')];
    const first = await leading(postgres, id, openWorkingCopy(':memory:'));
    const add = async ({ journal }: typeof first, n: number) => {
      await journal.outbox.add(newRun(n), reading(String(n)));
      await journal.store.commit(() => undefined);
    };
    await add(first, 1);
    await follow(backup, postgres);
    const [{ mark }] = (await postgres.rows<{ mark: string }>('SELECT mark FROM labfeed.fleet')) as [{ mark: string }];
    await add(first, 2);
    await follow(standby, postgres);
    const paths = ({ db }: WorkingCopy) => db.database.prepare('SELECT path FROM runs ORDER BY path').all();
    expect(paths(standby)).toHaveLength(2);
    // As in the backup.
    for (const table of ['runs', 'drafts', 'comments', 'history', 'tallies', 'hours'])
      await postgres.run(`DELETE FROM labfeed.${table}`);
    await postgres.run('DELETE FROM labfeed.changes');
    await postgres.run('UPDATE labfeed.fleet SET seq = seq - 1, mark = $1', [mark]);
    await postgres.run("UPDATE labfeed.fleet SET epoch = epoch - 1, until = '-infinity'");
    const second = await leading(postgres, id, backup, 2);
    await add(second, 3);
    await expect(add(first, 4)).rejects.toThrow();
    expect(first.isFenced()).toBe(true);
    // With the same number of shipments, and with more.
    for (const n of [5, 6]) {
      await follow(standby, postgres);
      const loaded = openWorkingCopy(':memory:');
      await follow(loaded, postgres);
      expect(dump(standby)).toEqual(dump(loaded));
      await add(second, n);
    }
  });

  test('a standby that loads its copy again still knows of a halt, and clears no alarm', async () => {
    const { postgres, id, url } = await newFleet();
    const path = join(tempFolder(), 'journal.db');
    const { journal } = await leading(postgres, id, openWorkingCopy(':memory:'), 1000);
    const notebook = 'https://eln';
    await journal.outbox.server(notebook).learn({ halted: 'the journal is older' });
    const { db, commit } = journal.store;
    await commit(
      () =>
        db.run`
          INSERT INTO failures (member, name, number, at, reason, operation) VALUES (7, 'pc7', 1, 1, 'damaged', '{}')`,
    );
    let release: () => void = () => undefined;
    let isLoading = false;
    class SlowPostgres extends Postgres {
      override async transaction<T>(work: (client: ClientBase) => Promise<T>, begin?: string): Promise<T> {
        isLoading = begin !== undefined;
        if (isLoading)
          await new Promise<void>((resolve) => {
            release = resolve;
          });
        isLoading = false;
        return super.transaction(work, begin);
      }
    }
    const own = await openJournal(path, systemClock);
    const stopping = new AbortController();
    const standby = await joinFleet({
      ...{ journal: own, spool: new Spool(tempFolder()), stopping: stopping.signal, live: () => someLive({}) },
      config: { notebook: { url: notebook }, settings: {}, listed: [] } as unknown as UsableConfig,
      fleet: memberOf(url, 's2', 'deliver'),
      ...{ ...options, observer: {} as never, onResponse: () => undefined },
      ...{ conceal: () => undefined, isSecretIn: () => false },
      outside: {
        ...{ openDatabase: (fleet, conceal) => new SlowPostgres(fleet, conceal), openCopy: openWorkingCopy },
        ...{ openNotebook: () => ({}) as never, connect: () => ({}) as never, random: Math.random },
      },
    });
    onTestFinished(async () => {
      release();
      await standby.stop();
      await own.close();
    });
    const halted = async () => (await standby.journal.outbox.server(notebook).facts()).halted;
    const loading = () => vi.waitFor(() => expect(isLoading).toBe(true), 20_000);
    await loading();
    release();
    await vi.waitFor(async () => expect(await halted()).toBe('the journal is older'), 20_000);
    expect(standby.alarms.setAside()).toMatchObject({ member: 'pc7', reason: 'damaged' });
    await postgres.run('DELETE FROM labfeed.changes');
    await postgres.run('UPDATE labfeed.fleet SET seq = seq + 5');
    await loading();
    expect(await halted()).toBe('the journal is older');
    expect(standby.alarms.setAside()).toBe('unknown');
  });

  test('a newer version brings the tables up to date with all rows, and the older leader is fenced', async () => {
    const { postgres, id } = await newFleet();
    const first = openWorkingCopy(':memory:');
    const old = await leading(postgres, id, first);
    await old.journal.outbox.add(newRun(1, '\u{e000}'), reading('a'));
    await old.journal.store.commit(() => undefined);
    const before = dump(first);
    const steps = MIGRATIONS as string[];
    steps.push("ALTER TABLE runs ADD COLUMN colour TEXT; UPDATE runs SET colour = 'red';");
    try {
      const at = MIGRATIONS.length;
      await expect(prepareSchema(postgres, false)).resolves.toMatchObject({ journal: at - 1 });
      await expect(prepareSchema(postgres, true)).resolves.toMatchObject({ id, journal: at });
      const second = openWorkingCopy(':memory:');
      await follow(second, postgres);
      const after = dump(second);
      const runs = (before['runs'] as object[]).map((row) => ({ ...row, colour: 'red' }));
      expect({ ...after, runs: after['runs'] }).toEqual({ ...before, runs });
      await old.journal.outbox.add(newRun(2), reading('b'));
      await expect(old.journal.store.commit(() => undefined)).rejects.toThrow(
        /^another member of the fleet delivers now$/,
      );
      expect(old.isFenced()).toBe(true);
    } finally {
      steps.pop();
    }
  });

  test.each(['an empty database', 'the tables of an older version'])(
    'machines that start at the same time bring %s up to date once, with all rows',
    async (from) => {
      const { url, postgres, id } = await newFleet();
      const copy = openWorkingCopy(':memory:');
      const { journal, lease } = await leading(postgres, id, copy);
      await journal.outbox.add(newRun(1), reading('a'));
      await journal.store.commit(() => undefined);
      await lease.release(true);
      const isEmpty = from === 'an empty database';
      if (isEmpty) await postgres.run('DROP SCHEMA labfeed CASCADE');
      const [steps, fleetSteps] = [MIGRATIONS as string[], FLEET_STEPS as string[]];
      steps.push("ALTER TABLE runs ADD COLUMN colour TEXT; UPDATE runs SET colour = 'red';");
      fleetSteps.push('ALTER TABLE labfeed.members ADD COLUMN colour text');
      try {
        const starting = Array.from({ length: 4 }, () => connectTo(url));
        onTestFinished(async () => void (await Promise.all(starting.map((one) => one.close()))));
        // A machine that only watches does not change the tables of the journal.
        const schemas = await Promise.all(starting.map((one, n) => prepareSchema(one, n > 0)));
        expect(new Set(schemas.map((schema) => schema.id))).toHaveLength(1);
        expect(schemas.slice(1).map(({ journal: version }) => version)).toEqual(Array(3).fill(MIGRATIONS.length));
        expect(await postgres.rows('SELECT epoch, version FROM labfeed.fleet, labfeed.version')).toEqual([
          { epoch: isEmpty ? 1 : lease.epoch + 1, version: FLEET_STEPS.length },
        ]);
        expect(await postgres.rows('SELECT colour FROM labfeed.runs')).toEqual(isEmpty ? [] : [{ colour: 'red' }]);
      } finally {
        steps.pop();
        fleetSteps.pop();
      }
    },
  );

  test('a newer schema is refused and stays as it is', async () => {
    const { postgres } = await newFleet();
    await postgres.run('UPDATE labfeed.fleet SET journal = journal + 1');
    await expect(prepareSchema(postgres, true)).rejects.toThrow('written by a newer labfeed');
    // A watcher only hands over operations.
    await expect(prepareSchema(postgres, false)).resolves.toMatchObject({});
    await postgres.run('UPDATE labfeed.version SET version = version + 1');
    await expect(prepareSchema(postgres, false)).rejects.toThrow('written by a newer labfeed');
  });
});

const STATEMENTS = (n: number): readonly string[] => [
  `DELETE FROM runs WHERE id = ${n}`,
  `UPDATE comments SET n = n + 10 WHERE run = ${n}`,
  `INSERT OR REPLACE INTO generations VALUES (${n}, 1, 2, x'00ff${n + 10}')`,
  `UPDATE runs SET refiling = refiling + 1, instrument = 'i' WHERE id IN (${n}, ${n + 1})`,
  `INSERT INTO earlier_drafts (run, title, date, body) SELECT run, title, date, body FROM drafts`,
  'DELETE FROM earlier_drafts',
  `UPDATE runs SET experiment = (SELECT experiment FROM runs WHERE id = ${n + 1}) WHERE id = ${n} AND experiment IS NULL; UPDATE runs SET experiment = NULL WHERE id = ${n + 1}`,
];
