import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

const FACTS = 'Operator: Ada\nMethod: fast\nLamp: D2\n\n';

describe('columns of fixed width', () => {
  test('that touch are separated where numbers end', async () => {
    const text = [
      ' Time  Mass Signal',
      '290.0 19.56  213.7',
      '300.0 -5.57 -295.2',
      '310.0-16.16-1399.4',
      '320.0  9.91  147.4',
      '330.0100.25  -12.0',
    ].join('\n');
    const record = await read(`${FACTS}${text}\n`);
    expect(rows(record).slice(2)).toEqual([
      { Time: 310, Mass: -16.16, Signal: -1399.4 },
      { Time: 320, Mass: 9.91, Signal: 147.4 },
      { Time: 330, Mass: 100.25, Signal: -12 },
    ]);
    expect(meta(record)).toEqual({ Operator: 'Ada', Method: 'fast', Lamp: 'D2' });
  });

  test('with empty cells keep the cells after them in their columns', async () => {
    const text = [
      '  Temperature  Current  Heatflow',
      '        217.0   13.970     2.945',
      '        227.0              4.294',
      '        237.0    5.679          ',
      '        247.0   18.766     6.934',
      '        257.0    5.750     3.653',
    ].join('\n');
    expect(rows(await read(`${FACTS}${text}\n`)).slice(1, 3)).toEqual([
      { Temperature: 227, Current: null, Heatflow: 4.294 },
      { Temperature: 237, Current: 5.679, Heatflow: null },
    ]);
  });

  test.each(['-----|----|-------|--|-----------', '----- ---- ------- -- -----------'])(
    'are those of the dashes below their names: %s',
    async (ruler) => {
      const text = [
        'RTime Type  Area   Grp Name',
        '[min]     [mAU*s]',
        ruler,
        '2.114 BB    45.118     Theobromine',
        '3.402 VV   812.451     Caffeine',
        '5.871 BB    12.704     Tannic acid',
      ].join('\n');
      const record = await read(`${FACTS}${text}\n`);
      expect(columns(record)).toEqual(['RTime [min]', 'Type', 'Area [mAU*s]', 'Grp', 'Name']);
      expect(rows(record)[2]).toEqual({ RTime: 5.871, Type: 'BB', Area: 12.704, Grp: null, Name: 'Tannic acid' });
    },
  );

  test('whose names do not fit above them are not read with wrong names', async () => {
    const text = [
      'Temperature Current Heatflow of cell',
      '  217.0   13.970     2.945',
      '  227.0              4.294',
      '  237.0    5.679     1.125',
      '  247.0   18.766     6.934',
    ].join('\n');
    const record = await read(`${FACTS}${text}\n`).catch(() => undefined);
    expect(rows(record ?? { meta: new Map(), tables: [], unread: [] })).not.toContainEqual(
      expect.objectContaining({ Current: 4.294 }),
    );
  });

  test('can have names with single blanks between them', async () => {
    const text =
      ' Distance Pressure Potential\n    228.0   23.400      1.74\n    229.0   10.041      1.22\n    230.0   85.664      1.37\n';
    expect(columns(await read(FACTS + text))).toEqual(['Distance', 'Pressure', 'Potential']);
  });
});

describe('above the names of columns', () => {
  test.each([
    ['with a character', '[s];[mg];[mV]\nTime;Mass;Signal\n1.0;2.5;3.5\n2.0;2.6;3.6\n3.0;2.7;3.7\n'],
    [
      'with blanks',
      '   s    mg     mV\nTime  Mass  Signal\n 1.0   2.5     3.5\n 2.0   2.6     3.6\n 3.0   2.7     3.7\n',
    ],
  ])('a row of units is read %s', async (_, text) => {
    expect(columns(await read(FACTS + text))).toEqual(['Time [s]', 'Mass [mg]', 'Signal [mV]']);
  });

  test('parts of some names are joined to them', async () => {
    const text =
      '      Gas            Total\nTime  Flow   Status  Counts\n0.0   25.31  0       22.29\n5.0   55.17  0       13.91\n10.0  64.88  0       44.03\n';
    const record = await read(FACTS + text);
    expect(columns(record)).toEqual(['Time', 'Gas Flow', 'Status', 'Total Counts']);
    expect([...record.meta.keys()]).toEqual(['Operator', 'Method', 'Lamp']);
  });

  test('two titles of groups are neither a fact nor parts of single names', async () => {
    const text =
      '        Channel A     Channel B\n Time   Temp   Flow   Temp   Flow\n  0.0  41.46  44.61  28.29  20.58\n  2.0  46.10  25.31  20.89  27.36\n  4.0  22.16  29.44  47.30   0.66\n';
    const record = await read(FACTS + text);
    expect([...record.meta.keys()]).toEqual(['Operator', 'Method', 'Lamp']);
    expect(columns(record)).toEqual(['Time', 'Temp', 'Flow', 'Temp (2)', 'Flow (2)']);
  });

  test('averages have the units of their columns', async () => {
    const text = 'Time (s),Signal (mV)\nMean,2.5\nMax,3.7\n1.0,1.5\n2.0,2.6\n3.0,3.7\n4.0,2.2\n';
    const record = await read(FACTS + text);
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 4],
      ['statistics', 2],
    ]);
    expect(columns(record, 1)).toEqual(['Time (s)', 'Signal [mV]']);
  });
});

test('the mapping of a row of units above the names says so', async () => {
  const { mapping } = await measured('[s];[mg]\nTime;Mass\n1.0;2.5\n2.0;2.6\n3.0;2.7\n');
  expect(mapping.table).toMatchObject({ headerRows: 2, units: 'firstRow' });
});
