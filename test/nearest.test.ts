import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { nearest } from '../src/text.js';

describe('nearest', () => {
  const names = ['title', 'date', 'body', 'tags'];

  test.each([
    ['titel', 'title'],
    ['tittle', 'title'],
    ['titl', 'title'],
    ['tag', 'tags'],
    ['DATE', 'date'],
    ['boby', 'body'],
  ])('%s was meant to be %s', (typed, meant) => {
    expect(nearest(typed, names)).toBe(meant);
  });

  test.each(['x', 'instrument', '', 'zz', 'comments'])('nothing is near %j', (typed) => {
    expect(nearest(typed, names)).toBeUndefined();
  });

  test('case, blanks, dashes and underscores do not count', () => {
    expect(nearest('sample_id', ['Sample', 'Sample ID'])).toBe('Sample ID');
    expect(nearest('max-bytes', ['maxBytes', 'bytes'])).toBe('maxBytes');
  });

  test('a name within another is near, after those with a slip of the finger', () => {
    expect(nearest('Sample', ['Operator', 'Sample Description'])).toBe('Sample Description');
    expect(nearest('Sample', ['Sample Description', 'Samples'])).toBe('Samples');
  });

  test('two swapped letters are one slip', () => {
    expect(nearest('ab', ['ba'])).toBeUndefined();
    expect(nearest('Wieght', ['Height', 'Weight'])).toBe('Weight');
  });

  test('the first of equally near names is taken', () => {
    expect(nearest('cat', ['bat', 'hat'])).toBe('bat');
  });

  test('there is nothing near where nothing is known', () => {
    expect(nearest('title', [])).toBeUndefined();
  });

  test('a known name is always found as itself, however it is written', () => {
    fc.assert(
      fc.property(fc.uniqueArray(fc.string({ unit: 'binary' }), { minLength: 1 }), fc.nat(), (known, n) => {
        const name = known[n % known.length] ?? '';
        const found = nearest(name, known) ?? '';
        expect(found.toLowerCase().replace(/[\s_-]+/g, '')).toBe(name.toLowerCase().replace(/[\s_-]+/g, ''));
      }),
    );
  });
});
