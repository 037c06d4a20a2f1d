import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allFiled } from '../daemon/scene.js';
import { type DaemonProcess, makeSite, startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import { DIALECTS, runSandbox } from '../support/sandbox.js';
import { tempFolder } from '../support/temp-folder.js';

async function setUp(dialect: 'v2' | 'elabftw') {
  const folder = tempFolder();
  const sandbox = await runSandbox(join(folder, 'notebook.db'), 0, dialect);
  const site = makeSite(folder, { url: sandbox.url, key: sandbox.key });
  const loseJournal = (): void => {
    for (const end of ['', '-wal', '-shm', '.lock']) rmSync(`${site.journal}${end}`, { force: true });
  };
  const loseFolder = (): void => {
    loseJournal();
    rmSync(`${site.journal}.seen`, { force: true });
  };
  return { sandbox, site, loseJournal, loseFolder };
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
});

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
});

async function fileTwo({ site }: Awaited<ReturnType<typeof setUp>>): Promise<void> {
  for (const n of [0, 1]) site.drop(`w${n}.csv`, weighing(n));
  const first = startDaemon(site.config);
  await allFiled(first, 2);
  expect(await first.stop()).toBe(0);
}

/** The daemon sends nothing and says why, over several starts; after recover it files only what is new. */
async function expectNoticed({ site, sandbox }: Awaited<ReturnType<typeof setUp>>, reason: RegExp): Promise<void> {
  const writes = sandbox.control.writes().length;
  for (const _ of [1, 2]) {
    const halted = startDaemon(site.config);
    expect((await halted.logged('delivery is halted until `labfeed recover` has run'))['reason']).toMatch(reason);
    expect(await halted.stop()).toBe(0);
  }
  const status = await labfeed(['status', '--config', site.config]);
  expect(status.stdout).toMatch(reason);
  expect(sandbox.control.writes()).toHaveLength(writes);
  expect(await labfeed(['recover', '--config', site.config])).toMatchObject({ status: 0, stderr: '' });
  const again = startDaemon(site.config);
  await again.logged('ready');
  site.drop('w2.csv', weighing(2));
  await allFiled(again, 1);
  expect(await again.stop()).toBe(0);
  const ours = sandbox.experiments().filter(({ title }) => title.startsWith('w'));
  expect(ours.map(({ title }) => title).sort()).toEqual([0, 1, 2].map((n) => `w${n} (balance)`));
}

test.each(DIALECTS)(
  'a lost journal is noticed before anything is sent, and recover rebuilds it (%s)',
  async (dialect) => {
    const scene = await setUp(dialect);
    await fileTwo(scene);
    scene.loseJournal();
    await expectNoticed(scene, /the journal .* was lost[\s\S]*labfeed recover/);
  },
);

test('on eLabFTW this is noticed even if nothing of the journal is left', async () => {
  const scene = await setUp('elabftw');
  await fileTwo(scene);
  scene.loseFolder();
  await expectNoticed(scene, /was filed by labfeed, but it is not in the journal[\s\S]*labfeed recover/);
});
