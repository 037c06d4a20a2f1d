import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { isReporter } from '../../src/fleet/alarm-claims.js';
import { createMember } from '../../src/fleet/member.js';
import type { Notice } from '../../src/model.js';
import { Spool } from '../../src/spool.js';
import { useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';
import { silentLog } from '../support/silent-log.js';
import { someInstrument, someLive } from '../support/status-server.js';
import { tempFolder } from '../support/temp-folder.js';

const newFleet = useFleets();

const SHARE = 'balance: the folder /srv/share is missing: ENOENT';
const notice = (state: Notice['state'], since: number, text = SHARE): Notice => ({
  ...{ channel: 'webhook', kind: 'folder', instrument: 'balance', at: since, attempts: 0, dueAt: 0 },
  ...{ state, since, text: state === 'over' ? `cleared after 5 min: ${text}` : text },
});

describe.skipIf(noPostgres)('the list of machines', () => {
  test('has the folders and alarms of each', async () => {
    const { postgres, member } = await newFleet();
    const { own, member: number } = await member('pc1');
    const alarms = [{ kind: 'folder', instrument: 'balance', since: 1, text: SHARE }] as const;
    const instruments = [someInstrument('balance', { lastFileAt: 7 }), someInstrument('hplc', { line: 'stopped' })];
    const machine = createMember({
      ...{ journal: own, postgres, name: 'pc1', spool: new Spool(tempFolder()), clock: systemClock, log: silentLog() },
      ...{ member: () => number, rejoin: async () => undefined, rescan: () => undefined, followed: () => undefined },
      ...{ live: () => someLive({ instruments, alarms: [...alarms] }), listed: () => [], listEveryMs: 0 },
    });
    onTestFinished(() => machine.stop());
    await vi.waitFor(() => expect(machine.members()).toHaveLength(1), 20_000);
    expect(machine.members()).toMatchObject([
      {
        ...{ name: 'pc1', leads: false, alarms: [SHARE] },
        folders: [
          { instrument: 'balance', watch: '/srv/balance', state: 'present', lastFileAt: 7, waiting: 0 },
          { instrument: 'hplc', state: 'stopped' },
        ],
      },
    ]);
  });
});

describe.skipIf(noPostgres)('alarms of a fleet', () => {
  test('what several machines see is reported once, and over when it is over for the last of them', async () => {
    const { postgres, member } = await newFleet();
    const [one, two, three] = [await member('pc1'), await member('pc2'), await member('pc3')];
    const reports = (pc: { member: number }, state: Notice['state'], since = 1, text = SHARE) =>
      isReporter(postgres, pc.member, notice(state, since, text));
    expect(await Promise.all([one, two].map((pc) => reports(pc, 'raised')))).toEqual(
      expect.arrayContaining([true, false]),
    );
    // Another text is another trouble.
    expect(await reports(three, 'raised', 1, 'balance: the folder /srv/share is unreadable')).toBe(true);
    expect(await reports(one, 'over')).toBe(false);
    // To another channel, or once more after a failure.
    expect(await reports(one, 'over')).toBe(false);
    expect(await reports(two, 'over')).toBe(true);
    expect(await reports(two, 'over')).toBe(true);
    expect(await reports(one, 'raised', 2)).toBe(true);
    expect(await reports(two, 'raised', 2)).toBe(false);
    expect(await reports(two, 'raised', 2)).toBe(false);
  });

  test('numbers in a text do not make it another trouble', async () => {
    const { postgres, member } = await newFleet();
    const [one, two] = [await member('pc1'), await member('pc2')];
    const both = async (kind: Notice['kind'], instrument: string | undefined, texts: readonly [string, string]) => {
      const told: boolean[] = [];
      for (const [n, text] of texts.entries())
        told.push(
          await isReporter(postgres, [one, two][n]?.member ?? 0, { ...notice('raised', 1, text), kind, instrument }),
        );
      return told;
    };
    const files = [
      'balance: 1 run is quarantined; the latest is a',
      'balance: 2 runs are quarantined; the latest is a',
    ];
    expect(await both('quarantine', 'balance', files as [string, string])).toEqual([true, false]);
    expect(await both('operation', undefined, ['operation 1 of pc1', 'operation 2 of pc1'])).toEqual([true, false]);
    expect(await both('held', undefined, ['nothing is sent: 3', 'nothing is sent: 4'])).toEqual([true, false]);
    // Another folder is.
    expect(
      await both('folder', 'hplc', ['hplc: the folder /srv/1 is gone', 'hplc: the folder /srv/2 is gone']),
    ).toEqual([true, true]);
  });

  test('a machine that was not seen for long does not keep others from reporting', async () => {
    const { postgres, member } = await newFleet();
    const [one, two] = [await member('pc1'), await member('pc2')];
    expect(await isReporter(postgres, one.member, notice('raised', 1))).toBe(true);
    await postgres.run("UPDATE labfeed.members SET seen_at = seen_at - interval '2 hours' WHERE id = $1", [one.member]);
    expect(await isReporter(postgres, two.member, notice('raised', 1))).toBe(true);
    // Raised while the database was away.
    expect(await isReporter(postgres, two.member, notice('over', 7))).toBe(true);
  });
});
