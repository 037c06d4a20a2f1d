import { request } from 'undici';
import { expect, test } from 'vitest';
import type { Preview } from '../../src/status/api.js';
import type { UploadedSample } from '../../src/status/deps.js';
import { until } from '../support/until.js';
import { PAGE_TOKEN, type Serving, serve } from './serving.js';

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

test("a file's very bytes are handed on, under its bare name, with what is known of it", async () => {
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

test('a file of more than 20 MB is refused, and one that does not say what it is', async () => {
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

test('one file is looked at at a time; the next is told to come again, and then is', async () => {
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
  await until('the first is being looked at', () => previews === 1);
  expect(await send(serving, 'name=b.csv', 'b')).toMatchObject({
    status: 429,
    headers: { 'retry-after': '1' },
    json: { error: expect.stringContaining('another file') },
  });
  go();
  expect((await first).status).toBe(200);
  await until('there is room', async () => (await send(serving, 'name=b.csv', 'b')).status === 200);
  expect(previews).toBe(2);
});

test('when whoever dropped the file leaves, reading it is given up, and the next has room', async () => {
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
  await until('it is being looked at', () => signals.length === 1);
  leaving.abort();
  await expect(left).rejects.toThrow();
  await until('it is given up', () => signals[0]?.aborted === true);
  await until('there is room', async () => (await send(serving, 'name=b.csv', 'b')).status === 200);
});
