import { expect, test } from 'vitest';
import { readLive } from '../../src/live.js';
import { type Scene, setUp, withOneFiled } from '../daemon/scene.js';
import { type DaemonProcess, weighing } from '../support/daemon-process.js';
import type { Fault } from '../support/faults.js';
import { seeded } from '../support/random.js';
import type { SeenRequest } from '../support/request-log.js';
import { until } from '../support/until.js';

const page = (answer: number): Fault => ({ answer, html: `<html><title>${answer}</title></html>` });

const isWrite = ({ method }: SeenRequest): boolean => method !== 'GET';

const named = (daemon: DaemonProcess, msg: string) => daemon.lines.filter((line) => line.msg === msg);

const filed = (daemon: DaemonProcess): number => named(daemon, 'run filed').length;

const gateOf = ({ site }: Scene) => readLive(site.journal)?.notebook.gate;

/** Every run has one experiment with one comment, and nothing else is in the notebook. */
function expectOnce({ sandbox }: Scene, titles: readonly string[]): void {
  const experiments = sandbox.experiments();
  expect(experiments.map(({ title }) => title).sort()).toEqual(titles.map((name) => `${name} (balance)`).sort());
  for (const { comments } of experiments) expect(comments).toHaveLength(1);
}

function drop({ site }: Scene, from: number, count: number): string[] {
  const names = Array.from({ length: count }, (_, index) => `w${from + index}`);
  for (const [index, name] of names.entries()) site.drop(`${name}.csv`, weighing(from + index));
  return names;
}

test('60 runs are filed exactly once although a tenth of the answers is 503 and a twentieth is lost', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  const random = seeded(11);
  scene.sandbox.control.decide = () => {
    const chance = random.next();
    if (chance < 0.1) return page(503);
    return chance < 0.15 ? 'cutAfter' : 'pass';
  };
  const names = drop(scene, 1, 60);
  await until('61 runs filed', () => filed(daemon) === 61, 200_000);
  await daemon.stop();
  expect(named(daemon, 'run parked')).toEqual([]);
  expectOnce(scene, ['w0', ...names]);
});

test('five runs whose PATCH always fails are parked, and others are filed meanwhile', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  const never: Fault = { holdRequest: { until: new Promise(() => undefined) } };
  const faults = [page(502), page(502), 'cutBefore', 'cutBefore', never] as const;
  scene.sandbox.control.decide = ({ method, body }) => {
    const bad = method === 'PATCH' ? /"title":"bad(\d)/.exec(body) : null;
    return bad ? (faults[Number(bad[1])] ?? 'pass') : 'pass';
  };
  const since = Date.now();
  for (let n = 0; n < 5; n++) scene.site.drop(`bad${n}.csv`, weighing(500 + n));
  let good = 1;
  for (; named(daemon, 'run parked').length < 5; good++) {
    drop(scene, good, 1);
    await until(`file ${good} filed`, () => filed(daemon) === good + 1, 60_000);
    await new Promise((resolve) => setTimeout(resolve, 3000));
    expect(Date.now() - since).toBeLessThan(400_000);
  }
  await daemon.stop();
  for (const line of named(daemon, 'run parked'))
    expect(line).toMatchObject({
      as: 'quarantined',
      reason: expect.stringContaining('accepts the same request for other runs'),
    });
});

test('after a spell in which every write gets 500 as JSON, everything is filed without a person', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  const spell = scene.sandbox.control.plan({ answer: 500 }, { when: isWrite, times: Number.POSITIVE_INFINITY });
  const names = drop(scene, 1, 20);
  await until('an outage shown', () => gateOf(scene)?.kind === 'down');
  await new Promise((resolve) => setTimeout(resolve, 15_000));
  spell.lift();
  await until('21 runs filed', () => filed(daemon) === 21, 200_000);
  await daemon.stop();
  expect(named(daemon, 'run parked')).toEqual([]);
  expectOnce(scene, ['w0', ...names]);
});

test('a key that may only read stops sending, holds nothing, and delivery continues when it may write', async () => {
  const scene = await setUp();
  const daemon = await withOneFiled(scene);
  const refused = scene.sandbox.control.plan(
    { answer: 403 },
    { when: ({ method, path }) => method === 'POST' && path.endsWith('/experiments'), times: Number.POSITIVE_INFINITY },
  );
  const names = drop(scene, 1, 40);
  await until('a refused key shown', () => JSON.stringify(gateOf(scene))?.includes('"failure":"auth"') === true);
  await new Promise((resolve) => setTimeout(resolve, 5000));
  expect(refused.met).toBeLessThan(10);
  expect(filed(daemon)).toBe(1);
  refused.lift();
  await until('41 runs filed', () => filed(daemon) === 41, 200_000);
  await daemon.stop();
  expect(named(daemon, 'run parked')).toEqual([]);
  expectOnce(scene, ['w0', ...names]);
});

test.each([405, 403])(
  'if every PATCH gets %i as a web page, 200 files leave at most six blank experiments and are filed later',
  async (answer) => {
    const scene = await setUp();
    const daemon = await withOneFiled(scene);
    const refused = scene.sandbox.control.plan(page(answer), {
      when: ({ method }) => method === 'PATCH',
      times: Number.POSITIVE_INFINITY,
    });
    const names = drop(scene, 1, 200);
    await until('an outage shown', () => gateOf(scene)?.kind === 'down', 60_000);
    const since = Date.now();
    await until('all files taken', () => named(daemon, 'run queued').length === 201, 200_000);
    await new Promise((resolve) => setTimeout(resolve, 5000));
    // Three failures in a row are enough. On a busy machine, two more were begun by then, and one is tried every 15 s.
    const tried = Math.ceil((Date.now() - since) / 15_000);
    expect(scene.sandbox.experiments().length - 1).toBeLessThanOrEqual(5 + tried);
    refused.lift();
    await until('201 runs filed', () => filed(daemon) === 201, 300_000);
    await daemon.stop();
    expect(named(daemon, 'run parked')).toEqual([]);
    expectOnce(scene, ['w0', ...names]);
  },
);
