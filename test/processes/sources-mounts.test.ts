import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import { makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { mount, mountShare, TMPFS } from '../support/mount.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

beforeAll(() => {
  vi.stubEnv('LABFEED_TEST_UNCHANGED_MS', '0');
});
afterAll(() => {
  vi.unstubAllEnvs();
});

const KILLING = pathToFileURL(new URL('../support/killed-in-steps.mjs', import.meta.url).pathname).href;

async function setUp(move: string) {
  const folder = tempFolder();
  const { url, key } = await runSandbox(join(folder, 'notebook.db'), 0, 'v2');
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 100ms }, poll: 1s, source: { move: ${move} } }`;
  const site = makeSite(folder, { url, key, instruments });
  const [data, target] = [join(folder, 'data/balance'), join(folder, move)];
  mkdirSync(data, { recursive: true });
  mkdirSync(target, { recursive: true });
  const says = (text: RegExp, ...command: string[]): Promise<void> =>
    vi.waitFor(
      async () => expect((await labfeed([...command, '--config', site.config], folder)).stdout).toMatch(text),
      { timeout: 90_000, interval: 200 },
    );
  return {
    ...{ folder, site, data, target },
    /** A folder on another device than the temporary one, which keeps its files while it is not mounted. */
    share(): string {
      const share = mkdtempSync('/dev/shm/labfeed-');
      onTestFinished(() => rmSync(share, { recursive: true }));
      return share;
    },
    alarm: (text: RegExp) => says(text, 'status'),
    why: (name: string, text: RegExp) => says(text, 'why', join(data, name)),
  };
}

const listed = (folder: string): string[] => readdirSync(folder);

describe('with file systems that come and go', () => {
  test('a file that was hidden on a share when labfeed was killed gets its name when the share is mounted again', async ({
    skip,
  }) => {
    const { site, data, target, share, alarm } = await setUp('filed');
    const disk = share();
    const unmount = mount(data, ['--bind', disk], skip);
    site.drop('a.csv', weighing(1));
    // After the file was renamed.
    const killed = startDaemon(site.config, { NODE_OPTIONS: `--import ${KILLING}`, LABFEED_KILL_AT: '5' });
    await killed.ended;
    expect(listed(data)).toEqual([expect.stringMatching(/^\.labfeed-[0-9a-f]+-a\.csv$/)]);
    unmount();
    const daemon = startDaemon(site.config);
    await alarm(/a\.csv: cannot find .*a\.csv: its folder is (missing|on another disk)/);
    mount(data, ['--bind', disk], skip);
    await until('the file is moved', () => existsSync(join(target, 'a.csv')) && listed(data).length === 0, 90_000);
    expect(readFileSync(join(target, 'a.csv'), 'utf8')).toBe(weighing(1));
    await daemon.stop();
  });

  test('nothing is moved beneath a target that is not mounted', async ({ skip }) => {
    const { site, folder, data, target, share, alarm, why } = await setUp('filed');
    const disk = share();
    const unmount = mount(target, ['--bind', disk], skip);
    site.drop('a.csv', weighing(1));
    const daemon = startDaemon(site.config);
    // As the journal says: the file appears in the target before the move is complete.
    await why('a.csv', /its file was moved to/);
    expect(listed(disk)).toEqual(['a.csv']);
    unmount();
    site.drop('b.csv', weighing(2));
    await alarm(/b\.csv: cannot move files to .*nothing is mounted at /);
    expect([readdirSync(target), listed(data)]).toEqual([[], ['b.csv']]);
    await daemon.stop();
    // Nor after a restart, which knows of no mount.
    const again = startDaemon(site.config);
    await again.logged('the filed file stays for now', 90_000);
    expect(readdirSync(target)).toEqual([]);
    mount(target, ['--bind', disk], skip);
    await again.logged('filed files settled', 90_000);
    expect(listed(disk)).toEqual(['a.csv', 'b.csv']);
    await again.stop();
    const { stdout } = await labfeed(['why', join(data, 'b.csv'), '--config', site.config], folder);
    expect(stdout).toContain(`its file was moved to ${join(target, 'b.csv')}`);
  });

  test('while a target hangs, files keep their names, others are filed, and the daemon stops in time', async ({
    skip,
  }) => {
    const { folder, site, data, target, alarm, why } = await setUp('filed');
    const nas = join(folder, 'nas');
    mkdirSync(nas);
    const { setFaults } = await mountShare(nas, target, skip);
    site.drop('a.csv', weighing(1));
    const daemon = startDaemon(site.config);
    // As the journal says: the file appears on the share before the move is complete.
    await why('a.csv', /its file was moved to/);
    expect(listed(nas)).toEqual(['a.csv']);
    setFaults('hang');
    site.drop('b.csv', weighing(2));
    await alarm(/b\.csv: cannot move files to .*: the disk or share does not respond \(ETIMEDOUT\)/);
    expect(listed(data)).toEqual(['b.csv']);
    site.drop('c.csv', weighing(3));
    await daemon.logged(({ msg, run }) => msg === 'run filed' && run === 3, 90_000);
    const stopping = Date.now();
    expect(await daemon.stop()).toBe(0);
    expect(Date.now() - stopping).toBeLessThan(15_000);
    expect(listed(data)).toEqual(['b.csv', 'c.csv']);
    setFaults();
    const again = startDaemon(site.config);
    await until(
      'all files are moved',
      () => listed(nas).join() === 'a.csv,b.csv,c.csv' && listed(data).length === 0,
      90_000,
    );
    expect(readFileSync(join(nas, 'b.csv'), 'utf8')).toBe(weighing(2));
    await again.stop();
  });

  test('between two mounts of one file system, a file is copied and checked', async ({ skip }) => {
    const { site, data, target, share } = await setUp('filed');
    const disk = share();
    for (const name of ['data', 'filed']) mkdirSync(join(disk, name));
    mount(data, ['--bind', join(disk, 'data')], skip);
    mount(target, ['--bind', join(disk, 'filed')], skip);
    site.drop('a.csv', weighing(1));
    // Only a part was copied when the power failed.
    const daemon = startDaemon(site.config, { NODE_OPTIONS: `--import ${KILLING}`, LABFEED_KILL_AT: '3' });
    await daemon.ended;
    const parts = listed(target).filter((one) => one.startsWith('.labfeed-'));
    expect(parts).toHaveLength(1);
    for (const name of parts) writeFileSync(join(target, name), 'a part');
    const again = startDaemon(site.config);
    await until('the file is moved', () => listed(target).join() === 'a.csv' && listed(data).length === 0, 90_000);
    expect(readFileSync(join(target, 'a.csv'), 'utf8')).toBe(weighing(1));
    await again.stop();
  });

  test.for([
    ['full', 'size=8k', 'size=1m', /there is no space left/],
    ['read-only', 'ro', 'rw', /the file system is read-only.*ReadWritePaths/s],
  ] as const)(
    'a target that is %s is an alarm, and the file stays',
    async ([, options, corrected, reason], { skip }) => {
      const { site, data, target, alarm } = await setUp('filed');
      mount(target, ['-o', options, ...TMPFS], skip);
      const content = weighing(1) + '1,2.5\n'.repeat(5000);
      site.drop('a.csv', content);
      const daemon = startDaemon(site.config);
      const { reason: logged } = await daemon.logged('the filed file stays for now', 90_000);
      expect(logged).toMatch(reason);
      await alarm(/1 filed file is neither moved nor deleted; for example a\.csv/);
      expect([listed(data), readFileSync(join(data, 'a.csv'), 'utf8'), listed(target)]).toEqual([
        ['a.csv'],
        content,
        [],
      ]);
      execFileSync('mount', ['-o', `remount,${corrected}`, target]);
      await until('the file is moved', () => existsSync(join(target, 'a.csv')), 120_000);
      expect(readFileSync(join(target, 'a.csv'), 'utf8')).toBe(content);
      await daemon.stop();
    },
  );
});
