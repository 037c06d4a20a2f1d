import { expect, test } from 'vitest';
import { withoutPath } from '../src/text.js';

test('a reason that begins with the path of its file keeps line and column, in words', () => {
  const tell = (reason: string): string => withoutPath(reason, '/data/a.csv');
  expect(tell('/data/a.csv:2:4: no number')).toBe('line 2, column 4: no number');
  expect(tell('/data/a.csv:2: no number')).toBe('line 2: no number');
  expect(tell('/data/a.csv: no table')).toBe('no table');
  expect(tell('the notebook refused it')).toBe('the notebook refused it');
  expect(withoutPath('no table', '')).toBe('no table');
});
