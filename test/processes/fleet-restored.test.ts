import { describe, expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { expectFiled, makeFleet } from '../support/fleet-site.js';
import { labfeed } from '../support/labfeed.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

describe.skipIf(noPostgres)('a database that was restored from a backup', () => {
  test('halts the fleet until recover, and then everything is filed once, what members had handed over too', async () => {
    const fleet = await makeFleet();
    const [pc, server] = [fleet.member('pc1', { role: 'watch' }), fleet.member('server', { role: 'deliver' })];
    const postgres = connectTo(fleet.url);
    const handedOver = (count: number) =>
      until(
        'runs are handed over',
        async () => (await postgres.rows('SELECT 1 FROM labfeed.operations')).length === count,
        60_000,
      );
    let delivering = server.start();
    const watching = pc.start();
    pc.drop('a0.csv', weighing(0));
    await expectFiled(fleet, 1);
    await delivering.stop();
    pc.drop('a1.csv', weighing(1));
    await handedOver(1);
    const backup = fleet.cluster.dump(fleet.url);

    delivering = server.start();
    pc.drop('a2.csv', weighing(2));
    await expectFiled(fleet, 3);
    await delivering.stop();
    pc.drop('a3.csv', weighing(3));
    await handedOver(1);
    await watching.stop();
    fleet.cluster.restore(fleet.url, backup);

    delivering = server.start();
    const recover = () => labfeed(['recover', '--config', server.config], server.folder);
    await until(
      'the fleet is halted',
      async () => (await postgres.rows('SELECT 1 FROM labfeed.servers WHERE halted IS NOT NULL')).length === 1,
      60_000,
    );
    expect((await recover()).stderr).toContain('in use by another daemon');
    await delivering.stop();
    expect((await labfeed(['recover', '--config', pc.config], pc.folder)).stderr).toContain(
      'on a machine that delivers',
    );
    expect(await recover()).toMatchObject({ status: 0, stdout: expect.stringMatching(/1 run recovered, 1 completed/) });
    await postgres.close();

    const daemons = [server.start(), pc.start()];
    for (let n = 0; n < 4; n++) pc.drop(`again${n}.csv`, weighing(n));
    await expectFiled(fleet, 4);
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  });
});
