import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, refusal, rows } from '../support/reading.js';

const ONE = '1 -0.5 10\n2 -0.6 11\n3 -0.7 12\n4 -0.8 13\n';
const TWO = '1 0.5 10 0.1 20 0.2 30 0.6 40\n2 0.5 11 0.1 21 0.2 31 0.6 41\n3 0.5 12 0.1 22 0.2 32 0.6 42\n';

describe('the option line of a Touchstone file', () => {
  test('is a fact, and gives names and units to the columns of one port', async () => {
    const record = await read(`! made by X\n! more\n# kHz S DB R 50\n${ONE}`);
    expect(columns(record)).toEqual(['frequency [kHz]', 'S11 magnitude [dB]', 'S11 angle [deg]']);
    expect(rows(record)).toHaveLength(4);
    expect(meta(record)).toMatchObject({ options: 'kHz S DB R 50' });
  });

  test('gives the columns of two ports their names in the order of the standard', async () => {
    const record = await read(`# MHZ S MA R 50\n${TWO}`);
    expect(columns(record).slice(0, 5)).toEqual([
      'frequency [MHZ]',
      'S11 magnitude',
      'S11 angle [deg]',
      'S21 magnitude',
      'S21 angle [deg]',
    ]);
    expect(meta(record)).toEqual({ options: 'MHZ S MA R 50', frequency_unit: 'MHZ' });
  });

  test('leaves the names that the file has', async () => {
    const record = await read(`!Model: V-7\n!Serial: 12\n# GHz S RI R 50\n!freq ReS11 ImS11\n${ONE}`);
    expect(columns(record)).toEqual(['frequency [GHz]', 'ReS11', 'ImS11']);
  });

  test('of the next file gives the unit, and one with another format is refused', async () => {
    const { mapping } = await measured(`! a b\n! c\n# kHz S DB R 50\n${ONE}`);
    expect(columns(await read(`! d\n# GHz S DB R 75\n${ONE}`, mapping))[0]).toBe('frequency [GHz]');
    expect((await refusal(`! d\n# GHz S RI R 50\n${ONE}`, mapping)).message).toMatch(/frequency_unit/);
  });
});
