import { expect, test } from 'vitest';
import { columns, measured, read } from '../support/reading.js';

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

test.each([
  ['Intensity Vs Time,CPS', 'Time [Sec],Mn55,Fe57', ['Time [Sec]', 'Mn55 [CPS]', 'Fe57 [CPS]']],
  ['Intensity vs. Time,counts', 'Time,S32 -> 48,Mn55 RSD', ['Time', 'S32 -> 48 [counts]', 'Mn55 RSD']],
  ['Intensity Vs Time,CPS', 'Time,55Mn,Sr87/Sr86', ['Time', '55Mn [CPS]', 'Sr87/Sr86']],
  ['Intensity Vs Time,CPS', 'Time,T1,P1', ['Time', 'T1', 'P1']],
  ['Intensity vs Energy,keV', 'Pixel,CH1,CH2', ['Pixel', 'CH1', 'CH2']],
  ['Absorbance vs Wavelength,nm', 'Wavelength,Absorbance', ['Wavelength', 'Absorbance']],
  ['Unit,A', 'Time,CH1,CH2', ['Time', 'CH1', 'CH2']],
  ['Y Units,mV', 'Time,Photodiode,Lamp voltage', ['Time', 'Photodiode', 'Lamp voltage']],
  ['Intensity Vs Time,CPS', 'Time,Pressure,Humidity', ['Time', 'Pressure', 'Humidity']],
  ['Dwell Time,ms', 'Time,Mn55,Fe57', ['Time', 'Mn55', 'Fe57']],
  ['Dwell vs Mass,ms', 'Time,Mn55,Fe57', ['Time', 'Mn55', 'Fe57']],
  ['Signal units,mV', 'Time,CH1,CH2', ['Time', 'CH1 [mV]', 'CH2 [mV]']],
  ['Signal units,mV', 'Time,Signal,CH1,CH2', ['Time', 'Signal [mV]', 'CH1', 'CH2']],
  ['Threshold units,mV', 'Time,CH1,CH2', ['Time', 'CH1', 'CH2']],
  ['Signal units,mV\nTemperature units,C', 'Time,CH1,CH2', ['Time', 'CH1', 'CH2']],
  ['Concentration units,ug/L', 'No,Mn,Fe,Zn', ['No', 'Mn [ug/L]', 'Fe [ug/L]', 'Zn [ug/L]']],
  ['Concentration units,ug/L', 'Time,Mn55,Fe57', ['Time', 'Mn55', 'Fe57']],
  ['Concentration units,ug/L', 'No,Dilution,Area,RSD', ['No', 'Dilution', 'Area', 'RSD']],
])('%s above %s is the unit of isotopes, elements and channels', async (fact, head, names) => {
  const cells = (n: number) => head.split(',').map((_, at) => `${n}.${at + 1}`);
  expect(columns(await read(`Operator,Ada\nSeries,No 4 b\n${fact}\n\n${head}\n${rowsOf(cells, ',')}`))).toEqual(names);
});

test('other isotopes have the unit too', async () => {
  const write = (head: string) =>
    `Operator: Ada\nIntensity units: cps\n\n${head}\n${rowsOf((n) => [n, `7.${n}`], ',')}`;
  const { likely } = await measured(write('Time,Mn55'));
  expect(columns(await read(write('Time,Fe57'), likely()))).toEqual(['Time', 'Fe57 [cps]']);
});

test('the pattern for channels has their word only', async () => {
  const { mapping } = await measured(
    `Operator: Ada\nSignal units: mV\n\nTime,CH1,CH2\n${rowsOf((n) => [n, `7.${n}`, `8.${n}`], ',')}`,
  );
  expect(JSON.stringify(mapping)).toContain('"/^CH\\\\d+$/"');
});

test.each([
  ['Y units', 'counts', 'Pixel,Gain,Intensity', ['Pixel', 'Gain', 'Intensity [counts]']],
  ['Y units', 'V', 'No,Voltage,Bias voltage', ['No', 'Voltage', 'Bias voltage']],
  ['_WL_UNIT', 'nm', 'No,Wavelength,Weight Loss', ['No', 'Wavelength [nm]', 'Weight Loss']],
  ['WL unit', 'nm', 'No,WL1,WL2', ['No', 'WL1 [nm]', 'WL2 [nm]']],
  ['TEMP_UNIT', 'degC', 'No,Temperature,Tempo', ['No', 'Temperature [degC]', 'Tempo']],
  ['INT_UNIT', 'ms', 'No,Intensity,Level', ['No', 'Intensity', 'Level']],
])('%s %s above %s is the unit of the column that is measured in it', async (fact, unit, head, names) => {
  const cells = (n: number) => head.split(',').map((_, at) => `${n}.${at + 1}`);
  expect(columns(await read(`Operator\tAda\n${fact}\t${unit}\n\n${head}\n${rowsOf(cells, ',')}`))).toEqual(names);
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
  'kV,Mg,Al,Si,V,Cr,Fe',
  'n,mean,s,%',
  'Pas,Gauss,V1',
])('names that can be something else are no units: %s', async (head) => {
  const cells = (n: number) => head.split(',').map((_, at) => `${n}.${at + 1}`);
  const record = await read(`Operator: Ada\n\nID,${head}\n${rowsOf((n) => [`S${n}`, ...cells(n)], ',')}`);
  const sure = /^(?:nm|mV|kV|%)$/;
  expect(record.tables[0]?.columns.flatMap(({ name, unit }) => (unit && !sure.test(name) ? name : []))).toEqual([]);
});

test.each([
  ['Scan rate,10.0,10.0,Hz', ['10 Hz', '10 Hz']],
  ['Sampling frequency,250,250,250,Hz', ['250 Hz', '250 Hz', '250 Hz']],
  ['Column temp,40.0,39.8,°C', ['40 °C', '39.8 °C']],
  ['Temp ramp,10.0,200.0,°C', ['10', '200 °C']],
  ['Step,5,5,min', ['5', '5 min']],
  ['Gradient,5.0,20.0,%', ['5', '20 %']],
  ['Slots,3,4,C', ['3', '4']],
])('a unit belongs to the numbers before it if they are the same or set and actual value: %s', async (line, values) => {
  const text = `Operator,Ada\n${line}\nMode,fast\n\nX,Y\n${rowsOf((n) => [n, `7.${n}`], ',')}`.replaceAll(',', '\t');
  const facts = [...(await read(text)).meta].filter(([name]) => !/^(?:Operator|Mode)$/.test(name));
  expect(facts.map(([, { value, unit }]) => [value, unit ?? ''].join(' ').trim())).toEqual(values);
});

test('lines of a word, a name, a type and a value are facts with the unit in the name', async () => {
  const lines = ['key\tDwell Time [ms]\t\tint\t32', 'key\tUser\t\tstring\tAda', 'key\tGain [dB]\t\tfloat\t1.5'];
  const { meta: facts } = await read(`${lines.join('\n')}\n\nX\tY\n${rowsOf((n) => [n, `7.${n}`], '\t')}`);
  expect([...facts.keys()]).toEqual(['Dwell Time', 'User', 'Gain']);
  expect(facts.get('Dwell Time')).toMatchObject({ value: 32, unit: 'ms' });
});
