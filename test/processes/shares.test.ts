import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { mount, mountShare, TMPFS } from '../support/mount.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

async function makeScene() {
  const folder = tempFolder();
  const [source, share] = [join(folder, 'nas'), join(folder, 'data/share')];
  for (const path of [source, share]) mkdirSync(path, { recursive: true });
  const sandbox = await runSandbox(join(folder, 'notebook.db'));
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 100ms } }
  share: { watch: data/share, ready: { quiet: 100ms } }`;
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key, instruments, settings: 'log: debug\n' });
  const status = async () => (await labfeed(['status', '--config', site.config], folder)).stdout;
  return {
    ...{ folder, source, share, site, sandbox, status },
    write: (name: string, n: number) => writeFileSync(join(source, name), weighing(n)),
    filed: (runs: number) => until(`${runs} runs are filed`, () => sandbox.experiments().length === runs, 150_000),
    says: (what: string) => until(`status says: ${what}`, async () => (await status()).includes(what), 150_000),
  };
}

const NO_ANSWER = (code: string) => `data/share is unreadable: the disk or share does not respond (${code})`;

test('a share that hangs is away: other folders continue, the daemon stops in time, and nothing is filed again', async ({
  skip,
}) => {
  const { folder, source, share, site, sandbox, write, filed, says } = await makeScene();
  const { setFaults } = await mountShare(source, share, skip);
  write('a.csv', 1);
  const daemon = startDaemon(site.config);
  await filed(1);
  await says('network share (sshfs): polled every 10');
  const { stdout: checked } = await labfeed(['check', '--config', site.config], folder);
  expect(checked).toContain('sends no events for new files (network share (sshfs)), so labfeed scans it every 10 s');

  setFaults('hang');
  site.drop('one.csv', weighing(2));
  await filed(2);
  await says(NO_ANSWER('ETIMEDOUT'));
  // Many attempts later, too: each could have blocked a thread.
  await daemon.logged(({ msg, alarm }) => msg === 'alarm raised' && alarm === 'folder', 150_000);
  for (let n = 0; n < 6; n++) site.drop(`more-${n}.csv`, weighing(10 + n));
  await filed(8);
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded', 60_000);

  const stopping = Date.now();
  expect(await daemon.stop()).toBe(0);
  expect(Date.now() - stopping).toBeLessThan(15_000);

  // A crash, too, does not leave the journal locked.
  const second = startDaemon(site.config);
  site.drop('two.csv', weighing(3));
  await filed(9);
  await second.kill();
  const third = startDaemon(site.config);
  await third.logged('ready', 120_000);
  await says(NO_ANSWER('ETIMEDOUT'));

  setFaults();
  await third.logged('the folder is available again', 150_000);
  write('b.csv', 4);
  await filed(10);
  expect(await third.stop()).toBe(0);
  expect(sandbox.experiments()).toHaveLength(10);
});

test('a share with stale handles, without its program or its mount is away, and its files are filed once', async ({
  skip,
}) => {
  const { source, share, site, sandbox, write, filed, says } = await makeScene();
  const first = await mountShare(source, share, skip);
  write('a.csv', 1);
  const daemon = startDaemon(site.config);
  await filed(1);
  for (const code of ['ESTALE', 'EIO']) {
    first.setFaults(code);
    await says(NO_ANSWER(code));
    write(`${code}.csv`, code.length);
    first.setFaults();
    await filed(code === 'ESTALE' ? 2 : 3);
  }
  first.die();
  await says(NO_ANSWER('ENOTCONN'));
  first.unmount();
  await says(`data/share is missing: nothing is mounted at ${share}`);
  await daemon.stop();
  // The mount is missing at the start, too.
  const second = startDaemon(site.config);
  await second.logged(({ reason }) => String(reason).includes('nothing is mounted at'), 60_000);
  write('b.csv', 2);
  await mountShare(source, share, skip);
  await second.logged('the folder is available again', 150_000);
  await filed(4);
  await second.stop();
  expect(sandbox.experiments()).toHaveLength(4);
});

test('coarse times, a clock that differs and names that ignore case file each file once', async ({ skip }) => {
  const { source, share, site, sandbox, write, filed } = await makeScene();
  const { setFaults } = await mountShare(source, share, skip);
  setFaults('coarse', 'skew=86400', 'fold');
  write('a.csv', 1);
  write('old.csv', 2);
  utimesSync(join(source, 'old.csv'), 1, 1);
  const daemon = startDaemon(site.config);
  await filed(2);
  // The server's clock is set, which changes the times of all files, and somebody changes the case of a name.
  setFaults('coarse', 'skew=-86400', 'fold');
  renameSync(join(source, 'a.csv'), join(source, 'A.csv'));
  write('b.csv', 3);
  await filed(3);
  await daemon.logged(({ file, outcome }) => String(file).endsWith('/A.csv') && outcome === 'known', 60_000);
  expect(await daemon.stop()).toBe(0);
  expect(sandbox.experiments()).toHaveLength(3);
});

test('a disk that is unmounted and comes back, empty at first, is away meanwhile, also after a restart', async ({
  skip,
}) => {
  const { folder, share, site, sandbox, filed, says } = await makeScene();
  const disk = join(folder, 'disk');
  mkdirSync(disk);
  const unmount = mount(share, ['--bind', disk], skip);
  writeFileSync(join(disk, 'a.csv'), weighing(1));
  const daemon = startDaemon(site.config);
  await filed(1);
  unmount();
  await daemon.kill();
  const second = startDaemon(site.config);
  await says(`data/share is missing: nothing is mounted at ${share}`);
  const unmountEmpty = mount(share, TMPFS, skip);
  await says('data/share is missing: the share or disk had files, and is empty now');
  unmountEmpty();
  mount(share, ['--bind', disk], skip);
  await second.logged('the folder is available again', 150_000);
  writeFileSync(join(disk, 'b.csv'), weighing(2));
  await filed(2);
  await second.stop();
  expect(sandbox.experiments()).toHaveLength(2);
});

test('a call that hangs in the daemon itself does not keep it from exiting, and systemd counts that as clean', async () => {
  const pipe = join(tempFolder(), 'pipe');
  execFileSync('mkfifo', [pipe]);
  // Opening a pipe waits for somebody to write to it.
  const script = `import { open } from 'node:fs';
    import { exitNow } from ${JSON.stringify(fileURLToPath(new URL('../../dist/system/process.js', import.meta.url)))};
    process.on('SIGTERM', () => undefined);
    if (process.argv[1]) open(process.argv[1], 'r', () => undefined);
    await exitNow();`;
  const end = (...args: string[]) =>
    once(spawn(process.execPath, ['--input-type=module', '-e', script, ...args]), 'exit');
  expect(await end(pipe)).toEqual([null, 'SIGTERM']);
  expect(await end()).toEqual([0, null]);
});
