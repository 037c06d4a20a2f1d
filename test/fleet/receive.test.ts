import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { Postgres } from '../../src/fleet/database.js';
import { followStates } from '../../src/fleet/member.js';
import { join, readMembership } from '../../src/fleet/membership.js';
import { firstSetAside, retrySetAside } from '../../src/fleet/receive.js';
import type { NewGrowth } from '../../src/growth.js';
import { type FleetState, takeState } from '../../src/journal/forwards.js';
import type { NewRun } from '../../src/outbox.js';
import { newRun, reading, useFleets } from '../support/leading-fleet.js';
import { memoryJournal } from '../support/memory-journal.js';
import { memberOf, noPostgres } from '../support/postgres.js';

const newFleet = useFleets();

/** Notes which tables a statement has read many rows of. */
class CountingPostgres extends Postgres {
  readonly read: object[] = [];

  constructor(url: string) {
    super(memberOf(url), () => undefined);
  }

  override rows<Row extends object>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    return this.transaction(async (client) => {
      const { rows } = await client.query<Row>(text, [...values]);
      const counted = await client.query<object>(
        `SELECT $1 AS text, relname FROM pg_stat_xact_user_tables WHERE coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0) > 500`,
        [text],
      );
      this.read.push(...counted.rows);
      return rows;
    });
  }
}

/** More runs like the first one, of this member. */
async function fillWith(count: number, member: number, postgres: Postgres): Promise<void> {
  await postgres.transaction(async (client) => {
    await client.query("SELECT set_config('labfeed.seq', '1', true)");
    await client.query(
      `INSERT INTO labfeed.runs SELECT filled.* FROM labfeed.runs AS model, generate_series(10, $1) AS n, LATERAL
         jsonb_populate_record(model, jsonb_build_object('id', n, 'sha256', n, 'reference', n)) AS filled WHERE model.id = 1`,
      [count + 9],
    );
    await client.query(
      'INSERT INTO labfeed.origins (member, run, filed) SELECT $1, n, n FROM generate_series(10, $2) AS n',
      [member, count + 9],
    );
  });
  await postgres.rows('ANALYZE');
}

describe.skipIf(noPostgres)('operations of members', () => {
  test('take effect once, whatever is sent again, and equal files of two members are one run', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), await fleet.member('pc2')];
    await one.outbox.add(newRun('a'), reading('a'));
    await one.outbox.add(newRun('b'), reading('\0b'));
    await two.outbox.add(newRun('a', '/elsewhere'), reading('a'));
    await two.outbox.add(newRun('c'), reading('c'));
    for (let n = 0; n < 3; n++) {
      await one.send();
      await two.send();
      await fleet.receive();
    }
    expect(fleet.runs().map(({ path }) => path)).toEqual(['pc1:/data/a', 'pc1:/data/b', 'pc2:/data/c']);
    expect(fleet.comments()).toHaveLength(3);
    expect(await fleet.postgres.rows('SELECT 1 FROM labfeed.operations')).toEqual([]);
    const origins = await fleet.postgres.rows('SELECT run, filed FROM labfeed.origins WHERE member = $1 ORDER BY run', [
      two.member,
    ]);
    expect(origins).toEqual([
      { run: 1, filed: 1 },
      { run: 2, filed: 3 },
    ]);
  });

  test('one that fails is set aside with the reason, the others continue, and it is tried again', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    await one.outbox.add(newRun('a'), reading('a'));
    await one.outbox.add(newRun('b'), reading('b'));
    await one.outbox.add(newRun('c'), reading('c'));
    one.own.store.db.run`UPDATE forwards SET operation = json_remove(operation, '$.run.mapping') WHERE id = 2`;
    await one.send();
    await fleet.receive();
    expect(fleet.runs().map(({ path }) => path)).toEqual(['pc1:/data/a', 'pc1:/data/c']);
    expect(fleet.failures()).toMatchObject([{ number: 2 }]);
    expect(firstSetAside(fleet.journal.store.db)).toMatchObject({ member: 'pc1', number: 2, isGrowth: false });
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toMatchObject([{ number: 2 }]);
    fleet.journal.store.db.run`UPDATE failures SET operation = json_set(operation, '$.run.mapping', 'm')`;
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toEqual([]);
    expect(fleet.journal.store.db.value`SELECT number FROM received`).toBe(3);
    expect(fleet.runs().map(({ path }) => path)).toEqual(['pc1:/data/a', 'pc1:/data/c', 'pc1:/data/b']);
  });

  test('a file on a share that two members revise stays one run, in either order of arrival', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), await fleet.member('pc2')];
    const version = (content: string, last?: string): NewRun =>
      newRun(content, '/share/x', {
        revises: { last: last === undefined ? undefined : { sha256: last.padStart(64, 'f'), copy: '' } },
      });
    for (const each of [one, two]) await each.outbox.add(version('a'), reading('a'));
    await one.send();
    await fleet.receive();
    await two.send();
    await fleet.receive();
    await two.outbox.add(version('b', 'a'), reading('b'));
    await two.send();
    await fleet.receive();
    await one.outbox.add(version('b', 'a'), reading('b'));
    await one.send();
    await fleet.receive();
    expect(fleet.runs()).toMatchObject([{ id: 1, sha256: 'b'.padStart(64, 'f') }]);
  });

  test('a growing file with the same generation on two members is two runs, and each line is taken once', async () => {
    const fleet = await newFleet();
    const members = [await fleet.member('pc1'), await fleet.member('pc2')];
    const grown = (n: number, text: string): NewGrowth => ({
      ...{ day: '', run: newRun(`g${n}`, '/data/log'), reading: reading(text), rows: 1, accumulated: '{}' },
    });
    const batch = { generation: 1, lines: 1, tail: new Uint8Array([0, 255]), range: 'line 1', notes: [] };
    for (const [n, member] of members.entries()) {
      await member.growths.append({ ...batch, from: 0, upto: 10, parts: [grown(n, `${n} first`)] });
      await member.growths.append({ ...batch, from: 10, upto: 20, parts: [grown(n, `${n} second`)] });
      await member.growths.flush(1);
      await member.growths.report(1, 'the file was renamed', false);
    }
    for (let n = 0; n < 2; n++) {
      for (const member of members) await member.send();
      await fleet.receive();
    }
    expect(fleet.runs()).toHaveLength(2);
    expect(fleet.comments().sort()).toEqual(['0 first', '0 second', '1 first', '1 second']);
    // Nothing but its number shows that this was applied before.
    const reports = fleet.journal.store.db.values`SELECT run FROM history WHERE event = 'fileChanged'`;
    expect(reports).toHaveLength(2);
  });

  test('a growing file on a share that two members follow is one run, and each line is taken once', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), await fleet.member('pc2')];
    const take = ({ growths }: typeof one, generation: number, from: number, upto: number, day = '') =>
      growths.append({
        ...{ generation, from, upto, lines: upto, tail: new Uint8Array([upto]), range: '', notes: [] },
        parts: [
          {
            ...{ day, run: newRun(`g${day}`, '/share/log'), rows: 1, accumulated: '{}' },
            reading: reading(`${day}${from} to ${upto}`),
          },
        ],
      });
    await take(one, 1, 0, 10);
    await one.forward();
    await take(two, 5, 0, 7);
    // It has lines that the fleet has, and others: pc1 will hand those over.
    await take(two, 5, 7, 15);
    await take(two, 5, 15, 30);
    await two.forward();
    expect(fleet.comments()).toEqual(['0 to 10']);
    expect(firstSetAside(fleet.journal.store.db)).toBeUndefined();
    await take(one, 1, 10, 30);
    await one.forward();
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toEqual([]);
    // Whoever continues, also with the first lines of another day.
    await take(two, 5, 30, 40, '2026-01-02');
    await two.forward();
    await two.growths.report(5, 'the file was read to its end', true);
    await two.forward();
    await take(one, 1, 30, 35, '2026-01-02');
    await take(one, 1, 35, 50, '2026-01-02');
    await one.forward();
    await take(two, 5, 40, 50, '2026-01-02');
    await two.forward();
    await retrySetAside(fleet.journal);
    expect(fleet.comments()).toEqual(['0 to 10', '10 to 30', '2026-01-0230 to 40', '2026-01-0240 to 50']);
    expect(fleet.failures()).toEqual([]);
    expect(fleet.runs()).toHaveLength(2);
    const origins = fleet.journal.store.db.rows`SELECT member, run, filed FROM origins ORDER BY filed, member`;
    expect(origins).toMatchObject([{ filed: 1 }, { filed: 1 }, { filed: 2 }, { filed: 2 }]);
  });

  test('lines that the other member of a share never hands over wait for a decision after a day', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), await fleet.member('pc2')];
    const take = ({ growths }: typeof one, from: number, upto: number) =>
      growths.append({
        ...{ generation: 1, from, upto, lines: upto, tail: new Uint8Array(), range: '', notes: [] },
        parts: [{ day: '', run: newRun('g', '/share/log'), rows: 1, accumulated: '{}', reading: reading(`${upto}`) }],
      });
    await take(one, 0, 10);
    await one.forward();
    await fleet.journal.outbox.record(
      1,
      { kind: 'intended', server: 's', floor: 1, at: 1 },
      { kind: 'created', experiment: 7, found: false },
      { kind: 'finished' },
    );
    await take(two, 0, 15);
    await two.forward();
    await retrySetAside(fleet.journal);
    expect(fleet.runs()).toMatchObject([{ parked: null }]);
    fleet.journal.store.db.run`UPDATE failures SET at = at - 25 * 3600000`;
    await retrySetAside(fleet.journal);
    expect(fleet.runs()).toMatchObject([{ parked: 'held' }]);
    expect(fleet.comments()).toEqual(['10']);
    await fleet.journal.requests.decide({ kind: 'refile', run: 1 }, { path: '', has: 'otherBytes' });
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toEqual([]);
    expect(fleet.comments()).toContain('15');
  });

  test('lines of a file whose experiment another journal filed wait for a decision, in their order', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    const part = (text: string): NewGrowth => ({
      ...{ day: '', run: newRun('g', '/data/log'), reading: reading(text), rows: 1, accumulated: '{}' },
    });
    const batch = { generation: 1, lines: 1, tail: new Uint8Array(), range: 'line 1', notes: [] };
    // Filed by a member whose journal was lost.
    await fleet.journal.outbox.add(newRun('g', 'pc1:/data/log'), reading('before'));
    await fleet.journal.outbox.record(
      1,
      { kind: 'intended', server: 's', floor: 1, at: 1 },
      { kind: 'created', experiment: 7, found: false },
      { kind: 'finished' },
    );
    await one.growths.append({ ...batch, from: 0, upto: 10, parts: [part('first')] });
    // Of another day, whose run is not held.
    const next = { ...part('second'), day: '2026-01-02', run: newRun('h', '/data/log') };
    await one.growths.append({ ...batch, from: 10, upto: 20, parts: [next] });
    await one.send();
    await fleet.receive();
    expect(fleet.runs()).toMatchObject([{ parked: 'held' }]);
    expect(fleet.failures()).toHaveLength(2);
    // The held run has an alarm already.
    expect(firstSetAside(fleet.journal.store.db)).toBeUndefined();
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toHaveLength(2);
    await fleet.journal.requests.decide({ kind: 'refile', run: 1 }, { path: '', has: 'otherBytes' });
    await retrySetAside(fleet.journal);
    expect(fleet.failures()).toEqual([]);
    expect(fleet.comments().filter((text) => text !== 'before')).toEqual(['first', 'second']);
  });

  test('a journal that was restored from a copy is another member, so that no operation is taken for an older one', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    await one.outbox.add(newRun('a'), reading('a'));
    await one.send();
    await fleet.receive();
    const again = () => join(one.own, memberOf(fleet.url, 'pc1'), fleet.id, fleet.postgres);
    expect(await again()).toMatchObject({ member: one.member });
    one.own.store.db.run`UPDATE sqlite_sequence SET seq = 0 WHERE name = 'forwards'`;
    await fleet.postgres.run("UPDATE labfeed.members SET seen_at = '-infinity'");
    expect((await again()).member).not.toBe(one.member);
    expect(readMembership(one.own.store.db)?.fleet).toBe(fleet.id);
  });

  test('operations that are sent while journal and database are compared do not make it another member', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    const ask = fleet.postgres.row.bind(fleet.postgres);
    vi.spyOn(fleet.postgres, 'row').mockImplementationOnce(async (...question) => {
      await one.outbox.add(newRun('a'), reading('a'));
      await one.send();
      return ask(...question);
    });
    expect(await join(one.own, memberOf(fleet.url, 'pc1'), fleet.id, fleet.postgres)).toMatchObject({
      member: one.member,
    });
    expect(one.own.store.db.value`SELECT importing FROM membership`).toBeUndefined();
  });

  test('two machines with one name are refused, and so is a machine of another fleet', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    await expect(fleet.member('pc1')).rejects.toThrow('another machine of the fleet has the name pc1');
    await expect(join(one.own, memberOf(fleet.url, 'pc1'), 'other', fleet.postgres)).rejects.toThrow(
      'belongs to another fleet',
    );
  });

  test('however many runs a fleet has, handing over and following read only rows of the runs that change', async () => {
    const fleet = await newFleet();
    const one = await fleet.member('pc1');
    await one.outbox.add(newRun('a'), reading('a'));
    await one.forward();
    const states = { name: 'pc1', member: () => one.member, rescan: () => undefined, rejoin: async () => undefined };
    await followStates({ journal: one.own, postgres: fleet.postgres, ...states });
    await fillWith(20_000, one.member, fleet.postgres);
    await one.outbox.add(newRun('b'), reading('b'));
    const counting = new CountingPostgres(fleet.url);
    onTestFinished(() => counting.close());
    await one.forward();
    await fleet.journal.outbox.record(2, { kind: 'intended', server: 's', floor: 1, at: 1 });
    await followStates({ journal: one.own, postgres: counting, ...states });
    const changes = [
      { t: 'runs', o: 'u', k: { id: 1 }, v: { attempts: 1 } },
      { t: 'history', o: 'i', v: { id: 1000, run: 1, at: 1, event: 'read' } },
    ];
    await counting.rows("SELECT set_config('labfeed.seq', '9', true), labfeed.apply($1)", [JSON.stringify(changes)]);
    expect(counting.read).toEqual([]);
  });

  test('the state of an older version does not count for the file that is there now', async () => {
    const own = memoryJournal(systemClock);
    await own.outbox.add(newRun('b'), reading('b'));
    const done = { own: 1, step: 'done', parked: null, failure: null, reason: null, server: 's', experiment: 5 };
    const state = (content: string): FleetState => ({
      ...{ ...done, sha256: content.padStart(64, 'f'), mapping: 'm', remap: null, isErased: false },
    });
    const step = () => own.store.db.value<string>`SELECT step FROM runs WHERE id = 1`;
    await own.store.commit(() => takeState(own.store, state('a')));
    expect(step()).toBe('pending');
    await own.store.commit(() => takeState(own.store, state('b')));
    expect(step()).toBe('done');
  });

  test('a growing file is done for its member once the leader has filed all lines, also those of other members', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), await fleet.member('pc2')];
    const { db, commit } = fleet.journal.store;
    const take = async ({ growths, forward }: typeof one, from: number, upto: number) => {
      await growths.append({
        ...{ generation: 1, from, upto, lines: upto, tail: new Uint8Array([upto]), range: '', notes: [] },
        parts: [
          { ...{ day: '', run: newRun('g', '/share/log'), rows: 1, accumulated: '{}' }, reading: reading(`${upto}`) },
        ],
      });
      await growths.flush(1);
      await forward();
    };
    const steps = async () => {
      await commit(() => void db.run`UPDATE runs SET step = 'done'`);
      for (const { own, member } of [one, two])
        await followStates({
          ...{ journal: own, postgres: fleet.postgres, name: 'pc', member: () => member },
          ...{ rescan: () => undefined, rejoin: async () => undefined },
        });
      return [one, two].map(({ own }) => own.store.db.value<string>`SELECT step FROM runs`);
    };
    await take(one, 0, 10);
    await take(one, 10, 20);
    await take(two, 0, 10);
    // Both have lines that they had not handed over when they last asked, and the leader sends nothing more.
    expect(await steps()).toEqual(['done', 'done']);
    await take(two, 10, 20);
    expect(await steps()).toEqual(['done', 'done']);
  });
});
