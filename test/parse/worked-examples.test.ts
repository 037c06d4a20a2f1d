import iconv from 'iconv-lite';
import { expect, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { columns, meta, read, rows } from '../support/reading.js';

/**
 * Complete mappings for instrument exports. The files are invented but have the form of real ones.
 * Tabs are written as → for readability.
 */
const file = (text: string) => text.replace(/^\n/, '').replaceAll('→', '\t');

test('a rheometer: decimal comma, units row, facts in the file name', async () => {
  const mapping = parseYaml(`
decimal: ','
delimiter: ';'
meta: { in: name, match: '/^(?<sample>[^_]+)_(?<test>.+)_/' }
table: { units: nextRow }
`);
  const text = file(`
Shear Rate;Viscosity;Torque
[1/s];[Pa·s];[µNm]
0,1;0,0512;0,02
0,25;1;0,031
`);
  const record = await read(iconv.encode(text, 'windows-1252'), mapping, 'runs/gel_flow_curve_07-01.csv');
  expect(meta(record)).toEqual({ sample: 'gel', test: 'flow_curve' });
  expect(columns(record)).toEqual(['Shear Rate [1/s]', 'Viscosity [Pa·s]', 'Torque [µNm]']);
  expect(rows(record)[1]).toEqual({ 'Shear Rate': 0.25, Viscosity: 1, Torque: 0.031 });
});

test('a plate reader: layout and stacked results joined by well, and a second table', async () => {
  const mapping = parseYaml(`
delimiter: tab
dates: { format: 'M/d/yyyy h:mm:ss a' }
missing: ['?????', OVRFLW, MISSED]
meta: { separator: tab }
facts: { plate: Plate Number, date: [Date, Time] }
tables:
  wells: { every: '/^(Layout|Results)$/', grid: true }
  curve: { after: StdCurve Fitting }
`);
  const text = file(`


Software Version→9.1

Experiment File Path:→C:\\runs\\made up.xpt

Plate Number→Plate 4
Date→2/3/2026
Time→9:00:04 PM
Reader Type:→n/a

Procedure Details

Read→Dye
→Absorbance Endpoint

Layout
→1→2→3
A→STD1→SPL1→SPL2→Well ID
→20→→0.5→Conc/Dil
B→BLK→SPL1→→Well ID
→→→→Conc/Dil

Results
→1→2→3
A→0.337→OVRFLW→1.998→Dye:630
→12.5→?????→19.25→[Concentration]
B→0.001→0.998→→Dye:630
→-0.1→7.5→→[Concentration]

StdCurve Fitting Results

Curve Name→Curve Formula→A→R2→Fit F Prob
StdCurve→Y=A*X→0.0168→1→?????
`);
  const record = await read(text, mapping);
  expect(meta(record)).toMatchObject({ plate: 'Plate 4', date: '2026-02-03T21:00:04', 'Reader Type': 'n/a' });
  expect(columns(record)).toEqual([
    ...['well', 'Well ID', 'Conc/Dil'],
    ...['Dye:630', 'Dye:630 text', '[Concentration]', '[Concentration] text'],
  ]);
  expect(rows(record).map((row) => Object.values(row))).toEqual([
    ['A1', 'STD1', 20, 0.337, null, 12.5, null],
    ['A2', 'SPL1', null, null, 'OVRFLW', null, '?????'],
    ['A3', 'SPL2', 0.5, 1.998, null, 19.25, null],
    ['B1', 'BLK', null, 0.001, null, -0.1, null],
    ['B2', 'SPL1', null, 0.998, null, 7.5, null],
  ]);
  expect(rows(record, 1)).toEqual([
    {
      'Curve Name': 'StdCurve',
      'Curve Formula': 'Y=A*X',
      A: 0.0168,
      R2: 1,
      'Fit F Prob': null,
      'Fit F Prob text': '?????',
    },
  ]);
});

test('a kinetic run: unpivoted wells, without the filler rows of an aborted run', async () => {
  const mapping = parseYaml(`
delimiter: tab
dates: { format: 'MM/dd/yyyy h:mm:ss a' }
meta: { separator: tab }
facts: { plate: Plate Number, date: [Date, Time] }
tables:
  growth:
    header: '/^Time\\tT/'
    columns: { time: { from: Time, type: duration }, temperature: { from: 'T∞ 600', unit: °C } }
    where: { temperature: any }
    unpivot: '/^(?<well>[A-P]\\d+)$/'
  wells: { after: Results, grid: true }
`);
  const text = file(`
Plate Number→Plate 2
Date→02/03/2026
Time→12:30:01 PM

Start Kinetic→Runtime 1:00:00 (HH:MM:SS), 30 Reads
    Shake→Fast

600

Time→T∞ 600→A1→A2→B1
0:00:22→30.0→-0.066→-0.068→-0.054
0:04:22→30.1→0.010→0.020→0.030
0:00:00→→→→
0:00:00→→→→

Results
→1→2
A→0.750→0.500→Max V [600]
→0:18:22→0:20:22→Lagtime [600]
B→-3.900→→Max V [600]
`);
  const record = await read(text, mapping);
  expect(meta(record)).toMatchObject({ plate: 'Plate 2', date: '2026-02-03T12:30:01', Shake: 'Fast' });
  expect(columns(record)).toEqual(['time [s]', 'temperature [°C]', 'well', 'value']);
  expect(rows(record).map((row) => Object.values(row))).toEqual([
    [22, 30, 'A1', -0.066],
    [22, 30, 'A2', -0.068],
    [22, 30, 'B1', -0.054],
    [262, 30.1, 'A1', 0.01],
    [262, 30.1, 'A2', 0.02],
    [262, 30.1, 'B1', 0.03],
  ]);
  expect(rows(record, 1)).toEqual([
    { well: 'A1', 'Max V [600]': 0.75, 'Lagtime [600]': '0:18:22' },
    { well: 'A2', 'Max V [600]': 0.5, 'Lagtime [600]': '0:20:22' },
    { well: 'B1', 'Max V [600]': -3.9, 'Lagtime [600]': null },
  ]);
});

test('a plate reader with plates side by side, one pair per time, without letters', async () => {
  const mapping = parseYaml(`
delimiter: tab
dates: { format: 'M/d/yyyy h:mm:ss a' }
meta:
  - { line: '##BLOCKS', separator: '=' }
  - { line: 'Plate:', cells: { plate: 2, mode: 5, reading: 6, wavelengths: 17 } }
  - { match: '/Date Last Saved: (?<date>.+)/' }
table:
  after: 'Plate:'
  until: '/^\\t\\t1\\t/'                 # the reduced grid
  grid: [Ch1, Ch2]
  columns: { elapsed: { from: 1, type: duration }, temperature: { from: 2, unit: °C } }
`);
  const text = file(`
##BLOCKS= 3
Note:
Protocol of nobody
~End
Plate:→Plate9→1.3→PlateFormat→Kinetic→Fluorescence→FALSE→Raw→FALSE→4→300→90→→→→2→525 530→1→3
→Temperature(¡C)→1→2→→1→2
00:00:00→35→1→2→→10→20
→→3→→→30→40

00:01:30→35.5→5→6→→50→60
→→7→8→→70→80

→→1→2
→→0.34→0.19
~End
Original Filename: made up; Date Last Saved: 2/3/2026 3:33:58 PM
`);
  const record = await read(text, mapping);
  expect(meta(record)).toEqual({
    ...{ '##BLOCKS': 3, plate: 'Plate9', mode: 'Kinetic', reading: 'Fluorescence' },
    ...{ wavelengths: '525 530', date: '2026-02-03T15:33:58' },
  });
  expect(columns(record)).toEqual(['elapsed [s]', 'temperature [°C]', 'well', 'Ch1', 'Ch2']);
  expect(rows(record).map((row) => Object.values(row))).toEqual([
    [0, 35, 'A1', 1, 10],
    [0, 35, 'A2', 2, 20],
    [0, 35, 'B1', 3, 30],
    [0, 35, 'B2', null, 40],
    [90, 35.5, 'A1', 5, 50],
    [90, 35.5, 'A2', 6, 60],
    [90, 35.5, 'B1', 7, 70],
    [90, 35.5, 'B2', 8, 80],
  ]);
});

test('a potentiostat: name, type and value; two tables, one with `count`; a number that means no value', async () => {
  const mapping = parseYaml(`
delimiter: tab
dates: { format: 'M/d/yyyy HH:mm:ss' }
missing: ['-327.67']
meta: { separator: tab, value: 3 }
facts: { date: [DATE, TIME], potentiostat: PSTAT }
tables:
  impedance: { after: '/^ZCURVE\\tTABLE/', until: '/^\\S/', units: nextRow }
  ocv: { after: '/^OCVCURVE\\tTABLE/', until: '/^\\S/', units: nextRow, count: OCVCURVE }
`);
  const text = file(`
EXPLAIN
TAG→EISPOT
DATE→LABEL→2/3/2026→Date
TIME→LABEL→16:43:15→Time
NOTES→NOTES→2→&Notes...
→-50mV
→
PSTAT→PSTAT→REF0-17→Potentiostat
VDC→POTEN→-5.00000E-002→T→DC &Voltage (V)
OCVCURVE→TABLE→2
→Pt→T→Vf→Temp
→#→s→V vs. Ref.→deg C
→0→0.25→-3.46E-001→-327.67
→1→0.50→-3.45E-001→-327.67
EOC→QUANT→-0.29→Open Circuit (V)
ZCURVE→TABLE
→Pt→Freq→Zreal
→#→Hz→ohm
→0→200015.6→825.8
→1→158927.3→901.2
`);
  const record = await read(text, mapping);
  expect(meta(record)).toMatchObject({
    ...{ date: '2026-02-03T16:43:15', potentiostat: 'REF0-17', TAG: 'EISPOT', VDC: -0.05, EOC: -0.29 },
  });
  expect(record.tables.map(({ name, count }) => `${name} ${count}`)).toEqual(['impedance 2', 'ocv 2']);
  expect(columns(record)).toEqual(['Pt [#]', 'Freq [Hz]', 'Zreal [ohm]']);
  expect(columns(record, 1)).toEqual(['Pt [#]', 'T [s]', 'Vf [V vs. Ref.]', 'Temp [deg C]', 'Temp text']);
  expect(rows(record, 1)[1]).toEqual({ Pt: 1, T: 0.5, Vf: -0.345, Temp: null, 'Temp text': '-327.67' });
  const short = text.replace('→1→0.50→-3.45E-001→-327.67\n'.replaceAll('→', '\t'), '');
  await expect(read(short, mapping)).rejects.toThrow('table ocv has 1 row instead of 2');
});

test('a thermobalance: sections under one two-row header, with `count`', async () => {
  const mapping = parseYaml(`
delimiter: tab
dates: { format: 'dd.MM.yyyy HH:mm:ss' }
meta: { separator: ':' }
facts: { sample: Sample ID, date: Data Collected }
table:
  every: '/^(?<step>\\d+\\) TGA .+)/'
  header: Time                        # only the first section has one
  headerRows: 2
  columns: { time: { from: Time, unit: min }, weight: { from: Unsubtracted Weight, unit: mg } }
  count: Total Points in Run
`);
  const text = file(`
Filename:→TEST
Operator ID:→ 
Sample ID:→X-17 
Serial Number:→002042001 
Data Collected:→03.02.2026 12:19:21 
Sample Weight:→12.492 mg 
Filename:→TEST
Total Points in Run:→4 
Method Steps: 
1)→Hold for 1.0 min at 50.00°C 
 
1) TGA Isothermal 
→Time     →Unsubtracted→Baseline     
→          →Weight     →Weight     
→0.000000→12.409264→0.000000 
→0.016667→12.408839→0.000000 
2) TGA Temperature Scan 
→1.000000→12.392691→0.000000 
→1.016667→12.392478→0.000000 
`);
  const record = await read(text, mapping);
  expect(meta(record)).toMatchObject({
    ...{ sample: 'X-17', date: '2026-02-03T12:19:21', 'Serial Number': '002042001' },
    ...{ 'Sample Weight': 12.492, 'Operator ID': null, 'Filename (2)': 'TEST' },
  });
  expect(columns(record)).toEqual(['step', 'time [min]', 'weight [mg]', 'Baseline Weight']);
  expect(rows(record).map(({ step, time }) => [step, time])).toEqual([
    ['1) TGA Isothermal', 0],
    ['1) TGA Isothermal', 0.016667],
    ['2) TGA Temperature Scan', 1],
    ['2) TGA Temperature Scan', 1.016667],
  ]);
});

test('a gas sorption analyser: pairs at fixed positions, a table split at blanks', async () => {
  const mapping = parseYaml(`
dates: { format: 'MM/dd/yyyy HH:mm' }
meta:
  - { match: '/^Operator:\\s+(?<operator>\\S+)\\s+Date:(?<date>\\S+ \\d\\d:\\d\\d)/' }
  - { match: '/^Sample ID:\\s+(?<sample>.+?)Filename:/' }
  - { after: Sample Desc, until: blank, delimiter: { at: [36, 71] }, in: cells, separator: ':' }
table: { header: Press, delimiter: spaces, units: nextRow, until: eof }
`);
  const text = file(`
                        Automated Gas Sorption Data
                                version 9.0

Analysis                                          Report
Operator:      Ada            Date:02/03/2026 19:56Operator:Bob                 Date:2026/05/06
Sample ID:     X-17_N2_77KFilename:     X-17_N2.raw
Sample Desc:   X-17 LP            Comment:
Outgas Time:   24.0 hrs            Outgas Temp:   120.0 °C            Sample Weight: 0.0339 g
Analysis gas:  Nitrogen            Molec. Wt:     28.0134 g           Non-ideality:  6.58e-05 1/Torr

      Press            P0         Volume @ STP        Time             Tol

      Torr            Torr             cc              min

       0.0020        764.02            0.0049          0.0             5
       0.0021        764.02            0.0062          0.5             5
`);
  const record = await read(iconv.encode(text, 'windows-1252'), mapping);
  expect(meta(record)).toEqual({
    ...{ operator: 'Ada', date: '2026-02-03T19:56:00', sample: 'X-17_N2_77K' },
    ...{ 'Outgas Time': 24, 'Outgas Temp': 120, 'Sample Weight': 0.0339 },
    ...{ 'Analysis gas': 'Nitrogen', 'Molec. Wt': 28.0134, 'Non-ideality': 6.58e-5 },
  });
  expect(record.meta.get('Outgas Temp')?.unit).toBe('°C');
  expect(columns(record)).toEqual(['Press [Torr]', 'P0 [Torr]', 'Volume @ STP [cc]', 'Time [min]', 'Tol']);
  expect(rows(record)[1]).toEqual({ Press: 0.0021, P0: 764.02, 'Volume @ STP': 0.0062, Time: 0.5, Tol: 5 });
});

test('a photon counter: values below their names, a computed axis', async () => {
  const mapping = parseYaml(`
delimiter: tab
comment: '#'
dates: { format: 'MM/dd/yy HH:mm:ss' }
meta:
  - { line: 1, cells: { software: 1, date: 4 } }
  - { after: 1, until: '#counts', separator: nextLine }
table:
  after: '#counts'
  header: none
  columns: { time: { start: 0, step: ns/bin, unit: ns }, counts: 1 }
  count: channels per curve
`);
  const text = file(`
#Counter 99  Histogram Data→→→02/03/26 15:09:45
#channels per curve
4
#display curve no.
0→
#ns/bin
0.2500→
#counts
7→
0→
1→
12→
`).replaceAll('\n', '\r\n');
  const record = await read(text, mapping);
  expect(meta(record)).toEqual({
    ...{ software: 'Counter 99  Histogram Data', date: '2026-02-03T15:09:45' },
    ...{ 'channels per curve': 4, 'display curve no.': 0, 'ns/bin': 0.25 },
  });
  expect(columns(record)).toEqual(['time [ns]', 'counts']);
  expect(rows(record)).toEqual([
    { time: 0, counts: 7 },
    { time: 0.25, counts: 0 },
    { time: 0.5, counts: 1 },
    { time: 0.75, counts: 12 },
  ]);
});
