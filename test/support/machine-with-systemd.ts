import { execFile, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { tempFolder } from './temp-folder.js';
import { until } from './until.js';

const PROJECT = fileURLToPath(new URL('../..', import.meta.url));
const BOOT = fileURLToPath(new URL('boot-systemd.sh', import.meta.url));
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
}

/** A real systemd as PID 1 of its own namespaces, with labfeed installed as its unit file says, but for these settings. */
export async function bootMachine(settings: Readonly<Record<string, string>> = {}): Promise<Machine> {
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
    [
      '[Service]\nStandardOutput=append:/run/labfeed.log\nStandardError=append:/run/labfeed.log\n',
      ...Object.entries(settings).map(([name, value]) => `${name}=${value}\n`),
    ].join(''),
  );

  const outside = spawn('unshare', [...namespaces(), BOOT, folder, PROJECT, process.execPath], {
    stdio: 'ignore',
  });
  onTestFinished(() => {
    outside.kill('SIGKILL');
  });
  /** The process that is PID 1 in the machine. */
  const first = (): string => readFileSync(`/proc/${outside.pid}/task/${outside.pid}/children`, 'utf8').trim();
  const run: Machine['run'] = (command, ...args) =>
    new Promise((resolve) => {
      execFile('nsenter', ['--target', first(), '--mount', '--pid', command, ...args], (error, stdout, stderr) =>
        resolve({ status: error ? Number(error.code ?? -1) : 0, output: `${stdout}${stderr}`.trim() }),
      );
    });
  await until('systemd answers', async () => first() !== '' && (await run('systemctl', 'show')).status === 0, 60_000);
  return {
    srv,
    etc,
    run,
    shows: async (property) => (await run('systemctl', 'show', '--value', '--property', property, 'labfeed')).output,
  };
}
