import { expect, test } from 'vitest';
import { allFiled, expectEachOnce, type Scene, setUp, withOneFiled } from '../daemon/scene.js';
import { startDaemon, weighing } from '../support/daemon-process.js';
import { labfeed } from '../support/labfeed.js';
import type { SeenRequest } from '../support/request-log.js';
import { until } from '../support/until.js';

const isCreation = ({ method, path }: SeenRequest): boolean => method === 'POST' && path.endsWith('/experiments');

/** A colleague's entries, one of which the server fails to show. */
function addNeighbours({ sandbox: { control } }: Scene): { readonly id: number; remove(): void } {
  const [first = 0, id = 0, last = 0] = [1, 2, 3].map(() => control.as('colleague').create({ title: 'their work' }));
  const { lift } = control.plan(
    { answer: 500 },
    { when: ({ method, path }) => method === 'GET' && path.endsWith(`/experiments/${id}`), times: Infinity },
  );
  return {
    id,
    remove() {
      lift();
      for (const one of [first, id, last]) control.as('colleague').delete(one);
    },
  };
}

test('after a restart, an entry that cannot be read is skipped with one warning, and runs are filed with few requests', async () => {
  const scene = await setUp();
  const { site, sandbox } = scene;
  await (await withOneFiled(scene)).stop();
  const neighbour = addNeighbours(scene);
  sandbox.control.forgetRequests();
  const daemon = startDaemon(site.config);
  for (let n = 1; n < 6; n++) site.drop(`w${n}.csv`, weighing(n));
  await allFiled(daemon, 5);
  expect(sandbox.control.requests().length).toBeLessThan(80);
  const warnings = daemon.lines.filter(({ level, experiment }) => level === 40 && experiment === neighbour.id);
  expect(warnings).toHaveLength(1);
  expect(await daemon.stop()).toBe(0);
  neighbour.remove();
  expectEachOnce(scene, 6);
});

test('only the run that may own an unreadable entry waits, with the reason in status, and it is filed once the entry can be read', async () => {
  const scene = await setUp();
  const { site, sandbox } = scene;
  const first = await withOneFiled(scene);
  // The request is lost, and the process killed before it can tell.
  const lost = sandbox.control.plan('cutBefore', { when: isCreation });
  site.drop('w1.csv', weighing(1));
  await until('the creation is lost', () => lost.met === 1);
  await first.kill();
  const neighbour = addNeighbours(scene);
  sandbox.control.forgetRequests();

  const daemon = startDaemon(site.config);
  for (let n = 2; n < 6; n++) site.drop(`w${n}.csv`, weighing(n));
  await allFiled(daemon, 4);
  const run = async (): Promise<string> => (await labfeed(['show', '2', '--config', site.config])).stdout;
  await until('the reason is shown', async () =>
    (await run()).includes(`experiment ${neighbour.id}, which cannot be read`),
  );
  const { stdout: status } = await labfeed(['status', '--config', site.config]);
  expect(status).toMatch(/^queue +1 run, oldest from/m);
  expect(sandbox.control.requests().length).toBeLessThan(120);
  const history = (await run()).split('\n').filter((line) => line.includes('cannot be read'));
  expect(history.length).toBeLessThanOrEqual(2);

  neighbour.remove();
  // It is tried once a minute.
  await until('the run is filed', () => daemon.lines.filter(({ msg }) => msg === 'run filed').length === 5, 100_000);
  expect(await daemon.stop()).toBe(0);
  expectEachOnce(scene, 6);
});
