import { describe, expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { commentsOf, record, sentBytes, table, v } from './samples.js';

describe('a summary', () => {
  const summaryOf = (given: FileRecord) =>
    commentsOf({ record: given, comments: { readings: 'summary' } })[0] ?? '';

  test('counts the numbers and gives least, middle and greatest as written', () => {
    const values = [v(3, '3,0'), v(1, '1,00'), v(null, 'OVER'), v(2, '2,000'), v('text')];
    const line = summaryOf(
      record(
        {},
        table(
          't',
          ['x (mg)'],
          values.map((value) => [value]),
        ),
      ),
    )
      .split('\n')
      .at(-1);
    expect(line?.split('|').map((cell) => cell.trim())).toEqual(['x', 'mg', '3', '1,00', '2,000', '3,0']);
  });

  test('gives the mean of the two in the middle where there is no middle', () => {
    const line = (numbers: number[]) =>
      summaryOf(
        record(
          {},
          table(
            't',
            ['x'],
            numbers.map((n) => [v(n)]),
          ),
        ),
      )
        .split('\n')
        .at(-1)
        ?.split('|')[4]
        ?.trim();
    expect(line([1, 2])).toBe('1.5');
    expect(line([0.1, 0.2])).toBe('0.15');
    expect(line([2, 2, 9, 1])).toBe('2');
    expect(line([1e308, 1.6e308])).toBe('1.3e+308');
  });

  test('is cut where there are too many columns for one comment, and says so', () => {
    const names = Array.from({ length: 300 }, (_, i) => `column ${i}`);
    const wide = record({}, table('t', names, [names.map((_, i) => v(i))]));
    const comments = commentsOf({ record: wide, comments: { readings: 'summary', maxBytes: 2048 } });
    expect(comments).toEqual([expect.stringMatching(/\n… \d+ more lines; all is in the raw file$/)]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });
});
