import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { allFiled, dropAll, expectEachOnce, setUp, withOneFiled } from '../daemon/scene.js';
import { startDaemon, weighing } from '../support/daemon-process.js';
import { until } from '../support/until.js';

test('50 files become 50 experiments with 150 write requests, and a restart only reads the newest and the last', async () => {
  const scene = await setUp('v2', '20s');
  const first = startDaemon(scene.site.config);
  await first.logged('ready');
  dropAll(scene, 50);
  await allFiled(first, 50);
  expect(await first.stop()).toBe(0);
  expectEachOnce(scene, 50);
  expect(scene.sandbox.control.writes()).toHaveLength(150);

  const before = scene.sandbox.control.requests().length;
  const second = startDaemon(scene.site.config);
  await second.logged('ready');
  await until('it has read the newest', () => scene.sandbox.control.requests().length > before);
  await new Promise((resolve) => setTimeout(resolve, 1000));
  expect(await second.stop()).toBe(0);
  // They show whether the notebook was restored to an older state. The one that was filled in last may be another.
  const added = scene.sandbox.control.requests().slice(before);
  const [newest, ...others] = added.map(({ method, path }) => `${method} ${path}`);
  expect(newest).toBe('GET /api/v2/experiments/50');
  expect(others.join()).toMatch(/^(GET \/api\/v2\/experiments\/4\d)?$/);
});

test('files that arrive while the daemon is stopped, or are renamed, are handled at the next start', async () => {
  const scene = await setUp();
  dropAll(scene, 3);
  const first = startDaemon(scene.site.config);
  await allFiled(first, 3);
  await first.kill();
  scene.site.drop('w3.csv', weighing(3));
  scene.site.drop('a copy of w0.csv', weighing(0));
  const second = startDaemon(scene.site.config);
  await allFiled(second, 1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await second.stop()).toBe(0);
  expectEachOnce(scene, 4);
});

test('a recorded run is delivered even if its file disappears while the notebook is unavailable', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  scene.sandbox.control.decide = () => ({ answer: 503, headers: { 'retry-after': '1' } });
  scene.site.drop('w1.csv', weighing(1));
  await daemon.logged((line) => line.msg === 'run queued' && String(line['file']).endsWith('w1.csv'));
  await daemon.logged('notebook unavailable, waiting');
  rmSync(join(scene.site.folder, 'data'), { recursive: true });
  await daemon.kill();
  scene.sandbox.control.decide = () => 'pass';
  const again = startDaemon(scene.site.config);
  await again.logged('run filed');
  await again.stop();
  expectEachOnce(scene, 2);
});

test.each([401, 403])(
  'a key refused with %i stops delivery, parks nothing, and delivery resumes when the key works again',
  async (answer) => {
    const scene = await setUp();
    const daemon = await withOneFiled(scene);
    const sentBefore = scene.sandbox.control.requests().filter(({ method }) => method === 'POST').length;
    scene.sandbox.control.decide = () => ({ answer });
    for (const n of [1, 2, 3, 4]) scene.site.drop(`w${n}.csv`, weighing(n));
    await daemon.logged('notebook unavailable, waiting');
    await new Promise((resolve) => setTimeout(resolve, 1500));
    // One for each of the four runs, if they started together. No run is a probe.
    const posts = scene.sandbox.control.requests().filter(({ method }) => method === 'POST');
    expect(posts.length - sentBefore).toBeLessThanOrEqual(4);
    scene.sandbox.control.decide = () => 'pass';
    await allFiled(daemon, 5);
    await daemon.stop();
    expect(daemon.lines.filter(({ msg }) => msg === 'run parked')).toEqual([]);
    expectEachOnce(scene, 5);
  },
);

test('a replaced key is used without a restart', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  writeFileSync(join(scene.site.folder, 'api-key'), 'another-key');
  scene.sandbox.control.decide = ({ headers }) => (headers.authorization === 'another-key' ? 'pass' : { answer: 401 });
  scene.site.drop('w1.csv', weighing(1));
  await until('the new key in use', () =>
    scene.sandbox.control.requests().some(({ headers }) => headers.authorization === 'another-key'),
  );
  writeFileSync(join(scene.site.folder, 'api-key'), scene.sandbox.key);
  scene.sandbox.control.decide = () => 'pass';
  await allFiled(daemon, 2);
  await daemon.stop();
  expectEachOnce(scene, 2);
});

test('a run that the notebook refuses is parked with the reason, and the others continue', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  scene.sandbox.control.decide = ({ method, body }) =>
    method === 'PATCH' && body.includes('w1') ? { answer: 422 } : 'pass';
  for (const n of [1, 2]) scene.site.drop(`w${n}.csv`, weighing(n));
  const aside = await daemon.logged('run parked');
  expect(aside).toMatchObject({
    as: 'quarantined',
    failure: 'request',
    reason: expect.stringContaining('422'),
  });
  await allFiled(daemon, 2);
  await daemon.stop();
});
