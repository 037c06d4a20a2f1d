import { spawn, spawnSync } from 'node:child_process';
import { existsSync, fstatSync, openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { CLI, makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function setUp(options: { timeout?: string } = {}) {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, ...options });
  return { site, sandbox };
}

function deferred(): [promise: Promise<void>, resolve: () => void] {
  let resolve: () => void = () => undefined;
  const promise = new Promise<void>((resolved) => {
    resolve = resolved;
  });
  return [promise, resolve];
}

test('SIGTERM waits for the current step, records it, and exits with 0', async () => {
  const { site, sandbox } = await setUp({ timeout: '20s' });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const [held, release] = deferred();
  const [posting, reached] = deferred();
  sandbox.control.decide = async ({ method }): Promise<'pass'> => {
    if (method === 'GET') return 'pass';
    reached();
    await held;
    return 'pass';
  };
  site.drop('a.csv', weighing(1));
  await posting;
  daemon.child.kill('SIGTERM');
  await daemon.logged('stopping');
  setTimeout(release, 300);
  expect(await daemon.ended).toBe(0);
  expect(daemon.lines.at(-1)?.msg).toBe('stopped');

  sandbox.control.decide = () => 'pass';
  const again = startDaemon(site.config);
  await again.logged('run filed');
  await again.stop();
  expect(sandbox.control.writes().map(({ method }) => method)).toEqual(['POST', 'PATCH', 'POST']);
  expect(sandbox.experiments()).toHaveLength(1);
});

test('SIGTERM exits with 0 in time even if the notebook never answers', async () => {
  const { site, sandbox } = await setUp({ timeout: '60s' });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const [request, asked] = deferred();
  sandbox.control.decide = () => {
    asked();
    return new Promise(() => undefined);
  };
  site.drop('a.csv', weighing(1));
  await request;
  const before = Date.now();
  expect(await daemon.stop()).toBe(0);
  // As long as systemd waits: `TimeoutStopSec` of the service.
  expect(Date.now() - before).toBeLessThan(15_000);
});

test('SIGHUP loads a new configuration without losing a step, and refuses one with mistakes', async () => {
  const { site, sandbox } = await setUp();
  const good = readFileSync(site.config, 'utf8');
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  writeFileSync(site.config, good.replace('instruments:', 'instrumnets:'));
  daemon.child.kill('SIGHUP');
  const { problems } = await daemon.logged('new configuration rejected, keeping the current one');
  expect(problems).toMatch(/labfeed\.yaml:8:1: unknown key "instrumnets"/);
  site.drop('a.csv', weighing(1));
  await daemon.logged('run filed');

  // Written right before the reload: whichever configuration finds the file, it is filed once.
  site.drop('b.csv', weighing(2));
  writeFileSync(site.config, `${good}  second: { watch: data/second, ready: { quiet: 100ms } }\n`);
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  site.drop('c.csv', weighing(3), 'second');
  await until('all filed', () => sandbox.experiments().filter(({ comments }) => comments.length > 0).length === 3);
  expect(await daemon.stop()).toBe(0);
  expect(
    sandbox
      .experiments()
      .map(({ title }) => title)
      .sort(),
  ).toEqual(['a (balance)', 'b (balance)', 'c (second)']);
});

test('a run whose request outlasts a reload is finished right after the answer', async () => {
  const { site, sandbox } = await setUp({ timeout: '60s' });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const [answer, release] = deferred();
  const [patching, reached] = deferred();
  sandbox.control.decide = async ({ method }): Promise<'pass'> => {
    if (method !== 'PATCH') return 'pass';
    reached();
    await answer;
    return 'pass';
  };
  site.drop('a.csv', weighing(1));
  await patching;
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  release();
  await daemon.logged('run filed', 40_000);
  expect(await daemon.stop()).toBe(0);
  expect(sandbox.experiments().map(({ comments }) => comments.length)).toEqual([1]);
});

test('SIGTERM exits cleanly even if nobody reads the log', async () => {
  const { site, sandbox } = await setUp();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  daemon.child.stdout?.destroy();
  site.drop('a.csv', weighing(1));
  await until('filed all the same', () => sandbox.experiments().some(({ comments }) => comments.length > 0));
  expect(await daemon.stop()).toBe(0);
});

test('a second signal exits at once', async () => {
  const { site, sandbox } = await setUp({ timeout: '60s' });
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  const [request, asked] = deferred();
  sandbox.control.decide = () => {
    asked();
    return new Promise(() => undefined);
  };
  site.drop('a.csv', weighing(1));
  await request;
  daemon.child.kill('SIGTERM');
  await daemon.logged('stopping');
  const before = Date.now();
  daemon.child.kill('SIGTERM');
  expect(await daemon.ended).toBe(143);
  // Otherwise it waits for its request for 8 s.
  expect(Date.now() - before).toBeLessThan(5000);
});

test('the key appears in no log, error, journal or process list, even if the server returns it', async () => {
  const { site, sandbox } = await setUp();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  sandbox.control.decide = ({ method, headers: { authorization = '' } }) =>
    method === 'PATCH'
      ? { answer: 400, headers: { 'x-echo': authorization }, json: { message: `bad key ${authorization}` } }
      : 'pass';
  site.drop('a.csv', weighing(1));
  await daemon.logged('run parked');
  const commandLine = readFileSync(`/proc/${daemon.child.pid}/cmdline`, 'utf8');
  await daemon.stop();
  expect(sandbox.control.requests()[0]?.headers.authorization).toBe(sandbox.key);
  for (const place of [
    daemon.output(),
    commandLine,
    readFileSync(site.journal, 'latin1'),
    readFileSync(`${site.journal}-wal`, { encoding: 'latin1', flag: 'a+' }),
  ]) {
    expect(place).not.toContain(sandbox.key);
  }
});

/** `script` gives the command a terminal, and closes it when it ends itself. */
test('closing the terminal ends a daemon in the foreground, cleanly', async () => {
  const { site } = await setUp();
  const output = join(site.folder, 'terminal.txt');
  const terminal = spawn('script', [
    '--quiet',
    '--flush',
    '--command',
    `${process.execPath} ${CLI} run --config ${site.config}`,
    output,
  ]);
  onTestFinished(() => void terminal.kill('SIGKILL'));
  const shown = (): string => (existsSync(output) ? readFileSync(output, 'utf8') : '');
  await until('the daemon is ready', () => shown().includes('ready') && existsSync(`${site.journal}.live`));
  const { pid } = JSON.parse(readFileSync(`${site.journal}.live`, 'utf8')) as { pid: number };
  terminal.kill('SIGKILL');
  await until('the daemon has ended', () => !existsSync(`/proc/${pid}`));
  // A clean end removes the status file.
  expect(existsSync(`${site.journal}.live`)).toBe(false);
});

test('errors of a service have the priority that `journalctl -p err` shows', () => {
  const config = join(tempFolder(), 'labfeed.yaml');
  writeFileSync(config, 'notebok: {}\n');
  const log = join(tempFolder(), 'journal');
  const descriptor = openSync(log, 'w');
  const { dev, ino } = fstatSync(descriptor);
  const env = { ...process.env, JOURNAL_STREAM: `${dev}:${ino}` };
  const { status } = spawnSync(process.execPath, [CLI, 'run', '--config', config], {
    env,
    stdio: ['ignore', descriptor, descriptor],
  });
  expect(status).toBe(78);
  const lines = readFileSync(log, 'utf8').trim().split('\n');
  expect(lines.length).toBeGreaterThan(0);
  for (const line of lines) expect(line).toMatch(/^<3>/);
});
