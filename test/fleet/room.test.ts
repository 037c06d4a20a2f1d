import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createMember } from '../../src/fleet/member.js';
import { useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';

const newFleet = useFleets();

describe.skipIf(noPostgres)('the reading of files', () => {
  /** A machine on which this many operations wait; its database can be made to fail. */
  async function startFull(operations: number) {
    const { postgres, member: join } = await newFleet();
    const { own, member, spool } = await join('pc1');
    const { db } = own.store;
    for (let n = 0; n < operations; n++) db.run`INSERT INTO forwards (operation) VALUES ('{}')`;
    let answer: () => void = () => undefined;
    const answered = new Promise<void>((resolve) => {
      answer = resolve;
    });
    let isAway = false;
    const transaction = postgres.transaction.bind(postgres);
    vi.spyOn(postgres, 'transaction').mockImplementation(async (...args) => {
      await answered;
      if (isAway) throw new Error('connection refused');
      return transaction(...args);
    });
    const running = createMember({
      ...{
        journal: own,
        postgres,
        name: 'pc1',
        spool,
        clock: systemClock,
        log: silentLog(),
        listEveryMs: 0,
      },
      ...{ rejoin: async () => undefined, rescan: () => undefined, followed: () => undefined },
      ...{ member: () => member, notebook: () => undefined, listed: () => [] },
      live: () => ({ version: '1', instruments: [], alarms: [] }) as never,
    });
    let isOver = false;
    onTestFinished(() => {
      isOver = true;
      answer();
      return running.stop();
    });
    let read = false;
    const reading = running
      .room(() => isOver)
      .then(() => {
        read = true;
      });
    await new Promise((resolve) => setImmediate(resolve));
    return {
      running,
      reading,
      isRead: () => read,
      answer: (away = false) => {
        isAway = away;
        answer();
      },
    };
  }

  test('waits while many operations wait, until they are sent', async () => {
    const { isRead, reading, running, answer } = await startFull(100);
    expect(isRead()).toBe(false);
    answer();
    await reading;
    expect(running.kept()).toBeLessThan(100);
  });

  test('goes on while the database is away', async () => {
    const { reading, running, answer } = await startFull(100);
    answer(true);
    await reading;
    expect(running.kept()).toBe(100);
  });

  test('goes on at once if few wait, or if nothing is to be read any more', async () => {
    expect((await startFull(99)).isRead()).toBe(true);
    const { running } = await startFull(100);
    let isClosed = false;
    const last = running.room(() => isClosed);
    isClosed = true;
    await last;
  });
});
