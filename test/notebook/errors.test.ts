import { inspect } from 'node:util';
import fc from 'fast-check';
import { HttpResponse } from 'msw';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { explain, type NotebookError } from '../../src/errors.js';
import { quote, retryAfterMs } from '../../src/notebook/errors.js';
import { failureOf, KEY, openContract, openNotebook, page, type Reply, refusal } from '../support/contract-server.js';
import { serveRaw } from '../support/raw-server.js';

const text =
  (status: number, body: string): Reply =>
  () =>
    HttpResponse.text(body, { status });

/** Everything that a log could show of an error, with its causes and hidden fields. */
const everything = (error: NotebookError): string => inspect(error, { depth: 20, showHidden: true }) + explain(error);

test('an error names the request, the response and what to do', async () => {
  const { notebook } = await openContract({ patchExperiment: refusal(403, 'Forbidden', 'Entry is locked.') });
  const error = await failureOf(notebook.patchExperiment(7, {}));
  expect(error.message).toBe('PATCH /api/v2/experiments/7 failed with status 403: Forbidden — Entry is locked.');
  expect(explain(error)).toContain('\n  → ');
});

test('a 403 on a creation mentions the permissions of the key, not a lock', async () => {
  const { notebook } = await openContract({ postExperiments: refusal(403, 'Forbidden', 'Forbidden') });
  const shown = explain(await failureOf(notebook.createExperiment()));
  expect(shown).toContain('must be allowed to create experiments');
  expect(shown).not.toContain('locked');
});

test('a description that repeats the message is not shown', async () => {
  const { notebook } = await openContract({ readExperiment: refusal(404, 'Nothing here', 'Nothing here') });
  expect((await failureOf(notebook.readExperiment(7))).message).toMatch(/failed with status 404: Nothing here$/);
});

test.each([
  ['nothing', text(400, ''), 'failed with status 400'],
  ['text', text(400, 'Bad thing'), 'failed with status 400: Bad thing'],
  ['other JSON', () => HttpResponse.json({ error: 'x' }, { status: 400 }), 'failed with status 400: {"error":"x"}'],
  ['a JSON string', () => HttpResponse.json('nope', { status: 400 }), 'failed with status 400: "nope"'],
  ['a page', page(502, 'Bad Gateway'), 'failed with status 502 (web page: Bad Gateway)'],
  ['a page without title', () => HttpResponse.html('<p>', { status: 502 }), 'failed with status 502 (web page)'],
] as const)('the content of a rejection is shown: %s', async (_what, reply, message) => {
  const { notebook } = await openContract({ postExperiments: reply });
  expect((await failureOf(notebook.createExperiment())).message).toBe(`POST /api/v2/experiments ${message}`);
});

test('text from the server is shortened, and cannot forge log lines or move the cursor', async () => {
  const { notebook } = await openContract({
    postExperiments: text(400, `a\r\nb\u001b[2Jc\u0000d\u202ee\u2028f ${'😀'.repeat(1000)}`),
  });
  const { message } = await failureOf(notebook.createExperiment());
  expect(message).toContain('status 400: a b [2Jc d e f 😀');
  expect(message).not.toMatch(/[\p{Cc}\p{Cf}\p{Cs}\p{Zl}]/u);
  expect([...message].length).toBeLessThan(400);
  expect(message.endsWith('…')).toBe(true);
});

test.each<[string, Reply]>([
  ['in a message', refusal(401, `No user for key ${KEY}.`)],
  ['in a description', refusal(400, 'Bad', `Authorization: ${KEY}`)],
  ['in text', text(403, `key=${KEY}`)],
  ['in a title', page(500, KEY)],
  ['in other JSON', () => HttpResponse.json({ seen: KEY }, { status: 422 })],
  ['where the excerpt ends', text(400, `${'x'.repeat(290)}${KEY}`)],
  ['after much space', text(400, `${' '.repeat(100_000)}${KEY}`)],
])('a key that the server echoes %s is not in the error', async (_where, reply) => {
  const { notebook } = await openContract({ postExperiments: reply });
  const shown = everything(await failureOf(notebook.createExperiment()));
  expect(shown).not.toContain(KEY);
  expect(shown).not.toContain(KEY.slice(0, 8));
});

test('a key is removed in every encoding', () => {
  const key = 'a"b\\c%/d';
  const said = [key, JSON.stringify(key), encodeURIComponent(key), 'a"b\\c\u200b'];
  expect(quote(said, key)).toBe('[key] — "[key]" — [key] — a"b\\c');
});

test('no error contains key records, whatever the status', async () => {
  const records = [{ id: 1, name: 'n', hash: '$2y$10$secret' }];
  for (const status of [201, 202, 400, 403, 500]) {
    const { notebook } = await openContract({ getApikeys: () => HttpResponse.json(records, { status }) });
    expect(everything(await failureOf(notebook.listKeys()))).not.toContain('secret');
  }
  const replies: Reply[] = [
    () => HttpResponse.json({ records }),
    () => HttpResponse.text(JSON.stringify(records).slice(0, -1)),
    () => HttpResponse.text(JSON.stringify(records).slice(0, -1), { status: 500 }),
  ];
  for (const getApikeys of replies) {
    const { notebook } = await openContract({ getApikeys });
    expect(everything(await failureOf(notebook.listKeys()))).not.toContain('secret');
  }
});

test('no error contains a new key, even if its creation failed', async () => {
  const location = { Location: 'https://eln.example.org/api/v2/apikeys/fresh-secret' };
  for (const [status, field] of [
    [200, 'message'],
    [202, 'key'],
    [302, 'key'],
    [500, 'key'],
  ] as const) {
    const { notebook } = await openContract({
      postApikeys: () => HttpResponse.json({ [field]: 'fresh-secret' }, { status, headers: location }),
    });
    expect(everything(await failureOf(notebook.createKey()))).not.toContain('fresh-secret');
  }
});

const plain =
  (status: number, text = '', headers: Record<string, string> = {}): Reply =>
  () =>
    HttpResponse.text(text, { status, headers });

describe('a web page instead of JSON', () => {
  test('with status 200 is an outage, and hints at the URL', async () => {
    const { notebook } = await openContract({
      readExperiment: page(200, 'Maintenance'),
      getApikeys: page(200, 'Login'),
    });
    const error = await failureOf(notebook.readExperiment(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'server', status: 200, outcomeUnknown: false });
    expect(error.message).toBe('GET /api/v2/experiments/7 returned status 200 with a web page');
    expect(error.hint).toContain('check `notebook.url`');
    expect(await failureOf(notebook.listKeys())).toMatchObject({ failure: 'server', scope: 'server' });
  });

  test('with status 405 is an outage, and the write was certainly not done', async () => {
    const { notebook } = await openContract({
      postExperiments: page(405, 'Maintenance'),
      patchExperiment: page(405, 'Maintenance'),
    });
    for (const request of [notebook.createExperiment(), notebook.patchExperiment(7, {})]) {
      const error = await failureOf(request);
      expect(error).toMatchObject({ failure: 'server', scope: 'server', status: 405, outcomeUnknown: false });
      expect(error.message).toContain('failed with status 405 (web page: Maintenance)');
    }
  });

  test('with status 200 leaves the outcome of a change unknown', async () => {
    const { notebook } = await openContract({ patchExperiment: page(200, 'Login') });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'server',
      outcomeUnknown: true,
    });
  });

  test.each([500, 502, 503, 504])('with status %i is an outage', async (status) => {
    const { notebook } = await openContract({ postExperiments: page(status, 'Bad Gateway') });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'server',
      scope: 'server',
      outcomeUnknown: true,
      status,
    });
  });

  test('with status 413 is permanent', async () => {
    const { notebook } = await openContract({ patchExperiment: page(413, 'Request Entity Too Large') });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'request',
      outcomeUnknown: false,
    });
  });

  test('is recognised without a content type', async () => {
    const { notebook } = await openContract({
      patchExperiment: plain(405, '\n<!DOCTYPE html><html></html>'),
    });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({ failure: 'server' });
  });
});

describe('a 400 from eLabFTW', () => {
  test.each([
    ['being edited', refusal(400, 'This entry is being edited by Ada Lovelace.')],
    ['being edited, in the older field', refusal(400, 'Error', 'This entry is being edited by Ada Lovelace.')],
  ])('%s is temporary and stops no other run', async (_what, reply) => {
    const { notebook } = await openContract({ patchExperiment: reply });
    const error = await failureOf(notebook.patchExperiment(7, {}));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: false, retryable: true });
    expect(error.message).toContain('Ada Lovelace');
  });

  test.each([
    ['a bad key in plain text', plain(400, 'No corresponding API key found!')],
    ['a key that may only read', refusal(400, 'You are using a read-only key to execute a write action.')],
  ])('%s concerns the key, not the run', async (_what, reply) => {
    const { notebook } = await openContract({ postExperiments: reply });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'auth',
      scope: 'server',
      outcomeUnknown: false,
    });
  });

  test('about a deleted experiment is a conflict', async () => {
    const { notebook } = await openContract({ patchExperiment: refusal(400, 'Not possible.', '', 422) });
    expect(await failureOf(notebook.patchExperiment(7, {}))).toMatchObject({
      failure: 'conflict',
      outcomeUnknown: false,
    });
  });

  test('with any other text concerns the request, even if it quotes these words', async () => {
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

test('a 500 with JSON concerns one run: the application works and rejects the value', async () => {
  const { notebook } = await openContract({
    patchExperiment: refusal(500, 'Unexpected error', 'SQLSTATE', 1292),
  });
  const error = await failureOf(notebook.patchExperiment(7, {}));
  expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: true, retryable: true });
});

test.each([
  ['a 405', refusal(405)],
  ['a 403 as a web page', page(403, 'Forbidden')],
])('%s to a change concerns no single run, and the change was certainly not done', async (_what, reply) => {
  const { notebook } = await openContract({ patchExperiment: reply, postExperiments: reply });
  for (const request of [notebook.patchExperiment(7, {}), notebook.createExperiment()])
    expect(await failureOf(request)).toMatchObject({ failure: 'server', scope: 'server', outcomeUnknown: false });
});

test('a 403 as a web page to a read is about the entry', async () => {
  const { notebook } = await openContract({ readExperiment: page(403, 'Forbidden') });
  expect(await failureOf(notebook.readExperiment(7))).toMatchObject({ failure: 'conflict' });
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
] as const)('the outcome of a creation with status %i is unknown, of class %s', async (status, failure) => {
  const { notebook } = await openContract({ postExperiments: () => new HttpResponse(null, { status }) });
  expect(await failureOf(notebook.createExperiment())).toMatchObject({
    failure,
    status,
    outcomeUnknown: true,
  });
});

test.each([200, 201, 202])(
  'the outcome of a deletion with status %i is unknown: only 204 means done',
  async (status) => {
    const { notebook } = await openContract({ deleteEntityComment: plain(status) });
    expect(await failureOf(notebook.deleteComment(7, 5))).toMatchObject({
      failure: 'server',
      status,
      outcomeUnknown: true,
    });
  },
);

describe('Retry-After', () => {
  const inAMinute = () => new Date(Date.now() + 60_000).toUTCString();

  test.each([429, 503])('in seconds is used with status %i', async (status) => {
    const { notebook } = await openContract({ postExperiments: plain(status, '', { 'Retry-After': '7' }) });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: status === 429 ? 'rate' : 'server',
      scope: 'server',
      outcomeUnknown: status !== 429,
      retryAfterMs: 7000,
    });
  });

  test('is used with a web page', async () => {
    const { notebook } = await openContract({ postExperiments: page(503, 'Busy', { 'Retry-After': '7' }) });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({
      failure: 'server',
      retryAfterMs: 7000,
    });
  });

  test('can be a date', async () => {
    const { notebook } = await openContract({ getApikeys: plain(429, '', { 'Retry-After': inAMinute() }) });
    const { retryAfterMs } = await failureOf(notebook.listKeys());
    expect(retryAfterMs).toBeGreaterThan(55_000);
    expect(retryAfterMs).toBeLessThanOrEqual(61_000);
  });

  test('is relative to the server’s clock', async () => {
    const headers = { Date: 'Sat, 31 Jan 2009 12:00:00 GMT', 'Retry-After': 'Sat, 31 Jan 2009 12:00:30 GMT' };
    const { notebook } = await openContract({ getApikeys: plain(429, '', headers) });
    expect(await failureOf(notebook.listKeys())).toMatchObject({ failure: 'rate', retryAfterMs: 30_000 });
  });

  test.each([
    ['for a year', '31536000', 3_600_000],
    ['for less than nothing', '-1', 0],
    ['in words', 'later', undefined],
  ])('%s is limited to a sensible wait', async (_what, header, ms) => {
    const { notebook } = await openContract({ getApikeys: plain(429, '', { 'Retry-After': header }) });
    expect((await failureOf(notebook.listKeys())).retryAfterMs).toBe(ms);
  });

  test('may be missing from a 429', async () => {
    const { notebook } = await openContract({ getApikeys: plain(429) });
    const error = await failureOf(notebook.listKeys());
    expect(error).toMatchObject({ failure: 'rate', scope: 'server', retryable: true });
    expect(error.retryAfterMs).toBeUndefined();
  });
});

const NOW = Date.UTC(2026, 0, 31, 12, 0, 0);
const HOUR_MS = 3_600_000;

test.each([
  ['0', 0],
  ['5', 5000],
  [' 5 ', 5000],
  ['1.5', 1500],
  ['3600', HOUR_MS],
])('%j is a wait in seconds', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test.each([
  ['Sat, 31 Jan 2026 12:00:30 GMT', 30_000],
  ['Saturday, 31-Jan-26 12:00:30 GMT', 30_000],
  ['Sat Jan 31 12:00:30 2026', 30_000],
])('%j is a wait until that time', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test('a date without zone is in GMT, whatever the local time zone', () => {
  vi.stubEnv('TZ', 'America/New_York');
  onTestFinished(() => void vi.unstubAllEnvs());
  expect(retryAfterMs('Sat Jan 31 12:00:30 2026', NOW)).toBe(30_000);
});

test.each([
  ['-5', 0],
  ['Thu, 01 Jan 1970 00:00:00 GMT', 0],
  ['3601', HOUR_MS],
  ['9'.repeat(400), HOUR_MS],
  ['Fri, 31 Dec 9999 23:59:59 GMT', HOUR_MS],
])('%j is limited to a sensible wait', (header, ms) => {
  expect(retryAfterMs(header, NOW)).toBe(ms);
});

test.each([undefined, '', 'soon', 'in 5 minutes', '5 s', 'Sat, 99 Foo 2026 12:00:30 GMT', '1e3', 'NaN', '2026-01-31'])(
  '%j is ignored',
  (header) => {
    expect(retryAfterMs(header, NOW)).toBeUndefined();
  },
);

test('whatever a server sends, the wait is undefined or between zero and an hour', () => {
  const headers = fc.oneof(fc.string(), fc.double().map(String), fc.date().map(String), fc.bigInt().map(String));
  fc.assert(
    fc.property(headers, fc.integer(), (header, now) => {
      const wait = retryAfterMs(header, now);
      expect(wait === undefined || (wait >= 0 && wait <= HOUR_MS)).toBe(true);
    }),
  );
});

test('an invalid response that repeats the request does not show the key in a stack trace', async () => {
  const server = await serveRaw((socket, request) => socket.end(`HTTP/1.1 ${request}`));
  const error = await failureOf(openNotebook(server.url).readExperiment(7));
  expect(server.requests[0]).toContain(KEY);
  expect(inspect(error, { depth: 10 })).toContain('HTTPParserError');
  expect(inspect(error, { depth: 10, showHidden: true })).not.toContain(KEY);
});
