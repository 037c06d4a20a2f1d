import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createSandbox } from '../../src/sandbox/server.js';
import { caller, failure, madeIn, sandboxClient, temporaryFolder } from './client.js';

const KEYS = '/api/v2/apikeys';

test('the list of keys contains no secrets', async () => {
  const { call, key } = await sandboxClient();
  await call(KEYS, { method: 'POST', body: { name: 'reader', canwrite: 0 } });
  const answer = await call(KEYS);
  const common = { id: expect.any(Number), created_at: expect.any(String) };
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual([
    { ...common, name: 'labfeed sandbox', can_write: 1, last_used_at: expect.any(String) },
    { ...common, name: 'reader', can_write: 0, last_used_at: null },
  ]);
  expect(answer.text).not.toContain(key);
});

test('a new key works at once with the permissions it was given', async () => {
  const { call, url } = await sandboxClient();
  const made = await call(KEYS, { method: 'POST', body: { name: 'writer', canwrite: 1 } });
  expect(made).toMatchObject({ status: 201, text: '' });
  expect(made.headers['location']).toMatch(/\/api\/v2\/apikeys\/[0-9a-f]{48}$/);
  const writer = caller(url, madeIn(made));
  expect(await writer('/api/v2/experiments', { method: 'POST' })).toMatchObject({ status: 201 });
});

test('a read-only key can read everything and write nothing', async () => {
  const { call, url } = await sandboxClient();
  await call('/api/v2/experiments', { method: 'POST' });
  await call('/api/v2/experiments/1/comments', { method: 'POST', body: { comment: 'x' } });
  const made = await call(KEYS, { method: 'POST', body: { name: 'reader', canwrite: 0 } });
  const reader = caller(url, madeIn(made));
  const one = '/api/v2/experiments/1';
  for (const path of [KEYS, one, `${one}/comments`, `${one}/comments/1`]) {
    expect(await reader(path)).toMatchObject({ status: 200 });
  }
  const writes = [
    ['POST', '/api/v2/experiments', {}],
    ['PATCH', one, { title: 'x' }],
    ['POST', `${one}/comments`, { comment: 'x' }],
    ['PATCH', `${one}/comments/1`, { comment: 'y' }],
    ['DELETE', `${one}/comments/1`, undefined],
    ['POST', KEYS, { name: 'x', canwrite: 1 }],
    ['DELETE', `${KEYS}/1`, undefined],
  ] as const;
  for (const [method, path, body] of writes) {
    expect(await reader(path, { method, body })).toMatchObject({
      status: 403,
      json: failure(403, /read-only/),
    });
  }
  expect((await call(`${one}/comments`)).json).toMatchObject([{ comment: 'x' }]);
});

test.each([
  ['no body', undefined, 400, /name is missing/],
  ['no name', { canwrite: 1 }, 400, /name is missing/],
  ['no access level', { name: 'x' }, 400, /canwrite is missing/],
  ['a name of the wrong type', { name: 1, canwrite: 1 }, 400, /name must be a string/],
  ['an empty name', { name: '', canwrite: 1 }, 400, /name must not be empty/],
  ['a name that is too long', { name: 'x'.repeat(256), canwrite: 1 }, 422, /name is longer/],
  ['an access level as a string', { name: 'x', canwrite: '1' }, 400, /canwrite must be the number 0 or 1/],
  ['an access level as a boolean', { name: 'x', canwrite: true }, 400, /canwrite must be the number 0 or 1/],
  ['an unknown access level', { name: 'x', canwrite: 2 }, 422, /canwrite must be 0 or 1/],
  ['an unknown field', { name: 'x', canwrite: 1, team: 1 }, 400, /unknown field "team"/],
])('a key with %s is refused', async (_what, body, status, message) => {
  const { call } = await sandboxClient();
  const answer = await call(KEYS, { method: 'POST', body });
  expect(answer).toMatchObject({ status, json: failure(status, message) });
  expect((await call(KEYS)).json).toHaveLength(1);
});

test('a deleted key gets 401, even one that deleted itself', async () => {
  const { call, url } = await sandboxClient();
  const made = await call(KEYS, { method: 'POST', body: { name: 'second', canwrite: 1 } });
  const second = caller(url, madeIn(made));
  expect(await second(`${KEYS}/1`, { method: 'DELETE' })).toMatchObject({ status: 204, text: '' });
  expect(await call(KEYS)).toMatchObject({ status: 401, json: failure(401, /unknown API key/) });
  expect(await second(`${KEYS}/2`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  expect(await second(KEYS)).toMatchObject({ status: 401 });
});

test('deleting a missing key gets 204, and an invalid id 400', async () => {
  const { call } = await sandboxClient();
  expect(await call(`${KEYS}/77`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  expect(await call(`${KEYS}/x`, { method: 'DELETE' })).toMatchObject({ status: 400 });
});

test('the list shows when a key was last used', async () => {
  const { call, url } = await sandboxClient();
  const made = await call(KEYS, { method: 'POST', body: { name: 'reader', canwrite: 0 } });
  await caller(url, madeIn(made))(KEYS);
  expect((await call(KEYS)).json).toMatchObject([{}, { last_used_at: expect.stringMatching(/^20/) }]);
});

test("keys survive a restart; the sandbox's own key is replaced only if it was deleted", async () => {
  const file = join(await temporaryFolder(), 'notebook.db');
  const sandbox = createSandbox({ file, port: 0 });
  const first = await sandbox.start();
  const made = madeIn(
    await caller(first.url, first.key)(KEYS, { method: 'POST', body: { name: 'kept', canwrite: 1 } }),
  );
  await sandbox.stop();
  expect((await readFile(file)).includes(made), 'the clear text of a created key is in the file').toBe(false);

  const second = await sandbox.start();
  expect(second.key).toBe(first.key);
  const call = caller(second.url, made);
  expect(await call(`${KEYS}/1`, { method: 'DELETE' })).toMatchObject({ status: 204 });
  await sandbox.stop();

  const third = await sandbox.start();
  expect(third.key).not.toBe(first.key);
  expect(await caller(third.url, third.key)(KEYS)).toMatchObject({ status: 200 });
  expect(await caller(third.url, first.key)(KEYS)).toMatchObject({ status: 401 });
  await sandbox.stop();
});
