import { execFile, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { onTestFinished } from 'vitest';
import { tempFolder } from './temp-folder.js';
import { until } from './until.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BOOT = fileURLToPath(new URL('boot-systemd.sh', import.meta.url));
const BOOT_DEBIAN = fileURLToPath(new URL('boot-debian.sh', import.meta.url));
/** Needs systemd, and permission to create a machine for it. */
export const CAN_BOOT =
  spawnSync('/lib/systemd/systemd', ['--version']).status === 0 &&
  spawnSync('unshare', [...namespaces(), 'mount', '-t', 'tmpfs', 'tmpfs', '/run']).status === 0;

function namespaces(): string[] {
  return ['--pid', '--fork', '--kill-child', '--mount', '--uts', '--ipc', '--cgroup', '--mount-proc'];
}

/** Every service waits for this; it has nothing to do here. */
const TARGETS = ['boot', 'sysinit', 'basic', 'network-online', 'remote-fs', 'shutdown', 'multi-user'];

export interface Machine {
  /** Becomes /srv. */
  readonly srv: string;
  /** Becomes /etc/labfeed. */
  readonly etc: string;
  /** Runs a command in the machine. */
  run(command: string, ...args: string[]): Promise<{ readonly status: number; readonly output: string }>;
  /** A property of the service, as systemd shows it. */
  shows(property: string): Promise<string>;
  /** Settles when the machine is off. */
  readonly ended: Promise<unknown>;
}

/** A real systemd as PID 1 of its own namespaces, with labfeed installed as its unit file says. */
export async function bootMachine(): Promise<Machine> {
  const folder = tempFolder();
  const [units, etc, srv] = ['units', 'etc', 'srv'].map((name) => join(folder, name)) as [string, string, string];
  for (const path of [units, etc, srv]) mkdirSync(path, { mode: 0o755 });
  for (const target of TARGETS)
    writeFileSync(join(units, `${target}.target`), `[Unit]\nDescription=${target}\nDefaultDependencies=no\n`);
  copyFileSync(join(PROJECT, 'systemd/labfeed.service'), join(units, 'labfeed.service'));
  // There is no systemd-journald to log to.
  mkdirSync(join(units, 'labfeed.service.d'));
  writeFileSync(
    join(units, 'labfeed.service.d/log.conf'),
    '[Service]\nStandardOutput=append:/run/labfeed.log\nStandardError=append:/run/labfeed.log\n',
  );

  return { srv, etc, ...(await start([BOOT, folder, PROJECT, process.execPath])) };
}

/** Runs the script as the first process of its own namespaces, until the test ends. */
async function start(command: readonly string[]) {
  const outside = spawn('unshare', [...namespaces(), ...command], { stdio: 'ignore' });
  const ended = once(outside, 'exit');
  onTestFinished(async () => {
    outside.kill('SIGKILL');
    await ended;
  });
  /** The process that is PID 1 in the machine. */
  const first = (): string => readFileSync(`/proc/${outside.pid}/task/${outside.pid}/children`, 'utf8').trim();
  const run: Machine['run'] = (program, ...args) =>
    new Promise((resolve) => {
      const entered = ['--target', first(), '--mount', '--pid', program, ...args];
      execFile('nsenter', entered, { env: { PATH: process.env['PATH'] } }, (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code ?? -1) : 0, output: `${stdout}${stderr}`.trim() }),
      );
    });
  await until('systemd answers', async () => first() !== '' && (await run('systemctl', 'show')).status === 0, 60_000);
  return {
    run,
    shows: async (property: string) =>
      (await run('systemctl', 'show', '--value', '--property', property, 'labfeed')).output,
    ended,
  };
}

/** Needs mmdebstrap. */
export const CAN_INSTALL = CAN_BOOT && spawnSync('mmdebstrap', ['--version']).status === 0;

/**
 * A package source of this machine that offers `main` of a Debian release: of sources for other packages, or for updates
 * alone, nothing can be installed. `read` returns the index of a source, empty if it has none.
 */
export function mirrorFor(release: string, sources = aptSources(), read = readIndex): string | undefined {
  return sources.find((source) => {
    const index = read(`${source}dists/${release}/InRelease`);
    return /^Origin: Debian$/m.test(index) && /^Components:.* main\b/m.test(index);
  });
}

/** Each ends with a slash. */
function aptSources(): string[] {
  const args = ['indextargets', '--format', '$(REPO_URI)', 'Created-By: Packages', 'Component: main'];
  const { stdout } = spawnSync('apt-get', args, { encoding: 'utf8' });
  return [...new Set((stdout ?? '').split('\n').filter(Boolean))];
}

/** With the proxies and credentials of apt. */
function readIndex(url: string): string {
  const file = join(tempFolder(), 'InRelease');
  const { status } = spawnSync('/usr/lib/apt/apt-helper', ['download-file', url, file], { timeout: 60_000 });
  return status === 0 ? readFileSync(file, 'utf8') : '';
}

/** A configuration of the service, with one folder in /srv for each instrument. */
export const serviceConfig = (url: string, instruments: readonly string[]): string =>
  [
    `notebook: { url: "${url}", key: { credential: api-key } }`,
    'status: false',
    'instruments:',
    ...instruments.map((name) => `  ${name}: { watch: /srv/${name}, ready: { quiet: 150ms } }`),
    '',
  ].join('\n');

/** Units that belong to a machine with a console and a kernel of its own, and those that use the network. */
const MASKED = [
  ...['getty.target', 'console-getty.service', 'apt-daily.timer', 'apt-daily-upgrade.timer'],
  ...['systemd-sysctl.service', 'systemd-modules-load.service'],
];

/** The folder of a fresh Debian with systemd and little else. */
export async function installDebian(release: string, skip: (note: string) => void): Promise<string> {
  const mirror = mirrorFor(release);
  if (mirror === undefined) skip(`no package source of this machine offers main of ${release}`);
  const root = join(tempFolder(), 'root');
  const options = ['--quiet', '--variant=minbase', '--include=systemd,systemd-sysv'];
  await promisify(execFile)('mmdebstrap', [...options, release, root, mirror ?? '']);
  for (const unit of MASKED) symlinkSync('/dev/null', join(root, 'etc/systemd/system', unit));
  return root;
}

export async function bootDebian(root: string) {
  return { srv: join(root, 'srv'), etc: join(root, 'etc/labfeed'), ...(await start([BOOT_DEBIAN, root])) };
}

/** The Debian package, as `npm run deb` makes it but for the compression. */
export async function buildPackage(folder: string): Promise<string> {
  const env = { ...process.env, DPKG_DEB_COMPRESSOR_TYPE: 'gzip', DPKG_DEB_COMPRESSOR_LEVEL: '1' };
  const script = join(PROJECT, 'systemd/deb/build.mjs');
  const { stdout } = await promisify(execFile)(process.execPath, [script, folder], { env });
  return stdout.trim();
}
