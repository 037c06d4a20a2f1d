import { describe, expect, test } from 'vitest';
import { commentsOf, cut, fillIn, fillInBody, type Given, map, record, table, v } from './samples.js';

/** As many rows: 0.0, 0.5, 1.0 and so on. */
const many = (n: number) =>
  table(
    'readings',
    ['t (s)', 'note'],
    Array.from({ length: n }, (_, i) => [v(i / 2, (i / 2).toFixed(1)), v('x')]),
  );

const shown = (body: string, given: Given) => ({
  html: fillInBody(body, given),
  rows: fillInBody(body, given).match(/<td>x<\/td>/g)?.length ?? 0,
});

describe('the filter table', () => {
  test('shows readings, a table or facts', () => {
    expect(fillInBody('{{ readings | table }}')).toContain('<tr><td>A1</td><td>1.50</td><td></td></tr>');
    expect(fillInBody('{{ tables.readings | table }}')).toBe(fillInBody('{{ readings | table }}'));
    expect(fillInBody('{{ meta | table }}')).toContain('<tr><th>Sample</th><td>Plasmid &lt;A&gt;</td></tr>');
    expect(fillInBody('{{ readings[0] | table }}')).toContain('<td>1.50</td>');
  });

  test('shows the rows that were picked', () => {
    const html = fillInBody('{{ readings | where: "Well", "A1" | sort: "A260" | reverse | table }}');
    expect(html.match(/<td>[\d.]+<\/td>/g)).toEqual(['<td>10.0</td>', '<td>1.50</td>']);
    expect(fillInBody('[{{ readings | where: "Well", "Z9" | table }}]')).toBe('[]');
  });

  test('can be kept in a variable', () => {
    expect(fillInBody('{% assign t = readings | table %}{{ t }}')).toContain('<table>');
    expect(fillInBody('{% liquid\n echo readings | table\n%}')).toContain('<table>');
  });

  test('refuses rows of two tables', () => {
    const two = record({}, table('a', ['x'], [[v(1)]]), table('b', ['y'], [[v(2)]]));
    expect(() => fillInBody('{{ tables.a | concat: tables.b | table }}', { record: two })).toThrow(
      'one table',
    );
  });

  test('keeps the line breaks of a cell', () => {
    const lines = record({}, table('t', ['a\nb'], [[v('c\r\nd<')]]));
    expect(fillInBody('{{ readings | table }}', { record: lines })).toContain('<th>a<br>b</th>');
    expect(fillInBody('{{ readings | table }}', { record: lines })).toContain('<td>c<br>d&lt;</td>');
  });
});

describe('the filter table, where rows are left out,', () => {
  test('ends with how many there are, where they are, and what they come to', () => {
    const { html, rows } = shown('{{ readings | table }}', { record: record({}, many(1434)) });
    expect(rows).toBe(200);
    expect(html).toMatch(
      new RegExp(
        [
          '<tr><td>99\\.5</td><td>x</td></tr>',
          '</table>',
          '<p>First 200 of 1,434 rows; all are in the comments\\. Summary of all rows:</p>',
          '<table>',
          '<tr><th>column</th><th>unit</th><th>n</th><th>min</th><th>median</th><th>max</th></tr>',
          '<tr><td>t</td><td>s</td><td>1,434</td><td>0\\.0</td><td>358\\.25</td><td>716\\.5</td></tr>',
          '</table>$',
        ].join('\n'),
      ),
    );
  });

  test('points at the file where the comments do not have them', () => {
    const { html } = shown('{{ readings | table }}', {
      record: record({}, many(201)),
      comments: { readings: 'none' },
    });
    expect(html).toContain('<p>First 200 of 201 rows; all are in the file. Summary');
    expect(map({ record: record({}, many(100_000)) }).draft.body).toContain(
      '<p>First 200 of 100,000 rows; all are in the file. Summary',
    );
  });

  test('and only there', () => {
    expect(shown('{{ readings | table }}', { record: record({}, many(200)) }).html).not.toContain('<p>');
  });

  test('shows as many rows as it is told', () => {
    const rows = (filter: string) =>
      shown(`{{ readings | ${filter} }}`, { record: record({}, many(300)) }).rows;
    expect(rows('table: 50')).toBe(50);
    expect(rows('table: 1000')).toBe(300);
    expect(rows('table: -5')).toBe(0);
  });

  test('is nothing but the summary where it is told to show no rows', () => {
    const { html } = shown('{{ readings | table: 0 }}', { record: record({}, many(300)) });
    expect(html).toMatch(/^<p>300 rows; all are in the comments\. Summary of all rows:<\/p>\n<table>/);
    expect(html.match(/<table>/g)?.length).toBe(1);
  });

  test('sums up the rows that were picked, and no others', () => {
    const all = record({}, many(300));
    const { html } = shown('{{ readings | where_exp: "r", "r.t < 10" | table: 5 }}', { record: all });
    expect(html).toContain('<p>First 5 of 20 rows;');
    expect(html).toContain('<td>20</td><td>0.0</td><td>4.75</td><td>9.5</td>');
  });

  test('has no summary where no column has numbers', () => {
    const texts = table('readings', ['a'], [[v('x')], [v('y')]]);
    expect(fillInBody('{{ readings | table: 1 }}', { record: record({}, texts) })).toMatch(
      /<p>First 1 of 2 rows; all are in the comments\.<\/p>$/,
    );
  });

  test('sums up a hundred columns at most, and says so', () => {
    const names = Array.from({ length: 250 }, (_, i) => `c${i}`);
    const wide = record({}, table('readings', names, [names.map(() => v(1)), names.map(() => v(2))]));
    const html = fillInBody('{{ readings | table: 0 }}', { record: wide });
    expect(html).toContain('Summary of all rows, for the first 100 of 250 numeric columns:');
    expect(html.match(/<td>1\.5<\/td>/g)?.length).toBe(100);
  });

  test('does the same in plain text', () => {
    const text = '{{ readings | table: 2 }}';
    expect(commentsOf({ record: record({}, many(1434)), comments: { text } })).toEqual([
      [
        't (s) | note',
        '------|-----',
        '  0.0 | x',
        '  0.5 | x',
        '',
        'First 2 of 1,434 rows; all are in the file. Summary of all rows:',
        'column | unit |     n | min | median |   max',
        '-------|------|-------|-----|--------|------',
        't      | s    | 1,434 | 0.0 | 358.25 | 716.5',
      ].join('\n'),
    ]);
    expect(fillIn('{{ readings | table: 0 }}', { record: record({}, many(3)) })).toMatch(/^3 rows; all/);
  });
});

describe('the filter table, where the file has more rows than are kept,', () => {
  const summary = {
    n: 4_999_990,
    min: v(-1, '-1.00'),
    median: 2.345678901,
    isMedianExact: false,
    max: v(9, '9.0'),
  };
  const huge = record({}, cut(many(300), 5_000_000, { t: summary }));

  test('sums up all that the file has', () => {
    const { html, rows } = shown('{{ readings | table }}', { record: huge });
    expect(rows).toBe(200);
    expect(html).toContain('<p>First 200 of 5,000,000 rows; all are in the file. Summary of all rows:</p>');
    expect(html).toContain(
      '<tr><td>t</td><td>s</td><td>4,999,990</td><td>-1.00</td><td>≈ 2.34568</td><td>9.0</td></tr>',
    );
    expect(html).not.toContain('<td>note</td>');
  });

  test('never shows more rows than are kept, whatever it is told, and says so', () => {
    const { html, rows } = shown('{{ readings | table: 100000 }}', { record: huge });
    expect(rows).toBe(300);
    expect(html).toContain('<p>First 300 of 5,000,000 rows;');
  });

  test('says so of a table that has all its rows on the page but not in memory', () => {
    const odd = record({}, cut(many(10), 11, { t: summary }));
    expect(shown('{{ readings | table }}', { record: odd }).html).toContain('First 10 of 11 rows');
  });

  test('counts by itself in what was picked from the rows that are kept', () => {
    const { html } = shown('{{ readings | slice: 0, 20 | table: 5 }}', { record: huge });
    expect(html).toContain('<p>First 5 of 20 rows;');
    expect(html).toContain('<td>20</td><td>0.0</td><td>4.75</td><td>9.5</td>');
  });

  test('is the same in the body of its own making, each table under its name', () => {
    const two = record({}, cut(many(300), 5_000_000, { t: summary }), { ...many(2), name: 'peaks' });
    const { body } = map({ record: two }).draft;
    expect(body.match(/<h3>.*?<\/h3>|First .*? rows|<td>≈.*?<\/td>/g)).toEqual([
      '<h3>readings</h3>',
      'First 200 of 5,000,000 rows',
      '<td>≈ 2.34568</td>',
      '<h3>peaks</h3>',
    ]);
  });
});
