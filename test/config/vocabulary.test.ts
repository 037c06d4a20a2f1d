import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { cellReference, regexSource } from '../../src/config/grammar.js';
import { parseSchema, readingSchema, withDefaults } from '../../src/config/vocabulary.js';

const problems = (mapping: unknown): string[] => {
  const result = readingSchema.safeParse(mapping);
  return result.success ? [] : result.error.issues.map(({ path, message }) => `${path.join('.')}: ${message}`);
};

describe('a mapping', () => {
  test('has defaults for every key', () => {
    expect(withDefaults({})).toEqual({
      format: 'auto',
      encoding: 'auto',
      quote: '"',
      dates: {},
      missing: [],
      limits: { maxRows: 10_000_000, maxColumns: 10_000, maxNesting: 100 },
      meta: [],
      facts: {},
      tables: {},
    });
    expect(withDefaults({ table: {} }).tables).toEqual({
      readings: { until: ['blank'], header: ['first'], headerRows: 1, units: 'inHeader' },
    });
  });

  test('accepts one value in place of a list', () => {
    const { meta, missing, dates, tables } = withDefaults({
      meta: { separator: ':' },
      missing: 'N/A',
      dates: { format: 'dd/MM/yyyy' },
      table: { after: 7, fill: 'Plate', where: { Area: 'any' } },
    });
    expect([meta.length, missing, dates.format]).toEqual([1, ['N/A'], ['dd/MM/yyyy']]);
    expect(tables['readings']).toMatchObject({ after: [7], fill: ['Plate'], where: { Area: ['any'] } });
  });

  test('reads short forms of a location as the long form', () => {
    const { facts, tables } = withDefaults({
      facts: { a: 'Sample', b: ['Date', 'Time'], c: { from: '=C3', type: 'number' }, d: { type: 'date' } },
      table: { columns: { x: 1, y: { from: [2, 'B'], unit: 'mg' } } },
    });
    expect(facts).toEqual({
      a: { from: ['Sample'] },
      b: { from: ['Date', 'Time'] },
      c: { from: ['=C3'], type: 'number' },
      d: { type: 'date' },
    });
    expect(tables['readings']?.columns).toEqual({ x: { from: [1] }, y: { from: [2, 'B'], unit: 'mg' } });
  });

  test('accepts limits as amounts or plain numbers', () => {
    const limits = (written: object) => withDefaults({ limits: written }).limits;
    expect(limits({ bytes: '10MB', seconds: '2m' })).toMatchObject({
      maxBytes: 10 * 2 ** 20,
      maxMs: 120_000,
    });
    expect(limits({ bytes: 500, seconds: 5 })).toMatchObject({ maxBytes: 500, maxMs: 5000 });
  });
});

describe('a mistake is reported at its key', () => {
  test.each<[unknown, string]>([
    [{ dates: { format: 'dd' } }, 'a date needs a year, month and day'],
    [{ encoding: 'utf-9' }, 'encoding: unknown encoding → use auto, or a name such as'],
    [{ delimiter: '/(/' }, 'delimiter: /(/ is not a valid regular expression: Unterminated group'],
    [{ delimiter: '/x*/' }, 'delimiter: /x*/ also matches empty text'],
    [{ delimiter: { at: [31, 5] } }, 'expected'],
    [{ quote: '""' }, 'quote: expected one character'],
    [{ decimal: ';' }, 'decimal: '],
    [{ decimal: ',', thousands: ',' }, 'thousands: decimal and thousands cannot be the same'],
    [{ dates: { format: 'DD/MM/YYYY' } }, 'dates.format: years and days are lower case → write yyyy and dd'],
    [{ dates: { format: 'dd MMM HH:mm' } }, 'dates.format: a date needs a year'],
    [{ dates: { format: 'x' } }, 'dates.format: expected a pattern'],
    [{ dates: { zone: 'Mars/Olympus' } }, 'dates.zone: expected a time zone'],
    [{ dates: { locale: '!' } }, 'dates.locale: expected a language'],
    [{ meta: {} }, 'meta: expected exactly one of separator, match and cells'],
    [{ meta: { in: 'cells', match: '/(?<a>b)/' } }, 'meta: in: cells needs a separator'],
    [{ meta: { match: 'Date' } }, 'meta.match: expected a regular expression with a named group'],
    [{ meta: { match: '/(?<a>[/' } }, 'meta.match: /(?<a>[/ is not a valid regular expression'],
    [{ meta: { seperator: ':' } }, 'meta: Unrecognized key: "seperator"'],
    [{ facts: { a: '=foo' } }, 'facts.a: expected a name in the file, a cell such as =C3'],
    [{ facts: { a: 3 } }, 'facts.a: expected a name in the file'],
    [{ table: { after: 0 } }, 'table.after: lines are numbered from 1'],
    [{ table: { after: [] } }, 'table.after: expected a line'],
    [{ table: { until: ['x', '/[/'] } }, 'table.until.1: /[/ is not a valid regular expression'],
    [{ table: { grid: 3 } }, 'table.grid: expected true, or a list of labels'],
    [{ table: { columns: { a: { typ: 'number' } } } }, 'table.columns.a: Unrecognized key: "typ"'],
    [{ table: {}, tables: {} }, ': table and tables cannot be combined'],
    [{ limits: { bytes: 'lots' } }, 'limits.bytes: expected a size'],
  ])('%j', (mapping, message) => {
    expect(problems(mapping)[0]).toContain(message);
  });
});

test('an empty list of alternatives is refused', () => {
  expect(parseSchema.safeParse([]).success).toBe(false);
  expect(parseSchema.parse([{ when: 'v1' }, {}])).toHaveLength(2);
});

describe('regular expressions', () => {
  test.each(['(?=x)(a+)+$', '^(?!b)(a|aa)+$', '(?<x>(a)\\2*)+'])(
    '%s can take exponential time and is refused',
    (source) => {
      expect(problems({ table: { skip: `/${source}/` } })[0]).toContain('can take exponential time');
    },
  );

  test.each(['(a+)+$', '(?<!\\d)20\\d{6}(?!\\d)', '(?<day>\\S+) (?<time>\\S+)', '(a+)b\\1', '(?=x)[(a+)]+'])(
    '%s is safe and accepted',
    (source) => {
      expect(problems({ table: { skip: `/${source}/` } })).toEqual([]);
    },
  );
});

describe('for editors', () => {
  const schema = z.toJSONSchema(readingSchema, { io: 'input', unrepresentable: 'any' });

  test('the JSON Schema has all keys with descriptions', () => {
    const keys = Object.entries(schema.properties ?? {});
    expect(keys.map(([key]) => key)).toEqual(
      'when format encoding delimiter quote comment decimal thousands dates missing limits meta facts table tables main also'.split(
        ' ',
      ),
    );
    for (const [key, property] of keys) expect(property, key).toHaveProperty('description');
  });

  test('the JSON Schema has the keys of tables and finders', () => {
    const text = JSON.stringify(schema);
    for (const key of 'separator nextLine headerRows inHeader additionalProperties'.split(' '))
      expect(text).toContain(key);
  });
});

describe('short notations', () => {
  test('text that begins and ends with a slash is a regular expression', () => {
    expect(regexSource('/^a/')).toBe('^a');
    for (const text of ['/', '//', 'a/', '/a', '//Exported']) expect(regexSource(text)).toBeUndefined();
  });

  test('cells are written as in a spreadsheet', () => {
    expect(cellReference('=C3')).toEqual({ line: 3, cell: 3 });
    expect(cellReference('=$aa$10')).toEqual({ line: 10, cell: 27 });
    expect(cellReference("='Sheet 2'!B9")).toEqual({ sheet: 'Sheet 2', line: 9, cell: 2 });
    expect(cellReference('=Data!A1')).toEqual({ sheet: 'Data', line: 1, cell: 1 });
    for (const text of ['C3', '=C', '=3', '=C0', "='Sheet 2'B9"]) expect(cellReference(text)).toBeUndefined();
  });
});
