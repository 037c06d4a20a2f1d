import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { createQueue, type QueueDeps } from '../../src/deliver/queue.js';
import { NotebookError } from '../../src/errors.js';
import type { OpenRun, RunChange } from '../../src/outbox.js';
import { silentLog } from '../support/silent-log.js';

function openRun(id: number): OpenRun {
  return {
    id,
    instrument: 'balance',
    reference: `ref${id}`,
    step: 'pending',
    server: undefined,
    floor: undefined,
    unseen: 0,
    experiment: undefined,
    adopted: false,
    attempts: 0,
    draft: { title: 't', date: '2026-01-01', body: '', tags: [] },
    comments: [],
    earlier: [],
    surplus: [],
  };
}

/** A journal of numbers: what is due, and what was recorded. */
function setUp(deliver: (run: OpenRun) => Promise<void>, overrides: Partial<QueueDeps> = {}) {
  const due = new Map<number, number>();
  const recorded: RunChange[] = [];
  let underWay = 0;
  let most = 0;
  const queue = createQueue({
    concurrency: 3,
    random: Math.random,
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
    open: async (id) => openRun(id),
    async deliver(run) {
      underWay += 1;
      most = Math.max(most, underWay);
      try {
        await deliver(run);
        due.delete(run.id);
        return run.id;
      } finally {
        underWay -= 1;
      }
    },
    async record(id, change) {
      recorded.push(change);
      if (change.kind === 'postponed') due.set(id, change.dueAt);
      else due.delete(id);
    },
    ...overrides,
  });
  return { queue, due, recorded, most: () => most };
}

const until = async (condition: () => boolean): Promise<void> => {
  while (!condition()) await systemClock.sleep(5);
};

test('everything due is delivered, never more at once than the configured concurrency', async () => {
  const { queue, due, most } = setUp(() => systemClock.sleep(2));
  for (let id = 1; id <= 40; id++) due.set(id, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(most()).toBe(3);
});

test('what is added later is delivered when the bell rings', async () => {
  const { queue, due } = setUp(async () => undefined);
  queue.start();
  await systemClock.sleep(20);
  due.set(1, 0);
  queue.ring();
  await until(() => due.size === 0);
  await queue.stop();
});

test('a failure that passes postpones the run, one that does not sets it aside, and the others go on', async () => {
  const errors = new Map([
    [1, new NotebookError('server', 'away')],
    [2, new NotebookError('request', 'bad date')],
    [3, new NotebookError('conflict', 'deleted')],
  ]);
  const delivered: number[] = [];
  const { queue, due, recorded } = setUp(async ({ id }) => {
    const error = errors.get(id);
    errors.delete(id);
    if (error) throw error;
    delivered.push(id);
  });
  for (const id of [1, 2, 3, 4]) due.set(id, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(delivered).toEqual([4, 1]);
  expect(recorded).toMatchObject([
    { kind: 'postponed', failure: 'server', reason: 'away' },
    { kind: 'parked', as: 'quarantined', reason: 'bad date' },
    { kind: 'parked', as: 'held', reason: 'deleted' },
  ]);
});

test('only what the notebook refuses again and again is quarantined: outages in between do not count', async () => {
  const outage = new NotebookError('server', 'away', { outcomeUnknown: true, status: 502 });
  const refusal = new NotebookError('server', 'no', { outcomeUnknown: true, status: 500, scope: 'run' });
  const errors = [
    outage,
    outage,
    outage,
    outage,
    outage,
    refusal,
    refusal,
    outage,
    refusal,
    refusal,
    refusal,
  ];
  const recorded: string[] = [];
  const { queue, due } = setUp(
    async () => {
      throw errors[recorded.length];
    },
    {
      open: async (id) => ({ ...openRun(id), attempts: recorded.length }),
      async record(id, change) {
        recorded.push(change.kind);
        if (change.kind === 'parked') due.delete(id);
      },
    },
  );
  due.set(1, 0);
  queue.start();
  await until(() => due.size === 0);
  await queue.stop();
  expect(recorded).toEqual([...errors.slice(1).map(() => 'postponed'), 'parked']);
});

test('stopping waits for the step under way and starts no other', async () => {
  let release: () => void = () => undefined;
  const started: number[] = [];
  const { queue, due } = setUp(
    ({ id }) => {
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
