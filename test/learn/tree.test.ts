import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

const json = (content: unknown) => read(JSON.stringify(content));

describe('facts of JSON and XML', () => {
  test('have the name of their parent only if it is needed', async () => {
    const record = await json({
      run: { operator: 'Ada', sample: { name: 'PBS' } },
      oven: { start: 30, stop: 90 },
      lamp: { start: 1 },
    });
    expect(meta(record)).toEqual({
      operator: 'Ada',
      'sample name': 'PBS',
      'oven start': 30,
      stop: 90,
      'lamp start': 1,
    });
  });

  test('can be records of a name, a value and a unit', async () => {
    const items = '<Item key="Flow">2.5</Item><Item key="Mode">fast</Item>';
    expect(meta(await read(`<a><Items>${items}</Items></a>`))).toEqual({ Flow: 2.5, Mode: 'fast' });
    const { meta: found } = await json({
      params: [
        { label: 'Flow', val: 2.5, uom: 'mL/min' },
        { label: 'Oven', val: 80, uom: '°C' },
      ],
    });
    expect(found.get('Flow')).toMatchObject({ value: 2.5, unit: 'mL/min' });
    expect(found.get('Oven')).toMatchObject({ value: 80, unit: '°C' });
  });

  test('can be a single record, unless its name differs between rows', async () => {
    const param = '<p name="start time" value="5.5" unitName="min"/>';
    expect((await read(`<a><s><id>7</id>${param}</s></a>`)).meta.get('start time')).toMatchObject({ unit: 'min' });
    const record = await json([
      { dye: { name: 'Cy3', value: 1 }, at: 1 },
      { dye: { name: 'Cy5', value: 2 }, at: 2 },
    ]);
    expect(rows(record)[1]).toEqual({ 'dye name': 'Cy5', value: 2, at: 2 });
  });

  test('have the unit that is beside them', async () => {
    const { meta: found } = await json({
      flow_rate: 2.5,
      flow_rate_unit: 'mL/min',
      oven: { temp: 80, tempUnit: '°C' },
    });
    expect(found.get('flow_rate')).toMatchObject({ value: 2.5, unit: 'mL/min' });
    expect(found.get('temp')).toMatchObject({ value: 80, unit: '°C' });
    expect([...found.keys()]).toEqual(['flow_rate', 'temp']);
  });

  test('have the unit of an array, also if its values are below a limit or marked', async () => {
    const result = (value: readonly string[]) => json([{ result: { name: 'CRP', value, unit: 'mg/L' } }]);
    for (const value of [
      ['<0.5', '0.6 H'],
      ['1.5', '2.5'],
    ])
      expect(columns(await result(value))[0]).toContain('[mg/L]');
    expect(columns(await result(['low', 'high'])).join()).not.toContain('mg/L');
  });

  test('have what else is written with a value and its unit', async () => {
    const record = await json({ oven: { temp: { value: 80, unit: '°C', limit: 95 } } });
    expect(meta(record)).toEqual({ temp: 80, limit: 95 });
  });

  test('that are left out are named', async () => {
    const many = Object.fromEntries(Array.from({ length: 310 }, (_, n) => [`p${n}${'abc'[n % 3]}`, `v${n}`]));
    const { doubts } = await measured(JSON.stringify({ ...many, blob: 'x'.repeat(5000) }));
    expect(doubts.join()).toContain('not in this mapping: /p300a, /p301b');
    expect(doubts.join()).toContain('and 7 further values');
  });
});

describe('rows of JSON and XML', () => {
  test('have the values at any depth', async () => {
    const well = (n: number) =>
      `<Well no="${n}"><Run><Temp unit="°C">23.${n}</Temp></Run><Info><SN>L7</SN></Info></Well>`;
    const record = await read(`<Out><Wells>${[1, 2, 3].map(well).join('')}</Wells></Out>`);
    expect(columns(record)).toEqual(['no', 'Temp [°C]', 'SN']);
    expect(rows(record)[2]).toEqual({ no: 3, Temp: 23.3, SN: 'L7' });
  });

  test('within the elements of a list have what tells these apart', async () => {
    const peaks = [{ rt: 1.5 }, { rt: 2.5 }];
    const record = await json({
      runs: [{ sample: 'S1', peaks }, { sample: 'S2', peaks: [{ rt: 3.5 }] }, { sample: 'S3' }],
    });
    expect(rows(record, 0)).toEqual([{ sample: 'S1' }, { sample: 'S2' }, { sample: 'S3' }]);
    expect(rows(record, 1)).toEqual([
      { sample: 'S1', rt: 1.5 },
      { sample: 'S1', rt: 2.5 },
      { sample: 'S2', rt: 3.5 },
    ]);
  });

  test('are arrays of one length, also in each element of a list', async () => {
    expect(rows(await json({ curve: { t: [1, 2], y: [0.5, 0.25] } }))).toEqual([
      { t: 1, y: 0.5 },
      { t: 2, y: 0.25 },
    ]);
    const record = await json({
      scans: [
        { id: 'a', mz: [1, 2, 3, 4], i: [5, 6, 7, 8] },
        { id: 'b', mz: [9], i: [10] },
      ],
    });
    expect(rows(record, 1).at(-1)).toEqual({ 'scans id': 'b', mz: 9, i: 10 });
  });

  test('are arrays with units in objects beside each other', async () => {
    const record = await json({ time: { unit: 's', values: [1, 2, 3] }, signal: { unit: 'mV', values: [4, 5, 6] } });
    expect(columns(record)).toEqual(['time [s]', 'signal [mV]']);
  });

  test('have the names of a list beside them', async () => {
    const record = await json({
      columns: ['time', 'signal'],
      data: [
        [1, 0.5],
        [2, 0.25],
        [3, 0.125],
      ],
    });
    expect(rows(record).at(-1)).toEqual({ time: 3, signal: 0.125 });
  });

  test('are objects with the names of wells or samples', async () => {
    expect(rows(await json({ wells: { A1: { od: 0.5 }, B12: { od: 0.25 } } }))).toEqual([
      { well: 'A1', od: 0.5 },
      { well: 'B12', od: 0.25 },
    ]);
    const record = await json({ samples: { 'S-1': { od: 1 }, 'S-2': { od: 2 }, 'S-3': { od: 3 } } });
    expect(rows(record).at(-1)).toEqual({ sample: 'S-3', od: 3 });
  });

  test('are many objects that are alike, whatever their names', async () => {
    const names = ['gap', 'torque', 'strain', 'stress', 'speed', 'state'];
    const columns = names.map((name, n) => [
      name,
      { label: name, type: 'Number', ...(n < 5 && { axis: { size: n } }) },
    ]);
    const record = await json({ columns: Object.fromEntries(columns) });
    expect(rows(record)[1]).toEqual({ column: 'torque', label: 'torque', type: 'Number', size: 1 });
  });

  test('can be in lists that are the whole file', async () => {
    const record = await json([
      { id: 'a', peaks: [{ rt: 1 }] },
      { id: 'b', peaks: [{ rt: 2, peaks: [{ rt: 7 }] }] },
    ]);
    expect(rows(record, 1)).toEqual([
      { id: 'a', rt: 1 },
      { id: 'b', rt: 2 },
    ]);
    expect(meta(await json([{ operator: 'Ada', run: { mode: 'fast' } }]))).toEqual({ operator: 'Ada', mode: 'fast' });
    expect(
      rows(
        await json([
          [1, 2],
          [3, 4],
        ]),
      ),
    ).toEqual([
      { 'column 1': 1, 'column 2': 2 },
      { 'column 1': 3, 'column 2': 4 },
    ]);
  });

  test('are before lists of plain values', async () => {
    const { tables } = await json({ tags: ['a', 'b'], samples: [{ x: 1.5 }, { x: 2.5 }] });
    expect(tables.map(({ name }) => name)).toEqual(['samples', 'tags']);
  });

  test('have the units that the file lists elsewhere', async () => {
    const samples = [{ Temp: 21.5 }, { Temp: 22.5 }];
    expect(columns(await json({ samples, units: { Temp: '°C' } }))).toEqual(['Temp [°C]']);
    expect(columns(await json({ TempUnit: 'K', samples }))).toEqual(['Temp [K]']);
  });
});

test('rows beside several lists of as many texts have columns without names', async () => {
  const lists = { samples: ['a', 'b', 'c'], columns: ['x', 'y', 'z'] };
  const record = await json({
    ...lists,
    data: [
      [1.5, 2, 3],
      [4, 5, 6],
    ],
  });
  expect(
    columns(
      record,
      record.tables.findIndex(({ name }) => name === 'data'),
    ),
  ).toEqual(['column 1', 'column 2', 'column 3']);
});
