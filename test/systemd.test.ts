import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const UNIT = fileURLToPath(new URL('../systemd/labfeed.service', import.meta.url));
const HAS_SYSTEMD = spawnSync('systemd-analyze', ['--version']).status === 0;
if (!HAS_SYSTEMD) console.warn('systemd is not installed: the unit is not verified here');

test.skipIf(!HAS_SYSTEMD)('the unit file is one that systemd takes without complaint', () => {
  const { status, stderr, stdout } = spawnSync('systemd-analyze', ['verify', UNIT], { encoding: 'utf8' });
  expect({ status, said: stdout + stderr }).toEqual({ status: 0, said: '' });
});

test.skipIf(!HAS_SYSTEMD)('the exposure of the unit is at most 1.5 of 10', () => {
  const { stdout } = spawnSync('systemd-analyze', ['security', '--offline=yes', '--no-pager', UNIT], {
    encoding: 'utf8',
  });
  const [, exposure] = /Overall exposure level for labfeed\.service: ([\d.]+)/.exec(stdout) ?? [];
  expect(Number(exposure)).toBeLessThanOrEqual(1.5);
});
