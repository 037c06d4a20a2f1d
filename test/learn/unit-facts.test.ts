import { expect, test } from 'vitest';
import { columns, read } from '../support/reading.js';

/** Facts that say which unit a column, an axis or all readings have. */

const rowsOf = (row: (n: number) => readonly (string | number)[], delimiter: string): string =>
  [0, 1, 2, 3, 4, 5].map((n) => `${row(n).join(delimiter)}\n`).join('');
const curve = (delimiter: string) => rowsOf((n) => [`40${n}.5`, `0.12${n}`], delimiter);

test.each([
  ['X Units: nm\nY Units: AU\n\n', ['X [nm]', 'Y [AU]']],
  ['XUNITS=NANOMETERS\nYUNITS=ABSORBANCE\n', ['X [NANOMETERS]', 'column 2']],
  ['X-Axis Units: nm\nY axis unit: Absorbance\n\nWavelength\tIntensity\n', ['Wavelength [nm]', 'Intensity']],
  ['Horizontal Units: s\nVertical Units: V\n\nTIME\tCH1\n', ['TIME [s]', 'CH1 [V]']],
])('a fact gives the unit of an axis of a curve: %j', async (head, names) => {
  expect(columns(await read(`Operator: Ada\n${head}${curve('\t')}`))).toEqual(names);
});

test('the axes of rows that are no curve have no unit', async () => {
  const record = await read(`Operator: Ada\nX Units: nm\n\nGain,Level\n${rowsOf((n) => [(n * 7) % 5, `1.${n}`], ',')}`);
  expect(columns(record)).toEqual(['Gain', 'Level']);
});

test.each([
  ['Unit: mg/L', 'No,Sample,Result', ['No', 'Sample', 'Result [mg/L]']],
  ['Units: mg/L', 'Sample,Nitrate,pH (S.U.)', ['Sample', 'Nitrate [mg/L]', 'pH [S.U.]']],
  ['Units: g', 'No,Sample,Weight', ['No', 'Sample', 'Weight [g]']],
  ['Units: mg/L', 'No,Sample,Weight', ['No', 'Sample', 'Weight']],
  ['Units: mg/L', '#,Nitrate,Phosphate', ['#', 'Nitrate', 'Phosphate']],
  ['Units: mg/L', 'No,Sample,pH', ['No', 'Sample', 'pH']],
  ['Units: mg/L', 'Sample,Nitrate,Phosphate', ['Sample', 'Nitrate', 'Phosphate']],
])('%s above %s is a unit only if there is one column that can have it', async (fact, head, names) => {
  const cells = (n: number) =>
    head.split(',').map((name) => (name === 'Sample' ? `S-${n}` : name === 'No' ? n + 1 : `7.${n}1`));
  expect(columns(await read(`Operator: Ada\n${fact}\n\n${head}\n${rowsOf(cells, ',')}`))).toEqual(names);
});

test('the fact can have the longer name, and several columns its unit', async () => {
  const record = await read(
    `Temperature Unit: °C\nPressure Unit: kPa\n\nNo,Temp,Pressure 1,Pressure 2,Pressure ratio\n${rowsOf((n) => [n + 1, `20.${n}`, `101.${n}`, `99.${n}`, `0.9${n}`], ',')}`,
  );
  expect(columns(record)).toEqual(['No', 'Temp [°C]', 'Pressure 1 [kPa]', 'Pressure 2 [kPa]', 'Pressure ratio']);
});

test.each([
  ['Time,mAU', ['Time', 'mAU [mAU]']],
  ['min,mAU', ['min [min]', 'mAU [mAU]']],
  ['Wavelength (nm),counts/s', ['Wavelength [nm]', 'counts/s [counts/s]']],
  ['[s],[mV]', ['[s] [s]', '[mV] [mV]']],
  ['Seconds,Volts,rpm', ['Seconds [Seconds]', 'Volts [Volts]', 'rpm [rpm]']],
])('a column named after its unit has that unit: %s', async (head, names) => {
  const cells = (n: number) => names.map((_, at) => `${n}.${at + 1}`);
  expect(columns(await read(`Operator: Ada\n\n${head}\n${rowsOf(cells, ',')}`))).toEqual(names);
});

test.each([
  'No,min,max,mV',
  'No,A,B,C',
  'nm,A,T',
  'Compound,MW,pH,OD',
  'Year,Month,Day,Hour,Minute',
  'yyyy,mm,dd,hh',
  'Na,K,Ca,V,S,Pa',
  'na,k,ca,mg',
  'm/z,C/N,Ca/Mg',
  'No,V2,Volt2,A-1',
  'No,Bar,cell,day,in',
  '1 h,2 h',
])('names that can be something else are no units: %s', async (head) => {
  const cells = (n: number) => head.split(',').map((_, at) => `${n}.${at + 1}`);
  const record = await read(`Operator: Ada\n\nID,${head}\n${rowsOf((n) => [`S${n}`, ...cells(n)], ',')}`);
  const sure = /^(?:nm|mV)$/;
  expect(record.tables[0]?.columns.flatMap(({ name, unit }) => (unit && !sure.test(name) ? name : []))).toEqual([]);
});
