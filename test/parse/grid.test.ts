import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { columns, read, refusal, rows } from '../support/reading.js';

type Grid = NonNullable<ParseMapping['table']>;

/** Plates are written with commas here, so that they can be seen. */
const mapping = (table: Grid = {}): ParseMapping => ({ delimiter: ',', table: { grid: true, ...table } });
const plate = (text: string, table?: Grid) => read(text, mapping(table));

describe('a plate', () => {
  test('is one row a well, named by its letter and number', async () => {
    expect(rows(await plate(',1,2\nA,0.1,0.2\nB,0.3,0.4\n'))).toEqual([
      { well: 'A1', value: 0.1 },
      { well: 'A2', value: 0.2 },
      { well: 'B1', value: 0.3 },
      { well: 'B2', value: 0.4 },
    ]);
  });

  test('may have zeros before its numbers, a sign above its letters, and two letters a row', async () => {
    const record = await plate('<>,01,02\nAA,5,6\nAB,7,8\n');
    expect(rows(record).map(({ well }) => well)).toEqual(['AA1', 'AA2', 'AB1', 'AB2']);
  });

  test('leaves out its empty wells', async () => {
    expect(rows(await plate(',1,2,3\nA,0.1,,\nB,,,0.4\n'))).toEqual([
      { well: 'A1', value: 0.1 },
      { well: 'B3', value: 0.4 },
    ]);
  });

  test('keeps the text of a well without a value', async () => {
    const record = await read(',1,2\nA,0.1,OVRFLW\n', { ...mapping(), missing: 'OVRFLW' });
    expect(rows(record)[1]).toEqual({ well: 'A2', value: null, 'value text': 'OVRFLW' });
  });

  test('without the numbers of its columns is none', async () => {
    const error = await refusal('Name,Value\nA,0.1\n', mapping());
    expect(error.message).toContain('not the header of a plate');
    expect(error.where?.line).toBe(1);
    expect(error.hint).toContain('header');
  });

  test('begins where the mapping says that its numbers are', async () => {
    const record = await plate('Plate 7,x\n,1,2\nA,0.1,0.2\n', { header: '/^,1,2/' });
    expect(rows(record)).toHaveLength(2);
  });

  test('has its columns renamed and its rows filtered as those of any table', async () => {
    const record = await plate(',1,2\nA,5,6\nB,7,8\n', {
      columns: { od: { from: 'value', unit: 'AU' } },
      where: { well: '/^B/' },
      count: 4,
    });
    expect(columns(record)).toEqual(['well', 'od [AU]']);
    expect(rows(record)).toEqual([
      { well: 'B1', od: 7 },
      { well: 'B2', od: 8 },
    ]);
  });
});

describe('what was measured in a well', () => {
  test('stands right of the plate, in lines that are stacked', async () => {
    const record = await plate(',1,2\nA,S1,S2,Well ID\n,10,20,Conc\nB,S3,,Well ID\n,30,40,Conc\n');
    expect(rows(record)).toEqual([
      { well: 'A1', 'Well ID': 'S1', Conc: 10 },
      { well: 'A2', 'Well ID': 'S2', Conc: 20 },
      { well: 'B1', 'Well ID': 'S3', Conc: 30 },
      { well: 'B2', 'Well ID': null, Conc: 40 },
    ]);
  });

  test('or is named in order, for lines that are stacked', async () => {
    const text = ',1,2\nA,1,2\n,3,4\nB,5,6\n,7,8\n';
    const repeated = ',1,2\nA,1,2\nA,3,4\nB,5,6\nB,7,8\n';
    for (const lines of [text, repeated]) {
      expect(rows(await plate(lines, { grid: ['Ch1', 'Ch2'] }))).toEqual([
        { well: 'A1', Ch1: 1, Ch2: 3 },
        { well: 'A2', Ch1: 2, Ch2: 4 },
        { well: 'B1', Ch1: 5, Ch2: 7 },
        { well: 'B2', Ch1: 6, Ch2: 8 },
      ]);
    }
  });

  test('or for plates side by side, where the numbers begin again', async () => {
    for (const text of [',1,2,,1,2\nA,1,2,,3,4\nB,5,6,,7,8\n', ',1,2,1,2\nA,1,2,3,4\nB,5,6,7,8\n']) {
      expect(rows(await plate(text, { grid: ['Ch1', 'Ch2'] }))).toEqual([
        { well: 'A1', Ch1: 1, Ch2: 3 },
        { well: 'A2', Ch1: 2, Ch2: 4 },
        { well: 'B1', Ch1: 5, Ch2: 7 },
        { well: 'B2', Ch1: 6, Ch2: 8 },
      ]);
    }
  });

  test('each of the plates side by side has its label to its right', async () => {
    const record = await plate(',1,2,,1,2,\nA,1,2,OD,3,4,FL\n');
    expect(rows(record)).toEqual([
      { well: 'A1', OD: 1, FL: 3 },
      { well: 'A2', OD: 2, FL: 4 },
    ]);
  });

  test.each([
    ['every', '/^Read (?<label>.+)$/'],
    ['every', ['/^Read (?<label>.+)$/', 'Other']],
  ])('or is caught by a group called label in %s', async (key, pattern) => {
    const text = 'Read 450\n,1,2\nA,1,2\n\nRead 620\n,1,2\nA,3,4\n';
    expect(rows(await plate(text, { [key]: pattern }))).toEqual([
      { well: 'A1', '450': 1, '620': 3 },
      { well: 'A2', '450': 2, '620': 4 },
    ]);
  });

  test('also in after', async () => {
    const text = 'Lot 7\nRead 450\n,1,2\nA,1,2\n';
    expect(rows(await plate(text, { after: '/^Read (?<label>.+)$/' }))).toEqual([
      { well: 'A1', '450': 1 },
      { well: 'A2', '450': 2 },
    ]);
  });

  test('is never lost to another value of the same well: that is refused', async () => {
    const stacked = await refusal(',1,2\nA,1,2\n,3,4\n', mapping());
    expect(stacked.message).toContain('well A1 has two values');
    expect(stacked.where?.line).toBe(3);
    expect(stacked.hint).toContain('grid: [');
    await expect(plate(',1,2,,1,2\nA,1,2,,3,4\n')).rejects.toThrow('well A1 has two values');
    const blocks = 'Plate 1\n,1,2\nA,1,2\n\nPlate 2\n,1,2\nA,3,4\n';
    await expect(plate(blocks, { every: 'Plate' })).rejects.toThrow('well A1 has two values');
  });

  test('is not something else in each line: that is no plate', async () => {
    const lines = Array.from({ length: 1100 }, (_, n) => `${n},label ${n}\n`);
    const error = await refusal(`1\n${lines.join('')}`, mapping());
    expect(error.message).toContain('more wells than plates can have');
  });

  test('may be called well, or like a column to its left', async () => {
    const record = await plate('T,1,2\n30,1,2,well\n');
    expect(columns(record)).toEqual(['T', 'well', 'well (2)']);
    expect(rows(record)).toEqual([
      { T: 30, well: 'A1', 'well (2)': 1 },
      { T: 30, well: 'A2', 'well (2)': 2 },
    ]);
  });
});

describe('a plate without letters', () => {
  test('has its rows counted, and anew after an empty line', async () => {
    const text = 't,1,2\n0,1,2\n,3,4\n\n60,5,6\n,7,8\n';
    expect(rows(await plate(text, { until: 'eof' }))).toEqual([
      { t: 0, well: 'A1', value: 1 },
      { t: 0, well: 'A2', value: 2 },
      { t: 0, well: 'B1', value: 3 },
      { t: 0, well: 'B2', value: 4 },
      { t: 60, well: 'A1', value: 5 },
      { t: 60, well: 'A2', value: 6 },
      { t: 60, well: 'B1', value: 7 },
      { t: 60, well: 'B2', value: 8 },
    ]);
  });

  test('has a row that was not read where a line is bare delimiters', async () => {
    const record = await plate('1,2\n5,6\n,\n7,8\n');
    expect(rows(record).map(({ well, value }) => [well, value])).toEqual([
      ['A1', 5],
      ['A2', 6],
      ['C1', 7],
      ['C2', 8],
    ]);
  });

  test('goes on to AA after Z', async () => {
    const text = `1\n${'5\n'.repeat(28)}`;
    const wells = rows(await read(text, { format: 'text', table: { grid: true } })).map(({ well }) => well);
    expect(wells.slice(24)).toEqual(['Y1', 'Z1', 'AA1', 'AB1']);
  });
});

describe('cells left of a plate', () => {
  test('are ordinary columns, and hold until others come', async () => {
    const text = 'Time,T (°C),1,2\n0:00:00,30.1,1,2\n,,3,4\n\n0:05:00,30.2,5,6\n';
    const record = await plate(text, {
      until: 'eof',
      columns: { elapsed: { from: 1, type: 'duration' }, temperature: { from: 'T', unit: '°C' } },
    });
    expect(columns(record)).toEqual(['elapsed [s]', 'temperature [°C]', 'well', 'value']);
    expect(rows(record).map((row) => Object.values(row))).toEqual([
      [0, 30.1, 'A1', 1],
      [0, 30.1, 'A2', 2],
      [0, 30.1, 'B1', 3],
      [0, 30.1, 'B2', 4],
      [300, 30.2, 'A1', 5],
      [300, 30.2, 'A2', 6],
    ]);
  });

  test('stand beside the letter as well', async () => {
    const record = await plate(',Dye,1,2\nA,FAM,1,2\nB,,3,4\nC,HEX,5,6\n');
    expect(columns(record)).toEqual(['Dye', 'well', 'value']);
    expect(rows(record).map(({ Dye, well }) => `${Dye} ${well}`)).toEqual([
      'FAM A1',
      'FAM A2',
      'FAM B1',
      'FAM B2',
      'HEX C1',
      'HEX C2',
    ]);
  });

  test('may differ from one block to the next', async () => {
    const text = 'Plate\nDye,1,2\nFAM,1,2\n\nPlate\nT,1,2\n30,3,4\n';
    expect(rows(await plate(text, { every: 'Plate' }))).toEqual([
      { Dye: 'FAM', T: null, well: 'A1', value: 1 },
      { Dye: 'FAM', T: null, well: 'A2', value: 2 },
      { Dye: null, T: 30, well: 'A1', value: 3 },
      { Dye: null, T: 30, well: 'A2', value: 4 },
    ]);
  });
});

describe('several blocks of a plate', () => {
  const text = 'Layout\n,1,2\nA,S1,S2,ID\n\nResults\n,1,2\nA,0.1,0.2,OD\nB,0.3,0.4,OD\n';

  test('join in the well', async () => {
    expect(rows(await plate(text, { every: '/^(Layout|Results)$/' }))).toEqual([
      { well: 'A1', ID: 'S1', OD: 0.1 },
      { well: 'A2', ID: 'S2', OD: 0.2 },
      { well: 'B1', ID: null, OD: 0.3 },
      { well: 'B2', ID: null, OD: 0.4 },
    ]);
  });

  test('are rows of their own where a group tells them apart', async () => {
    const record = await plate(text.replaceAll(/ID|OD/g, 'x'), { every: '/^(?<block>Layout|Results)$/' });
    expect(rows(record)).toHaveLength(6);
    expect(rows(record)[2]).toEqual({ block: 'Results', well: 'A1', x: 0.1 });
  });

  test('the same value in both is one value', async () => {
    const same = 'P\n,1,2\nA,1,2\n\nP\n,1,2\nA,1,2\nB,3,4\n';
    expect(rows(await plate(same, { every: 'P' }))).toHaveLength(4);
  });
});

describe('an empty line within a plate', () => {
  test('is refused where letters go on below it, for a blank line ends a table', async () => {
    const error = await refusal(',1,2\nA,1,2\n\nB,3,4\n', mapping());
    expect(error.where?.line).toBe(4);
    expect(error.hint).toContain('`until: eof`');
    expect(rows(await plate(',1,2\nA,1,2\n\nB,3,4\n', { until: 'eof' }))).toHaveLength(4);
  });

  test('also where there are none, and numbers go on', async () => {
    const error = await refusal('t,1,2\n0,1,2\n\n60,3,4\n', mapping());
    expect(error.where?.line).toBe(4);
  });

  test('keeps the letter of lines that are stacked', async () => {
    const record = await plate(',1,2\nA,1,2,OD\n\n,3,4,FL\n', { until: 'eof' });
    expect(rows(record)[0]).toEqual({ well: 'A1', OD: 1, FL: 3 });
  });

  test('ends it where something else follows', async () => {
    for (const below of ['Mean,5.5,0.7', 'Curve,Formula,A', 'end', ',1,2']) {
      expect(rows(await plate(`,1,2\nA,1,2\n\n${below}\n`))).toHaveLength(2);
    }
  });
});
