import { Readable } from 'node:stream';
import { request } from 'undici';
import { beforeEach, describe, expect, test } from 'vitest';
import { systemClock } from '../../src/clock.js';
import { type Call, caller, failure, madeIn, newExperiment, sandboxClient } from './client.js';

describe('conventions', () => {
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

  test.each(EVERY_ENDPOINT)('%s %s without a valid key gets 401', async (method, path) => {
    const { call, key } = await sandboxClient();
    for (const authorization of [undefined, 'nonsense', `Bearer ${key}`]) {
      const answer = await call(path, { method, headers: { authorization } });
      expect(answer).toMatchObject({
        status: 401,
        json: failure(401, authorization ? /unknown API key/ : /missing/),
        headers: { 'content-type': expect.stringMatching(/^application\/json/) },
      });
    }
  });

  test.each(EVERY_ENDPOINT)('%s %s that does not accept JSON gets 400', async (method, path) => {
    const { call } = await sandboxClient();
    const answer = await call(path, { method, headers: { accept: 'text/html, image/*' } });
    expect(answer).toMatchObject({ status: 400, json: failure(400, /must accept application\/json/) });
  });

  test.each([undefined, '*/*', 'application/*', 'text/html, Application/JSON;q=0.9', ' application/json '])(
    'Accept: %s accepts JSON',
    async (accept) => {
      const { call } = await sandboxClient();
      expect(await call('/api/v2/apikeys', { headers: { accept } })).toMatchObject({ status: 200 });
    },
  );

  test.each([
    'application/json; charset=utf-8',
    'application/json;charset="UTF-8"',
    'APPLICATION/JSON',
    'application/json ',
  ])('Content-Type: %s is JSON', async (type) => {
    const { call } = await sandboxClient();
    const sent = { method: 'POST', raw: '{}', headers: { 'content-type': type } };
    expect(await call('/api/v2/experiments', sent)).toMatchObject({ status: 201 });
  });

  test('without a body, the content type does not matter', async () => {
    const { call } = await sandboxClient();
    const headers = { 'content-type': 'text/plain' };
    expect(await call('/api/v2/apikeys', { headers })).toMatchObject({ status: 200 });
    expect(await call('/api/v2/experiments', { method: 'POST', headers })).toMatchObject({ status: 201 });
  });

  test.each([
    ['POST', '/api/v2/experiments'],
    ['PATCH', '/api/v2/experiments/1'],
    ['POST', '/api/v2/experiments/1/comments'],
    ['PATCH', '/api/v2/experiments/1/comments/1'],
    ['POST', '/api/v2/apikeys'],
  ])('%s %s accepts only a JSON object with its content type', async (method, path) => {
    const { call } = await sandboxClient();
    const experiment = await newExperiment(call);
    await call(`${experiment}/comments`, { method: 'POST', body: { comment: 'x' } });
    for (const type of [undefined, 'application/json; charset=latin1', 'text/plain', 'application/jsonx', '?']) {
      const answer = await call(path, { method, raw: '{}', headers: { 'content-type': type } });
      expect(answer.json, String(type)).toEqual(failure(400, /Content-Type: application\/json/));
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

  test('GET and DELETE refuse a body', async () => {
    const { call } = await sandboxClient();
    const experiment = await newExperiment(call);
    for (const method of ['GET', 'DELETE']) {
      const answer = await call(method === 'GET' ? experiment : '/api/v2/apikeys/1', { method, body: {} });
      expect(answer).toMatchObject({ status: 400, json: failure(400, /takes no body/) });
    }
  });

  test('a body over 8 MB gets 413 and the connection stays open', async () => {
    const { call } = await sandboxClient();
    const raw = JSON.stringify({ title: 'x'.repeat(8 * 1024 * 1024) });
    for (let times = 0; times < 3; times += 1) {
      const answer = await call('/api/v2/experiments', { method: 'POST', raw });
      expect(answer).toMatchObject({ status: 413, json: failure(413, /the body is too large/) });
    }
    expect(await call('/api/v2/experiments/1')).toMatchObject({ status: 404 });
  });

  test('a chunked body is read like any other', async () => {
    const { call, url, key } = await sandboxClient();
    const headers = { accept: 'application/json', authorization: key, 'content-type': 'application/json' };
    const chunks = (text: string) => Readable.from([...text]);
    const made = await request(`${url}/api/v2/experiments`, {
      method: 'POST',
      headers,
      body: chunks('{"title":"in chunks"}'),
    });
    expect(made.statusCode).toBe(201);
    expect((await call('/api/v2/experiments/1')).json).toMatchObject({ title: 'in chunks' });
    const { 'content-type': _, ...untyped } = headers;
    const refused = await request(`${url}/api/v2/experiments`, {
      method: 'POST',
      headers: untyped,
      body: chunks('{}'),
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
  ])('other methods of %s get 405', async (path, methods, allow) => {
    const { call } = await sandboxClient();
    for (const method of methods) {
      const answer = await call(path, { method });
      expect(answer, method).toMatchObject({ status: 405, headers: { allow }, json: { code: 405 } });
    }
    expect(await call(path, { method: 'HEAD' })).toMatchObject({ status: 405 });
  });

  test.each(['/nothing', '/api', '/api/v1/experiments', '/api/v2', '/api/v2/nothing', '/api/v2/items/1', '/view'])(
    'the unknown path %s gets 404 as JSON',
    async (path) => {
      const { call } = await sandboxClient();
      const unknown = { status: 404, json: failure(404, /not found/) };
      expect(await call(path)).toMatchObject(unknown);
      expect(await call(path, { method: 'POST', raw: '{' })).toMatchObject(unknown);
    },
  );

  test('an unknown API path without a key gets 401', async () => {
    const { url } = await sandboxClient();
    expect(await caller(url)('/api/v2/nothing')).toMatchObject({ status: 401 });
  });

  test('an address that cannot be decoded gets 400 as JSON', async () => {
    const { call } = await sandboxClient();
    const answer = await call('/api/v2/experiments/%zz');
    expect(answer).toMatchObject({ status: 400, json: { code: 400, message: expect.any(String) } });
  });
});

describe('experiments', () => {
  const EXPERIMENTS = '/api/v2/experiments';
  const noon = new Date(2026, 2, 4, 12, 0, 0);
  const clock = { ...systemClock, now: () => noon.getTime() };

  test('a POST without a body creates an experiment with defaults and answers 201 with its address', async () => {
    const { call, url } = await sandboxClient({ clock });
    const made = await call(EXPERIMENTS, { method: 'POST' });
    expect(made).toMatchObject({ status: 201, text: '', headers: { location: `${url}${EXPERIMENTS}/1` } });
    const time = noon.toISOString().slice(0, 19).replace('T', ' ');
    expect(await call(`${EXPERIMENTS}/1`)).toMatchObject({
      status: 200,
      json: {
        id: 1,
        title: 'Untitled',
        date: '2026-03-04',
        body: '',
        tags: [],
        created_at: time,
        modified_at: time,
        userid: 1,
      },
    });
  });

  test.each([
    ['an empty object', { body: {} }],
    ['an empty body with a content type', { raw: '', headers: { 'content-type': 'application/json' } }],
  ])('a creation accepts %s', async (_what, sending) => {
    const { call } = await sandboxClient();
    expect(await call(EXPERIMENTS, { method: 'POST', ...sending })).toMatchObject({ status: 201 });
  });

  test("Location has the server's own address, not the host that the client used", async () => {
    const { call, url } = await sandboxClient();
    const made = await call(EXPERIMENTS, { method: 'POST', headers: { host: 'eln.example.org' } });
    expect(made.headers).toMatchObject({ location: `${url}${EXPERIMENTS}/1` });
  });

  test('a creation stores all fields of its body', async () => {
    const { call } = await sandboxClient();
    const fields = { title: 'labfeed 0123', date: '2024-02-29', body: '<p>µ & é</p>', tags: ['a', 'b c'] };
    const path = await newExperiment(call, fields);
    expect((await call(path)).json).toMatchObject(fields);
  });

  test('a PATCH answers with the record and changes only the fields it names', async () => {
    const { call } = await sandboxClient();
    const path = await newExperiment(call, { title: 'first', tags: ['x'] });
    const changed = await call(path, { method: 'PATCH', body: { date: '2025-12-31', body: '<b>ü</b>' } });
    expect(changed).toMatchObject({
      status: 200,
      json: { id: 1, title: 'first', date: '2025-12-31', body: '<b>ü</b>', tags: ['x'] },
    });
    expect((await call(path)).json).toEqual(changed.json);
    const cleared = await call(path, { method: 'PATCH', body: { title: '', body: '', tags: [] } });
    expect(cleared.json).toMatchObject({ title: '', date: '2025-12-31', body: '', tags: [] });
  });

  test('a PATCH updates modified_at and not created_at', async () => {
    let now = Date.UTC(2026, 0, 1, 8, 0, 0);
    const { call } = await sandboxClient({ clock: { ...systemClock, now: () => now } });
    const path = await newExperiment(call);
    now += 61_000;
    expect((await call(path, { method: 'PATCH', body: { title: 'x' } })).json).toMatchObject({
      created_at: '2026-01-01 08:00:00',
      modified_at: '2026-01-01 08:01:01',
    });
  });

  test.each([
    ['a title of the wrong type', { title: 5 }, 400, /title must be a string/],
    ['a title that is null', { title: null }, 400, /title must be a string/],
    ['a title over 255 characters', { title: 'é'.repeat(256) }, 422, /title is longer than 255/],
    ['a title with a lone surrogate', { title: '\ud83d' }, 400, /title is not valid Unicode/],
    ['a title with a NUL', { title: 'a\0b' }, 422, /title contains a NUL/],
    ['a date of the wrong type', { date: 20240101 }, 400, /date must be a string/],
    ['a date that does not exist', { date: '2023-02-29' }, 422, /date must be an existing date/],
    ['a date with month 13', { date: '2023-13-01' }, 422, /date must be an existing date/],
    ['a date with a time', { date: '2023-01-01T00:00:00Z' }, 422, /date must be an existing date/],
    ['an empty date', { date: '' }, 422, /date must be an existing date/],
    ['a body of the wrong type', { body: ['x'] }, 400, /body must be a string/],
    ['a body over 4,120,000 bytes', { body: 'é'.repeat(2_060_001) }, 422, /body is longer than 4120000/],
    ['tags as a string', { tags: 'a' }, 400, /tags must be an array/],
    ['tags that are not strings', { tags: ['a', 1] }, 400, /tags\[1\] must be a string/],
    ['an empty tag', { tags: ['a', ' '] }, 400, /tags\[1\] must not be empty/],
    ['a tag over 255 characters', { tags: ['x'.repeat(256)] }, 422, /tags\[0\] is longer than 255/],
    ['an unknown field', { title: 'x', metadata: {} }, 400, /unknown field "metadata"; known: title, date/],
    ['a field that objects inherit', { constructor: 1 }, 400, /unknown field "constructor"/],
  ])('POST and PATCH refuse %s and change nothing', async (_what, body, status, message) => {
    const { call } = await sandboxClient();
    const path = await newExperiment(call, { title: 'before' });
    const before = (await call(path)).json;
    const refused = { status, json: failure(status, message) };
    expect(await call(path, { method: 'PATCH', body })).toMatchObject(refused);
    expect(await call(EXPERIMENTS, { method: 'POST', body })).toMatchObject(refused);
    expect((await call(path)).json).toEqual(before);
    expect(await call(`${EXPERIMENTS}/2`)).toMatchObject({ status: 404 });
  });

  test('__proto__ in a body is an unknown field', async () => {
    const { call } = await sandboxClient();
    const path = await newExperiment(call);
    const raw = '{"__proto__": {"title": "x"}}';
    expect((await call(path, { method: 'PATCH', raw })).json).toEqual(failure(400, /unknown field "__proto__"/));
  });

  test('fields of exactly the maximum size are accepted', async () => {
    const { call } = await sandboxClient();
    const fields = { title: '😀'.repeat(255), body: 'é'.repeat(2_060_000), tags: ['x'.repeat(255)] };
    const path = await newExperiment(call, fields);
    expect((await call(path)).json).toMatchObject(fields);
  });

  test('an empty PATCH is refused', async () => {
    const { call } = await sandboxClient();
    const path = await newExperiment(call);
    for (const body of [{}, undefined]) {
      expect((await call(path, { method: 'PATCH', body })).json).toEqual(failure(400, /nothing to change/));
    }
  });

  test.each(['GET', 'PATCH'])('%s of a missing experiment gets 404, and of an invalid id 400', async (method) => {
    const { call } = await sandboxClient();
    await newExperiment(call);
    const body = method === 'PATCH' ? { title: 'x' } : undefined;
    for (const id of ['2', '0', '99999999999999999999']) {
      const answer = await call(`${EXPERIMENTS}/${id}`, { method, body });
      expect(answer).toMatchObject({ status: 404, json: failure(404, /experiment \d+ not found/) });
    }
    for (const id of ['abc', '1.0', '01', '-1', '1%20', '1e0']) {
      const answer = await call(`${EXPERIMENTS}/${id}`, { method, body });
      expect(answer).toMatchObject({ status: 400, json: failure(400, /id must be an integer/) });
    }
  });

  test('concurrent creations get different ids', async () => {
    const { call } = await sandboxClient();
    const made = await Promise.all(
      Array.from({ length: 200 }, (_, n) => call(EXPERIMENTS, { method: 'POST', body: { title: `run ${n}` } })),
    );
    const ids = new Set(made.map(madeIn));
    expect(ids.size).toBe(200);
    const titles = await Promise.all([...ids].map(async (id) => (await call(`${EXPERIMENTS}/${id}`)).json));
    expect(new Set(titles.map((json) => (json as { title: string }).title)).size).toBe(200);
  });
});

describe('comments', () => {
  let call: Call;
  let url: string;

  beforeEach(async () => {
    ({ call, url } = await sandboxClient());
    await newExperiment(call);
    await newExperiment(call);
  });

  const COMMENTS = '/api/v2/experiments/1/comments';
  const post = (comment: unknown) => call(COMMENTS, { method: 'POST', body: { comment } });

  test('a comment can be created, listed, read, changed and deleted', async () => {
    const text = 'time\tpH\n0\t7.1\n\n<b>&amp;</b> 😀';
    const made = await post(text);
    expect(made).toMatchObject({ status: 201, text: '', headers: { location: `${url}${COMMENTS}/1` } });
    await post('second');

    const first = {
      id: 1,
      comment: text,
      item_id: 1,
      userid: 1,
      created_at: expect.stringMatching(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/),
      modified_at: expect.any(String),
    };
    expect(await call(`${COMMENTS}/1`)).toMatchObject({ status: 200, json: first });
    const all = await call(COMMENTS);
    expect(all.status).toBe(200);
    expect(all.json).toEqual([first, { ...first, id: 2, comment: 'second' }]);

    const changed = await call(`${COMMENTS}/1`, { method: 'PATCH', body: { comment: 'new' } });
    expect(changed).toMatchObject({ status: 200, json: { ...first, comment: 'new' } });
    expect((await call(`${COMMENTS}/1`)).json).toEqual(changed.json);

    expect(await call(`${COMMENTS}/1`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
    expect((await call(COMMENTS)).json).toMatchObject([{ id: 2 }]);
  });

  test('the id of a deleted comment is not reused', async () => {
    await post('a');
    await call(`${COMMENTS}/1`, { method: 'DELETE' });
    expect((await post('b')).headers).toMatchObject({ location: expect.stringMatching(/\/2$/) });
  });

  test('an experiment without comments has an empty list', async () => {
    expect(await call(COMMENTS)).toMatchObject({ status: 200, json: [] });
  });

  test.each([
    ['missing', {}, /comment is missing/],
    ['a number', { comment: 7 }, /comment must be a string/],
    ['null', { comment: null }, /comment must be a string/],
    ['empty', { comment: '' }, /comment must not be empty/],
    ['blank', { comment: ' \n' }, /comment must not be empty/],
    ['over 65,535 bytes', { comment: 'é'.repeat(32_768) }, /comment is longer than 65535 bytes/],
    ['with a NUL', { comment: 'a\0' }, /comment contains a NUL/],
    ['under another name', { text: 'x' }, /unknown field "text"; known: comment/],
  ])('POST and PATCH refuse a comment that is %s with 400', async (_what, body, message) => {
    await post('before');
    const refused = { status: 400, json: failure(400, message) };
    expect(await call(COMMENTS, { method: 'POST', body })).toMatchObject(refused);
    expect(await call(`${COMMENTS}/1`, { method: 'PATCH', body })).toMatchObject(refused);
    expect((await call(COMMENTS)).json).toMatchObject([{ id: 1, comment: 'before' }]);
  });

  test('a comment without a body is refused with 400', async () => {
    expect(await call(COMMENTS, { method: 'POST' })).toMatchObject({ status: 400 });
    await post('before');
    expect(await call(`${COMMENTS}/1`, { method: 'PATCH' })).toMatchObject({ status: 400 });
  });

  test('a comment of 65,535 bytes is accepted', async () => {
    const text = 'é'.repeat(32_767);
    await post(`${text}.`);
    expect((await call(`${COMMENTS}/1`)).json).toMatchObject({ comment: `${text}.` });
  });

  test.each([
    ['a missing comment', `${COMMENTS}/9`, 404],
    ['a comment of another experiment', '/api/v2/experiments/2/comments/1', 404],
    ['a comment of a missing experiment', '/api/v2/experiments/9/comments/1', 404],
    ['a comment of another entity type', '/api/v2/items/1/comments/1', 404],
    ['a comment with an invalid id', `${COMMENTS}/x`, 400],
    ['a comment of an experiment with an invalid id', '/api/v2/experiments/x/comments/1', 400],
  ])('%s cannot be read, changed or deleted', async (_what, path, status) => {
    await post('here');
    for (const method of ['GET', 'PATCH', 'DELETE']) {
      const body = method === 'PATCH' ? { comment: 'x' } : undefined;
      expect(await call(path, { method, body })).toMatchObject({ status, json: { code: status } });
    }
    expect((await call(COMMENTS)).json).toMatchObject([{ id: 1, comment: 'here' }]);
  });

  test.each([
    ['a missing experiment', '/api/v2/experiments/9/comments', 404],
    ['another entity type', '/api/v2/items/1/comments', 404],
    ['an invalid id', '/api/v2/experiments/x/comments', 400],
  ])('comments of %s cannot be listed or created', async (_what, path, status) => {
    expect(await call(path)).toMatchObject({ status, json: { code: status } });
    expect(await call(path, { method: 'POST', body: { comment: 'x' } })).toMatchObject({ status });
  });
});
