import { expect, test } from 'vitest';
import { allFiled, expectEachOnce, setUp, withOneFiled } from '../daemon/scene.js';
import { makeSite, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import type { SeenRequest } from '../support/request-log.js';
import { until } from '../support/until.js';

const isCreation = ({ method, path }: SeenRequest): boolean => method === 'POST' && path.endsWith('/experiments');

for (const write of [1, 2, 3]) {
  for (const fate of ['cutBefore', 'cutAfter'] as const) {
    test(`the running daemon reconciles write ${write} if its ${fate === 'cutBefore' ? 'request' : 'response'} is lost`, async () => {
      const scene = await setUp();
      const daemon = await withOneFiled(scene);
      const done = scene.sandbox.control.writes().length;
      let cut = false;
      scene.sandbox.control.decide = (request) => {
        if (cut || request.method === 'GET' || scene.sandbox.control.writes().length < done + write) return 'pass';
        cut = true;
        return fate;
      };
      scene.site.drop('w1.csv', weighing(1));
      await allFiled(daemon, 2);
      await daemon.stop();
      expectEachOnce(scene, 2);
    });
  }
}

test.each([10, 33, 150])(
  'a creation whose response is lost is found above a gap of %i ids, or filed again, and nothing is left blank that audit does not list',
  async (gap) => {
    const scene = await setUp();
    const { control } = scene.sandbox;
    const daemon = await withOneFiled(scene);
    control.skipIds(gap);
    const lost = control.plan('cutAfter', { when: isCreation });
    scene.site.drop('w1.csv', weighing(1));
    await allFiled(daemon, 2);
    expect(lost.met).toBe(1);
    // Its creation shows where ids end.
    scene.site.drop('w2.csv', weighing(2));
    await allFiled(daemon, 3);
    const blanks = scene.sandbox.experiments().filter(({ comments }) => comments.length === 0);
    if (gap < 40) expect(blanks).toEqual([]);
    const { stdout } = await labfeed(['audit', '--json', '--config', scene.site.config]);
    const { findings } = JSON.parse(stdout) as { findings: readonly { kind: string; experiment?: number }[] };
    const spares = findings.filter(({ kind }) => kind === 'spare').map(({ experiment }) => experiment);
    expect(spares).toEqual(blanks.map(({ id }) => id));
    // A blank experiment is used by a later run.
    for (const n of [3, 4]) scene.site.drop(`w${n}.csv`, weighing(n));
    await allFiled(daemon, 5);
    expect(await daemon.stop()).toBe(0);
    expectEachOnce(scene, 5);
  },
);

test('SIGHUP while a creation is answered slowly files the run once, without a halt', async () => {
  const { site, sandbox } = await setUp();
  const scene = { sandbox, site: makeSite(site.folder, { url: sandbox.url, key: sandbox.key, timeout: '20s' }) };
  const daemon = await withOneFiled(scene);
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const slow = scene.sandbox.control.plan({ holdAnswer: { until: answered } }, { when: isCreation });
  scene.site.drop('w1.csv', weighing(1));
  await until('the creation is sent', () => slow.met === 1);
  daemon.child.kill('SIGHUP');
  // The old configuration waits for its requests, but only for some seconds.
  await daemon.logged('configuration reloaded', 60_000);
  await daemon.logged(
    ({ msg, runs }) => msg === 'ready' && runs !== undefined && 'sending' in (runs as object),
    60_000,
  );
  answer();
  scene.site.drop('w2.csv', weighing(2));
  await until(
    '3 runs filed',
    () => scene.sandbox.experiments().filter(({ comments }) => comments.length === 1).length === 3,
    150_000,
  );
  expect(await daemon.stop()).toBe(0);
  expectEachOnce(scene, 3);
  expect(daemon.lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
});
