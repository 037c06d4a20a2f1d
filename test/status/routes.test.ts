import { once } from 'node:events';
import { connect } from 'node:net';
import { request } from 'undici';
import { describe, expect, test } from 'vitest';
import type { Preview, UploadedSample } from '../../src/status/api.js';
import { listen, NO_RUNS, PAGE_TOKEN, type Serving, serve, someJob, someLive } from '../support/status-server.js';
import { until } from '../support/until.js';

const unreadable = () => Promise.reject(new Error('disk I/O error'));

describe('the page state', () => {
  test('has an alarm if the journal cannot be read', async () => {
    const { call } = await serve({ overview: unreadable });
    expect(await call('/api/state')).toMatchObject({
      status: 200,
      json: {
        version: '1.2.3',
        overview: { instruments: [], servers: [] },
        attention: [],
        live: {
          alarms: [{ kind: 'journal', text: 'the journal cannot be read: disk I/O error' }],
        },
      },
    });
  });

  test('has the hundred newest quarantined and held runs, and their total', async () => {
    const asked: unknown[] = [];
    const { call } = await serve({
      async jobs(query) {
        asked.push(query);
        const odd = query.state === 'held' ? 1 : 0;
        return Array.from({ length: query.limit }, (_, n) => someJob(1000 - 2 * n - odd));
      },
      overview: async () => ({
        instruments: [
          { name: 'a', runs: { ...NO_RUNS, quarantined: 300, done: 7 }, asked: 0, hours: [] },
          { name: 'b', runs: { ...NO_RUNS, held: 200 }, asked: 0, hours: [] },
        ],
        servers: [],
      }),
    });
    const { json } = await call('/api/state');
    const { attention, attentionCount } = json as { attention: { id: number }[]; attentionCount: number };
    expect(attention.map(({ id }) => id)).toEqual(Array.from({ length: 100 }, (_, n) => 1000 - n));
    expect(attentionCount).toBe(500);
    expect(asked).toHaveLength(2);
  });

  test('is read at most once a second', async () => {
    let made = 0;
    const { call } = await serve({
      clock: { now: () => 1, monotonic: () => 1, sleep: () => new Promise(() => undefined) },
      live() {
        made += 1;
        return someLive();
      },
    });
    for (let n = 0; n < 20; n++) await call('/api/state');
    expect(made).toBe(1);
  });
});

describe('runs', () => {
  test('are listed by state and instrument, page by page', async () => {
    const asked: unknown[] = [];
    const { call } = await serve({
      async jobs(query) {
        asked.push(query);
        return [someJob(4)];
      },
    });
    const filter = 'state=held&instrument=Ger%C3%A4t%202&before=9&limit=10';
    expect((await call(`/api/jobs?${filter}`)).json).toMatchObject({ jobs: [{ id: 4 }] });
    expect(asked).toEqual([{ state: 'held', instrument: 'Gerät 2', before: 9, limit: 10 }]);
    for (const wrong of ['state=lost', 'limit=0', 'limit=5000', 'before=x'])
      expect((await call(`/api/jobs?${wrong}`)).status, wrong).toBe(400);
  });

  test('that do not exist are not found', async () => {
    const { call } = await serve();
    for (const path of ['/api/jobs/7', '/api/jobs/x', '/api/jobs/7/body'])
      expect(await call(path)).toMatchObject({
        status: 404,
        json: { error: expect.stringContaining('there is no run') },
      });
  });
});

describe('the event feed', () => {
  test('sends the state at once, and again within a second of a change', async () => {
    let title = 'before';
    let reads = 0;
    const { url } = await serve({
      live() {
        reads += 1;
        return someLive();
      },
      jobs: async ({ state }) => (state === 'held' ? [someJob(1, { state: 'held', title })] : []),
    });
    const { states } = await listen(url);
    await until('the first state', () => states.length === 1);
    title = 'after';
    const before = reads;
    await until('the changed state', () => states.length === 2);
    expect(reads - before).toBeLessThanOrEqual(2);
    expect(states.map(({ attention }) => attention[0]?.title)).toEqual(['before', 'after']);
  });

  test('sends nothing if only the time has changed', async () => {
    let made = 0;
    const { url } = await serve({
      live() {
        made += 1;
        return someLive({ at: Date.now() });
      },
    });
    const { states } = await listen(url);
    await until('three reads', () => made >= 3);
    expect(states).toHaveLength(1);
  });

  test('reads the state once a second for all clients, and not at all without clients', async () => {
    let made = 0;
    const { url } = await serve({
      live() {
        made += 1;
        return someLive({ startedAt: made });
      },
    });
    const everybody = await Promise.all(Array.from({ length: 10 }, () => listen(url)));
    await until('two states for each client', () => everybody.every(({ states }) => states.length >= 2));
    expect(made).toBeLessThan(10);
    for (const one of everybody) one.close();
    await new Promise((resolve) => setTimeout(resolve, 1000));
    const before = made;
    await new Promise((resolve) => setTimeout(resolve, 1500));
    expect(made).toBe(before);
  });

  test('accepts fifty clients and refuses more, while other requests are served', async () => {
    const { url, call } = await serve();
    const everybody = await Promise.all(Array.from({ length: 100 }, () => listen(url)));
    const statuses = everybody.map(({ status }) => status);
    expect(statuses.filter((status) => status === 200)).toHaveLength(50);
    expect(statuses.filter((status) => status === 503)).toHaveLength(50);
    expect(await call('/api/events')).toMatchObject({
      status: 503,
      headers: { 'retry-after': '30' },
      json: { error: expect.stringContaining('50 status pages are already open') },
    });
    expect((await call('/api/state')).status).toBe(200);
    everybody.find(({ status }) => status === 200)?.close();
    await until('a free place', async () => (await listen(url)).status === 200);
  });

  test('survives an error while the state is read', async () => {
    let isBroken = false;
    const { url } = await serve({
      live() {
        if (isBroken) throw new Error('no state');
        return someLive();
      },
      jobs: async ({ state }) => (state === 'held' && isFixed ? [someJob(9)] : []),
    });
    let isFixed = false;
    const { states } = await listen(url);
    await until('the first state', () => states.length === 1);
    isBroken = true;
    await new Promise((resolve) => setTimeout(resolve, 1200));
    isBroken = false;
    isFixed = true;
    await until('the second state', () => states.length === 2);
    expect(states[1]?.attention).toMatchObject([{ id: 9 }]);
  });

  test('gives a client with pipelined requests one slot, and frees it', async () => {
    const { url } = await serve();
    const { port, host } = new URL(url);
    const socket = connect(Number(port), '127.0.0.1');
    socket.write(`GET /api/events HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(60));
    await once(socket, 'data');
    socket.destroy();
    await once(socket, 'close');
    await until('fifty free places', async () => {
      const everybody = await Promise.all(Array.from({ length: 50 }, () => listen(url)));
      for (const one of everybody) one.close();
      return everybody.every(({ status }) => status === 200);
    });
  });
});

describe('a preview', () => {
  const refused: Preview = { ok: false, reason: 'line 3: two ways' };

  const headersOf = ({ url }: Serving) => ({
    'content-type': 'application/octet-stream',
    'x-labfeed-token': PAGE_TOKEN,
    origin: url.slice(0, -1),
  });

  const send = (serving: Serving, query: string, body: Buffer | string, headers: Record<string, string> = {}) =>
    serving.call(`/api/preview?${query}`, {
      method: 'POST',
      body,
      headers: { ...headersOf(serving), ...headers },
    });

  test('gets the bytes of the file, its name without folders, and the options', async () => {
    const seen: UploadedSample[] = [];
    const serving = await serve({
      async preview(sample) {
        seen.push(sample);
        return refused;
      },
    });
    const bytes = Buffer.from([0xff, 0x00, 0x0a, 0xc3]);
    const name = encodeURIComponent('C:\\fakepath\\..\\Läufe/run 17.tsv');
    const answer = await send(serving, `name=${name}&instrument=nanodrop&modified=1700000000000`, bytes);
    expect(answer).toMatchObject({ status: 200, json: refused });
    expect(seen).toEqual([
      { name: 'run 17.tsv', content: bytes, instrument: 'nanodrop', modifiedMs: 1_700_000_000_000 },
    ]);
    await send(serving, 'name=..&instrument=', bytes);
    expect(seen[1]).toMatchObject({ name: 'sample', instrument: undefined });
  });

  test('is refused for files over 20 MB, for a wrong content type and without a name', async () => {
    let previews = 0;
    const serving = await serve({
      async preview() {
        previews += 1;
        return refused;
      },
    });
    expect(await send(serving, 'name=a.csv', Buffer.alloc(20 * 2 ** 20 + 1))).toMatchObject({
      status: 413,
      json: { error: expect.any(String) },
    });
    expect((await send(serving, 'name=a.csv', '{}', { 'content-type': 'application/json' })).status).toBe(415);
    expect((await send(serving, 'instrument=x', 'a')).status).toBe(400);
    expect(previews).toBe(0);
    expect((await send(serving, 'name=a.csv', Buffer.alloc(20 * 2 ** 20))).status).toBe(200);
  });

  test('runs one at a time; a second one is asked to retry', async () => {
    let go: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    let previews = 0;
    const serving = await serve({
      async preview() {
        previews += 1;
        await held;
        return refused;
      },
    });
    const first = send(serving, 'name=a.csv', 'a');
    await until('the first preview runs', () => previews === 1);
    expect(await send(serving, 'name=b.csv', 'b')).toMatchObject({
      status: 429,
      headers: { 'retry-after': '1' },
      json: { error: expect.stringContaining('another file') },
    });
    go();
    expect((await first).status).toBe(200);
    await until('the next preview', async () => (await send(serving, 'name=b.csv', 'b')).status === 200);
    expect(previews).toBe(2);
  });

  test('is cancelled when the client disconnects', async () => {
    const signals: AbortSignal[] = [];
    const serving = await serve({
      preview: (_sample, signal) =>
        new Promise((resolve, reject) => {
          if (signals.push(signal) > 1) resolve(refused);
          signal.addEventListener('abort', () => reject(signal.reason));
        }),
    });
    const leaving = new AbortController();
    const left = request(`${serving.url}api/preview?name=a.csv`, {
      method: 'POST',
      body: 'a',
      headers: headersOf(serving),
      signal: leaving.signal,
    });
    await until('the preview runs', () => signals.length === 1);
    leaving.abort();
    await expect(left).rejects.toThrow();
    await until('it is cancelled', () => signals[0]?.aborted === true);
    await until('the next preview', async () => (await send(serving, 'name=b.csv', 'b')).status === 200);
  });
});
