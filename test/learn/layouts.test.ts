import { expect, test } from 'vitest';
import { findUnused } from '../../src/map/omissions.js';
import { shareOfComplete } from '../support/written-files.js';
import { compareLayout, writeLayout } from './layouts.js';

test('tables laid out as instruments do are not read wrongly without being held, and mostly completely', async () => {
  const share = await shareOfComplete({ seed: 2, count: 60 }, writeLayout, (record, file) => {
    const { wrong, isComplete } = compareLayout(record, file);
    return findUnused(record) ? { wrong: [], isComplete: false } : { wrong, isComplete };
  });
  expect(share).toBeGreaterThan(0.88);
});
