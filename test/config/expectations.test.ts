import { expect, test } from 'vitest';
import { expectSchema } from '../../src/config/expectations.js';
import { jsonSchema } from '../../src/config/problems.js';

const read = (written: Record<string, unknown>) => expectSchema.parse(written);

/** The messages, by key. */
const mistakes = (written: Record<string, unknown>): Record<string, string> =>
  Object.fromEntries(
    (expectSchema.safeParse(written).error?.issues ?? []).map(({ path, message }) => [path[0], message]),
  );

test('keys are written as in templates, with brackets for any name', () => {
  const of = (key: string, wanted: unknown = 1) => read({ [key]: wanted })[0];
  expect(of('readings')).toMatchObject({ of: 'rows', table: undefined, wanted: 1 });
  expect(of('readings[0].A260')).toMatchObject({ of: 'cell', table: undefined, row: 0, column: 'A260' });
  expect(of('readings[-1].260/280 ratio')).toMatchObject({ of: 'cell', row: -1, column: '260/280 ratio' });
  expect(of('readings[2]["a.b [x]"]')).toMatchObject({ of: 'cell', row: 2, column: 'a.b [x]' });
  expect(of(`readings[2]['say "x"']`)).toMatchObject({ of: 'cell', column: 'say "x"' });
  expect(of('meta.Sample ID')).toMatchObject({ of: 'fact', name: 'Sample ID' });
  expect(of('meta["unit"]')).toMatchObject({ of: 'fact', name: 'unit' });
  expect(of('meta.Weight.unit', 'mg')).toMatchObject({ of: 'factUnit', name: 'Weight', wanted: 'mg' });
  expect(of('columns', ['A', 'B'])).toMatchObject({ of: 'columns', table: undefined, wanted: ['A', 'B'] });
  expect(of('columns["a.b"].unit', null)).toMatchObject({ of: 'columnUnit', column: 'a.b', wanted: null });
  expect(of('tables.plate 1')).toMatchObject({ of: 'rows', table: 'plate 1' });
  expect(of('tables["x.y"][0].Well', 'A1')).toMatchObject({ of: 'cell', table: 'x.y', row: 0 });
  expect(of('tables.plate.columns', ['A'])).toMatchObject({ of: 'columns', table: 'plate' });
  expect(of('tables.plate.columns.A.unit', 'AU')).toMatchObject({ of: 'columnUnit', table: 'plate' });
});

test('a single tag is a list of one, and a title may be a number', () => {
  expect(read({ tags: 'dna', title: 17, comments: 'x' })).toMatchObject([
    { of: 'tags', wanted: ['dna'] },
    { of: 'title', wanted: '17' },
    { of: 'comments', wanted: ['x'] },
  ]);
});

test('unknown keys and impossible values are reported with what to write', () => {
  expect(
    mistakes({
      titel: 'x',
      'reading[0].A260': 1,
      nonsense: 1,
      'title.x': 1,
      'readings[0]': 1,
      'readings[0].a.b': 1,
      readings: 'many',
      'tables[0]': 1,
      'columns.A': 'mg',
      columns: 'A',
      'meta.a.b': 1,
      'meta.Operator': ['Ada'],
      tags: { a: 1 },
      body: '/(/',
    }),
  ).toEqual({
    titel: 'unknown key → did you mean title?',
    'reading[0].A260': 'unknown key → did you mean readings[0].A260?',
    nonsense: expect.stringMatching(/unknown key → use title, date, .*tables$/),
    'title.x': 'title has no parts → write title',
    'readings[0]': expect.stringContaining('readings[0].COLUMN'),
    'readings[0].a.b': expect.stringContaining('write ["NAME"]'),
    readings: 'expected a whole number',
    'tables[0]': 'expected the name of a table: tables.NAME',
    'columns.A': 'expected columns or columns.NAME.unit',
    columns: 'expected a list of text',
    'meta.a.b': expect.stringContaining('meta["NAME"]'),
    'meta.Operator': expect.stringContaining('expected a number, text'),
    tags: 'expected a list of text',
    body: expect.stringContaining('is not a valid regular expression'),
  });
});

test('quarantined cannot be combined with other expectations', () => {
  expect(mistakes({ quarantined: true, readings: 3 })).toEqual({
    quarantined: 'quarantined cannot be combined with other expectations',
  });
  expect(mistakes({ quarantined: false })).toEqual({
    quarantined: 'expected true, or text that the reason must contain',
  });
});

test('the JSON Schema describes the keys of an expectation, including those with names in them', () => {
  const schema = JSON.parse(JSON.stringify(jsonSchema()));
  const { properties, patternProperties, additionalProperties, description } =
    schema.properties.instruments.additionalProperties.properties.tests.items.properties.expect;
  expect(description).toContain('What the mapping must produce');
  expect(properties).toMatchObject({
    title: { description: expect.any(String) },
    quarantined: { description: expect.any(String) },
  });
  expect(additionalProperties).toBe(false);
  const explained = (key: string) =>
    Object.entries(patternProperties as Record<string, { description: string }>)
      .filter(([pattern]) => new RegExp(pattern).test(key))
      .map(([, { description: text }]) => text.split(':')[0]);
  expect(explained('readings[0].A260')).toEqual(['A value of a row']);
  expect(explained('tables.plate[-1]["Sample ID"]')).toEqual(['A value of a row']);
  expect(explained('tables.plate')).toEqual(['The number of rows.']);
  expect(explained('meta["Sample ID"]')).toEqual(['A fact of the file']);
  expect(explained('meta.Weight.unit')).toEqual(['The unit of a fact']);
  expect(explained('columns.A260.unit')).toEqual(['The unit of a column']);
  expect(explained('tables.plate.columns.A.unit')).toEqual(['The unit of a column']);
  expect(explained('readings.columns')).toEqual(['The names of the columns, in order.']);
});
