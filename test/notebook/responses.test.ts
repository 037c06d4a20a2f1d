import { HttpResponse, type JsonBodyType } from 'msw';
import { describe, expect, test } from 'vitest';
import { created, failureOf, openContract, type Reply } from '../support/contract-server.js';
import { cpuMs } from '../support/until.js';

const json =
  (body: JsonBodyType): Reply =>
  () =>
    HttpResponse.json(body);

describe('an experiment', () => {
  test('has all its fields, including undocumented ones', async () => {
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
  ])('%s gets the id that was requested', async (_what, record) => {
    const { notebook } = await openContract({ readExperiment: json(record) });
    expect(await notebook.readExperiment(7)).toStrictEqual({ id: 7, title: 'A' });
  });

  test.each([
    ['a list', [{ id: 7 }]],
    ['nothing', null],
    ['a number', 7],
    ['one of another id', { id: 8, title: 'A' }],
    ['one whose title is no text', { id: 7, title: 5 }],
  ])('is rejected if the response is %s, for this run only', async (_what, body) => {
    const { notebook } = await openContract({ readExperiment: json(body) });
    const error = await failureOf(notebook.readExperiment(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', status: 200, outcomeUnknown: false });
  });

  test.each([
    ['JSON of any kind', json({ ok: true })],
    ['nothing', () => new HttpResponse(null, { status: 200 })],
    ['text', () => HttpResponse.text('updated')],
  ] as const)('is changed if the response is %s: the contract shows no record', async (_what, reply) => {
    const { notebook } = await openContract({ patchExperiment: reply });
    expect(await notebook.patchExperiment(7, { title: 'A' })).toBeUndefined();
  });
});

describe('comments', () => {
  test('are listed with all their fields and their id, whatever its name', async () => {
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
  ])('are rejected if the response is %s', async (_what, body) => {
    const { notebook } = await openContract({ readEntityComments: json(body) });
    const error = await failureOf(notebook.listComments(7));
    expect(error).toMatchObject({ failure: 'server', scope: 'run', outcomeUnknown: false });
    expect(error.message).toMatch(
      /^GET \/api\/v2\/experiments\/7\/comments returned status 200 with unexpected content: /,
    );
  });

  test('read one by one get the id that was requested', async () => {
    const { notebook } = await openContract({
      readEntityComment: json({ text: 'five' }),
      patchEntityComment: json({ id: 5, text: 'six' }),
    });
    expect(await notebook.readComment(7, 5)).toStrictEqual({ id: 5, text: 'five' });
    expect(await notebook.patchComment(7, 5, 'six')).toStrictEqual({ id: 5, text: 'six' });
  });

  test('whose change is confirmed without a record have an unknown outcome', async () => {
    const { notebook } = await openContract({ patchEntityComment: () => HttpResponse.text('') });
    expect(await failureOf(notebook.patchComment(7, 5, 'six'))).toMatchObject({
      failure: 'server',
      outcomeUnknown: true,
    });
  });
});

describe('a response that no notebook sends', () => {
  const zeros = (bytes: number): string => `[${'0,'.repeat(bytes / 2 - 2)}0]`;
  const MB = 2 ** 20;

  const sends = async (text: string) => {
    const reply: Reply = () => HttpResponse.text(text, { headers: { 'Content-Type': 'application/json' } });
    const { notebook } = await openContract({ readEntityComments: reply, readExperiment: reply, getApikeys: reply });
    return notebook;
  };

  test.each([
    ['16 MB of numbers', zeros(16 * MB), 'it has more than 500000 values'],
    ['a list of numbers', zeros(0.5 * MB), 'comments[0] is not a record'],
    ['a thousand levels', `${'['.repeat(1000)}${']'.repeat(1000)}`, 'it is nested more than 64 levels deep'],
    ['levels without an end', '{"a":'.repeat(MB), 'it is nested more than 64 levels deep'],
  ])('(%s) is refused at its first mistake, for this run only', async (_what, text, problem) => {
    const notebook = await sends(text);
    const memory = process.memoryUsage().heapUsed;
    const start = cpuMs();
    const error = await failureOf(notebook.listComments(7));
    expect(error.message).toContain(`status 200 with unexpected content: ${problem}`);
    expect(error).toMatchObject({ failure: 'server', scope: 'run' });
    expect(cpuMs() - start).toBeLessThan(3000);
    expect(process.memoryUsage().heapUsed - memory).toBeLessThan(100 * MB);
  });

  test('is read only up to what the operation can need', async () => {
    const notebook = await sends(`[${' '.repeat(2 * MB)}]`);
    expect((await failureOf(notebook.listKeys())).message).toContain('it is longer than 1048576 bytes');
    expect(await notebook.listComments(7)).toEqual([]);
    const { notebook: failing } = await openContract({
      readExperiment: () => HttpResponse.text(`because ${'x'.repeat(MB)}`, { status: 500 }),
    });
    const error = await failureOf(failing.readExperiment(7));
    expect(error.message).toMatch(/failed with status 500: because x{100,300}…$/);
  });

  test('counts brackets and commas outside of texts only', async () => {
    const body = `\\"${'[,{'.repeat(600_000)}\\`;
    const notebook = await sends(JSON.stringify({ id: 7, body }));
    expect(await notebook.readExperiment(7)).toStrictEqual({ id: 7, body });
  });
});

test('records of keys are passed through', async () => {
  const { notebook } = await openContract({ getApikeys: json([{ id: 3, name: 'a' }, { name: null }, {}]) });
  expect((await notebook.listKeys()).map(({ id, name }) => [id, name])).toEqual([
    [3, 'a'],
    [undefined, undefined],
    [undefined, undefined],
  ]);
});

test('JSON is read with any content type, and with a byte order mark', async () => {
  const { notebook } = await openContract({
    readExperiment: () =>
      HttpResponse.text('\ufeff{"id":7,"title":"µ"}', { headers: { 'Content-Type': 'text/plain' } }),
  });
  expect(await notebook.readExperiment(7)).toStrictEqual({ id: 7, title: 'µ' });
});

describe('the id of a creation', () => {
  test.each([
    ['an absolute URL', 'https://eln.example.org/api/v2/experiments/42'],
    ['a host that is not the one called', 'http://internal:3148/api/v2/experiments/42'],
    ['a URL without a scheme', '//eln.example.org/api/v2/experiments/42'],
    ['a path', '/api/v2/experiments/42'],
    ['a path with a prefix', '/eln/api/v2/experiments/42'],
    ['a relative path', 'experiments/42'],
    ['a slash at the end', 'https://eln.example.org/api/v2/experiments/42/'],
    ['a query', '/api/v2/experiments/42?format=json'],
    ['a fragment', '/api/v2/experiments/42#top'],
    ['nothing but the id', '42'],
  ])('is read from a Location with %s', async (_what, location) => {
    const { notebook } = await openContract({
      postExperiments: created(location),
      postEntityComments: created(location),
    });
    expect(await notebook.createExperiment()).toBe(42);
    expect(await notebook.postComment(7, 'text')).toBe(42);
  });

  test.each([
    ['is missing', undefined],
    ['is empty', ''],
    ['has no id', '/api/v2/experiments/'],
    ['has a word for an id', '/api/v2/experiments/new'],
    ['has 0 for an id', '/api/v2/experiments/0'],
    ['has a negative id', '/api/v2/experiments/-4'],
    ['has a broken id', '/api/v2/experiments/4.5'],
    ['has an id in other notation', '/api/v2/experiments/0x2a'],
    ['has an id beyond all ids', '/api/v2/experiments/9007199254740993'],
    ['has only a host', 'https://42'],
    ['has an id in its query only', '/experiments.php?id=42'],
    ['is garbage', 'http://[::1'],
  ])('is unknown if the Location %s', async (_what, location) => {
    const { notebook } = await openContract({
      postExperiments: created(location),
      postEntityComments: created(location),
    });
    for (const request of [notebook.createExperiment(), notebook.postComment(7, 'text')]) {
      const error = await failureOf(request);
      expect(error).toMatchObject({ failure: 'server', status: 201, outcomeUnknown: true });
      expect(error.message).toContain('returned status 201 with no Location header that ends in an id');
    }
  });

  test('is unknown if the status is 200, even if the body has an id', async () => {
    const { notebook } = await openContract({ postExperiments: () => HttpResponse.json({ id: 42 }) });
    expect(await failureOf(notebook.createExperiment())).toMatchObject({ status: 200, outcomeUnknown: true });
  });
});

describe('a created key', () => {
  test.each([
    ['https://eln.example.org/api/v2/apikeys/12-00ff', '12-00ff'],
    ['/api/v2/apikeys/00ff/', '00ff'],
    ['00ff', '00ff'],
    ['/api/v2/apikeys/a%2Bb%2Fc%3D%3D', 'a+b/c=='],
    ['/api/v2/apikeys/a+b', 'a+b'],
    ['/api/v2/apikeys/100%', '100%'],
  ])('is the last segment of the Location %s', async (location, key) => {
    const { notebook } = await openContract({ postApikeys: created(location) });
    expect(await notebook.createKey({ name: 'n', canwrite: 1 })).toBe(key);
  });

  test.each([undefined, '', 'https://eln.example.org', 'https://eln.example.org/', '/apikeys/%0A%20'])(
    'is unknown if the Location is %j',
    async (location) => {
      const { notebook } = await openContract({ postApikeys: created(location) });
      expect(await failureOf(notebook.createKey())).toMatchObject({
        failure: 'server',
        status: 201,
        outcomeUnknown: true,
      });
    },
  );
});
