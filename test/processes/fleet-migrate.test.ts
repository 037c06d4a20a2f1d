import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { CLI, startDaemon, weighing } from '../support/daemon-process.js';
import { expectFiled, makeFleet } from '../support/fleet-site.js';
import { type Ended, labfeed, runNode } from '../support/labfeed.js';
import { noPostgres } from '../support/postgres.js';
import { until } from '../support/until.js';

const KILLING = new URL('../support/killed-in-steps.mjs', import.meta.url).href;

/** Moments at which the command is killed: before and after queries, closer to each other at the beginning. */
const MOMENTS = [1, 8, 14, 21, 30];

/** Kills the command at each moment, and repeats it until it succeeds. Returns its output, and how often it was killed. */
async function killedAndRepeated(args: readonly string[], folder: string): Promise<Ended & { kills: number }> {
  let kills = 0;
  for (const moment of [...MOMENTS, Number.NaN]) {
    const env = { ...process.env, LABFEED_KILL_AT_QUERY: String(moment) };
    const ended = await runNode(['--import', KILLING, CLI, ...args], { cwd: folder, timeout: 60_000, env });
    if (ended.signal !== 'SIGKILL') return { ...ended, kills };
    kills += 1;
  }
  throw new Error('the command did not end');
}

describe.skipIf(noPostgres)('moving to a fleet and back', () => {
  test('nothing is filed twice or forgotten, wherever the command is killed', async () => {
    const fleet = await makeFleet();
    const pc = fleet.member('pc1');
    const { control } = fleet.notebook;
    const alone = startDaemon(pc.alone);
    for (let n = 0; n < 4; n++) pc.drop(`a${n}.csv`, weighing(n));
    await expectFiled(fleet, 4);
    const into = ['migrate', '--to', fleet.url, '--config', pc.config];
    expect((await labfeed(into, pc.folder)).stderr).toContain('is in use by another daemon');
    // One whose outcome is unknown.
    control.decide = ({ method }) => (method === 'POST' ? 'cutAfter' : 'pass');
    pc.drop('a4.csv', weighing(4));
    await until('it was sent', () => control.experiments().length === 5);
    await alone.kill();
    control.decide = () => 'pass';

    const early = pc.start();
    expect(await early.ended).not.toBe(0);
    expect(early.output()).toContain(`labfeed migrate --to ${fleet.url}`);
    expect((await labfeed(['migrate', '--to', fleet.url, '--config', pc.alone], pc.folder)).stderr).toContain(
      'the configuration is not that of the fleet yet',
    );
    const moved = await killedAndRepeated(into, pc.folder);
    expect(moved).toMatchObject({
      status: 0,
      stdout: expect.stringContaining('5 runs of this machine are in the fleet'),
    });
    expect(moved.kills).toBeGreaterThan(3);
    const late = startDaemon(pc.alone);
    expect(await late.ended).not.toBe(0);
    expect(late.output()).toContain('belong to a fleet');

    const member = pc.start();
    for (let n = 0; n < 5; n++) pc.drop(`again${n}.csv`, weighing(n));
    pc.drop('new.csv', weighing(5));
    await expectFiled(fleet, 6);
    control.decide = ({ method }) => (method === 'POST' ? 'cutAfter' : 'pass');
    pc.drop('a6.csv', weighing(6));
    await until('it was sent', () => control.experiments().length === 7);
    await member.stop();
    control.decide = () => 'pass';

    const back = await killedAndRepeated(['migrate', '--to', pc.journal, '--config', pc.config], pc.folder);
    expect(back).toMatchObject({ status: 0, stdout: expect.stringContaining('7 runs taken back from the fleet') });
    expect(back.kills).toBeGreaterThan(3);
    // Nothing of the machine but its journal says what was filed.
    rmSync(join(pc.folder, 'state', 'fleet.db'), { force: true });
    const home = startDaemon(pc.alone);
    for (let n = 0; n < 7; n++) pc.drop(`once-more${n}.csv`, weighing(n));
    pc.drop('newer.csv', weighing(7));
    await expectFiled(fleet, 8);
    await home.stop();
  }, 180_000);
});
