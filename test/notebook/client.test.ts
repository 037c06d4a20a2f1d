import { HttpResponse } from 'msw';
import { expect, test } from 'vitest';
import { type FailureClass, NotebookError } from '../../src/errors.js';
import type { Notebook } from '../../src/notebook/client.js';
import {
  contractHandlers,
  created,
  failureOf,
  KEY,
  type Operation,
  openContract,
  openNotebook,
  refusal,
  serveHandlers,
} from '../support/contract-server.js';
import { serveRaw } from '../support/raw-server.js';

interface Row {
  readonly call: (notebook: Notebook) => Promise<unknown>;
  readonly wire: string;
  readonly result: unknown;
  /** The other statuses in the contract; if it lists none, those that a server would send. */
  readonly refusals: Readonly<Record<number, FailureClass>>;
}

const CONTRACT: Readonly<Record<Operation, Row>> = {
  postExperiments: {
    call: (notebook) => notebook.createExperiment({ title: 'labfeed 01' }),
    wire: 'POST /api/v2/experiments {"title":"labfeed 01"}',
    result: 42,
    refusals: { 400: 'request', 401: 'auth', 403: 'auth', 404: 'server', 422: 'request' },
  },
  readExperiment: {
    call: (notebook) => notebook.readExperiment(7),
    wire: 'GET /api/v2/experiments/7',
    result: { id: 7, title: 'A run', date: '2026-01-31', body: '', tags: null },
    refusals: { 401: 'auth', 403: 'conflict', 404: 'conflict' },
  },
  patchExperiment: {
    call: (notebook) => notebook.patchExperiment(7, { title: 'A', date: '2026-01-31', body: 'b', tags: ['c'] }),
    wire: 'PATCH /api/v2/experiments/7 {"title":"A","date":"2026-01-31","body":"b","tags":["c"]}',
    result: undefined,
    refusals: { 400: 'request', 401: 'auth', 403: 'conflict', 404: 'conflict', 422: 'request' },
  },
  readEntityComments: {
    call: (notebook) => notebook.listComments(7),
    wire: 'GET /api/v2/experiments/7/comments',
    result: [
      { id: 5, item_id: 7, comment: 'five' },
      { id: 6, item_id: 7, comment: 'six' },
    ],
    refusals: { 401: 'auth', 403: 'conflict', 404: 'conflict' },
  },
  readEntityComment: {
    call: (notebook) => notebook.readComment(7, 5),
    wire: 'GET /api/v2/experiments/7/comments/5',
    result: { id: 5, comment: 'five' },
    refusals: { 401: 'auth', 404: 'conflict' },
  },
  postEntityComments: {
    call: (notebook) => notebook.postComment(7, 'pH 7.1'),
    wire: 'POST /api/v2/experiments/7/comments {"comment":"pH 7.1"}',
    result: 12,
    refusals: { 400: 'request', 401: 'auth', 404: 'conflict' },
  },
  patchEntityComment: {
    call: (notebook) => notebook.patchComment(7, 5, 'pH 7.2'),
    wire: 'PATCH /api/v2/experiments/7/comments/5 {"comment":"pH 7.2"}',
    result: { id: 5, comment: 'changed' },
    refusals: { 400: 'request', 401: 'auth', 404: 'conflict' },
  },
  deleteEntityComment: {
    call: (notebook) => notebook.deleteComment(7, 5),
    wire: 'DELETE /api/v2/experiments/7/comments/5',
    result: undefined,
    refusals: { 401: 'auth', 404: 'conflict' },
  },
  getApikeys: {
    call: (notebook) => notebook.listKeys(),
    wire: 'GET /api/v2/apikeys',
    result: [{ id: 3, name: 'labfeed', can_write: 1, hash: expect.any(String) }],
    refusals: { 401: 'auth', 403: 'auth' },
  },
  postApikeys: {
    call: (notebook) => notebook.createKey({ name: 'labfeed@host', canwrite: 1 }),
    wire: 'POST /api/v2/apikeys {"name":"labfeed@host","canwrite":1}',
    result: '9-cleartext',
    refusals: { 400: 'request', 401: 'auth', 403: 'auth', 422: 'request' },
  },
  deleteApikey: {
    call: (notebook) => notebook.deleteKey(3),
    wire: 'DELETE /api/v2/apikeys/3',
    result: undefined,
    refusals: { 401: 'auth', 403: 'auth' },
  },
};

const OPERATIONS = Object.entries(CONTRACT) as [Operation, Row][];

test.each(OPERATIONS)('%s sends the request of the contract and returns its response', async (_name, row) => {
  const { notebook, server } = await openContract();
  expect(await row.call(notebook)).toEqual(row.result);
  const wire = server.seen.map(({ method, path, body }) => `${method} ${path} ${body}`.trim());
  expect(wire).toEqual([row.wire]);
});

const REFUSALS = OPERATIONS.flatMap(([operation, { call, refusals }]) =>
  Object.entries(refusals).map(([status, failure]) => [operation, Number(status), failure, call] as const),
);

test.each(REFUSALS)(
  '%s: status %i is a failure of class %s, and certainly not done',
  async (operation, status, failure, call) => {
    const { notebook, server } = await openContract({ [operation]: refusal(status, 'because') });
    const error = await failureOf(call(notebook));
    expect(error).toMatchObject({ failure, status, outcomeUnknown: false });
    expect(error.message).toMatch(
      /^(the API key was rejected: )?(GET|POST|PATCH|DELETE) \/api\/v2\/\S+ failed with status \d{3}: because$/,
    );
    expect(error.hint).toBeTruthy();
    expect(server.seen).toHaveLength(1);
  },
);

const WRITES = OPERATIONS.filter(([, { wire }]) => !wire.startsWith('GET'));
const READS = OPERATIONS.filter(([, { wire }]) => wire.startsWith('GET'));

test.each(WRITES)('%s: the outcome of a write with status 500 is unknown', async (operation, { call }) => {
  const { notebook } = await openContract({ [operation]: refusal(500) });
  expect(await failureOf(call(notebook))).toMatchObject({
    failure: 'server',
    outcomeUnknown: true,
    status: 500,
  });
});

test.each(READS)('%s: a read with status 500 changed nothing', async (operation, { call }) => {
  const { notebook } = await openContract({ [operation]: refusal(500) });
  expect(await failureOf(call(notebook))).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
    status: 500,
  });
});

test('the comments of other entity types have their own path', async () => {
  const { notebook, server } = await openContract();
  await notebook.listComments({ type: 'items', id: 7 });
  await notebook.readComment({ type: 'items', id: 7 }, 5);
  expect(server.seen.map(({ path }) => path)).toEqual(['/api/v2/items/7/comments', '/api/v2/items/7/comments/5']);
});

test('a request with a body has the bare key and exactly the JSON content type', async () => {
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
])('a %s has no body, content type or length', async (_method, call) => {
  const { notebook, server } = await openContract();
  await call(notebook);
  const { host, ...headers } = server.seen[0]?.headers ?? {};
  expect(headers).toEqual({ authorization: KEY, accept: 'application/json', connection: 'keep-alive' });
  expect(server.seen[0]?.body).toBe('');
});

test('a POST without content sends an empty object', async () => {
  const { notebook, server } = await openContract();
  await notebook.createExperiment();
  await notebook.createKey();
  expect(server.seen.map(({ body }) => body)).toEqual(['{}', '{}']);
});

test('a PATCH sends only known fields, and tags last', async () => {
  const { notebook, server } = await openContract();
  const draft = { tags: ['t'], comments: ['c'], body: 'b', date: '2026-01-31', title: 'A', content_type: 1 };
  await notebook.patchExperiment(7, draft);
  expect(server.seen[0]?.body).toBe('{"title":"A","date":"2026-01-31","body":"b","content_type":1,"tags":["t"]}');
});

test('the text of a comment is sent in the configured field', async () => {
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
])('a base address that ends in "%s" is supported', async (suffix, path) => {
  const server = await serveHandlers(contractHandlers());
  await openNotebook(server.url + suffix).createExperiment();
  expect(server.seen[0]?.path).toBe(path);
});

test('a changed key is used from the next request', async () => {
  const keys = ['first', 'second'];
  const { notebook, server } = await openContract({}, { key: () => keys.shift() ?? '' });
  await notebook.listKeys();
  await notebook.listKeys();
  expect(server.seen.map(({ headers }) => headers.authorization)).toEqual(['first', 'second']);
});

test.each(['', 'a b', 'a\nb', 'ключ'])('a key that a header cannot carry (%j) is not sent', async (key) => {
  const { notebook, server } = await openContract({}, { key: () => key });
  const error = await failureOf(notebook.createExperiment());
  expect(error).toMatchObject({ failure: 'auth', outcomeUnknown: false });
  if (key !== '') expect(error.message).not.toContain(key);
  expect(server.seen).toEqual([]);
});

test('an unreadable key is a failure of the server, not of the run', async () => {
  const key = () => {
    throw new Error('no such file');
  };
  const { notebook } = await openContract({}, { key });
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure: 'auth',
    scope: 'server',
    outcomeUnknown: false,
    message: 'cannot read the API key: no such file',
  });
});

const WRONG_IDS = [0, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '7' as unknown as number];

test.each(WRONG_IDS)('the id %s is rejected before anything is sent', async (id) => {
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

test.each(['', '..', 'a/b', 'experiments?x', 'É'])('the entity type %j is rejected', async (type) => {
  const { notebook, server } = await openContract();
  expect(await failureOf(notebook.listComments({ type, id: 7 }))).toMatchObject({ failure: 'request' });
  expect(server.seen).toEqual([]);
});

test('consecutive requests share one connection, whatever their responses', async () => {
  const { notebook, server } = await openContract({
    readExperiment: refusal(404, 'x'.repeat(50_000)),
    postExperiments: () => HttpResponse.text('y'.repeat(50_000), { status: 201, headers: { Location: '/1' } }),
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

test('concurrent requests use no more connections than allowed', async () => {
  const { notebook, server } = await openContract({}, { connections: 3 });
  await Promise.all(Array.from({ length: 30 }, () => notebook.readExperiment(7)));
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

test('a redirect is not followed: the key is sent only to the configured address', async () => {
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
  expect(error.hint).toContain(`if ${elsewhere.url} is the notebook, set \`notebook.url\` to it`);
  expect(elsewhere.requests).toEqual([]);
});

test.each([
  ['https://new.example.org/eln/api/v2/experiments', 'if https://new.example.org/eln is the notebook'],
  ['/eln/api/v2/experiments', /^if http:\/\/127\.0\.0\.1:\d+\/eln is the notebook/],
  ['/login.php', 'check `notebook.url`: the server redirects to another address'],
  ['http://[', 'check `notebook.url`: the server redirects to another address'],
])('a redirect to %s says what to put in notebook.url', async (location, hint) => {
  const { notebook } = await openContract({
    postExperiments: () => new HttpResponse(null, { status: 301, headers: { Location: location } }),
  });
  const { hint: shown = '' } = await failureOf(notebook.createExperiment());
  if (typeof hint === 'string') expect(shown).toContain(hint);
  else expect(shown).toMatch(hint);
});

test('the host in a Location header is never contacted', async () => {
  const elsewhere = await serveRaw((socket) => socket.end());
  const { notebook } = await openContract({
    postExperiments: created(`${elsewhere.url}/api/v2/experiments/9`),
  });
  expect(await notebook.createExperiment()).toBe(9);
  expect(elsewhere.requests).toEqual([]);
});

test('each request goes through the limiter, which sees its failure', async () => {
  const seen: unknown[] = [];
  const schedule = async <T>(send: () => Promise<T>): Promise<T> => {
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
    { schedule },
  );
  await notebook.createExperiment();
  await failureOf(notebook.readExperiment(7));
  await failureOf(notebook.postComment(7, 'text'));
  expect(seen).toEqual([42, 'server', 'rate']);
});

test('a request that the limiter rejects is not sent', async () => {
  const schedule = () => Promise.reject(new Error('stopping'));
  const { notebook, server } = await openContract({}, { schedule });
  await expect(notebook.createExperiment()).rejects.toThrow('stopping');
  expect(server.seen).toEqual([]);
});

test('creating a client opens no connection', async () => {
  const server = await serveHandlers(contractHandlers());
  openNotebook(server.url);
  await new Promise((resolve) => setTimeout(resolve, 50));
  expect(server.connections()).toBe(0);
});

test('closing waits for pending requests', async () => {
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

test('after closing, a request is certainly not sent', async () => {
  const { notebook, server } = await openContract();
  await notebook.close();
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
  });
  expect(server.seen).toEqual([]);
});
