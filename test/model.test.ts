import { expect, test } from 'vitest';
import { changesBetween, type Shape, shapeOf } from '../src/model.js';
import { nanodrop, table } from './support/map-samples.js';

/** `Weight (mg)` is a column with a unit. */
const shape = (...columns: string[]): Shape =>
  shapeOf({ unread: [], meta: new Map(), tables: [table('readings', columns, [])] });

test('the shape of a record is its tables with the names and units of their columns', () => {
  expect(shapeOf(nanodrop)).toEqual({
    tables: [{ name: 'readings', columns: [{ name: 'Well' }, { name: 'A260', unit: 'AU' }, { name: 'Remark' }] }],
  });
});

test('added or reordered columns are not a change', () => {
  expect(changesBetween(shape('A (mg)', 'B'), shape('B', 'C', 'A (mg)'))).toEqual([]);
});

test('a missing column is reported, with the new column that may replace it', () => {
  expect(changesBetween(shape('Well', 'A260', 'Note'), shape('Well', 'A-260'))).toEqual([
    'the column "A260" is missing (renamed to "A-260"?)',
    'the column "Note" is missing',
  ]);
});

test('a changed, added or removed unit is reported', () => {
  expect(changesBetween(shape('A (mg)', 'B (s)', 'C'), shape('A (g)', 'B', 'C (K)'))).toEqual([
    'the unit of "A" changed from mg to g',
    'the unit of "B" changed from s to none',
    'the unit of "C" changed from none to K',
  ]);
});

test('a missing table is reported; with several tables, columns name theirs', () => {
  const before = { tables: [...shape('A').tables, { name: 'plate', columns: [{ name: 'Well' }] }] };
  expect(changesBetween(before, shape('B'))).toEqual([
    'the column "A" in the table "readings" is missing',
    'the table "plate" is missing',
  ]);
  expect(changesBetween(shape('A'), { tables: [] })).toEqual(['the table "readings" is missing']);
});
