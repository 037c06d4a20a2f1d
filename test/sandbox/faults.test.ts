import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import type { SeenRequest } from '../../src/sandbox/requests.js';
import { createSandbox } from '../../src/sandbox/server.js';
import { caller, newExperiment, type Playground, playground } from './playground.js';

const EXPERIMENTS = '/api/v2/experiments';
const DIALECTS = ['v2', 'elabftw'] as const;
const make = ({ call }: Playground, title: string) => call(EXPERIMENTS, { method: 'POST', body: { title } });
const titles = ({ control }: Playground) => control.experiments().map(({ title }) => title);

function latch() {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { until, release: () => release() };
}

async function arrived({ control }: Pick<Playground, 'control'>, count: number): Promise<void> {
  while (control.requests().length < count) await delay(5);
}

const isCreation = ({ method }: SeenRequest) => method === 'POST';

test.each(DIALECTS)('%s: a request cut off before is never carried out', async (dialect) => {
  const field = await playground({ dialect });
  const fault = field.control.plan('cutBefore', { when: isCreation });
  await expect(make(field, 'lost')).rejects.toThrow();
  expect(fault.met).toBe(1);
  await make(field, 'next');
  expect(titles(field)).toEqual(['next']);
  expect(fault.met).toBe(1);
});

test.each(DIALECTS)('%s: a request cut off after is carried out, and its answer lost', async (dialect) => {
  const field = await playground({ dialect });
  field.control.plan('cutAfter', { times: 2 });
  await expect(make(field, 'one')).rejects.toThrow();
  await expect(make(field, 'two')).rejects.toThrow();
  expect(await make(field, 'three')).toMatchObject({ status: 201 });
  expect(titles(field)).toEqual(['one', 'two', 'three']);
  expect(field.control.requests().map(({ status }) => status)).toEqual([201, 201, 201]);
});

test.each(DIALECTS)(
  '%s: a creation carried out after it was cut off gets a higher id than one sent after it',
  async (dialect) => {
    const field = await playground({ dialect });
    const { until, release } = latch();
    field.control.plan({ cutThen: { until } });
    await expect(make(field, 'first')).rejects.toThrow();
    await make(field, 'second');
    expect(titles(field)).toEqual(['second']);
    release();
    await field.control.settled();
    expect(titles(field)).toEqual(['second', 'first']);
  },
);

test('what was cut off can be carried out after a time', async () => {
  const field = await playground();
  field.control.plan({ cutThen: { ms: 200 } });
  const began = performance.now();
  await expect(make(field, 'late')).rejects.toThrow();
  await field.control.settled();
  expect(performance.now() - began).toBeGreaterThan(195);
  expect(titles(field)).toEqual(['late']);
});

test.each(DIALECTS)(
  '%s: an answer can be a status of one’s choice, with or without its deed',
  async (dialect) => {
    const field = await playground({ dialect });
    field.control.plan({ answer: 503, headers: { 'retry-after': '7' } });
    const refused = await make(field, 'never');
    expect(refused).toMatchObject({ status: 503, json: { code: 503 }, headers: { 'retry-after': '7' } });
    field.control.plan({ answer: 500, html: '<h1>down</h1>', carriedOut: true });
    const done = await make(field, 'done');
    expect(done).toMatchObject({ status: 500, text: '<h1>down</h1>' });
    expect(done.headers['content-type']).toMatch(/^text\/html/);
    field.control.plan({ answer: 201, carriedOut: true });
    const nameless = await make(field, 'no address');
    expect(nameless).toMatchObject({ status: 201, text: '' });
    expect(nameless.headers).not.toHaveProperty('location');
    field.control.plan({ answer: 200, json: ['odd'] });
    expect(await make(field, 'odd')).toMatchObject({ status: 200, json: ['odd'] });
    expect(titles(field)).toEqual(['done', 'no address']);
  },
);

test('a held request is carried out only when it is let go', async () => {
  const field = await playground();
  const { until, release } = latch();
  field.control.plan({ holdRequest: { until } });
  const answer = make(field, 'slow');
  await arrived(field, 1);
  await delay(20);
  expect(titles(field)).toEqual([]);
  release();
  expect(await answer).toMatchObject({ status: 201 });
});

test('a held answer is that of a request long carried out', async () => {
  const field = await playground();
  field.control.plan({ holdAnswer: { ms: 200 } });
  const began = performance.now();
  const answer = make(field, 'slow');
  await arrived(field, 1);
  await field.control.settled();
  expect(titles(field)).toEqual(['slow']);
  expect(await answer).toMatchObject({ status: 201 });
  expect(performance.now() - began).toBeGreaterThan(195);
});

test('a held request is carried out though its client has gone', async () => {
  const field = await playground();
  const { until, release } = latch();
  field.control.plan({ holdRequest: { until } });
  const client = new AbortController();
  const answer = fetch(`${field.url}${EXPERIMENTS}`, {
    method: 'POST',
    headers: { accept: 'application/json', authorization: field.key },
    signal: client.signal,
  });
  await arrived(field, 1);
  client.abort();
  await expect(answer).rejects.toThrow();
  release();
  await field.control.settled();
  expect(titles(field)).toEqual(['Untitled']);
});

test('a fault meets the requests it is meant for, after those it lets pass, as often as it says', async () => {
  const field = await playground();
  const path = await newExperiment(field.call);
  const fault = field.control.plan(
    { answer: 502 },
    { when: ({ method, body }) => method === 'PATCH' && body.includes('bad'), skip: 1, times: 2 },
  );
  const change = async (title: string) =>
    (await field.call(path, { method: 'PATCH', body: { title } })).status;
  const statuses = [];
  for (const title of ['bad', 'good', 'bad', 'bad', 'bad']) statuses.push(await change(title));
  expect(statuses).toEqual([200, 200, 502, 502, 200]);
  expect(fault.met).toBe(2);
});

test('faults that fit together are met in the order in which they were planned', async () => {
  const { call, control } = await playground();
  control.plan({ answer: 500 });
  control.plan({ answer: 502 });
  const statuses = [];
  for (let times = 0; times < 3; times += 1) statuses.push((await call('/api/v2/apikeys')).status);
  expect(statuses).toEqual([500, 502, 200]);
});

test.each(DIALECTS)('%s: keys are refused for a while, then taken again', async (dialect) => {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
  const { call, control } = await playground({ dialect, clock });
  control.plan({ answer: 401 }, { forMs: 1_000 });
  for (let times = 0; times < 3; times += 1) {
    expect(await call('/api/v2/apikeys')).toMatchObject({ status: 401, json: { code: 401 } });
  }
  now = 1_000;
  expect(await call('/api/v2/apikeys')).toMatchObject({ status: 200 });
});

test('a fault can be lifted before it is over, and can be meant for one key', async () => {
  const { call, control, url } = await playground();
  const made = await call('/api/v2/apikeys', { method: 'POST', body: { name: 'second', canwrite: 1 } });
  const second = caller(url, String(made.headers['location']).split('/').at(-1));
  const fault = control.plan({ answer: 401 }, { when: ({ keyId }) => keyId === 2, times: Infinity });
  expect(await second('/api/v2/apikeys')).toMatchObject({ status: 401 });
  expect(await call('/api/v2/apikeys')).toMatchObject({ status: 200 });
  fault.lift();
  expect(await second('/api/v2/apikeys')).toMatchObject({ status: 200 });
});

test('what waits when the notebook stops is never carried out', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  const { url, key } = await sandbox.start();
  onTestFinished(() => sandbox.stop());
  const { control } = sandbox;
  control.plan({ cutThen: { ms: 60_000 } });
  control.plan({ holdRequest: { until: new Promise(() => {}) } });
  control.plan({ holdAnswer: { ms: 60_000 } });
  const call = caller(url, key);
  const sent = [1, 2, 3].map(() =>
    call(EXPERIMENTS, { method: 'POST' }).then(
      ({ status }) => status,
      () => 'cut',
    ),
  );
  await arrived(sandbox, 3);
  const began = performance.now();
  await sandbox.stop();
  expect(performance.now() - began).toBeLessThan(3_000);
  await control.settled();
  expect((await Promise.all(sent)).filter((outcome) => outcome === 'cut').length).toBeGreaterThanOrEqual(2);
});

test('faults and requests outlast a restart', async () => {
  const sandbox = createSandbox({ file: ':memory:', port: 0 });
  onTestFinished(() => sandbox.stop());
  sandbox.control.plan({ answer: 502 }, { times: 2 });
  for (let times = 1; times <= 2; times += 1) {
    const { url, key } = await sandbox.start();
    expect(await caller(url, key)('/api/v2/apikeys')).toMatchObject({ status: 502 });
    await sandbox.stop();
  }
  expect(sandbox.control.requests()).toHaveLength(2);
  expect(() => sandbox.control.experiments()).toThrow(/not running/);
});
