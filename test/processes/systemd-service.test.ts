import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import { bootMachine, CAN_BOOT, type Machine } from '../support/machine-with-systemd.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

if (!CAN_BOOT) console.warn('there is no systemd, or no right to start one: the service is not run here');

const LONG_MS = 60_000;

async function setUp(settings: Readonly<Record<string, string>> = {}) {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  const machine = await bootMachine(settings);
  const { etc, srv } = machine;
  writeFileSync(join(etc, 'api-key'), `${sandbox.key}\n`, { mode: 0o600 });
  for (const name of ['balance', 'logger']) mkdirSync(join(srv, name));
  const configure = (instruments: readonly string[]): void =>
    writeFileSync(
      join(etc, 'config.yaml'),
      [
        `notebook: { url: "${sandbox.url}", key: { credential: api-key } }`,
        'status: false',
        'instruments:',
        ...instruments.map((name) => `  ${name}: { watch: /srv/${name}, ready: { quiet: 150ms } }`),
        '',
      ].join('\n'),
    );
  const drop = (instrument: string, n: number): void => writeFileSync(join(srv, instrument, `${n}.csv`), weighing(n));
  /** Of experiments with more than a provisional title. */
  const titles = (): string[] =>
    sandbox.experiments().flatMap(({ title }) => (title.startsWith('labfeed ') ? [] : [title]));
  const filed = (runs: number): Promise<void> =>
    until(`${runs} runs in the notebook`, () => titles().length === runs, LONG_MS);
  const said = (text: string): Promise<void> => until(text, async () => (await logOf(machine)).includes(text), LONG_MS);
  return { machine, sandbox, configure, drop, titles, filed, said };
}

const logOf = async ({ run }: Machine): Promise<string> => (await run('cat', '/run/labfeed.log')).output;

test.skipIf(!CAN_BOOT)(
  'as a service it files, is restarted when killed, takes a new configuration, and stops',
  async () => {
    const { machine, sandbox, configure, drop, titles, filed, said } = await setUp();
    configure(['balance']);
    // Returns when the service is ready.
    expect(await machine.run('systemctl', 'start', 'labfeed')).toEqual({ status: 0, output: '' });
    expect(await machine.shows('StatusText')).toBe('watching 1 folder');
    drop('balance', 1);
    await filed(1);
    // Only the service can read the journal and the key.
    const { output } = await machine.run(
      'stat',
      '--format=%U %a %n',
      '/var/lib/labfeed',
      '/var/lib/labfeed/journal.db',
    );
    expect(output).toBe('labfeed 700 /var/lib/labfeed\nlabfeed 600 /var/lib/labfeed/journal.db');

    expect((await machine.run('systemctl', 'kill', '--signal=KILL', 'labfeed')).status).toBe(0);
    drop('balance', 2);
    await filed(2);
    expect(await machine.shows('NRestarts')).toBe('1');

    configure(['balance', 'logger']);
    expect(await machine.run('systemctl', 'reload', 'labfeed')).toEqual({ status: 0, output: '' });
    drop('logger', 3);
    await filed(3);

    configure(['balance: { rat: 1 }']);
    await machine.run('systemctl', 'reload', 'labfeed');
    await said('config.yaml:4');
    drop('logger', 4);
    await filed(4);

    expect(await machine.run('systemctl', 'stop', 'labfeed')).toEqual({ status: 0, output: '' });
    expect(await machine.shows('Result')).toBe('success');
    expect(titles()).toEqual(['1 (balance)', '2 (balance)', '3 (logger)', '4 (logger)']);
    expect(await logOf(machine)).not.toContain(sandbox.key);
  },
  240_000,
);

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
  'a wrong configuration is not tried again and again: the service stays down, with 78',
  async () => {
    const { machine, configure, said } = await setUp();
    configure(['balance']);
    writeFileSync(join(machine.etc, 'config.yaml'), 'notebok: {}\n');
    await machine.run('systemctl', 'start', 'labfeed');
    await said('did you mean');
    await until('it has failed', async () => (await machine.shows('ActiveState')) === 'failed', LONG_MS);
    expect(await machine.shows('ExecMainStatus')).toBe('78');
    expect(await machine.shows('NRestarts')).toBe('0');
  },
  240_000,
);

test.skipIf(!CAN_BOOT)(
  'a daemon that hangs is restarted by the watchdog, and files what came meanwhile',
  async () => {
    const { machine, configure, drop, filed } = await setUp({ WatchdogSec: '12s', TimeoutStopSec: '2s' });
    configure(['balance']);
    await machine.run('systemctl', 'start', 'labfeed');
    // It notifies the watchdog.
    await sleep(16_000);
    expect(await machine.shows('NRestarts')).toBe('0');
    expect((await machine.run('systemctl', 'kill', '--kill-who=main', '--signal=STOP', 'labfeed')).status).toBe(0);
    drop('balance', 1);
    await filed(1);
    expect(await machine.shows('NRestarts')).toBe('1');
  },
  240_000,
);

test.skipIf(!CAN_BOOT)(
  'commands reach the service: root decides, members of the group read, strangers learn that they may not',
  async () => {
    const { machine, configure, drop, filed } = await setUp();
    configure(['balance']);
    await machine.run('systemctl', 'start', 'labfeed');
    drop('balance', 1);
    await filed(1);
    const labfeed = (...args: string[]) => machine.run('labfeed', ...args);
    const as = (user: string, ...args: string[]) =>
      machine.run('setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', 'labfeed', ...args);

    expect(await labfeed('status')).toMatchObject({ status: 0, output: expect.stringContaining('balance') });
    // The key is a credential, which only the service can read.
    expect(await labfeed('check')).toMatchObject({ status: 0, output: expect.stringMatching(/ok +.*key/) });
    expect(await labfeed('keys', 'list')).toMatchObject({ status: 0 });
    expect(await labfeed('audit', '--safe')).toEqual({ status: 0, output: '/srv/balance/1.csv' });
    expect(await labfeed('retry', '1')).toMatchObject({ output: expect.stringContaining('done') });
    expect(await labfeed('run')).toMatchObject({
      status: 1,
      output: expect.stringContaining('in use by another daemon'),
    });

    expect(await as('member', 'jobs', '--json')).toMatchObject({ status: 0, output: expect.stringContaining('1.csv') });
    expect(await as('member', 'why', '/srv/balance/1.csv')).toMatchObject({ status: 0 });
    for (const decision of [
      ['retry', '1'],
      ['status', '--login'],
      ['keys', 'list'],
      ['audit', '--repair'],
    ])
      expect(await as('member', ...decision)).toEqual({
        status: 1,
        output: expect.stringContaining("only root and the service's user may do this"),
      });

    const refused = await as('stranger', 'status');
    expect(refused).toMatchObject({ status: 1, output: expect.stringContaining('permission denied') });
    expect(refused.output).not.toContain('no journal');
    expect((await as('stranger', 'run')).output).toContain('permission denied');

    await machine.run('systemctl', 'stop', 'labfeed');
    expect((await labfeed('status')).output).toContain('the daemon is not running');
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
