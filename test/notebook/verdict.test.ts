import { HttpResponse } from 'msw';
import { describe, expect, test } from 'vitest';
import { page, type Reply, refusal } from '../support/contract-handlers.ts';
import { failureOf, openContract } from '../support/open-notebook.ts';

const plain =
  (status: number, text = '', headers: Record<string, string> = {}): Reply =>
  () =>
    HttpResponse.text(text, { status, headers });

describe('a web page where JSON belongs', () => {
  test('is an outage on a read that it answers with 200', async () => {
    const { notebook } = await openContract({
      readExperiment: page(200, 'Maintenance'),
      getApikeys: page(200, 'Login'),
    });
    const error = await failureOf(notebook.readExperiment(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'server', status: 200, outcomeUnknown: false });
    expect(error.message).toBe('GET /api/v2/experiments/7 answered 200 with a web page');
    expect(await failureOf(notebook.listKeys())).toMatchObject({ failure: 'server', scope: 'server' });
  });

  test('is an outage on a write that it answers with 405, and the write was surely not done', async () => {
    const { notebook } = await openContract({
      postExperiments: page(405, 'Maintenance'),
      patchExperiment: page(405, 'Maintenance'),
    });
    for (const request of [notebook.createExperiment(), notebook.patchExperiment(7, {})]) {
      const error = await failureOf(request);
      expect(error).toMatchObject({ failure: 'server', scope: 'server', status: 405, outcomeUnknown: false });
      expect(error.message).toContain('answered 405 with a web page: Maintenance');
    }
  });

  test('is an outage on a change that it answers with 200, and the change may have been done', async () => {
    const { notebook } = await openContract({ patchExperiment: page(200, 'Login') });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'server',
      outcomeUnknown: true,
    });
  });

  test.each([500, 502, 503, 504])('is an outage with %i', async (status) => {
    const { notebook } = await openContract({ postExperiments: page(status, 'Bad Gateway') });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'server',
      scope: 'server',
      outcomeUnknown: true,
      status,
    });
  });

  test('is a verdict with 413: the same is too large tomorrow', async () => {
    const { notebook } = await openContract({ patchExperiment: page(413, 'Request Entity Too Large') });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'request',
      outcomeUnknown: false,
    });
  });

  test('is recognised without a type, too', async () => {
    const { notebook } = await openContract({
      patchExperiment: plain(405, '\n<!DOCTYPE html><html></html>'),
    });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({ failure: 'server' });
  });
});

describe('what eLabFTW says with 400', () => {
  test.each([
    ['being edited', refusal(400, 'This entry is being edited by Ada Lovelace.')],
    [
      'being edited, in the older field',
      refusal(400, 'Error', 'This entry is being edited by Ada Lovelace.'),
    ],
  ])('%s passes by itself and stops nobody else', async (_what, reply) => {
    const { notebook } = await openContract({ patchExperiment: reply });
    const error = await failureOf(notebook.patchExperiment(7, {}));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: false, retryable: true });
    expect(error.message).toContain('Ada Lovelace');
  });

  test.each([
    ['a bad key in plain text', plain(400, 'No corresponding API key found!')],
    ['a key that may only read', refusal(400, 'You are using a read-only key to execute a write action.')],
  ])('%s is the key’s fault, not the run’s', async (_what, reply) => {
    const { notebook } = await openContract({ postExperiments: reply });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'auth',
      scope: 'server',
      outcomeUnknown: false,
    });
  });

  test('a deleted experiment is a conflict', async () => {
    const { notebook } = await openContract({ patchExperiment: refusal(400, 'Not possible.', '', 422) });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'conflict',
      outcomeUnknown: false,
    });
  });

  test('anything else concerns the request, also if it quotes the words above', async () => {
    const { notebook } = await openContract({
      patchExperiment: refusal(400, 'Invalid title: "no corresponding API key found, being edited by"'),
    });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'request',
      scope: 'run',
      retryable: false,
    });
  });
});

test('a 500 in JSON concerns the one run: the application is there, it refuses the value', async () => {
  const { notebook } = await openContract({
    patchExperiment: refusal(500, 'Unexpected error', 'SQLSTATE', 1292),
  });
  const error = await failureOf(notebook.patchExperiment(7, {}));
  expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: true, retryable: true });
});

test('a 405 in JSON concerns the request', async () => {
  const { notebook } = await openContract({ patchExperiment: refusal(405) });
  expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
    failure: 'request',
    outcomeUnknown: false,
  });
});

test.each([
  [200, 'server'],
  [202, 'server'],
  [204, 'server'],
  [301, 'server'],
  [304, 'server'],
  [408, 'server'],
  [409, 'request'],
  [415, 'request'],
  [425, 'server'],
  [501, 'server'],
  [507, 'server'],
] as const)('a creation that is answered %i is lost, of class %s', async (status, failure) => {
  const { notebook } = await openContract({ postExperiments: () => new HttpResponse(null, { status }) });
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure,
    status,
    outcomeUnknown: true,
  });
});

test.each([200, 201, 202])('a deletion that is answered %i is lost: only 204 means done', async (status) => {
  const { notebook } = await openContract({ deleteEntityComment: plain(status) });
  expect(await failureOf(notebook.deleteComment(7, 5))).toMatchObject({
    failure: 'server',
    status,
    outcomeUnknown: true,
  });
});

describe('a server that asks for patience', () => {
  const inAMinute = () => new Date(Date.now() + 60_000).toUTCString();

  test.each([429, 503])('with %i is heard, in seconds', async (status) => {
    const { notebook } = await openContract({ postExperiments: plain(status, '', { 'Retry-After': '7' }) });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: status === 429 ? 'rate' : 'server',
      scope: 'server',
      outcomeUnknown: status !== 429,
      retryAfterMs: 7000,
    });
  });

  test('with a web page is heard, too', async () => {
    const { notebook } = await openContract({ postExperiments: page(503, 'Busy', { 'Retry-After': '7' }) });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'server',
      retryAfterMs: 7000,
    });
  });

  test('is heard as a date', async () => {
    const { notebook } = await openContract({ getApikeys: plain(429, '', { 'Retry-After': inAMinute() }) });
    const { retryAfterMs } = await failureOf(notebook.listKeys());
    expect(retryAfterMs).toBeGreaterThan(55_000);
    expect(retryAfterMs).toBeLessThanOrEqual(61_000);
  });

  test('is understood by its own clock where that is wrong', async () => {
    const headers = { Date: 'Sat, 31 Jan 2009 12:00:00 GMT', 'Retry-After': 'Sat, 31 Jan 2009 12:00:30 GMT' };
    const { notebook } = await openContract({ getApikeys: plain(429, '', headers) });
    expect(await failureOf(notebook.listKeys())).toMatchObject({ failure: 'rate', retryAfterMs: 30_000 });
  });

  test.each([
    ['for a year', '31536000', 3_600_000],
    ['for less than nothing', '-1', 0],
    ['in words', 'later', undefined],
  ])('%s is not taken at its word', async (_what, header, ms) => {
    const { notebook } = await openContract({ getApikeys: plain(429, '', { 'Retry-After': header }) });
    expect((await failureOf(notebook.listKeys())).retryAfterMs).toBe(ms);
  });

  test('without saying for how long is still of class rate', async () => {
    const { notebook } = await openContract({ getApikeys: plain(429) });
    const error = await failureOf(notebook.listKeys());
    expect(error).toMatchObject({ failure: 'rate', scope: 'server', retryable: true });
    expect(error.retryAfterMs).toBeUndefined();
  });
});
