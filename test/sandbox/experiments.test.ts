import { expect, test } from 'vitest';
import { systemClock } from '../../src/clock.ts';
import { failure, madeIn, newExperiment, playground } from './playground.ts';

const EXPERIMENTS = '/api/v2/experiments';
const noon = new Date(2026, 2, 4, 12, 0, 0);
const clock = { ...systemClock, now: () => noon.getTime() };

test('an experiment made with no body gets 201, an address, no content, and the defaults', async () => {
  const { call, url } = await playground({ clock });
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
  ['nothing, but a content type', { raw: '', headers: { 'content-type': 'application/json' } }],
])('a creation may carry %s', async (_what, sending) => {
  const { call } = await playground();
  expect(await call(EXPERIMENTS, { method: 'POST', ...sending })).toMatchObject({ status: 201 });
});

test('the address of a creation can be a path only', async () => {
  const { call } = await playground({ location: 'path' });
  const made = await call(EXPERIMENTS, { method: 'POST' });
  expect(made.headers).toMatchObject({ location: `${EXPERIMENTS}/1` });
});

test('the address of a creation is the server’s own, not the name it was called by', async () => {
  const { call, url } = await playground();
  const made = await call(EXPERIMENTS, { method: 'POST', headers: { host: 'eln.example.org' } });
  expect(made.headers).toMatchObject({ location: `${url}${EXPERIMENTS}/1` });
});

test('what a creation carries is kept', async () => {
  const { call } = await playground();
  const fields = { title: 'labfeed 0123', date: '2024-02-29', body: '<p>µ & é</p>', tags: ['a', 'b c'] };
  const path = await newExperiment(call, fields);
  expect((await call(path)).json).toMatchObject(fields);
});

test('a change answers with the record and leaves alone what it does not name', async () => {
  const { call } = await playground();
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

test('a change sets the time of the last change, and only that', async () => {
  let now = Date.UTC(2026, 0, 1, 8, 0, 0);
  const { call } = await playground({ clock: { ...systemClock, now: () => now } });
  const path = await newExperiment(call);
  now += 61_000;
  expect((await call(path, { method: 'PATCH', body: { title: 'x' } })).json).toMatchObject({
    created_at: '2026-01-01 08:00:00',
    modified_at: '2026-01-01 08:01:01',
  });
});

test.each([
  ['title of a wrong type', { title: 5 }, 400, /title must be a string/],
  ['title that is null', { title: null }, 400, /title must be a string/],
  ['title over 255 characters', { title: 'é'.repeat(256) }, 422, /title is longer than 255/],
  ['title with half a character', { title: '\ud83d' }, 400, /title is not valid Unicode/],
  ['title with a NUL', { title: 'a\0b' }, 422, /title has a NUL/],
  ['date of a wrong type', { date: 20240101 }, 400, /date must be a string/],
  ['date that is not in the calendar', { date: '2023-02-29' }, 422, /date must be a date/],
  ['date with month 13', { date: '2023-13-01' }, 422, /date must be a date/],
  ['date with a time', { date: '2023-01-01T00:00:00Z' }, 422, /date must be a date/],
  ['date that is empty', { date: '' }, 422, /date must be a date/],
  ['body of a wrong type', { body: ['x'] }, 400, /body must be a string/],
  ['body over 4,120,000 bytes', { body: 'é'.repeat(2_060_001) }, 422, /body is longer than 4120000/],
  ['tags as a text', { tags: 'a' }, 400, /tags must be an array/],
  ['tags that are not texts', { tags: ['a', 1] }, 400, /tags\[1\] must be a string/],
  ['a tag that is empty', { tags: ['a', ' '] }, 400, /tags\[1\] must not be empty/],
  ['a tag over 255 characters', { tags: ['x'.repeat(256)] }, 422, /tags\[0\] is longer than 255/],
  ['an unknown field', { title: 'x', metadata: {} }, 400, /unknown field "metadata"; known: title, date/],
  ['a field that objects inherit', { constructor: 1 }, 400, /unknown field "constructor"/],
])('%s is refused on creation and on change, and nothing is done', async (_what, body, status, message) => {
  const { call } = await playground();
  const path = await newExperiment(call, { title: 'before' });
  const before = (await call(path)).json;
  const refused = { status, json: failure(status, message) };
  expect(await call(path, { method: 'PATCH', body })).toMatchObject(refused);
  expect(await call(EXPERIMENTS, { method: 'POST', body })).toMatchObject(refused);
  expect((await call(path)).json).toEqual(before);
  expect(await call(`${EXPERIMENTS}/2`)).toMatchObject({ status: 404 });
});

test('__proto__ in a body is an unknown field like any other', async () => {
  const { call } = await playground();
  const path = await newExperiment(call);
  const raw = '{"__proto__": {"title": "x"}}';
  expect((await call(path, { method: 'PATCH', raw })).json).toEqual(
    failure(400, /unknown field "__proto__"/),
  );
});

test('what just fits is taken', async () => {
  const { call } = await playground();
  const fields = { title: '😀'.repeat(255), body: 'é'.repeat(2_060_000), tags: ['x'.repeat(255)] };
  const path = await newExperiment(call, fields);
  expect((await call(path)).json).toMatchObject(fields);
});

test('a change of nothing is refused', async () => {
  const { call } = await playground();
  const path = await newExperiment(call);
  for (const body of [{}, undefined]) {
    expect((await call(path, { method: 'PATCH', body })).json).toEqual(failure(400, /nothing to change/));
  }
});

test.each(['GET', 'PATCH'])(
  '%s of an experiment: 404 where there is none, 400 for what is no id',
  async (method) => {
    const { call } = await playground();
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
  },
);

test('many creations at once get ids of their own', async () => {
  const { call } = await playground();
  const made = await Promise.all(
    Array.from({ length: 200 }, (_, n) => call(EXPERIMENTS, { method: 'POST', body: { title: `run ${n}` } })),
  );
  const ids = new Set(made.map(madeIn));
  expect(ids.size).toBe(200);
  const titles = await Promise.all([...ids].map(async (id) => (await call(`${EXPERIMENTS}/${id}`)).json));
  expect(new Set(titles.map((json) => (json as { title: string }).title)).size).toBe(200);
});

test('without keepsTitle a creation ignores its body', async () => {
  const { call } = await playground({ keepsTitle: false });
  const path = await newExperiment(call, { title: 'dropped', tags: ['x'] });
  expect((await call(path)).json).toMatchObject({ title: 'Untitled', tags: [] });
  expect(await call('/api/v2/experiments', { method: 'POST', body: { title: 5 } })).toMatchObject({
    status: 400,
  });
});
