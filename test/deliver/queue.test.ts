import { once } from 'node:events';
import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createQueue, type QueueDeps } from '../../src/deliver/queue.js';
import { silentLog } from '../support/silent-log.js';
import { simulatedClock } from '../support/simulated-clock.js';

/** An outbox that knows only when each run is due. */
function setUp(
  work: (...args: Parameters<QueueDeps['work']>) => Promise<void>,
  { outbox, ...overrides }: Partial<Omit<QueueDeps, 'outbox'>> & { outbox?: Partial<QueueDeps['outbox']> } = {},
) {
  const due = new Map<number, number>();
  const claimed = new Set<number>();
  const free = (): [number, number][] => [...due].filter(([id]) => !claimed.has(id));
  let underWay = 0;
  let most = 0;
  const queue = createQueue({
    concurrency: 3,
    clock: systemClock,
    log: silentLog(),
    outbox: {
      async claim(now, limit) {
        const runs = free().filter(([, at]) => at <= now);
        const ids = runs.map(([id]) => id).slice(0, limit);
        for (const id of ids) claimed.add(id);
        return ids;
      },
      async release(id) {
        claimed.delete(id);
      },
      nextDueAt: async () => Math.min(...free().map(([, at]) => at)),
      ...outbox,
    },
    async work(id, signal, filled) {
      underWay += 1;
      most = Math.max(most, underWay);
      await work(id, signal, filled);
      due.delete(id);
      underWay -= 1;
    },
    ...overrides,
  });
  return { queue, due, claimed, most: () => most };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await systemClock.sleep(5);
};

test('all due runs are delivered, never more at once than the configured concurrency', async () => {
  const { queue, due, claimed, most } = setUp(() => systemClock.sleep(2));
  for (let id = 1; id <= 40; id++) due.set(id, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(most()).toBe(3);
  expect(claimed.size).toBe(0);
});

test('a run whose write gets no answer makes room if the server answers, and only then', async () => {
  const clock = simulatedClock();
  const aside: number[] = [];
  const isSlow = (id: number) => id <= 3 && clock.monotonic() >= 5000 && !aside.includes(id);
  const writes = {
    lanes: (active: ReadonlySet<number>) => [{ limit: 3 - active.size }],
    started: () => undefined,
    isSlow,
    setAside: (id: number) => void aside.push(id),
  };
  let isAnswering = false;
  const { queue, due } = setUp(
    (id, signal) => (id <= 3 ? once(signal, 'abort').then(() => undefined) : clock.sleep(0)),
    {
      clock,
      writes,
      isAnswering: async () => isAnswering,
    },
  );
  for (let id = 1; id <= 6; id++) due.set(id, 0);
  queue.start();
  await clock.run(clock.sleep(6000));
  expect([...due.keys()]).toEqual([1, 2, 3, 4, 5, 6]);
  isAnswering = true;
  await clock.run(clock.sleep(6000));
  expect([...due.keys()]).toEqual([1, 2, 3]);
  expect(aside).toEqual([1, 2, 3]);
  await queue.stop();
});

test('a run that lacks only comments makes room for one more, up to twice the configured number', async () => {
  let unfilled = 0;
  let mostUnfilled = 0;
  const { queue, due, most } = setUp(async (_id, _signal, filled) => {
    unfilled += 1;
    mostUnfilled = Math.max(mostUnfilled, unfilled);
    await systemClock.sleep(2);
    unfilled -= 1;
    filled();
    await systemClock.sleep(20);
  });
  for (let id = 1; id <= 20; id++) due.set(id, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(mostUnfilled).toBe(3);
  expect(most()).toBe(6);
});

test('a run whose work ends while the queue stops is released, for the queue that follows a reload', async () => {
  const { queue, due, claimed } = setUp((_, signal) => once(signal, 'abort').then(() => undefined));
  due.set(1, 0);
  queue.start();
  await until(() => claimed.has(1));
  await queue.stop();
  expect(claimed.size).toBe(0);
});

test('a run that is added later starts when the queue is woken', async () => {
  const { queue, due } = setUp(async () => undefined);
  queue.start();
  await systemClock.sleep(20);
  due.set(1, 0);
  queue.wake();
  await until(() => due.size === 0);
  await queue.stop();
});

test('a postponed run starts when it is due', async () => {
  const { queue, due } = setUp(async () => undefined);
  const dueAt = systemClock.now() + 60;
  due.set(1, dueAt);
  queue.start();
  await until(() => due.size === 0);
  expect(systemClock.now()).toBeGreaterThanOrEqual(dueAt);
  await queue.stop();
});

test('a journal that cannot be read is retried after a wait', async () => {
  const waits: number[] = [];
  let failures = 2;
  const { queue, due } = setUp(async () => undefined, {
    clock: {
      ...systemClock,
      sleep(ms, signal) {
        waits.push(ms);
        return systemClock.sleep(Math.min(ms, 5), signal);
      },
    },
    outbox: {
      async claim() {
        failures -= 1;
        if (failures >= 0) throw new Error('disk I/O error');
        return [...due.keys()];
      },
    },
  });
  due.set(1, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(waits.filter((ms) => ms === 5000)).toHaveLength(2);
});

test('stopping waits for the current run and starts no other', async () => {
  let release: () => void = () => undefined;
  const started: number[] = [];
  const { queue, due } = setUp(
    (id) => {
      started.push(id);
      return new Promise<void>((resolve) => {
        release = resolve;
      });
    },
    { concurrency: 1 },
  );
  due.set(1, 0);
  due.set(2, 0);
  queue.start();
  await until(() => started.length === 1);
  let stopped = false;
  const stopping = queue.stop().then(() => {
    stopped = true;
  });
  await systemClock.sleep(20);
  expect(stopped).toBe(false);
  release();
  await stopping;
  expect(started).toEqual([1]);
});
