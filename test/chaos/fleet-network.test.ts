import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { describe, expect, onTestFinished, test } from 'vitest';
import { expectFiled } from '../support/fleet-site.js';
import { whyNoNamespaces } from '../support/network.js';
import { noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';
import { type FleetPc, openCuttable } from './fleet-lab.js';

const seconds = (count: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, count * 1000));

const since = (began: number): number => (Date.now() - began) / 1000;

/** Packets vanish: no connection is reset, so only time tells that the other end is away. */
describe.skipIf(noPostgres || whyNoNamespaces())('a fleet whose packets vanish', () => {
  async function open() {
    const fleet = await openCuttable('v2', { s1: 'deliver', s2: 'deliver', pc1: 'watch' });
    const [s1, s2, pc1] = fleet.pcs as [FleetPc, FleetPc, FleetPc];
    await s1.start().logged('delivering for the fleet', 120_000);
    await Promise.all([s2, pc1].map((pc) => pc.start().logged('ready', 120_000)));
    let n = 0;
    const drop = (count: number): number => {
      for (let last = n + count; n < last; n++) pc1.drop(`run${n}`, n);
      return n;
    };
    return { ...fleet, s1, s2, pc1, drop };
  }

  test('between the leader and the database: another one takes over within 30 s, and the old one sends nothing more', async () => {
    const { site, s1, s2, pc1, drop } = await open();
    await expectFiled(site, drop(3));
    const sent = () => site.notebook.control.writes().filter(({ path }) => path.includes('/experiments'));
    const old = sent()[0]?.keyId;
    const cutAt = Date.now();
    s1.links.database.cut('drop');
    const filed = drop(5);
    await s2.start().logged('delivering for the fleet', 60_000);
    const took = since(cutAt);
    const before = sent().filter(({ keyId }) => keyId === old).length;
    await expectFiled(site, filed);
    // Longer than any call of the old leader waits for the database.
    await seconds(Math.max(0, 35 - since(cutAt)));
    expect(sent().filter(({ keyId }) => keyId === old)).toHaveLength(before);
    const healedAt = Date.now();
    s1.links.database.heal();
    await s1.start().logged('not delivering for the fleet any more', 60_000);
    console.log(
      `cut off leader: replaced after ${took.toFixed(1)} s, followed ${since(healedAt).toFixed(1)} s after the end of the cut`,
    );
    expect(took).toBeLessThan(30);
    expect(since(healedAt)).toBeLessThan(30);
    await expectFiled(site, drop(1));
    // It leads again if it has to.
    await s2.stop();
    await expectFiled(site, drop(1));
    await Promise.all([s1, pc1].map((pc) => pc.stop()));
  });

  test('between a watcher and the database: it keeps its runs, and hands them over afterwards without a restart', async () => {
    const { site, s1, s2, pc1, drop } = await open();
    await expectFiled(site, drop(2));
    for (const pc of [pc1, s2]) pc.links.database.cut('drop');
    const filed = drop(4);
    await pc1.start().logged('the database of the fleet is away; runs are kept here until it is back', 60_000);
    // A machine that is cut off stops as quickly as any other.
    const stoppedAt = Date.now();
    await s2.stop();
    const stopped = since(stoppedAt);
    await seconds(20);
    await expectFiled(site, 2);
    const healedAt = Date.now();
    pc1.links.database.heal();
    await until('all runs are filed', () => site.notebook.control.experiments().length === filed, 60_000);
    const took = since(healedAt);
    console.log(
      `cut off watcher: its runs were filed ${took.toFixed(1)} s after the end of the cut; a deliverer stopped in ${stopped.toFixed(1)} s`,
    );
    await expectFiled(site, filed);
    expect(took).toBeLessThan(30);
    expect(stopped).toBeLessThan(15);
    await Promise.all([s1, pc1].map((pc) => pc.stop()));
  });

  test('while a member has locked the state of the fleet: the others continue within 30 s', async () => {
    const { site, network, s1, s2, pc1, drop } = await open();
    await expectFiled(site, drop(1));
    const namespace = network?.namespaceOf('s2') ?? '';
    const url = site.url.replace('127.0.0.1', network?.addresses.database ?? '');
    // As each member does when it starts, but it is cut off in between.
    const script = `import { Postgres } from ${JSON.stringify(DATABASE)};
      const postgres = new Postgres({ url: ${JSON.stringify(url)}, role: 'watch', isEncrypted: false }, () => undefined);
      postgres.transaction(async (client) => {
        await client.query('SELECT 1 FROM labfeed.fleet FOR UPDATE');
        console.log('locked');
        await new Promise((resolve) => setTimeout(resolve, 600_000));
      });`;
    const program = ['netns', 'exec', namespace, process.execPath, '--input-type=module', '-e', script];
    const child = spawn('ip', program, { stdio: ['ignore', 'pipe', 'inherit'] });
    onTestFinished(() => void child.kill('SIGKILL'));
    await once(child.stdout, 'data');
    const cutAt = Date.now();
    s2.links.database.cut('drop');
    const filed = drop(3);
    await until('all runs are filed', () => site.notebook.control.experiments().length === filed, 120_000);
    const took = since(cutAt);
    console.log(`a lock of a member that is cut off was released after ${took.toFixed(1)} s`);
    await expectFiled(site, filed);
    expect(took).toBeLessThan(30);
    await Promise.all([s1, pc1].map((pc) => pc.stop()));
  });
});

const DATABASE = fileURLToPath(new URL('../../dist/fleet/database.js', import.meta.url));
