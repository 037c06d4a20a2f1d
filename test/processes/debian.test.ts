import { execFile, spawnSync } from 'node:child_process';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { weighing } from '../support/daemon-process.js';
import {
  bootDebian,
  buildPackage,
  CAN_INSTALL,
  installDebian,
  type Machine,
  mirrorFor,
  serviceConfig,
} from '../support/machine-with-systemd.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/*
 * The Debian package in a fresh Debian, under its own systemd.
 */

if (!CAN_INSTALL)
  console.warn('needs mmdebstrap and the right to boot a machine: the Debian package is not installed here');
const HAS_LINTIAN = spawnSync('lintian', ['--version']).status === 0;
if (!HAS_LINTIAN) console.warn('lintian is not installed: it does not check the Debian package here');

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const LONG_MS = 120_000;

/** The package, built once. */
let built: Promise<string>;
const folder = mkdtempSync(join(tmpdir(), 'labfeed-deb-'));
beforeAll(() => {
  if (CAN_INSTALL || HAS_LINTIAN) built = buildPackage(folder);
});
afterAll(() => rmSync(folder, { recursive: true }));

async function setUp(release: string, skip: (note: string) => void) {
  const sandbox = await runSandbox(join(tempFolder(), 'notebook.db'));
  const [root, file] = await Promise.all([installDebian(release, skip), built]);
  const machine = await bootDebian(root);
  for (const name of ['balance', 'logger']) mkdirSync(join(machine.srv, name));
  /** Of experiments with their comments, which come last. */
  const titles = (): string[] =>
    sandbox.experiments().flatMap(({ title, comments }) => (comments.length === 0 ? [] : [title]));
  const site = {
    sandbox,
    root,
    machine,
    file,
    titles,
    drop: (instrument: string, n: number): void =>
      writeFileSync(join(machine.srv, instrument, `${n}.csv`), weighing(n)),
    filed: (runs: number): Promise<void> =>
      until(`${runs} runs in the notebook`, () => titles().length === runs, LONG_MS),
    configure: (...instruments: string[]): void =>
      writeFileSync(join(machine.etc, 'config.yaml'), serviceConfig(sandbox.url, instruments)),
  };
  return site;
}

type Site = Awaited<ReturnType<typeof setUp>>;

async function succeeds({ run }: Machine, command: string, ...args: string[]): Promise<string> {
  const { status, output } = await run(command, ...args);
  expect(status, `${[command, ...args].join(' ')}: ${output}`).toBe(0);
  return output;
}

async function installs({ machine }: Site, file: string): Promise<string> {
  copyFileSync(file, join(machine.srv, '..', 'root', basename(file)));
  return succeeds(machine, 'dpkg', '--install', `/root/${basename(file)}`);
}

test.skipIf(!CAN_INSTALL)(
  'the Debian package runs as a service: it survives what happens to machines, and keeps its records',
  async ({ skip }) => {
    const site = await setUp('bookworm', skip);
    const { sandbox, machine, configure, drop, filed } = site;
    expect(await installs(site, site.file)).toContain('sudo labfeed setup');
    expect([await machine.shows('ActiveState'), await machine.shows('UnitFileState')]).toEqual([
      ...['inactive', 'disabled'],
    ]);
    await isComplete(site);
    writeFileSync(join(machine.etc, 'api-key'), `${sandbox.key}\n`, { mode: 0o600 });
    await showsMistakes(site);

    configure('balance');
    // Returns when the service is ready.
    await succeeds(machine, 'systemctl', 'enable', '--now', 'labfeed');
    expect(await machine.shows('StatusText')).toBe('watching 1 folder');
    drop('balance', 1);
    await filed(1);
    await keepsToItself(site);
    await obeysWhomItShould(site);

    await succeeds(machine, 'systemctl', 'kill', '--signal=KILL', 'labfeed');
    drop('balance', 2);
    await filed(2);
    expect(await machine.shows('NRestarts')).toBe('1');
    await isWatched(site);
    await reloads(site);
    const rebooted = await reboots(site);
    await upgrades(rebooted);
    await isPurged(rebooted);
    expect(site.titles()).toEqual(
      [1, 2, 3, 4, 5, 6, 7].map((n) => `${n} (${n === 4 || n === 5 ? 'logger' : 'balance'})`),
    );
  },
);

test.skipIf(!CAN_INSTALL)(
  'a fresh Debian 13 files its first run five minutes and three steps after the package was copied to it',
  async ({ skip }) => {
    const { machine, sandbox, file, titles } = await setUp('trixie', skip);
    copyFileSync(file, join(machine.srv, 'labfeed.deb'));
    writeFileSync(join(machine.srv, 'key'), sandbox.key);
    writeFileSync(
      join(machine.srv, 'answers.yaml'),
      `server: ${sandbox.url}\nkey: { file: key }\nfolder: balance\nsample: none\nname: balance\nstart: true\n`,
    );
    const steps: [what: string, command: string][] = [
      ['install', 'dpkg --install /srv/labfeed.deb'],
      ['set up', 'labfeed setup --answers /srv/answers.yaml'],
      ['weigh', `printf '${weighing(1).replaceAll('\n', '\\n')}' > /srv/balance/1.csv`],
    ];
    const start = Date.now();
    const seconds = (): number => (Date.now() - start) / 1000;
    for (const [what, command] of steps) {
      await succeeds(machine, '/bin/sh', '-c', command);
      console.log(`${seconds().toFixed(1).padStart(6)} s  ${what}: ${command}`);
    }
    await until('the run is in the notebook', () => titles().length === 1, LONG_MS);
    console.log(`${seconds().toFixed(1).padStart(6)} s  filed: ${titles()}`);
    expect(seconds()).toBeLessThan(300);
    const jobs = () => succeeds(machine, 'labfeed', 'jobs');
    await until('the journal knows it', async () => (await jobs()).includes('done'), LONG_MS);
  },
);

test.skipIf(!HAS_LINTIAN)('lintian finds no errors in the Debian package', async () => {
  const args = ['--allow-root', '--no-cfg', '--fail-on', 'none', '--display-level', '=error', await built];
  const { stdout, stderr } = await promisify(execFile)('lintian', args);
  expect(stdout + stderr).toBe('');
});

test('the machine is installed from a source that offers main of the release', () => {
  const index = (origin: string, ...components: string[]) =>
    `Origin: ${origin}\nSuite: stable\nComponents: ${components.join(' ')}\n`;
  const indexes: Readonly<Record<string, string>> = {
    'http://ppa/dists/trixie/InRelease': index('PPA', 'main'),
    'http://a/dists/trixie/InRelease': index('Debian', 'contrib'),
    'http://b/dists/trixie/InRelease': index('Debian', 'contrib', 'main'),
  };
  const choose = (...sources: string[]) => mirrorFor('trixie', sources, (url) => indexes[url] ?? '');
  expect(choose('http://security/', 'http://ppa/', 'http://a/', 'http://b/')).toBe('http://b/');
  expect(choose('http://security/', 'http://ppa/')).toBeUndefined();
});

/** The package has the versions of the lock file, a manual page with every command, and completion. */
async function isComplete({ root, machine }: Site): Promise<void> {
  const { packages } = JSON.parse(readFileSync(join(PROJECT, 'npm-shrinkwrap.json'), 'utf8')) as {
    packages: Readonly<Record<string, { readonly version: string }>>;
  };
  const versions = installedVersions(join(root, 'usr/lib/labfeed'), '');
  expect(versions.length).toBeGreaterThan(50);
  expect(versions.filter(([name, version]) => packages[name]?.version !== version)).toEqual([]);

  const page = gunzipSync(readFileSync(join(root, 'usr/share/man/man1/labfeed.1.gz'))).toString();
  const help = await succeeds(machine, 'labfeed', '--help');
  const commands = [...help.matchAll(/^ {2}([a-z]+) /gm)].map(([, name]) => `labfeed ${name}`);
  expect(commands.length).toBeGreaterThan(20);
  for (const command of [...commands, 'labfeed keys rotate']) expect(page).toContain(`.SS ${command} `);
  expect(page).toContain('.B \\-\\-repair');
  for (const path of ['bash-completion/completions/labfeed', 'zsh/vendor-completions/_labfeed'])
    expect(readFileSync(join(root, 'usr/share', path), 'utf8')).toContain('quarantined');
}

/** Paths below `folder`, as in the lock file. */
function installedVersions(folder: string, inside: string): [name: string, version: string][] {
  const modules = join(folder, inside, 'node_modules');
  if (!existsSync(modules)) return [];
  const names = readdirSync(modules).flatMap((name) =>
    name.startsWith('@') ? readdirSync(join(modules, name)).map((inner) => `${name}/${inner}`) : [name],
  );
  return names.flatMap((name): [string, string][] => {
    const path = join(inside, 'node_modules', name);
    const { version } = JSON.parse(readFileSync(join(folder, path, 'package.json'), 'utf8'));
    return [[path, version], ...installedVersions(folder, path)];
  });
}

/** A wrong configuration is not tried again and again, and `systemctl status` shows the mistake. */
async function showsMistakes({ machine }: Site): Promise<void> {
  writeFileSync(join(machine.etc, 'config.yaml'), 'notebok: {}\n');
  await machine.run('systemctl', 'start', 'labfeed');
  // One that waits for its next start would be `activating`.
  expect([await machine.shows('ExecMainStatus'), await machine.shows('ActiveState')]).toEqual(['78', 'failed']);
  expect((await machine.run('systemctl', 'status', '--no-pager', 'labfeed')).output).toContain('did you mean');
}

const as = (user: string, ...command: string[]): [string, ...string[]] => [
  ...(['setpriv', `--reuid=${user}`, `--regid=${user}`, '--init-groups', ...command] as [string, ...string[]]),
];

/** Nobody else reads the key and the journal, and the service writes only to its state folder. */
async function keepsToItself({ machine, sandbox }: Site): Promise<void> {
  const { run } = machine;
  await succeeds(machine, 'useradd', '--system', '--user-group', '--groups', 'labfeed', 'member');
  await succeeds(machine, 'useradd', '--system', '--user-group', 'outsider');
  for (const user of ['labfeed', 'member', 'outsider'])
    expect((await run(...as(user, 'cat', '/etc/labfeed/api-key'))).output).toContain('Permission denied');
  for (const user of ['member', 'outsider'])
    expect((await run(...as(user, 'ls', '/var/lib/labfeed'))).output).toContain('Permission denied');
  expect((await run('grep', '-lr', sandbox.key, '/var/lib/labfeed', '/var/log', '/run/log')).output).toBe('');
  const pid = await machine.shows('MainPID');
  expect(await succeeds(machine, 'cat', `/proc/${pid}/cmdline`, `/proc/${pid}/environ`)).not.toContain(sandbox.key);

  // Everybody may write to these folders, but not the service.
  chmodSync(join(machine.srv, 'balance'), 0o777);
  const inside = ['nsenter', '--target', pid, '--mount'] as const;
  const { output } = await run(
    ...inside,
    ...as('labfeed', 'touch', '/srv/balance/x', '/var/tmp/x', '/var/lib/labfeed/x'),
  );
  expect(output.match(/touch: .*$/gm)).toEqual(["touch: cannot touch '/srv/balance/x': Read-only file system"]);
  const written = await succeeds(
    machine,
    'find',
    '/',
    '-xdev',
    '-user',
    'labfeed',
    '-not',
    '-path',
    '/var/lib/labfeed*',
  );
  expect(written.split('\n').filter((path) => path !== '' && !path.includes('/systemd-private-'))).toEqual([]);
}

/** Root decides, members of the group look, others are refused. */
async function obeysWhomItShould({ machine }: Site): Promise<void> {
  const labfeed = (...args: string[]) => machine.run('labfeed', ...args);
  const may = (user: string, ...args: string[]) => machine.run(...as(user, 'labfeed', ...args));
  expect(await labfeed('status')).toMatchObject({ status: 0, output: expect.stringContaining('balance') });
  // The key is a credential, which only the service can read.
  expect(await labfeed('check')).toMatchObject({ status: 0, output: expect.stringMatching(/ok +.*key/) });
  expect(await labfeed('keys', 'list')).toMatchObject({ status: 0 });
  await until('the journal knows it', async () => (await labfeed('jobs')).output.includes('done'), LONG_MS);
  expect(await labfeed('audit', '--safe')).toEqual({ status: 0, output: '/srv/balance/1.csv' });
  expect(await labfeed('retry', '1')).toMatchObject({ output: expect.stringContaining('done') });
  expect(await labfeed('run')).toMatchObject({
    status: 1,
    output: expect.stringContaining('in use by another daemon'),
  });

  expect(await may('member', 'jobs', '--json')).toMatchObject({ status: 0, output: expect.stringContaining('1.csv') });
  expect(await may('member', 'why', '/srv/balance/1.csv')).toMatchObject({ status: 0 });
  for (const decision of ['retry 1', 'status --login', 'keys list', 'audit --repair'])
    expect(await may('member', ...decision.split(' '))).toEqual({
      status: 1,
      output: expect.stringContaining("only root and the service's user may do this"),
    });

  const refused = await may('outsider', 'status');
  expect(refused).toMatchObject({ status: 1, output: expect.stringContaining('permission denied') });
  expect(refused.output).not.toContain('no journal');
  expect((await may('outsider', 'run')).output).toContain('permission denied');
}

/** A daemon that hangs is restarted by the watchdog, and files what came meanwhile. */
async function isWatched({ root, machine, drop, filed }: Site): Promise<void> {
  const dropIn = join(root, 'etc/systemd/system/labfeed.service.d');
  mkdirSync(dropIn);
  writeFileSync(join(dropIn, 'faster.conf'), '[Service]\nWatchdogSec=12s\nTimeoutStopSec=2s\nTimeoutAbortSec=2s\n');
  await succeeds(machine, 'systemctl', 'daemon-reload');
  await succeeds(machine, 'systemctl', 'restart', 'labfeed');
  const restarts = Number(await machine.shows('NRestarts'));
  // It gives signs of life.
  const since = Date.now();
  await until('the watchdog would have bitten', () => Date.now() - since > 14_000, LONG_MS);
  expect(Number(await machine.shows('NRestarts'))).toBe(restarts);
  await succeeds(machine, 'systemctl', 'kill', '--kill-whom=main', '--signal=STOP', 'labfeed');
  drop('balance', 3);
  await filed(3);
  expect(Number(await machine.shows('NRestarts'))).toBe(restarts + 1);
  // A busy machine needs more time for a clean stop.
  rmSync(dropIn, { recursive: true });
  await succeeds(machine, 'systemctl', 'daemon-reload');
}

const isReady = ({ shows }: Machine): Promise<void> =>
  until('the service is ready', async () => (await shows('ActiveState')) === 'active', LONG_MS);

/** A reload takes a new configuration, and rejects a wrong one. */
async function reloads({ machine, configure, drop, filed }: Site): Promise<void> {
  await isReady(machine);
  configure('balance', 'logger');
  await succeeds(machine, 'systemctl', 'reload', 'labfeed');
  drop('logger', 4);
  await filed(4);
  configure('balance: { rat: 1 }');
  await machine.run('systemctl', 'reload', 'labfeed');
  const log = async (): Promise<string> => (await machine.run('journalctl', '--unit=labfeed', '--priority=err')).output;
  await until('the mistake is in the log', async () => (await log()).includes('config.yaml:4'), LONG_MS);
  drop('logger', 5);
  await filed(5);
  configure('balance', 'logger');
}

async function reboots(site: Site): Promise<Site> {
  await site.machine.run('systemctl', 'reboot');
  await site.machine.ended;
  site.drop('balance', 6);
  const rebooted = { ...site, machine: await bootDebian(site.root) };
  await site.filed(6);
  await isReady(rebooted.machine);
  return rebooted;
}

/** The same package with a later version. */
async function laterVersion(file: string): Promise<string> {
  const folder = tempFolder();
  await promisify(execFile)('dpkg-deb', ['--raw-extract', file, join(folder, 'root')]);
  const control = join(folder, 'root/DEBIAN/control');
  writeFileSync(control, readFileSync(control, 'utf8').replace(/^Version: .*$/m, 'Version: 99'));
  await promisify(execFile)('dpkg-deb', ['-Znone', '--build', join(folder, 'root'), join(folder, 'labfeed_99.deb')]);
  return join(folder, 'labfeed_99.deb');
}

/** Configuration, journal and state of the service stay as they are. */
async function upgrades(site: Site): Promise<void> {
  const { machine, drop, filed } = site;
  const config = readFileSync(join(machine.etc, 'config.yaml'), 'utf8');
  const pid = await machine.shows('MainPID');
  const later = await laterVersion(site.file);
  await installs(site, later);
  expect(await succeeds(machine, 'dpkg-query', '--show', 'labfeed')).toBe('labfeed\t99');
  expect(readFileSync(join(machine.etc, 'config.yaml'), 'utf8')).toBe(config);
  expect([await machine.shows('ActiveState'), await machine.shows('UnitFileState')]).toEqual(['active', 'enabled']);
  expect(await machine.shows('MainPID')).not.toBe(pid);
  drop('balance', 7);
  await filed(7);
  // A service that was stopped is not started. A downgrade works in the same way.
  await succeeds(machine, 'systemctl', 'stop', 'labfeed');
  expect(await machine.shows('Result')).toBe('success');
  await installs(site, site.file);
  expect(await succeeds(machine, 'dpkg-query', '--show', 'labfeed')).not.toBe('labfeed\t99');
  expect(await machine.shows('ActiveState')).toBe('inactive');
  expect(readFileSync(join(machine.etc, 'config.yaml'), 'utf8')).toBe(config);
  await succeeds(machine, 'systemctl', 'start', 'labfeed');
}

/** The journal stays: after another installation nothing is filed twice. */
async function isPurged(site: Site): Promise<void> {
  const { root, machine, configure, sandbox } = site;
  expect(await succeeds(machine, 'dpkg', '--purge', 'labfeed')).toContain('the journal is kept');
  expect(['etc/labfeed', 'usr/lib/labfeed', 'usr/bin/labfeed'].filter((path) => existsSync(join(root, path)))).toEqual(
    [],
  );
  expect(existsSync(join(root, 'var/lib/labfeed/journal.db'))).toBe(true);
  expect((await machine.run('systemctl', 'status', 'labfeed')).output).toContain('could not be found');

  await installs(site, site.file);
  writeFileSync(join(machine.etc, 'api-key'), `${sandbox.key}\n`, { mode: 0o600 });
  configure('balance', 'logger');
  await succeeds(machine, 'systemctl', 'start', 'labfeed');
  expect(await succeeds(machine, 'labfeed', 'audit', '--safe')).toContain('/srv/balance/7.csv');
}
