import { describe, expect, test } from 'vitest';
import { FileError } from '../../src/errors.js';
import { cut, file, fillIn, fillInBody, record, table, v } from './samples.js';

const kept = table(
  'readings',
  ['n', 'kind'],
  Array.from({ length: 50 }, (_, i) => [v(i + 1), v(i === 20 ? 'odd' : 'even')]),
);
const huge = record({}, cut(kept, 2_000_000), cut({ ...kept, name: 'raw data' }, 51));
const given = { record: huge };

function refusalOf(act: () => unknown): FileError {
  try {
    act();
  } catch (error) {
    if (error instanceof FileError) return error;
    throw error;
  }
  throw new Error('nothing was refused');
}

describe('of a file with more rows than are kept, a template', () => {
  test.each([
    ['{{ readings.size }}', '2000000'],
    ['{{ readings | size }}', '2000000'],
    ['{{ tables.readings.size }} {{ tables["raw data"].size }}', '2000000 51'],
    ['{% if readings == empty %}none{% else %}some{% endif %}', 'some'],
    ['{{ readings | default: "none" | size }}', '2000000'],
  ])('knows how many the file has: %s', (template, filled) => {
    expect(fillIn(template, given)).toBe(filled);
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
  ])('sees the first: %s', (template, filled) => {
    expect(fillIn(template, given)).toBe(filled);
  });

  test('sees each row as one and the same, however it is asked for', () => {
    expect(fillIn('{% if readings[3] == readings[3] %}same{% endif %}', given)).toBe('same');
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
      .concat(
        'group_by: "kind"',
        'group_by_exp: "r", "r.kind"',
        'find: "kind", "neither"',
        'find_index: "kind", "x"',
      )
      .map((filter): [string, number] => [`{{ readings | ${filter} }}`, 51]),
  ])('is refused a row that is not kept: %s', (template, row) => {
    const { message } = refusalOf(() => fillInBody(template, given));
    expect(message).toBe(
      `the body needs row ${row.toLocaleString('en-US')} of readings: the file has 2,000,000 rows, of which templates see the first 50`,
    );
  });

  test('is told what it can use instead, and which file it is', () => {
    const { hint, where } = refusalOf(() => fillIn('{{ readings.last.n }}', given));
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

  test('is told which table it is', () => {
    const { message, hint } = refusalOf(() => fillIn('{{ tables["raw data"] | map: "n" }}', given));
    expect(message).toBe(
      'the title needs row 51 of tables["raw data"]: the file has 51 rows, of which templates see the first 50',
    );
    expect(hint).toContain('{{ tables["raw data"] | table }}');
  });

  test('is told so too where it comes to a limit before that', () => {
    const endless = record({}, cut(kept, 30_000_000));
    const { message, hint } = refusalOf(() => fillIn('{{ readings | map: "n" }}', { record: endless }));
    expect(message).toContain('limit');
    expect(hint).toContain('{{ readings | table }}');
  });

  test('finds a row that not even the file has as absent as ever', () => {
    const { message } = refusalOf(() => fillIn('{{ readings[2000000].n }}', given));
    expect(message).toBe('the title needs readings[2000000], which this file does not have');
    expect(fillInBody('[{{ readings[2000000].n }}]', given)).toBe('[]');
  });
});
