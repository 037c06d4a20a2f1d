import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createQueue, type QueueDeps } from '../../src/deliver/queue.js';
import { silentLog } from '../support/silent-log.js';

/** A journal that knows only when each run is due. */
function setUp(work: (id: number) => Promise<void>, overrides: Partial<QueueDeps> = {}) {
  const due = new Map<number, number>();
  let underWay = 0;
  let most = 0;
  const queue = createQueue({
    concurrency: 3,
    clock: systemClock,
    log: silentLog(),
    due: async (now, limit, except) =>
      [...due]
        .filter(([id, at]) => at <= now && !except.has(id))
        .map(([id]) => id)
        .slice(0, limit),
    nextDueAt: async (except) =>
      [...due]
        .filter(([id]) => !except.has(id))
        .map(([, at]) => at)
        .sort((a, b) => a - b)[0],
    async work(id) {
      underWay += 1;
      most = Math.max(most, underWay);
      await work(id);
      due.delete(id);
      underWay -= 1;
    },
    ...overrides,
  });
  return { queue, due, most: () => most };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await systemClock.sleep(5);
};

test('all due runs are worked on, never more at once than the configured concurrency', async () => {
  const { queue, due, most } = setUp(() => systemClock.sleep(2));
  for (let id = 1; id <= 40; id++) due.set(id, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(most()).toBe(3);
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
    async due() {
      failures -= 1;
      if (failures >= 0) throw new Error('disk I/O error');
      return [...due.keys()];
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
