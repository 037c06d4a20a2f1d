import { describe, expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { commentsOf, cut, fillIn, record, SHA, sentBytes, table, v } from './samples.js';

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

/** Of the machine's time zone on that day. */
const offset = fillIn('{{ file.modified }}').slice(-6);

describe('a file with more rows than are kept', () => {
  const trace = cut(
    table('trace', ['t (s)', 'V (mV)', 'note'], [[v(0, '0.0'), v(1.5, '1,5'), v('x')]]),
    5_000_000,
    {
      t: {
        n: 5_000_000,
        min: v(0, '0.0'),
        median: 1_250_000,
        isMedianExact: false,
        max: v(2.5e6, '2500000.0'),
      },
      V: { n: 4_999_000, min: v(-0.5, '-0,50'), median: 1.25, isMedianExact: true, max: v(3, '3,00') },
    },
  );
  const huge = record({}, trace, table('peaks', ['t (s)'], [[v(1)], [v(4)]]));

  test.each(['table', 'each', 'summary'] as const)(
    'has a summary of all rows, never some of them (%s)',
    (readings) => {
      expect(commentsOf({ record: huge, file: { size: 209_715_200 }, comments: { readings } })).toEqual([
        [
          `Summary of run 7.csv, 209.7 MB (209,715,200 bytes), modified 2026-03-04 12:30:15 ${offset}`,
          `sha256:${SHA}`,
          '',
          'trace: 5,000,000 rows, 3 columns; all rows are in the raw file',
          'column | unit |         n |   min |    median |       max',
          '-------|------|-----------|-------|-----------|----------',
          't      | s    | 5,000,000 |   0.0 | ≈ 1250000 | 2500000.0',
          'V      | mV   | 4,999,000 | -0,50 |      1,25 |      3,00',
          'note   |      |           |       |           |',
          '',
          'peaks: 2 rows, 1 column; all rows are in the raw file',
          'column | unit | n | min | median | max',
          '-------|------|---|-----|--------|----',
          't      | s    | 2 |   1 |    2.5 |   4',
        ].join('\n'),
      ]);
    },
  );

  test('has none where none are asked for', () => {
    expect(commentsOf({ record: huge, comments: { readings: 'none' } })).toEqual([]);
  });

  test('names the raw file however long its name is', () => {
    const [comment = ''] = commentsOf({ record: huge, file: { name: 'µ'.repeat(400) } });
    expect(comment).toMatch(/^Summary of µ+…, 1,234 bytes, modified 2026-/);
  });
});
