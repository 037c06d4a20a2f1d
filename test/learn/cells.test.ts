import { describe, expect, test } from 'vitest';
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
