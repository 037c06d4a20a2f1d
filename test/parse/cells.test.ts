import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compileSplit, findDelimiter, splitAll } from '../../src/parse/cells.js';
import type { Line } from '../../src/parse/lines.js';

const cut = (text: string, delimiter = ',', quote: string | null = '"'): Promise<Line[]> =>
  splitAll(text.split('\n'), { split: compileSplit(delimiter), quote: quote ?? undefined }, 1);

const cells = async (...args: Parameters<typeof cut>) => (await cut(...args)).map((line) => line.cells);

describe('splitting a line into cells', () => {
  test.each([
    ['text', ',', 'a, b ,,c', ['a', 'b', '', 'c']],
    ['more text', ' :: ', 'a :: b::c', ['a', 'b::c']],
    ['tab', 'tab', 'a\tb\t', ['a', 'b', '']],
    ['spaces', 'spaces', '   a b   c\td', ['a b', 'c', 'd']],
    ['whitespace', 'whitespace', '  a b\t c ', ['a', 'b', 'c']],
    ['a pattern', '/[;,]/', 'a;b,c', ['a', 'b', 'c']],
    ['a pattern with groups', '/ (and|or) /', 'a and b or c', ['a', 'b', 'c']],
  ])('at %s', async (_, delimiter, text, expected) => {
    expect(await cells(text, delimiter)).toEqual([expected]);
  });

  test('a quoted cell can contain delimiters and quotes', async () => {
    expect(await cells('"a, b","say ""yes""",c')).toEqual([['a, b', 'say "yes"', 'c']]);
  });

  test('blanks around quotes are ignored', async () => {
    expect(await cells('x, "a, b" ,c')).toEqual([['x', 'a, b', 'c']]);
  });

  test('lines that a quoted cell spans are one line, and later lines keep their numbers', async () => {
    const lines = await cut('id,"Plate\nPosition",n\n1,A1,5');
    expect(lines).toEqual([
      { number: 1, text: 'id,"Plate\nPosition",n', cells: ['id', 'Plate\nPosition', 'n'] },
      { number: 3, text: '1,A1,5', cells: ['1', 'A1', '5'] },
    ]);
  });

  test('a quote within a cell is an ordinary character', async () => {
    expect(await cells('pipe 5" wide,2\n3,4')).toEqual([
      ['pipe 5" wide', '2'],
      ['3', '4'],
    ]);
  });

  test('an unclosed quote does not swallow lines', async () => {
    expect(await cells('a,b\n"oops,1\n2,3\n4,5')).toEqual([
      ['a', 'b'],
      ['"oops', '1'],
      ['2', '3'],
      ['4', '5'],
    ]);
  });

  test('a stray quote far below does not close an unclosed quote', async () => {
    const lines = await cut(`"oops,1\n${'2,3\n'.repeat(200)}4,5"\n6,7`);
    expect(lines).toHaveLength(203);
    expect(lines.at(0)?.cells).toEqual(['"oops', '1']);
  });

  test('`quote: none` makes quotes ordinary characters', async () => {
    expect(await cells('"a,b"', ',', null)).toEqual([['"a', 'b"']]);
  });

  test('cells with any content survive a round trip', async () => {
    const cell = fc.string({ unit: fc.constantFrom('a', ' ', ',', '"', '\n', '5', 'é') });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(cell, { minLength: 2, maxLength: 4 }), { minLength: 1, maxLength: 1200 }),
        async (table) => {
          const text = table.map((row) => row.map((one) => `"${one.replaceAll('"', '""')}"`).join(',')).join('\n');
          expect(await cells(text)).toEqual(table.map((row) => row.map((one) => one.trim())));
        },
      ),
      { numRuns: 50 },
    );
  });

  test('no line is lost or moved by any split', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', ',', '"', '7', ' ') });
    await fc.assert(
      fc.asyncProperty(fc.array(line, { minLength: 1, maxLength: 900 }), async (texts) => {
        const lines = await cut(texts.join('\n'));
        expect(lines.map(({ text }) => text).join('\n')).toBe(texts.join('\n'));
        expect(lines.every(({ number, text }) => texts[number - 1] === text.split('\n')[0])).toBe(true);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the delimiter is detected', () => {
  test.each([
    [',', 'a,b,c\n1,2,3\n4,5,6'],
    [';', 'a;b\n1,5;2,5\n3,5;4,5'],
    ['tab', 'Shear rate\tStress\n0,1\t0,2\n0,3\t0,4'],
    ['|', 'a|b|c\n1|2|3'],
    [',', 'n,\tTime,U,I\n1,\t10:00,3.5,0\n2,\t10:01,3.6,1'],
    [';', `date,time;T;RH\n${'07.08.25,00:00;22;55;\n'.repeat(9)}`],
    ['spaces', 'Press   P zero   Vol\n 0.1    764    0.02\n 0.2    764    0.03\n 0.3   764   0.04'],
    ['whitespace', 'x y z\n1 2 3\n4 5 6'],
  ])('%s', (delimiter, text) => {
    expect(findDelimiter(text.split('\n'))).toBe(delimiter);
  });

  test('no delimiter is detected in irregular text', () => {
    expect(findDelimiter(['one', 'two'])).toBeUndefined();
  });
});
