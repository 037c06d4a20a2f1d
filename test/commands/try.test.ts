import { expect, test } from 'vitest';
import { trialAsJson } from '../../src/commands/try.js';

type Trial = Parameters<typeof trialAsJson>[0];

/** A table with more rows than are kept. */
const trial = (count: number): Trial =>
  ({
    instrument: { name: 'logger', duplicates: 'skip' },
    file: { path: 'a.csv', sha256: '00' },
    record: {
      meta: new Map(),
      tables: [{ name: 'readings', columns: [{ name: 'x' }], rows: [[{ value: 1, text: '1' }]], count }],
    },
    draft: { title: 't', date: '2026-01-02', body: '', tags: [], comments: [] },
    dateFrom: 'modified',
  }) as unknown as Trial;

test('try --json gives the number of rows if it does not show all of them', () => {
  expect(trialAsJson(trial(5_000_000)).record.tables[0]).toMatchObject({
    rows: [{ x: 1 }],
    count: 5_000_000,
  });
  expect(trialAsJson(trial(1)).record.tables[0]).not.toHaveProperty('count');
});
