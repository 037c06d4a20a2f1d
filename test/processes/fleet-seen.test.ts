import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from '@photostructure/sqlite';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { LiveMember } from '../../src/live.js';
import { weighing } from '../support/daemon-process.js';
import { expectFiled, makeFleet } from '../support/fleet-site.js';
import { labfeed } from '../support/labfeed.js';
import { connectTo, noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

const FEW = 'ready: { quiet: 150ms }, experiment: { plot: never }';

describe.skipIf(noPostgres)('any machine of a fleet answers for all', () => {
  test('status and why know the folders, runs and files of the others, and a machine that is away is called so', async () => {
    const fleet = await makeFleet();
    const instruments = `  balance: { watch: data/balance, ${FEW}, silence: 1s }`;
    const [one, two, server] = [
      fleet.member('pc1', { role: 'watch', instruments }),
      fleet.member('pc2', { role: 'watch', instruments: `  hplc: { watch: data/balance, ${FEW} }` }),
      fleet.member('server', { role: 'deliver' }),
    ];
    one.drop('good.csv', weighing(1));
    two.drop('other.csv', weighing(2));
    two.drop('odd.csv', 'neither a table\nnor, anything; else\n');
    const [delivering, , second] = [server.start(), one.start(), two.start()];
    await expectFiled(fleet, 2);
    const ask = async (config: string, ...args: string[]) => (await labfeed([...args, '--config', config])).stdout;
    const members = async (config: string): Promise<LiveMember[]> =>
      JSON.parse(await ask(config, 'status', '--json')).live?.fleet?.members ?? [];
    const of = async (name: string) => (await members(server.config)).find((member) => member.name === name);

    await until(
      'pc1 is silent',
      async () => (await of('pc1'))?.alarms.some(({ kind }) => kind === 'silence') === true,
      60_000,
    );
    await until(
      'pc2 has a run in quarantine',
      async () => (await of('pc2'))?.folders[0]?.runs?.quarantined === 1,
      60_000,
    );
    await until(
      'pc1 knows that its run is filed',
      async () => (await of('pc1'))?.folders[0]?.runs?.queued === 0,
      60_000,
    );
    expect(await of('pc1')).toMatchObject({
      ...{ isAway: false, role: 'watch' },
      folders: [
        { instrument: 'balance', silenceMs: 1000, state: 'present', runs: { queued: 0, quarantined: 0, held: 0 } },
      ],
    });

    // A watcher reads the list once a minute.
    const knowsFolder = async () =>
      (await members(one.config)).some(({ name, folders }) => name === 'pc2' && folders.length > 0);
    await until('pc1 knows the folder of pc2', knowsFolder, 90_000);
    // The watcher asks for a run of another PC: by its name, as the fleet names it, and by its path there.
    const path = join(two.folder, 'data', 'balance', 'odd.csv');
    for (const asked of ['odd.csv', `pc2:${path}`]) {
      await until(
        `pc1 knows ${asked}`,
        async () => (await ask(one.config, 'why', asked)).includes('quarantined'),
        90_000,
      );
      expect(await ask(one.config, 'why', asked)).toContain(`${path} on pc2; hplc watches`);
    }
    // All folders of this test are on one machine: once the file is gone, its path is one of another PC only.
    rmSync(path);
    expect(await ask(one.config, 'why', path)).toContain(`${path} on pc2; hplc watches`);
    expect(await ask(one.config, 'why', 'other.csv')).toMatch(/filed on .* as experiment \d/);
    const unknown = join(two.folder, 'data', 'balance', 'later.csv');
    expect(await ask(one.config, 'why', unknown)).toContain('pc2 watches such a folder, and may know more');
    expect(await ask(one.config, 'why', 'later')).toContain('ask there: labfeed why later');
    expect(await ask(one.config, 'why', `pc1:${join(one.folder, 'data', 'balance', 'good.csv')}`)).toMatch(/filed on/);

    // It is switched off, and time passes.
    await second.kill();
    const postgres = connectTo(fleet.url);
    onTestFinished(() => postgres.close());
    await postgres.run("UPDATE labfeed.members SET seen_at = seen_at - interval '3 hours' WHERE name = 'pc2'");
    await until('pc2 is away', async () => (await of('pc2'))?.isAway === true, 60_000);
    const text = await ask(server.config, 'status');
    expect(text).toMatch(/pc2: watch, version \S+, away, last seen 3 hours ago, clock correct; it last reported:/);
    expect(text).toMatch(/hplc +.* on pc2 \(away\)/);
    expect(text).toContain('1 run quarantined');

    // An older version reports less, and is shown as such.
    await postgres.run(
      `UPDATE labfeed.members SET live = '{"instruments":[{"name":"hplc","watch":"/x","line":"watching",
         "folder":{"state":"present"},"waiting":{"files":0,"first":[]}}],"alarms":[]}' WHERE name = 'pc2'`,
    );
    await until('pc2 is older', async () =>
      (await ask(server.config, 'status')).includes('its version does not report silence, runs and backlogs'),
    );
    await delivering.stop();
  });

  test('a PC that only watches keeps few runs of others, and asks the database for the rest', async () => {
    const fleet = await makeFleet();
    const [one, two, server] = [
      fleet.member('pc1', { role: 'watch' }),
      fleet.member('pc2', { role: 'watch' }),
      fleet.member('server', { role: 'deliver' }),
    ];
    one.drop('own.csv', weighing(1));
    two.drop('other.csv', weighing(2));
    const daemons = [server.start(), one.start(), two.start()];
    await expectFiled(fleet, 2);
    const ask = async (...args: string[]) => labfeed([...args, '--config', one.config]);
    const states = async () =>
      (JSON.parse((await ask('jobs', '--json')).stdout) as { state: string }[]).map(({ state }) => state).join();
    await until('pc1 knows both', async () => (await states()) === 'done,done', 90_000);
    for (const daemon of daemons) await daemon.stop();
    // As if ten thousand others had been filed since: the run of the other PC is no longer kept here.
    const copy = new DatabaseSync(join(one.folder, 'state', 'fleet.db'));
    expect(copy.prepare('SELECT count(*) AS n FROM kept_runs').get()).toEqual({ n: 1 });
    const { id } = copy.prepare("SELECT id FROM runs WHERE path LIKE 'pc2:%'").get() as { id: number };
    for (const table of ['history', 'comments', 'drafts', 'origins', 'runs'])
      copy.exec(`DELETE FROM ${table} WHERE ${{ runs: 'id', origins: 'filed' }[table] ?? 'run'} = ${id}`);
    copy.close();
    const listed = await ask('jobs');
    expect(listed.stdout).toContain('own.csv');
    expect(listed.stdout).not.toContain('other.csv');
    expect(listed.stderr).toContain('older runs of other machines are listed on a machine that delivers');
    expect((await ask('why', 'other.csv')).stdout).toMatch(/filed on .* as experiment \d/);
    const shown = JSON.parse((await ask('show', String(id), '--json')).stdout);
    expect(shown).toMatchObject({ id, state: 'done' });
    expect(shown.history.length).toBeGreaterThan(3);
    await fleet.cluster.kill();
    const refused = 'the database of the fleet cannot be asked: connect ECONNREFUSED';
    const unknown = await ask('why', 'other.csv');
    expect(unknown.status).toBe(1);
    expect(unknown.stdout).not.toContain('no run of the fleet');
    expect(unknown.stderr).toContain(`older runs of other machines are not on this machine, and ${refused}`);
    const notShown = await ask('show', String(id));
    expect(notShown).toMatchObject({ status: 1, stdout: '' });
    // Neither that there is no such run, nor where in the program the connection failed.
    expect(notShown.stderr).toMatch(
      new RegExp(`^labfeed: run ${id} is not on this machine, and ${refused}.*\n {2}→ .*\n$`),
    );
    const own = JSON.parse((await ask('jobs', '--json')).stdout) as { id: number }[];
    expect(await ask('show', String(own[0]?.id))).toMatchObject({ status: 0, stderr: '' });
    const showsNoAddress = async () => {
      for (const form of [[], ['--json']]) expect((await ask('status', ...form)).stdout).not.toContain('fleet.invalid');
    };
    await showsNoAddress();

    const alone = one.start();
    await alone.logged('ready');
    await showsNoAddress();
    one.drop('later.csv', weighing(3));
    const kept = async () =>
      (await ask('why', 'later.csv')).stdout.includes('kept on this machine until the database of the fleet is back');
    await until('the new file is taken', kept, 60_000);
    expect((await ask('status')).stdout).toMatch(
      /who delivers is not known: the database of the fleet is away[\s\S]*1 operation kept/,
    );
    await alone.stop();
  });
});
