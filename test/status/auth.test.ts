import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { describe, expect, test } from 'vitest';
import type { DecisionRequest, StatusAddress } from '../../src/status/api.js';
import { createHostCheck, createTokenCheck, HttpError, loginLink } from '../../src/status/auth.js';
import { manualClock } from '../support/manual-clock.js';
import {
  PAGE_TOKEN,
  type Sending,
  type Serving,
  serve,
  someDetail,
  someInstrument,
  someLive,
  TOKEN,
} from '../support/status-server.js';

const CSP =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; frame-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

describe('the Host header', () => {
  test.each([
    'evil.example',
    'localhost.evil.example',
    '127.0.0.1.evil.example:7780',
    'localhost:7780@evil.example',
    'evil.example/localhost',
    '127.0.0.2',
    '[::1]',
    '0.0.0.0',
  ])('with another name is refused: %s', async (host) => {
    const { call } = await serve();
    for (const path of ['/', '/healthz', '/metrics', '/api/state', '/api/events', '/page/page.css', '/nothing']) {
      expect(await call(path, { headers: { host } }), path).toMatchObject({ status: 421 });
    }
  });

  test('is required', async () => {
    const { url } = await serve();
    const socket = connect(Number(new URL(url).port), '127.0.0.1');
    socket.end('GET /api/state HTTP/1.0\r\n\r\n');
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 421 /);
  });

  test('may be the address, localhost, a configured name, or have the port of a tunnel', async () => {
    const { url, call } = await serve({}, { names: ['Labfeed.example.org'] });
    const port = new URL(url).port;
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost:8080', 'labfeed.EXAMPLE.org'])
      expect(await call('/api/state', { headers: { host } }), host).toMatchObject({ status: 200 });
  });

  test('may be the address of the connection if the server listens on all addresses', () => {
    const isOwnHost = createHostCheck({ host: '::', port: 7780, names: [] });
    expect(isOwnHost('192.168.1.7:7780', '::ffff:192.168.1.7')).toBe(true);
    expect(isOwnHost('[FE80:0::1]:7780', 'fe80::1')).toBe(true);
    expect(isOwnHost('192.168.1.8:7780', '::ffff:192.168.1.7')).toBe(false);
  });
});

describe('every response', () => {
  test.each(['/', '/api/state', '/page/page.css', '/nothing', '/api/jobs/1'])(
    'forbids scripts and frames of other sites: %s',
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

  test('cannot be read by other sites', async () => {
    const { call } = await serve();
    for (const method of ['GET', 'OPTIONS'] as const) {
      const { headers } = await call('/api/state', {
        method,
        headers: { origin: 'https://evil.example', 'access-control-request-method': 'POST' },
      });
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control'))).toEqual([]);
    }
  });

  test('with the body of a draft runs no scripts', async () => {
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

  test('to a failed request does not reveal the internal error', async () => {
    const { call, post } = await serve({
      job: async () => {
        throw new Error('secret at /etc/labfeed/api-key');
      },
    });
    const failed = await call('/api/jobs/7');
    expect(failed).toMatchObject({
      status: 500,
      json: { error: 'internal error; see the log of labfeed' },
    });
    const broken = await post('/api/decide', undefined, { 'content-type': 'application/json' });
    expect(broken).toMatchObject({ status: 400, json: { error: expect.any(String) } });
    expect((await call('/%zz')).json).toEqual({ error: 'malformed request' });
    expect((await call('/page/..%2fserver.ts')).status).toBe(404);
    expect((await call('/page/index.html')).status).toBe(404);
  });

  test('with a file of the page names its version, and is empty for browsers that have it', async () => {
    const { call } = await serve();
    const { headers } = await call('/page/page.js');
    expect(headers).toMatchObject({ 'content-type': 'text/javascript; charset=utf-8', etag: expect.any(String) });
    const again = await call('/page/page.js', { headers: { 'if-none-match': String(headers['etag']) } });
    expect(again).toMatchObject({ status: 304, text: '' });
    const other = await call('/page/page.js', { headers: { 'if-none-match': '"before"' } });
    expect(other).toMatchObject({ status: 200, text: expect.stringContaining('Preact') });
  });
});

describe('a POST', () => {
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

  test('from the page is carried out', async () => {
    const { url, call } = await serve({ decide });
    decided.length = 0;
    for (const headers of [right(url), without(right(url), 'sec-fetch-site'), without(right(url), 'origin')]) {
      const answer = await call('/api/decide', { method: 'POST', headers, body: retry });
      expect(answer).toMatchObject({ status: 200, json: { done: true, text: 'run 3 is tried again' } });
    }
    expect(decided).toEqual(Array(3).fill({ kind: 'retry', run: 3 }));
  });

  test.each<[string, (url: string) => Record<string, string>]>([
    ['lacks the page token', (url) => without(right(url), 'x-labfeed-token')],
    ['has a wrong page token', (url) => ({ ...right(url), 'x-labfeed-token': `${PAGE_TOKEN}x` })],
    ['comes from another site', (url) => ({ ...right(url), origin: 'https://evil.example' })],
    ['comes from another port of this machine', (url) => ({ ...right(url), origin: 'http://127.0.0.1:1' })],
    ['comes from a sandboxed frame', (url) => ({ ...without(right(url), 'sec-fetch-site'), origin: 'null' })],
    ['is marked cross-site by the browser', (url) => ({ ...right(url), 'sec-fetch-site': 'cross-site' })],
    ['is marked same-site by the browser', (url) => ({ ...right(url), 'sec-fetch-site': 'same-site' })],
    ['has no origin', (url) => without(without(right(url), 'origin'), 'sec-fetch-site')],
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

  test('from a form on another site is refused', async () => {
    const { url, call } = await serve({ decide });
    const form = { 'content-type': 'text/plain', origin: 'https://evil.example', host: new URL(url).host };
    const sending: Sending = { method: 'POST', headers: form, body: retry };
    expect((await call('/api/decide', sending)).status).toBe(403);
    for (const method of ['PUT', 'DELETE'] as const)
      expect((await call('/api/decide', { ...sending, method })).status).toBe(403);
  });

  test('with an invalid body is refused with the reason', async () => {
    const { post } = await serve({ decide });
    decided.length = 0;
    for (const body of [{ kind: 'erase', run: 1 }, { kind: 'retry', run: '1' }, { kind: 'adopt', run: 1 }, [], {}])
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

const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

const logIn = ({ call }: Serving, token: string, headers: Record<string, string> = {}) =>
  call('/login', {
    method: 'POST',
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: `token=${encodeURIComponent(token)}`,
  });

const cookieOf = (headers: Readonly<Record<string, unknown>>): string =>
  String(headers['set-cookie']).split(';')[0] ?? '';

describe('a page with a token', () => {
  test('serves only its health, login form and code without the token', async () => {
    const missing = someInstrument('balance', { folder: { state: 'missing' } });
    const { call } = await serve({ live: () => someLive({ instruments: [missing] }) }, { token: TOKEN });
    for (const path of ['/api/state', '/api/events', '/api/jobs', '/api/jobs/1', '/metrics', '/nothing'])
      for (const headers of [{}, bearer('wrong'), { cookie: 'labfeed=wrong' }])
        expect(await call(path, { headers }), path).toMatchObject({
          status: 401,
          headers: { 'www-authenticate': 'Bearer realm="labfeed"' },
          json: { error: expect.stringContaining('token') },
        });
    expect(await call('/')).toMatchObject({ status: 401, text: expect.stringContaining('action="/login"') });
    expect((await call('/')).text).not.toContain('labfeed-token');
    expect(await call('/healthz')).toMatchObject({ status: 200, json: { status: 'ok' } });
    expect(await call('/readyz')).toMatchObject({ status: 503, text: '{"status":"not ready"}' });
    expect(await call('/page/page.css')).toMatchObject({ status: 200 });
  });

  test('accepts the token as a bearer token', async () => {
    const missing = someInstrument('balance', { folder: { state: 'missing' } });
    const { call } = await serve({ live: () => someLive({ instruments: [missing] }) }, { token: TOKEN });
    for (const path of ['/', '/api/state', '/metrics'])
      expect(await call(path, { headers: bearer(TOKEN) })).toMatchObject({ status: 200 });
    expect((await call('/readyz', { headers: bearer(TOKEN) })).json).toMatchObject({
      reasons: [{ part: 'folder', instrument: 'balance' }],
    });
  });

  test('sets a cookie on login that is not the token and is kept from scripts and other sites', async () => {
    const serving = await serve({}, { token: TOKEN });
    const answer = await logIn(serving, TOKEN);
    expect(answer).toMatchObject({ status: 303, headers: { location: '/' } });
    expect(answer.headers['set-cookie']).toMatch(
      /^labfeed_[0-9a-f]{12}=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict$/,
    );
    expect(answer.headers['set-cookie']).not.toContain(TOKEN);
    const cookie = cookieOf(answer.headers);
    expect((await serving.call('/', { headers: { cookie: `other=1; ${cookie}` } })).status).toBe(200);
    expect((await serving.call('/api/state', { headers: { cookie } })).status).toBe(200);
    const written = await serving.post('/api/decide', { kind: 'retry', run: 1 }, { cookie });
    expect(written.status).toBe(200);
    const crossSite = { cookie, origin: 'https://evil.example' };
    expect((await serving.post('/api/decide', { kind: 'retry', run: 1 }, crossSite)).status).toBe(403);
  });

  test('rejects a wrong token, and a login from another site', async () => {
    const serving = await serve({}, { token: TOKEN });
    const wrong = await logIn(serving, 'wrong', { origin: 'null' });
    expect(wrong).toMatchObject({ status: 401, text: expect.stringContaining('Wrong token.') });
    expect(wrong.headers['set-cookie']).toBeUndefined();
    expect((await logIn(serving, TOKEN, { origin: 'https://evil.example' })).status).toBe(403);
  });

  test('delays senders of many wrong tokens, but not the right token or those who are logged in', async () => {
    const clock = manualClock();
    const serving = await serve({ clock }, { token: TOKEN });
    const cookie = cookieOf((await logIn(serving, TOKEN)).headers);
    for (let n = 0; n < 3; n++)
      expect((await serving.call('/api/state', { headers: bearer(`wrong${n}`) })).status).toBe(401);
    for (let n = 0; n < 3; n++) expect((await logIn(serving, `wrong${n}`)).status).toBe(401);
    for (const answer of [
      await serving.call('/api/state', { headers: bearer('wrong') }),
      await logIn(serving, 'wrong'),
    ])
      expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
    expect((await serving.call('/api/state', { headers: { cookie } })).status).toBe(200);
    expect((await serving.call('/api/state', { headers: bearer(TOKEN) })).status).toBe(200);
    expect((await logIn(serving, TOKEN)).status).toBe(303);
  });

  test('behind a proxy on this machine, delays each client of the proxy on its own', async () => {
    const serving = await serve({ clock: manualClock() }, { token: TOKEN });
    const as = (client: string) => ({ ...bearer('wrong'), 'x-forwarded-for': client });
    const statusFor = async (client: string) => (await serving.call('/api/state', { headers: as(client) })).status;
    for (let n = 0; n < 6; n++) expect(await statusFor('192.0.2.1')).toBe(401);
    expect(await statusFor('192.0.2.1')).toBe(429);
    expect(await statusFor('192.0.2.2')).toBe(401);
    // What a client claims about itself does not count: the proxy appends its address.
    expect(await statusFor('192.0.2.9, 192.0.2.1')).toBe(429);
  });
});

describe('without a token', () => {
  const LOGIN = 'the-secret-in-the-login-file';
  const RETRY = { kind: 'retry', run: 1 };

  const ticketOf = (link: string): string => `/login${new URL(link).search}`;

  test('everybody may read, but decisions need a login', async () => {
    const serving = await serve({}, { login: LOGIN });
    for (const path of ['/', '/api/state', '/api/jobs', '/metrics'])
      expect((await serving.call(path)).status).toBe(200);
    const refused = await serving.post('/api/decide', RETRY);
    expect(refused).toMatchObject({ status: 403, json: { error: expect.stringContaining('status --login') } });
    // However the address is written.
    for (const path of ['/api/%64ecide', '/api/decid%65', '/%61pi/decide', '/api/decide?x=1', '/api/%64ecide?x'])
      expect([path, (await serving.post(path, RETRY)).status]).toEqual([path, 403]);
    for (const path of ['/api/instrument', '/api/%69nstrument', '/api/%69nstrument?name=a'])
      expect([path, (await serving.call(path)).status]).toEqual([path, 403]);
    const answer = await serving.call(ticketOf(loginLink(serving.url, LOGIN, Date.now())));
    expect(answer).toMatchObject({ status: 303, headers: { location: '/' } });
    const cookie = cookieOf(answer.headers);
    expect(await serving.post('/api/decide', RETRY, { cookie })).toMatchObject({ status: 200, json: { done: true } });
    expect((await serving.post('/api/decide', RETRY, { cookie: 'labfeed=other' })).status).toBe(403);
    const [name] = cookie.split('=');
    expect((await serving.post('/api/decide', RETRY, { cookie: `${name}=other` })).status).toBe(403);
  });

  test('a browser can be logged in to two of them on one machine', async () => {
    const cookies = new Map<string, string>();
    const servings = [await serve({}, { login: LOGIN }), await serve({}, { login: `${LOGIN}-of-another` })];
    for (const [n, serving] of servings.entries()) {
      const link = loginLink(serving.url, n === 0 ? LOGIN : `${LOGIN}-of-another`, Date.now());
      const [name = '', value = ''] = cookieOf((await serving.call(ticketOf(link))).headers).split('=');
      cookies.set(name, value);
    }
    const cookie = [...cookies].map((pair) => pair.join('=')).join('; ');
    for (const serving of servings) expect((await serving.post('/api/decide', RETRY, { cookie })).status).toBe(200);
  });

  test('a login link works once, for five minutes, and not after a restart or with another secret', async () => {
    const clock = manualClock();
    const serving = await serve({ clock }, { login: LOGIN });
    const sets = async (link: string) => (await serving.call(ticketOf(link))).headers['set-cookie'] !== undefined;
    const link = loginLink(serving.url, LOGIN, clock.now());
    expect([await sets(link), await sets(link)]).toEqual([true, false]);
    const later = loginLink(serving.url, LOGIN, clock.now());
    clock.advance(5 * 60_000 + 1);
    expect(await sets(later)).toBe(false);
    expect(await sets(loginLink(serving.url, 'another', clock.now()))).toBe(false);
    expect(await sets(loginLink(serving.url, LOGIN, clock.now()).replace(/ticket=\d+/, 'ticket=1'))).toBe(false);
    const restarted = await serve({ clock }, { login: LOGIN });
    clock.advance(1);
    const before = loginLink(serving.url, LOGIN, clock.now() - 10);
    expect((await restarted.call(ticketOf(before))).headers['set-cookie']).toBeUndefined();
  });
});

describe('wrong tokens', () => {
  const by = (ip: string, token = TOKEN) => ({ headers: bearer(token), ip });

  /** The wait in seconds with which a request is refused; 0 if it is not. */
  function waitOf(request: () => unknown): number {
    try {
      request();
      return 0;
    } catch (error) {
      expect(error).toBeInstanceOf(HttpError);
      return (error as HttpError).retryAfterS ?? 0;
    }
  }

  test('cause no wait five times; each further one doubles it, up to five minutes', () => {
    const clock = manualClock();
    const tokens = createTokenCheck(TOKEN, clock);
    const waits: number[] = [];
    for (let n = 0; n < 16; n++) {
      expect(tokens.accepts(by('a', `wrong${n}`))).toBeUndefined();
      if (n < 5) continue;
      const waitS = waitOf(() => tokens.accepts(by('a', 'wrong')));
      waits.push(waitS);
      clock.advance(waitS * 1000);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(tokens.accepts(by('a'))).toBe('decide');
    // The right token resets the count.
    expect(tokens.accepts(by('a', 'wrong'))).toBeUndefined();
    expect(tokens.accepts(by('a'))).toBe('decide');
  });

  test('from one sender do not delay another', () => {
    const tokens = createTokenCheck(TOKEN, manualClock());
    for (let n = 0; n < 6; n++) tokens.accepts(by('a', `wrong${n}`));
    expect(waitOf(() => tokens.accepts(by('a', 'wrong')))).toBe(2);
    expect(tokens.accepts(by('b', 'wrong'))).toBeUndefined();
    expect(tokens.accepts(by('a'))).toBe('decide');
  });

  test('are remembered for a limited number of senders', () => {
    const tokens = createTokenCheck(TOKEN, manualClock());
    for (let n = 0; n < 6; n++) tokens.accepts(by('first', `wrong${n}`));
    for (let n = 0; n < 1000; n++) tokens.accepts(by(`10.0.0.${n}`, 'wrong'));
    expect(tokens.accepts(by('first'))).toBe('decide');
  });
});

describe('the read token', () => {
  const readToken = 'for-looking-only-0123456789';
  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

  test('gives access to everything but decisions', async () => {
    const asked: unknown[] = [];
    const decide = async (request: unknown) => {
      asked.push(request);
      return { done: true, text: 'done' };
    };
    const { call, post } = await serve({ decide }, { token: TOKEN, readToken });
    // Often enough for wrong tokens to be delayed.
    for (let n = 0; n < 10; n++)
      expect(await call('/api/state', { headers: bearer(readToken) })).toMatchObject({ status: 200 });
    const request = { kind: 'retry', run: 1 };
    expect(await post('/api/decide', request, bearer(readToken))).toMatchObject({
      status: 403,
      json: { error: expect.stringContaining('may look but not decide') },
    });
    expect(asked).toEqual([]);
    expect(await post('/api/decide', request, bearer(TOKEN))).toMatchObject({ status: 200 });
    expect(asked).toEqual([request]);
    for (const [token, role] of [
      [readToken, 'read'],
      [TOKEN, 'edit'],
    ] as const)
      expect((await call('/', { headers: bearer(token) })).text).toContain(`name="labfeed-role" content="${role}"`);
  });

  test('has a cookie of its own, which does not allow decisions either', async () => {
    const { call, post } = await serve({}, { token: TOKEN, readToken });
    const logIn = async (token: string) => {
      const sent = await call('/login', {
        method: 'POST',
        body: `token=${token}`,
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
      });
      return String(sent.headers['set-cookie']).split(';')[0] ?? '';
    };
    const [reading, deciding] = [await logIn(readToken), await logIn(TOKEN)];
    expect(reading.split('=')[0]).not.toBe(deciding.split('=')[0]);
    const request = { kind: 'retry', run: 1 };
    expect(await call('/api/state', { headers: { cookie: reading } })).toMatchObject({ status: 200 });
    expect(await post('/api/decide', request, { cookie: reading })).toMatchObject({ status: 403 });
    expect(await post('/api/decide', request, { cookie: `${reading}; ${deciding}` })).toMatchObject({ status: 200 });
  });
});

describe('setting up instruments', () => {
  const bytes = { 'content-type': 'application/octet-stream' };
  const path = '/api/instrument?name=w1.csv&mapping=5';

  async function site(address: Partial<StatusAddress>) {
    const saved: unknown[] = [];
    const serving = await serve(
      {
        save: async ({ text, replaces }, { name, content }) => {
          saved.push({ text, replaces, name, content: Buffer.from(content).toString() });
          return { done: true, text: 'saved' };
        },
      },
      address,
    );
    const send = (headers: Readonly<Record<string, string>> = {}, to = path) =>
      serving.call(to, {
        method: 'POST',
        body: 'mapp:sample',
        headers: { ...bytes, origin: serving.url.slice(0, -1), 'x-labfeed-token': PAGE_TOKEN, ...headers },
      });
    return { ...serving, send, saved };
  }

  test('needs the token, and is not for the read token', async () => {
    const readToken = 'for-looking-only-0123456789';
    const { send, call, saved } = await site({ token: TOKEN, readToken });
    const as = (token: string) => ({ authorization: `Bearer ${token}` });
    expect(await send()).toMatchObject({ status: 401 });
    expect(await send(as(readToken))).toMatchObject({ status: 403 });
    expect(await call('/api/instrument?name=a', { headers: as(readToken) })).toMatchObject({ status: 403 });
    expect(await send(as(readToken), path.replace('instrument', 'preview'))).toMatchObject({ status: 403 });
    expect(saved).toEqual([]);
    expect(await send(as(TOKEN))).toMatchObject({ status: 200, json: { done: true } });
    expect(saved).toEqual([{ text: 'mapp:', name: 'w1.csv', content: 'sample' }]);
  });

  test('without a token needs `edit`, and then a login link like every decision', async () => {
    expect(await (await site({})).send()).toMatchObject({ status: 403 });
    const open = await site({ edit: true });
    expect(await open.send()).toMatchObject({ status: 200 });
    const loggedOut = await site({ edit: true, login: 'a-secret-for-login-links' });
    expect(await loggedOut.send()).toMatchObject({
      status: 403,
      json: { error: expect.stringContaining('status.edit: true') },
    });
    expect(loggedOut.saved).toEqual([]);
  });

  test('is refused from other sites, and without the token of the page', async () => {
    const { send, saved } = await site({ edit: true });
    expect(await send({ origin: 'https://evil.example' })).toMatchObject({ status: 403 });
    expect(await send({ 'sec-fetch-site': 'cross-site' })).toMatchObject({ status: 403 });
    expect(await send({ 'x-labfeed-token': 'wrong' })).toMatchObject({ status: 403 });
    expect(saved).toEqual([]);
  });
});
