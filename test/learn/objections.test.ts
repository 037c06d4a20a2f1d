import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { leaveOutWrong } from '../../src/learn/objections.js';
import type { Column, FileRecord, Table, Value } from '../../src/model.js';
import { createRefuse, type Line } from '../../src/parse/lines.js';
import { measured, meta, read } from '../support/reading.js';

const asValue = (text: string): Value => ({ value: /^-?\d+(?:\.\d+)?$/.test(text) ? Number(text) : text, text });

const tableOf = (columns: readonly Column[], ...rows: string[][]): Table => ({
  name: 'readings',
  columns,
  rows: rows.map((row) => row.map(asValue)),
  count: rows.length,
});

/** What becomes of facts and tables that were read from a text. */
async function check(text: string, facts: Record<string, string>, tables: readonly Table[] = [], delimiter?: string) {
  const record = (left: ParseMapping): FileRecord => {
    const except = [left.meta ?? []].flat().flatMap((finder) => finder.except ?? []);
    const kept = Object.entries(facts).filter(([name]) => !except.includes(name.replace(/ \(\d+\)$/, '')));
    return { meta: new Map(kept.map(([name, value]) => [name, asValue(value)])), tables, unread: [] };
  };
  const mapping: ParseMapping = { meta: { separator: ':' } };
  const lines = text.split('\n').map((line, n) => ({ number: n + 1, text: line, cells: line.split(/[,\t]/) }));
  const refuse = createRefuse('run.txt');
  const net = await leaveOutWrong(mapping, record(mapping), {
    ...{ lines, lost: new Set<Line>(), top: lines, delimiter, refuse },
    read: async (left) => record(left),
  });
  return { kept: [...net.record.meta.keys()], doubts: net.doubts, refusal: net.refusal?.message };
}

describe('a fact that the text does not support is left out', () => {
  test.each([
    ['a number as name', '0.026: -0.5', { '0.026': '-0.5' }, 'the name is not a word'],
    ['a path as name', 'C:\\data\\S1\tMC', { 'C:\\data\\S1': 'MC' }, 'the name is not a word'],
    ['a unit as name', '[min]\tArea', { '[min]': 'Area' }, 'the name is not a word'],
    ['half a cell', 'A2: 40;g/dL;415', { A2: '40;g/dL;415' }, 'a cell was cut at a sign that is no delimiter'],
    [
      'a second name and its number',
      'User\tAda\tSize\t2.5',
      { User: 'Ada', 'User (2)': 'Size', 'User (3)': '2.5' },
      'other values of its line are not read',
    ],
    ['a sign in a cell of its own', 'Gain\t:\t39', { Gain: ':' }, 'the value is only a colon or an equals sign'],
    [
      'a name above its value',
      'Year\tMonth\tDay\n2020\t09\t22',
      { Year: 'Month' },
      'a line of names is above a line of their values',
    ],
    [
      'a name above its value, if both are words',
      'Sample\tBatch\tMethod\nS1\tB7\tUV1',
      { Sample: 'Batch' },
      'a line of names is above a line of their values',
    ],
    [
      'a value beside another one',
      'Sample\tOperator\tMethod\nS1\tAda\tUV1',
      { S1: 'Ada' },
      'a line of names is above a line of their values',
    ],
    [
      'the first of several names with digits',
      'Lot\tExpires\tCL1 Done\tCL1 Volts\nC05\t11/28/2025\tTrue\t88.5',
      { Lot: 'Expires' },
      'a line of names is above a line of their values',
    ],
    [
      'names above values, padded with empty cells',
      'Lot,Amps,RP1Volts,,,\nB1,3374.5,12.5,,,\nMode,scan,,,,',
      { Lot: 'Amps', 'Lot (2)': 'RP1Volts' },
      'a line of names is above a line of their values',
    ],
    [
      'values below names, beside another table',
      'Lot,Volts,Amps,,Lot,Volts\nB1,3374.5,12.5,,B2,3371.2',
      { B1: '3374.5', 'B1 (2)': '12.5' },
      'a line of names is above a line of their values',
    ],
    [
      'a name and that of a quantity',
      'Sample,Weight,,\nS-17,12.5,,',
      { Sample: 'Weight' },
      'a line of names is above a line of their values',
    ],
    [
      'rows below names and their units',
      'Sample,Signal\n,mV\nS-01,1.5\nS-02,2.5\nS-03,3.5',
      { 'S-03': '3.5', 'S-02': '2.5' },
      'a line of names is above a line of their values',
    ],
    [
      'the names of two facts',
      'Analyst,Date\nAda,Monday',
      { Analyst: 'Date' },
      'a line of names is above a line of their values',
    ],
    [
      'words beside a number',
      'Plate\tName\tType\t96',
      { Plate: 'Name', 'Plate (2)': 'Type' },
      'other values of its line are not read',
    ],
    ['a name of a column', 'Wavelength (nm): 10mm Absorbance', { 'Wavelength (nm)': '10mm Absorbance' }, 'a word'],
    ['a time as name', '14:09:24  Progressive', { '14:09:24': 'Progressive' }, 'the name is not a word'],
    ['a label as value', 'Pump: Delay:', { Pump: 'Delay:' }, 'the value is another name'],
    ['the name of another fact as value', 'Pump Delay', { Pump: 'Delay', Delay: '3' }, 'the value is another name'],
    ['a unit as value', 'HIT [N/mm²] 8553', { HIT: '[N/mm²]' }, 'the value is only a unit'],
    ['the name as value', 'start_mass: Start Mass [AMU]', { start_mass: 'Start Mass [AMU]' }, 'the value repeats'],
    ['half a bracket', 'mu: {min: 0.2, max: 1}', { mu: '{min: 0.2' }, 'a bracket is open'],
    ['half a name', 'Offset (D h:m:s): 0', { 'Offset (D h': 'm:s): 0' }, 'a bracket is open'],
    ['a value in the name', 'STEP .M    -0.125 : STEP', { 'STEP .M    -0.125': 'STEP x' }, 'the name contains a value'],
    ['a date in the name', 'date 2023-05-30   17', { 'date 2023-05-30': '17' }, 'the name contains a value'],
    ['several pairs', 'HEM 0\tLIP 1+\tICT 0', { 'HEM 0': 'LIP 1+' }, 'the name contains a value'],
    ['half a time', 'Impedance at 14:55:07', { 'Impedance at 14': '55:07' }, 'was cut'],
    ['half a number', 'Eluent: 0,07M', { Eluent: '0' }, 'was cut'],
    ['half a unit', 'Range: 500 mV/div', { Range: '500 mV' }, 'was cut'],
  ])('%s', async (_, text, facts, reason) => {
    const { kept, doubts } = await check(text, { ...facts, Operator: 'Ada' });
    expect(kept).not.toContain(Object.keys(facts)[0]);
    expect(kept).toContain('Operator');
    expect(doubts.join()).toContain(reason);
    expect(doubts.join()).toMatch(/^left out, because /);
  });

  test('values before their names, with words as values', async () => {
    const facts = { '1.5': 'Mean', '0.2': 'Deviation', '7': 'Count', 'FS1.hap': 'Name of the application' };
    expect((await check('', facts)).kept).toEqual([]);
  });

  test('unless the same name also has a right value, which it would take along', async () => {
    const { kept, doubts } = await check('Pump: 3\nPump: Delay:', { Pump: '3', 'Pump (2)': 'Delay:' });
    expect(kept).toEqual(['Pump', 'Pump (2)']);
    expect(doubts).toEqual(['facts that may be wrong, because the value is another name: "Pump" ("Delay:")']);
  });

  test('and the run is held if those are most facts', async () => {
    const facts = Object.fromEntries(Array.from({ length: 12 }, (_, n) => [`${n}.5`, `${n}`]));
    expect((await check('', facts)).refusal).toBe('12 of 12 facts in the file were not understood');
  });
});

describe('a fact that may be wrong is shown with a doubt', () => {
  test.each([
    ['several cells', 'Gain\t620\t570', { Gain: '620\t570' }, 'tab', 'the value is several cells of the line'],
    ['several cells with commas', 'Dwell,0.20,0.30', { Dwell: '0.20,0.30' }, ',', 'several cells'],
    [
      'other names',
      'Lat: 35.0 Long: -106.5 Elev: 1630 m',
      { Lat: '35.0 Long: -106.5 Elev: 1630 m' },
      undefined,
      'other names',
    ],
    [
      'a row of names',
      'Sensor,Slope,Offset,Interval',
      { Sensor: 'Slope', 'Sensor (2)': 'Offset', 'Sensor (3)': 'Interval' },
      ',',
      'a row of a table',
    ],
  ])('%s', async (_, text, facts, delimiter, reason) => {
    const { kept, doubts } = await check(text, facts, [], delimiter);
    expect(kept).toEqual(Object.keys(facts));
    expect(doubts.join()).toContain(reason);
  });
});

test.each([
  ['a unit in the name', 'Mass (mg): 3.98', { Mass: '3.98' }],
  ['an axis', 'X axis: Time\nTime: 3', { 'X axis': 'Time', Time: '3' }],
  ['a word that is also a unit', 'Battery: cell', { Battery: 'cell' }],
  ['a word that is its own value', 'User: USER', { User: 'USER' }],
  ['a condition in the name', 'Area at p = 0.3: 158', { 'Area at p = 0.3': '158' }],
  ['a heading that ends in a sign', 'Assay 7:', { heading: 'Assay 7:' }],
  ['a sign', 'Delimiter: ","', { Delimiter: ',' }],
  ['a gas', 'Atmosphere: N2', { Atmosphere: 'N2' }],
  ['a path', 'File: C:\\Data\\a=1.csv', { File: 'C:\\Data\\a=1.csv' }],
  ['a limit', '< 83: 0 %', { '< 83': '0 %' }],
  ['the same letters in another word before', 'Injector: 15\nInj: 1', { Inj: '1' }],
  ['the same letters in its line before', 'Injected: 6/12/2018   Inj: 1', { Inj: '1' }],
  ['the same digit in its line before', 'Gain,10.000,0,30', { Gain: '10.000', 'Gain (2)': '0' }],
  ['a word above a name and a number', 'Project,Viscosity\nRun,17', { Project: 'Viscosity', Run: '17' }],
  ['a word above a count', 'Detector,absorbance\nNo. of scans,38', { Detector: 'absorbance', 'No. of scans': '38' }],
  ['a fact above another one', 'Sample,Mean\nOperator,Date 7', { Sample: 'Mean', Operator: 'Date 7' }],
  ['settings of two channels', 'Detector,PMT,APD\nGain,620,570', { Detector: 'PMT', Gain: '620', 'Gain (2)': '570' }],
  ['a text with commas', 'Comment: red, green, blue', { Comment: 'red, green, blue' }],
])('a fact that is right is kept without a doubt: %s', async (_, text, facts) => {
  expect(await check(text, facts, [], ',')).toEqual({ kept: Object.keys(facts), doubts: [], refusal: undefined });
});

test('without a mapping, the entry shows the doubts; `learn` shows them with the mapping', async () => {
  const text = 'Sample: S 17\nTitle: Lat: 35.0 Long: -106.5 Elev: 1630 m\nMode: scan\n\nx,y,z\n1,2,3\n4,5,6\n7,8,9\n';
  const doubt = expect.stringContaining('facts that may be wrong, because the value contains other names');
  expect((await read(text)).assumed).toEqual([doubt]);
  expect((await measured(text)).doubts).toContainEqual(doubt);
});

test('the unit of a column, written like a fact, is kept', async () => {
  const table = tableOf([{ name: 'Time' }, { name: 'Humidity' }], ['1', '37.9'], ['2', '38.1']);
  expect((await check('Humidity,%rh', { Humidity: '%rh' }, [table], ',')).kept).toEqual(['Humidity']);
});

describe('a table that the text does not support', () => {
  const xy = [{ name: 'x' }, { name: 'y' }];

  test.each([
    [
      'a value as name',
      tableOf([{ name: 'Calib.' }, { name: '= 36 cts/s' }], ['a', '1'], ['b', '2']),
      /no name of a column/,
    ],
    ['a time as name', tableOf([{ name: 'Start' }, { name: '2014 04:28:17 PM' }], ['1', '2']), /no name of a column/],
    ['a row of words', tableOf(xy, ['Abs', 'Conc'], ['1', '2'], ['3', '4'], ['5', '6']), /row with "Abs" is unlike/],
  ])('holds the run: %s', async (_, table, reason) => {
    const { refusal, doubts } = await check('', {}, [table]);
    expect(refusal).toMatch(reason);
    expect(doubts.join()).toMatch(reason);
  });

  test.each([
    ['two values in a cell', tableOf(xy, ['1', '2639.3 0.007'], ['2', '2641.4 0.006']), /"y" .* several values/],
    ['a unit without numbers', tableOf([{ name: 'x', unit: 'mg' }], ['DATA'], ['DATA']), /its unit is "mg"/],
    ['a ratio with a unit', tableOf([{ name: 'Conc. RSD', unit: 'ug/L' }], ['2.4']), /a ratio does not/],
    ['words beside words', tableOf(xy, ['Chemistry', 'SYBR'], ['Reference', 'ROX']), /a list of facts/],
  ])('is shown with a doubt: %s', async (_, table, reason) => {
    const { refusal, doubts } = await check('', {}, [table]);
    expect(refusal).toBeUndefined();
    expect(doubts.join()).toMatch(reason);
  });

  test('names and values below a fact may be further facts', async () => {
    const table = tableOf([{ name: 'Instrument' }, { name: 'HX-5' }], ['Slope', '1.2'], ['Offset', '0.1']);
    expect((await check('', {}, [table])).doubts.join()).toMatch(/a list of facts/);
    const samples = tableOf([{ name: 'Sample' }, { name: 'Result' }], ['Kaolin', '1.2'], ['Quartz', '0.1']);
    expect((await check('', {}, [samples])).doubts).toEqual([]);
  });

  test('a row that has a fact and none of the numbers of the others', async () => {
    const names = [{ name: 'Control' }, { name: 'Level' }, { name: 'Found' }];
    const all = [
      ['pH', 'low', '5.1'],
      ['pH', 'high', '7.1'],
    ];
    const found = await check('', {}, [tableOf(names, ...all, ['Operator', 'Ada', ''])]);
    expect(found.doubts).toEqual(['the table "readings" may be wrong: the row with "Operator" may be a fact']);
    expect((await check('', {}, [tableOf(names, ...all, ['Sample', 'mid', ''])])).doubts).toEqual([]);
  });

  test('the label of a line that is left in a name', async () => {
    const table = tableOf([{ name: 'Trace: Time' }, { name: 'ECG' }], ['0', '1'], ['2', '3']);
    expect((await check('', {}, [table])).doubts.join()).toMatch(
      /"Trace: Time" .* may begin with the label of the header line/,
    );
  });

  test('the name of a line is no name of a column', async () => {
    const table = tableOf([{ name: 'Title' }, { name: 'ECG' }], ['0', '1'], ['2', '3']);
    expect((await check('Title=\tECG', {}, [table])).doubts.join()).toMatch(/"Title" .* that of its line/);
  });

  test.each([
    ['quantities as rows', tableOf(xy, ['pH', '7.1'], ['Temp', '25'], ['Note', 'ok'])],
    ['a log', tableOf(xy, ['10:05:44', 'started'], ['10:06:40', 'ended'])],
    ['a time zone', tableOf([{ name: 'Time, GMT-04:00' }, { name: 'y' }], ['1', '2'], ['3', '4'])],
  ])('no doubt: %s', async (_, table) => {
    expect((await check('', {}, [table])).doubts).toEqual([]);
  });
});

test('names without a gap between two of them are no facts, and neither are the values below', async () => {
  const text =
    'PositionType    Application    Sample name    Date\nA-1  Quant      Ti on Si       S_13           2022- 2-22 09:33\n';
  const record = await read(`${text}\nx   y   z\n1   2   3\n4   5   6\n7   8   9\n`);
  expect(Object.keys(meta(record)).filter((name) => /Position|A-1/.test(name))).toEqual([]);
});

describe('a column whose numbers the file says to multiply', () => {
  const readings = (factor: string) =>
    measured(
      `Signal Units: mV\nSignal Multiplier: ${factor}\nDilution Factor: 10\n\nTime\tSignal\tDilution\n0\t-5\t1\n1\t-3\t1\n2\t8\t1\n`,
    );
  const unitOf = (column: unknown) => (column as { unit?: unknown } | undefined)?.unit;
  const columnsOf = ({ mapping }: Awaited<ReturnType<typeof measured>>) =>
    mapping.table?.columns as Record<string, unknown> | undefined;

  test('has no unit, and a doubt says so', async () => {
    const found = await readings('0.001');
    expect(unitOf(columnsOf(found)?.['Signal'])).toBeUndefined();
    expect(found.doubts).toEqual([
      expect.stringMatching(/"Signal" .*: its numbers are as written, not multiplied by "Signal Multiplier" \(0.001\)/),
    ]);
  });

  test('is named if only the second factor is not 1', async () => {
    const block = (n: number, factor: string) =>
      `[Channel ${n}]\nSignal Units: mV\nSignal Multiplier: ${factor}\n\nTime\tSignal\n0\t-5\n1\t-3\n2\t8\n3\t9\n`;
    const found = await measured(`${block(1, '1')}\n${block(2, '0.001')}`);
    expect(JSON.stringify(found.mapping)).not.toContain('"from":"Signal Units');
    expect(found.doubts.join('\n')).toContain('not multiplied by "Signal Multiplier (2)" (0.001)');
  });

  test('has its unit if the factor is 1', async () => {
    const found = await readings('1');
    expect(unitOf(columnsOf(found)?.['Signal'])).toEqual({ from: 'Signal Units' });
    expect(found.doubts).toEqual([]);
  });
});

describe('a factor that names no column is a doubt about the table', () => {
  const curve = '400.0\t1021\n400.5\t1031\n401.0\t1045\n401.5\t1077\n';
  const doubtsOf = async (factor: string, names = '') =>
    (await read(`Device\tHX-5\n${factor}\nMode\tscan\n\n${names}${curve}`)).assumed?.join('\n');

  test.each([
    ['without names of columns', 'Y Axis Multiplier\t0.00013', ''],
    ['with other names', 'Scaling Factor\t1000', 'Wavelength\tSignal\n'],
    ['of a channel with another name', 'CH1 Multiplier\t0.002', 'Time\tVolt\n'],
    ['with the channel behind it', 'Scale factor for channel 1\t0.002', 'Time\tVolt\n'],
    ['after a sign', 'Multiplier\tx1000', 'Time\tVolt\n'],
  ])('%s', async (_, factor, names) => {
    const [name = '', number = ''] = factor.split('\t');
    expect(await doubtsOf(factor, names)).toBe(
      `the table "readings" may be wrong: its numbers are as written, and some may have to be multiplied by "${name}" (${number})`,
    );
  });

  test('and about the column of that axis, if it has the name', async () => {
    expect(await doubtsOf('Y Axis Multiplier\t0.00013', 'X\tY\n')).toMatch(
      /^the column "Y" of .* not multiplied by "Y Axis/,
    );
  });

  test('with both factors of one name', async () => {
    const doubts = await doubtsOf('Y Multiplier\t0.5\nMultiplier Y\t0.25', 'Time\tVolt\n');
    expect(doubts).toContain('"Y Multiplier" (0.5)');
    expect(doubts).toContain('"Multiplier Y" (0.25)');
  });

  test.each([
    'Y Axis Multiplier\t1',
    'Electron multiplier\t1800',
    'Multiplier\t1800 V',
    'Dilution factor\t10',
    'Multiplier voltage\t900',
  ])('no doubt: %j', async (factor) => {
    expect(await doubtsOf(factor)).toBeUndefined();
  });
});

describe('a value that was cut at a sign is left out', () => {
  const table = '\nTime\tVolt\n0\t1.5\n1\t1.25\n2\t1.75\n';
  const facts = ['Instrument: SP-10', 'Gain: 4', 'Operator: Ada'];
  const readBelow = (...lines: readonly string[]) => read(`${[...facts, ...lines].join('\n')}\n${table}`);

  test.each([
    ['Setup: PROBE : {DN},PROBE : {DN}'],
    ['Footer: Page : {PAGE},Printed : {DATE}'],
    ['12:03 Valve changed, Old:OFF, New:ON', '12:09 Pump speed set, Old:10, New:20'],
    ['Event 12:09 Pump speed set, Old: 10, New: 20'],
    ['2024-03-05 12:03:10 Lamp energy: 1234, Old: 5, New: 6', '2024-03-05 12:04:10 Gain: 2, Old: 1, New: 2'],
  ])('%j', async (...lines) => {
    const record = await readBelow(...lines);
    const { Instrument, Gain, Operator, date: _, 'heading 2': __, ...others } = meta(record);
    expect({ Instrument, Gain, Operator, others }).toEqual({
      ...{ Instrument: 'SP-10', Gain: 4, Operator: 'Ada', others: {} },
    });
    expect(record.unread).not.toEqual([]);
  });

  test.each([
    ['Temp: 21.5, Humidity: 40', { Temp: 21.5, Humidity: 40 }],
    ['Saved: 12:03:10 PM, Version: 4', { Version: 4 }],
    ['Saved: 2024-03-05 12:03:10 UTC, Version: 4', { Version: 4 }],
    ['Id: {3F2504E0-4F89}', { Id: '{3F2504E0-4F89}' }],
  ])('other than %j', async (line, expected) => {
    expect(meta(await readBelow(line, 'Mode: A, Slit: 2'))).toMatchObject({ ...expected, Slit: 2 });
  });
});

test('words below words in the same cells are a doubt', async () => {
  const small =
    'Device,X,,,,,,\nName,Level,Result,,Name,Level,Result,\nGlucose,Low,Pass,,Lactate,Low,Fail,\nMode,scan,,,,,,\n';
  const row = (n: number) => `0.${n},20.${n},3.${n},5.${n},0.1${n},0.5,1,2\n`;
  const { assumed } = await read(
    `${small},,,,,,,\nTime,Temp,Flow,Volts,Amps,Power,A,B\n${[1, 2, 3, 4].map(row).join('')}`,
  );
  expect(assumed).toEqual([
    'facts that may be wrong, because the line may be a row of a table: "Name" ("Level"), "Glucose" ("Low"), "Lactate" ("Low")',
  ]);
});

test('a value that is also the address of a cell is no other name', async () => {
  expect((await check('Lot,X\nB1,True', { A1: 'Lot', B1: 'X', A2: 'B1' }, [], ',')).doubts).toEqual([]);
});

test('rows of a table that cannot be read are no facts', async () => {
  const small = 'Lot,Expires,Lot,RP1Volts,B1,B1,,\nC05,11/28/2025,C06,3374.5,3371.2,12.1,,\n';
  const row = (n: number) => `0.${n},20.${n},3.${n},5.${n},0.1${n},0.5,1,2\n`;
  const record = await read(
    `${small},,,,,,,\nOperator,Ada,,,,,,\n,,,,,,,\nTime,Temp,Flow,Volts,Amps,Power,A,B\n${[1, 2, 3, 4].map(row).join('')}`,
  );
  expect(meta(record)).toEqual({ Operator: 'Ada' });
  expect(record.assumed?.join()).toContain('left out, because the line is in a table that cannot be read: "Lot"');
});

test('names in several lines above a table that has none are no facts', async () => {
  const facts = [
    'Log (Version 3),,',
    ',,',
    'Subject:,AB1,',
    'Age:,31,years',
    'Start Date:,13-May-21,(Thu)',
    'Place:,A,',
  ];
  const names = [
    'Step#,Part#,Elapsed,Signal,Count,Power,Class,Marker',
    ',,Seconds,Counts,,Expended,,Button',
    ',,,,,kW/m,(1=low),(1=pressed)',
    ',,,,,,(2=mid),(0=not pressed)',
    ',,,,,,(3=high),',
  ];
  const rows = [1, 2, 3, 4, 5].map((n) => `${n},1,${60 * n},25${n},1${n},0.${n},1,0`);
  const record = await read(
    `${facts.map((line) => `${line},,,,,`).join('\n')}\n---- Data ----,,,,,,,\n${[...names, ...rows].join('\n')}\n`,
  );
  expect(record.tables.map(({ count }) => count)).toEqual([5]);
  expect(meta(record)).toMatchObject({ Subject: 'AB1', Age: 31 });
  expect(Object.keys(meta(record)).join()).not.toMatch(/Step|Expended|kW/);
  expect(record.assumed?.join()).toContain('"Step#"');
});

describe('values under a name of which only some are read are left out', () => {
  const table = '\nTime\tVolt\n0\t1.5\n1\t1.25\n2\t1.75\n';
  const report = [
    'Sample Name:              Method:                   Measured:',
    'Kaolin 5 - Average        Kaolin wet                Tuesday, March 14, 2023',
    '',
    'Medium:          Water            Accessory:       Hydro            Model:           General',
    'Index:           1.530            Absorption:      0.1              Obscuration:     12.41 %',
    '',
  ];
  const spaced =
    'No.   V/mL    E/mV    t/s\n1     0.000   -21.3   2\n2     0.050   -20.1   7\n3     0.100   -17.8   12\n';

  test.each([
    ['the number behind the type of a value', `Operator\tAda\nGAIN\tQUANT\t2.5\tGain factor\n${table}`, ['GAIN']],
    ['words below labels', `${report.join('\n')}\n${spaced}`, ['Kaolin 5 - Average']],
  ])('%s', async (_, text, names) => {
    const record = await read(text);
    for (const name of names) expect(meta(record)).not.toHaveProperty([name]);
    expect(record.assumed?.join() ?? '').toMatch(/left out/);
  });
});
