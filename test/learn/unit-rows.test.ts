import { expect, test } from 'vitest';
import { columns, read, rows } from '../support/reading.js';

test('units are known below names of which some are of dates and counts, and above words for how they were reduced', async () => {
  const head = ['"TIMESTAMP","RECORD","DO_Avg","Light_Avg"', '"TS","RN","mg/L","lux"', '"","","Avg","Smp"'];
  const data = [0, 1, 2, 3].map((n) => `"2024-05-17 09:0${n}:00",${n},8.2${n},37${n}`);
  const record = await read(['"TOA5","Met_2","CR1000","14976","Table1"', ...head, ...data, ''].join('\n'));
  expect(columns(record).slice(2)).toEqual(['DO_Avg [mg/L]', 'Light_Avg [lux]']);
  expect(rows(record)).toHaveLength(4);
});

test.each([
  ['x-axis,1,2\nsecond,Volt,Volt\n', ['x-axis [second]', '1 [Volt]', '2 [Volt]']],
  ['x-axis,1\nsecond,Volt\n', ['x-axis [second]', '1 [Volt]']],
])('numbers of channels above units are names: %j', async (head, names) => {
  const data = [0, 1, 2, 3, 4].map((n) => ['-2.5E-02', `3.${n}E+00`, `5.${n}E-01`].slice(0, names.length).join(','));
  const record = await read(`${head}${data.join('\n')}\n`);
  expect(columns(record)).toEqual(names);
  expect([...record.meta.keys()]).toEqual([]);
});

test('a letter after a comma is a unit if the name says what was measured', async () => {
  const record = await read('"#","Battery, V (S/N: 7, SEN: 8)","Sensor, A"\n1,12.5,1.5\n2,12.6,1.6\n3,12.7,1.7\n');
  expect(columns(record)).toEqual(['#', 'Battery (S/N: 7, SEN: 8) [V]', 'Sensor, A']);
});

test('a dash in a row of units stands for none', async () => {
  const record = await read(
    'Wave S1,Counts S1,Wave S2,Counts S2\nnm,-,nm,-\n100.5,7.5,100.5,6.5\n101.5,8.5,101.5,9.5\n',
  );
  expect(columns(record).slice(1, 2)).toEqual(['Counts S1']);
  const unitless = await read('Wave  Counts\n-  -\n400,5  7,25\n401,5  8,25\n402,5  8,35\n');
  expect(columns(unitless)).toEqual(['Wave', 'Counts']);
});

test('a comma within numbers that have blanks between them is a decimal mark', async () => {
  const data = ['200,0  2,0565E+03', '203,5  4,9365E+03', '207,0  3,2305E+03', '210,5  3,4008E+03'];
  const record = await read(['# Serial number: A1', '# Resolution: 4', ...data, ''].join('\n'));
  expect(rows(record)[1]).toEqual({ 'column 1': 203.5, 'column 2': 4936.5 });
});

test.each([
  [
    'Sensor,North,North,South\nDepth,upper,lower,upper\nTime [s],T [C],T [C],T [C]\n',
    ['Time [s]', 'North upper T [C]', 'North lower T [C]', 'South upper T [C]'],
  ],
  ['Group,A,A,B\nChannel,X,Y,X\nTime,Volt,Volt,Volt\n', ['Time', 'A X Volt', 'A Y Volt', 'B X Volt']],
])('labels of rows with names of groups are no part of the name of the first column: %j', async (head, names) => {
  const record = await read(`${head}${[0, 1, 2].map((n) => `${n},10.${n},20.${n},3${n}.5\n`).join('')}`);
  expect(columns(record)).toEqual(names);
});

test('the label of a row of units is not counted as one of them', async () => {
  const record = await read('Parameter,pH,Cond\nUnit,-,mS/cm\nS1,7.1,1.2\nS2,7.2,1.3\n');
  expect(columns(record)).toEqual(['Parameter', 'pH', 'Cond [mS/cm]']);
});

test('a derivative is no symbol with its unit', async () => {
  const record = await read('No.\tV/mL\tE/mV\tdE/dV\n1\t0.5\t-21.5\t3\n2\t0.75\t-20.5\t24\n3\t1.5\t-17.5\t46\n');
  expect(columns(record)).toEqual(['No.', 'V [mL]', 'E [mV]', 'dE/dV']);
});
