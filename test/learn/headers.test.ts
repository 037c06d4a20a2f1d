import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

describe('names above rows', () => {
  test('leave the last columns without a name if they have empty cells there', async () => {
    const record = await read('Time,Weight,Temp, ,,\n0,2.9,30, ,30,100\n1,2.8,31, ,31,99\n2,2.7,32, ,32,98\n');
    expect(columns(record)).toEqual(['Time', 'Weight', 'Temp', 'column 5', 'column 6']);
    expect(rows(record)[1]).toMatchObject({ Temp: 31, 'column 6': 99 });
  });

  test.each([
    ['[Data]', '#,s,V,A'],
    ['Cell 4', '[1],[s],[V],[A]'],
  ])('may have the title %s between them and the units', async (title, units) => {
    const text = `Operator,Ada\nSegment,Time,E,I\n${title}\n${units}\n1,1,0.1,0.001\n1,2,0.2,0.002\n1,3,0.3,0.003\n`;
    const record = await read(text);
    expect(columns(record).slice(2)).toEqual(['E [V]', 'I [A]']);
    expect(meta(record)).toEqual({ Operator: 'Ada' });
  });

  test('are not the units of settings', async () => {
    const settings = 'Model,DX\nVertical Units,V,V,V\nVertical Offset,0,1,2\nVertical Scale,2,5,5\n\n';
    const record = await read(`${settings}TIME,CH1,CH2\n0,1,2\n1,2,3\n2,3,4\n`);
    expect(record.tables).toHaveLength(1);
    expect(columns(record)).toEqual(['TIME', 'CH1', 'CH2']);
    expect(meta(record)).toMatchObject({ 'Vertical Units': 'V', 'Vertical Offset': 0 });
  });
});

describe('settings of channels directly above rows', () => {
  const data = '-0.2,0.12,1.9\n-0.1,0.14,1.95\n0,0.15,1.97\n0.1,0.16,1.99\n';

  test.each([
    ['HOffset,0.0,0.0\nHUnit,s,s\nVScale,0.5,2.0\nVUnit,V,V\n', { VScale: 0.5, VUnit: 'V', 'VUnit (2)': 'V' }],
    ['Range,10V,10V\nFilter,Line,Off\n\n', { Filter: 'Line', 'Filter (2)': 'Off' }],
    ['Offset,0.0,0.1\nMode,A,A\n', { Offset: 0, Mode: 'A', 'Mode (2)': 'A' }],
  ])('are no names: %j', async (settings, facts) => {
    const record = await read(`Model,DX\n${settings}${data}`);
    expect(columns(record)).toEqual(['column 1', 'column 2', 'column 3']);
    expect(rows(record)).toHaveLength(4);
    expect(meta(record)).toMatchObject(facts);
  });

  test.each([
    ['Range,10,10\nTime,Temp,Temp\n', ['Time', 'Temp', 'Temp (2)']],
    ['Time,A,B\nUnit,V,V\n', ['Time', 'A [V]', 'B [V]']],
    ['"Mode = ","NO","NO"\n"Time (s)","Load (V)","Load (V)"\n', ['Time [s]', 'Load [V]', 'Load (2) [V]']],
  ])('do not hide names: %j', async (names, expected) => {
    expect(columns(await read(`${names}${data}`))).toEqual(expected);
  });
});

describe('a line of words above rows with single blanks', () => {
  const data = '1 2.5 3\n2 2.6 3\n3 2.7 4\n4 2.8 4\n5 2.9 5\n';

  test.each(['Tungsten lamp test', '# measured by Ada\n# second scan', '# Sample A seven', 'Time (s) Temp (C) x'])(
    '%j is no header',
    async (title) => {
      const record = await read(`${title}\n${data}`);
      expect(columns(record)).toEqual(['column 1', 'column 2', 'column 3']);
      expect(rows(record)).toHaveLength(5);
    },
  );

  test('is one if it has a name for each column', async () => {
    expect(columns(await read(`x Temp Flow\n${data}`))).toEqual(['x', 'Temp', 'Flow']);
  });
});

test('a row of another kind directly below the names is none of theirs', async () => {
  const other = '1,0.02,0.33,1465.46,00:02:51,00:41:50,1,Rest';
  const data = Array.from({ length: 6 }, (_, n) => `,,${n + 1},00:00:0${n},0.5,4.3,2026-03-06 12:37:2${n},0.1`);
  const record = await read([',,Point,Time,Current(A),Voltage(V),Date,Power(W)', other, ...data].join('\n'));
  expect(rows(record)).toHaveLength(6);
  expect(rows(record)[0]).toMatchObject({ Point: 1, Current: 0.5, Voltage: 4.3 });
});

test('parts below a drawn line and below a fact have no section of these, and the next file may have another value', async () => {
  const part = (n: number) => `${n},${n + 1},3\n${n + 1},${n + 2},4\n${n + 2},${n + 3},5\n`;
  const text = (value: string) => `step: 3\n*****\nt,v,i\n[s],[V],[A]\n${part(1)}average power: ${value}\n${part(7)}`;
  const { mapping } = await measured(text('-2.165E+1'));
  const record = await read(text('-3.5E+1'), mapping);
  expect(rows(record)).toHaveLength(6);
  expect(rows(record)[0]).toMatchObject({ t: 1, v: 2, i: 3 });
});

describe('names of columns', () => {
  test('may be the times at which each column was measured', async () => {
    const record = await read(
      ',,Raw Data (483/530)\nWell,Content,0 h,0 h 30 min,1 h\nA01,X1,1021,1310,1801\nA02,B,211,213,214\nA03,B,9,8,7\n',
    );
    expect(columns(record)).toEqual(['Well', 'Content', '0 h', '0 h 30 min', '1 h']);
    expect(rows(record)[0]).toMatchObject({ '0 h 30 min': 1310, '1 h': 1801 });
  });

  test('may start with a # for the number of the row, which is no comment', async () => {
    const part = (n: number) => `\n\t#\tName\tRT\tArea\n1\t1\ta\t2.3\t10${n}.2\n2\t2\tb\t2.4\t20${n}.2\n`;
    const record = await read(`Compound 1:  Caffeine\n${part(1)}\nCompound 2:  Theobromine\n${part(2)}`);
    expect(rows(record)).toMatchObject([{ Area: 101.2 }, { Area: 201.2 }, { Area: 102.2 }, { Area: 202.2 }]);
  });

  test('may be numbered signals in a list above', async () => {
    const signals = 'Sig1\tTime (min)\nSig2\tTemperature (°C)\nSig3\tHeat Flow (mW)\n';
    const record = await read(
      `Operator\tAda\nSize\t5.43\tmg\n${signals}StartOfData\n0.1\t40.1\t-0.2\n0.2\t40.2\t-0.3\n0.3\t40.3\t-0.4\n`,
    );
    expect(columns(record)).toEqual(['Time [min]', 'Temperature [°C]', 'Heat Flow [mW]']);
  });

  test('do not have the label of the groups above them', async () => {
    const rows = '0\t1.25\t-60.1\n0.1\t1.31\t-60.2\n0.2\t1.29\t-60.0\n';
    const record = await read(
      `"Mode=Gap Free"\n"Signals="\t"IN 0"\t"IN 1"\n"Time (s)"\t"Trace (pA)"\t"Trace (mV)"\n${rows}`,
    );
    expect(columns(record)).toEqual(['Time [s]', 'IN 0 Trace [pA]', 'IN 1 Trace [mV]']);
  });

  test('may end with a unit and a dot', async () => {
    const record = await read('"Wavelength nm.","Abs."\n"400.00","0.12"\n"401.00","0.13"\n"402.00","0.14"\n');
    expect(columns(record)).toEqual(['Wavelength [nm]', 'Abs.']);
  });

  test('are not pairs of name and value', async () => {
    const record = await read(
      'User: USER,Path: C:\\Data\\,Test ID: 14\nTest Name: ELISA,Date: 13/05/2019,Time: 10:12:33\nID1: p4,ID2: ,ID3: \nAbsorbance,Values are shown as OD\n',
    );
    expect(record.tables).toEqual([]);
    expect(meta(record)).toMatchObject({ 'Test ID': 14, 'Test Name': 'ELISA', ID1: 'p4' });
  });
});
