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

test('try --json has the unit of a fact beside it, unless the file has a fact of that name', () => {
  const { record, ...rest } = trial(1);
  const facts = {
    Weight: { value: 12.492, text: '12.492', unit: 'mg' },
    Operator: { value: 'Ada', text: 'Ada' },
    Signal: { value: 5, text: '5', unit: 'mV' },
    'Signal unit': { value: 'counts', text: 'counts' },
  };
  const shown = trialAsJson({ ...rest, record: { ...record, meta: new Map(Object.entries(facts)) } } as Trial);
  expect(shown.record.meta).toEqual({
    ...{ Weight: 12.492, 'Weight unit': 'mg' },
    ...{ Operator: 'Ada', Signal: 5, 'Signal unit': 'counts' },
  });
});

test('try --json has the unit of a cell beside it, if it is not that of the column', () => {
  const { record, ...rest } = trial(1);
  const size = (text: string) => ({ value: Number.parseFloat(text), text, unit: text.split(' ')[1] });
  const mass = { value: 5, text: '5 mg', unit: 'mg' };
  const rows = ['118 um', '0.69 mm'].map((text) => [size(text), mass]);
  const table = { name: 't', columns: [{ name: 'Size' }, { name: 'Mass', unit: 'mg' }], rows, count: 2 };
  const shown = trialAsJson({ ...rest, record: { ...record, tables: [table] } } as unknown as Trial);
  expect(shown.record.tables[0]?.rows).toEqual([
    { Size: 118, 'Size unit': 'um', Mass: 5 },
    { Size: 0.69, 'Size unit': 'mm', Mass: 5 },
  ]);
});
