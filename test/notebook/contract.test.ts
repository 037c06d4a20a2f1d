import { expect, test } from 'vitest';
import type { FailureClass } from '../../src/errors.js';
import type { Notebook } from '../../src/notebook/client.js';
import { type Operation, refusal } from '../support/contract-handlers.js';
import { failureOf, openContract } from '../support/open-notebook.js';

interface Row {
  readonly call: (notebook: Notebook) => Promise<unknown>;
  readonly wire: string;
  readonly result: unknown;
  /** Every other status that the contract lists, and for those it lists none, what a server would send. */
  readonly refusals: Readonly<Record<number, FailureClass>>;
}

const CONTRACT: Readonly<Record<Operation, Row>> = {
  postExperiments: {
    call: (notebook) => notebook.createExperiment({ title: 'labfeed 01' }),
    wire: 'POST /api/v2/experiments {"title":"labfeed 01"}',
    result: 42,
    refusals: { 400: 'request', 401: 'auth', 403: 'conflict', 404: 'server', 422: 'request' },
  },
  readExperiment: {
    call: (notebook) => notebook.readExperiment(7),
    wire: 'GET /api/v2/experiments/7',
    result: { id: 7, title: 'A run', date: '2026-01-31', body: '', tags: null },
    refusals: { 401: 'auth', 403: 'conflict', 404: 'conflict' },
  },
  patchExperiment: {
    call: (notebook) =>
      notebook.patchExperiment(7, { title: 'A', date: '2026-01-31', body: 'b', tags: ['c'] }),
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

test.each(OPERATIONS)('%s sends what the contract says and gives what was answered', async (_name, row) => {
  const { notebook, server } = await openContract();
  expect(await row.call(notebook)).toEqual(row.result);
  const wire = server.seen.map(({ method, path, body }) => `${method} ${path} ${body}`.trim());
  expect(wire).toEqual([row.wire]);
});

const REFUSALS = OPERATIONS.flatMap(([operation, { call, refusals }]) =>
  Object.entries(refusals).map(([status, failure]) => [operation, Number(status), failure, call] as const),
);

test.each(REFUSALS)(
  '%s: a %i is a failure of class %s, and surely not done',
  async (operation, status, failure, call) => {
    const { notebook, server } = await openContract({ [operation]: refusal(status, 'because') });
    const error = await failureOf(call(notebook));
    expect(error).toMatchObject({ failure, status, outcomeUnknown: false });
    expect(error.message).toMatch(
      /^(the API key was rejected: )?(GET|POST|PATCH|DELETE) \/api\/v2\/\S+ answered \d{3}: because$/,
    );
    expect(error.hint).toBeTruthy();
    expect(server.seen).toHaveLength(1);
  },
);

const WRITES = OPERATIONS.filter(([, { wire }]) => !wire.startsWith('GET'));
const READS = OPERATIONS.filter(([, { wire }]) => wire.startsWith('GET'));

test.each(WRITES)('%s: a 500 may have been carried out, so it is lost', async (operation, { call }) => {
  const { notebook } = await openContract({ [operation]: refusal(500) });
  expect(await failureOf(call(notebook))).toMatchObject({
    failure: 'server',
    outcomeUnknown: true,
    status: 500,
  });
});

test.each(READS)('%s: a 500 changes nothing, so nothing is lost', async (operation, { call }) => {
  const { notebook } = await openContract({ [operation]: refusal(500) });
  expect(await failureOf(call(notebook))).toMatchObject({
    failure: 'server',
    outcomeUnknown: false,
    status: 500,
  });
});

test('comments of another type of entity are reached under its name', async () => {
  const { notebook, server } = await openContract();
  await notebook.listComments({ type: 'items', id: 7 });
  await notebook.readComment({ type: 'items', id: 7 }, 5);
  expect(server.seen.map(({ path }) => path)).toEqual([
    '/api/v2/items/7/comments',
    '/api/v2/items/7/comments/5',
  ]);
});
