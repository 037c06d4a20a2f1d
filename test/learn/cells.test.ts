import { describe, expect, test } from 'vitest';
import type { FileRecord } from '../../src/model.js';
import { columns, measured, meta, read, rows } from '../support/reading.js';

describe('a column without a name', () => {
  const wells = ['A01', 'A02', 'A03', 'B01', 'B02', 'B03'];

  test('of wells is called so', async () => {
    const record = await read(`\tCount\tArea\n${wells.map((well, n) => `${well}\t${n + 20}\t${n}.5\n`).join('')}`);
    expect(columns(record)).toEqual(['well', 'Count', 'Area']);
  });

  test('of wells keeps its place as name if another column has that one', async () => {
    const text = wells.map((well, n) => `${well}\t${n + 20}\tP${n}\n`).join('');
    expect(columns(await read(`\tCount\tWell\n${text}`))).toEqual(['column 1', 'Count', 'Well']);
  });

  test('of units has those of the numbers to its left', async () => {
    const record = await read('Test,Result,,Flag\nGLN,2.45,mmol/L,R\nLDH,88.09,U/L,R\nNH3,3.61,mmol/L,R\n');
    expect(columns(record)).toEqual(['Test', 'Result', 'unit', 'Flag']);
    expect(record.tables[0]?.rows[1]?.[1]).toMatchObject({ value: 88.09, unit: 'U/L' });
  });

  test('of units is called so in rows without names', async () => {
    const row = (test: string, unit: string, value: number) => `40\tS1\t${test}\t${unit}\t\t${value}\t0.${value}\n`;
    const record = await read([row('GLN', 'mmol/L', 245), row('LDH', 'U/L', 881), row('NH3', 'mmol/L', 361)].join(''));
    expect(rows(record)[1]).toMatchObject({ unit: 'U/L', 'column 6': 881 });
  });

  test.each([
    ['letters', ['A', 'V', 'A']],
    ['words and units', ['mg', 'none', 'mg']],
  ])('of %s has no units', async (_, [first, second, third]) => {
    const record = await read(`Test,Result,,Flag\nGLN,2.4,${first},R\nLDH,8.1,${second},R\nNH3,3.6,${third},R\n`);
    expect(columns(record)).toEqual(['Test', 'Result', 'column 3', 'Flag']);
  });
});

describe('names and rows of different lengths', () => {
  test('are assigned from the left if the rows have empty cells', async () => {
    const text = 'Well\tSample\tGroup\tReporter\tQuantity\tRank\n1\tS1\t\tFAM\n2\tS2\t\tFAM\n3\tS3\t\tVIC\n';
    expect(rows(await read(text))[2]).toMatchObject({ Well: 3, Sample: 'S3', Reporter: 'VIC' });
  });

  test('are not assigned if any cell can be missing', async () => {
    const text = 'Well\tSample\tReporter\tQuantity\tRank\n1\tS1\tFAM\n2\tS2\tFAM\n3\tS3\tVIC\n';
    expect(columns(await read(text))).toEqual(['column 1', 'column 2', 'column 3']);
  });
});

test('a percentage shows what the comma in other numbers is', async () => {
  const record = await read('Well\tShare\tCount\nA1\t0.91%\t22,904\nA2\t0.81%\t22,751\nA3\t9.16%\t22,477\n');
  expect(rows(record)[0]).toMatchObject({ Share: 0.91, Count: 22904 });
});

test('the words above plates are their labels, also where blanks separate the wells', async () => {
  const plate = '       1    2    3    4\nA     10   20   30   40\nB     50   60   70   80\n\n\n';
  const text = `Plate: P7\n\nSpot counts:\n${plate}Mean size  Unit = square 0,01 mm:\n${plate.replaceAll('0', '1')}`;
  const { mapping } = await measured(text);
  const record = await read(text);
  expect(mapping.table).toMatchObject({
    grid: true,
    every: expect.stringContaining('Spot counts|Mean size') as string,
  });
  expect(rows(record)[0]).toEqual({ well: 'A1', 'Spot counts': 10, 'Mean size  Unit = square 0,01 mm': 11 });
  expect(meta(record)).toMatchObject({ Plate: 'P7' });
});

describe('a number that stands for no value', () => {
  const readTable = (head: string, cells: readonly string[], name = 'Wind') =>
    read(`${head}Time,${name},T\n${cells.map((cell, n) => `${n},${cell},2${n}.5`).join('\n')}\n`);
  const numbersIn = (record: FileRecord) => rows(record).map(({ Wind = null }) => Wind);

  test.each([
    ['', '9999.99', ['3.1', '9999.99', '3.3', '9999.99']],
    ['', '99.99', ['3.1', '99.99', '3.3', '99.99', '3.4', '3.5']],
    ['', '1e34', ['1e34', '3.1', '1e34', '3.3']],
    ['missing value,999\n\n', '999', ['3.1', '999', '3.3', '3.4']],
    ['_FillValue,1e35\n\n', '1e35', ['3.1', '1e35', '3.3', '3.4']],
  ])('is no reading: %j, %s', async (head, fill, cells) => {
    const record = await readTable(head, cells);
    expect(numbersIn(record)).toEqual(cells.map((cell) => (cell === fill ? null : Number(cell))));
    expect(record.assumed).toBeUndefined();
  });

  test.each([
    ['9999.99', ['3.1', '9999.99', '3.3', '3.4']],
    ['99.99', ['3.1', '99.99', '99.99', '3.4']],
  ])('is said if nothing proves it: %s', async (fill, cells) => {
    const record = await readTable('', cells);
    expect(numbersIn(record)).toEqual(cells.map(Number));
    expect(record.assumed).toEqual([`${fill} in the column "Wind" may mean that there is no value`]);
  });

  test.each([
    ['Purity (%)', ['0.1', '99.99', '99.99', '0.2', '0.3', '0.4']],
    ['Wind', ['97.1', '99.99', '98.2', '99.99', '97.5']],
    ['Wind', ['12', '999', '14', '999', '15']],
    ['Wind', ['9997', '9999', '9998', '9999', '9996']],
  ])('is a reading like the others: %s, %j', async (name, cells) => {
    const record = await readTable('', cells, name);
    expect(rows(record).map((row) => Object.values(row)[1])).toEqual(cells.map(Number));
    expect(record.assumed).toBeUndefined();
  });
});
