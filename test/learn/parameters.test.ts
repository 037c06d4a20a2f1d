import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, refusal, rows } from '../support/reading.js';

const scan = (first: string, sign: string) =>
  [first, ...Array.from({ length: 12 }, (_, n) => `${20 + n / 2}${sign}${1000 + ((n * 37) % 91)}`), ''].join('\n');

describe('a line of settings above rows without names', () => {
  test.each([
    ['with more numbers', scan('20.0 0.5 25.5', ' ')],
    ['with more numbers, of which the first could be a row', scan('0.5,100,23', ',')],
    ['with as many numbers, out of order and unlike the others', scan('100,0.5', ',')],
  ])('%s is no row', async (_, text) => {
    const record = await read(text);
    expect(rows(record)).toHaveLength(12);
    expect(rows(record)[0]).toEqual({ 'column 1': 20, 'column 2': 1000 });
    expect(meta(record)).toEqual({});
    expect(record.unread).toMatchObject([{ from: 1, to: 1 }]);
  });

  test('is left out of the rows of the next file too', async () => {
    const { mapping } = await measured(scan('20.0 0.5 25.5', ' '));
    expect(rows(await read(scan('7 1 18', ' '), mapping))).toHaveLength(12);
  });

  test('that could be a row with one number more holds the file', async () => {
    expect((await refusal(scan('19.5,1010,3', ','))).message).toMatch(/3 cells, but the rows below it have 2/);
  });

  test.each([
    ['whose value is unlike the others', scan('19.5,3', ',')],
    ['without a value in the last column', scan('19.5', ',').replace(/,(\d+)/g, ',$1,0.5')],
  ])('%s is a row', async (_, text) => {
    expect(rows(await read(text)).length).toBeGreaterThanOrEqual(12);
  });
});

describe('values behind the units of the first columns', () => {
  const scope = (from: string) =>
    `${from}X,CH1,CH2,Start,Increment,\nSecond,Volt,Volt,-7.268e-03,1.0e-05,\n${Array.from({ length: 9 }, (_, n) => `${n},0.${n},1.${n},\n`).join('')}`;

  test.each([
    ['at the start of the file', scope('')],
    ['below facts', scope('Model,DX-4\nSerial number,A17\n\n')],
  ])('are facts, %s', async (_, text) => {
    const record = await read(text);
    expect(columns(record)).toEqual(['X [Second]', 'CH1 [Volt]', 'CH2 [Volt]']);
    expect(rows(record)).toHaveLength(9);
    expect(rows(record)[8]).toEqual({ X: 8, CH1: 0.8, CH2: 1.8 });
    expect(meta(record)).toMatchObject({ Start: -0.007268, Increment: 0.00001 });
  });
});
