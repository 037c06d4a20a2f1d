import { expect, test } from 'vitest';
import { madeIn } from '../playground.ts';
import { elabftw, failed } from './playing.ts';

test('a tag is added once, however often it is sent', async () => {
  const { make, post, read } = await elabftw();
  const path = await make();
  for (const tag of ['pH', 'pH', 'buffer']) {
    expect(await post(`${path}/tags`, { tag })).toMatchObject({ status: 201, text: '' });
  }
  expect(await read(path)).toMatchObject({ tags: 'pH|buffer', tags_id: '1,2' });
  expect((await read(`${path}/tags`)) as unknown).toEqual([
    { tag: 'pH', tag_id: 1, is_favorite: 0 },
    { tag: 'buffer', tag_id: 2, is_favorite: 0 },
  ]);
});

test('a tag that the team has in other case is that tag', async () => {
  const { make, post, read } = await elabftw();
  const first = await make({ tags: ['NanoDrop'] });
  const second = await make();
  const made = await post(`${second}/tags`, { tag: 'nanodrop' });
  expect(madeIn(made)).toBe('1');
  for (const path of [first, second]) expect(await read(path)).toMatchObject({ tags: 'NanoDrop' });
});

test.each([
  ['a|b', 'a b'],
  ['  x ', 'x'],
  ['x'.repeat(255), 'x'.repeat(255)],
])('the tag %j is kept as %j', async (sent, kept) => {
  const { make, post, read } = await elabftw();
  const path = await make();
  await post(`${path}/tags`, { tag: sent });
  expect(await read(path)).toMatchObject({ tags: kept });
});

test('a tag over 255 characters gets 500 with the database’s own code', async () => {
  const { make, post } = await elabftw();
  const path = await make();
  const answer = await post(`${path}/tags`, { tag: 'x'.repeat(256) });
  expect(answer).toMatchObject(failed(500, 1406, /Data too long/));
  expect(await post(`${path}/tags`, { tag: ' ' })).toMatchObject(failed(400, 400, /too short/));
});

test('where users may not make tags, only those that the team has are taken', async () => {
  const { make, post, control, read } = await elabftw({ elabftw: { createsTags: false } });
  control.as('administrator').create({ tags: ['known'] });
  const path = await make();
  expect(await post(`${path}/tags`, { tag: 'new' })).toMatchObject(failed(400, 400, /cannot create tags/));
  expect(await post(`${path}/tags`, { tag: 'Known' })).toMatchObject({ status: 201 });
  expect(await read(path)).toMatchObject({ tags: 'known' });
});

test('tags leave the time of the last change as it was', async () => {
  let now = Date.UTC(2026, 0, 1);
  const clock = { now: () => now, monotonic: () => 0, sleep: async () => undefined };
  const { make, post, read } = await elabftw({ clock });
  const path = await make();
  now += 60_000;
  await post(`${path}/tags`, { tag: 'x' });
  expect(await read(path)).toMatchObject({ modified_at: '2026-01-01 00:00:00' });
});

test('a tag is taken off one experiment, and stays the team’s; one that is not there is no mistake', async () => {
  const { make, patch, read, control } = await elabftw();
  const path = await make({ tags: ['pH', 'buffer'] });
  const other = await make({ tags: ['pH'] });
  for (let times = 0; times < 2; times++)
    expect(await patch(`${path}/tags/1`, { action: 'unreference' })).toMatchObject({ status: 200 });
  expect(await read(path)).toMatchObject({ tags: 'buffer' });
  expect(await read(other)).toMatchObject({ tags: 'pH' });
  expect(await patch(`${path}/tags/2`, { action: 'delete' })).toMatchObject(
    failed(400, 400, /Invalid action/),
  );
  control.as('colleague').lock(Number(path.split('/').at(-1)));
  expect((await patch(`${path}/tags/2`, { action: 'unreference' })).status).toBe(403);
});
