import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

/** Lines between rows, and columns that only their positions show. */

describe('words between rows', () => {
  test('are no rows and no end of the table, whatever they are in the next file', async () => {
    const text = (words: string) =>
      `Time,Flow,Power\n0.0,8.89,26.308\n0.5,4.97,30.377\n${words}\n1.0,2.32,24.698\n1.5,10.54,24.252\n`;
    const { mapping } = await measured(text('Pump on'));
    expect(rows(await read(text('Pump on')))).toHaveLength(4);
    expect(rows(await read(text('*** pause'), mapping)).map(({ Time }) => Time)).toEqual([0, 0.5, 1, 1.5]);
  });

  test('are also found in columns with blanks between them', async () => {
    const text =
      'Sample   Flow  Power\nS-101    8.89   26.3\nS-102    4.97   30.4\nLamp changed\nS-103    2.32   24.7\n';
    expect(rows(await read(text)).map(({ Sample }) => Sample)).toEqual(['S-101', 'S-102', 'S-103']);
  });

  test('are groups if the first row has one too, also of a single row', async () => {
    const text =
      'Sample;Flow;Power\nControl\nS-101;4.81;22.5\nS-102;14.82;29.9\nTreated\nS-103;13.56;22.4\nHeated\nS-104;3.5;2.4\n';
    const record = await read(text);
    expect(rows(record).map(({ section, Sample }) => [section, Sample])).toEqual([
      ['Control', 'S-101'],
      ['Control', 'S-102'],
      ['Treated', 'S-103'],
      ['Heated', 'S-104'],
    ]);
    expect([...record.meta.keys()]).toEqual([]);
  });

  test('that recur in another table do not mix the two', async () => {
    const part = (names: string, from: number) =>
      `${names}\nGroup A\n0.0,${from},1.5\n0.5,${from + 1},2.5\nGroup B\n1.0,${from + 2},3.5\n1.5,${from + 3},4.5\n`;
    const record = await read(`${part('Time [s],Flow,Power', 10)}\n${part('Time [s],Area,Height', 20)}`);
    expect(rows(record, 0).map(({ Flow }) => Flow)).toEqual([10, 11, 12, 13]);
    expect(rows(record, 1).map(({ Area }) => Area)).toEqual([20, 21, 22, 23]);
    expect(record.tables).toHaveLength(2);
  });

  test('leave the units between the names and the first group', async () => {
    const text = 'Sample;Flow;Power\n;[g/L];[W]\nGroup A\nS-101;4.16;33.39\nS-102;13.38;22.51\n';
    expect(columns(await read(text))).toEqual(expect.arrayContaining(['Flow [g/L]', 'Power [W]']));
  });
});

test('numbers that name the columns of the next table are no row', async () => {
  const part = (name: string, from: number) =>
    `${name},1,2,3\nS-1,${from}.5,1.25,3.5\nS-2,${from}.6,1.26,4.5\nS-3,${from}.7,1.27,5.5\n`;
  for (const gap of ['\n', '[Peaks]\n']) {
    const record = await read(`Operator: Ada\nGain: 80\n\n${part('Sample', 8)}${gap}${part('Peak', 9)}`);
    expect(record.tables.map(({ count }) => count)).toEqual([3, 3]);
  }
});

test('pages with the same number do not mix two tables', async () => {
  const pages = (names: string, from: number) =>
    `${names}\nA1  ${from}.5  1.1\nA2  ${from}.6  1.2\n\nPage 2\n${names}\nA3  ${from}.7  1.3\nA4  ${from}.8  1.4\n`;
  const record = await read(`Results\n${pages('Well  Flow  Power', 1)}Peaks\n${pages('Well  Area  Height', 2)}`);
  expect(rows(record, 0).map(({ Flow }) => Flow)).toEqual([1.5, 1.6, 1.7, 1.8]);
  expect(rows(record, 1).map(({ Area }) => Area)).toEqual([2.5, 2.6, 2.7, 2.8]);
});

describe('names with single blanks between them, above columns that end with them', () => {
  test('may contain blanks', async () => {
    const text =
      'Well Glucose [g/L] Lactate [mmol/L]\nA1            2.91           21.079\nA2           16.31           27.661\n';
    const record = await read(text);
    expect(columns(record)).toEqual(['Well', 'Glucose [g/L]', 'Lactate [mmol/L]']);
    expect(rows(record)[1]).toEqual({ Well: 'A2', Glucose: 16.31, Lactate: 27.661 });
  });

  test('may stand above a date and a time', async () => {
    const text =
      'Operator: Ada\n\nDate/Time           Flow Power\n2024-05-17 10:00:00 15.3  21.4\n2024-05-17 10:01:00  8.1  24.4\n';
    const record = await read(text);
    expect(columns(record)).toEqual(['Date/Time', 'Flow', 'Power']);
    expect(rows(record)[1]).toMatchObject({ Flow: 8.1, Power: 24.4 });
    expect(meta(record)).toMatchObject({ Operator: 'Ada' });
  });

  test('may leave out that of the first column', async () => {
    const record = await read('   Flow [g/L] Power [W]\nA1       9.23      24.0\nA2      12.09      28.0\n');
    expect(columns(record)).toEqual(['column 1', 'Flow [g/L]', 'Power [W]']);
  });

  test('of a single row prove its columns where both end together', async () => {
    const text = 'No Flow [g/L] Power [W]\n1       12.32     21.24\n';
    expect(columns(await read(text))).toEqual(['No', 'Flow [g/L]', 'Power [W]']);
  });
});

describe('units in cells without a name', () => {
  test.each([
    ['commas', 'Sample,Flow,,Power,\nS-1,1.20,g/L,75.1,W\nS-2,1.30,g/L,76.2,W\nS-3,1.40,g/L,77.3,W\n'],
    [
      'blanks',
      'Sample   Flow         Power\nS-1      1.20   g/L    75.1   W\nS-2      1.30   g/L    76.2   W\nS-3      1.40   g/L    77.3   W\n',
    ],
  ])('are those of the numbers to their left, between %s', async (_, text) => {
    const record = await read(text);
    const cells = record.tables[0]?.rows.map((row) =>
      row.map(({ value, unit }) => (unit ? `${value} ${unit}` : value)),
    );
    expect(columns(record).map((name) => name.replace(/ \[.*/, ''))).toEqual([
      'Sample',
      'Flow',
      'Flow unit',
      'Power',
      'Power unit',
    ]);
    expect(cells?.[1]).toEqual(['S-2', '1.3 g/L', 'g/L', '76.2 W', 'W']);
    expect([...record.meta.keys()]).toEqual([]);
  });

  test('do not shift the names where single blanks join two columns', async () => {
    const text =
      'Sample Flow     Power      Load       Shift\nS-1    7.94 g/L  32.8 W    41.46 kN 52.1 mV\nS-2    9.08 g/L  *****     49.77 kN 56.0 mV\nS-3    9.04 g/L  32.1 W    39.85 kN 63.5 mV\n';
    const record = await read(text).catch(() => undefined);
    const at = record?.tables[0]?.columns.findIndex(({ name }) => name === 'Power') ?? -1;
    if (at >= 0) expect(record?.tables[0]?.rows[0]?.[at]?.value).toBe(32.8);
  });
});

test('a letter behind some of the numbers of a column is a flag, not a unit', async () => {
  const record = await read('Sample,Flow,Power\nS-1,1.20,75.1\nS-2,15.53 H,76.2\nS-3,1.40,77.3\n');
  expect(record.tables[0]?.rows[1]?.[1]).toEqual({ value: 15.53, text: '15.53 H' });
  const mixed = await read('Setting,Flow,Output\nS-1,1.20,5.5 V\nS-2,1.53,2.5 A\nS-3,1.40,7.5 V\n');
  expect(mixed.tables[0]?.rows[1]?.[2]).toMatchObject({ value: 2.5, unit: 'A' });
});

test('a label ends a column of numbers if other lines follow it', async () => {
  const numbers = Array.from({ length: 20 }, (_, n) => `      ${(n * 37) % 91}`).join('\n');
  const labelled = `$DATE:\n2016-05-18 11:55:14\n$DATA:\n0 19\n${numbers}\n$ROI:\n2\n16 27\n`;
  await expect(read(labelled)).rejects.toThrow('looks like another row');
  const record = await read(labelled, (await measured(labelled)).mapping);
  expect(record.tables.map((table) => table.rows.length)).toEqual([20]);
  const paused = await read(`$DATE:\n2016-05-18 11:55:14\n$DATA:\n0 39\n${numbers}\npaused\n${numbers}\n`);
  expect(paused.tables.map((table) => table.rows.length)).toEqual([40]);
});

test('words before empty cells, directly above other names, are not the last row', async () => {
  const lots = 'L-1,2024-02-08,23.4,106.1\nL-2,2024-01-28,23.3,106.3\nL-3,2024-01-29,23.4,106.2';
  const text = `Operator,Ada,,\n\nCalibrator,,,\nLot,Expires,Temp,Volts\n${lots}\nReporter,,,\nLot,Expires,Volts,Result\nL-9,2024-03-01,583.9,Pass\n`;
  const { mapping } = await measured(text);
  expect(rows(await read(text, mapping)).map(({ Lot }) => Lot)).toEqual(['L-1', 'L-2', 'L-3']);
  const empty = `Operator,Ada,,\n\nCalibrator,,,\nLot,Expires,Temp,Volts\n${lots}\nL-4,,,\n`;
  expect(rows(await read(empty, (await measured(empty)).mapping)).map(({ Lot }) => Lot)).toEqual([
    'L-1',
    'L-2',
    'L-3',
    'L-4',
  ]);
});
