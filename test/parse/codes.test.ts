import { expect, test } from 'vitest';
import { meta, read, rows } from '../support/reading.js';

/** Codes that look like numbers. */

test('digits around an E are a code in columns of codes, and a number in others', async () => {
  const record = await read('Sample ID,S/N,Lot No.,Well,Count\n12E1,1E3,7E2,1E5,1E5\n12E2,1E4,7E3,1E6,2E5\n', { table: {} });
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
