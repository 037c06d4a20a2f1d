import { beforeEach, expect, test } from 'vitest';
import { type Call, failure, newExperiment, playground } from './playground.ts';

let call: Call;
let url: string;

beforeEach(async () => {
  ({ call, url } = await playground());
  await newExperiment(call);
  await newExperiment(call);
});

const COMMENTS = '/api/v2/experiments/1/comments';
const post = (comment: unknown) => call(COMMENTS, { method: 'POST', body: { comment } });

test('a comment is made, listed, read, changed and deleted', async () => {
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

test('the id of a deleted comment is not given again', async () => {
  await post('a');
  await call(`${COMMENTS}/1`, { method: 'DELETE' });
  expect((await post('b')).headers).toMatchObject({ location: expect.stringMatching(/\/2$/) });
});

test('an experiment without comments lists none', async () => {
  expect(await call(COMMENTS)).toMatchObject({ status: 200, json: [] });
});

test.each([
  ['missing', {}, /comment is missing/],
  ['a number', { comment: 7 }, /comment must be a string/],
  ['null', { comment: null }, /comment must be a string/],
  ['empty', { comment: '' }, /comment must not be empty/],
  ['blank', { comment: ' \n' }, /comment must not be empty/],
  ['over 65,535 bytes', { comment: 'é'.repeat(32_768) }, /comment is longer than 65535 bytes/],
  ['with a NUL', { comment: 'a\0' }, /comment has a NUL/],
  ['under another name', { text: 'x' }, /unknown field "text"; known: comment/],
])('a comment that is %s is refused with 400 on creation and on change', async (_what, body, message) => {
  await post('before');
  const refused = { status: 400, json: failure(400, message) };
  expect(await call(COMMENTS, { method: 'POST', body })).toMatchObject(refused);
  expect(await call(`${COMMENTS}/1`, { method: 'PATCH', body })).toMatchObject(refused);
  expect((await call(COMMENTS)).json).toMatchObject([{ id: 1, comment: 'before' }]);
});

test('a comment without any body is refused with 400', async () => {
  expect(await call(COMMENTS, { method: 'POST' })).toMatchObject({ status: 400 });
  await post('before');
  expect(await call(`${COMMENTS}/1`, { method: 'PATCH' })).toMatchObject({ status: 400 });
});

test('a comment of 65,535 bytes is taken whole', async () => {
  const text = 'é'.repeat(32_767);
  await post(`${text}.`);
  expect((await call(`${COMMENTS}/1`)).json).toMatchObject({ comment: `${text}.` });
});

test.each([
  ['a comment that is not there', `${COMMENTS}/9`, 404],
  ['a comment of another experiment', '/api/v2/experiments/2/comments/1', 404],
  ['a comment of no experiment', '/api/v2/experiments/9/comments/1', 404],
  ['a comment of another type of entity', '/api/v2/items/1/comments/1', 404],
  ['a comment whose id is no integer', `${COMMENTS}/x`, 400],
  ['an experiment whose id is no integer', '/api/v2/experiments/x/comments/1', 400],
])('%s cannot be read, changed or deleted', async (_what, path, status) => {
  await post('here');
  for (const method of ['GET', 'PATCH', 'DELETE']) {
    const body = method === 'PATCH' ? { comment: 'x' } : undefined;
    expect(await call(path, { method, body })).toMatchObject({ status, json: { code: status } });
  }
  expect((await call(COMMENTS)).json).toMatchObject([{ id: 1, comment: 'here' }]);
});

test.each([
  ['an experiment that is not there', '/api/v2/experiments/9/comments', 404],
  ['another type of entity', '/api/v2/items/1/comments', 404],
  ['an id that is no integer', '/api/v2/experiments/x/comments', 400],
])('comments of %s can be neither listed nor made', async (_what, path, status) => {
  expect(await call(path)).toMatchObject({ status, json: { code: status } });
  expect(await call(path, { method: 'POST', body: { comment: 'x' } })).toMatchObject({ status });
});
