import { expect, test } from 'vitest';
import { meta, read, rows } from '../support/reading.js';

/** Codes that look like numbers. */

test('digits around an E are a code in columns of codes, and a number in others', async () => {
  const record = await read('Sample ID,S/N,Lot No.,Well,Count\n12E1,1E3,7E2,1E5,1E5\n12E2,1E4,7E3,1E6,2E5\n', {
    table: {},
  });
  expect(rows(record)[0]).toEqual({ 'Sample ID': '12E1', 'S/N': '1E3', 'Lot No.': '7E2', Well: '1E5', Count: 1e5 });
  const typed = await read('Well,Count\n1E5,1E5\n', { table: { columns: { Well: { from: 'Well', type: 'number' } } } });
  expect(rows(typed)[0]).toEqual({ Well: 1e5, Count: 1e5 });
});

test('digits around an E are a code in facts that are codes', async () => {
  const record = await read('Well: 1E5\nLot: 7E2\nSerial number: 12E5\nCells per well: 1E6\n', {
    meta: { separator: ':' },
  });
  expect(meta(record)).toEqual({ Well: '1E5', Lot: '7E2', 'Serial number': '12E5', 'Cells per well': 1e6 });
});

test('numbers with leading zeros are numbers in columns with a unit, and texts in columns of codes', async () => {
  const record = await read(
    'Sample,Temp (°C),Count (cells/mL),Reading,Lot,Version,Time (h)\nA,007.25,0012,007.25,0012,01.10,0915\nB,-07.50,0120,012.50,0013,01.20,1015\n',
    { table: {} },
  );
  expect(rows(record)[0]).toEqual({
    ...{ Sample: 'A', Temp: 7.25, Count: 12, Reading: 7.25, Lot: '0012', Version: '01.10' },
    Time: '0915',
  });
});

test('a fact with leading zeros is a number only if it has a unit', async () => {
  const text =
    'Temperature (°C): 007.25\nFlow: 0012 mL/min\nLot: 0012\nID: 007.25\nOffset: 0012.50\nFirmware: 01.10 rev\n';
  const record = await read(text, { meta: { separator: ':' } });
  expect(meta(record)).toEqual({
    ...{ Temperature: 7.25, Flow: 12, Lot: '0012', ID: '007.25', Offset: '0012.50', Firmware: '01.10 rev' },
  });
});

test('rows of numbers with leading zeros are found', async () => {
  const lines = [7, 8, 9, 10, 11].map((n) => `${String(n).padStart(2, '0')}.25,${String(n + 91).padStart(3, '0')}.1`);
  const record = await read(`Temp (°C),Pressure (kPa)\n${lines.join('\n')}\n`);
  expect(rows(record)).toHaveLength(5);
  expect(rows(record)[0]).toEqual({ Temp: 7.25, Pressure: 98.1 });
});
