import { describe, expect, test } from 'vitest';
import { createAccess } from '../../src/status/auth.js';
import { manualClock } from '../support/manual-clock.js';
import { type Serving, serve, someInstrument, someLive, TOKEN } from './serving.js';

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
  test('shows nothing without it but that it lives, how to log in, and its code', async () => {
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

  test('is open to who sends it', async () => {
    const missing = someInstrument('balance', { folder: { state: 'missing' } });
    const { call } = await serve({ live: () => someLive({ instruments: [missing] }) }, { token: TOKEN });
    for (const path of ['/', '/api/state', '/metrics'])
      expect(await call(path, { headers: bearer(TOKEN) })).toMatchObject({ status: 200 });
    expect((await call('/readyz', { headers: bearer(TOKEN) })).json).toMatchObject({
      reasons: [{ part: 'folder', instrument: 'balance' }],
    });
  });

  test('is open to who logged in, with a cookie that is not the token and that no script or other site has', async () => {
    const serving = await serve({}, { token: TOKEN });
    const answer = await logIn(serving, TOKEN);
    expect(answer).toMatchObject({ status: 303, headers: { location: '/' } });
    expect(answer.headers['set-cookie']).toMatch(
      /^labfeed=[0-9a-f]{64}; Path=\/; HttpOnly; SameSite=Strict$/,
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

  test('says so to who logs in with a wrong one, and takes no log-in from a page of another site', async () => {
    const serving = await serve({}, { token: TOKEN });
    const wrong = await logIn(serving, 'wrong', { origin: 'null' });
    expect(wrong).toMatchObject({ status: 401, text: expect.stringContaining('That is not the token.') });
    expect(wrong.headers['set-cookie']).toBeUndefined();
    expect((await logIn(serving, TOKEN, { origin: 'https://evil.example' })).status).toBe(403);
  });

  test('makes who tries one token after the other wait, the right one included; who is logged in goes on', async () => {
    const clock = manualClock();
    const serving = await serve({ clock }, { token: TOKEN });
    const cookie = cookieOf((await logIn(serving, TOKEN)).headers);
    for (let n = 0; n < 3; n++)
      expect((await serving.call('/api/state', { headers: bearer(`wrong${n}`) })).status).toBe(401);
    for (let n = 0; n < 3; n++) expect((await logIn(serving, `wrong${n}`)).status).toBe(401);
    for (const answer of [
      await serving.call('/api/state', { headers: bearer(TOKEN) }),
      await logIn(serving, TOKEN),
    ])
      expect(answer).toMatchObject({ status: 429, headers: { 'retry-after': '2' } });
    expect((await serving.call('/api/state', { headers: { cookie } })).status).toBe(200);
    clock.advance(2000);
    expect((await serving.call('/api/state', { headers: bearer(TOKEN) })).status).toBe(200);
  });
});

describe('wrong tokens', () => {
  test('are forgiven five times; then each further one waits twice as long, up to five minutes', () => {
    const clock = manualClock();
    const access = createAccess(TOKEN, clock);
    const waits: number[] = [];
    for (let n = 0; n < 16; n++) {
      expect(access.check(bearer(`wrong${n}`), 'a')).toBe('refused');
      if (n < 5) continue;
      const waitS = Number(access.check(bearer(TOKEN), 'a'));
      waits.push(waitS);
      clock.advance(waitS * 1000);
    }
    expect(waits).toEqual([2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300]);
    expect(access.check(bearer(TOKEN), 'a')).toBe('granted');
    // The right one makes all forgotten that came before.
    expect(access.check(bearer('wrong'), 'a')).toBe('refused');
    expect(access.check(bearer(TOKEN), 'a')).toBe('granted');
  });

  test('of one sender do not make another wait', () => {
    const access = createAccess(TOKEN, manualClock());
    for (let n = 0; n < 10; n++) access.check(bearer(`wrong${n}`), 'a');
    expect(access.check(bearer(TOKEN), 'a')).toBe(2);
    expect(access.check(bearer(TOKEN), 'b')).toBe('granted');
  });

  test('of ever more senders take no ever more memory: the first ones are forgotten', () => {
    const access = createAccess(TOKEN, manualClock());
    for (let n = 0; n < 10; n++) access.check(bearer(`wrong${n}`), 'first');
    for (let n = 0; n < 1000; n++) access.check(bearer('wrong'), `10.0.0.${n}`);
    expect(access.check(bearer(TOKEN), 'first')).toBe('granted');
  });
});
