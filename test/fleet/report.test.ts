import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { beat, listMembers } from '../../src/fleet/report.js';
import type { Live } from '../../src/live.js';
import { newRun, reading, useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';
import { someInstrument, someLive } from '../support/status-server.js';

const newFleet = useFleets();

/** How much times may differ: a busy machine takes a while between two readings of a clock. */
const CLOSE_MS = 20_000;

type Fleet = Awaited<ReturnType<typeof newFleet>>;

/** A member that reports this, by a clock that is ahead by so much. */
async function reporting({ postgres, member }: Fleet, name: string, live: () => Partial<Live>, aheadMs = 0) {
  const { own, member: number, outbox } = await member(name);
  const clock = { ...systemClock, now: () => systemClock.now() + aheadMs };
  const around = { member: () => number, followed: () => undefined, listed: () => [], notebook: () => undefined };
  const shared = { journal: own, postgres, clock, ...around };
  return { number, outbox, beat: () => beat({ ...shared, live: () => someLive(live()) }) };
}

describe.skipIf(noPostgres)('the report of a machine', () => {
  test('has its folders, silence, what waits, its runs and its alarms', async () => {
    const fleet = await newFleet();
    const alarms = [{ kind: 'silence', instrument: 'balance', since: 1, text: 'balance: no file' }] as const;
    const waiting = { files: 2, first: [{ path: '/srv/balance/a.csv', since: 1, reason: 'not yet' }], unreadable: 0 };
    const balance = someInstrument('balance', { lastFileAt: Date.now() - 600_000, silenceMs: 60_000, waiting });
    const instruments = [balance, someInstrument('hplc', { line: 'stopped' })];
    const pc = await reporting(fleet, 'pc1', () => ({ instruments, alarms: [...alarms] }));
    await pc.outbox.add(newRun('a'), reading('a'));
    await pc.beat();
    const [one] = await listMembers(fleet.postgres, systemClock);
    expect(one).toMatchObject({
      ...{ name: 'pc1', leads: false, isAway: false, role: 'all' },
      alarms: [{ kind: 'silence', instrument: 'balance', text: 'balance: no file' }],
      folders: [
        {
          ...{ instrument: 'balance', watch: '/srv/balance', state: 'present', silenceMs: 60_000, waiting: 2 },
          ...{ unreadable: 0, stuck: 0, asked: 0, runs: { queued: 1, quarantined: 0, held: 0 } },
        },
        { instrument: 'hplc', state: 'stopped', lastFileAt: null, silenceMs: null },
      ],
    });
    expect(Math.abs((one?.folders[0]?.lastFileAt ?? 0) - (balance.lastFileAt ?? 0))).toBeLessThan(CLOSE_MS);
    // Its size does not depend on the files.
    const stored = await fleet.postgres.row<{ live: unknown }>('SELECT live FROM labfeed.members WHERE id = $1', [
      pc.number,
    ]);
    expect(JSON.stringify(stored?.live)).not.toContain('a.csv');
  });

  test('is sent when it changes, or when the database has another one', async () => {
    const fleet = await newFleet();
    let files = 0;
    const waiting = () => ({ files, first: [], unreadable: 0 });
    const pc = await reporting(fleet, 'pc1', () => ({
      instruments: [someInstrument('balance', { waiting: waiting() })],
    }));
    const sent: string[] = [];
    const { run } = fleet.postgres;
    fleet.postgres.run = async (text, values) => {
      sent.push(text);
      return run.call(fleet.postgres, text, values);
    };
    for (files of [1, 1, 1, 2, 2]) await pc.beat();
    expect(sent).toHaveLength(2);
    await fleet.postgres.rows("UPDATE labfeed.members SET live = '{}' WHERE id = $1", [pc.number]);
    await pc.beat();
    expect(sent).toHaveLength(3);
    const [one] = await listMembers(fleet.postgres, systemClock);
    expect(one?.folders[0]?.waiting).toBe(2);
  });

  test('one of an older version lacks what that version does not report', async () => {
    const fleet = await newFleet();
    const pc = await reporting(fleet, 'pc1', () => ({}));
    const live = someLive({ instruments: [someInstrument('balance', { lastFileAt: 7 })] });
    await fleet.postgres.run('UPDATE labfeed.members SET live = $2 WHERE id = $1', [pc.number, JSON.stringify(live)]);
    const [one] = await listMembers(fleet.postgres, systemClock);
    expect(one?.folders).toMatchObject([
      { instrument: 'balance', state: 'present', waiting: 0, unreadable: 0, runs: null, asked: null },
    ]);
  });

  test('times are those of this machine, whatever the clock of the other one shows', async () => {
    const fleet = await newFleet();
    const aheadMs = 3_600_000;
    const lastFileAt = Date.now() + aheadMs - 60_000;
    const pc = await reporting(
      fleet,
      'pc1',
      () => ({ instruments: [someInstrument('balance', { lastFileAt })] }),
      aheadMs,
    );
    await pc.beat();
    const behind = { ...systemClock, now: () => systemClock.now() - 7_200_000 };
    const [one] = await listMembers(fleet.postgres, behind);
    expect(Math.abs((one?.skewMs ?? 0) - aheadMs)).toBeLessThan(CLOSE_MS);
    expect(Math.abs(behind.now() - (one?.seenAt ?? 0))).toBeLessThan(CLOSE_MS);
    expect(Math.abs(behind.now() - 60_000 - (one?.folders[0]?.lastFileAt ?? 0))).toBeLessThan(CLOSE_MS);
  });

  test('shows who leads, until the lease is over', async () => {
    const fleet = await newFleet();
    const pc = await reporting(fleet, 'pc1', () => ({}));
    const leads = async (untilMs: number) => {
      await fleet.postgres.run(
        "UPDATE labfeed.fleet SET leader = $1, until = clock_timestamp() + $2 * interval '1 ms'",
        [...[pc.number, untilMs]],
      );
      return (await listMembers(fleet.postgres, systemClock)).map(({ name, leads: isLeader }) => `${name} ${isLeader}`);
    };
    expect(await leads(60_000)).toEqual(['pc1 true']);
    expect(await leads(-1000)).toEqual(['pc1 false']);
  });

  test('a machine that is not seen for a minute is away, and one that was installed again is listed once', async () => {
    const fleet = await newFleet();
    const [before, after] = [await reporting(fleet, 'pc1', () => ({})), await reporting(fleet, 'pc2', () => ({}))];
    for (const pc of [before, after]) await pc.beat();
    const age = (number: number) =>
      fleet.postgres.run("UPDATE labfeed.members SET seen_at = seen_at - interval '2 minutes' WHERE id = $1", [number]);
    await age(before.number);
    const list = async () =>
      (await listMembers(fleet.postgres, systemClock)).map(({ name, isAway }) => `${name} ${isAway}`);
    expect(await list()).toEqual(['pc1 true', 'pc2 false']);
    await fleet.postgres.run("UPDATE labfeed.members SET name = 'pc1' WHERE id = $1", [after.number]);
    expect(await list()).toEqual(['pc1 false']);
    await fleet.postgres.run("INSERT INTO labfeed.operations (member, number, operation) VALUES ($1, 1000, '{}')", [
      before.number,
    ]);
    expect(await list()).toEqual(['pc1 true', 'pc1 false']);
  });
});
