import { describe, expect, test } from 'vitest';
import { columns, read, refusal, rows } from '../support/reading.js';

const table = (text: string, options: object) => read(text, { delimiter: ',', table: options });

describe('`unpivot`', () => {
  test('groups of the column names become columns, the cell becomes the value', async () => {
    const text = 'Time,T,A1,A2,B1\n0,30,0.1,0.2,0.3\n60,31,0.4,,0.6\n';
    const record = await table(text, { unpivot: '/^(?<row>[A-H])(?<col>\\d+)$/' });
    expect(columns(record)).toEqual(['Time', 'T', 'row', 'col', 'value']);
    expect(rows(record)).toEqual([
      { Time: 0, T: 30, row: 'A', col: 1, value: 0.1 },
      { Time: 0, T: 30, row: 'A', col: 2, value: 0.2 },
      { Time: 0, T: 30, row: 'B', col: 1, value: 0.3 },
      { Time: 60, T: 31, row: 'A', col: 1, value: 0.4 },
      { Time: 60, T: 31, row: 'B', col: 1, value: 0.6 },
    ]);
    expect(record.tables[0]?.count).toBe(5);
  });

  test('a group named `value` names the column of the cell', async () => {
    const text = 'Time,A1 OD,A1 FL,A2 OD,A2 FL\n0,1,2,3,4\n';
    const record = await table(text, { unpivot: '/^(?<well>\\S+) (?<value>\\w+)$/' });
    expect(rows(record)).toEqual([
      { Time: 0, well: 'A1', OD: 1, FL: 2 },
      { Time: 0, well: 'A2', OD: 3, FL: 4 },
    ]);
  });

  test('values keep the unit of their column', async () => {
    const inRow = await table('t,A1,A2\ns,mV,mV\n0,1,2\n', {
      units: 'nextRow',
      unpivot: '/^(?<well>[A-H]\\d)$/',
    });
    expect(columns(inRow)).toEqual(['t [s]', 'well', 'value [mV]']);
    const inName = await table('t,A1 (mV),A2 (mV)\n0,1,2\n', { unpivot: '/^(?<well>[A-H]\\d)$/' });
    expect(columns(inName)).toEqual(['t', 'well', 'value [mV]']);
    const slash = await table('t/s,A1/mV,A2/mV\n0,1,2\n', {
      units: 'slash',
      unpivot: '/^(?<well>[A-H]\\d)$/',
    });
    expect(columns(slash)).toEqual(['t [s]', 'well', 'value [mV]']);
  });

  test('values keep different units', async () => {
    const record = await table('t,A1,A2\ns,mV,V\n0,1,2\n', {
      units: 'nextRow',
      unpivot: '/^(?<well>[A-H]\\d)$/',
    });
    expect(columns(record)).toEqual(['t [s]', 'well', 'value']);
    expect(record.tables[0]?.rows.map((row) => row[2]?.unit)).toEqual(['mV', 'V']);
  });

  test('applies after `where` and to renamed columns', async () => {
    const text = 't,first,second,ok\n0,1,2,1\n60,3,4,0\n';
    const record = await table(text, {
      columns: { ch1: { from: 'first', unit: 'V' }, ch2: { from: 'second', unit: 'V' } },
      where: { ok: 1 },
      unpivot: '/^ch(?<channel>\\d)$/',
    });
    expect(columns(record)).toEqual(['t', 'ok', 'channel', 'value [V]']);
    expect(rows(record)).toEqual([
      { t: 0, ok: 1, channel: 1, value: 1 },
      { t: 0, ok: 1, channel: 2, value: 2 },
    ]);
  });

  test('refuses an ambiguous number', async () => {
    const error = await refusal('t;A1\n0;5\n1;"1,234"\n', {
      delimiter: ';',
      table: { unpivot: '/^(?<w>A1)$/' },
    });
    expect(error.message).toContain('"1,234"');
    expect(error.where?.line).toBe(3);
  });
});

describe('a computed axis', () => {
  const text = 'Start: 10\nBin: 0.1 ns\nUnit: ns\ncounts\n5\n6\n7\n';
  const axis = (spec: object, more = {}) =>
    read(text, {
      format: 'text',
      meta: { separator: ':' },
      facts: { from: 'Start', width: { from: 'Bin', type: 'number' }, label: 'Unit' },
      table: { header: 'counts', columns: { time: spec }, ...more },
    });

  test('is computed from numbers', async () => {
    const record = await axis({ start: -1, step: 0.1, unit: 'ms' });
    expect(columns(record)).toEqual(['time [ms]', 'counts']);
    expect(rows(record)).toEqual([
      { time: -1, counts: 5 },
      { time: -0.9, counts: 6 },
      { time: -0.8, counts: 7 },
    ]);
    expect(record.tables[0]?.rows[1]?.[0]?.text).toBe('-0.9');
  });

  test.each([
    ['facts of the file', { start: 'Start', step: 'Bin', unit: { from: 'Unit' } }],
    ['facts under your own names', { start: 'from', step: 'width', unit: { from: 'label' } }],
  ])('is computed from %s', async (_, spec) => {
    const record = await axis(spec);
    expect(columns(record)).toEqual(['time [ns]', 'counts']);
    expect(rows(record).map(({ time }) => time)).toEqual([10, 10.1, 10.2]);
  });

  test('counts rows before `where`', async () => {
    const record = await axis({ start: 0, step: 2 }, { where: { counts: '/[57]/' } });
    expect(rows(record)).toEqual([
      { time: 0, counts: 5 },
      { time: 4, counts: 7 },
    ]);
  });

  test('has the same value in all rows that `unpivot` makes of one', async () => {
    const record = await read('A1,A2\n1,2\n3,4\n', {
      delimiter: ',',
      table: { columns: { t: { start: 0, step: 60 } }, unpivot: '/^(?<well>A\\d)$/' },
    });
    expect(rows(record).map(({ t, well }) => [t, well])).toEqual([
      [0, 'A1'],
      [0, 'A2'],
      [60, 'A1'],
      [60, 'A2'],
    ]);
  });

  test('refuses a missing fact and a fact that is not a number', async () => {
    await expect(axis({ start: 0, step: 'Binn' })).rejects.toThrow('no fact "Binn"');
    await expect(axis({ start: 0, step: 'Unit' })).rejects.toThrow('"Unit" is not a number: "ns"');
  });
});

describe('`units: { column }`', () => {
  const text = 'Test,Result,Unit,Range\nGlucose,5.1,mmol/L,3.9\nLactate,1.2,mg/dL,0.5\n';

  test('gives the unit of the number to its left', async () => {
    const record = await table(text, { units: { column: 'Unit' } });
    expect(columns(record)).toEqual(['Test', 'Result', 'Unit', 'Range']);
    expect(record.tables[0]?.rows.map((row) => row[1])).toEqual([
      { value: 5.1, text: '5.1', unit: 'mmol/L' },
      { value: 1.2, text: '1.2', unit: 'mg/dL' },
    ]);
    expect(record.tables[0]?.rows[0]?.[3]).toEqual({ value: 3.9, text: '3.9' });
  });

  test('gives the unit of the column if all are equal', async () => {
    const record = await table(text.replaceAll(/m\w+\/d?L/g, '[g]'), {
      units: { column: 'Unit' },
      columns: { result: 'Result' },
    });
    expect(columns(record)).toEqual(['Test', 'result [g]', 'Unit', 'Range']);
  });

  test('can be several columns, of one name or of several', async () => {
    const repeated = await table('a,Unit,b,Unit\n1,mg,2,-\n3,mg,4,\n', { units: { column: 'Unit' } });
    expect(columns(repeated)).toEqual(['a [mg]', 'Unit', 'b', 'Unit (2)']);
    const named = await table('a,a unit,b,b unit\n1,mg,2,s\n', { units: { column: ['a unit', 'b unit'] } });
    expect(columns(named)).toEqual(['a [mg]', 'a unit', 'b [s]', 'b unit']);
  });

  test('leaves the units in the names of other columns', async () => {
    const record = await table('Conc.,Unit,Volume (uL)\n5,mg,2\n', { units: { column: 'Unit' } });
    expect(columns(record)).toEqual(['Conc. [mg]', 'Unit', 'Volume [uL]']);
  });

  test('is ignored for texts and refused if the column is missing', async () => {
    const record = await table('a,b,Unit\n1,none,mg\n', { units: { column: 'Unit' } });
    expect(record.tables[0]?.rows[0]?.[1]).toEqual({ value: 'none', text: 'none' });
    await expect(table(text, { units: { column: 'Units' } })).rejects.toThrow('no column "Units"');
  });
});

describe('cells at fixed positions', () => {
  //             1234567890123456789
  const lines = ['Time   Weight  Note', '0      12.5    ok', '10             none', '200    9'];

  test('start there, and lines may be shorter', async () => {
    const record = await read(lines.join('\n'), { delimiter: { at: [8, 16] }, table: {} });
    expect(rows(record)).toEqual([
      { Time: 0, Weight: 12.5, Note: 'ok' },
      { Time: 10, Weight: null, Note: 'none' },
      { Time: 200, Weight: 9, Note: null },
    ]);
  });

  test('may touch each other', async () => {
    const record = await read('20260105A0112.5\n20260106A0213.5\n', {
      delimiter: { at: [9, 12] },
      table: { header: 'none', columns: ['day', 'well', 'weight'] },
    });
    expect(rows(record)[1]).toEqual({ day: 20260106, well: 'A02', weight: 13.5 });
  });

  test('also separate names from values', async () => {
    const text = 'Operator  Ada\nLot No.   7\nshort\n';
    const record = await read(text, { format: 'text', meta: { separator: { at: [11] } } });
    expect(Object.fromEntries(record.meta)).toEqual({
      Operator: { value: 'Ada', text: 'Ada' },
      'Lot No.': { value: 7, text: '7' },
    });
  });
});

test('a percentage beside the column that it is a percentage of keeps its name', async () => {
  expect(columns(await table('Peak,Area,Area %,RH %\n1,10,50,40\n', {}))).toEqual(['Peak', 'Area', 'Area %', 'RH [%]']);
});

describe('the label of a header line is no part of the first name', () => {
  test.each([
    ['with units', 'Name:Time\tVolt\nUnits: s\tV\n0\t1\n1\t2\n2\t3\n', ['Time [s]', 'Volt [V]']],
    [
      'of any kind, above a label of units',
      'Trace: Time,Volt,Amp\nUnits:s,V,A\n0,1,2\n1,2,2\n2,3,2\n',
      ['Time [s]', 'Volt [V]', 'Amp [A]'],
    ],
    ['without a row of units', 'Label: Time (s),Volt (V)\n0,1\n1,2\n2,3\n', ['Time [s]', 'Volt [V]']],
    ['unless other names have a sign', 'Channel: 1,Channel: 2\n0,1\n1,2\n2,3\n', ['Channel: 1', 'Channel: 2']],
    ['and not a single name', 'Name: 7,\n0,1\n1,2\n2,3\n', undefined],
  ])('%s', async (_, text, expected) => {
    const record = await read(text);
    if (expected) expect(columns(record)).toEqual(expected);
    else expect(columns(record).join()).not.toMatch(/^7/);
  });
});

describe('a pattern in place of the name of a column', () => {
  const text = 'Unit: cps\n\nTime,Mn55,Fe57\n0,1,2\n1,3,4\n';
  const readWith = (columns: Record<string, object>) =>
    [text, { delimiter: ',', meta: { separator: ':' }, table: { header: 'Time', columns } } as const] as const;

  test('gives all columns that match it a unit, and they keep their names', async () => {
    const record = await read(
      ...readWith({ '/^[A-Z][a-z]\\d+$/': { unit: { from: 'Unit' } }, t: { from: 'Time', unit: 's' } }),
    );
    expect(columns(record)).toEqual(['t [s]', 'Mn55 [cps]', 'Fe57 [cps]']);
  });

  test('refuses a file in which no column matches', async () => {
    const error = await refusal(...readWith({ '/^Zn/': { unit: 'cps' } }));
    expect(error.message).toBe('no column matches /^Zn/');
  });

  test('must be valid, and cannot rename or compute columns', () => {
    expect(() => read(...readWith({ '/[/': { unit: 'cps' } }))).toThrow('not a valid regular expression');
    expect(() => read(...readWith({ '/^Mn/': { from: 'Fe57' } }))).toThrow('can have only a unit');
  });
});
