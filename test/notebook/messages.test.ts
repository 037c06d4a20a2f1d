import { inspect } from 'node:util';
import { HttpResponse } from 'msw';
import { expect, test } from 'vitest';
import { explain, type NotebookError } from '../../src/errors.js';
import { quote } from '../../src/notebook/errors.js';
import { page, type Reply, refusal } from '../support/contract-handlers.js';
import { failureOf, KEY, openContract } from '../support/open-notebook.js';

const text =
  (status: number, body: string): Reply =>
  () =>
    HttpResponse.text(body, { status });

/** All that a log could show of an error, with its causes and hidden fields. */
const everything = (error: NotebookError): string =>
  inspect(error, { depth: 20, showHidden: true }) + explain(error);

test('an error says what was asked, what was answered, and what to do', async () => {
  const { notebook } = await openContract({ patchExperiment: refusal(403, 'Forbidden', 'Entry is locked.') });
  const error = await failureOf(notebook.patchExperiment(7, {}));
  expect(error.message).toBe('PATCH /api/v2/experiments/7 answered 403: Forbidden — Entry is locked.');
  expect(explain(error)).toContain('\n  → ');
});

test('a key that may not create is told of its rights, not of a lock that nobody can have put there', async () => {
  const { notebook } = await openContract({ postExperiments: refusal(403, 'Forbidden', 'Forbidden') });
  const told = explain(await failureOf(notebook.createExperiment()));
  expect(told).toContain('must be allowed to create experiments');
  expect(told).not.toContain('locked');
});

test('what message and description both say is said once', async () => {
  const { notebook } = await openContract({ readExperiment: refusal(404, 'Nothing here', 'Nothing here') });
  expect((await failureOf(notebook.readExperiment(7))).message).toMatch(/answered 404: Nothing here$/);
});

test.each([
  ['nothing', text(400, ''), 'answered 400'],
  ['text', text(400, 'Bad thing'), 'answered 400: Bad thing'],
  ['other JSON', () => HttpResponse.json({ error: 'x' }, { status: 400 }), 'answered 400: {"error":"x"}'],
  ['a JSON string', () => HttpResponse.json('nope', { status: 400 }), 'answered 400: "nope"'],
  ['a page', page(502, 'Bad Gateway'), 'answered 502 with a web page: Bad Gateway'],
  ['a page without title', () => HttpResponse.html('<p>', { status: 502 }), 'answered 502 with a web page'],
] as const)('a refusal that consists of %s is shown as what it is', async (_what, reply, message) => {
  const { notebook } = await openContract({ postExperiments: reply });
  expect((await failureOf(notebook.createExperiment())).message).toBe(`POST /api/v2/experiments ${message}`);
});

test('what the server says is shortened and cannot forge lines or move the cursor', async () => {
  const { notebook } = await openContract({
    postExperiments: text(400, `a\r\nb\u001b[2Jc\u0000d\u202ee\u2028f ${'😀'.repeat(1000)}`),
  });
  const { message } = await failureOf(notebook.createExperiment());
  expect(message).toContain('answered 400: a b [2Jc d e f 😀');
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
])('a key that the server echoes %s is in no part of the error', async (_where, reply) => {
  const { notebook } = await openContract({ postExperiments: reply });
  const shown = everything(await failureOf(notebook.createExperiment()));
  expect(shown).not.toContain(KEY);
  expect(shown).not.toContain(KEY.slice(0, 8));
});

test('a key is kept out in every spelling that an answer can have', () => {
  const key = 'a"b\\c%/d';
  const said = [key, JSON.stringify(key), encodeURIComponent(key), 'a"b\\c\u200b'];
  expect(quote(said, key)).toBe('[key] — "[key]" — [key] — a"b\\c');
});

test('records of keys are in no error, whatever status they come with', async () => {
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

test('a new key is in no error, even where the creation went wrong', async () => {
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
