import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { sendRequests } from '../../src/commands/decisions.js';
import { readDepartures } from '../../src/fleet/imports.js';
import { tidy } from '../../src/fleet/leader.js';
import { forward } from '../../src/fleet/member.js';
import { join as joinFleet } from '../../src/fleet/membership.js';
import { Connection } from '../../src/journal/database.js';
import { type Journal, openJournal } from '../../src/journal/journal.js';
import { readWholeRun } from '../../src/journal/whole-runs.js';
import { newRun, reading, useFleets } from '../support/leading-fleet.js';
import { memoryJournal } from '../support/memory-journal.js';
import { memberOf, noPostgres } from '../support/postgres.js';
import { tempFolder } from '../support/temp-folder.js';

const newFleet = useFleets();

const SERVER = 'http://notebook';

/** A run of this journal that was filed as this experiment. */
async function file({ outbox, store: { db } }: Pick<Journal, 'outbox' | 'store'>, content: string, experiment: number) {
  const { run } = await outbox.add(newRun(content), reading(content));
  db.run`UPDATE runs SET step = 'done', server = ${SERVER}, experiment = ${experiment} WHERE id = ${run}`;
  db.run`UPDATE comments SET comment = ${experiment * 10} WHERE run = ${run}`;
  return run;
}

/** The runs of the fleet, as they are in PostgreSQL. */
const states = `SELECT path, step, parked, experiment, (SELECT count(*) FROM labfeed.history WHERE run = runs.id) > 0 AS told
  FROM labfeed.runs ORDER BY id`;

describe.skipIf(noPostgres)('a machine that joins with runs', () => {
  test('hands over filed and open runs with their history, and what it knows about the notebook', async () => {
    const fleet = await newFleet();
    const own = memoryJournal(systemClock);
    await file(own, 'a', 1);
    await own.outbox.add(newRun('b'), {
      draft: { ...reading('b').draft, body: `<p>labfeed x journal:${own.outbox.id}</p>` },
    });
    own.store.db.run`INSERT INTO servers (url, highest, dialect) VALUES (${SERVER}, 17, 'v2')`;
    own.store.db.run`INSERT INTO shapes (instrument, mapping, shapes, run) VALUES ('balance', 'm', '[]', 1)`;
    const pc = await fleet.member('pc1', own);
    await pc.forward();
    expect(await fleet.postgres.rows(states)).toEqual([
      { path: 'pc1:/data/a', step: 'done', parked: null, experiment: 1, told: true },
      { path: 'pc1:/data/b', step: 'pending', parked: null, experiment: null, told: true },
    ]);
    expect(await fleet.postgres.row('SELECT highest, dialect FROM labfeed.servers')).toEqual({
      highest: 17,
      dialect: 'v2',
    });
    expect(await fleet.postgres.row('SELECT instrument, run FROM labfeed.shapes')).toEqual({
      instrument: 'balance',
      run: 1,
    });
    expect(await fleet.postgres.row('SELECT comment FROM labfeed.comments WHERE run = 1')).toEqual({ comment: 10 });
    expect(await fleet.postgres.row('SELECT body FROM labfeed.drafts WHERE run = 2')).toEqual({
      body: `<p>labfeed x journal:${fleet.id}</p>`,
    });
    expect(own.store.db.value`SELECT importing FROM membership`).toBeUndefined();
    expect(fleet.failures()).toEqual([]);
  });

  test('learns which runs another one has filed as other experiments, and shares the others', async () => {
    const fleet = await newFleet();
    const [one, two] = [memoryJournal(systemClock), memoryJournal(systemClock)];
    for (const [n, content] of ['a', 'b', 'c'].entries()) await file(one, content, n + 1);
    await one.outbox.add(newRun('d'), reading('d'));
    await file(two, 'a', 1);
    await file(two, 'b', 12);
    await two.outbox.add(newRun('c'), reading('c'));
    await file(two, 'd', 14);
    await (await fleet.member('pc1', one)).forward();
    const second = await fleet.member('pc2', two);
    await second.forward();
    const runs = await fleet.postgres.rows<{ experiment: number }>(states);
    expect(runs).toMatchObject([
      { path: 'pc1:/data/a', parked: null, experiment: 1 },
      { path: 'pc1:/data/b', parked: null, experiment: 2 },
      { path: 'pc1:/data/c', parked: null, experiment: 3 },
      { path: 'pc2:/data/d', step: 'done', parked: null, experiment: 14 },
      { path: 'pc2:/data/b', parked: 'held', experiment: 12 },
    ]);
    const held = await fleet.postgres.row<{ reason: string }>("SELECT reason FROM labfeed.runs WHERE parked = 'held'");
    expect(held?.reason).toContain('experiment 12 has the same file as experiment 2 of run 2');
    expect(
      await fleet.postgres.rows('SELECT run, filed FROM labfeed.origins WHERE member = $1 ORDER BY run', [
        second.member,
      ]),
    ).toEqual([1, 5, 3, 4].map((filed, n) => ({ run: n + 1, filed })));
    expect(fleet.failures()).toEqual([]);
  });

  test('waits for a run that is being sent, and then takes what came of it', async () => {
    const fleet = await newFleet();
    const [one, two] = [await fleet.member('pc1'), memoryJournal(systemClock)];
    await one.outbox.add(newRun('a'), reading('a'));
    await one.forward();
    await file(two, 'a', 7);
    fleet.journal.store.claimed.add(1);
    const second = await fleet.member('pc2', two);
    await second.forward();
    expect(await fleet.postgres.rows(states)).toMatchObject([{ step: 'pending', experiment: null }]);
    fleet.journal.store.claimed.delete(1);
    await second.forward();
    expect(await fleet.postgres.rows(states)).toMatchObject([{ step: 'done', experiment: 7 }]);
  });

  test('brings an experiment that the fleet took for a spare, and the fleet does not use it for another run', async () => {
    const fleet = await newFleet();
    const own = memoryJournal(systemClock);
    await file(own, 'a', 7);
    const { db, commit } = fleet.journal.store;
    await commit(() => {
      for (const spare of [7, 8]) db.run`INSERT INTO spares (server, experiment) VALUES (${SERVER}, ${spare})`;
    });
    await (await fleet.member('pc1', own)).forward();
    expect(await fleet.postgres.rows('SELECT experiment FROM labfeed.spares')).toEqual([{ experiment: 8 }]);
  });

  test('leaves only once none of its runs is being sent', async () => {
    const fleet = await newFleet();
    const pc = await fleet.member('pc1');
    for (const content of ['a', 'b']) await pc.outbox.add(newRun(content), reading(content));
    await pc.forward();
    const { claimed } = fleet.journal.store;
    const received = async () =>
      (await fleet.postgres.row<{ number: number }>('SELECT number FROM labfeed.received'))?.number;
    const before = await received();
    claimed.add(1);
    const { db, commit } = pc.own.store;
    await commit(() => db.run`INSERT INTO forwards (operation) VALUES ('{"kind":"leave"}')`);
    await pc.forward();
    expect(await received()).toBe(before);
    expect(fleet.runs()).toMatchObject([{ path: 'pc1:/data/a' }]);
    claimed.delete(1);
    await pc.forward();
    expect(await received()).toBe((before ?? 0) + 1);
    expect(fleet.runs()).toEqual([]);
    expect([...readDepartures(fleet.journal.store.db, pc.member, 'pc1')].map(({ own }) => own)).toEqual([1, 2]);
  });

  test('takes along a filed run whose raw file is not attached, but not while it is attached', async () => {
    const fleet = await newFleet();
    const pc = await fleet.member('pc1');
    for (const content of ['a', 'b']) await pc.outbox.add(newRun(content), reading(content));
    await pc.forward();
    const { db, commit, attaching } = fleet.journal.store;
    await commit(() => {
      db.run`UPDATE runs SET step = 'done', experiment = id`;
      db.run`INSERT INTO attachments (run, n, name, path, sha256, size, refused, attempts, kind)
        VALUES (1, 1, 'a', 'pc1:/data/a', 'f', 1, 0, 0, 'raw')`;
    });
    attaching.add(1);
    await pc.own.store.commit(() => pc.own.store.db.run`INSERT INTO forwards (operation) VALUES ('{"kind":"leave"}')`);
    await pc.forward();
    expect(fleet.runs()).toHaveLength(2);
    attaching.delete(1);
    await pc.forward();
    expect(fleet.runs()).toMatchObject([{ path: 'pc1:/data/b' }]);
    const left = [...readDepartures(db, pc.member, 'pc1')].find(({ own }) => own === 1);
    expect(left?.rows['attachments']).toMatchObject([{ upload: null, path: '/data/a' }]);
  });

  test('hands over each of many runs once, however often it is interrupted', async () => {
    const fleet = await newFleet();
    const own = memoryJournal(systemClock);
    const runs = Array.from({ length: 120 }, (_, n) => n + 1);
    for (const n of runs) await file(own, `run${n}`, n);
    let isMore = true;
    while (isMore) {
      const { member, spool } = await fleet.member('pc1', own);
      isMore = await forward({ journal: own, postgres: fleet.postgres, member: () => member, spool });
    }
    while ((await fleet.receive()) > 0);
    const imported = await fleet.postgres.rows(
      'SELECT run, experiment FROM labfeed.origins JOIN labfeed.runs ON id = filed ORDER BY run',
    );
    expect(imported).toEqual(runs.map((run) => ({ run, experiment: run })));
    // Besides, what the journal knows apart from runs: first, and once the fleet has all of them.
    const operations = own.store.db.value<number>`SELECT seq FROM sqlite_sequence WHERE name = 'forwards'`;
    expect(operations).toBe(runs.length + 2);
  });

  test('that has runs and was not moved is refused', async () => {
    const fleet = await newFleet();
    const own = memoryJournal(systemClock);
    await file(own, 'a', 1);
    await expect(joinFleet(own, memberOf(fleet.url), fleet.id, fleet.postgres)).rejects.toThrow(
      'has 1 run that the fleet does not know',
    );
  });

  test('takes along what it brought when it leaves, and the fleet keeps nothing that it could send', async () => {
    const fleet = await newFleet();
    const own = memoryJournal(systemClock);
    await file(own, 'a', 1);
    await own.outbox.add(newRun('b', '/data/b', { copy: '/data/b' }), reading('b'));
    await own.outbox.add(newRun('c'), reading('c'));
    const { db } = own.store;
    db.run`INSERT INTO versions (run, n, sha256, size, modified_ms, at, unread) VALUES (2, 1, 'x', 1, 1, 1, 3)`;
    db.run`INSERT INTO paths (instrument, path, run) VALUES ('balance', '/data/b', 2)`;
    db.run`INSERT INTO generations (id, upto, lines, tail) VALUES (4, 10, 2, x'00ff')`;
    db.run`
      INSERT INTO growths (run, generation, day, upto, lines, rows, accumulation, grown_at)
        VALUES (3, 4, '', 10, 2, 2, '{}', 1)`;
    const before = [1, 2, 3].map((run) => readWholeRun(db, run));
    const pc = await fleet.member('pc1', own);
    await pc.forward();
    const other = await fleet.member('pc2');
    await other.outbox.add(newRun('c', '/elsewhere'), reading('c'));
    await other.outbox.add(newRun('d'), reading('d'));
    await other.forward();
    await own.store.commit(() => db.run`INSERT INTO forwards (operation) VALUES ('{"kind":"leave"}')`);
    await pc.forward();
    const left = [...readDepartures(fleet.journal.store.db, pc.member, 'pc1')].sort((a, b) => a.own - b.own);
    expect(left.map(({ isShared }) => isShared)).toEqual([false, false, true]);
    // The fleet has not read whether the comment is there.
    const comparable = (whole: ReturnType<typeof readWholeRun>) => ({
      ...whole,
      unread: [],
      isShared: undefined,
      rows: { ...whole?.rows, comments: whole?.rows['comments']?.map(({ text }) => text) },
    });
    for (const n of [0, 1, 2]) expect(comparable(left[n])).toEqual(comparable(before[n]));
    expect((await fleet.postgres.rows<{ path: string }>(states)).map(({ path }) => path)).toEqual([
      ...['pc1:/data/a', 'pc1:/data/c', 'pc2:/data/d'],
    ]);
    // They stay until it has them, which is when it deletes itself.
    const departures = () => fleet.postgres.rows('SELECT run FROM labfeed.departures ORDER BY run');
    await tidy(fleet.postgres, fleet.journal);
    expect(await departures()).toEqual([{ run: 2 }]);
    await fleet.postgres.run('DELETE FROM labfeed.members WHERE id = $1', [pc.member]);
    await tidy(fleet.postgres, fleet.journal);
    expect(await departures()).toEqual([]);
  });
});

test.skipIf(noPostgres)('changes are kept for machines that were off for some days', async () => {
  const fleet = await newFleet();
  const pc = await fleet.member('pc1');
  for (const content of ['a', 'b', 'c']) {
    await pc.outbox.add(newRun(content), reading(content));
    await pc.forward();
  }
  const kept = async () =>
    (await fleet.postgres.rows<{ seq: number }>('SELECT seq FROM labfeed.changes ORDER BY 1')).map(({ seq }) => seq);
  const [first = 0, second = 0, ...others] = await kept();
  await tidy(fleet.postgres, fleet.journal);
  expect(await kept()).toEqual([first, second, ...others]);
  await fleet.postgres.run("UPDATE labfeed.changes SET at = at - interval '8 days' WHERE seq = $1", [first]);
  await tidy(fleet.postgres, fleet.journal);
  expect(await kept()).toEqual([second, ...others]);
  await fleet.postgres.run('UPDATE labfeed.changes SET seq = seq - 100000 WHERE seq = $1', [second]);
  await tidy(fleet.postgres, fleet.journal);
  expect(await kept()).toEqual(others);
});

describe.skipIf(noPostgres)('the database was restored from a backup', () => {
  test('a member hands over what the database has lost, and nothing that it has', async () => {
    const fleet = await newFleet();
    const pc = await fleet.member('pc1');
    await pc.outbox.add(newRun('a'), reading('a'));
    await pc.forward();
    await pc.outbox.add(newRun('b'), reading('b'));
    await pc.forward();
    // As after a restore: the second operation was never there.
    await fleet.journal.store.commit(() => {
      fleet.journal.store.db.run`DELETE FROM runs WHERE id = 2`;
      fleet.journal.store.db.run`DELETE FROM origins WHERE run = 2`;
      fleet.journal.store.db.run`UPDATE received SET number = 1`;
    });
    await joinFleet(pc.own, memberOf(fleet.url), fleet.id, fleet.postgres);
    await pc.forward();
    expect(fleet.runs().map(({ path }) => path)).toEqual(['pc1:/data/a', 'pc1:/data/b']);
    expect(pc.own.store.db.value`SELECT importing FROM membership`).toBeUndefined();
  });

  test('a member that has not noticed sends nothing under a number that belongs to another one now', async () => {
    const fleet = await newFleet();
    const pc = await fleet.member('pc1');
    await pc.outbox.add(newRun('a'), reading('a'));
    await fleet.postgres.run("UPDATE labfeed.members SET instance = 'another'");
    const { own: journal, member, spool } = pc;
    expect(await forward({ journal, postgres: fleet.postgres, member: () => member, spool })).toBe(true);
    expect(await fleet.postgres.rows('SELECT 1 FROM labfeed.operations')).toEqual([]);
    expect(journal.store.db.value`SELECT count(*) FROM forwards`).toBe(1);
  });
});

test('without its daemon, a member decides nothing about runs, which have other numbers in its own journal', async () => {
  const path = `${tempFolder()}/journal.db`;
  const journal = await openJournal(path, systemClock);
  await journal.outbox.add(newRun('a'), { problem: new Error('unreadable') as never });
  await journal.close();
  const ended = sendRequests(path, async () => {
    // The member knows the fleet from here on: its runs are not those of this journal.
    const own = await openJournal(path, systemClock);
    own.store.db.run`INSERT INTO membership (instance, name, fleet, member) VALUES ('i', 'pc1', 'f', 1)`;
    await own.close();
    return [{ kind: 'ignore', run: 1 }];
  });
  await expect(ended).resolves.toMatchObject([{ outcome: 'waiting' }]);
  const after = await openJournal(path, systemClock);
  expect(new Connection(after.store.db.database).value`SELECT parked FROM runs`).toBe('quarantined');
  await after.close();
});
