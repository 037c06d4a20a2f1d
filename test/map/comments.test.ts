import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FileRecord, Value } from '../../src/model.js';
import { commentsOf, map, partial, record, renderTitle, SHA, sentBytes, table, v } from '../support/map-samples.js';

/** n rows with unique texts. */
const rows = (n: number, text = (i: number) => `row-${i}-`) =>
  Array.from({ length: n }, (_, i) => [v(i / 2, (i / 2).toFixed(1)), v(text(i))]);

/** The UTC offset of this machine on that day. */
const offset = renderTitle('{{ file.modified }}').slice(-6);

describe('readings as a table', () => {
  test('are one aligned comment with units and values as written', () => {
    expect(commentsOf()).toEqual([
      [
        'readings: 3 rows, from run 7.csv',
        'Well | A260 (AU) | Remark',
        '-----|-----------|-------',
        'A1   |      1.50 |',
        'A2   |    < 0.10 | low',
        'A1   |      10.0 | high',
      ].join('\n'),
    ]);
  });

  test('hold all tables, each under its name', () => {
    const two = record({}, table('wells', ['w'], [[v('A1')]]), table('curve', ['r (%)'], [[v(0.99)]]));
    expect(commentsOf({ record: two })).toEqual([
      'wells: 1 row, from run 7.csv\nw\n--\nA1\n\ncurve: 1 row, from run 7.csv\nr (%)\n-----\n 0.99',
    ]);
  });

  test('are split between rows, each part with the heading and its row range', () => {
    const many = record({}, table('readings', ['t (s)', 'name'], rows(250)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 5 } });
    expect(comments.length).toBe(3);
    expect(comments.every((comment) => comment.includes('\nt (s) | name'))).toBe(true);
    expect(comments.map((comment) => comment.split('\n')[0])).toEqual([
      expect.stringMatching(/^readings: rows 1–(\d+) of 250, from run 7\.csv$/),
      expect.stringMatching(/^readings: rows (\d+)–(\d+) of 250, from run 7\.csv$/),
      expect.stringMatching(/^readings: rows (\d+)–250 of 250, from run 7\.csv$/),
    ]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });

  test('fill each comment before the next one starts', () => {
    const many = record({}, table('readings', ['t', 'name'], rows(300)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 50 } });
    for (const bytes of sentBytes(comments).slice(0, -1)) expect(bytes).toBeGreaterThan(2048 - 60);
  });

  test('that do not fit become one summary that names the raw file', () => {
    const many = record({}, table('readings', ['t (s)', 'name'], rows(2001)));
    const comments = commentsOf({ record: many, comments: { maxBytes: 2048, maxComments: 5 } });
    expect(comments).toEqual([
      [
        `Summary of run 7.csv, 1,234 bytes, modified 2026-03-04 12:30:15 ${offset}`,
        `sha256:${SHA}`,
        '',
        'readings: 2,001 rows, 2 columns; all rows are in the raw file',
        't (s): 2,001 values from 0.0 to 1000.0, median 500.0',
        'name: 2,001 texts',
      ].join('\n'),
    ]);
  });

  test('of a million rows are summarised without laying them out', () => {
    const row = [v(1), v('x')];
    const many = record({}, table('readings', ['t', 'name'], new Array(1_000_000).fill(row)));
    expect(commentsOf({ record: many })[0]).toContain('1,000,000 rows');
  });

  test('visibly cut a row that is longer than a comment', () => {
    const long = record(
      {},
      table(
        'readings',
        ['a', 'b'],
        [
          [v(1), v('µ'.repeat(5000))],
          [v(2), v('short')],
        ],
      ),
    );
    const comments = commentsOf({ record: long, comments: { maxBytes: 2048 } });
    expect(comments.length).toBe(2);
    expect(comments[0]).toMatch(/^1 \| µ+…$/m);
    expect(comments[1]).toContain('2 | short');
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });

  test('with very many columns still have room for the rows', () => {
    const names = Array.from({ length: 500 }, (_, i) => `column number ${i}`);
    const wide = record({}, table('x'.repeat(5000), names, [names.map((name) => v(name))]));
    const comments = commentsOf({
      record: wide,
      file: { name: `${'n'.repeat(250)}.csv` },
      comments: { maxBytes: 1024 },
    });
    expect(comments.length).toBe(1);
    expect(comments[0]).toContain('\ncolumn number 0');
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });

  test('have one line per row, whatever the cells hold', () => {
    const odd = record({}, table('a\nb', ['c\nd'], [[v('e\nf\u0000g')], [v('')]]));
    expect(commentsOf({ record: odd, file: { name: 'h\ni.csv' } })).toEqual([
      'a b: 2 rows, from h i.csv\nc d\n-----\ne f g\n|',
    ]);
  });
});

describe('readings as lines', () => {
  const lines = (given: FileRecord): readonly string[] =>
    (commentsOf({ record: given, comments: { readings: 'auto' } })[0] ?? '').split('\n');
  const one = (headings: readonly string[], ...rows: readonly Value[][]) =>
    record({}, table('readings', headings, rows));

  test('are the default, and have the values with their units where these tell the columns apart', () => {
    const given = one(
      ['Well', 'A (AU)', 'T (°C)'],
      [v('A1'), v(2.1, '2.100'), v(37, '37.0')],
      [v('A2'), v(0), v(36.9)],
    );
    expect(lines(given)).toEqual([
      'readings: 2 rows, from run 7.csv',
      'Well, A (AU), T (°C)',
      'A1: 2.100 AU, 37.0 °C',
      'A2: 0 AU, 36.9 °C',
    ]);
  });

  test('name the columns otherwise', () => {
    const given = one(['Well', 'A260 (AU)', 'A280 (AU)', 'Remark'], [v('A1'), v(2.1), v(1.1), v('ok')]);
    expect(lines(given)).toEqual(['readings: 1 row, from run 7.csv', 'A1: A260 2.1 AU, A280 1.1 AU, Remark ok']);
  });

  test('start with the sample or well, wherever its column is, if every row has one', () => {
    const linesFor = (last: string) =>
      lines(one(['Date', 'Sample Name', 'c (ng/µL)'], [v('4.3.'), v('S1'), v(5)], [v('4.3.'), v(last), v(6)])).slice(1);
    expect(linesFor('S2')).toEqual(['S1: Date 4.3., c 5 ng/µL', 'S2: Date 4.3., c 6 ng/µL']);
    expect(linesFor('')).toEqual(['4.3.: Sample Name S1, c 5 ng/µL', '4.3.: c 6 ng/µL']);
  });

  test('leave out empty cells and columns, and show a text instead of a value once, without a unit', () => {
    const given = one(
      ['Well', 'A (AU)', 'A text', 'Note'],
      [v('A1'), v(null, 'OVRFLW'), v('OVRFLW'), v('')],
      [v('A2'), v(null, '< 0.1'), v('< 0.1'), v('')],
      [v(''), v(1.5), v(''), v('')],
      [v('A4'), v(null, ''), v(''), v('')],
      [v(''), v(null, ''), v(''), v('')],
    );
    expect(lines(given).slice(1)).toEqual(['Well, A (AU)', 'A1: OVRFLW', 'A2: < 0.1 AU', '–: 1.5 AU', 'A4', '–']);
  });

  test('of a plate with numbers only have one line per row of the plate', () => {
    const wells = [...'AB'].flatMap((letter) => Array.from({ length: 9 }, (_, n) => [v(`${letter}0${n + 1}`), v(n)]));
    const missing = [...wells.slice(0, 17), [v('B09'), v(null, 'OVER')]];
    expect(lines(one(['Well', 'A260 (AU)'], ...missing))).toEqual([
      'readings: 2 plate rows, from run 7.csv',
      'A260 (AU), columns 1–9',
      'A: 0, 1, 2, 3, 4, 5, 6, 7, 8',
      'B: 0, 1, 2, 3, 4, 5, 6, 7, OVER',
    ]);
    const named = wells.map((row, n) => [...row, v(`sample ${n}`)]);
    expect(lines(one(['Well', 'A260 (AU)', 'Sample'], ...named))).toContain('A01: A260 0 AU, Sample sample 0');
    const twice = wells.map(([, value]) => [v('A1'), value ?? v(0)]);
    expect(lines(one(['Well', 'A260 (AU)'], ...twice)).at(-1)).toBe('A1: 8 AU');
  });

  test('hold every cell that has a text', () => {
    const cell = fc.constantFrom(v(''), v('ok'), v(1.5, '1.50'), v(null, 'n.d.'), v('a, b: c'));
    fc.assert(
      fc.property(fc.array(fc.tuple(cell, cell, cell), { minLength: 1, maxLength: 20 }), (cells) => {
        const text = lines(one(['x', 'y (mg)', 'z'], ...cells)).slice(1);
        const [first = ''] = text;
        const rows = first.startsWith('x') || first.startsWith('y') ? text.slice(1) : text;
        cells.forEach((row, n) => {
          for (const { text } of row) expect(rows[rows.length - cells.length + n]).toContain(text);
        });
      }),
    );
  });
});

describe('readings: each', () => {
  test('makes one comment per row', () => {
    expect(commentsOf({ comments: { readings: 'each' } })).toEqual([
      'readings: row 1 of 3, from run 7.csv\nWell: A1\nA260: 1.50 AU\nRemark: ',
      'readings: row 2 of 3, from run 7.csv\nWell: A2\nA260: < 0.10 AU\nRemark: low',
      'readings: row 3 of 3, from run 7.csv\nWell: A1\nA260: 10.0 AU\nRemark: high',
    ]);
  });

  test('makes one summary if there are too many rows', () => {
    const comments = commentsOf({ comments: { readings: 'each', maxComments: 2 } });
    expect(comments).toEqual([expect.stringContaining('Summary of run 7.csv')]);
  });

  test('cuts a comment that is too long', () => {
    const long = record({}, table('readings', ['a'], [[v('x'.repeat(5000))]]));
    const comments = commentsOf({ record: long, comments: { readings: 'each', maxBytes: 1024 } });
    expect(comments).toEqual([expect.stringMatching(/x…$/)]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });
});

describe('a file without readings', () => {
  const facts = record({ Sample: v('A\nB'), Mass: v(2.1, '2.100', 'mg'), Volume: v(1, '1 mL', 'mL') });

  test.each(['auto', 'table', 'lines', 'each', 'summary'] as const)(
    'has one comment with its facts (%s)',
    (readings) => {
      expect(commentsOf({ record: facts, comments: { readings } })).toEqual([
        'facts, from run 7.csv\nSample: A B\nMass: 2.100 mg\nVolume: 1 mL',
      ]);
    },
  );

  test('but with an empty table also has a comment with its facts', () => {
    const empty = { ...facts, tables: [table('readings', ['a'], [])] };
    expect(commentsOf({ record: empty })).toEqual([expect.stringContaining('facts, from')]);
  });

  test('or facts has no comment', () => {
    expect(commentsOf({ record: record({}) })).toEqual([]);
  });

  test('and with too many facts has a summary with their number', () => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`fact ${i}`, v('x'.repeat(50))]));
    const comments = commentsOf({ record: record(many), comments: { maxBytes: 2048 } });
    expect(comments).toEqual([expect.stringContaining('1,000 facts; all are in the raw file\nfact 0: xxx')]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });
});

describe('a comment template', () => {
  test('replaces the readings, as plain text', () => {
    const text = '{{ meta.Sample }}\n{{ readings | table: 2 }}';
    expect(commentsOf({ comments: { text, readings: 'none' } })).toEqual([
      [
        'Plasmid <A>',
        'Well | A260 (AU) | Remark',
        '-----|-----------|-------',
        'A1   |      1.50 |',
        'A2   |    < 0.10 | low',
        '',
        'First 2 of 3 rows; all are in the file. Summary of all rows:',
        'column | unit | n |  min | median |  max',
        '-------|------|---|------|--------|-----',
        'A260   | AU   | 2 | 1.50 |   5.75 | 10.0',
      ].join('\n'),
    ]);
    expect(commentsOf({ comments: { text: '{{ meta | table }}' } })[0]).toContain('Volume: 2.100 µL\nDilution: 4.0');
  });

  test('that renders to nothing makes no comment', () => {
    expect(commentsOf({ comments: { text: ' \n{{ meta.Absent }}\n' } })).toEqual([]);
  });

  test('is split between lines, and within a line only if that is too long', () => {
    const text = `${'a'.repeat(700)}\n${'b'.repeat(700)}\n${'µ'.repeat(700)}`;
    const comments = commentsOf({ comments: { text, maxBytes: 1024 } });
    expect(comments.slice(0, 2)).toEqual(['a'.repeat(700), 'b'.repeat(700)]);
    expect(comments.slice(2).join('')).toBe('µ'.repeat(700));
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(1024);
  });

  test('that renders to too much text is replaced by the summary', () => {
    const text = '{% for i in (1..10000) %}line {{ i }}\n{% endfor %}';
    expect(commentsOf({ comments: { text, maxBytes: 1024 } })).toEqual([expect.stringContaining('Summary of')]);
  });
});

describe('readings: none', () => {
  test('makes no comment', () => {
    expect(commentsOf({ comments: { readings: 'none' } })).toEqual([]);
  });
});

describe('for any content of the file', () => {
  const text = fc.string({ unit: 'binary', maxLength: 300 });
  const tables = fc.array(
    fc
      .record({ name: text, headings: fc.array(text, { minLength: 1, maxLength: 4 }), count: fc.nat(60) })
      .chain(({ name, headings, count }) =>
        fc
          .array(fc.array(text, { minLength: headings.length, maxLength: headings.length }), {
            minLength: count,
            maxLength: count,
          })
          .map((cells) => ({ name, headings, cells })),
      ),
    { maxLength: 3 },
  );

  test('comments are not empty and stay within the limits', () => {
    fc.assert(
      fc.property(
        tables,
        fc.dictionary(text, text),
        fc.constantFrom('table', 'each', 'summary', 'none'),
        fc.integer({ min: 1024, max: 4096 }),
        fc.integer({ min: 1, max: 20 }),
        text,
        (made, facts, readings, maxBytes, maxComments, name) => {
          const given: FileRecord = {
            unread: [],
            meta: new Map(Object.entries(facts).map(([key, value]) => [key, v(value)])),
            tables: made.map(({ name, headings, cells }) =>
              table(
                name,
                headings,
                cells.map((row) => row.map((cell) => v(cell))),
              ),
            ),
          };
          const comments = commentsOf({
            record: given,
            file: { name, stem: 'x' },
            comments: { readings, maxBytes, maxComments },
          });
          expect(comments.length).toBeLessThanOrEqual(maxComments);
          expect(comments.every((comment) => comment.trim() !== '')).toBe(true);
          expect(Math.max(0, ...sentBytes(comments))).toBeLessThanOrEqual(maxBytes);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('every row is in the comments exactly once, in order', () => {
    const fill = fc.string({ unit: 'grapheme', maxLength: 40 });
    fc.assert(
      fc.property(
        fc.array(fc.array(fill, { minLength: 1, maxLength: 200 }), { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1024, max: 4096 }),
        (made, maxBytes) => {
          const given = made.map((texts, t) =>
            table(
              `table ${t}`,
              ['id', 'fill'],
              texts.map((cell, i) => [v(`<${t}:${i}>`), v(cell.replace(/[<>:]/g, ''))]),
            ),
          );
          const comments = commentsOf({
            record: record({}, ...given),
            comments: { maxBytes, maxComments: 100 },
          });
          const found = comments.join('\n').match(/<\d+:\d+>/g);
          expect(found).toEqual(made.flatMap((texts, t) => texts.map((_, i) => `<${t}:${i}>`)));
        },
      ),
      { numRuns: 60 },
    );
  });
});

describe('a summary', () => {
  const summaryOf = (given: FileRecord) => commentsOf({ record: given, comments: { readings: 'summary' } })[0] ?? '';

  test('has count, minimum, median and maximum, as written in the file', () => {
    const values = [v(3, '3,0'), v(1, '1,00'), v(null, 'OVER'), v(2, '2,000'), v('text')];
    const line = summaryOf(
      record(
        {},
        table(
          't',
          ['x (mg)'],
          values.map((value) => [value]),
        ),
      ),
    )
      .split('\n')
      .at(-1);
    expect(line).toBe('x (mg): 3 values from 1,00 to 3,0, median 2,000');
  });

  test('has the mean of the two middle values as median of an even number of values', () => {
    const line = (numbers: number[]) =>
      summaryOf(
        record(
          {},
          table(
            't',
            ['x'],
            numbers.map((n) => [v(n)]),
          ),
        ),
      )
        .split('\n')
        .at(-1)
        ?.split('median ')[1];
    expect(line([1, 2])).toBe('1.5');
    expect(line([0.1, 0.2])).toBe('0.15');
    expect(line([2, 2, 9, 1])).toBe('2');
    expect(line([1e308, 1.6e308])).toBe('1.3e+308');
  });

  test('of too many columns is partial, and counts the lines left out', () => {
    const names = Array.from({ length: 300 }, (_, i) => `column ${i}`);
    const wide = record({}, table('t', names, [names.map((_, i) => v(i))]));
    const comments = commentsOf({ record: wide, comments: { readings: 'summary', maxBytes: 2048 } });
    expect(comments).toEqual([expect.stringMatching(/\n… \d+ more lines; everything is in the raw file$/)]);
    expect(Math.max(...sentBytes(comments))).toBeLessThanOrEqual(2048);
  });
});

describe('a partial table', () => {
  const trace = partial(
    table('trace', ['t (s)', 'V (mV)', 'note'], [[v(0, '0.0'), v(1.5, '1,5'), v('x')]]),
    5_000_000,
    {
      t: {
        n: 5_000_000,
        min: v(0, '0.0'),
        median: 1_250_000,
        isMedianExact: false,
        max: v(2.5e6, '2500000.0'),
      },
      V: { n: 4_999_000, min: v(-0.5, '-0,50'), median: 1.25, isMedianExact: true, max: v(3, '3,00') },
    },
  );
  const huge = record({}, trace, table('peaks', ['t (s)'], [[v(1)], [v(4)]]));

  test.each(['auto', 'table', 'lines', 'each', 'summary'] as const)(
    'has a summary of all rows, never only some of them (%s)',
    (readings) => {
      expect(commentsOf({ record: huge, file: { size: 209_715_200 }, comments: { readings } })).toEqual([
        [
          `Summary of run 7.csv, 209.7 MB (209,715,200 bytes), modified 2026-03-04 12:30:15 ${offset}`,
          `sha256:${SHA}`,
          '',
          'trace: 5,000,000 rows, 3 columns; all rows are in the raw file',
          't (s): 5,000,000 values from 0.0 to 2500000.0, median ≈ 1250000',
          'V (mV): 4,999,000 values from -0,50 to 3,00, median 1,25',
          'note: no numbers',
          '',
          'peaks: 2 rows, 1 column; all rows are in the raw file',
          't (s): 2 values from 1 to 4, median 2.5',
        ].join('\n'),
      ]);
    },
  );

  test('has no comment with readings: none', () => {
    expect(commentsOf({ record: huge, comments: { readings: 'none' } })).toEqual([]);
  });

  test('names the raw file even if its name is very long', () => {
    const [comment = ''] = commentsOf({ record: huge, file: { name: 'µ'.repeat(400) } });
    expect(comment).toMatch(/^Summary of µ+…, 1,234 bytes, modified 2026-/);
  });
});

describe('many readings, if the raw file is attached,', () => {
  const many = (n: number) => record({}, table('readings', ['t (s)', 'name'], rows(n)));
  const attachedOf = (n: number, readings: 'auto' | 'lines', attach: 'auto' | 'never' = 'auto') =>
    map({ record: many(n), attach, comments: { readings } }).draft.attached;

  test('are one summary that names the file and says how many there are', () => {
    const { comments = [], omits, body } = attachedOf(500, 'auto') ?? {};
    expect(comments).toEqual([
      [
        `Summary of run 7.csv, 1,234 bytes, modified 2026-03-04 12:30:15 ${offset}`,
        `sha256:${SHA}`,
        '',
        'readings: 500 rows, 2 columns; all rows are in the attached file',
        't (s): 500 values from 0.0 to 249.5, median 124.75',
        'name: 500 texts',
      ].join('\n'),
    ]);
    expect(omits).toEqual(['not filed in full: readings, 500 rows']);
    expect(body).toContain('500 rows; all are in the file.');
  });

  test('are all in the comments otherwise', () => {
    const { draft, omits } = map({ record: many(500), attach: 'auto', comments: { readings: 'auto' } });
    expect(draft.comments.join('\n').match(/row-\d+-/g)).toHaveLength(500);
    expect(draft.body).toContain('500 rows; all are in the comments.');
    expect(omits).toEqual([]);
  });

  test('stay as they are if they are few, if they are wanted as lines, or if nothing is attached', () => {
    expect(attachedOf(190, 'auto')).toBeUndefined();
    expect(attachedOf(500, 'lines')).toBeUndefined();
    expect(attachedOf(500, 'auto', 'never')).toBeUndefined();
    expect(attachedOf(100_000, 'auto')).toBeUndefined();
  });
});
