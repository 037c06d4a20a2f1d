import { expect, test } from 'vitest';
import { read } from '../support/reading.js';

/** Columns whose names repeat, of which only the first have units. */

const table = (head: string): string => {
  const width = (head.split('\n').at(-1) ?? '').split(',').length;
  const row = (n: number) => Array.from({ length: width }, (_, cell) => `${cell + n}.${n}5`).join(',');
  return `${head}\n${[1, 2, 3, 4].map(row).join('\n')}\n`;
};
const unitsIn = async (head: string) =>
  (await read(table(head))).tables[0]?.columns.map(({ unit = '' }) => unit).join();

test.each([
  ['Time (s),Voltage (V),Time,Voltage,Time,Voltage', 's,V,s,V,s,V'],
  ['No,Temp 1 (°C),RH 1 (%),Temp 2,RH 2', ',°C,%,°C,%'],
  ['Time,Voltage,Time,Voltage\ns,V,,', 's,V,s,V'],
])('the units of the first block are those of the others: %j', async (head, units) => {
  expect(await unitsIn(head)).toBe(units);
});

test.each([
  ['Area (mV),Area', 'mV,'],
  ['Time (s),Voltage (V),Time,Current', 's,V,,'],
  ['Time (s),Voltage (V),Time (min),Voltage', 's,V,min,'],
  ['T1 (°C),T2,T3,T4', '°C,,,'],
])('columns that are no blocks have only their own units: %j', async (head, units) => {
  expect(await unitsIn(head)).toBe(units);
});
