import { describe, expect, test } from 'vitest';
import { type FolderPlace, isReporter } from '../../src/fleet/alarm-claims.js';
import type { Notice } from '../../src/model.js';
import { useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';

const newFleet = useFleets();

const SHARE = 'balance: the folder /srv/share is missing: ENOENT';
const notice = (state: Notice['state'], since: number, text = SHARE): Notice => ({
  ...{ channel: 'webhook', kind: 'folder', instrument: 'balance', at: since, attempts: 0, dueAt: 0 },
  ...{ state, since, text: state === 'over' ? `cleared after 5 min: ${text}` : text },
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

  test('an instrument on a share is silent once, and folders of two machines with one path are two', async () => {
    const { postgres, member } = await newFleet();
    const [one, two] = [await member('pc1'), await member('pc2')];
    let since = 0;
    const both = async (kind: Notice['kind'], texts: readonly string[], place: FolderPlace) => {
      since += 1;
      const told: boolean[] = [];
      for (const [n, text] of texts.entries())
        told.push(
          await isReporter(postgres, [one, two][n]?.member ?? 0, { ...notice('raised', since, text), kind }, place),
        );
      return told;
    };
    const silent = ['10:00', '10:01'].map((time) => `balance: no file (since 2026-03-04 ${time})`);
    expect(await both('silence', silent, { share: 'nas:/lab balance' })).toEqual([true, false]);
    expect(await both('folder', [SHARE, SHARE], { share: 'nas:/lab balance' })).toEqual([true, false]);
    expect(await both('folder', [SHARE, SHARE], 'own')).toEqual([true, true]);
    expect(await both('silence', [silent[0] ?? '', silent[0] ?? ''], 'own')).toEqual([true, true]);
    // Two machines can have the same run.
    expect(await both('quarantine', ['1 run is quarantined', '1 run is quarantined'], 'own')).toEqual([true, false]);
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
