import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Scene, setUp, withOneFiled } from '../daemon/scene.js';
import { type DaemonProcess, makeSite, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';

/** The notebook refuses the request that fills in the second run's experiment, which stays as it was created. */
async function withRefusedRun(): Promise<{ scene: Scene; daemon: DaemonProcess }> {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  scene.sandbox.control.decide = ({ method }) => (method === 'PATCH' ? { answer: 422 } : 'pass');
  scene.site.drop('w1.csv', weighing(1));
  expect(await daemon.logged('run parked')).toMatchObject({ as: 'quarantined', run: 2 });
  scene.sandbox.control.decide = () => 'pass';
  return { scene, daemon };
}

const filed = (daemon: DaemonProcess, run: number) =>
  daemon.logged(({ msg, ...line }) => msg === 'run filed' && line['run'] === run);

const experiments = ({ sandbox }: Scene) =>
  sandbox.experiments().map(({ id, title, comments }) => ({ id, title, comments: comments.length }));

function remap({ site, sandbox }: Scene, title: string): void {
  const instruments = `  balance: { watch: data/balance, ready: { quiet: 150ms }, experiment: { title: "${title}" } }`;
  makeSite(site.folder, { url: sandbox.url, key: sandbox.key, instruments });
}

test('a reload with a changed mapping reads the file of a refused run again, and updates its experiment', async () => {
  const { scene, daemon } = await withRefusedRun();
  remap(scene, '{{ file.stem }} weighed');
  daemon.child.kill('SIGHUP');
  await daemon.logged('re-reading the files of quarantined runs');
  expect(await filed(daemon, 2)).toMatchObject({ experiment: 2 });
  expect(await daemon.stop()).toBe(0);
  expect(experiments(scene)).toEqual([
    { id: 1, title: 'w0 (balance)', comments: 1 },
    { id: 2, title: 'w1 weighed', comments: 1 },
  ]);
});

test('a reload with the same mapping does not read the file again, but retry does', async () => {
  const { scene, daemon } = await withRefusedRun();
  const { site, sandbox } = scene;
  makeSite(site.folder, { url: sandbox.url, key: sandbox.key, timeout: '2s' });
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(daemon.lines.filter(({ msg }) => msg === 'run filed')).toHaveLength(1);
  const { status, stdout } = await labfeed(['retry', '--quarantined', '--config', site.config]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(/^run 2 \(w1\.csv\) will be re-read .*; it keeps experiment 2\n$/),
  });
  await filed(daemon, 2);
  expect(await daemon.stop()).toBe(0);
  expect(experiments(scene)).toMatchObject([{ title: 'w0 (balance)' }, { title: 'w1 (balance)', comments: 1 }]);
});

test('a refused run whose file is missing is retried with its existing draft, whatever the mapping', async () => {
  const { scene, daemon } = await withRefusedRun();
  rmSync(join(scene.site.folder, 'data/balance/w1.csv'));
  remap(scene, '{{ file.stem }} weighed');
  daemon.child.kill('SIGHUP');
  await daemon.logged('configuration reloaded');
  const { status, stdout } = await labfeed(['retry', '2', '--config', scene.site.config]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(/its file is no longer at .*w1\.csv, so the existing draft is sent/),
  });
  await filed(daemon, 2);
  expect(await daemon.stop()).toBe(0);
  expect(experiments(scene)[1]).toEqual({ id: 2, title: 'w1 (balance)', comments: 1 });
});

test('a refused run whose file was overwritten at equal size is retried with its existing draft, beside the new run', async () => {
  const { scene, daemon } = await withRefusedRun();
  scene.site.drop('w1.csv', weighing(2));
  await filed(daemon, 3);
  const { status, stdout } = await labfeed(['retry', '2', '--config', scene.site.config]);
  expect({ status, stdout }).toEqual({
    status: 0,
    stdout: expect.stringMatching(/its file is no longer at .*w1\.csv, so the existing draft is sent/),
  });
  expect(await filed(daemon, 2)).toMatchObject({ experiment: 2 });
  expect(await daemon.stop()).toBe(0);
  expect(experiments(scene).map(({ comments }) => comments)).toEqual([1, 1, 1]);
});
