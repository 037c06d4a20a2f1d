import { describe, expect, test } from 'vitest';
import { columns, meta, read, refusal, rows } from '../support/reading.js';

const print = (...lines: string[]): string => `${lines.join('\r\n')}\r\n`;

describe('what a balance prints', () => {
  test('has facts with their units, also beside a date on a line of its own', async () => {
    const record = await read(
      print(
        'LAB BALANCE',
        'Sample ID: S-101',
        '17.05.2024   09:00:00',
        '-----',
        'G      +  50,9390 g',
        'Net:  81,3034 g',
      ),
    );
    expect(meta(record)).toMatchObject({ 'Sample ID': 'S-101', date: '2024-05-17T09:00:00', G: 50.939, Net: 81.3034 });
    expect(record.meta.get('G')?.unit).toBe('g');
    expect(record.tables).toEqual([]);
  });

  test('has rows if values are counted, and facts below them', async () => {
    const weights = [' 1:    47.6358 g', ' 2:    50.9632 g', ' 3:    76.0467 g'];
    const record = await read(
      print('User:   Miller', '-----', ...weights, '-----', 'x:   58.2152 g', 'Signature: ______'),
    );
    expect(columns(record)).toEqual(['no', 'value [g]', 'unit']);
    expect(rows(record).map(({ value }) => value)).toEqual([47.6358, 50.9632, 76.0467]);
    expect(meta(record)).toEqual({ User: 'Miller', x: 58.2152 });
  });

  test('has rows if names repeat, with the sample and the date of each', async () => {
    const block = (n: number) => [
      `Sample ID: S-${n}`,
      `2024-05-17   09:0${n}:00`,
      `Tare: 1.${n} mg`,
      `Weight: 2.${n} mg`,
      '',
    ];
    const record = await read(print(...block(1), ...block(2)));
    expect(rows(record).map((row) => [row['Sample ID'], row['quantity'], row['value'], row['unit']])).toEqual([
      ['S-1', 'Tare', 1.1, 'mg'],
      ['S-1', 'Weight', 2.1, 'mg'],
      ['S-2', 'Tare', 1.2, 'mg'],
      ['S-2', 'Weight', 2.2, 'mg'],
    ]);
    expect(meta(record)).not.toHaveProperty('Sample ID');
  });

  test('may have a second date at the end, and names without a value', async () => {
    const weights = ['N      +     12.5 g', 'N      +      9.8 g', 'N      +     11.1 g'];
    const record = await read(
      print('13-May-2019    10:12', 'Ser. No.    21709134', ...weights, '----', '13-May-2019    10:15', 'Name:'),
    );
    expect(rows(record).map((row) => row['N'])).toEqual([12.5, 9.8, 11.1]);
    expect(meta(record)).toMatchObject({ 'Ser. No.': 21709134, date: '2019-05-13T10:12:00' });
  });

  test('has a column with the name of the only value', async () => {
    expect(columns(await read(print('N      1.25 g', 'N      1.27 g')))[0]).toBe('N [g]');
  });

  test('is not read if a comma can separate thousands', async () => {
    await refusal(print('  1:   12,345 g', '  2:   13,456 g'));
  });

  test('is a table below two names', async () => {
    const record = await read(print('Sample   Weight', 'Ada   1.25 g', 'Bob   1.27 g', 'Cy   1.29 g'));
    expect(record.meta.get('Sample')?.text).not.toBe('Weight');
  });
});
