import { HttpResponse } from 'msw';
import { expect, test } from 'vitest';
import { NotebookError } from '../../src/errors.js';
import type { Notebook } from '../../src/notebook/client.js';
import { contractHandlers, created, refusal } from '../support/contract-handlers.js';
import { serveHandlers } from '../support/msw-server.js';
import { failureOf, KEY, openContract, openNotebook } from '../support/open-notebook.js';
import { serveRaw } from '../support/raw-server.js';

test('a request with a body carries the bare key and exactly the JSON type', async () => {
  const { notebook, server } = await openContract();
  await notebook.postComment(7, 'µ');
  const { host, ...headers } = server.seen[0]?.headers ?? {};
  expect(server.url).toContain(host);
  expect(headers).toEqual({
    authorization: KEY,
    accept: 'application/json',
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength('{"comment":"µ"}')),
    connection: 'keep-alive',
  });
});

test.each<[string, (notebook: Notebook) => Promise<unknown>]>([
  ['GET', (notebook) => notebook.readExperiment(7)],
  ['DELETE', (notebook) => notebook.deleteComment(7, 5)],
])('a %s has no body, no type and no length', async (_method, call) => {
  const { notebook, server } = await openContract();
  await call(notebook);
  const { host, ...headers } = server.seen[0]?.headers ?? {};
  expect(headers).toEqual({ authorization: KEY, accept: 'application/json', connection: 'keep-alive' });
  expect(server.seen[0]?.body).toBe('');
});

test('a POST with nothing to say sends an empty object', async () => {
  const { notebook, server } = await openContract();
  await notebook.createExperiment();
  await notebook.createKey();
  expect(server.seen.map(({ body }) => body)).toEqual(['{}', '{}']);
});

test('a PATCH sends only fields that a notebook takes, and tags last', async () => {
  const { notebook, server } = await openContract();
  const draft = { tags: ['t'], comments: ['c'], body: 'b', date: '2026-01-31', title: 'A', content_type: 1 };
  await notebook.patchExperiment(7, draft);
  expect(server.seen[0]?.body).toBe(
    '{"title":"A","date":"2026-01-31","body":"b","content_type":1,"tags":["t"]}',
  );
});

test('the text of a comment goes under the configured name', async () => {
  const { notebook, server } = await openContract({}, { commentField: 'content' });
  await notebook.postComment(7, 'text');
  await notebook.patchComment(7, 5, 'other');
  expect(server.seen.map(({ body }) => body)).toEqual(['{"content":"text"}', '{"content":"other"}']);
});

test.each([
  ['', '/api/v2/experiments'],
  ['/', '/api/v2/experiments'],
  ['/eln', '/eln/api/v2/experiments'],
  ['/a/b//', '/a/b/api/v2/experiments'],
])('a base address that ends in "%s" is kept', async (suffix, path) => {
  const server = await serveHandlers(contractHandlers());
  await openNotebook(server.url + suffix).createExperiment();
  expect(server.seen[0]?.path).toBe(path);
});

test('a changed key is used from the next request on', async () => {
  const keys = ['first', 'second'];
  const { notebook, server } = await openContract({}, { key: () => keys.shift() ?? '' });
  await notebook.listKeys();
  await notebook.listKeys();
  expect(server.seen.map(({ headers }) => headers.authorization)).toEqual(['first', 'second']);
});

test.each(['', 'a b', 'a\nb', 'ключ'])('a key that no header can carry (%j) is not sent', async (key) => {
  const { notebook, server } = await openContract({}, { key: () => key });
  const error = await failureOf(notebook.createExperiment());
  expect(error).toMatchObject({ failure: 'auth', outcomeUnknown: false });
  if (key !== '') expect(error.message).not.toContain(key);
  expect(server.seen).toEqual([]);
});

test('a key that cannot be read stops the sending, not the run', async () => {
  const key = () => {
    throw new Error('no such file');
  };
  const { notebook } = await openContract({}, { key });
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure: 'auth',
    scope: 'server',
    outcomeUnknown: false,
    message: 'the API key cannot be read: no such file',
  });
});

const WRONG_IDS = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '7' as unknown as number];

test.each(WRONG_IDS)('%s as an id is refused before anything is sent', async (id) => {
  const { notebook, server } = await openContract();
  const requests = [
    notebook.readExperiment(id),
    notebook.patchExperiment(id, {}),
    notebook.listComments(id),
    notebook.listComments({ type: 'experiments', id }),
    notebook.readComment(7, id),
    notebook.readComment(id, 7),
    notebook.postComment(id, 'text'),
    notebook.patchComment(7, id, 'text'),
    notebook.deleteComment(7, id),
    notebook.deleteKey(id),
  ];
  for (const request of requests) {
    expect(await failureOf(request)).toMatchObject({ failure: 'request', outcomeUnknown: false });
  }
  expect(server.seen).toEqual([]);
});

test.each(['', '..', 'a/b', 'experiments?x', 'É'])('%j as a type of entity is refused', async (type) => {
  const { notebook, server } = await openContract();
  expect(await failureOf(notebook.listComments({ type, id: 7 }))).toMatchObject({ failure: 'request' });
  expect(server.seen).toEqual([]);
});

test('many requests one after the other share one connection, whatever they are answered', async () => {
  const { notebook, server } = await openContract({
    readExperiment: refusal(404, 'x'.repeat(50_000)),
    postExperiments: () =>
      HttpResponse.text('y'.repeat(50_000), { status: 201, headers: { Location: '/1' } }),
  });
  for (let round = 0; round < 5; round += 1) {
    await notebook.createExperiment();
    await notebook.patchExperiment(7, { title: 'A' });
    await failureOf(notebook.readExperiment(7));
    await notebook.listComments(7);
    await notebook.deleteComment(7, 5);
  }
  expect(server.seen).toHaveLength(25);
  expect(server.connections()).toBe(1);
});

test('many requests at once use no more connections than allowed', async () => {
  const { notebook, server } = await openContract({}, { connections: 3 });
  const { signal } = new AbortController();
  await Promise.all(Array.from({ length: 30 }, () => notebook.readExperiment(7, signal)));
  expect(server.seen).toHaveLength(30);
  expect(server.connections()).toBeLessThanOrEqual(3);
});

test('cookies are not sent back', async () => {
  const { notebook, server } = await openContract({
    postExperiments: () =>
      new HttpResponse(null, {
        status: 201,
        headers: { Location: '/1', 'Set-Cookie': 'PHPSESSID=abc; path=/' },
      }),
  });
  await notebook.createExperiment();
  await notebook.createExperiment();
  expect(server.seen.map(({ headers }) => headers.cookie)).toEqual([undefined, undefined]);
});

test('a redirect is not followed: the key goes to the configured address only', async () => {
  const elsewhere = await serveRaw((socket) => socket.end());
  const { notebook } = await openContract({
    readExperiment: () => new HttpResponse(null, { status: 302, headers: { Location: elsewhere.url } }),
    postExperiments: () => new HttpResponse(null, { status: 307, headers: { Location: elsewhere.url } }),
  });
  expect(await failureOf(notebook.readExperiment(7))).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
  });
  const error = await failureOf(notebook.createExperiment());
  expect(error).toMatchObject({ failure: 'server', outcomeUnknown: true, status: 307 });
  expect(error.hint).toContain('notebook.url');
  expect(elsewhere.requests).toEqual([]);
});

test('the host that a Location names is never contacted', async () => {
  const elsewhere = await serveRaw((socket) => socket.end());
  const { notebook } = await openContract({
    postExperiments: created(`${elsewhere.url}/api/v2/experiments/9`),
  });
  expect(await notebook.createExperiment()).toBe(9);
  expect(elsewhere.requests).toEqual([]);
});

test('every request passes the gate alone, and the gate sees how it failed', async () => {
  const seen: unknown[] = [];
  const admit = async <T>(send: () => Promise<T>): Promise<T> => {
    try {
      const result = await send();
      seen.push(result);
      return result;
    } catch (error) {
      seen.push(error instanceof NotebookError ? error.failure : error);
      throw error;
    }
  };
  const { notebook } = await openContract(
    { readExperiment: () => HttpResponse.html('<p>login</p>'), postEntityComments: refusal(429) },
    { admit },
  );
  await notebook.createExperiment();
  await failureOf(notebook.readExperiment(7));
  await failureOf(notebook.postComment(7, 'text'));
  expect(seen).toEqual([42, 'server', 'rate']);
});

test('what the gate does not admit is not sent', async () => {
  const admit = () => Promise.reject(new Error('stopping'));
  const { notebook, server } = await openContract({}, { admit });
  await expect(notebook.createExperiment()).rejects.toThrow('stopping');
  expect(server.seen).toEqual([]);
});

test('making a client opens nothing', async () => {
  const server = await serveHandlers(contractHandlers());
  openNotebook(server.url);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(server.connections()).toBe(0);
});

test('closing lets what is under way end', async () => {
  const { notebook } = await openContract({
    postExperiments: async (asked) => {
      await new Promise((resolve) => setTimeout(resolve, 200));
      return created('/api/v2/experiments/8')(asked);
    },
  });
  const creation = notebook.createExperiment();
  await notebook.close();
  expect(await creation).toBe(8);
});

test('after closing, a request is surely not sent', async () => {
  const { notebook, server } = await openContract();
  await notebook.close();
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
  });
  expect(server.seen).toEqual([]);
});
