import { setTimeout as delay } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { type Call, caller, newExperiment, type SandboxClient, sandboxClient } from '../sandbox/client.js';
import type { SeenRequest } from './request-log.js';
import { createTestSandbox } from './sandbox.js';

const EXPERIMENTS = '/api/v2/experiments';
const KEYS = '/api/v2/apikeys';
const DIALECTS = ['v2', 'elabftw'] as const;
const make = ({ call }: SandboxClient, title: string) => call(EXPERIMENTS, { method: 'POST', body: { title } });
const titles = ({ control }: SandboxClient) => control.experiments().map(({ title }) => title);

function latch() {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  return { until, release: () => release() };
}

async function arrived({ control }: Pick<SandboxClient, 'control'>, count: number): Promise<void> {
  while (control.requests().length < count) await delay(5);
}

const isCreation = ({ method }: SeenRequest) => method === 'POST';

test.each(DIALECTS)('%s: a request cut before it arrives is not carried out', async (dialect) => {
  const client = await sandboxClient({ dialect });
  const fault = client.control.plan('cutBefore', { when: isCreation });
  await expect(make(client, 'lost')).rejects.toThrow();
  expect(fault.met).toBe(1);
  await make(client, 'next');
  expect(titles(client)).toEqual(['next']);
  expect(fault.met).toBe(1);
});

test.each(DIALECTS)('%s: a request cut after it arrives is carried out and its answer lost', async (dialect) => {
  const client = await sandboxClient({ dialect });
  client.control.plan('cutAfter', { times: 2 });
  await expect(make(client, 'one')).rejects.toThrow();
  await expect(make(client, 'two')).rejects.toThrow();
  expect(await make(client, 'three')).toMatchObject({ status: 201 });
  expect(titles(client)).toEqual(['one', 'two', 'three']);
  expect(client.control.requests().map(({ status }) => status)).toEqual([201, 201, 201]);
});

test.each(DIALECTS)(
  '%s: a creation carried out after its connection was cut gets a higher id than one sent later',
  async (dialect) => {
    const client = await sandboxClient({ dialect });
    const { until, release } = latch();
    client.control.plan({ cutThen: { until } });
    await expect(make(client, 'first')).rejects.toThrow();
    await make(client, 'second');
    expect(titles(client)).toEqual(['second']);
    release();
    await client.control.settled();
    expect(titles(client)).toEqual(['second', 'first']);
  },
);

test('a request can be carried out some time after its connection was cut', async () => {
  const client = await sandboxClient();
  client.control.plan({ cutThen: { ms: 200 } });
  const began = performance.now();
  await expect(make(client, 'late')).rejects.toThrow();
  await client.control.settled();
  expect(performance.now() - began).toBeGreaterThan(195);
  expect(titles(client)).toEqual(['late']);
});

test.each(DIALECTS)('%s: an answer can be canned, with or without the request being carried out', async (dialect) => {
  const client = await sandboxClient({ dialect });
  client.control.plan({ answer: 503, headers: { 'retry-after': '7' } });
  const refused = await make(client, 'never');
  expect(refused).toMatchObject({ status: 503, json: { code: 503 }, headers: { 'retry-after': '7' } });
  client.control.plan({ answer: 500, html: '<h1>down</h1>', carriedOut: true });
  const done = await make(client, 'done');
  expect(done).toMatchObject({ status: 500, text: '<h1>down</h1>' });
  expect(done.headers['content-type']).toMatch(/^text\/html/);
  client.control.plan({ answer: 201, carriedOut: true });
  const nameless = await make(client, 'no address');
  expect(nameless).toMatchObject({ status: 201, text: '' });
  expect(nameless.headers).not.toHaveProperty('location');
  client.control.plan({ answer: 200, json: ['odd'] });
  expect(await make(client, 'odd')).toMatchObject({ status: 200, json: ['odd'] });
  expect(titles(client)).toEqual(['done', 'no address']);
});

test('a held request is carried out when it is released', async () => {
  const client = await sandboxClient();
  const { until, release } = latch();
  client.control.plan({ holdRequest: { until } });
  const answer = make(client, 'slow');
  await arrived(client, 1);
  await delay(20);
  expect(titles(client)).toEqual([]);
  release();
  expect(await answer).toMatchObject({ status: 201 });
});

test('a held answer delays only the answer', async () => {
  const client = await sandboxClient();
  client.control.plan({ holdAnswer: { ms: 200 } });
  const began = performance.now();
  const answer = make(client, 'slow');
  await arrived(client, 1);
  await client.control.settled();
  expect(titles(client)).toEqual(['slow']);
  expect(await answer).toMatchObject({ status: 201 });
  expect(performance.now() - began).toBeGreaterThan(195);
});

test('a held request is carried out even if its client has gone', async () => {
  const client = await sandboxClient();
  const { until, release } = latch();
  client.control.plan({ holdRequest: { until } });
  const gone = new AbortController();
  const answer = fetch(`${client.url}${EXPERIMENTS}`, {
    method: 'POST',
    headers: { accept: 'application/json', authorization: client.key },
    signal: gone.signal,
  });
  await arrived(client, 1);
  gone.abort();
  await expect(answer).rejects.toThrow();
  release();
  await client.control.settled();
  expect(titles(client)).toEqual(['Untitled']);
});

test('a fault applies to matching requests, after those it lets pass, as often as planned', async () => {
  const client = await sandboxClient();
  const path = await newExperiment(client.call);
  const fault = client.control.plan(
    { answer: 502 },
    { when: ({ method, body }) => method === 'PATCH' && body.includes('bad'), skip: 1, times: 2 },
  );
  const change = async (title: string) => (await client.call(path, { method: 'PATCH', body: { title } })).status;
  const statuses = [];
  for (const title of ['bad', 'good', 'bad', 'bad', 'bad']) statuses.push(await change(title));
  expect(statuses).toEqual([200, 200, 502, 502, 200]);
  expect(fault.met).toBe(2);
});

test('matching faults apply in the order in which they were planned', async () => {
  const { call, control } = await sandboxClient();
  control.plan({ answer: 500 });
  control.plan({ answer: 502 });
  const statuses = [];
  for (let times = 0; times < 3; times += 1) statuses.push((await call('/api/v2/apikeys')).status);
  expect(statuses).toEqual([500, 502, 200]);
});

test.each(DIALECTS)('%s: a fault can last for a limited time', async (dialect) => {
  let now = 0;
  const clock = { now: () => now, monotonic: () => now, sleep: async () => undefined };
  const { call, control } = await sandboxClient({ dialect, clock });
  control.plan({ answer: 401 }, { forMs: 1_000 });
  for (let times = 0; times < 3; times += 1) {
    expect(await call('/api/v2/apikeys')).toMatchObject({ status: 401, json: { code: 401 } });
  }
  now = 1_000;
  expect(await call('/api/v2/apikeys')).toMatchObject({ status: 200 });
});

test('a fault can be lifted early, and can apply to one key', async () => {
  const { call, control, url } = await sandboxClient();
  const made = await call('/api/v2/apikeys', { method: 'POST', body: { name: 'second', canwrite: 1 } });
  const second = caller(url, String(made.headers['location']).split('/').at(-1));
  const fault = control.plan({ answer: 401 }, { when: ({ keyId }) => keyId === 2, times: Infinity });
  expect(await second('/api/v2/apikeys')).toMatchObject({ status: 401 });
  expect(await call('/api/v2/apikeys')).toMatchObject({ status: 200 });
  fault.lift();
  expect(await second('/api/v2/apikeys')).toMatchObject({ status: 200 });
});

test('a request that is held when the notebook stops is not carried out', async () => {
  const sandbox = createTestSandbox({ file: ':memory:', port: 0 });
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
  expect(performance.now() - began).toBeLessThan(30_000);
  await control.settled();
  expect((await Promise.all(sent)).filter((outcome) => outcome === 'cut').length).toBeGreaterThanOrEqual(2);
});

test('faults and recorded requests survive a restart', async () => {
  const sandbox = createTestSandbox({ file: ':memory:', port: 0 });
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

test.each(
  DIALECTS.flatMap((dialect) => [
    [dialect, 'maintenance', 200, 405] as const,
    [dialect, 'database', 500, 500] as const,
    [dialect, 'php', 502, 502] as const,
  ]),
)('%s, %s outage: reads get %i and writes %i, as HTML, until it ends', async (dialect, outage, read, write) => {
  const { call, control } = await sandboxClient({ dialect });
  control.setOutage(outage);
  const html = { 'content-type': expect.stringMatching(/^text\/html/) };
  expect(await call(KEYS)).toMatchObject({ status: read, headers: html, json: undefined });
  for (const method of ['POST', 'PATCH']) {
    const answer = await call('/api/v2/experiments', { method, body: {} });
    expect(answer).toMatchObject({ status: write, headers: html, json: undefined });
  }
  expect(control.experiments()).toEqual([]);
  control.setOutage(undefined);
  expect(await call(KEYS)).toMatchObject({ status: 200, json: [{ id: 1 }] });
});

async function limited(dialect: 'v2' | 'elabftw', retryAfter?: 'seconds' | 'date') {
  const startMs = Date.UTC(2026, 0, 1, 0, 0, 0, 500);
  const time = { elapsed: 0 };
  const clock = {
    now: () => startMs + time.elapsed,
    monotonic: () => time.elapsed,
    sleep: async () => undefined,
  };
  const { call, control } = await sandboxClient({ dialect, clock });
  control.limitRate({ requests: 2, perMs: 3_000, ...(retryAfter ? { retryAfter } : {}) });
  return { call, control, time };
}

const statuses = async (call: Call, times: number) => {
  const all = [];
  for (let n = 0; n < times; n += 1) all.push((await call(KEYS)).status);
  return all;
};

test.each(DIALECTS)('%s: requests above the rate get 429 until the window ends', async (dialect) => {
  const { call, control, time } = await limited(dialect);
  expect(await statuses(call, 4)).toEqual([200, 200, 429, 429]);
  expect((await call(KEYS)).headers).not.toHaveProperty('retry-after');
  time.elapsed = 2_999;
  expect(await statuses(call, 1)).toEqual([429]);
  time.elapsed = 3_000;
  expect(await statuses(call, 3)).toEqual([200, 200, 429]);
  control.limitRate(undefined);
  expect(await statuses(call, 3)).toEqual([200, 200, 200]);
});

test.each([
  ['seconds', '3', '1'],
  ['date', 'Thu, 01 Jan 2026 00:00:04 GMT', 'Thu, 01 Jan 2026 00:00:04 GMT'],
] as const)('Retry-After is given in %s', async (form, first, last) => {
  const { call, time } = await limited('v2', form);
  await statuses(call, 2);
  expect((await call(KEYS)).headers).toMatchObject({ 'retry-after': first });
  time.elapsed = 2_500;
  expect((await call(KEYS)).headers).toMatchObject({ 'retry-after': last });
});

test('a rate-limited request does not use up a fault', async () => {
  const { call, control } = await limited('v2');
  control.plan({ answer: 502 }, { skip: 2, times: 1 });
  expect(await statuses(call, 3)).toEqual([200, 200, 429]);
  control.limitRate(undefined);
  expect(await statuses(call, 2)).toEqual([502, 200]);
});
