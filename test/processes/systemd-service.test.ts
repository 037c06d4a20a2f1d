import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { bootMachine, CAN_BOOT, serviceConfig } from '../support/machine-with-systemd.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/*
 * What debian.test.ts does not show of the service.
 */

if (!CAN_BOOT) console.warn('there is no systemd, or no right to start one: the service is not run here');

const LONG_MS = 60_000;

async function setUp() {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  const machine = await bootMachine();
  const { etc, srv } = machine;
  writeFileSync(join(etc, 'api-key'), `${sandbox.key}\n`, { mode: 0o600 });
  mkdirSync(join(srv, 'balance'));
  const configure = (instruments: readonly string[]): void =>
    writeFileSync(join(etc, 'config.yaml'), serviceConfig(sandbox.url, instruments));
  const drop = (instrument: string, n: number): void => writeFileSync(join(srv, instrument, `${n}.csv`), weighing(n));
  /** Of experiments with more than a provisional title. */
  const titles = (): string[] =>
    sandbox.experiments().flatMap(({ title }) => (title.startsWith('labfeed ') ? [] : [title]));
  const filed = (runs: number): Promise<void> =>
    until(`${runs} runs in the notebook`, () => titles().length === runs, LONG_MS);
  return { machine, configure, drop, filed };
}

test.skipIf(!CAN_BOOT)(
  'a reload that comes before it can listen does not end it for good',
  async () => {
    const { machine, configure, drop, filed } = await setUp();
    configure(['balance']);
    await machine.run('systemctl', 'start', 'labfeed');
    await machine.run('systemctl', 'reload', 'labfeed');
    drop('balance', 1);
    await filed(1);
  },
  240_000,
);

test.skipIf(!CAN_BOOT)(
  'while a share hangs, the service stops in time, which systemd calls a success',
  async ({ skip }) => {
    const { machine, configure, filed } = await setUp();
    const { srv, run, shows } = machine;
    for (const name of ['nas', 'share']) mkdirSync(join(srv, name));
    writeFileSync(join(srv, 'faults'), '');
    writeFileSync(join(srv, 'nas/a.csv'), weighing(1));
    const mount = '/usr/bin/python3 /opt/test/support/share.py /srv/nas /srv/share /srv/faults';
    await run('/bin/sh', '-c', `setsid ${mount} >/dev/null 2>&1 & sleep 3`);
    if ((await run('ls', '/srv/share')).output !== 'a.csv') skip('needs /dev/fuse and python3-fusepy');
    configure(['share', 'balance']);
    expect((await run('systemctl', 'start', 'labfeed')).status).toBe(0);
    await filed(1);
    writeFileSync(join(srv, 'faults'), 'hang');
    const isHanging = async () => (await run('/bin/sh', '-c', 'cat /proc/[0-9]*/task/*/wchan')).output.includes(WAITS);
    await until('a call hangs', isHanging, LONG_MS);
    const since = Date.now();
    expect((await run('systemctl', 'stop', 'labfeed')).status).toBe(0);
    expect(Date.now() - since).toBeLessThan(14_000);
    expect([await shows('Result'), await shows('ActiveState'), await shows('ExecMainStatus')]).toEqual([
      ...['success', 'inactive', '0'],
    ]);
  },
);

/** The function of the kernel in which a call to a FUSE program waits. */
const WAITS = 'request_wait_answer';
