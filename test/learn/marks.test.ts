import { expect, test } from 'vitest';
import { columns, meta, read, rows } from '../support/reading.js';

/** Letters beside numbers that are no units: hemispheres, and flags of results. */

const table = (head: string, row: (n: number) => string) =>
  `${head}\n${[0, 1, 2, 3, 4].map((n) => row(n)).join('\n')}\n`;

test('hemispheres behind latitudes and longitudes are part of their text', async () => {
  const record = await read(table('Time,Latitude,GPS_Lon,Force', (n) => `${n}.5,48.12${n} N,11.5${n} W,${n}.25 N`));
  expect(columns(record)).toEqual(['Time', 'Latitude', 'GPS_Lon', 'Force [N]']);
  expect(rows(record)[1]).toEqual({ Time: 1.5, Latitude: '48.121 N', GPS_Lon: '11.51 W', Force: 1.25 });
});

test('a hemisphere in a column of its own is no unit, whatever units stand beside other numbers', async () => {
  const record = await read(table('Time,Lat,,Temp,', (n) => `${n}.5,48.12${n},N,20.${n},°C`));
  expect(columns(record).slice(0, 3)).toEqual(['Time', 'Lat', 'column 3']);
  expect(rows(record)[1]).toMatchObject({ Lat: 48.121, 'column 3': 'N' });
});

test.each([
  ['Latitude (N),Depth (m)', ['Time', 'Latitude (N)', 'Depth [m]']],
  ['Latitude,Depth\ns,N,m', ['Time [s]', 'Latitude N', 'Depth [m]']],
])('a hemisphere in a name or a row of units is part of the name: %j', async (head, names) => {
  expect(columns(await read(table(`Time,${head}`, (n) => `${n}.5,48.12${n},2.${n}`)))).toEqual(names);
});

test('hemispheres and flags of facts are no units, and are kept in the text', async () => {
  const record = await read(
    'Start latitude: 48.1234 N\nLateral force: 5.5 N\nGlucose: 7.1 H\nSodium: 142 L\nTank volume: 5 L\nInductance: 2 H\n',
  );
  expect([...record.meta].map(([name, { value, text, unit }]) => [name, value, text, unit])).toEqual([
    ['Start latitude', '48.1234 N', '48.1234 N', undefined],
    ['Lateral force', 5.5, '5.5 N', 'N'],
    ['Glucose', 7.1, '7.1 H', undefined],
    ['Sodium', 142, '142 L', undefined],
    ['Tank volume', 5, '5 L', 'L'],
    ['Inductance', 2, '2 H', 'H'],
  ]);
});

test('a hemisphere or flag in the cell beside a fact is no unit', async () => {
  const record = await read(
    `Latitude,48.1234,N\nGlucose,7.1,H\nVolume,7.5,L\n\n${table('No,Net (g)', (n) => `${n},2.${n}`)}`,
  );
  expect(meta(record)).toEqual({ Latitude: '48.1234 N', Glucose: 7.1, Volume: 7.5 });
  expect([...record.meta.values()].map(({ unit }) => unit)).toEqual([undefined, undefined, 'L']);
});

test('results that are all marked as high have no unit', async () => {
  const record = await read(table('Test,Result', (n) => `T${n},4.1${n} H`));
  expect(columns(record)).toEqual(['Test', 'Result']);
  expect(record.tables[0]?.rows[1]?.[1]).toEqual({ value: 4.11, text: '4.11 H' });
});

test('a number with a letter is a label beside one whose letter is no unit', async () => {
  const record = await read('Day,No,Level\n1,WCAL,4.9\n1,1 M,49.3\n1,1 R,72.2\n2,2 M,96.1\n2,2 R,77.4\n');
  expect(columns(record)).toEqual(['Day', 'No', 'Level']);
  expect(rows(record).map(({ No }) => No)).toEqual(['WCAL', '1 M', '1 R', '2 M', '2 R']);
  const molar = await read('Day,Conc,Level\n1,1 M,49.3\n1,2 M,72.2\n2,3 M,96.1\n');
  expect(columns(molar)).toEqual(['Day', 'Conc [M]', 'Level']);
});
