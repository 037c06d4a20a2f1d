import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createService, describeStatus } from '../../src/daemon/service.js';
import { someLive } from '../support/live.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { until } from '../support/until.js';

/** A service whose messages to systemd are written to a file. The watchdog expects one every 60 ms. */
async function startService(checkJournal: () => Promise<void>) {
  const folder = tempFolder();
  const file = join(folder, 'messages');
  writeFileSync(join(folder, 'systemd-notify'), `#!/bin/sh\necho "$@" >> '${file}'\n`, { mode: 0o755 });
  const env = { PATH: `${folder}:/usr/bin:/bin`, NOTIFY_SOCKET: '/run/notify', WATCHDOG_USEC: '60000' };
  const service = createService({ clock: systemClock, log: silentLog(), live: someLive, checkJournal }, env);
  onTestFinished(() => service.stop());
  service.start();
  await service.ready();
  return () =>
    (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []).filter((line) => line.includes('WATCHDOG=1'));
}

test('the watchdog is notified while the journal responds, and no longer once it fails', async () => {
  let failures = 0;
  let isBroken = false;
  const notified = await startService(async () => {
    if (!isBroken) return;
    failures++;
    throw new Error('EIO');
  });
  await until('the watchdog is notified', () => notified().length >= 2);
  isBroken = true;
  await until('the journal fails', () => failures >= 1);
  const before = notified().length;
  await until('it fails again', () => failures >= 5);
  expect(notified()).toHaveLength(before);
});

test('the watchdog is not notified while the journal does not respond', async () => {
  let calls = 0;
  const notified = await startService(() => {
    calls++;
    return new Promise(() => undefined);
  });
  await until('the journal is asked', () => calls > 0);
  await new Promise((resolve) => setTimeout(resolve, 300));
  expect(notified()).toEqual([]);
});

test('the line for systemctl status says what is watched, why nothing is sent, and that there are alarms', () => {
  const { notebook } = someLive();
  expect(describeStatus(someLive())).toBe('watching 1 folder');
  const gate = { kind: 'halted', reason: 'the notebook was restored' } as const;
  const alarms = [{ kind: 'journal', instrument: undefined, since: 0, text: 'nothing is sent' }] as const;
  expect(describeStatus(someLive({ notebook: { ...notebook, gate }, alarms }))).toBe(
    'watching 1 folder; nothing is sent until `labfeed recover` has run; 1 alarm: labfeed status',
  );
});
