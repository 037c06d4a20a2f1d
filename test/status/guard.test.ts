import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { DecisionRequest } from '../../src/status/api.js';
import { createHostCheck } from '../../src/status/auth.js';
import { PAGE_TOKEN, type Sending, serve, someDetail } from './serving.js';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

describe('a request by a name that is not ours', () => {
  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example:7780',
    'localhost:7780@evil.example',
    'evil.example/localhost',
    '127.0.0.2',
    '[::1]',
    '0.0.0.0',
  ])('is refused: %s', async (host) => {
    const { call } = await serve();
    for (const path of [
      '/',
      '/healthz',
      '/metrics',
      '/api/state',
      '/api/events',
      '/page/page.css',
      '/nothing',
    ]) {
      expect(await call(path, { headers: { host } }), path).toMatchObject({ status: 421 });
    }
  });

  test('is refused also where it has no name at all', async () => {
    const { url } = await serve();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.end('GET /api/state HTTP/1.0\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 421 /);
  });

  test('is not refused by address, localhost, a configured name, or through a tunnel to another port', async () => {
    const { url, call } = await serve({}, { names: ['Labfeed.example.org'] });
    const port = new URL(url).port;
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost:8080', 'labfeed.EXAMPLE.org'])
      expect(await call('/api/state', { headers: { host } }), host).toMatchObject({ status: 200 });
  });

  test('where all addresses are listened on, the one that was called is ours', () => {
    const isOurs = createHostCheck({ host: '::', port: 7780, names: [] });
    expect(isOurs('192.168.1.7:7780', '::ffff:192.168.1.7')).toBe(true);
    expect(isOurs('[FE80:0::1]:7780', 'fe80::1')).toBe(true);
    expect(isOurs('192.168.1.8:7780', '::ffff:192.168.1.7')).toBe(false);
  });
});

describe('every answer', () => {
  test.each(['/', '/api/state', '/page/page.css', '/nothing', '/api/jobs/1'])(
    'forbids scripts and frames of others: %s',
    async (path) => {
      const { headers } = await (await serve()).call(path);
      expect(headers).toMatchObject({
        'content-security-policy': CSP,
        'x-content-type-options': 'nosniff',
        'referrer-policy': 'no-referrer',
        'cache-control': path.startsWith('/page/') ? 'no-cache' : 'no-store',
      });
    },
  );

  test('is for this page alone: no other site may read it', async () => {
    const { call } = await serve();
    for (const method of ['GET', 'OPTIONS'] as const) {
      const { headers } = await call('/api/state', {
        method,
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      });
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  test('with the body of a draft can run nothing, whatever the file said', async () => {
    const { call } = await serve({
      job: async (id) => someDetail(id, '<script>alert(1)</script><p>seven</p>'),
    });
    const { headers, text } = await call('/api/jobs/7/body');
    expect(headers['content-security-policy']).toBe(
      "default-src 'none'; style-src 'self' 'unsafe-inline'; sandbox; frame-ancestors 'self'",
    );
    expect(headers['content-type']).toBe('text/html; charset=utf-8');
    expect(text).toContain('<p>seven</p>');
  });

  test('that is an error says nothing of what is within', async () => {
    const { call, post } = await serve({
      job: async () => {
        throw new Error('secret at /etc/labfeed/api-key');
      },
    });
    const failed = await call('/api/jobs/7');
    expect(failed).toMatchObject({
      status: 500,
      json: { error: 'labfeed failed on this request; its log says more' },
    });
    const broken = await post('/api/decide', undefined, { 'content-type': 'application/json' });
    expect(broken).toMatchObject({ status: 400, json: { error: expect.any(String) } });
    expect((await call('/%zz')).json).toEqual({ error: 'this request cannot be read' });
    expect([403, 404]).toContain((await call('/page/..%2fserver.ts')).status);
  });
});

describe('a write', () => {
  const retry = JSON.stringify({ kind: 'retry', run: 3 });
  const decided: DecisionRequest[] = [];
  const decide = async (request: DecisionRequest) => {
    decided.push(request);
    return { done: true, text: 'run 3 is tried again' };
  };
  const right = (url: string) => ({
    'content-type': 'application/json',
    'x-labfeed-token': PAGE_TOKEN,
    origin: url.slice(0, -1),
    'sec-fetch-site': 'same-origin',
  });
  const without = (headers: Record<string, string>, name: string) =>
    Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));

  test('of the page is carried out', async () => {
    const { url, call } = await serve({ decide });
    decided.length = 0;
    for (const headers of [
      right(url),
      without(right(url), 'sec-fetch-site'),
      without(right(url), 'origin'),
    ]) {
      const answer = await call('/api/decide', { method: 'POST', headers, body: retry });
      expect(answer).toMatchObject({ status: 200, json: { done: true, text: 'run 3 is tried again' } });
    }
    expect(decided).toEqual(Array(3).fill({ kind: 'retry', run: 3 }));
  });

  test.each<[string, (url: string) => Record<string, string>]>([
    ['has not the token of the page', (url) => without(right(url), 'x-labfeed-token')],
    ['has another token', (url) => ({ ...right(url), 'x-labfeed-token': `${PAGE_TOKEN}x` })],
    ['comes from another site', (url) => ({ ...right(url), origin: 'https://evil.example' })],
    ['comes from another port of this machine', (url) => ({ ...right(url), origin: 'http://127.0.0.1:1' })],
    ['comes from a sandboxed frame', (url) => ({ ...without(right(url), 'sec-fetch-site'), origin: 'null' })],
    ['is called cross-site by the browser', (url) => ({ ...right(url), 'sec-fetch-site': 'cross-site' })],
    ['is called same-site by the browser', (url) => ({ ...right(url), 'sec-fetch-site': 'same-site' })],
    ['does not say where it comes from', (url) => without(without(right(url), 'origin'), 'sec-fetch-site')],
  ])('that %s is refused, and nothing is done', async (_, headers) => {
    const { url, call } = await serve({ decide });
    decided.length = 0;
    for (const path of ['/api/decide', '/api/preview?name=a.csv'])
      expect(await call(path, { method: 'POST', headers: headers(url), body: retry })).toMatchObject({
        status: 403,
        json: { error: expect.any(String) },
      });
    expect(decided).toEqual([]);
  });

  test('of a form on another site is refused, whatever its kind', async () => {
    const { url, call } = await serve({ decide });
    const form = { 'content-type': 'text/plain', origin: 'https://evil.example', host: new URL(url).host };
    const sending: Sending = { method: 'POST', headers: form, body: retry };
    expect((await call('/api/decide', sending)).status).toBe(403);
    for (const method of ['PUT', 'DELETE'] as const)
      expect((await call('/api/decide', { ...sending, method })).status).toBe(403);
  });

  test('that cannot be understood is refused with what is wrong with it', async () => {
    const { post } = await serve({ decide });
    decided.length = 0;
    for (const body of [
      { kind: 'erase', run: 1 },
      { kind: 'retry', run: '1' },
      { kind: 'adopt', run: 1 },
      [],
      {},
    ])
      expect(await post('/api/decide', body)).toMatchObject({
        status: 400,
        json: { error: expect.any(String) },
      });
    expect(await post('/api/decide', { kind: 'retry', run: 1, more: 'x'.repeat(20_000) })).toMatchObject({
      status: 413,
    });
    expect(decided).toEqual([]);
  });
});
