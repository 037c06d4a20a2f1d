import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { follow, lead, openWorkingCopy, type WorkingCopy } from '../../src/fleet/working-copy.js';
import { newRun, reading, useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';

const newFleet = useFleets();

type Fleet = Awaited<ReturnType<typeof newFleet>>;

const OWN = 7;
const KEPT = { member: OWN, newest: 3 };

const add = ({ journal }: Fleet, n: number) =>
  journal.outbox.add(newRun(String(n), `pc2:/data/${n}.csv`, { instrument: `i${n % 2}` }), reading(`text ${n}`));

const file = ({ journal }: Fleet, run: number) =>
  journal.outbox.apply(
    run,
    { kind: 'intended', server: 's', floor: 1, at: 5 },
    { kind: 'created', experiment: run, found: false },
    { kind: 'finished' },
  );

const hold = ({ journal }: Fleet, run: number) =>
  journal.outbox.apply(run, { kind: 'parked', as: 'held', failure: 'conflict', reason: 'somebody changed it' });

/** A file of this machine has become this run. */
const own = ({ journal: { store } }: Fleet, run: number) =>
  store.commit(
    () => void store.db.run`INSERT OR IGNORE INTO origins (member, run, filed) VALUES (${OWN}, ${run + 100}, ${run})`,
  );

const sync = ({ journal }: Fleet) => journal.store.commit(() => undefined);

const idsIn = ({ db }: WorkingCopy) => db.values<number>`SELECT id FROM runs ORDER BY id`;

const HIDDEN = ['departures', 'inbox', 'alarms', 'notices', 'sources'];

/** Every table as it should be: complete, or with the rows of these runs. */
function dump({ db: { database }, tables }: WorkingCopy, ids: readonly number[]) {
  return Object.fromEntries(
    [...tables.values()]
      .filter(({ name }) => !HIDDEN.includes(name))
      .map(({ name, key, columns }) => {
        const column = name === 'runs' ? 'id' : name === 'origins' ? 'filed' : 'run';
        const isOfRun = columns.includes(column) && name !== 'shapes';
        const where = isOfRun ? `WHERE ${column} IN (${ids.join(',')})` : '';
        return [name, database.prepare(`SELECT * FROM ${name} ${where} ORDER BY ${key.join(', ')}`).all()];
      }),
  );
}

/** It has nothing of other runs, and of its own runs everything. */
async function expectKept(copy: WorkingCopy, { postgres }: Fleet): Promise<void> {
  const whole = openWorkingCopy(':memory:');
  await follow(whole, postgres);
  const ids = idsIn(copy);
  expect(dump(copy, ids)).toEqual(dump(whole, ids));
  for (const table of ['drafts', 'comments', 'history'])
    expect(copy.db.database.prepare(`SELECT run FROM ${table} WHERE run NOT IN (SELECT id FROM runs)`).all()).toEqual(
      [],
    );
  const open = whole.db.values<number>`
    SELECT id FROM runs WHERE step <> 'done' OR parked IS NOT NULL UNION SELECT filed FROM origins WHERE member = ${OWN}`;
  expect(ids).toEqual(expect.arrayContaining(open));
}

describe.skipIf(noPostgres)('the copy of a machine that only watches', () => {
  test('has its own runs, those that are open, and the newest, and follows them', async () => {
    const fleet = await newFleet();
    for (let n = 1; n <= 12; n++) {
      await add(fleet, n);
      if (n !== 4) await file(fleet, n);
    }
    await own(fleet, 2);
    await hold(fleet, 4);
    await sync(fleet);
    const copy = openWorkingCopy(':memory:', KEPT);
    await follow(copy, fleet.postgres);
    expect(idsIn(copy)).toEqual([2, 4, 10, 11, 12]);
    await expectKept(copy, fleet);
    // All are counted.
    expect(copy.db.value`SELECT sum(runs) FROM tallies`).toBe(12);
    // One that is not kept needs a person, a file of this machine is another one, and a new one arrives.
    await hold(fleet, 6);
    await own(fleet, 8);
    await add(fleet, 13);
    // What happens to others changes nothing here.
    const { store } = fleet.journal;
    await store.commit(() => void store.db.run`UPDATE drafts SET title = 'other' WHERE run IN (3, 10)`);
    await store.commit(() => void store.db.run`INSERT INTO history (run, at, event) VALUES (3, 1, 'x'), (10, 1, 'x')`);
    await sync(fleet);
    await follow(copy, fleet.postgres);
    expect(idsIn(copy)).toEqual([2, 4, 6, 8, 10, 11, 12, 13]);
    await expectKept(copy, fleet);
  });

  test('forgets runs that are no longer among the newest', async () => {
    const fleet = await newFleet();
    const copy = openWorkingCopy(':memory:', KEPT);
    await follow(copy, fleet.postgres);
    for (let n = 1; n <= 20; n++) {
      await add(fleet, n);
      if (n !== 5) await file(fleet, n);
      if (n === 3) await own(fleet, 3);
      await sync(fleet);
      await follow(copy, fleet.postgres);
      expect(idsIn(copy).length).toBeLessThanOrEqual(2 * KEPT.newest + 4);
    }
    expect(idsIn(copy)).toEqual(expect.arrayContaining([3, 5, 18, 19, 20]));
    await expectKept(copy, fleet);
  });

  test('whatever happens, it has what the outbox has of the runs that it keeps', async () => {
    const step = fc.record({
      what: fc.constantFrom('add', 'add', 'add', 'file', 'file', 'hold', 'own', 'follow'),
      n: fc.integer({ min: 1, max: 15 }),
    });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60 }), async (steps) => {
        const fleet = await newFleet();
        const copy = openWorkingCopy(':memory:', KEPT);
        await follow(copy, fleet.postgres);
        const known = () => fleet.runs().length;
        for (const { what, n } of steps) {
          const run = 1 + (n % Math.max(1, known()));
          if (what === 'add') await add(fleet, known() + 1);
          else if (what === 'follow') await sync(fleet).then(() => follow(copy, fleet.postgres));
          else if (known() > 0) await { file, hold, own }[what as 'file'](fleet, run).catch(() => undefined);
        }
        await sync(fleet);
        await follow(copy, fleet.postgres);
        await expectKept(copy, fleet);
      }),
      { numRuns: 6 },
    );
  }, 120_000);

  test('cannot lead, and is replaced by a complete one if the machine delivers', async () => {
    const fleet = await newFleet();
    for (let n = 1; n <= 9; n++) {
      await add(fleet, n);
      await file(fleet, n);
    }
    await sync(fleet);
    const path = join(tempFolder(), 'fleet.db');
    const copy = openWorkingCopy(path, KEPT);
    await follow(copy, fleet.postgres);
    expect(idsIn(copy)).toHaveLength(3);
    const shared = { clock: systemClock, log: silentLog(), postgres: fleet.postgres, id: fleet.id, epoch: 1 };
    expect(() => lead({ ...shared, copy, fenced: () => undefined })).toThrow('cannot lead');
    copy.db.database.close();
    const again = openWorkingCopy(path, KEPT);
    expect(again.position()).toBeDefined();
    again.db.database.close();
    // It has another number in the fleet, so other runs are its own.
    const moved = openWorkingCopy(path, { ...KEPT, member: OWN + 1 });
    expect(moved.position()).toBeUndefined();
    await follow(moved, fleet.postgres);
    moved.db.database.close();
    const whole = openWorkingCopy(path);
    expect(whole.position()).toBeUndefined();
    await follow(whole, fleet.postgres);
    expect(idsIn(whole)).toHaveLength(9);
    whole.db.database.close();
    const less = openWorkingCopy(path, KEPT);
    expect(less.position()).toBeUndefined();
    less.db.database.close();
  });
});
