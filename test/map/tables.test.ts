import { describe, expect, test } from 'vitest';
import { lazyRows } from '../../src/map/tables.js';
import {
  commentsOf,
  file,
  fileErrorOf,
  type Given,
  map,
  partial,
  record,
  renderBody,
  renderTitle,
  table,
  v,
} from '../support/map-samples.js';

/** n rows: 0.0, 0.5, 1.0 and so on. */
const many = (n: number) =>
  table(
    'readings',
    ['t (s)', 'note'],
    Array.from({ length: n }, (_, i) => [v(i / 2, (i / 2).toFixed(1)), v('x')]),
  );

const shown = (body: string, given: Given) => ({
  html: renderBody(body, given),
  rows: renderBody(body, given).match(/<td>x<\/td>/g)?.length ?? 0,
});

describe('the filter table', () => {
  test('shows readings, a table or facts', () => {
    expect(renderBody('{{ readings | table }}')).toContain('<tr><td>A1</td><td>1.50</td><td></td></tr>');
    expect(renderBody('{{ tables.readings | table }}')).toBe(renderBody('{{ readings | table }}'));
    expect(renderBody('{{ meta | table }}')).toContain('<tr><th>Sample</th><td>Plasmid &lt;A&gt;</td></tr>');
    expect(renderBody('{{ readings[0] | table }}')).toContain('<td>1.50</td>');
  });

  test('shows the unit once if the column is named after it', () => {
    const absorbances = table('readings', ['t (s)'], [[v(1)]]);
    const given = { record: record({}, { ...absorbances, columns: [{ name: 'mAU', unit: 'mAU' }] }) };
    expect(renderBody('{{ readings | table }}', given)).toContain('<th>mAU</th>');
  });

  test('shows selected rows', () => {
    const html = renderBody('{{ readings | where: "Well", "A1" | sort: "A260" | reverse | table }}');
    expect(html.match(/<td>[\d.]+<\/td>/g)).toEqual(['<td>10.0</td>', '<td>1.50</td>']);
    expect(renderBody('[{{ readings | where: "Well", "Z9" | table }}]')).toBe('[]');
  });

  test('can be assigned to a variable', () => {
    expect(renderBody('{% assign t = readings | table %}{{ t }}')).toContain('<table>');
    expect(renderBody('{% liquid\n echo readings | table\n%}')).toContain('<table>');
  });

  test('rejects rows of two tables', () => {
    const two = record({}, table('a', ['x'], [[v(1)]]), table('b', ['y'], [[v(2)]]));
    expect(() => renderBody('{{ tables.a | concat: tables.b | table }}', { record: two })).toThrow('one table');
  });

  test('keeps the line breaks of a cell', () => {
    const lines = record({}, table('t', ['a\nb'], [[v('c\r\nd<')]]));
    expect(renderBody('{{ readings | table }}', { record: lines })).toContain('<th>a<br>b</th>');
    expect(renderBody('{{ readings | table }}', { record: lines })).toContain('<td>c<br>d&lt;</td>');
  });
});

describe('the filter table, if rows are left out,', () => {
  test('ends with their number, their location and a summary', () => {
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

  test('refers to the file if the comments do not have all rows', () => {
    const { html } = shown('{{ readings | table }}', {
      record: record({}, many(201)),
      comments: { readings: 'none' },
    });
    expect(html).toContain('<p>First 200 of 201 rows; all are in the file. Summary');
    expect(map({ record: record({}, many(100_000)) }).draft.body).toContain(
      '<p>100,000 rows; all are in the file.</p>',
    );
  });

  test('and only then', () => {
    expect(shown('{{ readings | table }}', { record: record({}, many(200)) }).html).not.toContain('<p>');
  });

  test('takes the number of rows to show', () => {
    const rows = (filter: string) => shown(`{{ readings | ${filter} }}`, { record: record({}, many(300)) }).rows;
    expect(rows('table: 50')).toBe(50);
    expect(rows('table: 1000')).toBe(300);
    expect(rows('table: -5')).toBe(0);
  });

  test('is only the summary if it shows no rows', () => {
    const { html } = shown('{{ readings | table: 0 }}', { record: record({}, many(300)) });
    expect(html).toMatch(/^<p>300 rows; all are in the comments\. Summary of all rows:<\/p>\n<table>/);
    expect(html.match(/<table>/g)?.length).toBe(1);
  });

  test('summarises only the selected rows', () => {
    const all = record({}, many(300));
    const { html } = shown('{{ readings | where_exp: "r", "r.t < 10" | table: 5 }}', { record: all });
    expect(html).toContain('<p>First 5 of 20 rows;');
    expect(html).toContain('<td>20</td><td>0.0</td><td>4.75</td><td>9.5</td>');
  });

  test('has no summary without numeric columns', () => {
    const texts = table('readings', ['a'], [[v('x')], [v('y')]]);
    expect(renderBody('{{ readings | table: 1 }}', { record: record({}, texts) })).toMatch(
      /<p>First 1 of 2 rows; all are in the comments\.<\/p>$/,
    );
  });

  test('summarises at most 100 columns, and says so', () => {
    const names = Array.from({ length: 250 }, (_, i) => `c${i}`);
    const wide = record({}, table('readings', names, [names.map(() => v(1)), names.map(() => v(2))]));
    const html = renderBody('{{ readings | table: 0 }}', { record: wide });
    expect(html).toContain('Summary of all rows, for the first 100 of 250 numeric columns:');
    expect(html.match(/<td>1\.5<\/td>/g)?.length).toBe(100);
  });

  test('works the same in plain text', () => {
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
    expect(renderTitle('{{ readings | table: 0 }}', { record: record({}, many(3)) })).toMatch(/^3 rows; all/);
  });
});

describe('the filter table, for a partial table,', () => {
  const summary = {
    n: 4_999_990,
    min: v(-1, '-1.00'),
    median: 2.345678901,
    isMedianExact: false,
    max: v(9, '9.0'),
  };
  const huge = record({}, partial(many(300), 5_000_000, { t: summary }));

  test('summarises all rows of the file', () => {
    const { html, rows } = shown('{{ readings | table }}', { record: huge });
    expect(rows).toBe(200);
    expect(html).toContain('<p>First 200 of 5,000,000 rows; all are in the file. Summary of all rows:</p>');
    expect(html).toContain(
      '<tr><td>t</td><td>s</td><td>4,999,990</td><td>-1.00</td><td>≈ 2.34568</td><td>9.0</td></tr>',
    );
    expect(html).not.toContain('<td>note</td>');
  });

  test('shows at most the rows that were kept, and says so', () => {
    const { html, rows } = shown('{{ readings | table: 100000 }}', { record: huge });
    expect(rows).toBe(300);
    expect(html).toContain('<p>First 300 of 5,000,000 rows;');
  });

  test('notes the missing rows even below its row limit', () => {
    const odd = record({}, partial(many(10), 11, { t: summary }));
    expect(shown('{{ readings | table }}', { record: odd }).html).toContain('First 10 of 11 rows');
  });

  test('calculates the summary of selected rows', () => {
    const { html } = shown('{{ readings | slice: 0, 20 | table: 5 }}', { record: huge });
    expect(html).toContain('<p>First 5 of 20 rows;');
    expect(html).toContain('<td>20</td><td>0.0</td><td>4.75</td><td>9.5</td>');
  });

  test('is summarised in a body without a template', () => {
    const two = record({}, partial(many(300), 5_000_000, { t: summary }), { ...many(2), name: 'peaks' });
    const { body } = map({ record: two }).draft;
    expect(body.match(/<h3>.*?<\/h3>|[\d,]+ rows|<td>≈.*?<\/td>/g)).toEqual([
      '<h3>readings</h3>',
      '5,000,000 rows',
      '<td>≈ 2.34568</td>',
      '<h3>peaks</h3>',
    ]);
  });
});

const kept = table(
  'readings',
  ['n', 'kind'],
  Array.from({ length: 50 }, (_, i) => [v(i + 1), v(i === 20 ? 'odd' : 'even')]),
);
const huge = record({}, partial(kept, 2_000_000), partial({ ...kept, name: 'raw data' }, 51));
const given = { record: huge };

describe('with a partial table, a template', () => {
  test.each([
    ['{{ readings.size }}', '2000000'],
    ['{{ readings | size }}', '2000000'],
    ['{{ tables.readings.size }} {{ tables["raw data"].size }}', '2000000 51'],
    ['{% if readings == empty %}none{% else %}some{% endif %}', 'some'],
    ['{{ readings | default: "none" | size }}', '2000000'],
  ])('sees the number of all rows: %s', (template, filled) => {
    expect(renderTitle(template, given)).toBe(filled);
  });

  test.each([
    ['{{ readings.first.n }} {{ readings[0].n }} {{ readings[49].n }}', '1 1 50'],
    ['{% assign r = readings | first %}{{ r.n }}', '1'],
    ['{{ readings | slice: 3, 2 | map: "n" | join: "," }}', '4,5'],
    ['{{ readings.columns[1].name }}', 'kind'],
    ['{% for r in readings limit: 10 %}{{ r.n }} {% endfor %}', '1 2 3 4 5 6 7 8 9 10'],
    ['{% for r in readings limit: 3 offset: 5 %}{{ r.n }} {% endfor %}', '6 7 8'],
    ['{% for r in readings limit: 3 reversed %}{{ r.n }} {% endfor %}', '3 2 1'],
    [
      '{% for r in readings limit: 2 %}{{ r.n }} {% endfor %}{% for r in readings limit: 2 offset: continue %}{{ r.n }} {% endfor %}',
      '1 2 3 4',
    ],
    ['{% for r in readings %}{{ r.n }} {% if r.n == 3 %}{% break %}{% endif %}{% endfor %}', '1 2 3'],
    ['{% for r in readings limit: 2 %}{{ forloop.last }} {% endfor %}', 'false true'],
    [
      '{% tablerow r in readings limit: 1 %}{{ r.n }}{% endtablerow %}',
      '<tr class="row1"><td class="col1">1</td></tr>',
    ],
    ['{{ readings | find: "kind", "odd" | map: "n" }}', '21'],
    ['{{ readings | has: "kind", "odd" }}', 'true'],
  ])('sees the first rows: %s', (template, filled) => {
    expect(renderTitle(template, given)).toBe(filled);
  });

  test('sees the same object for the same row', () => {
    expect(renderTitle('{% if readings[3] == readings[3] %}same{% endif %}', given)).toBe('same');
  });

  test.each([
    ['{% for r in readings %}{{ r.n }}{% endfor %}', 51],
    ['{% for r in readings reversed %}{{ r.n }}{% endfor %}', 51],
    ['{% for r in readings offset: 5 %}{% endfor %}', 51],
    ['{% for r in readings limit: 51 %}{% endfor %}', 51],
    ['{% for r in readings limit: 5 offset: 60 %}{% endfor %}', 61],
    ['{% tablerow r in readings %}{% endtablerow %}', 51],
    ['{{ readings.last.n }}', 2_000_000],
    ['{{ readings | last }}', 2_000_000],
    ['{{ readings[-1].n }}', 2_000_000],
    ['{{ readings[50].n }}', 51],
    ['{{ readings[1234567].n }}', 1_234_568],
    ['{{ readings | slice: -3, 3 }}', 1_999_998],
    ['{{ readings | slice: 45, 10 }}', 51],
    ['{{ readings }}', 51],
    ['{{ readings | json }}', 51],
    ['{{ readings | has: "kind", "neither" }}', 51],
    ['{{ readings | default: "x" }}', 51],
    ...[
      'map: "n"',
      'where: "kind", "odd"',
      'reject: "kind", "odd"',
      'where_exp: "r", "r.n > 3"',
      'sum: "n"',
      'sort: "n"',
    ]
      .concat(
        'sort_natural: "n"',
        'reverse',
        'uniq',
        'compact',
        'concat: columns',
        'push: 1',
        'unshift: 1',
        'pop',
        'shift',
      )
      .concat('group_by: "kind"', 'group_by_exp: "r", "r.kind"', 'find: "kind", "neither"', 'find_index: "kind", "x"')
      .map((filter): [string, number] => [`{{ readings | ${filter} }}`, 51]),
  ])('cannot read a row that was not kept: %s', (template, row) => {
    const { message } = fileErrorOf(() => renderBody(template, given));
    expect(message).toBe(
      `the body needs row ${row.toLocaleString('en-US')} of readings, but templates see only the first 50 of its 2,000,000 rows`,
    );
  });

  test('fails with the file and the alternatives', () => {
    const { hint, where } = fileErrorOf(() => renderTitle('{{ readings.last.n }}', given));
    expect(where).toEqual({ file: file.path });
    for (const way of [
      '{{ readings | table }}',
      'readings.size',
      'readings.first',
      'limit: 10',
      'comments.readings: summary',
    ])
      expect(hint).toContain(way);
  });

  test('fails with the name of the table', () => {
    const { message, hint } = fileErrorOf(() => renderTitle('{{ tables["raw data"] | map: "n" }}', given));
    expect(message).toBe(
      'the title needs row 51 of tables["raw data"], but templates see only the first 50 of its 51 rows',
    );
    expect(hint).toContain('{{ tables["raw data"] | table }}');
  });

  test('fails with the alternatives at a Liquid limit too', () => {
    const endless = record({}, partial(kept, 30_000_000));
    const { message, hint } = fileErrorOf(() => renderTitle('{{ readings | map: "n" }}', { record: endless }));
    expect(message).toContain('limit');
    expect(hint).toContain('{{ readings | table }}');
  });

  test('treats a row beyond the end of the file as missing', () => {
    const { message } = fileErrorOf(() => renderTitle('{{ readings[2000000].n }}', given));
    expect(message).toBe('the title needs readings[2000000], which this file does not have');
    expect(renderBody('[{{ readings[2000000].n }}]', given)).toBe('[]');
  });
});

describe('lazy rows', () => {
  const make = () => [{ n: 1 }, { n: 2 }, { n: 3 }];

  test('are counted without being made', () => {
    const rows = lazyRows(3, () => {
      throw new Error('made');
    });
    expect([rows.length, Array.isArray(rows), 'size' in rows, Object.hasOwn(rows, 'size')]).toEqual([
      ...[3, true, false, false],
    ]);
  });

  test.each<[string, (rows: readonly { n: number }[]) => unknown]>([
    ['an index', (rows) => [rows[2], rows[3], rows.at(-1)]],
    ['own properties', (rows) => [Object.hasOwn(rows, '0'), Object.hasOwn(rows, '3'), Object.keys(rows)]],
    ['a loop', (rows) => [...rows]],
    ['methods', (rows) => [rows.slice(1), rows.filter(({ n }) => n > 1), rows.map(({ n }) => n)]],
    ['another array', (rows) => [{ n: 0 }].concat(rows)],
    ['JSON', (rows) => JSON.stringify(rows)],
    ['presence', (rows) => [0 in rows, 3 in rows, 'length' in rows]],
  ])('behave as an array: %s', (_, use) => {
    expect(use(lazyRows(3, make))).toEqual(use(make()));
  });
});
