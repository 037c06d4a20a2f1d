import { appendFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { growingLogger, makeFleet } from '../support/fleet-site.js';
import { labfeed } from '../support/labfeed.js';
import { mountShare } from '../support/mount.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { sha256 } from '../support/runs.js';
import { until } from '../support/until.js';

describe.skipIf(noPostgres)('the files of a watcher', () => {
  test('a file is moved by its own machine after the leader has read its run back', async () => {
    const fleet = await makeFleet();
    const instruments = '  balance: { watch: data/balance, ready: { quiet: 100ms }, source: { move: filed } }';
    const [watcher, deliverer] = [
      fleet.member('pc1', { role: 'watch', instruments }),
      fleet.member('server', { role: 'deliver' }),
    ];
    const daemons = [deliverer.start(), watcher.start({ LABFEED_TEST_UNCHANGED_MS: '0' })];
    watcher.drop('a.csv', weighing(1));
    const target = join(watcher.folder, 'filed', 'a.csv');
    await until('the file is moved', () => existsSync(target), 60_000);
    expect(readFileSync(target, 'utf8')).toBe(weighing(1));
    expect(fleet.notebook.control.experiments()).toHaveLength(1);
    for (const daemon of daemons) await daemon.stop();
  });

  test('raw files travel through the database, and are gone from there once the notebook has them', async () => {
    const fleet = await makeFleet('elabftw');
    const [watcher, deliverer] = [fleet.member('pc1', { role: 'watch' }), fleet.member('server', { role: 'deliver' })];
    const large = `Sample,Weight (mg)\n${'S1,1.5\n'.repeat(400_000)}`;
    const daemon = watcher.start();
    watcher.drop('large.csv', large);
    watcher.drop('small.csv', weighing(1));
    await daemon.logged(({ msg, file }) => msg === 'run queued' && String(file).endsWith('large.csv'), 60_000);
    const postgres = connectTo(fleet.url);
    await until(
      'the contents are in the database',
      async () => (await postgres.rows('SELECT 1 FROM labfeed.complete')).length === 2,
      90_000,
    );
    await until('the spool is empty', () => readdirSync(`${watcher.journal}.spool`).length === 0, 60_000);
    const delivering = deliverer.start();
    const uploads = () => fleet.notebook.control.experiments().flatMap((one) => one.uploads);
    await until('both are attached', () => uploads().length === 2, 90_000);
    expect(new Set(uploads().map(({ hash }) => hash))).toEqual(new Set([large, weighing(1)].map(sha256)));
    await until(
      'the database has no contents',
      async () => (await postgres.rows('SELECT 1 FROM labfeed.contents')).length === 0,
    );
    await postgres.close();
    await Promise.all([daemon.stop(), delivering.stop()]);
  });

  test('the lines of a growing file are filed once, also if the leader changes', async () => {
    const fleet = await makeFleet();
    const instruments = growingLogger();
    const members = [
      fleet.member('pc1', { role: 'watch', instruments }),
      fleet.member('pc2', { role: 'watch', instruments }),
    ];
    const [first, second] = [fleet.member('s1', { role: 'deliver' }), fleet.member('s2', { role: 'deliver' })];
    for (const { folder } of members) {
      mkdirSync(join(folder, 'data', 'logger'), { recursive: true });
      writeFileSync(join(folder, 'data', 'logger', 'temp.csv'), 'Time,T (°C)\n2026-03-04 00:00:00,1.5\n');
    }
    const leader = first.start();
    await leader.logged('delivering for the fleet');
    const others = [second.start(), ...members.map((member) => member.start())];
    const texts = () =>
      fleet.notebook.control.experiments().map(({ comments }) => comments.map(({ comment }) => comment).join('\n'));
    await until('both are filed', () => texts().filter((text) => text.includes('1.5')).length === 2, 60_000);
    for (const [n, { folder }] of members.entries())
      appendFileSync(join(folder, 'data', 'logger', 'temp.csv'), `2026-03-04 00:01:00,${n + 1}2.5\n`);
    await until(
      'the second lines are filed',
      () => texts().join().includes('12.5') && texts().join().includes('22.5'),
      60_000,
    );
    await leader.kill();
    for (const [n, { folder }] of members.entries())
      appendFileSync(join(folder, 'data', 'logger', 'temp.csv'), `2026-03-04 00:02:00,${n + 1}3.5\n`);
    const has = (value: string) => texts().join().includes(value);
    await until('the third lines are filed', () => has('13.5') && has('23.5'), 90_000);
    await new Promise((resolve) => setTimeout(resolve, 2000));
    expect(texts()).toHaveLength(2);
    for (const value of ['12.5', '13.5', '22.5', '23.5']) expect(texts().join().split(value)).toHaveLength(2);
    await Promise.all(others.map((daemon) => daemon.stop()));
  });

  test('a growing file on a share that two members watch is filed once', async ({ skip }) => {
    const fleet = await makeFleet();
    const [source, at] = [join(fleet.folder, 'source'), join(fleet.folder, 'share')];
    for (const folder of [source, at]) mkdirSync(folder);
    await mountShare(source, at, skip);
    const file = join(source, 'temp.csv');
    writeFileSync(file, 'Time,T (°C)\n2026-03-04 00:00:00,1.5\n');
    const daemons = [
      fleet.member('s1', { role: 'deliver' }).start(),
      fleet.member('pc1', { role: 'watch', instruments: growingLogger(at, '1s') }).start(),
      fleet.member('pc2', { role: 'watch', instruments: growingLogger(at, '1700ms') }).start(),
    ];
    const texts = () =>
      fleet.notebook.control.experiments().map(({ comments }) => comments.map(({ comment }) => comment).join('\n'));
    for (let n = 1; n <= 20; n++) {
      appendFileSync(file, `2026-03-04 00:${10 + n}:00,${n}00.25\n`);
      await new Promise((resolve) => setTimeout(resolve, 300));
    }
    await until('the last line is filed', () => texts().join().includes('2000.25'), 90_000);
    await new Promise((resolve) => setTimeout(resolve, 6000));
    expect(texts()).toHaveLength(1);
    for (let n = 1; n <= 20; n++)
      expect(
        texts()
          .join()
          .split(/[^\d.]/)
          .filter((text) => text === `${n}00.25`),
      ).toHaveLength(1);
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  });

  test('commands on one member show and decide about the runs of another', async () => {
    const fleet = await makeFleet();
    const instruments =
      '  balance: { watch: data/balance, ready: { quiet: 100ms }, experiment: { title: "{{ meta.Name }}", plot: never } }';
    const [watcher, deliverer, other] = [
      fleet.member('pc1', { role: 'watch', instruments }),
      fleet.member('server', { role: 'deliver' }),
      fleet.member('pc2', { role: 'watch' }),
    ];
    const daemons = [deliverer.start(), watcher.start(), other.start()];
    watcher.drop('bad.csv', weighing(1));
    other.drop('good.csv', weighing(2));
    const run = async (...args: string[]) => labfeed([...args, '--config', other.config], other.folder);
    const jobs = async () =>
      JSON.parse((await run('jobs', '--json')).stdout || '[]') as {
        id: number;
        state: string;
        path: string;
        updatedAt: number;
      }[];
    const known = async () =>
      (await jobs())
        .map(({ state }) => state)
        .sort()
        .join();
    await until('both are known', async () => (await known()) === 'done,quarantined', 120_000);
    const bad = (await jobs()).find(({ state }) => state === 'quarantined');
    expect(bad?.path).toBe(`pc1:${join(watcher.folder, 'data/balance/bad.csv')}`);
    expect((await jobs()).find(({ state }) => state === 'done')?.path).toBe(
      join(other.folder, 'data/balance/good.csv'),
    );
    expect((await run('why', join(other.folder, 'data/balance/good.csv'))).stdout).toContain('filed');
    const quarantined = () => daemons[1]?.lines.filter(({ msg }) => msg === 'run quarantined').length;
    await until('its machine has logged it', () => quarantined() === 1);
    // Its own machine reads the file again.
    expect(await run('retry', String(bad?.id))).toMatchObject({ status: 0 });
    await until('the file is read again', () => quarantined() === 2, 60_000);
    const isLater = ({ state, updatedAt }: { state: string; updatedAt: number }) =>
      state === 'quarantined' && updatedAt > (bad?.updatedAt ?? 0);
    await until('the fleet knows that', async () => (await jobs()).some(isLater), 60_000);
    expect(await run('ignore', String(bad?.id))).toMatchObject({ status: 0 });
    const status = async () => (await labfeed(['status', '--config', deliverer.config], deliverer.folder)).stdout;
    await until(
      'the machines are listed, with their folders',
      async () =>
        /pc1: watch, [^\n]*\n +balance: [^\n]*pc1\/data\/balance[\s\S]*server: delivers, /.test(await status()),
      60_000,
    );
    await until('and which have the instrument', async () => /^balance +.*on pc1, pc2$/m.test(await status()), 60_000);
    await until('it is ignored', async () => (await jobs()).some(({ state }) => state === 'ignored'), 60_000);
    await Promise.all(daemons.map((daemon) => daemon.stop()));
  });
});
