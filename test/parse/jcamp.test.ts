import fc from 'fast-check';
import { convert } from 'jcampconverter';
import { describe, expect, test } from 'vitest';
import { mutations } from '../support/mutations.js';
import { columns, meta, readAs, readOrRefuse, refusalAs, rows } from '../support/reading.js';
import { cpuMs } from '../support/until.js';

const block = (data: string, extra: readonly string[] = []) =>
  [
    '##TITLE= Polystyrene',
    '##JCAMP-DX= 4.24 $$ made up',
    '##DATA TYPE= INFRARED SPECTRUM',
    '##XUNITS= 1/CM',
    '##YUNITS= ABSORBANCE',
    '##XFACTOR= 1',
    '##YFACTOR= 0.001',
    '##FIRSTX= 400',
    '##LASTX= 406',
    '##NPOINTS= 4',
    ...extra,
    `##XYDATA= (X++(Y..Y))\n${data}`,
    '##END=',
  ].join('\n');

const POINTS = [
  { x: 400, y: 0.1 },
  { x: 402, y: 0.11 },
  { x: 404, y: 0.11 },
  { x: 406, y: 0.108 },
];

describe('JCAMP-DX', () => {
  test('pairs below the last label are readings, not its value', async () => {
    const text =
      '##TITLE=S1\n##DATA TYPE=INFRARED SPECTRUM\n##XUNITS=1/CM\n##YUNITS=%T\n399.2  \t81.7 \n401.1  \t82.0 \n403.1  \t83.7 \n';
    const record = await readAs('jcamp', text);
    expect(columns(record)).toEqual(['x [1/CM]', 'y [%T]']);
    expect(rows(record)[1]).toEqual({ x: 401.1, y: 82 });
    expect(meta(record)).toMatchObject({ YUNITS: '%T' });
    const words = await readAs('jcamp', `${text}see above\n`);
    expect(words.tables).toEqual([]);
  });

  test('labels are facts and data are readings without a mapping', async () => {
    const record = await readAs('jcamp', block('400 100 110\n404 110 108'), {});
    expect(meta(record)).toMatchObject({ TITLE: 'Polystyrene', 'JCAMP-DX': 4.24, NPOINTS: 4 });
    expect(columns(record)).toEqual(['x [1/CM]', 'y [ABSORBANCE]']);
    expect(rows(record)).toEqual(POINTS);
    expect(record.tables[0]?.name).toBe('readings');
  });

  test.each([
    ['numbers separated by signs', '400+100+110\n404+110+108'],
    ['exponents', '400 1.00E+02 1.1e+02\n404 110 108'],
    ['squeezed numbers', '400A00A10\n404A10A08'],
    ['differences with check values', '400A00J0%\n404A10k\n406A08'],
    ['repetitions', '400A00A10T\n406A08'],
    ['repeated differences', '400A00J0\n402A10%k\n406A08'],
  ])('data as %s', async (_, data) => {
    expect(rows(await readAs('jcamp', block(data), {}))).toEqual(POINTS);
  });

  test('a missing point has no value', async () => {
    const record = await readAs('jcamp', block('400 100 ?\n404 110 108'), {});
    expect(rows(record)[1]).toEqual({ x: 402, y: null });
  });

  test('numbers without a factor are kept as written', async () => {
    const text = block('400 1.50 2.00 3 4').replace('0.001', '1');
    expect((await readAs('jcamp', text, {})).tables[0]?.rows.map((row) => row[1]?.text)).toEqual([
      '1.50',
      '2.00',
      '3',
      '4',
    ]);
  });

  test('an unambiguous date is read from its label', async () => {
    const dated = (date: string) =>
      readAs('jcamp', block('400 100 110 110 108', [`##DATE= ${date}`, '##TIME= 10:20:30']), {});
    expect(meta(await dated('24/7/2018'))['date']).toBe('2018-07-24T10:20:30');
    expect(meta(await dated('03/04/2018'))['date']).toBeUndefined();
  });

  test('private labels are facts, without angle brackets', async () => {
    const own = ['##$INSTRUM= <drx700>', '##$EMPTY=', '##$DELAYS= (0..2)', '0.1 0.2', '0.3', '##.OBSERVE NUCLEUS= ^1H'];
    const record = await readAs('jcamp', block('400 100 110 110 108', own), {
      facts: { instrument: '$INSTRUM' },
    });
    expect(meta(record)).toMatchObject({
      instrument: 'drx700',
      $DELAYS: '(0..2) 0.1 0.2 0.3',
      '.OBSERVE NUCLEUS': '^1H',
    });
    expect(record.meta.has('$EMPTY')).toBe(false);
  });

  test('a mapping names tables in file order, and columns', async () => {
    const record = await readAs('jcamp', block('400 100 110 110 108'), {
      tables: { spectrum: { columns: { wavenumber: 'x', absorbance: 'y' }, where: { absorbance: 0.1 } } },
    });
    expect(record.tables[0]?.name).toBe('spectrum');
    expect(rows(record)).toEqual([{ wavenumber: 400, absorbance: 0.1 }]);
  });

  test('a file without data has no table', async () => {
    const record = await readAs('jcamp', '##TITLE= Parameters\n##$NS= 128\n##END=', {});
    expect(meta(record)).toEqual({ TITLE: 'Parameters', $NS: 128 });
    expect(record.tables).toEqual([]);
  });
});

describe('several tables in one file', () => {
  const peaks = (data: string) =>
    `##TITLE= Peaks\n##NPOINTS= 3\n##XUNITS= M/Z\n##PEAK TABLE= (XY..XY)\n${data}\n##END=`;

  test.each(['41,10 55,20\n77,30', '41 10; 55 20; 77 30', '41, 10\n55, 20\n77, 30'])(
    'peaks written as %j',
    async (data) => {
      const record = await readAs('jcamp', peaks(data), {});
      expect(rows(record)).toEqual([
        { x: 41, y: 10 },
        { x: 55, y: 20 },
        { x: 77, y: 30 },
      ]);
    },
  );

  test('peak assignments have texts', async () => {
    const text = '##TITLE= A\n##PEAK ASSIGNMENTS= (XYA)\n(7.26, 1.0, <CHCl3 (solvent)>)\n(1.2, 3, <CH3, end>)\n##END=';
    expect(rows(await readAs('jcamp', text, {}))).toEqual([
      { x: 7.26, y: 1, assignment: 'CHCl3 (solvent)' },
      { x: 1.2, y: 3, assignment: 'CH3, end' },
    ]);
  });

  test('each block is a table, and repeated labels are numbered', async () => {
    const text = `##TITLE= Both\n##DATA TYPE= LINK\n##BLOCKS= 2\n${block('400 100 110 110 108')}\n${peaks('41,10 55,20 77,30')}\n##END=`;
    const record = await readAs('jcamp', text, {});
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 4],
      ['readings (2)', 3],
    ]);
    expect(meta(record)).toMatchObject({ TITLE: 'Both', 'TITLE (2)': 'Polystyrene', 'TITLE (3)': 'Peaks' });
    expect(columns(record, 1)).toEqual(['x [M/Z]', 'y']);
  });

  const ntuples = (pages: readonly string[]) =>
    [
      '##TITLE= N',
      '##NTUPLES= NMR FID',
      '##VAR_NAME= TIME, FID/REAL, FID/IMAG, PAGE NUMBER',
      '##SYMBOL= X, R, I, N',
      '##VAR_DIM= 3, 3, 3, 2',
      '##UNITS= SECONDS, ARBITRARY UNITS, ARBITRARY UNITS,',
      '##FIRST= 0, 10, 20, 1',
      '##LAST= 0.2, 12, 22, 2',
      '##FACTOR= 0.1, 2, 1, 1',
      ...pages,
      '##END NTUPLES= NMR FID',
      '##END=',
    ].join('\n');

  test('pages with different variables are separate tables', async () => {
    const record = await readAs(
      'jcamp',
      ntuples([
        '##PAGE= N=1\n##DATA TABLE= (X++(R..R)), XYDATA $$ real\n0 5 6 7',
        '##PAGE= N=2\n##DATA TABLE= (X++(I..I)), XYDATA\n0 8 9 10',
      ]),
      {},
    );
    expect(columns(record)).toEqual(['TIME [SECONDS]', 'FID/REAL [ARBITRARY UNITS]']);
    expect(rows(record)[2]).toEqual({ TIME: 0.2, 'FID/REAL': 14 });
    expect(rows(record, 1)[2]).toEqual({ TIME: 0.2, 'FID/IMAG': 10 });
  });

  test('pages of the same form are one table with a page column', async () => {
    const page = (n: number) => `##PAGE= N=${n}\n##NPOINTS= 2\n##DATA TABLE= (XR..XR), PEAKS\n1,5 2,6`;
    const record = await readAs('jcamp', ntuples([page(1), page(2)]), {});
    expect(record.tables).toHaveLength(1);
    expect(rows(record)[3]).toEqual({ 'PAGE NUMBER': 2, TIME: 0.2, 'FID/REAL': 12 });
  });
});

describe('damaged data are refused', () => {
  test('fewer points than declared, unless the mapping gives the count', async () => {
    const error = await refusalAs('jcamp', block('400 100 110 110'), {});
    expect(error.message).toBe('table readings has 3 rows instead of 4');
    expect(error.hint).toContain('`count: 3`');
    expect((await readAs('jcamp', block('400 100 110 110'), { table: { count: 3 } })).tables[0]?.count).toBe(3);
  });

  test('a wrong check value', async () => {
    const error = await refusalAs('jcamp', block('400A00J0\n402A11%k'), {});
    expect(error.message).toContain('does not start with the last value of the line before');
    expect(error.where?.line).toBe(13);
  });

  test.each([
    ['a changed digit', '400 100 110\n904 110 108', 13],
    ['a missing point', '400 100\n404 110 108 108', 13],
    ['a missing line', '400A00J0\n406A10k', 13],
    ['a changed first x', '500 100 110\n404 110 108', 13],
    ['a changed last digit', '400 100\n402 110\n405 110 108', 14],
    ['a changed last digit of the first x', '401 100\n402 110\n404 110 108', 12],
  ])('%s shows in the x that lines start with', async (_, data, line) => {
    const error = await refusalAs('jcamp', block(data), {});
    expect(error.message).toContain('another x than its place among the points');
    expect(error.where?.line).toBe(line);
  });

  test('a changed last digit shows in numbers of points, of which check values are the last ones', async () => {
    const counted = (last: number) =>
      block(`200A00J0\n201A10%\n${last}A10k`)
        .replace('##XFACTOR= 1', '##XFACTOR= 2')
        .replace('##FIRSTX= 400', '##FIRSTX= 400.12')
        .replace('##LASTX= 406', '##LASTX= 406.12');
    expect(rows(await readAs('jcamp', counted(202), {})).map(({ y }) => y)).toEqual(POINTS.map(({ y }) => y));
    const error = await refusalAs('jcamp', counted(201), {});
    expect(error.message).toContain('another x than its place among the points');
    expect(error.where?.line).toBe(14);
  });

  test('rounded abscissas and counted points are accepted', async () => {
    const finer = (data: string) => block(data).replace('##LASTX= 406', '##LASTX= 401.2');
    const ys = async (text: string) => rows(await readAs('jcamp', text, {})).map(({ y }) => y);
    const expected = POINTS.map(({ y }) => y);
    expect(await ys(finer('400 100 110\n401 110 108'))).toEqual(expected);
    expect(await ys(finer('0 100 110\n2 110 108'))).toEqual(expected);
    expect(await ys(finer('3 100 110\n1 110 108'))).toEqual(expected);
  });

  test('a line that is not data', async () => {
    const error = await refusalAs('jcamp', block('400 100 110\nabc!'), {});
    expect(error.message).toContain('this is not a line of data: "abc!"');
  });

  test('an ambiguous comma', async () => {
    const text = block('400 100,5 110\n404 110 108').replace('##YFACTOR= 0.001', '##YFACTOR= 1');
    expect((await refusalAs('jcamp', text, {})).hint).toContain('decimal: ","');
    const record = await readAs('jcamp', text, { decimal: ',' });
    expect(rows(record)[0]).toEqual({ x: 400, y: 100.5 });
  });

  test('a repetition beyond the limit', async () => {
    const started = cpuMs();
    const error = await refusalAs('jcamp', block('400A00S99999999999'), {});
    expect(error.message).toMatch(/more than \d+ points/);
    expect(cpuMs() - started).toBeLessThan(2000);
  });

  test('an unknown distance, an unknown form, another format', async () => {
    const text = block('400 100 110 110 108').replace('##LASTX= 406\n', '');
    expect((await refusalAs('jcamp', text, {})).hint).toContain('##DELTAX');
    expect((await refusalAs('jcamp', block('').replace('(X++(Y..Y))', '(odd)'), {})).message).toContain('unknown form');
    expect((await refusalAs('jcamp', 'TITLE\tx\n', {})).message).toContain('the file is not JCAMP-DX');
  });
});

/** Writes integers as compactly as the standard allows. */
function compress(values: readonly number[]): string {
  const digit = (letters: string, n: number) => {
    const text = String(Math.abs(n));
    const first = Number(text[0]);
    return (n === 0 ? letters[0] : letters[n > 0 ? first : first + 9]) + (n === 0 ? '' : text.slice(1));
  };
  const lines: string[] = [];
  for (let from = 0; from < values.length - 1 || from === 0; from += 5) {
    const [first = 0, ...others] = values.slice(from, from + 6);
    let last = first;
    let line = `${from}${digit('@ABCDEFGHIabcdefghi', first)}`;
    let previous: string | undefined;
    let times = 1;
    const flush = () => {
      if (previous !== undefined) line += previous + (times > 1 ? digit(' STUVWXYZs', times) : '');
      times = 1;
    };
    for (const value of others) {
      const difference = digit('%JKLMNOPQRjklmnopqr', value - last);
      if (difference === previous) times++;
      else {
        flush();
        previous = difference;
      }
      last = value;
    }
    flush();
    lines.push(line);
  }
  return lines.join('\n');
}

test('compressed data are read as written, and as jcampconverter reads them', async () => {
  const value = fc.oneof(fc.integer({ min: -3, max: 3 }), fc.integer({ min: -99_999, max: 99_999 }));
  await fc.assert(
    fc.asyncProperty(fc.array(value, { minLength: 2, maxLength: 40 }), async (values) => {
      const text = `##TITLE= t\n##XUNITS= s\n##YUNITS= v\n##FIRSTX= 0\n##LASTX= ${values.length - 1}\n##NPOINTS= ${values.length}\n##XYDATA= (X++(Y..Y))\n${compress(values)}\n##END=`;
      const record = await readAs('jcamp', text, {});
      expect(rows(record).map(({ y }) => y)).toEqual(values);
      const other = convert(text, { noContour: true }).flatten[0]?.spectra[0]?.data['y'];
      expect(other?.map((y) => y + 0)).toEqual(values.map((y) => y + 0));
    }),
    { numRuns: 150 },
  );
});

test('mutated JCAMP-DX is read or refused', async () => {
  const base = Buffer.from(
    `${block('400A00J0%\n404A10k\n406A08')}\n##TITLE= P\n##PEAK TABLE= (XY..XY)\n1,2 3,4\n##END=`,
  );
  await fc.assert(
    fc.asyncProperty(mutations(base), async (bytes) => {
      await readOrRefuse(readAs('jcamp', bytes, {}));
    }),
    { numRuns: 150 },
  );
});

test('a title has one line, and the lines below it are unread', async () => {
  const record = await readAs('jcamp', '##TITLE= Gum\nScans; 45\n400 88.1\n##JCAMP-DX= 4.24\n##END=');
  expect(meta(record)).toEqual({ TITLE: 'Gum', 'JCAMP-DX': 4.24 });
  expect(record.unread).toMatchObject([{ from: 2, to: 3 }]);
});
