import { describe, expect, test } from 'vitest';
import { notebookSchema } from '../../src/config/settings.js';
import { Writes } from '../../src/deliver/writes.js';
import { NotebookError } from '../../src/errors.js';
import { type FakeRequest, fakeNotebook } from '../support/fake-notebook.js';
import { SERVER } from '../support/filing.js';
import { seeded } from '../support/random.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';
import { LOST, setUp, status, TIMEOUT_MS, type Trouble } from './trouble.js';

const names = (prefix: string, count: number): string[] => Array.from({ length: count }, (_, n) => `${prefix}${n}`);

const MINUTE_MS = 60_000;

/** Whether the request describes a run with such a title. */
const describes = ({ operation, args }: FakeRequest, title: RegExp): boolean =>
  operation === 'patchExperiment' && title.test((args[1] as { title: string }).title);

const refused405 = status(405, { outcomeUnknown: false });
const readOnly: Trouble = { error: new NotebookError('auth', 'may not write', { status: 403 }) };
const failedJson = status(500, { scope: 'run' });

test.each([1, 2, 3])(
  '60 runs are filed exactly once within 60 s although a tenth of the answers is 503 and a twentieth is lost (%i)',
  async (seed) => {
    const random = seeded(seed);
    const scene = setUp(() => {
      const chance = random.next();
      if (chance < 0.1) return status(503);
      return chance < 0.15 ? LOST : undefined;
    });
    const runs = names('w', 60);
    for (const name of runs) await scene.drop(name);
    await scene.until(() => scene.filedAt.size === 60, MINUTE_MS);
    expect(scene.titles()).toEqual([...runs].sort());
    expect(scene.parked.size).toBe(0);
  },
);

describe.each([
  ['a 502 page', status(502)],
  ['a reset', { error: new NotebookError('server', 'reset', { outcomeUnknown: true }) }],
  ['a time-out', { ...LOST, isDone: false }],
  ['a 500 as JSON', failedJson],
] as const)('five runs whose change always gets %s', (_what, trouble) => {
  test('are parked with a reason within 3 minutes, and others are filed within 20 s each', async () => {
    const scene = setUp((request) => (describes(request, /^bad/) ? trouble : undefined));
    const bad = await Promise.all(names('bad', 5).map(scene.drop));
    const droppedAt = new Map<number, number>();
    for (let n = 0; scene.clock.monotonic() < 3 * MINUTE_MS; n++) {
      droppedAt.set(await scene.drop(`good${n}`), scene.clock.monotonic());
      await scene.pass(7000);
    }
    await scene.pass(20_000);
    for (const [run, at] of droppedAt) expect((scene.filedAt.get(run) ?? Infinity) - at).toBeLessThan(20_000);
    expect([...scene.parked.keys()].sort()).toEqual(bad);
    for (const { at, change } of scene.parked.values()) {
      expect(at).toBeLessThan(3 * MINUTE_MS);
      expect(change).toMatchObject({ as: 'quarantined', reason: expect.stringContaining('for other runs') });
    }
    expect(scene.gate()).toMatchObject({ kind: 'open' });
  });
});

test('with the default time-out of 30 s, five runs that always time out are parked within 3 minutes, and others wait for a few seconds', async () => {
  const { timeout: timeoutMs } = notebookSchema.parse({ url: SERVER, key: { env: 'KEY' } });
  const never: Trouble = { ...LOST, isDone: false, afterMs: timeoutMs };
  const scene = setUp((request) => (describes(request, /^bad/) ? never : undefined), { timeoutMs });
  const bad = await Promise.all(names('bad', 5).map(scene.drop));
  const droppedAt = new Map<number, number>();
  for (let n = 0; scene.clock.monotonic() < 3 * MINUTE_MS; n++) {
    droppedAt.set(await scene.drop(`good${n}`), scene.clock.monotonic());
    await scene.pass(7000);
  }
  expect([...scene.parked.keys()].sort()).toEqual(bad);
  for (const { at } of scene.parked.values()) expect(at).toBeLessThan(3 * MINUTE_MS);
  // At first all connections wait for runs of which nothing is known yet.
  for (const [run, at] of droppedAt) expect(scene.filedAt.get(run) ?? Infinity).toBeLessThan(at + 10_000);
});

test('three runs that a firewall refuses do not stop the others', async () => {
  const scene = setUp((request) => (describes(request, /^bad/) ? refused405 : undefined));
  for (const name of names('bad', 3)) await scene.drop(name);
  await scene.until(() => scene.gate().kind === 'down', 5000);
  for (const name of names('good', 20)) await scene.drop(name);
  await scene.until(() => scene.filedAt.size === 20, 20_000);
});

test('with one connection, a run that always times out does not stop the others', async () => {
  const scene = setUp((request) => (describes(request, /^bad/) ? { ...LOST, isDone: false } : undefined), {
    concurrency: 1,
  });
  for (const name of names('bad', 5)) await scene.drop(name);
  for (const name of names('good', 20)) await scene.drop(name);
  await scene.until(() => scene.filedAt.size === 20, 20 * (TIMEOUT_MS + 1000));
});

describe.each([1, 10])('after a spell of %i minutes', (minutes) => {
  const spellMs = minutes * MINUTE_MS;

  test.each([
    ['500 as JSON to every write', ({ isWrite }: FakeRequest) => isWrite, failedJson],
    ['502 to every change', ({ operation }: FakeRequest) => operation === 'patchExperiment', status(502)],
    ['502 to every comment', ({ operation }: FakeRequest) => operation === 'postComment', status(502)],
    ['405 to every change', ({ operation }: FakeRequest) => operation === 'patchExperiment', refused405],
  ])('with %s, everything is filed without a person', async (_what, fits, trouble) => {
    const scene = setUp((request, now) => (now < spellMs && fits(request) ? trouble : undefined));
    const runs = names('w', 20);
    for (const name of runs) await scene.drop(name);
    await scene.until(() => scene.gate().kind === 'down', 20_000);
    await scene.until(() => scene.clock.monotonic() >= spellMs, spellMs + 1000);
    expect(scene.parked.size).toBe(0);
    expect(scene.gate()).toMatchObject({ kind: 'down', failure: 'server' });
    const writes = scene.sent.filter(
      ({ at, operation }) => at > spellMs - MINUTE_MS && !/^(read|list)/.test(operation),
    );
    expect(writes.length).toBeLessThan(minutes === 1 ? 60 : 30);
    await scene.until(() => scene.filedAt.size === 20, spellMs + 2 * MINUTE_MS);
    expect(scene.titles()).toEqual([...runs].sort());
    expect(scene.gate()).toMatchObject({ kind: 'open' });
  });
});

test('a key that may only read stops sending, holds nothing, and delivery continues within 30 s of its repair', async () => {
  let isReadOnly = true;
  const scene = setUp(({ operation }) => (isReadOnly && operation === 'createExperiment' ? readOnly : undefined));
  for (const name of names('w', 100)) await scene.drop(name);
  await scene.pass(5 * MINUTE_MS);
  expect(scene.gate()).toMatchObject({ kind: 'down', failure: 'auth', reason: 'may not write' });
  expect(scene.parked.size).toBe(0);
  expect(scene.sent.length).toBeLessThan(60);
  isReadOnly = false;
  const repairedAt = scene.clock.monotonic();
  await scene.until(() => scene.filedAt.size > 0, repairedAt + 31_000);
  await scene.until(() => scene.filedAt.size === 100, repairedAt + MINUTE_MS);
});

test('if every change is refused, 200 files leave at most four blank experiments, and all are filed afterwards', async () => {
  let isRefused = true;
  const scene = setUp(({ operation }) => (isRefused && operation === 'patchExperiment' ? refused405 : undefined));
  const runs = names('w', 200);
  for (const name of runs) await scene.drop(name);
  await scene.pass(9 * MINUTE_MS);
  expect(scene.blanks()).toBeLessThanOrEqual(4);
  expect(scene.gate()).toMatchObject({ kind: 'down', failure: 'server', reason: 'status 405' });
  // Once in ten minutes, another run is tried.
  await scene.pass(10 * MINUTE_MS);
  expect(scene.blanks()).toBeLessThanOrEqual(5);
  isRefused = false;
  await scene.until(() => scene.filedAt.size === 200, scene.clock.monotonic() + 2 * MINUTE_MS);
  expect(scene.titles()).toEqual([...runs].sort());
});

test('if changes are refused from some moment on, few blank experiments are left too', async () => {
  const scene = setUp(({ operation }, now) => (now > 2000 && operation === 'patchExperiment' ? refused405 : undefined));
  for (const name of names('w', 200)) await scene.drop(name);
  await scene.pass(5 * MINUTE_MS);
  expect(scene.filedAt.size).toBeGreaterThan(5);
  // Those of the four connections at that moment, and of the run that is tried after them.
  expect(scene.blanks()).toBeLessThanOrEqual(5);
});

describe('blame', () => {
  function create() {
    const clock = simulatedClock();
    const writes = new Writes({ clock, log: silentLog(), random: () => 1 });
    const fail = (run: number) => writes.failed(run, 'patchExperiment', status(502).error);
    const pass = (ms: number) => clock.run(clock.sleep(ms));
    return { writes, fail, pass };
  }

  test('counts only failures between which the same write of another run was accepted', async () => {
    const { writes, fail, pass } = create();
    for (let n = 0; n < 20; n++) {
      fail(1);
      writes.accepted(2, 'createExperiment');
      await pass(15_000);
    }
    expect(writes.isToBlame(1)).toBe(false);
    for (let n = 0; n < 2; n++) {
      writes.accepted(2, 'patchExperiment');
      fail(1);
    }
    expect(writes.isToBlame(1)).toBe(true);
  });

  test('needs some time, and ends with a step forward', async () => {
    const { writes, fail, pass } = create();
    for (let n = 0; n < 10; n++) {
      fail(1);
      writes.accepted(2, 'patchExperiment');
    }
    expect(writes.isToBlame(1)).toBe(false);
    await pass(45_000);
    expect(writes.isToBlame(1)).toBe(true);
    writes.accepted(1, 'patchExperiment');
    expect(writes.isToBlame(1)).toBe(false);
  });
});

describe('the runs that may start', () => {
  function create(isKeyReplaced = () => false) {
    const clock = simulatedClock();
    const writes = new Writes({ clock, log: silentLog(), random: () => 1, isKeyReplaced });
    // Nothing is in doubt.
    writes.accepted(100, 'patchExperiment');
    const fail = (runs: readonly number[], { error }: Trouble = status(502)) => {
      for (const run of runs) writes.failed(run, 'patchExperiment', error);
    };
    return { clock, writes, fail };
  }
  const NONE = new Set<number>();

  test('are any, if nothing failed', () => {
    const { writes } = create();
    expect(writes.lanes(NONE, 4)).toEqual([{ limit: 4 }]);
    expect(writes.lanes(new Set([7, 8]), 4)).toEqual([{ limit: 2 }]);
  });

  test('leave one worker to those that have not failed', () => {
    const { writes, fail } = create();
    fail([1, 2]);
    const again = { limit: 3, among: { only: [1, 2] } };
    const fresh = { limit: 4, among: { except: new Set([1, 2]) } };
    expect(writes.lanes(NONE, 4)).toEqual([again, fresh]);
    expect(writes.lanes(new Set([1, 2]), 3)).toMatchObject([{ limit: 0 }, { limit: 1 }]);
  });

  test('take turns with those that failed, if there is only one worker', () => {
    const { writes, fail } = create();
    fail([1]);
    writes.started(1);
    expect(writes.lanes(NONE, 1).map(({ among }) => Object.keys(among ?? {}))).toEqual([['except'], ['only']]);
    writes.started(2);
    expect(writes.lanes(NONE, 1).map(({ among }) => Object.keys(among ?? {}))).toEqual([['only'], ['except']]);
  });

  test('are one that failed, after a wait, and another one at once, if a write fails for three', () => {
    const { clock, writes, fail } = create();
    fail([1, 2, 3]);
    const now = clock.monotonic();
    expect(writes.lanes(NONE, 4)).toEqual([
      { limit: 1, among: { only: [1, 2, 3] }, at: now + 1000, isUrgent: false },
      { limit: 1, among: { except: new Set([1, 2, 3]) }, at: now },
    ]);
    writes.started(1);
    writes.started(4);
    expect(writes.lanes(new Set([1, 4]), 4)).toMatchObject([
      { limit: 0, among: { only: [2, 3, 1] }, at: now + 2000 },
      { limit: 0, at: now + 1000 },
    ]);
    writes.accepted(4, 'patchExperiment');
    expect(writes.lanes(NONE, 4)).toMatchObject([{ limit: 3 }, { limit: 4 }]);
    expect(writes.state()).toBeUndefined();
  });

  test('after refusals, are one that failed, and another one only later', () => {
    const { clock, writes, fail } = create();
    fail([1, 2, 3], refused405);
    const now = clock.monotonic();
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: now + 1000 }, { at: now + 15_000 }]);
    writes.started(4);
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: now + 1000 }, { at: now + 600_000 }]);
  });

  test('include another one after a minute if only creations are refused, which leave nothing behind', () => {
    const { clock, writes } = create();
    for (const run of [1, 2, 3]) writes.failed(run, 'createExperiment', refused405.error);
    const now = clock.monotonic();
    writes.started(4);
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: now + 1000 }, { at: now + 60_000 }]);
  });

  test('are one that failed if the key is refused, and at once if it is replaced or the server was down', () => {
    let isReplaced = false;
    const { clock, writes, fail } = create(() => isReplaced);
    fail([1], readOnly);
    expect(writes.state()).toMatchObject({ kind: 'down', failure: 'auth' });
    for (let trial = 0; trial < 4; trial++) writes.started(1);
    // The queue asks again every second, to notice a replaced key.
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: clock.monotonic() + 1000, isUrgent: false }, {}]);
    isReplaced = true;
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: 0, isUrgent: true }, {}]);
    isReplaced = false;
    writes.started(1);
    writes.retryNow();
    expect(writes.lanes(NONE, 4)).toMatchObject([{ at: 0, isUrgent: true }, {}]);
  });

  test('are any again, if the key is no longer refused although the server fails', () => {
    const { writes, fail } = create();
    fail([1], readOnly);
    fail([1], failedJson);
    expect(writes.state()).toBeUndefined();
    expect(writes.lanes(NONE, 4)).toMatchObject([{ limit: 3 }, { limit: 4 }]);
  });

  test('include one that has not failed within 10 s, if refusals become failures', () => {
    const { clock, writes, fail } = create();
    fail([1, 2, 3], refused405);
    writes.started(4);
    fail([1]);
    expect(writes.lanes(NONE, 4)).toMatchObject([{}, { at: clock.monotonic() + 10_000 }]);
  });

  test('are any again, if the failed ones are done or parked', () => {
    const { writes, fail } = create();
    fail([1, 2, 3]);
    writes.forget(1);
    expect(writes.state()).toBeUndefined();
    writes.forget(2);
    writes.forget(3);
    expect(writes.lanes(NONE, 4)).toEqual([{ limit: 4 }]);
  });

  test('are not affected by a missing connection, an entry that is being edited or a refused value', () => {
    const { writes, fail } = create();
    fail([1, 2, 3], { error: new NotebookError('server', 'connection refused') });
    fail([1, 2, 3], { error: new NotebookError('server', 'being edited', { status: 400, scope: 'run' }) });
    fail([1, 2, 3], { error: new NotebookError('request', 'bad date', { status: 422 }) });
    fail([1, 2, 3], { error: new NotebookError('rate', 'slow down', { status: 429 }) });
    expect(writes.lanes(NONE, 4)).toEqual([{ limit: 4 }]);
  });
});

test('creations of unknown outcome are suspended after three runs, whether or not they carry content', async () => {
  const writes = new Writes({ clock: simulatedClock(), log: silentLog(), random: () => 0.5 });
  const failing = {
    ...fakeNotebook({ dialect: 'elabftw' }),
    createFilledExperiment: () => Promise.reject(failedJson.error),
  };
  const content = { title: 'labfeed 0', body: '', content_type: 1 };
  for (const run of [1, 2, 3]) {
    expect(writes.state()).toBeUndefined();
    await writes
      .observe(run, failing)
      .createFilledExperiment(content)
      .catch(() => undefined);
  }
  expect(writes.state()).toBeDefined();
});
