import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { columns, read, refusal, rows } from '../support/reading.js';

type Grid = NonNullable<ParseMapping['table']>;

/** Plates with commas instead of tabs, for readability. */
const mapping = (table: Grid = {}): ParseMapping => ({ delimiter: ',', table: { grid: true, ...table } });
const plate = (text: string, table?: Grid) => read(text, mapping(table));

describe('a plate', () => {
  test('becomes one row per well', async () => {
    expect(rows(await plate(',1,2\nA,0.1,0.2\nB,0.3,0.4\n'))).toEqual([
      { well: 'A1', value: 0.1 },
      { well: 'A2', value: 0.2 },
      { well: 'B1', value: 0.3 },
      { well: 'B2', value: 0.4 },
    ]);
  });

  test('may have leading zeros, a character above its letters, and two-letter rows', async () => {
    const record = await plate('<>,01,02\nAA,5,6\nAB,7,8\n');
    expect(rows(record).map(({ well }) => well)).toEqual(['AA1', 'AA2', 'AB1', 'AB2']);
  });

  test('with a number above it that continues no plate is reported', async () => {
    const { unread } = await plate(',1,2,3,,1,8,3\nA,0.1,0.2,0.3,,0.4,,\nB,0.1,0.2,0.3,,0.5,,\n', { grid: ['a', 'b'] });
    expect(unread).toContainEqual({ kind: 'partly read', from: 1, to: 1 });
  });

  test('has no rows for empty wells', async () => {
    expect(rows(await plate(',1,2,3\nA,0.1,,\nB,,,0.4\n'))).toEqual([
      { well: 'A1', value: 0.1 },
      { well: 'B3', value: 0.4 },
    ]);
  });

  test.each([
    ['under its header', ',1,2\n,________\nA,0.1,0.2\nB,0.3,0.4\n,________\n'],
    ['under each column', ',1,2\n---,---,---\nA,0.1,0.2\nB,0.3,0.4\n'],
    ['under numbers without letters', ',1,2\n,--------\n,0.1,0.2\n,0.3,0.4\n'],
  ])('has no row for a line drawn %s', async (_, text) => {
    expect(rows(await plate(text)).map(({ well, value }) => `${well} ${value}`)).toEqual([
      ...['A1 0.1', 'A2 0.2', 'B1 0.3', 'B2 0.4'],
    ]);
  });

  test('has no wells for totals beside and below it', async () => {
    const record = await plate(',1,2,S\nA,10,20,30\nB,30,40,70\nS,40,60,\n');
    expect(columns(record)).toEqual(['well', 'value']);
    expect(rows(record).map(({ well, value }) => `${well} ${value}`)).toEqual(['A1 10', 'A2 20', 'B1 30', 'B2 40']);
    expect(record.unread).toMatchObject([
      { kind: 'partly read', from: 2, to: 3 },
      { kind: 'left out', from: 4 },
    ]);
  });

  test('may have a number as its label', async () => {
    expect(columns(await plate(',1,2\nA,0.1,0.2,600\nB,0.3,0.4,600\n'))).toEqual(['well', '600']);
  });

  test('keeps the text of a well without a value', async () => {
    const record = await read(',1,2\nA,0.1,OVRFLW\n', { ...mapping(), missing: 'OVRFLW' });
    expect(rows(record)[1]).toEqual({ well: 'A2', value: null, 'value text': 'OVRFLW' });
  });

  test('needs a header with column numbers', async () => {
    const error = await refusal('Name,Value\nA,0.1\n', mapping());
    expect(error.message).toContain('not the header of a plate');
    expect(error.where?.line).toBe(1);
    expect(error.hint).toContain('header');
  });

  test('starts at the header that the mapping gives', async () => {
    const record = await plate('Plate 7,x\n,1,2\nA,0.1,0.2\n', { header: '/^,1,2/' });
    expect(rows(record)).toHaveLength(2);
  });

  test('supports `columns` and `where`', async () => {
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

describe('the label of a measurement', () => {
  test('is to the right of stacked lines', async () => {
    const record = await plate(',1,2\nA,S1,S2,Well ID\n,10,20,Conc\nB,S3,,Well ID\n,30,40,Conc\n');
    expect(rows(record)).toEqual([
      { well: 'A1', 'Well ID': 'S1', Conc: 10 },
      { well: 'A2', 'Well ID': 'S2', Conc: 20 },
      { well: 'B1', 'Well ID': 'S3', Conc: 30 },
      { well: 'B2', 'Well ID': null, Conc: 40 },
    ]);
  });

  test('is given in order for stacked lines', async () => {
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

  test('is given in order for plates side by side', async () => {
    for (const text of [',1,2,,1,2\nA,1,2,,3,4\nB,5,6,,7,8\n', ',1,2,1,2\nA,1,2,3,4\nB,5,6,7,8\n']) {
      expect(rows(await plate(text, { grid: ['Ch1', 'Ch2'] }))).toEqual([
        { well: 'A1', Ch1: 1, Ch2: 3 },
        { well: 'A2', Ch1: 2, Ch2: 4 },
        { well: 'B1', Ch1: 5, Ch2: 7 },
        { well: 'B2', Ch1: 6, Ch2: 8 },
      ]);
    }
  });

  test('is to the right of each plate side by side', async () => {
    const record = await plate(',1,2,,1,2,\nA,1,2,OD,3,4,FL\n');
    expect(rows(record)).toEqual([
      { well: 'A1', OD: 1, FL: 3 },
      { well: 'A2', OD: 2, FL: 4 },
    ]);
  });

  test.each([
    ['every', '/^Read (?<label>.+)$/'],
    ['every', ['/^Read (?<label>.+)$/', 'Other']],
  ])('is captured by a group named `label` in %s', async (key, pattern) => {
    const text = 'Read 450\n,1,2\nA,1,2\n\nRead 620\n,1,2\nA,3,4\n';
    expect(rows(await plate(text, { [key]: pattern }))).toEqual([
      { well: 'A1', '450': 1, '620': 3 },
      { well: 'A2', '450': 2, '620': 4 },
    ]);
  });

  test('is captured by a group in `after`', async () => {
    const text = 'Lot 7\nRead 450\n,1,2\nA,1,2\n';
    expect(rows(await plate(text, { after: '/^Read (?<label>.+)$/' }))).toEqual([
      { well: 'A1', '450': 1 },
      { well: 'A2', '450': 2 },
    ]);
  });

  test('two values of one well are refused', async () => {
    const stacked = await refusal(',1,2\nA,1,2\n,3,4\n', mapping());
    expect(stacked.message).toContain('well A1 has two values');
    expect(stacked.where?.line).toBe(3);
    expect(stacked.hint).toContain('grid: [');
    await expect(plate(',1,2,,1,2\nA,1,2,,3,4\n')).rejects.toThrow('well A1 has two values');
    const blocks = 'Plate 1\n,1,2\nA,1,2\n\nPlate 2\n,1,2\nA,3,4\n';
    await expect(plate(blocks, { every: 'Plate' })).rejects.toThrow('well A1 has two values');
  });

  test('more wells than plates can have are refused', async () => {
    const lines = Array.from({ length: 1100 }, (_, n) => `${n},label ${n}\n`);
    const error = await refusal(`1\n${lines.join('')}`, mapping());
    expect(error.message).toContain('more wells than a plate can have');
  });

  test('may equal `well` or the name of another column', async () => {
    const record = await plate('T,1,2\n30,1,2,well\n');
    expect(columns(record)).toEqual(['T', 'well', 'well (2)']);
    expect(rows(record)).toEqual([
      { T: 30, well: 'A1', 'well (2)': 1 },
      { T: 30, well: 'A2', 'well (2)': 2 },
    ]);
  });
});

describe('a plate without letters', () => {
  test('counts its rows from A after each empty line', async () => {
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

  test('counts a line of delimiters as an unmeasured row', async () => {
    const record = await plate('1,2\n5,6\n,\n7,8\n');
    expect(rows(record).map(({ well, value }) => [well, value])).toEqual([
      ['A1', 5],
      ['A2', 6],
      ['C1', 7],
      ['C2', 8],
    ]);
  });

  test('continues with AA after Z', async () => {
    const text = `1\n${'5\n'.repeat(28)}`;
    const wells = rows(await read(text, { format: 'text', table: { grid: true } })).map(({ well }) => well);
    expect(wells.slice(24)).toEqual(['Y1', 'Z1', 'AA1', 'AB1']);
  });
});

describe('cells to the left of a plate', () => {
  test('are columns, filled down', async () => {
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

  test('may be beside the letter', async () => {
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

  test('may differ between blocks', async () => {
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

  test('are joined by well', async () => {
    expect(rows(await plate(text, { every: '/^(Layout|Results)$/' }))).toEqual([
      { well: 'A1', ID: 'S1', OD: 0.1 },
      { well: 'A2', ID: 'S2', OD: 0.2 },
      { well: 'B1', ID: null, OD: 0.3 },
      { well: 'B2', ID: null, OD: 0.4 },
    ]);
  });

  test('are separate rows if a group distinguishes them', async () => {
    const record = await plate(text.replaceAll(/ID|OD/g, 'x'), { every: '/^(?<block>Layout|Results)$/' });
    expect(rows(record)).toHaveLength(6);
    expect(rows(record)[2]).toEqual({ block: 'Results', well: 'A1', x: 0.1 });
  });

  test('may repeat a value', async () => {
    const same = 'P\n,1,2\nA,1,2\n\nP\n,1,2\nA,1,2\nB,3,4\n';
    expect(rows(await plate(same, { every: 'P' }))).toHaveLength(4);
  });
});

describe('an empty line within a plate', () => {
  test('is refused if lettered rows follow', async () => {
    const error = await refusal(',1,2\nA,1,2\n\nB,3,4\n', mapping());
    expect(error.where?.line).toBe(4);
    expect(error.hint).toContain('`until: eof`');
    expect(rows(await plate(',1,2\nA,1,2\n\nB,3,4\n', { until: 'eof' }))).toHaveLength(4);
  });

  test('is refused if numbers follow', async () => {
    const error = await refusal('t,1,2\n0,1,2\n\n60,3,4\n', mapping());
    expect(error.where?.line).toBe(4);
  });

  test('keeps the letter of stacked lines', async () => {
    const record = await plate(',1,2\nA,1,2,OD\n\n,3,4,FL\n', { until: 'eof' });
    expect(rows(record)[0]).toEqual({ well: 'A1', OD: 1, FL: 3 });
  });

  test('ends the plate if something else follows', async () => {
    for (const below of ['Mean,5.5,0.7', 'Curve,Formula,A', 'end', ',1,2']) {
      expect(rows(await plate(`,1,2\nA,1,2\n\n${below}\n`))).toHaveLength(2);
    }
  });
});
