import { expect, test } from 'vitest';
import { caller, madeIn } from '../playground.ts';
import { EXPERIMENTS, elabftw } from './playing.ts';

const KEYS = '/api/v2/apikeys';

test('records tell the dialect, the team and a hash, and never the key', async () => {
  const { call, key } = await elabftw();
  const answer = await call(KEYS);
  expect(answer).toMatchObject({
    status: 200,
    json: [
      {
        id: 1,
        name: 'labfeed sandbox',
        can_write: 1,
        created_at: expect.any(String),
        last_used_at: expect.any(String),
        hash: expect.stringMatching(/^\$2y\$10\$.{53}$/),
        team: 1,
        team_name: 'Sandbox team',
      },
    ],
  });
  expect(answer.text).not.toContain(key);
});

test('the last segment of Location is the key, with its number before it', async () => {
  const { post, url } = await elabftw();
  const made = await post(KEYS, { name: 'writer', canwrite: 1 });
  expect(made.headers).toMatchObject({
    location: expect.stringMatching(/^https:\/\/eln\.invalid\/2-[0-9a-f]{84}$/),
  });
  const writer = caller(url, madeIn(made));
  expect(await writer(EXPERIMENTS, { method: 'POST', body: {} })).toMatchObject({ status: 201 });
});

test.each([
  ['left out', { name: 'x' }, 201],
  ['0', { name: 'x', canwrite: 0 }, 201],
  ['a text', { name: 'x', canwrite: '1' }, 500],
  ['a boolean', { name: 'x', canwrite: true }, 500],
])('an access level that is %s makes no key that writes', async (_what, body, status) => {
  const { post, call } = await elabftw();
  expect(await post(KEYS, body)).toMatchObject({ status });
  const keys = (await call(KEYS)).json as { can_write: number }[];
  expect(keys.filter(({ can_write }) => can_write === 1)).toHaveLength(1);
});

test('deleting a key that is not there gets 204', async () => {
  const { call, post, url } = await elabftw();
  expect(await call(`${KEYS}/77`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
  const second = caller(url, madeIn(await post(KEYS, { name: 'second' })));
  expect(await call(`${KEYS}/2`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  expect(await second(KEYS)).toMatchObject({ status: 401 });
});
