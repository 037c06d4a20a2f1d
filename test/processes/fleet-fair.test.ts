import { describe, expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { type FleetSite, makeFleet } from '../support/fleet-site.js';
import { noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

const FEW = 'ready: { quiet: 100ms }, experiment: { title: "{{ file.stem }}", plot: never }';

const BACKLOG = 600;

const filed = ({ notebook }: FleetSite, title: string): boolean =>
  notebook.control.experiments().some((one) => one.title === title && one.comments.length > 0);

const countFiled = ({ notebook }: FleetSite): number =>
  notebook.control.experiments().filter(({ comments }) => comments.length > 0).length;

describe.skipIf(noPostgres)('a PC with a backlog', () => {
  test('delays a live file of another PC by few requests, also with an instrument of the same name', async () => {
    const fleet = await makeFleet();
    const [full, live] = [
      fleet.member('pc1', {
        role: 'watch',
        instruments: `  balance: { watch: data/balance, existing: ingest, ${FEW} }`,
      }),
      fleet.member('pc2', {
        role: 'watch',
        instruments: `  balance: { watch: data/balance, ${FEW} }\n  scale: { watch: data/scale, ${FEW} }`,
      }),
    ];
    // At this rate, the backlog takes more than a minute.
    const server = fleet.member('server', { role: 'deliver', rate: '20/s' });
    for (let n = 0; n < BACKLOG; n++) full.drop(`old${n}.csv`, weighing(n));
    live.drop('first.csv', weighing(BACKLOG), 'scale');
    const daemons = [server.start(), full.start(), live.start()];
    await until('the backlog is on its way', () => countFiled(fleet) > 10, 60_000);
    for (const instrument of ['balance', 'scale']) {
      const name = `live-${instrument}`;
      const before = fleet.notebook.control.requests().length;
      live.drop(`${name}.csv`, weighing(BACKLOG + name.length), instrument);
      await until(`${name} is filed`, () => filed(fleet, name), 60_000);
      // Those that are sent while the file is still being noticed, read and handed over count, too.
      expect(fleet.notebook.control.requests().length - before).toBeLessThan(200);
    }
    expect(countFiled(fleet)).toBeLessThan(BACKLOG / 2);
    for (const daemon of daemons) await daemon.stop();
  });
});
