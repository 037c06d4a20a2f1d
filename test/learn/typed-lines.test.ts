import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

describe('lines of several kinds, named by their first cell', () => {
  test('are facts and a table with the names of the line above', async () => {
    const record = await read(
      'H,Operator,Ada\nH,Weight,2.50,mg\nC,Time (s),Signal (mV)\nD,0,1.25\nD,1,1.5\nD,2,1.75\nT,Points,3\n',
    );
    expect(meta(record)).toEqual({ Operator: 'Ada', Weight: 2.5, Points: 3 });
    expect(record.meta.get('Weight')?.unit).toBe('mg');
    expect(columns(record)).toEqual(['Time [s]', 'Signal [mV]']);
    expect(rows(record).at(-1)).toEqual({ Time: 2, Signal: 1.75 });
  });

  test('are a table for each kind; rows have the line that they belong to', async () => {
    const text =
      'SAMPLE,S-1,blank,5\nPEAK,0.5,1200\nPEAK,0.7,90\nSAMPLE,S-2,water,6\nPEAK,0.6,1100\nSAMPLE,S-3,oil,7\nPEAK,0.8,30\n';
    const record = await read(text);
    expect(rows(record, 0)).toHaveLength(3);
    expect(rows(record, 1)).toEqual([
      { 'SAMPLE 2': 'S-1', 'PEAK 2': 0.5, 'PEAK 3': 1200 },
      { 'SAMPLE 2': 'S-1', 'PEAK 2': 0.7, 'PEAK 3': 90 },
      { 'SAMPLE 2': 'S-2', 'PEAK 2': 0.6, 'PEAK 3': 1100 },
      { 'SAMPLE 2': 'S-3', 'PEAK 2': 0.8, 'PEAK 3': 30 },
    ]);
    expect((await measured(text)).doubts.join()).toContain(
      'the file has no names for the columns of the lines that start with PEAK',
    );
  });

  test('can be sentences of receivers', async () => {
    const at = (n: number) => `$GPGGA,09275${n}.000,5321.6802,N,61.7,M*7${n}\n$SDDBT,12.${n},f,3.7,M*3${n}\n`;
    const record = await read([1, 2, 3].map(at).join(''));
    expect(record.tables.map(({ name, rows: own }) => [name, own.length])).toEqual([
      ['GPGGA', 3],
      ['SDDBT', 3],
    ]);
  });

  test('can have their names in their own first line', async () => {
    const record = await read('R,Time,Signal\nR,1,5.5\nR,2,6.5\nE,12,x\nE,13,y\nE,14,z\n');
    expect(rows(record)).toEqual([
      { Time: 1, Signal: 5.5 },
      { Time: 2, Signal: 6.5 },
    ]);
  });

  test.each([
    [
      'rows of one table with a code in their first column',
      'TYPE,POS,VALUE\nSTD,1,0.5\nSTD,2,0.6\nSTD,3,0.7\nUNK,4,x\nUNK,5,0.8\nUNK,6,0.9\n',
    ],
    ['rows of one kind', 'A1,0.5,1\nA2,0.6,2\nA3,0.7,3\n'],
  ])('are not %s', async (_, text) => {
    expect((await measured(text)).mapping.format).not.toBe('records');
  });
});

test('the last line can be a code alone', async () => {
  const data = ['D,0.0,4.085,1.10', 'D,0.5,15.561,0.95', 'D,1.0,1.789,2.58'];
  const record = await read(['H,Method,fast', 'H,Gain,80', 'H,Rate,100', ...data, 'END', ''].join('\n'));
  expect(meta(record)).toMatchObject({ Method: 'fast', Gain: 80 });
  expect(rows(record)).toHaveLength(3);
});
