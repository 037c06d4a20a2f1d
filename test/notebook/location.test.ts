import { HttpResponse } from 'msw';
import { describe, expect, test } from 'vitest';
import { created } from '../support/contract-handlers.ts';
import { failureOf, openContract } from '../support/open-notebook.ts';

describe('the id of what was created', () => {
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
  ])('is found in a Location that has %s', async (_what, location) => {
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
  ])('is lost where the Location %s', async (_what, location) => {
    const { notebook } = await openContract({
      postExperiments: created(location),
      postEntityComments: created(location),
    });
    for (const request of [notebook.createExperiment(), notebook.postComment(7, 'text')]) {
      const error = await failureOf(request);
      expect(error).toMatchObject({ failure: 'server', status: 201, outcomeUnknown: true });
      expect(error.message).toContain('answered 201 with no Location that ends in an id');
    }
  });

  test('is lost where a creation is answered 200, even if the body tells one', async () => {
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
    'is lost where the Location is %j',
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
