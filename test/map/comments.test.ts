import { describe, expect, test } from 'vitest';
import { commentsOf, fillIn, record, SHA, sentBytes, table, v } from './samples.js';

/** As many rows, each with a text that no other has. */
const rows = (n: number, text = (i: number) => `row-${i}-`) =>
  Array.from({ length: n }, (_, i) => [v(i / 2, (i / 2).toFixed(1)), v(text(i))]);

/** Of the machine's time zone on that day. */
const offset = fillIn('{{ file.modified }}').slice(-6);

describe('readings as a table', () => {
  test('are one comment for an ordinary file, aligned, with units, as written', () => {
    expect(commentsOf()).toEqual([
      [
        'readings: 3 rows, from run 7.csv',
        'Well | A260 (AU) | Remark',
        '-----|-----------|-------',
        'A1   |      1.50 |',
        'A2   |    < 0.10 | low',
        'A1   |      10.0 | high',
      ].join('\n'),
    ]);
  });

  test('carry all tables, each under its name', () => {
    const two = record({}, table('wells', ['w'], [[v('A1')]]), table('curve', ['r (%)'], [[v(0.99)]]));
    expect(commentsOf({ record: two })).toEqual([
      'wells: 1 row, from run 7.csv\nw\n--\nA1\n\ncurve: 1 row, from run 7.csv\nr (%)\n-----\n 0.99',
    ]);
  });

  test('are split between rows, the heading repeated, each part saying which rows it has', () => {
    const many = record({}, table('readings', ['t (s)', 'name'], rows(250)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 5 } });
    expect(comments.length).toBe(3);
    expect(comments.every((comment) => comment.includes('\nt (s) | name'))).toBe(true);
    expect(comments.map((comment) => comment.split('\n')[0])).toEqual([
      expect.stringMatching(/^readings: rows 1–(\d+) of 250, from run 7\.csv$/),
      expect.stringMatching(/^readings: rows (\d+)–(\d+) of 250, from run 7\.csv$/),
      expect.stringMatching(/^readings: rows (\d+)–250 of 250, from run 7\.csv$/),
    ]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });

  test('fill each part: a row is moved to the next only when it does not fit', () => {
    const many = record({}, table('readings', ['t', 'name'], rows(300)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 50 } });
    for (const bytes of sentBytes(comments).slice(0, -1)) expect(bytes).toBeGreaterThan(2048 - 60);
  });

  test('that are too many become one summary that names the raw file', () => {
    const many = record({}, table('readings', ['t (s)', 'name'], rows(2001)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 5 } });
    expect(comments).toEqual([
      [
        `Summary of run 7.csv, 1,234 bytes, modified 2026-03-04 12:30:15 ${offset}`,
        `sha256:${SHA}`,
        '',
        'readings: 2,001 rows, 2 columns; all rows are in the raw file',
        'column | unit |     n | min | median |    max',
        '-------|------|-------|-----|--------|-------',
        't      | s    | 2,001 | 0.0 |  500.0 | 1000.0',
        'name   |      | 2,001 |     |        |',
      ].join('\n'),
    ]);
  });

  test('in a million rows are not laid out before it is known that they are too many', () => {
    const row = [v(1), v('x')];
    const many = record({}, table('readings', ['t', 'name'], new Array(1_000_000).fill(row)));
    expect(commentsOf({ record: many })[0]).toContain('1,000,000 rows');
  });

  test('with a row that is longer than a comment show that it was cut', () => {
    const long = record(
      {},
      table(
        'readings',
        ['a', 'b'],
        [
          [v(1), v('µ'.repeat(5000))],
          [v(2), v('short')],
        ],
      ),
    );
    const comments = commentsOf({ record: long, comments: { maxBytes: 2048 } });
    expect(comments.length).toBe(2);
    expect(comments[0]).toMatch(/^1 \| µ+…$/m);
    expect(comments[1]).toContain('2 | short');
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });

  test('with more columns than fit in a line still leave room for the rows', () => {
    const names = Array.from({ length: 500 }, (_, i) => `column number ${i}`);
    const wide = record({}, table('x'.repeat(5000), names, [names.map((name) => v(name))]));
    const comments = commentsOf({
      record: wide,
      file: { name: `${'n'.repeat(250)}.csv` },
      comments: { maxBytes: 1024 },
    });
    expect(comments.length).toBe(1);
    expect(comments[0]).toContain('\ncolumn number 0');
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });

  test('keep to one line a row, whatever the cells hold', () => {
    const odd = record({}, table('a\nb', ['c\nd'], [[v('e\nf\u0000g')], [v('')]]));
    expect(commentsOf({ record: odd, file: { name: 'h\ni.csv' } })).toEqual([
      'a b: 2 rows, from h i.csv\nc d\n-----\ne f g\n|',
    ]);
  });
});

describe('readings each', () => {
  test('are a comment a row', () => {
    expect(commentsOf({ comments: { readings: 'each' } })).toEqual([
      'readings: row 1 of 3, from run 7.csv\nWell: A1\nA260: 1.50 AU\nRemark: ',
      'readings: row 2 of 3, from run 7.csv\nWell: A2\nA260: < 0.10 AU\nRemark: low',
      'readings: row 3 of 3, from run 7.csv\nWell: A1\nA260: 10.0 AU\nRemark: high',
    ]);
  });

  test('that are too many become one summary', () => {
    const comments = commentsOf({ comments: { readings: 'each', maxComments: 2 } });
    expect(comments).toEqual([expect.stringContaining('Summary of run 7.csv')]);
  });

  test('are cut where one is too long', () => {
    const long = record({}, table('readings', ['a'], [[v('x'.repeat(5000))]]));
    const comments = commentsOf({ record: long, comments: { readings: 'each', maxBytes: 1024 } });
    expect(comments).toEqual([expect.stringMatching(/x…$/)]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });
});

describe('a file without readings', () => {
  const facts = record({ Sample: v('A\nB'), Mass: v(2.1, '2.100', 'mg'), Volume: v(1, '1 mL', 'mL') });

  test.each(['table', 'each', 'summary'] as const)('has its facts as the comment (%s)', (readings) => {
    expect(commentsOf({ record: facts, comments: { readings } })).toEqual([
      'facts, from run 7.csv\nSample: A B\nMass: 2.100 mg\nVolume: 1 mL',
    ]);
  });

  test('and with an empty table as well', () => {
    const empty = { ...facts, tables: [table('readings', ['a'], [])] };
    expect(commentsOf({ record: empty })).toEqual([expect.stringContaining('facts, from')]);
  });

  test('nor facts has no comment, rather than an empty one', () => {
    expect(commentsOf({ record: record({}) })).toEqual([]);
  });

  test('whose facts are too many has them counted', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`fact ${i}`, v('x'.repeat(50))]));
    const comments = commentsOf({ record: record(many), comments: { maxBytes: 2048 } });
    expect(comments).toEqual([expect.stringContaining('1,000 facts; all are in the raw file\nfact 0: xxx')]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });
});

describe('a template for comments', () => {
  test('takes the place of the readings, as plain text', () => {
    const text = '{{ meta.Sample }}\n{{ readings | table: 2 }}';
    expect(commentsOf({ comments: { text, readings: 'none' } })).toEqual([
      [
        'Plasmid <A>',
        'Well | A260 (AU) | Remark',
        '-----|-----------|-------',
        'A1   |      1.50 |',
        'A2   |    < 0.10 | low',
        '',
        'First 2 of 3 rows; all are in the file. Summary of all rows:',
        'column | unit | n |  min | median |  max',
        '-------|------|---|------|--------|-----',
        'A260   | AU   | 2 | 1.50 |   5.75 | 10.0',
      ].join('\n'),
    ]);
    expect(commentsOf({ comments: { text: '{{ meta | table }}' } })[0]).toContain(
      'Volume: 2.100 µL\nDilution: 4.0',
    );
  });

  test('that comes out empty makes no comment', () => {
    expect(commentsOf({ comments: { text: ' \n{{ meta.Absent }}\n' } })).toEqual([]);
  });

  test('is split between lines, and within one only where it must be', () => {
    const text = `${'a'.repeat(700)}\n${'b'.repeat(700)}\n${'µ'.repeat(700)}`;
    const comments = commentsOf({ comments: { text, maxBytes: 1024 } });
    expect(comments.slice(0, 2)).toEqual(['a'.repeat(700), 'b'.repeat(700)]);
    expect(comments.slice(2).join('')).toBe('µ'.repeat(700));
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });

  test('that is far too long is replaced by the summary', () => {
    const text = '{% for i in (1..10000) %}line {{ i }}\n{% endfor %}';
    expect(commentsOf({ comments: { text, maxBytes: 1024 } })).toEqual([
      expect.stringContaining('Summary of'),
    ]);
  });
});

describe('no comments', () => {
  test('are made where none are asked for', () => {
    expect(commentsOf({ comments: { readings: 'none' } })).toEqual([]);
  });
});
