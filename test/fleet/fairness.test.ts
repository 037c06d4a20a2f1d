import { describe, expect, test } from 'vitest';
import { newRun, reading, useFleets } from '../support/leading-fleet.js';
import { noPostgres } from '../support/postgres.js';

const newFleet = useFleets();

type Fleet = Awaited<ReturnType<typeof newFleet>>;
type Member = Awaited<ReturnType<Fleet['member']>>;

const MANY = 100;

/** Hands over runs whose files are named after the member. They are in the database, but not received yet. */
async function handOver({ outbox, send }: Member, name: string, count: number, instrument: string, backlog: boolean) {
  for (let n = 0; n < count; n++) {
    const content = `${name}${n}`;
    await outbox.add(newRun(content, `/data/${content}`, { instrument, backlog }), reading(content));
  }
  await send();
}

const names = (fleet: Fleet, runs: readonly number[]): string[] =>
  runs.map((id) => {
    const path = fleet.journal.store.db.value<string>`SELECT path FROM runs WHERE id = ${id}` ?? '';
    return path.replace(/.*\//, '');
  });

describe.skipIf(noPostgres)('a PC with many runs', () => {
  test('does not keep the leader from those of another PC, whose turn comes after a few of them', async () => {
    const fleet = await newFleet();
    const [busy, other] = [await fleet.member('pc1'), await fleet.member('pc2')];
    await handOver(busy, 'old', MANY, 'balance', true);
    await handOver(other, 'live', 1, 'balance', false);
    await fleet.receive();
    const received = fleet.runs().map(({ path }) => path);
    expect(received).toContain('pc2:/data/live0');
    expect(received.length).toBeLessThan(MANY / 2);
    while ((await fleet.receive()) > 0);
    expect(fleet.runs()).toHaveLength(MANY + 1);
  });

  test('from a backlog files them after live ones of another PC, also if both have the same instrument', async () => {
    const fleet = await newFleet();
    const [busy, other] = [await fleet.member('pc1'), await fleet.member('pc2')];
    await handOver(busy, 'old', MANY, 'balance', true);
    await handOver(busy, 'plate', MANY, 'reader', true);
    while ((await fleet.receive()) > 0);
    const { claim } = fleet.journal.outbox;
    const now = Date.now() + 60_000;
    expect(names(fleet, await claim(now, 2))).toEqual(['old0', 'plate0']);
    await handOver(other, 'live', 2, 'balance', false);
    await handOver(other, 'scale', 1, 'scale', false);
    while ((await fleet.receive()) > 0);
    expect(
      names(fleet, await claim(now, 4))
        .slice(0, 3)
        .sort(),
    ).toEqual(['live0', 'live1', 'scale0']);
  });

  test('that are live takes turns with the instruments of another PC', async () => {
    const fleet = await newFleet();
    const [busy, other] = [await fleet.member('pc1'), await fleet.member('pc2')];
    await handOver(busy, 'many', MANY, 'balance', false);
    while ((await fleet.receive()) > 0);
    await handOver(other, 'few', 2, 'scale', false);
    while ((await fleet.receive()) > 0);
    const claimed = await fleet.journal.outbox.claim(Date.now() + 60_000, 4);
    expect(names(fleet, claimed)).toEqual(['many0', 'few0', 'many1', 'few1']);
  });
});
