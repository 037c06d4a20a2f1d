import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allFiled } from '../daemon/scene.js';
import { type DaemonProcess, makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

async function setUp(dialect: 'v2' | 'elabftw') {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const loseJournal = (): void => {
    for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${site.journal}${end}`, { force: true });
  };
  return { sandbox, site, loseJournal };
}

const warned = ({ lines }: DaemonProcess) => lines.filter(({ msg }) => msg.startsWith('the journal is new'));

test('there is no warning for a new journal with empty folders, or for an existing journal', async () => {
  const { site } = await setUp('v2');
  const empty = startDaemon(site.config);
  await empty.logged('ready');
  site.drop('w0.csv', weighing(0));
  await allFiled(empty, 1);
  expect(await empty.stop()).toBe(0);
  expect(warned(empty)).toEqual([]);

  const known = startDaemon(site.config);
  await known.logged('ready');
  expect(await known.stop()).toBe(0);
  expect(warned(known)).toEqual([]);
}, 60_000);

test('a new journal next to existing files is reported once, with a hint', async () => {
  const { site, loseJournal } = await setUp('v2');
  for (const n of [0, 1]) site.drop(`w${n}.csv`, weighing(n));
  loseJournal();
  const daemon = startDaemon(site.config);
  await daemon.logged('ready');
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  await allFiled(daemon, 2);
  expect(await daemon.stop()).toBe(0);
  expect(warned(daemon)).toMatchObject([
    { level: 40, journal: site.journal, msg: expect.stringMatching(/stop labfeed now.*labfeed recover/) },
  ]);
}, 60_000);

test('on eLabFTW a lost journal is noticed before anything is sent, and recover rebuilds it', async () => {
  const { site, sandbox, loseJournal } = await setUp('elabftw');
  for (const n of [0, 1]) site.drop(`w${n}.csv`, weighing(n));
  const first = startDaemon(site.config);
  await allFiled(first, 2);
  expect(await first.stop()).toBe(0);
  loseJournal();
  const halted = startDaemon(site.config);
  const { reason } = await halted.logged('delivery is halted until `labfeed recover` has run');
  expect(reason).toMatch(/was filed by labfeed, but it is not in the journal[\s\S]*labfeed recover/);
  expect(await halted.stop()).toBe(0);
  expect(sandbox.experiments()).toHaveLength(2);
  expect(await labfeed(['recover', '--config', site.config])).toMatchObject({ status: 0, stderr: '' });
  const again = startDaemon(site.config);
  await again.logged('ready');
  site.drop('w2.csv', weighing(2));
  await allFiled(again, 1);
  expect(await again.stop()).toBe(0);
  const titles = sandbox.experiments().map(({ title }) => title);
  expect(titles.sort()).toEqual([0, 1, 2].map((n) => `w${n} (balance)`));
}, 60_000);
