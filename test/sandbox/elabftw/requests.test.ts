import { expect, test } from 'vitest';
import { caller, madeIn } from '../playground.ts';
import { EXPERIMENTS, elabftw, failed } from './playing.ts';

test('a creation answers with an address under the server’s own name, and an empty page', async () => {
  const { post } = await elabftw();
  expect(await post(EXPERIMENTS)).toMatchObject({
    status: 201,
    text: '',
    headers: {
      location: 'https://eln.invalid/api/v2/experiments/1',
      'content-type': expect.stringMatching(/^text\/html/),
    },
  });
});

test.each(['POST', 'PATCH'])('%s wants exactly application/json, even without a body', async (method) => {
  const { call, make } = await elabftw();
  const one = await make();
  const path = method === 'POST' ? EXPERIMENTS : one;
  for (const type of [undefined, 'application/json; charset=utf-8', 'APPLICATION/JSON', 'text/plain', '?']) {
    for (const raw of ['{}', undefined]) {
      const answer = await call(path, { method, ...(raw ? { raw } : {}), headers: { 'content-type': type } });
      expect(answer, `${type} ${raw}`).toMatchObject(failed(400, 400, /content-type/));
    }
  }
  const bare = await call(path, { method, headers: { 'content-type': 'application/json' } });
  expect(bare.status).toBe(method === 'POST' ? 201 : 200);
});

test.each([undefined, 'nonsense', 'Bearer'])('the key %s gets 401', async (prefix) => {
  const { url, key } = await elabftw();
  const authorization = prefix === 'Bearer' ? `Bearer ${key}` : prefix;
  const answer = await caller(url)('/api/v2/apikeys', { headers: { authorization } });
  expect(answer).toMatchObject(failed(401, 401, /Authentication required/));
});

test('some versions refuse a bad key with 400 and plain text', async () => {
  const { url } = await elabftw({ elabftw: { badKey: 400 } });
  const answer = await caller(url, 'nonsense')('/api/v2/apikeys');
  expect(answer).toMatchObject({ status: 400, text: 'No corresponding API key found!', json: undefined });
});

test('every answer sets a session cookie of its own', async () => {
  const { call, post } = await elabftw();
  const cookies = [await call('/api/v2/apikeys'), await post(EXPERIMENTS), await call('/api/v2/nothing')].map(
    ({ headers }) => String(headers['set-cookie']),
  );
  for (const cookie of cookies) expect(cookie).toMatch(/^PHPSESSID=[0-9a-f]+; path=\//);
  expect(new Set(cookies).size).toBe(3);
});

test('a read-only key that writes gets 400, not 403', async () => {
  const { url, post, make } = await elabftw();
  const one = await make();
  const reader = caller(url, madeIn(await post('/api/v2/apikeys', { name: 'reader' })));
  expect(await reader(one)).toMatchObject({ status: 200 });
  for (const [method, path] of [
    ['POST', EXPERIMENTS],
    ['PATCH', one],
    ['POST', `${one}/comments`],
    ['DELETE', '/api/v2/apikeys/1'],
  ] as const) {
    const body = method === 'DELETE' ? undefined : {};
    const answer = await reader(path, { method, body });
    expect(answer).toMatchObject(failed(400, 400, /^You are using a read-only key/));
  }
});

test.each(['{', '[1,', 'x', '{"a":1,}'])('a body that is no JSON gets 400: %s', async (raw) => {
  const { call } = await elabftw();
  const answer = await call(EXPERIMENTS, { method: 'POST', raw });
  expect(answer).toMatchObject(failed(400, 400, /Error decoding json payload/));
});

test('a body that is too large gets 413 as a page', async () => {
  const { call } = await elabftw();
  const raw = JSON.stringify({ title: 'x'.repeat(9_000_000) });
  const answer = await call(EXPERIMENTS, { method: 'POST', raw });
  expect(answer).toMatchObject({ status: 413, headers: { 'content-type': expect.stringMatching(/html/) } });
});

test('an endpoint that is not there gets an error of the usual form', async () => {
  const { call } = await elabftw();
  expect(await call('/api/v2/nothing')).toMatchObject(failed(400, 400, /Incorrect endpoint/));
});

test('it tells whose key it is, and its version', async () => {
  const { call } = await elabftw();
  expect((await call('/api/v2/users/me')).json).toMatchObject({
    userid: 1,
    fullname: 'Sam Sandbox',
    team: 1,
  });
  expect((await call('/api/v2/info')).json).toMatchObject({ elabftw_version: '5.6.12' });
  const older = await elabftw({ keepsTitle: false });
  expect((await older.call('/api/v2/info')).json).toMatchObject({ elabftw_version: '5.2.8' });
});
