import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { PlotOption } from '../../src/config/schema.js';
import { choosePlot, describePlot, isPlot } from '../../src/map/plot.js';
import type { Plot, Value } from '../../src/model.js';
import { drawSvg } from '../../src/plot/draw.js';
import { partial, record, table, v } from '../support/map-samples.js';

type Cell = string | number | null | Value;

const toValue = (cell: Cell): Value => (typeof cell === 'object' && cell !== null ? cell : v(cell));
const rowsOf = (rows: readonly (readonly Cell[])[]) => rows.map((row) => row.map(toValue));
const choose = (headings: readonly string[], rows: readonly (readonly Cell[])[], option?: PlotOption) =>
  choosePlot(record({}, table('readings', headings, rowsOf(rows))), option);

function plotOf(...given: Parameters<typeof choose>): Plot {
  const choice = choose(...given);
  if (!isPlot(choice)) throw new Error(`no plot: ${choice.reason}`);
  return choice;
}

function reasonOf(...given: Parameters<typeof choose>): string {
  const choice = choose(...given);
  if (isPlot(choice)) throw new Error(describePlot(choice));
  return choice.reason;
}

const seriesOf = (plot: Plot) => (plot.kind === 'heatmap' ? [] : plot.series);
const namesOf = (plot: Plot): string[] => seriesOf(plot).map(({ name }) => name);
const yOf = (plot: Plot): number[][] => seriesOf(plot).map(({ y }) => [...y]);
const upTo = <T>(n: number, make: (i: number) => T): T[] => Array.from({ length: n }, (_, i) => make(i));

describe('the kind of plot', () => {
  test('readings along an axis are a line, with the names and units of both', () => {
    const plot = plotOf(
      ['Wavelength (nm)', 'Absorbance (AU)'],
      [
        [400, 0.1],
        [410, 0.4],
        [420, 0.2],
      ],
    );
    expect(plot).toMatchObject({
      kind: 'line',
      x: { name: 'Wavelength', unit: 'nm', type: 'number' },
      y: { name: 'Absorbance', unit: 'AU' },
      notes: [],
    });
    expect(describePlot(plot)).toBe('line plot of Absorbance (AU) against Wavelength (nm)');
  });

  test('texts of readings that labfeed added are not names, numbers of sweeps are not readings', () => {
    const added = table(
      'readings',
      ['Day', 'Dose', 'Dose text'],
      rowsOf([
        ['2026-01-02', 5, ''],
        ['2026-01-03', null, 'HI'],
        ['2026-01-04', 7, ''],
      ]),
    );
    const columns = added.columns.map((column, n) => (n === 2 ? { ...column, invented: 'column' as const } : column));
    expect(choosePlot(record({}, { ...added, columns }))).toMatchObject({ x: { name: 'Day' } });
    expect(
      namesOf(
        plotOf(
          ['Sweep', 'f (Hz)', 'Z (Ohm)'],
          upTo(6, (i) => [i > 2 ? 2 : 1, i % 3, 5 + i]),
        ),
      ),
    ).toEqual(['Sweep 1', 'Sweep 2']);
  });

  test('events in a few rows of a log are not its axis', () => {
    const rows = upTo(6, (i) => [`2026-01-02T10:0${i}:00`, i % 3, i === 2 ? 'Inspection' : i === 4 ? 'Door' : '']);
    expect(plotOf(['When', 'T (°C)', 'Event'], rows)).toMatchObject({ kind: 'line', x: { type: 'date' } });
  });

  test('dates and times of day are axes', () => {
    const dates = plotOf(
      ['When', 'T (°C)'],
      upTo(6, (i) => [`2026-01-02T10:0${i}:00`, i % 3]),
    );
    expect(dates).toMatchObject({ kind: 'line', x: { type: 'date' } });
    expect(seriesOf(dates)[0]?.x[1]).toBe(Date.UTC(2026, 0, 2, 10, 1));
    expect(
      plotOf(
        ['at', 'T (°C)'],
        upTo(6, (i) => [`10:0${i}:30`, i % 3]),
      ).x.type,
    ).toBe('clock');
  });

  test('a column of days and one of times of day are one axis', () => {
    const plot = plotOf(
      ['Date', 'Time', 'T (°C)'],
      [
        ['2026-01-01', '23:30:00', 1],
        ['2026-01-02', '00:30:00', 2],
        ['2026-01-02', '01:30:00', 1],
      ],
    );
    expect([...(seriesOf(plot)[0]?.x ?? [])]).toEqual([23.5, 24.5, 25.5].map((h) => Date.UTC(2026, 0, 1) + h * 3.6e6));
  });

  test('dates with offsets are shown at the offset of the first, without a jump at the end of summer time', () => {
    const plot = plotOf(
      ['When', 'T (°C)'],
      [
        ['2026-10-25T02:30:00+02:00', 1],
        ['2026-10-25T02:00:00+01:00', 2],
        ['2026-10-25T02:30:00+01:00', 1],
      ],
    );
    expect(plot.kind).toBe('line');
    expect(seriesOf(plot)[0]?.x[1]).toBe(Date.UTC(2026, 9, 25, 3));
  });

  test('a status names no samples, and `Peak#` is no reading', () => {
    const rows = upTo(4, (i) => [`2026-01-02T10:0${i}:00`, i % 3, i === 2 ? 'CAL' : 'OK']);
    expect(plotOf(['When', 'T (°C)', 'Status'], rows)).toMatchObject({ kind: 'line', x: { name: 'When' } });
    expect(
      namesOf(
        plotOf(
          ['Peak#', 'RT', 'Area'],
          upTo(2, (i) => [i + 1, 3.2 + i, 500 - i]),
        ),
      ),
    ).not.toContain('Peak#');
  });

  test('an axis that turns back gives points, unless the mapping asks for a line', () => {
    const sweep: [number, number][] = [
      [0, 1],
      [1, 2],
      [2, 3],
      [1, 4],
      [0, 5],
      [-1, 2],
    ];
    expect(plotOf(['Potential (V)', 'Current (A)'], sweep).kind).toBe('points');
    expect(plotOf(['Potential (V)', 'Current (A)'], sweep, { x: 'Potential', y: ['Current'], kind: 'line' }).kind).toBe(
      'line',
    );
  });

  test('samples are bars, one for each row, also if a name repeats', () => {
    const plot = plotOf(
      ['Sample', 'Conc (mg/l)'],
      [
        ['a', 1],
        ['b', 2],
        ['b', 3],
      ],
    );
    expect(plot).toMatchObject({ kind: 'bar', categories: ['a', 'b', 'b'], x: { name: 'Sample' } });
  });

  test('samples that were measured one after the other are not a course in time', () => {
    const rows = upTo(6, (i) => [`2026-01-02T10:0${i}:00`, `s${i}`, i * i]);
    expect(plotOf(['Date', 'Sample', 'Conc (mg/l)'], rows).kind).toBe('bar');
  });

  test.each([
    [96, 8, 12],
    [384, 16, 24],
  ])('a plate of %i wells is a heat map of %i × %i', (wells, rows, columns) => {
    const at = (i: number) => `${String.fromCharCode(65 + Math.floor(i / columns))}${(i % columns) + 1}`;
    const plot = plotOf(
      ['Well', 'OD (AU)'],
      upTo(wells, (i) => [at(i), i / 10]),
    );
    expect(plot).toMatchObject({ kind: 'heatmap', rows, columns, y: { name: 'OD', unit: 'AU' } });
    expect(plot.kind === 'heatmap' && plot.values[columns]).toBe(columns / 10);
  });

  test('wells are found in any order and notation; wells without a value stay empty', () => {
    const plot = plotOf(
      ['well', 'OD'],
      upTo(12, (i) => [`h${String(12 - i).padStart(2, '0')}`, i === 3 ? v(null, 'OVRFLW') : i]),
    );
    if (plot.kind !== 'heatmap') throw new Error(plot.kind);
    expect([...plot.values.subarray(84)]).toEqual([11, 10, 9, 8, 7, 6, 5, 4, Number.NaN, 2, 1, 0]);
    expect(plot.values.subarray(0, 84).every(Number.isNaN)).toBe(true);
  });

  test('a heat map shows what was measured in most wells, not the layout', () => {
    const plot = plotOf(
      ['well', 'Standard', 'OD'],
      upTo(12, (i) => [`A${i + 1}`, i < 4 ? i : null, i]),
    );
    expect(plot).toMatchObject({ y: { name: 'OD' }, notes: ['Not shown: Standard'] });
  });

  test('curves of several wells, one below the other, are a series each', () => {
    const rows = upTo(5, (t) => ['A1', 'A2', 'A3'].map((well, n) => [t * 60, well, t + n])).flat();
    const plot = plotOf(['time (s)', 'well', 'value'], rows);
    expect(plot.kind).toBe('line');
    expect(namesOf(plot)).toEqual(['A1', 'A2', 'A3']);
    expect(yOf(plot)[2]).toEqual([2, 3, 4, 5, 6]);
  });

  test('without any axis, readings are points in the order of the file', () => {
    expect(plotOf(['weight (g)'], [[1.2], [1.1], [1.3]])).toMatchObject({ kind: 'points', x: { name: 'row' } });
    expect(
      plotOf(
        ['No.', 'weight (g)'],
        [
          [7, 1.2],
          [8, 1.1],
          [9, 1.3],
        ],
      ),
    ).toMatchObject({ x: { name: 'No.' }, y: { name: 'weight' } });
  });

  test('wavenumbers that the file lists from large to small are drawn so; decades are logarithmic', () => {
    expect(
      plotOf(
        ['x (1/CM)', 'y (%)'],
        upTo(9, (i) => [4000 - i, i]),
      ).x.isReversed,
    ).toBe(true);
    expect(
      plotOf(
        ['x (1/CM)', 'y (%)'],
        upTo(9, (i) => [400 + i, i]),
      ).x.isReversed,
    ).toBeUndefined();
    expect(
      plotOf(
        ['Frequency (Hz)', 'Z (Ohm)'],
        upTo(9, (i) => [10 ** i, i]),
      ).x.isLogarithmic,
    ).toBe(true);
    expect(
      plotOf(
        ['time (s)', 'Z (Ohm)'],
        upTo(9, (i) => [1 + i * 1000, i]),
      ).x.isLogarithmic,
    ).toBeUndefined();
  });
});

describe('what is plotted', () => {
  test('row numbers, identifiers and second times are not readings', () => {
    const rows = upTo(6, (i) => [i + 1, i * 60, i, 1000 + ((i * 7) % 5), 20 + i]);
    const plot = plotOf(['Pt', 'Time (s)', 'Elapsed (min)', 'Sample ID', 'T (°C)'], rows);
    expect({ x: plot.x.name, y: namesOf(plot) }).toEqual({ x: 'Time', y: ['T'] });
    expect(
      reasonOf(
        ['No.', 'Sample ID'],
        [
          [1, 7],
          [2, 9],
        ],
      ),
    ).toContain('row numbers');
  });

  test('one axis has one unit: series with another or no unit are left out, and named', () => {
    const plot = plotOf(
      ['t (s)', 'T1 (°C)', 'RH (%)', 'T2 (°C)', 'k'],
      upTo(6, (i) => [i, i + 1, 50 - i, i + 2, i * i]),
    );
    expect(namesOf(plot)).toEqual(['T1', 'T2']);
    expect(plot.notes).toEqual(['Not shown, because of another or no unit: RH and k']);
  });

  test('without units, only columns with similar names and values share an axis', () => {
    const rows = upTo(6, (i) => [i, i, i + 0.5, 1000 + i, i % 2]);
    expect(namesOf(plotOf(['time (s)', 'Ch1', 'Ch2', 'Ch3', 'Flow'], rows))).toEqual(['Ch1', 'Ch2']);
    expect(namesOf(plotOf(['time (s)', 'column 2', 'column 3', 'c', 'd'], rows))).toEqual(['column 2']);
  });

  test('many wells matter more than the temperature in front of them', () => {
    const plot = plotOf(
      ['time (s)', 'T (°C)', 'A1', 'A2', 'A3'],
      upTo(6, (i) => [i, 37 + (i % 2), i, 2 * i, 90 - i]),
    );
    expect(namesOf(plot)).toEqual(['A1', 'A2', 'A3']);
  });

  test('missing, censored and infinite values and stray text are gaps, never zeros', () => {
    const odd = [1, v(null, '< 0.1'), v(null, ''), Number.POSITIVE_INFINITY, 'remark', ...upTo(30, (i) => i)];
    const plot = plotOf(
      ['t (s)', 'y (V)'],
      odd.map((cell, i) => [i, cell]),
    );
    expect(yOf(plot)[0]?.slice(0, 6)).toEqual([1, Number.NaN, Number.NaN, Number.NaN, Number.NaN, 0]);
  });

  test('a column of units gives the unit, if it is the same in all rows', () => {
    const rows = (other: string) => upTo(6, (i) => [i, i, i < 3 ? 'C' : other]);
    expect(plotOf(['time (s)', 'Value', 'Unit'], rows('C')).y.unit).toBe('C');
    expect(reasonOf(['time (s)', 'Value', 'Unit'], rows('%'))).toBe(
      'the readings have different units, in the column "Unit"',
    );
    expect(
      reasonOf(
        ['time (s)', 'Value'],
        [
          [1, v(1, '1 g', 'g')],
          [2, v(2, '2 mg', 'mg')],
        ],
      ),
    ).toContain('no column');
  });

  test('more points than can be seen are thinned; the peak stays, and a note says so', () => {
    const plot = plotOf(
      ['t (s)', 'y (V)'],
      upTo(100_000, (i) => [i / 10, i === 54_321 ? 99 : i % 7]),
    );
    const [y = []] = yOf(plot);
    expect(y.length).toBeLessThanOrEqual(4000);
    expect(Math.max(...y)).toBe(99);
    expect(plot.notes[0]).toMatch(/^[\d,]+ of 100,000 points: minimum and maximum of each group$/);
  });

  test('a long gap survives thinning', () => {
    const plot = plotOf(
      ['t (s)', 'y (V)'],
      upTo(50_000, (i) => [i / 10, i > 20_000 && i < 30_000 ? null : i % 7]),
    );
    expect(yOf(plot)[0]?.filter(Number.isNaN).length).toBeGreaterThan(100);
  });

  test('the next table is used if the first cannot be plotted', () => {
    const first = table('settings', ['name', 'setting'], [[v('a'), v('b')]]);
    const second = table('curve', ['t (s)', 'y (V)'], rowsOf(upTo(9, (i) => [i, i * i])));
    expect(choosePlot(record({}, first, second))).toMatchObject({ kind: 'line', notes: ['From the table "curve"'] });
  });
});

describe('no plot, and why', () => {
  test.each<[string, readonly string[], readonly (readonly Cell[])[], string]>([
    ['one row', ['t (s)', 'y'], [[1, 2]], 'the table has fewer than two rows'],
    [
      'no numbers',
      ['a', 'b'],
      [
        ['x', 'y'],
        ['z', 'w'],
      ],
      'no column has numbers with one unit',
    ],
    [
      'all values missing',
      ['t (s)', 'y'],
      [
        [1, null],
        [2, v(null, '< 3')],
      ],
      'apart from times, row numbers and identifiers, no column has numbers with one unit',
    ],
    [
      'a constant axis',
      ['time (s)', 'y (V)'],
      [
        [5, 1],
        [5, 2],
      ],
      'all values of "time" are the same',
    ],
    [
      'names beside a column without a heading',
      ['column 1', 'column 2'],
      upTo(8, (i) => [`analyte ${i}`, 10 ** (i % 4)]),
      'the columns have no headings that say what was measured',
    ],
    [
      'numbers without a heading that are in no order',
      ['column 1', 'column 2'],
      upTo(12, (i) => [(i * 5) % 12, i % 3]),
      'the columns have no headings that say what was measured',
    ],
    [
      'too many samples',
      ['Sample', 'y (V)'],
      upTo(41, (i) => [`s${i}`, i % 5]),
      '41 bars, for the names in "Sample", are more than 40',
    ],
    [
      'names that repeat',
      ['Group', 'y (V)'],
      upTo(50, (i) => [`s${i % 5}`, i % 7]),
      'the names in "Group" repeat, and no column is an axis',
    ],
    [
      'numbers too large to draw',
      ['t (s)', 'y (V)'],
      [
        [1, 1e305],
        [2, -1e305],
      ],
      'the values of "y" are too large to draw',
    ],
  ])('%s', (_, headings, rows, reason) => {
    const option: PlotOption | undefined = reason.includes('"time"') ? { x: 'time', y: ['y'] } : undefined;
    expect(reasonOf(headings, rows, option)).toBe(reason);
  });

  test('a file without tables, plot: never, and a table of which only a part is in memory', () => {
    expect(choosePlot(record({}))).toEqual({ reason: 'the file has no table of readings' });
    expect(
      reasonOf(
        ['t', 'y'],
        [
          [1, 2],
          [2, 3],
        ],
        'never',
      ),
    ).toBe('the mapping has `plot: never`');
    const long = partial(
      table(
        'readings',
        ['t', 'y'],
        rowsOf([
          [1, 2],
          [2, 3],
        ]),
      ),
      10_000_000,
    );
    expect(choosePlot(record({}, long))).toEqual({
      reason: 'the table has 10,000,000 rows, too many to keep them all for a plot',
    });
  });

  test('only one point has both values', () => {
    expect(
      reasonOf(
        ['t (s)', 'y (V)'],
        [
          [1, 2],
          [2, null],
          [3, null],
        ],
        { x: 't', y: ['y'] },
      ),
    ).toBe('there is only one point');
  });
});

describe('the plot that the mapping describes', () => {
  const rows = upTo(6, (i) => [i, i * i, 50 - i, `s${i}`]);
  const headings = ['t (s)', 'T (°C)', 'RH (%)', 'name'];

  test('has its columns and kind; other units are left out, and named', () => {
    expect(plotOf(headings, rows, { x: 'T', y: ['RH'], kind: 'points' })).toMatchObject({
      kind: 'points',
      x: { name: 'T' },
    });
    expect(plotOf(headings, rows, { x: 'name', y: ['RH'] })).toMatchObject({ kind: 'bar' });
    const both = plotOf(headings, rows, { x: 't', y: ['T', 'RH'] });
    expect([namesOf(both), both.notes]).toEqual([['T'], ['Not shown, because of another or no unit: RH']]);
  });

  test('a column that the file lacks is named, with the nearest', () => {
    expect(choose(headings, rows, { x: 't', y: ['RHH'] })).toEqual({
      reason: 'the file has no column "RHH" (did you mean "RH"?)',
      column: 'RHH',
    });
  });

  test('a kind that does not fit the columns gives a reason', () => {
    expect(reasonOf(headings, rows, { x: 'name', y: ['T'], kind: 'line' })).toContain('no numbers or dates');
    expect(reasonOf(headings, rows, { x: 't', y: ['name'] })).toContain('no numbers');
    expect(reasonOf(headings, rows, { x: 'name', y: ['T'], kind: 'heatmap' })).toBe('"s0" in "name" is not a well');
  });
});

const oddNumber = fc.oneof(
  fc.double(),
  fc.integer(),
  fc.constantFrom(0, -0, 1e-300, 1e300, -1e300, 5e-324, Number.MAX_VALUE, Number.NaN, Number.NEGATIVE_INFINITY),
);
const oddText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 12 }),
  fc.constantFrom(
    'µ',
    '"',
    '\n',
    '<script>',
    ']]>',
    '\u0000',
    '\ud800',
    'A1',
    '2026-01-02',
    '2026-01-02T24:00:00',
    '25:61',
  ),
);
const oddCell = fc.oneof(oddNumber, oddText, fc.constant(null), fc.date().map(String));

test('whatever the table, there is a valid picture without NaN, or a reason', () => {
  const heading = fc.oneof(oddText, fc.constantFrom('time (s)', 'Well', 'Wavelength (nm)', 'y', 'T (°C)', 'Unit'));
  const tables = fc
    .array(heading, { minLength: 1, maxLength: 5 })
    .chain((headings) =>
      fc.tuple(
        fc.constant(headings),
        fc.array(fc.tuple(...headings.map((_, i) => (i % 2 === 0 ? oddCell : oddNumber))), { maxLength: 12 }),
      ),
    );
  fc.assert(
    fc.property(tables, fc.constantFrom('line', 'points', 'bar', 'heatmap', 'auto'), ([headings, rows], kind) => {
      const columns = table('readings', headings, []).columns.map(({ name }) => name);
      const option: PlotOption =
        kind === 'auto' ? kind : { x: columns[0] ?? '', y: columns.slice(1), kind: kind as 'line' };
      const choice = choose(headings, rows as Cell[][], option);
      if (!isPlot(choice)) expect(choice.reason).toMatch(/\w/);
      else {
        const shapes = drawSvg(choice, describePlot(choice)).replaceAll(/<(text|title)( [^>]*)?>[^<]*<\/\1>/g, '');
        expect(shapes).not.toMatch(/NaN|Infinity|undefined|<script|<text|<title/);
      }
    }),
    { numRuns: 400 },
  );
});
