import { expect, test } from 'vitest';
import { systemClock } from '../../../src/clock.ts';
import { EXPERIMENTS, elabftw, failed } from './playing.ts';

const noon = new Date(2026, 2, 4, 12, 0, 0);
const clock = { ...systemClock, now: () => noon.getTime() };

test('a creation heeds title, body, tags and metadata, and no date', async () => {
  const { make, read } = await elabftw({ clock });
  const metadata = { extra_fields: { pH: { type: 'number', value: '7.1' } } };
  const path = await make({ title: 'T', body: '<p>b</p>', tags: ['x', 'y'], metadata, date: '2020-01-01' });
  expect(await read(path)).toMatchObject({
    title: 'T',
    body: '<p>b</p>',
    tags: 'x|y',
    metadata: JSON.stringify(metadata),
    metadata_decoded: metadata,
    date: '2026-03-04',
  });
});

test('a record tells whose it is, where it stands and when it was made', async () => {
  const { make, read } = await elabftw({ clock });
  const time = noon.toISOString().slice(0, 19).replace('T', ' ');
  expect(await read(await make())).toMatchObject({
    id: 1,
    elabid: expect.stringMatching(/^2026\d{4}-[0-9a-f]{40}$/),
    title: 'Untitled',
    date: '2026-03-04',
    body: null,
    created_at: time,
    modified_at: time,
    userid: 1,
    fullname: 'Sam Sandbox',
    team: 1,
    state: 1,
    locked: 0,
    sharelink: 'https://eln.invalid/experiments.php?mode=view&id=1',
    metadata: null,
    content_type: 1,
    tags: null,
    tags_id: null,
    comments: [],
  });
});

test('an older version makes blank experiments, whatever the creation carries', async () => {
  const { make, read } = await elabftw({ keepsTitle: false });
  const path = await make({ title: 'T', body: '<p>b</p>', tags: ['x'], metadata: {} });
  expect(await read(path)).toMatchObject({ title: 'Untitled', body: null, tags: null, metadata: null });
});

test('two blanks of one user differ in id, elabid, sharelink and times only; another’s in the user too', async () => {
  let now = noon.getTime();
  const { make, read, control } = await elabftw({ clock: { ...systemClock, now: () => now } });
  const first = await read(await make());
  now += 61_000;
  const second = await read(await make());
  const others = await read(`${EXPERIMENTS}/${control.as('colleague').create()}`);
  const differing = (a: Record<string, unknown>, b: Record<string, unknown>) =>
    Object.keys({ ...a, ...b }).filter((key) => JSON.stringify(a[key]) !== JSON.stringify(b[key]));
  const own = ['created_at', 'elabid', 'id', 'modified_at', 'sharelink'];
  expect(differing(first, second).sort()).toEqual(own);
  expect(differing(second, others).sort()).toEqual(
    ['elabid', 'firstname', 'fullname', 'id', 'lastname', 'sharelink', 'userid'].sort(),
  );
});

test('GET of id 0, or of what is no number, is the list', async () => {
  const { make, call } = await elabftw();
  await make({ title: 'a' });
  await make({ title: 'b' });
  for (const id of ['0', 'abc', '-1', 'null']) {
    const answer = await call(`${EXPERIMENTS}/${id}`);
    expect(answer, id).toMatchObject({ status: 200, json: [{ title: 'b' }, { title: 'a' }] });
  }
  expect((await call(`${EXPERIMENTS}/1abc`)).json).toMatchObject({ id: 1 });
});

test('an experiment that is not there gets 404', async () => {
  const { call, patch } = await elabftw();
  const path = `${EXPERIMENTS}/7`;
  expect(await call(path)).toMatchObject(failed(404, 404, /Nothing to show/));
  expect(await patch(path, { title: 'x' })).toMatchObject(failed(404, 404, /Nothing to show/));
});

test('an account that writes markdown begins so, unless it is told otherwise', async () => {
  const { make, read, patch } = await elabftw({ elabftw: { markdown: true } });
  const path = await make();
  expect(await read(path)).toMatchObject({ content_type: 2 });
  expect((await patch(path, { content_type: 1, body: '<p>x</p>' })).json).toMatchObject({ content_type: 1 });
  expect(await read(await make({ content_type: 1 }))).toMatchObject({ content_type: 1 });
});

test.each([
  ['title', { title: 5 }],
  ['body', { body: ['x'] }],
  ['content_type', { content_type: '1' }],
])('a %s of the wrong type on creation gets 500 without a word', async (_field, body) => {
  const { post, control } = await elabftw();
  expect(await post(EXPERIMENTS, body)).toMatchObject({ status: 500, text: '' });
  expect(control.experiments()).toEqual([]);
});

test('a creation with a tag that the team forbids is refused, yet made', async () => {
  const { post, control } = await elabftw({ elabftw: { createsTags: false } });
  const answer = await post(EXPERIMENTS, { title: 'made', tags: ['new'] });
  expect(answer).toMatchObject(failed(400, 400, /Users cannot create tags/));
  expect(answer.headers).not.toHaveProperty('location');
  expect(control.experiments()).toMatchObject([{ title: 'made', tags: [] }]);
});
