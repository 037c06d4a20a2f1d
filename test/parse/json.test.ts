import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readJson } from '../../src/parse/formats/documents.js';
import { mutations } from '../support/mutations.js';
import { meta, opened, readAs, readOrRefuse, refusalAs, rows } from '../support/reading.js';

describe('JSON', () => {
  test('numbers are kept as written', async () => {
    const record = await readAs('json', '{"a":2.100,"b":1.50E7,"c":12345678901234567890,"d":1e999}', {
      facts: { a: '/a', b: '/b', c: '/c', d: '/d' },
    });
    expect([...record.meta.values()]).toEqual([
      { value: 2.1, text: '2.100' },
      { value: 1.5e7, text: '1.50E7' },
      { value: '12345678901234567890', text: '12345678901234567890' },
      { value: '1e999', text: '1e999' },
    ]);
  });

  test('numbers have a decimal point even with `decimal: ","`', async () => {
    const record = await readAs('json', '{"a":1.5,"b":"2,5"}', { decimal: ',', facts: { a: '/a', b: '/b' } });
    expect(meta(record)).toEqual({ a: 1.5, b: 2.5 });
  });

  test('null is no value, and booleans are read if typed', async () => {
    const record = await readAs('json', '{"a":null,"b":true}', {
      facts: { a: '/a', b: { from: '/b', type: 'boolean' } },
    });
    expect(meta(record)).toEqual({ a: null, b: true });
  });

  test('a value in a list has the line on which it starts', async () => {
    const error = await refusalAs('json', '[{"n":1},\n\n{"n":"x"}]', {
      table: { rows: '/', columns: { n: { from: 'n', type: 'number' } } },
    });
    expect(error.where?.line).toBe(3);
  });

  test('escapes are decoded', async () => {
    const record = await readAs('json', '{"a":"\\u00b5m \\"x\\" \\\\","µ":"ok"}', {
      facts: { a: '/a', b: '/µ' },
    });
    expect(meta(record)).toEqual({ a: 'µm "x" \\', b: 'ok' });
  });

  test('JSON lines are a list', async () => {
    const record = await readAs('json', '{"v":1}\n{"v":2}\n\n', { table: { rows: '/' } });
    expect(rows(record)).toEqual([{ v: 1 }, { v: 2 }]);
  });

  test('a duplicate name is found at its first occurrence and becomes a separate column', async () => {
    const text = '[{"a":1,"a":2}]';
    expect(meta(await readAs('json', text, { facts: { a: '/0/a' } }))).toEqual({ a: 1 });
    expect(rows(await readAs('json', text, { table: { rows: '/' } }))).toEqual([{ a: 1, 'a (2)': 2 }]);
  });

  test('names such as `__proto__` are ordinary names', async () => {
    const text = '[{"__proto__":{"value":1,"unit":"s"},"constructor":2,"toString":3}]';
    const record = await readAs('json', text, {
      facts: { __proto__x: '/0/__proto__' },
      table: { rows: '/' },
    });
    expect(record.tables[0]?.columns.map(({ name }) => name)).toEqual(['__proto__', 'constructor', 'toString']);
    expect(record.meta.get('__proto__x')?.value).toBe(1);
    expect(({} as Record<string, unknown>)['unit']).toBeUndefined();
  });

  test('a byte order mark and UTF-16 are supported', async () => {
    const text = '\ufeff{"a":"µ"}';
    for (const bytes of [Buffer.from(text), Buffer.from(text, 'utf16le')]) {
      expect(meta(await readAs('json', bytes, { facts: { a: '/a' } }))).toEqual({ a: 'µ' });
    }
  });
});

describe('invalid JSON is refused with its location', () => {
  test.each([
    ['{"a":1,\n "b" 2}', '2:6', 'expected a colon, found "2}"'],
    ['{"a":1,\n}', '2:1', 'expected a name in quotes'],
    ['[1,2\n', '2:1', 'the end of the file'],
    ['[1 2]', '1:4', 'expected a comma or ]'],
    ['[01]', '1:3', 'expected a comma or ]'],
    ['{"a":\n  tru}', '2:3', 'expected a value'],
    ['{"a":"x', '1:6', 'a closing quote'],
    ['{"a":"\\q"}', '1:6', 'known escapes'],
    ['{"a":1} {"a":2}', '1:9', 'the end of the line'],
    ['  ', '1:3', 'expected a value'],
  ])('%j at %s', async (text, place, message) => {
    const error = await refusalAs('json', text, { facts: { a: '/a' } });
    expect(`${error.where?.line}:${error.where?.column}`).toBe(place);
    expect(error.message).toContain(message);
    expect(error.hint).toContain('truncated');
  });

  test('deep nesting is refused', async () => {
    const error = await refusalAs('json', `${'['.repeat(5_000_000)}`, { facts: { a: '/a' } });
    expect(error.message).toBe('the file is nested deeper than 100 levels');
    expect(error.hint).toContain('limits: { nesting: 1000 }');
  });

  test('a file that is too large is refused with the limit to set', async () => {
    const error = await refusalAs('json', '[1,2,3]', { limits: { bytes: 3 }, facts: { a: '/0' } });
    expect(error.hint).toContain('limits: { bytes: 1MB }');
  });
});

describe('any JSON', () => {
  const accepts = async (text: string) =>
    readJson(opened(text)).then(
      () => true,
      () => false,
    );

  test('JSON that JSON.parse accepts has the same values', async () => {
    const scalar = fc.oneof(fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
    const name = fc.string({ minLength: 1 }).filter((text) => !text.startsWith('@'));
    await fc.assert(
      fc.asyncProperty(fc.dictionary(name, scalar, { minKeys: 1 }), async (item) => {
        const written = JSON.stringify([{ nested: [[{ item }]] }], null, 1);
        const tree = await readJson(opened(written));
        const [row] = tree.rows('//item') ?? [];
        const read = [...tree.values(row ?? expect.fail('no row'))].map(([key, { text }]) => [key, text]);
        const expected = Object.entries(item).map(([key, value]) => [
          key,
          typeof value === 'string' ? value : JSON.stringify(value),
        ]);
        expect(read).toEqual(expected);
      }),
      { numRuns: 150 },
    );
  });

  test('JSON that JSON.parse rejects is refused, except JSON lines and NaN', async () => {
    const sign = fc.constantFrom(
      '{',
      '}',
      '[',
      ']',
      ',',
      ':',
      '"',
      '"a"',
      '1',
      '-',
      '0.5',
      'e3',
      'true',
      'null',
      ' ',
      '\\',
      '\t',
      'x',
    );
    await fc.assert(
      fc.asyncProperty(fc.array(sign, { maxLength: 12 }), async (signs) => {
        const text = signs.join('');
        const isJson = parses(text);
        expect(await accepts(text)).toBe(isJson);
      }),
      { numRuns: 500 },
    );
  });

  test('mutated files are read or refused', async () => {
    const base = Buffer.from('{"run":{"id":"R1","data":[{"t":1.5,"v":{"value":2,"unit":"mg"}},{"t":2.5}]},"n":2}');
    const mapping = {
      facts: { id: '//id' },
      tables: { a: { rows: '//data' }, b: { columns: { t: '//data/t' } } },
    };
    await fc.assert(
      fc.asyncProperty(mutations(base), async (bytes) => {
        await readOrRefuse(readAs('json', bytes, mapping));
      }),
      { numRuns: 200 },
    );
  });
});

function parses(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
