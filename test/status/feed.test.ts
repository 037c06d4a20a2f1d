import { once } from 'node:events';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { until } from '../support/until.js';
import { listen, serve, someJob, someLive } from './serving.js';

test('who looks is told the state at once, and again at the next look, a second later, when it has changed', async () => {
  let title = 'before';
  let looks = 0;
  const { url } = await serve({
    live() {
      looks += 1;
      return someLive();
    },
    jobs: async ({ state }) => (state === 'held' ? [someJob(1, { state: 'held', title })] : []),
  });
  const { states } = await listen(url);
  await until('told at once', () => states.length === 1);
  title = 'after';
  const before = looks;
  await until('told of the change', () => states.length === 2);
  expect(looks - before).toBeLessThanOrEqual(2);
  expect(states.map(({ attention }) => attention[0]?.title)).toEqual(['before', 'after']);
});

test('nobody is told again of what has not changed, though the clock goes on', async () => {
  let made = 0;
  const { url } = await serve({
    live() {
      made += 1;
      return someLive({ at: Date.now() });
    },
  });
  const { states } = await listen(url);
  await until('looked at three times', () => made >= 3);
  expect(states).toHaveLength(1);
});

test('all who look share one look a second, and none is taken when the last has left', async () => {
  let made = 0;
  const { url } = await serve({
    live() {
      made += 1;
      return someLive({ startedAt: made });
    },
  });
  const everybody = await Promise.all(Array.from({ length: 10 }, () => listen(url)));
  await until('all are told twice', () => everybody.every(({ states }) => states.length >= 2));
  expect(made).toBeLessThan(10);
  for (const one of everybody) one.close();
  await new Promise((resolve) => setTimeout(resolve, 1000));
  const before = made;
  await new Promise((resolve) => setTimeout(resolve, 1500));
  expect(made).toBe(before);
});

test('of a hundred who look, fifty are let in; the others are told, and everything else goes on', async () => {
  const { url, call } = await serve();
  const everybody = await Promise.all(Array.from({ length: 100 }, () => listen(url)));
  const statuses = everybody.map(({ status }) => status);
  expect(statuses.filter((status) => status === 200)).toHaveLength(50);
  expect(statuses.filter((status) => status === 503)).toHaveLength(50);
  expect(await call('/api/events')).toMatchObject({
    status: 503,
    headers: { 'retry-after': '30' },
    json: { error: expect.stringContaining('50 are looking') },
  });
  expect((await call('/api/state')).status).toBe(200);
  everybody.find(({ status }) => status === 200)?.close();
  await until('there is a place again', async () => (await listen(url)).status === 200);
});

test('a state that cannot be made does not end the daemon, and is told when it can', async () => {
  let isBroken = false;
  const { url } = await serve({
    live() {
      if (isBroken) throw new Error('no state');
      return someLive();
    },
    jobs: async ({ state }) => (state === 'held' && isMended ? [someJob(9)] : []),
  });
  let isMended = false;
  const { states } = await listen(url);
  await until('told at once', () => states.length === 1);
  isBroken = true;
  await new Promise((resolve) => setTimeout(resolve, 1200));
  isBroken = false;
  isMended = true;
  await until('told again', () => states.length === 2);
  expect(states[1]?.attention).toMatchObject([{ id: 9 }]);
});

test('who sends many requests without waiting for an answer takes no more than one place, and leaves it', async () => {
  const { url } = await serve();
  const { port, host } = new URL(url);
  const socket = connect(Number(port), '127.0.0.1');
  socket.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(60));
  await once(socket, 'data');
  socket.destroy();
  await once(socket, 'close');
  await until('all fifty places are free', async () => {
    const everybody = await Promise.all(Array.from({ length: 50 }, () => listen(url)));
    for (const one of everybody) one.close();
    return everybody.every(({ status }) => status === 200);
  });
});
