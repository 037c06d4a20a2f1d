import { expect, test } from 'vitest';
import { elabftw, failed } from './playing.ts';

test('a comment is kept raw, in a record with its author', async () => {
  const { make, post, read, call, patch } = await elabftw();
  const path = `${await make()}/comments`;
  const text = 'time\tpH\n<b>&amp;</b>';
  expect(await post(path, { comment: text })).toMatchObject({
    status: 201,
    text: '',
    headers: { location: `https://eln.invalid${path}/1` },
  });
  const record = {
    id: 1,
    created_at: expect.any(String),
    modified_at: expect.any(String),
    item_id: 1,
    comment: text,
    userid: 1,
    immutable: 0,
    fullname: 'Sam Sandbox',
    firstname: 'Sam',
    lastname: 'Sandbox',
    orcid: null,
    email: 'sam@eln.invalid',
  };
  expect(await read(path)).toEqual([record]);
  expect(await read(`${path}/1`)).toEqual(record);
  expect((await patch(`${path}/1`, { comment: 'new' })).json).toEqual({ ...record, comment: 'new' });
  expect(await call(`${path}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  expect(await read(path)).toEqual([]);
});

test.each([
  ['missing', {}, failed(400, 400, /Missing comment field/)],
  ['null', { comment: null }, failed(400, 400, /Missing comment field/)],
  ['under another name', { text: 'x' }, failed(400, 400, /Missing comment field/)],
  ['empty', { comment: '' }, failed(400, 400, /Invalid comment/)],
  ['a number', { comment: 7 }, { status: 500 }],
  ['over 65,535 bytes', { comment: 'é'.repeat(32_768) }, failed(500, 1406, /Data too long/)],
])('a comment that is %s is not made', async (_what, body, answer) => {
  const { make, post, control } = await elabftw();
  expect(await post(`${await make()}/comments`, body)).toMatchObject(answer);
  expect(control.experiments()).toMatchObject([{ comments: [] }]);
});

test('a comment of 65,535 bytes is taken whole', async () => {
  const { make, post, control } = await elabftw();
  const comment = `${'é'.repeat(32_767)}.`;
  await post(`${await make()}/comments`, { comment });
  expect(control.experiments()).toMatchObject([{ comments: [{ comment }] }]);
});

test('the same comment twice makes two', async () => {
  const { make, post, control } = await elabftw();
  const path = `${await make()}/comments`;
  for (let times = 0; times < 2; times += 1) await post(path, { comment: 'x' });
  expect(control.experiments()[0]?.comments).toHaveLength(2);
});

test('another’s comment is seen, and neither changed nor deleted', async () => {
  const { make, patch, call, control } = await elabftw();
  const path = `${await make()}/comments`;
  control.as('colleague').comment(1, 'theirs');
  expect((await patch(`${path}/1`, { comment: 'x' })).json).toMatchObject({ comment: 'theirs', userid: 2 });
  expect(await call(`${path}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  expect((await call(path)).json).toMatchObject([{ comment: 'theirs', fullname: 'Kim Colleague' }]);
});

test('comments that are not there get 404; what is no number gets the list', async () => {
  const { make, call, post } = await elabftw();
  const path = `${await make()}/comments`;
  await post(path, { comment: 'x' });
  expect(await call(`${path}/9`)).toMatchObject(failed(404, 404, /Nothing to show/));
  expect(await call(`${path}/9`, { method: 'DELETE' })).toMatchObject({ status: 404 });
  expect(await call('/api/v2/experiments/9/comments')).toMatchObject({ status: 404 });
  expect((await call(`${path}/abc`)).json).toMatchObject([{ comment: 'x' }]);
});
