import { Readable } from 'node:stream';
import { request } from 'undici';
import { expect, test } from 'vitest';
import { caller, failure, newExperiment, playground } from './playground.ts';

const EVERY_ENDPOINT = [
  ['POST', '/api/v2/experiments'],
  ['GET', '/api/v2/experiments/1'],
  ['PATCH', '/api/v2/experiments/1'],
  ['GET', '/api/v2/experiments/1/comments'],
  ['POST', '/api/v2/experiments/1/comments'],
  ['GET', '/api/v2/experiments/1/comments/1'],
  ['PATCH', '/api/v2/experiments/1/comments/1'],
  ['DELETE', '/api/v2/experiments/1/comments/1'],
  ['GET', '/api/v2/apikeys'],
  ['POST', '/api/v2/apikeys'],
  ['DELETE', '/api/v2/apikeys/1'],
] as const;

test.each(EVERY_ENDPOINT)('%s %s without a known key gets 401', async (method, path) => {
  const { call, key } = await playground();
  for (const authorization of [undefined, 'nonsense', `Bearer ${key}`]) {
    const answer = await call(path, { method, headers: { authorization } });
    expect(answer).toMatchObject({
      status: 401,
      json: failure(401, authorization ? /not known/ : /missing/),
      headers: { 'content-type': expect.stringMatching(/^application\/json/) },
    });
  }
});

test.each(EVERY_ENDPOINT)(
  '%s %s without Accept: application/json gets 400 that says so',
  async (method, path) => {
    const { call } = await playground();
    for (const accept of [undefined, '*/*', 'text/html']) {
      const answer = await call(path, { method, headers: { accept } });
      expect(answer).toMatchObject({ status: 400, json: failure(400, /Accept: application\/json/) });
    }
  },
);

test('Accept may name other types too', async () => {
  const { call } = await playground();
  const headers = { accept: 'text/html, Application/JSON;q=0.9' };
  expect(await call('/api/v2/apikeys', { headers })).toMatchObject({ status: 200 });
});

test.each([
  ['POST', '/api/v2/experiments'],
  ['PATCH', '/api/v2/experiments/1'],
  ['POST', '/api/v2/experiments/1/comments'],
  ['PATCH', '/api/v2/experiments/1/comments/1'],
  ['POST', '/api/v2/apikeys'],
])('%s %s takes a JSON object, declared exactly so, and nothing else', async (method, path) => {
  const { call } = await playground();
  const experiment = await newExperiment(call);
  await call(`${experiment}/comments`, { method: 'POST', body: { comment: 'x' } });
  for (const type of [undefined, 'application/json; charset=utf-8', 'text/plain', 'APPLICATION/JSON', '?']) {
    const answer = await call(path, { method, raw: '{}', headers: { 'content-type': type } });
    expect(answer.json, String(type)).toEqual(failure(400, /Content-Type: application\/json, exactly/));
  }
  for (const raw of ['{', '{"a":1,}', '\ufeff{}', ' ', 'undefined']) {
    expect((await call(path, { method, raw })).json, raw).toEqual(failure(400, /not JSON/));
  }
  for (const raw of ['[]', 'null', '"x"', '1', 'true']) {
    expect((await call(path, { method, raw })).json, raw).toEqual(failure(400, /must be a JSON object/));
  }
  const latin1 = Buffer.from('{"title":"\xe9"}', 'latin1');
  expect((await call(path, { method, raw: latin1 })).json).toEqual(failure(400, /not UTF-8/));
});

test('GET and DELETE take no body', async () => {
  const { call } = await playground();
  const experiment = await newExperiment(call);
  for (const method of ['GET', 'DELETE']) {
    const answer = await call(method === 'GET' ? experiment : '/api/v2/apikeys/1', { method, body: {} });
    expect(answer).toMatchObject({ status: 400, json: failure(400, /takes no body/) });
  }
});

test('a body over 8 MB gets 413, and the connection lives on', async () => {
  const { call } = await playground();
  const raw = JSON.stringify({ title: 'x'.repeat(8 * 1024 * 1024) });
  for (let times = 0; times < 3; times += 1) {
    const answer = await call('/api/v2/experiments', { method: 'POST', raw });
    expect(answer).toMatchObject({ status: 413, json: failure(413, /longer than 8388608 bytes/) });
  }
  expect(await call('/api/v2/experiments/1')).toMatchObject({ status: 404 });
});

test('a body sent in pieces, without a length, is read the same', async () => {
  const { call, url, key } = await playground();
  const headers = { accept: 'application/json', authorization: key, 'content-type': 'application/json' };
  const pieces = (text: string) => Readable.from([...text]);
  const made = await request(`${url}/api/v2/experiments`, {
    method: 'POST',
    headers,
    body: pieces('{"title":"in pieces"}'),
  });
  expect(made.statusCode).toBe(201);
  expect((await call('/api/v2/experiments/1')).json).toMatchObject({ title: 'in pieces' });
  const { 'content-type': _, ...untyped } = headers;
  const refused = await request(`${url}/api/v2/experiments`, {
    method: 'POST',
    headers: untyped,
    body: pieces('{}'),
  });
  expect(refused.statusCode).toBe(400);
});

test.each([
  ['/api/v2/experiments', ['GET', 'PUT', 'PATCH', 'DELETE'], 'POST'],
  ['/api/v2/experiments/1', ['PUT', 'POST', 'DELETE'], 'GET, PATCH'],
  ['/api/v2/experiments/1/comments', ['PUT', 'PATCH', 'DELETE'], 'GET, POST'],
  ['/api/v2/experiments/1/comments/1', ['PUT', 'POST'], 'GET, PATCH, DELETE'],
  ['/api/v2/apikeys', ['PUT', 'PATCH', 'DELETE'], 'GET, POST'],
  ['/api/v2/apikeys/1', ['GET', 'PUT', 'PATCH', 'POST'], 'DELETE'],
  ['/', ['POST', 'PUT', 'DELETE'], 'GET'],
])('%s refuses other methods with 405', async (path, methods, allow) => {
  const { call } = await playground();
  for (const method of methods) {
    const answer = await call(path, { method });
    expect(answer, method).toMatchObject({ status: 405, headers: { allow }, json: { code: 405 } });
  }
  expect(await call(path, { method: 'HEAD' })).toMatchObject({ status: 405 });
});

test.each([
  '/nothing',
  '/api',
  '/api/v1/experiments',
  '/api/v2',
  '/api/v2/nothing',
  '/api/v2/items/1',
  '/view',
])('%s is an unknown path: 404 as JSON', async (path) => {
  const { call } = await playground();
  const unknown = { status: 404, json: failure(404, /not found/) };
  expect(await call(path)).toMatchObject(unknown);
  expect(await call(path, { method: 'POST', raw: '{' })).toMatchObject(unknown);
});

test('unknown paths of the API tell nothing to who has no key', async () => {
  const { url } = await playground();
  expect(await caller(url)('/api/v2/nothing')).toMatchObject({ status: 401 });
});

test('an address that cannot be decoded gets 400 as JSON', async () => {
  const { call } = await playground();
  const answer = await call('/api/v2/experiments/%zz');
  expect(answer).toMatchObject({ status: 400, json: { code: 400, message: expect.any(String) } });
});
