import { HttpResponse, type JsonBodyType } from 'msw';
import { describe, expect, test } from 'vitest';
import type { Reply } from '../support/contract-handlers.ts';
import { failureOf, openContract } from '../support/open-notebook.ts';

const json =
  (body: JsonBodyType): Reply =>
  () =>
    HttpResponse.json(body);

describe('an experiment', () => {
  test('comes with all its fields, also those that nobody documented', async () => {
    const record = {
      id: 7,
      title: 'A',
      date: '2026-01-31',
      body: '<p>',
      tags: 'a|b',
      elabid: 'x',
      more: { a: [1] },
    };
    const { notebook } = await openContract({ readExperiment: json(record) });
    expect(await notebook.readExperiment(7)).toStrictEqual(record);
  });

  test.each([
    ['without id', { title: 'A' }],
    ['with its id as text', { id: '7', title: 'A' }],
    ['with another kind of id', { id: 'exp-7', title: 'A' }],
  ])('%s is known by the id that was asked for', async (_what, record) => {
    const { notebook } = await openContract({ readExperiment: json(record) });
    expect(await notebook.readExperiment(7)).toStrictEqual({ id: 7, title: 'A' });
  });

  test.each([
    ['a list', [{ id: 7 }]],
    ['nothing', null],
    ['a number', 7],
    ['one of another id', { id: 8, title: 'A' }],
    ['one whose title is no text', { id: 7, title: 5 }],
  ])('is not believed where the answer is %s, and nobody else waits for it', async (_what, body) => {
    const { notebook } = await openContract({ readExperiment: json(body) });
    const error = await failureOf(notebook.readExperiment(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', status: 200, outcomeUnknown: false });
  });

  test.each([
    ['JSON of any kind', json({ ok: true })],
    ['nothing', () => new HttpResponse(null, { status: 200 })],
    ['text', () => HttpResponse.text('updated')],
  ] as const)('is changed where the answer is %s: the contract promises no record', async (_what, reply) => {
    const { notebook } = await openContract({ patchExperiment: reply });
    expect(await notebook.patchExperiment(7, { title: 'A' })).toBeUndefined();
  });
});

describe('comments', () => {
  test('are listed with all their fields, under the id that either name gives', async () => {
    const { notebook } = await openContract({
      readEntityComments: json([
        { id: 5, comment: 'five', userid: 1 },
        { subid: 6, text: 'six' },
        { id: '7', subid: null },
        { id: 99, subid: 8 },
      ]),
    });
    const listed = await notebook.listComments(7);
    expect(listed.map(({ id }) => id)).toEqual([5, 6, 7, 8]);
    expect(listed[0]).toStrictEqual({ id: 5, comment: 'five', userid: 1 });
    expect(listed[1]).toMatchObject({ text: 'six' });
  });

  test('may be none', async () => {
    const { notebook } = await openContract({ readEntityComments: json([]) });
    expect(await notebook.listComments(7)).toEqual([]);
  });

  test.each([
    ['an object', { comments: [] }],
    ['a list of something else', ['five']],
    ['a list with one that has no id', [{ id: 5 }, { comment: 'six' }]],
  ])('are not believed where the answer is %s', async (_what, body) => {
    const { notebook } = await openContract({ readEntityComments: json(body) });
    const error = await failureOf(notebook.listComments(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: false });
    expect(error.message).toMatch(
      /^GET \/api\/v2\/experiments\/7\/comments answered 200 with something unexpected: /,
    );
  });

  test('one by one are known by the id that was asked for', async () => {
    const { notebook } = await openContract({
      readEntityComment: json({ text: 'five' }),
      patchEntityComment: json({ id: 5, text: 'six' }),
    });
    expect(await notebook.readComment(7, 5)).toStrictEqual({ id: 5, text: 'five' });
    expect(await notebook.patchComment(7, 5, 'six')).toStrictEqual({ id: 5, text: 'six' });
  });

  test('whose change is confirmed without a record may be changed or not', async () => {
    const { notebook } = await openContract({ patchEntityComment: () => HttpResponse.text('') });
    expect(await failureOf(notebook.patchComment(7, 5, 'six'))).toMatchObject({
      failure: 'server',
      outcomeUnknown: true,
    });
  });
});

test('records of keys are taken as they are', async () => {
  const { notebook } = await openContract({ getApikeys: json([{ id: 3, name: 'a' }, { name: null }, {}]) });
  expect((await notebook.listKeys()).map(({ id, name }) => [id, name])).toEqual([
    [3, 'a'],
    [undefined, undefined],
    [undefined, undefined],
  ]);
});

test('JSON is read whatever type the server gives it, and with a byte order mark', async () => {
  const { notebook } = await openContract({
    readExperiment: () =>
      HttpResponse.text('\ufeff{"id":7,"title":"µ"}', { headers: { 'Content-Type': 'text/plain' } }),
  });
  expect(await notebook.readExperiment(7)).toStrictEqual({ id: 7, title: 'µ' });
});
