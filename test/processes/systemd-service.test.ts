import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { stringify } from 'yaml';
import { weighing } from '../support/daemon-process.js';
import { bootMachine, CAN_BOOT, serviceConfig } from '../support/machine-with-systemd.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/*
 * What debian.test.ts does not show of the service.
 */

if (!CAN_BOOT) console.warn('there is no systemd, or no right to start one: the service is not run here');

const LONG_MS = 120_000;

async function setUp() {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  const machine = await bootMachine();
  const { etc, srv } = machine;
  writeFileSync(join(etc, 'api-key'), `${sandbox.key}\n`, { mode: 0o600 });
  mkdirSync(join(srv, 'balance'));
  const configure = (instruments: readonly string[]): void =>
    writeFileSync(join(etc, 'config.yaml'), serviceConfig(sandbox.url, instruments));
  const drop = (instrument: string, n: number): void => writeFileSync(join(srv, instrument, `${n}.csv`), weighing(n));
  /** Of experiments with their comments, which come last. */
  const titles = (): string[] =>
    sandbox.experiments().flatMap(({ title, comments }) => (comments.length === 0 ? [] : [title]));
  const filed = (runs: number): Promise<void> =>
    until(`${runs} runs in the notebook`, () => titles().length === runs, LONG_MS);
  return { sandbox, machine, configure, drop, filed };
}

test.skipIf(!CAN_BOOT)(
  'setup by root refuses folders that the service cannot read, and starts it with one that it can',
  async () => {
    const { sandbox, machine, filed } = await setUp();
    const { srv, etc, run } = machine;
    // /tmp is the one of this machine, except for the service.
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(srv, 'private'), { mode: 0o700 });
    writeFileSync(join(srv, 'labfeed.yaml'), '');
    const setup = (watch: string) => {
      const answers = { server: sandbox.url, key: { file: '/etc/labfeed/api-key' }, folder: watch, name: 'balance' };
      writeFileSync(join(srv, 'answers.yaml'), stringify(answers));
      return run('/bin/sh', '-c', 'cd /srv && HTTPS_PROXY=http://127.0.0.1:1 labfeed setup --answers answers.yaml');
    };
    const refusals = [await setup('/srv/private'), await setup(folder)];
    expect(refusals).toMatchObject([
      {
        status: 2,
        output: expect.stringMatching(/the user labfeed, who may not read .*\n.*setfacl -R -m u:labfeed:rX/),
      },
      { status: 2, output: expect.stringContaining(`hides ${folder} (PrivateTmp=yes)`) },
    ]);
    expect(readdirSync(etc)).toEqual(['api-key']);

    // As the message and docs/install.md say.
    const [dropIn = ''] = /BindReadOnlyPaths=[^\s,]+/.exec(refusals[1]?.output ?? '') ?? [];
    writeFileSync(join(srv, '../units/labfeed.service.d/bind.conf'), `[Service]\n${dropIn}\n`);
    await run('systemctl', 'daemon-reload');
    const { status, output } = await setup(folder);
    expect({ status, output }).toMatchObject({ status: 0, output: expect.stringContaining('The service is running') });
    expect(output).toContain('in this folder, the other commands use /srv/labfeed.yaml');
    expect(output).toContain('HTTPS_PROXY is set in this shell, but not for the service');
    expect(readFileSync(join(etc, 'config.yaml'), 'utf8')).toContain('credential: api-key');
    writeFileSync(join(folder, '1.csv'), weighing(1));
    await filed(1);

    // Without the service, root checks for it.
    await run('systemctl', 'stop', 'labfeed');
    chmodSync(folder, 0o700);
    expect(await run('labfeed', 'check')).toMatchObject({
      status: 1,
      output: expect.stringContaining(`the user labfeed, who may not read ${folder}`),
    });
  },
);

test.skipIf(!CAN_BOOT)('a reload that comes before it can listen does not end it for good', async () => {
  const { machine, configure, drop, filed } = await setUp();
  configure(['balance']);
  await machine.run('systemctl', 'start', 'labfeed');
  await machine.run('systemctl', 'reload', 'labfeed');
  drop('balance', 1);
  await filed(1);
});

test.skipIf(!CAN_BOOT)(
  'while a share hangs, the service stops in time, which systemd calls a success',
  async ({ skip }) => {
    const { machine, configure, filed } = await setUp();
    const { srv, run, shows } = machine;
    for (const name of ['nas', 'share']) mkdirSync(join(srv, name));
    writeFileSync(join(srv, 'faults'), '');
    writeFileSync(join(srv, 'nas/a.csv'), weighing(1));
    const mount = '/usr/bin/python3 /opt/test/support/share.py /srv/nas /srv/share /srv/faults';
    await run('/bin/sh', '-c', `setsid ${mount} >/dev/null 2>&1 &`);
    const isShared = async () => (await run('ls', '/srv/share')).output === 'a.csv';
    await until('the share is mounted', isShared, 20_000).catch(() => skip('needs /dev/fuse and python3-fusepy'));
    configure(['share', 'balance']);
    expect((await run('systemctl', 'start', 'labfeed')).status).toBe(0);
    await filed(1);
    writeFileSync(join(srv, 'faults'), 'hang');
    const isHanging = async () => (await run('/bin/sh', '-c', 'cat /proc/[0-9]*/task/*/wchan')).output.includes(WAITS);
    await until('a call hangs', isHanging, LONG_MS);
    expect((await run('systemctl', 'stop', 'labfeed')).status).toBe(0);
    // If it had taken longer than `TimeoutStopSec`, the result would be `timeout`.
    expect([await shows('Result'), await shows('ActiveState'), await shows('ExecMainStatus')]).toEqual([
      ...['success', 'inactive', '0'],
    ]);
  },
);

/** The function of the kernel in which a call to a FUSE program waits. */
const WAITS = 'request_wait_answer';
