import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

const ROWS = ['Sample,Area,RT (min)', 'S1,1066.0,3.045', 'S2,1092.6,3.011', 'S3,1075.8,3.055'];
const STATISTICS = ['Mean,1078.1,3.037', 'SD,13.4,0.023', '%RSD,1.2,0.76'];

describe('statistics below rows', () => {
  test.each([
    ['directly', [...ROWS, ...STATISTICS]],
    ['after a blank line', [...ROWS, '', ...STATISTICS, '', 'End of report']],
    ['below rows that start with numbers', [...ROWS, ...STATISTICS].map((line) => line.replace(/^S(\d)/, '$1'))],
  ])('are a table of their own: %s', async (_, lines) => {
    const record = await read(['Method: HPLC-7', '', ...lines].join('\n'));
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 3],
      ['statistics', 2],
      ['statistics without unit', 1],
    ]);
    expect(rows(record).map(({ Area }) => Area)).toEqual([1066, 1092.6, 1075.8]);
    expect(columns(record, 1)).toEqual(['Sample', 'Area', 'RT [min]']);
    expect(rows(record, 1)[1]).toEqual({ Sample: 'SD', Area: 13.4, RT: 0.023 });
    expect(columns(record, 2)).toEqual(['Sample', 'Area', 'RT (min)']);
    expect(rows(record, 2)[0]).toEqual({ Sample: '%RSD', Area: 1.2, 'RT (min)': 0.76 });
    expect(meta(record)['Method']).toBe('HPLC-7');
  });

  test('can have names in other scripts, below a marked line of units', async () => {
    const text = [
      '名前,厚さ,試験力',
      '単位,mm,N',
      'PP-1,4.02,1312.5',
      'PP-2,4.01,1298.0',
      '平均,4.015,1305.3',
      '標準偏差,0.007,10.2',
    ];
    const record = await read(text.join('\n'));
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 2],
      ['statistics', 2],
    ]);
    expect(columns(record)).toEqual(['名前', '厚さ [mm]', '試験力 [N]']);
    expect(rows(record)[1]).toEqual({ 名前: 'PP-2', 厚さ: 4.01, 試験力: 1298 });
  });

  test.each([
    ['with tabs', '\t'],
    ['with semicolons', ';'],
    ['with blanks', '   '],
  ])('are known by their numbers if their names are not known: %s', async (_, sign) => {
    const lines = [
      ...['Minta,Terület (mm2),Idő (min)', 'A1,1066.0,3.045', 'A2,1092.6,3.011', 'A3,1075.8,3.055'],
      ...['Átlag,1078.1,3.037', 'Szórás,13.4,0.023', 'Arány,1.2,0.76'],
    ];
    const record = await read(lines.map((line) => line.replaceAll(',', sign)).join('\n'));
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 3],
      ['statistics', 2],
      ['statistics without unit', 1],
    ]);
    expect(rows(record).map(({ Minta }) => Minta)).toEqual(['A1', 'A2', 'A3']);
  });

  test('are no rows that are a mean by chance, or in one column only', async () => {
    const flat = ['Probe;T;p', 'A;20.1;5.0', 'B;20.1;5.1', 'C;20.1;5.1'];
    expect(rows(await read(flat.join('\n')))).toHaveLength(3);
    const one = ['Probe;T;p', 'A;20.4;5.0', 'B;70.6;9.1', 'C;45.5;3.3'];
    expect(rows(await read(one.join('\n')))).toHaveLength(3);
    const numbered = ['Probe;T;p', 'A1;20.4;5.0', 'A2;70.6;9.2', 'A3;45.5;7.1'];
    expect(rows(await read(numbered.join('\n')))).toHaveLength(3);
  });

  test('can be marked in the column of wells or replicates, above or among the readings', async () => {
    const text = [
      'Run,Group,Well,Sample,Conc.',
      ...[',ITR,Average,,871.3', 'R1,,A1,"lot 31, thawed",865.2', 'R2,,A2,Mean,868.6', 'R3,,A3,lot 32,880.1'],
    ];
    const { mapping } = await measured(text.join('\n'));
    const record = await read(
      [...text, '"R4, late",,A4,lot 33,890.2', '"R4, late",,Average,,891.0'].join('\n'),
      mapping,
    );
    expect(rows(record).map((row) => row['Conc.'])).toEqual([865.2, 868.6, 880.1, 890.2]);
    expect(rows(record, 1).map((row) => row['Conc.'])).toEqual([871.3, 891]);
  });

  test('are left out of the next file, too, whatever its number of rows', async () => {
    const { mapping } = await measured([...ROWS, ...STATISTICS].join('\n'));
    const next = await read([...ROWS, 'S4,1001.5,3.1', ...STATISTICS].join('\n'), mapping);
    expect(next.tables.map(({ count }) => count)).toEqual([4, 2, 1]);
  });

  test('can have any name below a heading', async () => {
    const text = [
      'Sample;Size;Unit;R1;Unit',
      ...['1/3;1.02;g;45.2;ppm', '2/3;1.03;g;44.8;ppm', '3/3;1.01;g;45.9;ppm'],
      ...['Statistics;;;;', 'Mean;;;45.30;ppm', 's;;;0.557;ppm', 'srel;;;1.229;%', 'Outliers;;;0;'],
    ].join('\n');
    const { mapping } = await measured(text);
    const record = await read(text.replace('3/3;', '3/3;1.01;g;45.9;ppm\ns 4;'), mapping);
    expect(record.tables.map(({ name, count }) => [name, count])).toEqual([
      ['readings', 4],
      ['statistics', 4],
    ]);
    expect(record.tables[1]?.rows.map((row) => row[3]?.unit)).toEqual(['ppm', 'ppm', '%', undefined]);
  });

  test('can be among the rows, with further ones below them', async () => {
    const [header = '', ...samples] = ROWS;
    const text = [header, ...samples, 'Mean,1078.1,3.037', 'n,3,3', 'n,1001.2,3.2', 'T1,1002.3,3.3', 'Mean,1001,3.1'];
    const record = await read(text.join('\n'));
    expect(rows(record).map(({ Sample }) => Sample)).toEqual(['S1', 'S2', 'S3', 'T1']);
    expect(columns(record, 2)).toEqual(['Sample', 'Area', 'RT (min)']);
    expect(rows(record, 2)).toHaveLength(2);
    const own = await read('Statistic,Area (mm2)\nMean,12.1\nSD,0.1\nSkewness,0.2\nPeak,15.2\n');
    expect(own.tables).toHaveLength(1);
  });

  test('between blanks, a row with too few cells has no columns', async () => {
    const record = await read('No   Weight   Water\n1   0.51  0.23\n2   0.49  0.22\n3   0.50  0.24\n\nMean   0.23\n');
    expect(record.tables.map(({ rows }) => rows.length)).toEqual([3]);
  });

  test('have the units in the line below the names', async () => {
    const text = ',Label,Load,Strain\n,,(N),(%)\n1,P-1,1523.4,3.4\n2,P-2,1498.7,3.2\nMean,,1511.1,3.3\n';
    const record = await read(text);
    expect([columns(record, 0).slice(2), columns(record, 1).slice(2)]).toEqual([
      ['Load [N]', 'Strain [%]'],
      ['Load [N]', 'Strain [%]'],
    ]);
  });

  test('standards and people are no statistics', async () => {
    const text = 'Sample,Area,RT (min)\nS1,1066.0,3.045\nStd 1,1092.6,3.011\nMax Muster,1075.8,3.055\nStandard,1,2\n';
    expect((await read(text)).tables.map(({ count }) => count)).toEqual([4]);
  });
});

describe('sums below rows are no readings', () => {
  const PEAKS = ['Peak,RT,Area,Amount', '1,1.216,38.441,4.13', '2,3.883,5120.93,812.45', '3,5.450,1.20,0.00'];
  const areas = async (...lines: string[]) => rows(await read(lines.join('\n'))).map(({ Area }) => Area);

  test.each([
    ['in the second column', ',Total,5160.571,816.58'],
    ['in the first column', 'Total,,5160.571,816.58'],
    ['without a name', ',,5160.571,816.58'],
  ])('%s', async (_, sums) => {
    expect(await areas(...PEAKS, sums)).toEqual([38.441, 5120.93, 1.2]);
    expect(await areas('Sample: S1', '', ...PEAKS, sums, '', 'End of report')).toEqual([38.441, 5120.93, 1.2]);
    // The next file has other peaks, one of them without a number.
    const { mapping } = await measured([...PEAKS, sums].join('\n'));
    const next = await read([...PEAKS, ',5.9,7,2', sums].join('\n'), mapping);
    expect(rows(next).map(({ Area }) => Area)).toEqual([38.441, 5120.93, 1.2, 7]);
  });

  test('but a last row with other numbers is one', async () => {
    expect(await areas(...PEAKS, ',,5160.6,816.58')).toHaveLength(4);
    expect(await areas(...PEAKS, ',,5160.571,99.1')).toHaveLength(4);
    expect(await areas(...PEAKS, '4,6.1,5160.571,816.58')).toHaveLength(4);
  });
});

describe('properties of columns between names and rows', () => {
  const LINES = [
    'Date/Time,Store,Cellar',
    'Logger,TGP-4500,TGP-4017',
    'Serial Number,845120,845121',
    'Unit,°C,%RH',
    'Minimum,18.2,33.1',
    '2023-05-01 00:00:00,20.2,43.4',
    '2023-05-01 01:00:00,22.8,53.2',
    '2023-05-01 02:00:00,21.8,52.2',
  ];

  test('are a table of their own, and the units are those of the readings', async () => {
    const record = await read(LINES.join('\n'));
    expect(columns(record)).toEqual(['Date/Time', 'Store [°C]', 'Cellar [%RH]']);
    expect(rows(record)).toHaveLength(3);
    expect(rows(record)[0]).toEqual({ 'Date/Time': '2023-05-01T00:00:00', Store: 20.2, Cellar: 43.4 });
    expect(rows(record, 1).map((row) => Object.values(row))).toEqual([
      ['Logger', 'TGP-4500', 'TGP-4017'],
      ['Serial Number', 845120, 845121],
      ['Minimum', 18.2, 33.1],
    ]);
  });

  test('may differ in the next file', async () => {
    const { mapping } = await measured(LINES.join('\n'));
    const next = LINES.map((line) => line.replace('845120', '99').replace('18.2', '-4'));
    expect((await read(next.join('\n'), mapping)).tables.map(({ count }) => count)).toEqual([3, 3]);
  });
});

test('sensors can be numbered above the properties of their columns', async () => {
  const text = ',Time,1,2\nS/N,,771203,771204\nType,,TGU,TGV\nProperty,,Temperature,Humidity\n';
  const record = await read(
    `${text}1,2021-07-26 14:26:00,20.8,53.4\n2,2021-07-26 14:56:00,20.9,53.3\n3,2021-07-26 15:26:00,20.9,53.2\n`,
  );
  expect(columns(record)).toEqual(['column 1', 'Time', '1', '2']);
  expect(rows(record)[0]).toEqual({ 'column 1': 1, Time: '2021-07-26T14:26:00', '1': 20.8, '2': 53.4 });
  expect(rows(record, 1).map((row) => row['1'])).toEqual([771203, 'TGU', 'Temperature']);
});

test('a short row does not end a table, and is not read as another one', async () => {
  const text = 'Time,Voltage,Current,Note\n0,0.6,0.4,\n1,0.5,0.1,spike\n2,0.4,0.4\n3,0.3\n4,0.2,0.3\n5,0.2,0.3,\n';
  const record = await read(text);
  expect(record.tables.map(({ count }) => count)).toEqual([6]);
  expect(rows(record)[3]).toEqual({ Time: 3, Voltage: 0.3, Current: null, Note: null });
});

test('a last row without its empty cells is a row, not facts, also if rows start with a name', async () => {
  const text = [
    'Well,Pos,Ct,Slope,Offset,Result,Reported,Remark,Low,High,',
    'A1,1,20.61,0.0046,1.141,767,767 cp/mL,,155,4898,',
    'A2,2,20.74,0.0055,1.056,213,213 cp/mL,,155,4898,',
    'A3,3,20.59,0.0056,1.046,96,96 cp/mL,,155,4898,',
    'A4,4,20.88,0.0060,1.021,18,< 40 cp/mL',
  ];
  const record = await read(`Operator,Ada\n\n${text.join('\n')}\n`);
  expect(record.tables.map(({ count }) => count)).toEqual([4]);
  expect(rows(record)[3]).toMatchObject({ Well: 'A4', Result: 18, High: null });
  expect(meta(record)).toEqual({ Operator: 'Ada' });
});

describe('facts beside readings', () => {
  const facts = [
    'Record Length,2500,Points',
    'Sample Interval,4.0E-06,s',
    'Source,CH1,',
    'Vertical Scale,0.5,V',
    'Firmware,FV:v24,',
  ];
  const text = (left: readonly string[]) =>
    Array.from(
      { length: 14 },
      (_, n) => `${left[n] ?? ',,'},${n === 0 ? '-0000.005000' : `00${n}.000001`},${(n / 8).toFixed(3)},`,
    ).join('\n');

  test('are read as facts, and the readings as a table', async () => {
    const record = await read(text(facts));
    expect(meta(record)).toEqual({
      'Record Length': 2500,
      'Sample Interval': 4e-6,
      Source: 'CH1',
      'Vertical Scale': 0.5,
      Firmware: 'FV:v24',
    });
    expect(record.meta.get('Vertical Scale')?.unit).toBe('V');
    expect(record.tables.map(({ count }) => count)).toEqual([14]);
    expect(Object.values(rows(record)[0] ?? {})).toEqual([-0.005, 0]);
    expect(Object.values(rows(record)[13] ?? {})).toEqual([13.000001, 1.625]);
    expect(record.unread).toEqual([]);
  });

  test.each([
    ['right of the names and rows', 't (s),F (N),,Sample,S-17\n0,1,,Speed,5\n1,2,,Width,12.5\n2,3,,Mode,B\n3,4,,,\n'],
    [
      'right, below a heading',
      't (s),F (N),,Parameter,Value\n0,1,,Sample,S-17\n1,2,,Speed,5\n2,3,,Width,12.5\n3,4,,Mode,B\n',
    ],
    ['left', 'Sample,S-17,t (s),F (N)\nSpeed,5,0,1\nWidth,12.5,1,2\nMode,B,2,3\n,,3,4\n'],
    ['in one cell each', 't (s),F (N),,Sample: S-17\n0,1,,Speed: 5\n1,2,,Width: 12.5\n2,3,,Mode: B\n3,4,,\n'],
  ])('are no columns: %s', async (_, beside) => {
    const record = await read(`${beside}\n`);
    expect(meta(record)).toEqual({ Sample: 'S-17', Speed: 5, Width: 12.5, Mode: 'B' });
    expect(columns(record)).toEqual(['t [s]', 'F [N]']);
    expect(rows(record).map((row) => Object.values(row))).toEqual([0, 1, 2, 3].map((n) => [n, n + 1]));
    expect(record.unread).toEqual([]);
  });

  test('are not read where other lines have cells in their columns', async () => {
    const beside = 't,F,,Parameter,Value\n0,1,,Setting,5\n1,2,,Width,12.5\n2,3,,Mode,B\n';
    const record = await read(`Report,,,Checked,yes\n\n${beside}`);
    expect(columns(record)).toEqual(['t', 'F']);
    expect(meta(record)).not.toHaveProperty('Width');
    expect(record.unread.at(-1)).toMatchObject({ kind: 'unread', from: 3, to: 6 });
  });

  test('are rows of a second table if they have names and numbers', async () => {
    const record = await read('t,F,,Peak,Area\n0,1,,Benzene,5\n1,2,,Toluene,12.5\n2,3,,Xylene,7\n3,4,,,\n');
    expect(meta(record)).toEqual({});
  });

  test('are not the names of groups of rows', async () => {
    const groups = ['A,1,', ',,', 'B,2,', ',,', 'C,3,', ',,', 'D,4,'];
    expect(meta(await read(text(groups)))).toEqual({});
  });
});

test('properties of columns do not get the units of the readings', async () => {
  const rows = '0,21.5,22.5\n5,21.6,22.6\n10,21.7,22.7\n';
  const record = await read(`Time (s),T1 (°C),T2 (°C)\nSerial number,8451,8452\n${rows}`);
  expect(columns(record)).toEqual(['Time [s]', 'T1 [°C]', 'T2 [°C]']);
  expect(columns(record, 1)).toEqual(['Time (s)', 'T1 (°C)', 'T2 (°C)']);
});
