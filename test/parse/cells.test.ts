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

describe('a drawn box', () => {
  const RULE = '├──────┼───────┤';
  const box = (...lines: string[]) => ['┌──────┬───────┐', ...lines, '└──────┴───────┘'].join('\n');
  const header = ['│ Name │ Area  │', '│      │ [mAU] │', RULE];

  test('is read without what is drawn, and is between blank lines', async () => {
    const rows = ['│ Name │ Area  │', RULE, '│ A    │  1.25 │', '│ B    │  2.50 │'];
    const lines = await cut(`Report\n${box(...rows)}`, '│');
    expect(lines.map((line) => line.cells)).toEqual([
      ['Report'],
      [''],
      ['Name', 'Area'],
      ['A', '1.25'],
      ['B', '2.50'],
      [''],
    ]);
    expect(lines.map(({ number, text }) => [number, text])[3]).toEqual([5, 'A│1.25']);
  });

  test('can have rows of several lines if lines are drawn between all of them', async () => {
    const rows = [
      '│ A_   │ 6094. │',
      '│ long │  3336 │',
      RULE,
      '│ two  │   783 │',
      '│ words│       │',
      '│ toget│       │',
      '│ her  │       │',
    ];
    expect(await cells(box(...header, ...rows), '│')).toEqual([
      [''],
      ['Name', 'Area [mAU]'],
      ['A_long', '6094.3336'],
      ['two wordstogether', '783'],
      [''],
    ]);
  });

  test('has a row for each line if one part of it has many', async () => {
    const rows = ['A', 'B', 'C', 'D', 'E'].map((name, n) => `│ ${name}    │   1.${n} │`);
    const found = await cells(box('│ Name │ Area  │', RULE, ...rows, RULE, '│ Sum  │   6.0 │'), '│');
    expect(found).toHaveLength(9);
    expect(found[2]).toEqual(['A', '1.0']);
  });

  test.each([['┌──┐\n│ a│\nb'], ['┌──┐\n│ a│\nb\n└──┘'], ['┌──┐\n│ a│']])(
    'is left as it is if it is damaged: %j',
    async (text) => {
      const lines = await cut(text, '│');
      expect(lines.map((line) => line.text)).toEqual(text.split('\n'));
    },
  );
});

describe('the delimiter is detected', () => {
  test.each([
    ['│', '┌──┬──┐\n│ a│ b│\n├──┼──┤\n│ 1│ 2│\n│ 3│ 4│\n└──┴──┘'],
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

test('a name is searched for only at the start of a very long line', () => {
  // The pattern looks back at the whole line from each sign.
  const split = compileSplit('/=(?<!^\\W*(?:Block)(?![\\w ]*\\w).*)/');
  expect(split.once(`Gain${'=5 '.repeat(50_000)}`)?.[0]).toBe('Gain');
  const started = performance.now();
  expect(split.once(`Block ${'=5 '.repeat(50_000)}`)).toBeUndefined();
  expect(performance.now() - started).toBeLessThan(2000);
  expect(split.once(`${'x'.repeat(6000)}=5`)).toBeUndefined();
});
