import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { countExperiments, expectFiled, makeFleet } from '../support/fleet-site.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

describe.skipIf(noPostgres)('a fleet', () => {
  test('two watchers and a deliverer file each of 13 runs once, even those that both saw', async () => {
    const fleet = await makeFleet('v2', '20s');
    const [one, two, deliverer] = [
      fleet.member('pc1', { role: 'watch' }),
      fleet.member('pc2', { role: 'watch' }),
      fleet.member('server', { role: 'deliver' }),
    ];
    for (let n = 0; n < 8; n++) one.drop(`a${n}.csv`, weighing(n));
    for (let n = 5; n < 13; n++) two.drop(`b${n}.csv`, weighing(n));
    const daemons = [deliverer.start(), one.start(), two.start()];
    await expectFiled(fleet, 13);
    for (const daemon of daemons) expect(await daemon.stop()).toBe(0);
    // The session key of the leader is gone, and none of the experiments was touched by another one.
    expect(
      fleet.notebook.control
        .writes()
        .filter(({ path }) => path.includes('apikeys'))
        .map(({ method }) => method),
    ).toEqual([...['POST', 'DELETE']]);
  });

  test('a database that is killed in mid-burst and comes back costs only time', async () => {
    const fleet = await makeFleet();
    const [one, deliverer] = [fleet.member('pc1', { role: 'watch' }), fleet.member('server', { role: 'deliver' })];
    const daemons = [deliverer.start(), one.start()];
    await daemons[0]?.logged('delivering for the fleet');
    for (let n = 0; n < 30; n++) one.drop(`a${n}.csv`, weighing(n));
    await until('some are filed', () => countExperiments(fleet) >= 3, 60_000);
    await fleet.cluster.kill();
    // Watched and kept here meanwhile.
    for (let n = 30; n < 40; n++) one.drop(`a${n}.csv`, weighing(n));
    await new Promise((resolve) => setTimeout(resolve, 2000));
    await fleet.cluster.start();
    await expectFiled(fleet, 40);
    for (const daemon of daemons) expect(await daemon.stop()).toBe(0);
  });

  test('a leader that is killed is replaced within 30 s, and nothing is filed twice', async () => {
    const fleet = await makeFleet();
    const [first, second] = [fleet.member('server1', { role: 'all' }), fleet.member('server2', { role: 'all' })];
    const leader = first.start();
    await leader.logged('delivering for the fleet');
    const standby = second.start();
    await standby.logged('ready');
    for (let n = 0; n < 25; n++) second.drop(`a${n}.csv`, weighing(n));
    await until('some are filed', () => countExperiments(fleet) >= 5, 60_000);
    const killedAt = Date.now();
    await leader.kill();
    await standby.logged('delivering for the fleet', 40_000);
    const took = Date.now() - killedAt;
    expect(took).toBeLessThan(30_000);
    await expectFiled(fleet, 25, 90_000);
    console.log(`a killed leader was replaced after ${(took / 1000).toFixed(1)} s`);
    // The one that returns follows.
    const back = first.start();
    await back.logged('ready');
    first.drop('late.csv', weighing(100));
    await expectFiled(fleet, 26);
    await Promise.all([standby.stop(), back.stop()]);
  });

  test('a leader that was paused beyond its lease is fenced by database and notebook', async () => {
    const fleet = await makeFleet();
    const [first, second] = [fleet.member('server1', { role: 'deliver' }), fleet.member('server2', { role: 'all' })];
    const leader = first.start();
    await leader.logged('delivering for the fleet');
    const standby = second.start();
    await standby.logged('ready');
    for (let n = 0; n < 20; n++) second.drop(`a${n}.csv`, weighing(n));
    await until('some are filed', () => countExperiments(fleet) >= 3, 60_000);
    leader.child.kill('SIGSTOP');
    const sent = () => fleet.notebook.control.writes().filter(({ path }) => path.includes('/experiments'));
    const old = sent()[0]?.keyId;
    expect(old).toBeDefined();
    await standby.logged('delivering for the fleet', 90_000);
    // The old leader is still paused, so this was its successor.
    expect(fleet.notebook.control.writes()).toContainEqual(
      expect.objectContaining({ method: 'DELETE', path: expect.stringMatching(`/apikeys/${old}$`), status: 204 }),
    );
    await expectFiled(fleet, 20, 90_000);
    expect(sent().at(-1)?.keyId).not.toBe(old);
    leader.child.kill('SIGCONT');
    await leader.logged('not delivering for the fleet any more', 90_000);
    second.drop('late.csv', weighing(100));
    await expectFiled(fleet, 21);
    await Promise.all([standby.stop(), leader.stop()]);
  });

  test('an operation that cannot be applied raises one alarm for the whole fleet', async () => {
    const fleet = await makeFleet();
    const notices = join(fleet.folder, 'notices');
    const script = join(fleet.folder, 'notify.sh');
    writeFileSync(script, `#!/bin/sh\necho "$LABFEED_ALARM_STATE $LABFEED_ALARM_KIND" >> ${notices}\n`, {
      mode: 0o755,
    });
    const settings = `alarms: { command: ${script} }\n`;
    const first = fleet.member('server1', { role: 'deliver', settings }).start();
    await first.logged('delivering for the fleet');
    const second = fleet.member('server2', { role: 'deliver', settings }).start();
    await second.logged('ready');
    const postgres = connectTo(fleet.url);
    onTestFinished(() => postgres.close());
    const [one] = await postgres.rows<{ id: number }>("SELECT id FROM labfeed.members WHERE name = 'server2'");
    await postgres.run('INSERT INTO labfeed.operations (member, number, operation) VALUES ($1, 1000, $2)', [
      ...[one?.id, JSON.stringify({ kind: 'add', own: 1, run: {}, reading: {} })],
    ]);
    for (const daemon of [first, second]) await daemon.logged(({ alarm }) => alarm === 'operation');
    await until('somebody is notified', () => existsSync(notices));
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(readFileSync(notices, 'utf8')).toBe('raised operation\n');
    // A change of the leader changes nothing.
    await first.stop();
    await second.logged('delivering for the fleet', 90_000);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(readFileSync(notices, 'utf8')).toBe('raised operation\n');
    await second.stop();
  });
});
