import { expect, test } from 'vitest';
import { expectSchema } from '../../src/config/expectations.js';
import { compare, type Made } from '../../src/mapping/tests.js';
import { nanodrop, record, table, v } from '../map/samples.js';

const plate = table('plate', ['Well'], [[v('H12')]]);
const MADE: Made = {
  record: { ...nanodrop, tables: [...nanodrop.tables, plate] },
  draft: {
    title: 'Plasmid <A> on nanodrop',
    date: '2026-03-04',
    body: '<p>Measured by R. Müller</p>\n<table><tr><td>1.50</td></tr></table>',
    tags: ['dna', 'R. Müller'],
    comments: ['Well A260\nA1 1.50', 'the rest'],
  },
  dateFrom: 'fact',
};

const differences = (expected: Record<string, unknown>, made: Made = MADE): Record<string, string> =>
  Object.fromEntries(
    compare(expectSchema.parse(expected), made).map(({ key, message, hint }) => [
      key,
      hint === undefined ? message : `${message}\n→ ${hint}`,
    ]),
  );

test('what is as expected is not mentioned', () => {
  expect(
    differences({
      title: 'Plasmid <A> on nanodrop',
      date: '2026-03-04',
      body: '<p>Measured by R. Müller</p>',
      tags: ['R. Müller', 'dna'],
      comments: ['A1 1.50', '/^the r.st$/'],
      readings: 3,
      'readings[0].A260': 1.5,
      'readings[0].Well': 'A1',
      'readings[-1].A260': '10.0',
      'readings[1].A260': null,
      'meta.Sample ID': '007',
      'meta.Volume': 2.1,
      'meta.Volume.unit': 'µL',
      'meta.Operator': '/^R\\./',
      'meta.Valid': false,
      columns: ['Well', 'A260', 'Remark'],
      'columns.A260.unit': 'AU',
      'columns.Well.unit': null,
      'tables.plate': 1,
      'tables.plate[0].Well': 'H12',
      'tables.plate.columns': ['Well'],
    }),
  ).toEqual({});
});

test('a value that is another one is shown beside the expected one, as it is written in the file too', () => {
  expect(
    differences({
      'readings[0].A260': 1.23,
      'readings[1].A260': 0.1,
      'meta.Sample ID': 7,
      'meta.Dilution': '5.0',
      'meta.Operator': 'R. Mueller',
      'meta.Volume.unit': 'mL',
      'columns.Well.unit': 'mm',
    }),
  ).toEqual({
    'readings[0].A260': 'not as expected\n    expected  1.23\n    came      1.5, written "1.50"',
    'readings[1].A260': 'not as expected\n    expected  0.1\n    came      no value, written "< 0.10"',
    'meta.Sample ID': 'not as expected\n    expected  7\n    came      "007"',
    'meta.Dilution': 'not as expected\n    expected  "5.0"\n    came      4, written "4.0"',
    'meta.Operator': 'not as expected\n    expected  "R. Mueller"\n    came      "R. Müller"',
    'meta.Volume.unit': 'not as expected\n    expected  "mL"\n    came      "µL"',
    'columns.Well.unit': 'not as expected\n    expected  "mm"\n    came      no unit',
  });
});

test('a number that the file has as a text is told as that', () => {
  const made = { ...MADE, record: record({ 'Sample ID': v('42') }) };
  expect(differences({ 'meta.Sample ID': 42 }, made)['meta.Sample ID']).toContain('in quotes, "42"');
});

test('a name that the file lacks is told with the nearest one that it has, or with all', () => {
  expect(
    differences({
      'readings[0].A26O': 1,
      'meta.Oprator': 'x',
      'meta.Zeit': 'x',
      'tables.plates': 1,
      'columns.Wel.unit': 'x',
    }),
  ).toEqual({
    'readings[0].A26O': 'the file has no column "A26O"\n→ did you mean "A260"?',
    'meta.Oprator': 'the file has no fact "Oprator"\n→ did you mean "Operator"?',
    'meta.Zeit': expect.stringMatching(/^the file has no fact "Zeit"\n→ it has "Sample", "Sample ID", /),
    'tables.plates': 'the file has no table "plates"\n→ did you mean "plate"?',
    'columns.Wel.unit': 'the file has no column "Wel"\n→ did you mean "Well"?',
  });
});

test('rows that are not there, or not kept, cannot be compared', () => {
  const long = { ...table('readings', ['Well'], [[v('A1')], [v('A2')]]), count: 5000 };
  const made = { ...MADE, record: record({}, long) };
  expect(differences({ 'readings[3].Well': 'A' })).toEqual({
    'readings[3].Well':
      'there is no such row: the table has 3\n→ they are [0] to [2]; the last one is also [-1]',
  });
  expect(differences({ readings: 5000, 'readings[1].Well': 'A2', 'readings[-1].Well': 'Z' }, made)).toEqual({
    'readings[-1].Well': 'of the 5000 rows only the first 2 are kept',
  });
});

test('a file without a table has no readings', () => {
  const made = { ...MADE, record: record({ a: v(1) }) };
  expect(differences({ readings: 0 }, made)).toEqual({});
  expect(differences({ readings: 2, 'readings[0].A': 1 }, made)).toEqual({
    readings: 'not as expected\n    expected  2 rows\n    came      0 rows',
    'readings[0].A': 'the file has no table',
  });
});

test('lists show what is missing and what is too much', () => {
  expect(differences({ tags: ['dna', 'Ada'], columns: ['Well', 'A280', 'Remark'] })).toEqual({
    tags: 'not as expected\n    expected  "dna", "Ada"\n    came      "dna", "R. Müller"\n    missing   "Ada"\n    extra     "R. Müller"',
    columns:
      'not as expected\n    expected  "Well", "A280", "Remark"\n    came      "Well", "A260", "Remark"\n    missing   "A280"\n    extra     "A260"',
  });
  expect(differences({ columns: ['A260', 'Well', 'Remark'] })['columns']).toContain('another order');
});

test('comments are counted, or each is looked into', () => {
  expect(differences({ comments: 3 })['comments']).toMatch(/expected {2}3 comments\n {4}came {6}2 comments/);
  expect(differences({ comments: ['A1 1.50'] })['comments']).toContain('expected  1 comment');
  expect(differences({ comments: ['A1 1.50', 'the best'] })['comments']).toBe(
    'comment 2 is not as expected\n    expected  "the best"\n    came      "the rest"',
  );
});

test('of a body, the place is shown where it goes another way', () => {
  const body = `<p>${'x'.repeat(500)}</p><p>Measured by Ada at noon</p>${'y'.repeat(500)}`;
  const made = { ...MADE, draft: { ...MADE.draft, body } };
  const { body: told = '' } = differences({ body: 'Measured by Ada at midnight' }, made);
  expect(told).toMatch(/came {6}"….*Measured by Ada at noon<\/p>y+…"$/);
  expect(told.length).toBeLessThan(250);
});

test('a date that is only the day of the sample is told as that', () => {
  const made: Made = { ...MADE, dateFrom: 'modified' };
  expect(differences({ date: '2026-01-01' }, made)['date']).toContain(
    'the day on which the sample was modified',
  );
});

test('a file that should have been refused is told with what it was read as', () => {
  expect(differences({ quarantined: true })).toEqual({
    quarantined: 'expected to be refused, but it is read, as "Plasmid <A> on nanodrop"',
  });
});
