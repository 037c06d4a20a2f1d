import { describe, expect, test } from 'vitest';
import { describeUnread, findUnused } from '../../src/map/omissions.js';
import { type Given, map, nanodrop, record, table, v } from '../support/map-samples.js';

const omits = (given: Given = {}): readonly string[] => map(given).omits;

const long = (count: number) =>
  record(
    {},
    table(
      'readings',
      ['t'],
      Array.from({ length: count }, (_, n) => [v(n, String(n))]),
    ),
  );

test('a draft with all facts in its body and all rows in its comments omits nothing', () => {
  expect(omits()).toEqual([]);
  expect(omits({ record: long(5000) })).toEqual([]);
  expect(omits({ record: record({ a: v('x') }) })).toEqual([]);
});

test('rows that are only summarised are omitted', () => {
  expect(omits({ record: long(60_000) })).toEqual(['not filed in full: readings, 60,000 rows']);
  expect(omits({ record: long(300), comments: { readings: 'summary' } })).toEqual([
    'not filed in full: readings, 300 rows',
  ]);
  expect(omits({ record: long(300), comments: { readings: 'none' } })).toHaveLength(1);
  expect(omits({ record: long(31), comments: { readings: 'none' } })).toHaveLength(1);
  expect(omits({ record: long(30), comments: { readings: 'none' } })).toEqual([]);
  expect(omits({ record: long(300), comments: { readings: 'auto' } })).toEqual([]);
  const partial = { ...long(3), tables: long(3).tables.map((each) => ({ ...each, count: 4 })) };
  expect(omits({ record: partial })).toEqual(['not filed in full: readings, 4 rows']);
});

test('a cell or heading that is cut is omitted', () => {
  const cut = (heading: string, cell: string) =>
    omits({ record: record({}, table('readings', [heading, 'b'], [[v(cell), v('y')]])) });
  expect(cut('a', 'x'.repeat(9_000))).toEqual([]);
  expect(cut('a', 'x'.repeat(70_000))).toHaveLength(1);
  expect(cut('h'.repeat(20_000), 'x')).toHaveLength(1);
  expect(omits({ record: record({ a: v('x'.repeat(20_000)) }, table('readings', ['t'], [[v('1')]])) })).toEqual([
    'not filed: 1 fact, a',
  ]);
});

describe('with a template', () => {
  const body = (template: string, given: Given = {}) => omits({ ...given, experiment: { body: template } });
  const facts = record({ Gain: v(5, '5'), Mode: v('x < y') }, table('readings', ['t'], [[v(5, '5')]]));

  test('facts count if they are printed as written, or with all others', () => {
    expect(body('{{ meta | table }}')).toEqual([]);
    expect(body('<p>{{ meta.Gain }} {{ meta.Mode }}</p>', { record: facts })).toEqual([]);
    expect(body('<p>{{ meta.Mode }} {{ readings | table }}</p>', { record: facts })).toEqual([
      'not filed: 1 fact, Gain',
    ]);
    expect(body('{% if meta.Gain == 5 %}{{ meta.Mode }}{% endif %} 5', { record: facts })).toHaveLength(1);
    expect(body('{% assign all = meta | table %}', { record: facts })).toEqual(['not filed: 2 facts, Gain, Mode']);
    expect(omits({ record: facts, experiment: { body: '-', title: '{{ meta.Gain }} {{ meta.Mode }}' } })).toHaveLength(
      1,
    );
  });

  test('a fact under two names counts if it is printed under one', () => {
    const gain = v(5, '5');
    expect(body('{{ meta.gain }}', { record: record({ Gain: gain, gain }) })).toEqual([]);
    expect(
      body('{{ meta.gain }}', { record: record({ Gain: v(5, '5'), gain }), comments: { readings: 'none' } }),
    ).toEqual(['not filed: 1 fact, Gain']);
  });

  test('a table counts if it is shown in full', () => {
    const none = { readings: 'none' } as const;
    expect(body('{{ meta | table }}{{ readings | table }}', { comments: none })).toEqual([]);
    expect(body('{{ meta | table }}{{ readings | table: 2 }}', { comments: none })).toHaveLength(1);
    expect(body('{{ meta | table }}{{ readings | where: "Well", "A1" | table }}', { comments: none })).toHaveLength(1);
    const text = '{{ meta | table }}{{ readings | table }}';
    expect(omits({ experiment: { body: '-' }, comments: { text } })).toEqual([]);
    expect(
      omits({ experiment: { body: '-' }, comments: { text, maxBytes: 1024, maxComments: 1 }, record: long(500) }),
    ).toHaveLength(1);
  });
});

test('what was not read is named in the body, and what the mapping leaves out is only omitted', () => {
  const given = {
    record: {
      ...nanodrop,
      unread: [
        { kind: 'unread', from: 4, to: 5 },
        { kind: 'unread', from: 9, to: 9 },
        { kind: 'unread', sheet: '<b>' },
        { kind: 'left out', from: 7, to: 7 },
        { kind: 'partly read', from: 1, to: 1 },
      ],
    },
  } as const;
  expect(omits(given)).toEqual([
    'not read: lines 4–5, 9; sheet "<b>"',
    'read only in part: line 1',
    'left out by the mapping: line 7',
  ]);
  const { body } = map(given).draft;
  expect(body).toContain('<p>Not read: lines 4–5, 9; sheet &quot;&lt;b&gt;&quot;.</p>\n<p>Source:');
  expect(body).not.toContain('line 7');
  expect(map({ ...given, experiment: { body: 'x' } }).draft.body).toContain('<p>Not read: lines 4–5');
});

test('long lists are shortened', () => {
  const lines = Array.from({ length: 30 }, (_, n) => ({ kind: 'unread' as const, from: 2 * n + 1, to: 2 * n + 1 }));
  expect(describeUnread(lines)).toBe('lines 1, 3, 5, 7, 9, 11, 13, 15, 17, 19 and 20 more ranges');
  expect(describeUnread([{ kind: 'left out' }])).toBe('the content of the file');
  expect(describeUnread([{ kind: 'left out', file: 'a.png' }])).toBe('a.png');
  expect(describeUnread([{ kind: 'left out', table: 't', columns: ['a', 'b'] }])).toBe('columns a, b of t');
  expect(describeUnread([{ kind: 'unread', file: 'a.csv', from: 1, to: 2 }])).toBe('lines 1–2 of a.csv');
  expect(describeUnread([{ kind: 'unread', what: '2 pictures' }])).toBe('2 pictures');
  expect(describeUnread([{ kind: 'unread', sheet: 'S', what: '1 cell note' }])).toBe('1 cell note of sheet "S"');
});

test.each([
  ['two lines of numbers', 2, 4, false],
  ['three lines of numbers beside few readings', 3, 4, true],
  ['three lines of numbers beside many readings', 3, 40, false],
])('%s that were not used: %d of %d are too many: %s', (_, readings, tableLines, expected) => {
  const unread = [{ kind: 'unread' as const, from: 9, to: 8 + readings, readings }];
  expect(findUnused({ ...record({}), unread, tableLines }) !== undefined).toBe(expected);
});
