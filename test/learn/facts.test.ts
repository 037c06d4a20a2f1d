import { describe, expect, test } from 'vitest';
import { findPairs } from '../../src/learn/facts.js';
import { measured, meta, read } from '../support/reading.js';

const TABLE = '\n\nx,y,z\n1,2,3\n4,5,6\n7,8,9\n';
const TABS = TABLE.replaceAll(',', '\t');

describe('a list of facts', () => {
  test.each([
    ['with dots', 'Sample ....... S 17\nOperator ..... Ada\n', { Sample: 'S 17', Operator: 'Ada' }],
    ['with dots and colons', 'Sample ....: S 17\nOperator ..: Ada\n', { Sample: 'S 17', Operator: 'Ada' }],
    ['in brackets', '[Sample] S 17\n[Operator] Ada\n', { Sample: 'S 17', Operator: 'Ada' }],
    ['with quoted values', 'SAMPLE "S 17"\nOPERATOR "Ada"\n', { SAMPLE: 'S 17', OPERATOR: 'Ada' }],
    ['in single quotes', "_SAMPLE='S 17'\n_OPERATOR='Ada'\n", { _SAMPLE: 'S 17', _OPERATOR: 'Ada' }],
    ['with $', '$SAMPLE=S 17\n$OPERATOR=Ada\n', { SAMPLE: 'S 17', OPERATOR: 'Ada' }],
    [
      'with $ and a blank',
      '$CM_SIZE 12 10\n$CM_MAG 5000\n$$SM_WD 8.1 mm\n',
      { CM_SIZE: '12 10', CM_MAG: 5000, SM_WD: 8.1 },
    ],
    ['in angle brackets', '<SAMPLE>= S 17\n<DATA FILE>= C:\\A=1.CHR\n', { SAMPLE: 'S 17', 'DATA FILE': 'C:\\A=1.CHR' }],
    [
      'with dashes',
      'TAG - live\nGAIN - 2\nSAMPLE - Fe foil - 30 kV\nLIVE_TIME - 58.25\nOFFSET - -3\n',
      { TAG: 'live', GAIN: 2, SAMPLE: 'Fe foil - 30 kV', LIVE_TIME: 58.25, OFFSET: -3 },
    ],
    ['with #', '#Sample: S 17\n#Operator: Ada\n', { Sample: 'S 17', Operator: 'Ada' }],
    [
      'with aligned values',
      'Sample      S 17\nOperator    Ada\nMethod      Scan\nLamp        D2\n',
      { Sample: 'S 17', Operator: 'Ada', Method: 'Scan', Lamp: 'D2' },
    ],
    [
      'side by side',
      'Sample: S 17   Operator: Ada\nLamp: D2   Mode: scan\n',
      { Sample: 'S 17', Lamp: 'D2', Mode: 'scan' },
    ],
    [
      'beside words with a number',
      'Method: USP 2  Run no. 2211  Started 2022-05-30 07:58\nLamp: D2\nMode: scan\n',
      { Method: 'USP 2', Lamp: 'D2', Mode: 'scan' },
    ],
    ['with aligned units', 'Level = 400.0   cm\nRange = 1750.0  cm\nMode = scan\n', { Level: 400, Range: 1750 }],
    ['in one line', 'Sample: S 17, Operator: Ada, Lamp: D2\n', { Sample: 'S 17', Operator: 'Ada', Lamp: 'D2' }],
    [
      'with units of gravity and pressure',
      'g: 2.38 µGal\nDrift: -3.0 µGal/cm\nAir: 832.16 mBar\n',
      { g: 2.38, Drift: -3, Air: 832.16 },
    ],
    ['with a unit in the name', 'Temp (°C): 25\nMode: scan\n', { Temp: 25, Mode: 'scan' }],
    ['with a unit in a third cell', 'Temp,25,°C\nTime,3,min\nMode,scan\n', { Temp: 25, Time: 3, Mode: 'scan' }],
  ])('%s', async (_, text, facts) => {
    expect(meta(await read(text + TABLE))).toMatchObject(facts);
  });

  test.each([
    [
      'padded names',
      '90Pulse1H   = -16\nCustom      = ""\nProtocol    = "1D +"\nSample      = "S 17 M"\nGain        = 31\nMode        = "a:b"\n',
      { '90Pulse1H': -16, Custom: null, Protocol: '1D +', Sample: 'S 17 M', Gain: 31, Mode: 'a:b' },
    ],
    [
      'values that commas would split',
      'Range: 1,2\nGain: 3,4\nOffset: 5,6\nLimit: 7,8\nStep: 9,1\n',
      { Range: '1,2', Gain: '3,4', Offset: '5,6', Limit: '7,8', Step: '9,1' },
    ],
  ])('can be a whole file: %s', async (_, text, facts) => {
    const record = await read(text);
    expect(meta(record)).toEqual(facts);
    expect(record.tables).toEqual([]);
  });

  test('is not a table with a sign after the name of each row', async () => {
    const rows = Array.from({ length: 12 }, (_, n) => `S${n}:\t${n}.5\t${n}.25\n`).join('');
    const { tables } = await read(`Name\tx\ty\n${rows}`);
    expect(tables.map(({ count }) => count)).toEqual([12]);
  });

  test.each([
    [
      'a value in its first line',
      'Block,96fast\nDye,GREEN\nModel,plus\nReference,ROX\n',
      { Block: '96fast', Dye: 'GREEN' },
    ],
    ['a path', 'Block,fast\nFile,D:\\run.eds\nModel,plus\nReference,ROX\n', { Block: 'fast', Reference: 'ROX' }],
  ])('can be words only, above a table: %s', async (_, text, facts) => {
    const record = await read(text + TABLE);
    expect(meta(record)).toMatchObject(facts);
    expect(record.tables.map(({ count }) => count)).toEqual([3]);
  });

  test('has no names of axes and no units as values', async () => {
    const axes = '#O0   slit  gap  mono\n#O1 piezo  pitch  shutter  slide\n\n#S 1  scan mono 14 13 183\n#T 100  (ms)\n';
    const rows = Array.from({ length: 9 }, (_, n) => ` ${n} 17${n} 1${n}\n`).join('');
    const facts = meta(await read(`#F a.dat\n#C run  User = Ada\n${axes}#P0  16.5 10.9 14.8\n#N 3\n${rows}`));
    expect(facts).not.toHaveProperty('T 100');
    expect(facts).not.toHaveProperty('O1 piezo');
  });

  test('needs several lines of words and a number', async () => {
    const title = 'Example GmbH\nSpectra 950\nSerial: 17\nLamp: D2\n';
    const facts = meta(await read(title + TABLE));
    expect(facts).not.toHaveProperty('Spectra');
    expect(facts).toMatchObject({ A2: 'Spectra 950', Serial: 17 });
    const list = 'Example GmbH\n\nSerial 4711\nRun 12\nVersion 2.5\n';
    expect(meta(await read(list + TABLE))).toMatchObject({ Serial: 4711, Run: 12, Version: 2.5 });
  });

  test('can have a line with several of them, and values with commas', async () => {
    const text = 'Name: A, B and C\nOptions: fast, cold\nWavelengths: 450, Speed: Normal, Delay: 100 ms\n';
    const facts = { Name: 'A, B and C', Options: 'fast, cold', Wavelengths: 450, Speed: 'Normal', Delay: 100 };
    expect(meta(await read(text + TABS))).toMatchObject(facts);
  });

  test('can have cells with a lone colon between name and value', async () => {
    const text = 'Probe,:,S 17,Operator,:,Ada\nLot,:,,Lamp,:,D2\n';
    expect(meta(await read(text + TABLE))).toMatchObject({ Probe: 'S 17', Operator: 'Ada' });
  });

  test('can have another delimiter than the table', async () => {
    const text = '"Unit=","PSC 1"\n"Lamp=","D2"\n"Time=",4\n"Remark=","leaf 6"\n';
    expect(meta(await read(text + TABS))).toEqual({ Unit: 'PSC 1', Lamp: 'D2', Time: 4, Remark: 'leaf 6' });
  });

  test('can have a name without a value before another name', async () => {
    const text = 'Completed:\tBath:\t77.3 K\nStarted:\t10:05\tGas:\tN2\n';
    expect(meta(await read(text + TABS))).toEqual({ Completed: null, Bath: 77.3, Started: '10:05', Gas: 'N2' });
  });

  test('can have a name without a value before a cell with a name and a value', async () => {
    const text = 'Analyst:          Data Type: Original\nSample: S 17      Lamp: D2\nDilution:         Volume: 50 mL\n';
    const facts = { Analyst: null, 'Data Type': 'Original', Sample: 'S 17', Lamp: 'D2', Dilution: null, Volume: 50 };
    expect(meta(await read(text + TABLE.replaceAll(',', '   ')))).toEqual(facts);
  });
});

test('facts above blocks are read even if the values of the blocks are unclear', async () => {
  const block = (n: number) =>
    `BEGIN IONS\nTITLE=S.${n} File:"S.raw", NativeID:"type=0 scan=${n}"\nMASS=5${n}.5 105\nCHARGE=2+\n1.5 3\n2.5 4\n3.5 ${n}\nEND IONS\n`;
  const blocks = [1, 2, 3, 4, 5, 6, 7, 8, 9].map(block).join('\n');
  expect(meta(await read(`INSTRUMENT=ESI-TRAP\nITOL=0.6\nCLE=Trypsin\n\n${blocks}`))).toEqual({
    INSTRUMENT: 'ESI-TRAP',
    ITOL: 0.6,
    CLE: 'Trypsin',
  });
});

test('a comma after the colon is no part of the value, also above rows that are split at blanks', async () => {
  const head = [
    '"Shore Lab, Inc.","Model 7","Version 2"',
    'Start Time:, 5/13/2019 10:12:33 AM',
    'Sample ID:, Ni sphere',
  ];
  const facts = [...head, 'Mass:, 0.0121 g', 'Averaging Time:, 0.1 s', '', '***DATA***'];
  const names = 'Field(G)             Moment(emu)          Temperature(K)';
  const rows = [1, 2, 3].map((n) => `-9.${n}0012E+3    -6.9${n}110E-1   2.98120E+2`);
  const record = await read(`${[...facts, names, ...rows].join('\n')}\n`);
  expect(meta(record)).toMatchObject({ 'Sample ID': 'Ni sphere', Mass: 0.0121 });
});

test('a unit with a dot is no part of the next name', async () => {
  const record = await read('# Size = 4\n# LEFT = 16.33 ppm. RIGHT = -3.98 ppm.\n# Owner = Ada\n1,2\n2,3\n3,4\n4,5\n');
  expect(record.meta.get('LEFT')).toMatchObject({ value: 16.33, unit: 'ppm' });
  expect(record.meta.get('RIGHT')).toMatchObject({ value: -3.98, unit: 'ppm' });
  expect(record.meta.has('ppm. RIGHT')).toBe(false);
});

test('a pair behind empty cells is another fact', async () => {
  const facts = [
    ...['Application: reader', '"reader , 1.10"', '', 'Device: R200,,,,Serial number: 110300,,,,,Stacker:', ''],
    ...['Date:,5/13/2019', 'Time:,10:12:33 AM', '', 'System,LAB-PC', 'User,Ada', 'Plate,P 96 flat', 'Label: L1'],
    ...['Mode,Absorbance', 'Wavelength,600,,,nm', 'Bandwidth,9,,,nm', 'Flashes,25', ''],
  ];
  const plate = ['<>,1,2,3,4,5,6', 'A,0.1,0.2,0.3,0.4,0.5,0.6', 'B,0.1,0.2,0.3,0.4,0.5,0.6'];
  const padded = [...facts, ...plate].map((line) => `${line}${','.repeat(13 - line.split(',').length)}`);
  const record = await read(`${padded.join('\n')}\n`);
  expect(meta(record)).toMatchObject({ Device: 'R200', 'Serial number': 110300, User: 'Ada' });
});

test('empty cells may stand between a value and its unit', async () => {
  const facts =
    'Mode,Absorbance,,,,,\nWavelength,600,,,nm,,\nBandwidth,9,,,nm,,\nFlashes,25,,,,,\nSettle Time,0,,,ms,,\n';
  const record = await read(`${facts},,,,,,\n<>,1,2,3,4,5,6\nA,0.1,0.2,0.3,0.4,0.5,0.6\nB,0.1,0.2,0.3,0.4,0.5,0.6\n`);
  expect(record.meta.get('Wavelength')).toMatchObject({ value: 600, unit: 'nm' });
  expect(record.meta.get('Settle Time')).toMatchObject({ value: 0, unit: 'ms' });
  expect(record.meta.get('Flashes')?.unit).toBeUndefined();
});

describe('no fact is', () => {
  test('a unit, with the cells before it as its name', async () => {
    const rows = [1, 2, 3, 4, 5, 6, 7, 8, 9].map((n) => `DATE,2019/10/30\nTIME,09:0${n}:30\nST,+0081${n}.34,  g\n`);
    const facts = meta(await read(`A & D\nMODEL,GX-4000\nID,LAB-0123\n${rows.join('')}`));
    expect(Object.keys(facts).filter((name) => name.includes(','))).toEqual([]);
  });

  test('a part of a time, a path, an address or a date', async () => {
    const lines = [
      'Sample\tS 17',
      'Time\t9:00:04 PM',
      'File\tC:\\Data\\run.dat',
      'Site\thttp://lab',
      'Mode: scan',
      'Lamp: D2',
    ];
    expect(meta(await read(`June 12, 2024   20:32:12\n${lines.join('\n')}${TABS}`))).toEqual({
      ...{
        Sample: 'S 17',
        Time: '9:00:04 PM',
        File: 'C:\\Data\\run.dat',
        Site: 'http://lab',
        Mode: 'scan',
        Lamp: 'D2',
      },
      ...{ A1: '2024-06-12T20:32:12', date: '2024-06-12T20:32:12' },
    });
  });

  test('a line that another finder reads', async () => {
    const text = 'User: Ada,Path: C:\\Data,Run no.: 3,,\nTest: ABS,Date: 2024-05-03,Time: 16:54:03,,\nAbsorbance,,,,\n';
    const { date, ...facts } = meta(await read(text + TABLE));
    expect(facts).toEqual({
      'heading 2': 'Absorbance',
      ...{ User: 'Ada', Path: 'C:\\Data', 'Run no.': 3, Test: 'ABS', Date: '2024-05-03', Time: '16:54:03' },
    });
    expect(date).toBe('2024-05-03T16:54:03');
  });

  test('a value together with the name and the value beside it', async () => {
    const text = 'Sample: nk_114pktFilename:    NK_114.raw\nRemark: first     see page two\nLamp: D2\nMode: scan\n';
    const facts = Object.entries(meta(await read(text + TABLE))).filter(([name]) => !/^A\d$/.test(name));
    expect(Object.fromEntries(facts)).toEqual({ Lamp: 'D2', Mode: 'scan' });
  });

  test('a drawn line, the name of a section, or a name without a value', async () => {
    const text = '==== BEGINNING ====\n[Settings]\nMode: scan\nLamp: D2\nRemarks:\n';
    expect(meta(await read(text + TABLE))).toEqual({ Mode: 'scan', Lamp: 'D2', Remarks: null });
  });

  test.each([
    ['the name of a section', 'Calibration Information'],
    ['the name of a section between signs', '** settings **'],
    ['a tag', '</Experiment>'],
    ['a legal notice', 'For Research Use Only. Not for use in diagnostic procedures.'],
  ])('%s between facts', async (_, line) => {
    const record = await read(`Mode: scan\nLamp: D2\n\n${line}\n\nGain: 7\n${TABS}`);
    expect(meta(record)).toEqual({ Mode: 'scan', Lamp: 'D2', Gain: 7 });
    expect(record.unread).toEqual([]);
  });

  test('a name without a value within a list', async () => {
    const text = '"Build","7"\n"Operator",""\n"Protocol",""\n"Site","Lab 3"\n';
    expect(Object.values(meta(await read(text + TABLE))).filter((value) => value !== null)).toEqual([7, 'Lab 3']);
  });

  test('the start of a sentence up to a time of day', async () => {
    const text = `Version: 7\nReviewed on Tue Mar 05 12:20:51 2024 by V7; User: Ada\nSerial number: S6-30; Computer: PC 4\n`;
    const facts = meta(await read(text + TABS));
    expect(facts).toMatchObject({ Version: 7, User: 'Ada', Computer: 'PC 4' });
    expect(Object.keys(facts).join()).not.toContain('Reviewed');
  });

  test('split at a comma within brackets', async () => {
    const text = 'Mode: scan\nLamp: D2\n\nS43(Full 4 Port(1,2,3,4))\n';
    expect(meta(await read(text + TABS))).toMatchObject({ 'heading 2': 'S43(Full 4 Port(1,2,3,4))' });
  });
});

test('a simple list needs a simple separator', async () => {
  const { mapping } = await measured(`Started: 10:05\nFile: C:\\Data\nMode: scan${TABLE}`);
  expect(mapping.meta).toEqual({ separator: ':' });
});

test('the value of a fact ends at the empty cell before the numbers beside it', async () => {
  const { mapping } = await measured(
    'Length,2500,,-0.5,0.02\nSource,CH1,,-0.4,0.68\nModel,TDS,,-0.3,1.28\n,,,-0.2,2.5\n',
  );
  expect(mapping.meta).toEqual({ separator: ',', value: 2 });
});

test('long lines among facts take no longer than their length requires', () => {
  const long = Array.from({ length: 4 }, (_, n) => `Note ${n} ${'381.95 '.repeat(2700)}`);
  const texts = ['Operator: Ada', '[Mode] scan', '[Gain] 4', 'Lamp = on', ...long];
  const lines = texts.map((text, n) => ({ number: n + 1, text, cells: [text] }));
  const before = process.cpuUsage();
  expect(findPairs(lines, undefined).read.size).toBe(4);
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1000).toBeLessThan(4000);
});

test('the names of a table that cannot be read are no facts', async () => {
  const rows = ['0\t-0,0928\t\t6.4658', '10\t-0,0978\t\t', '20\t-0,0928\t\t', '30\t0,3763\tstart\t'];
  const text = ['Time\tChannel 3\tMarkers\tweight', 'Seconds\tmW\t\t', ...rows].join('\n');
  await expect(measured(text)).rejects.toThrow('"-0,0928" is an ambiguous number');
});

test('names of blocks that repeat are no facts', async () => {
  const block = (n: number) => `PARAMETER_HEADER\n  NAME='P_${n}'\n  UNITS='m'\n  MIN_VALUE=${n}.5\n`;
  const text = `CRUISE='C7'\nSTATION=12\nNAME_OF_SHIP='Ada'\n${[1, 2, 3].map(block).join('')}`;
  const { mapping } = await measured(text);
  expect(Object.keys(meta(await read(text, mapping))).filter((name) => !name.startsWith('heading'))).toEqual([
    'CRUISE',
    'STATION',
    'NAME_OF_SHIP',
  ]);
  const two = await read(`CRUISE='C7'\nSTATION=12\n${block(1)}${block(2)}`);
  expect(meta(two)).toMatchObject({ NAME: 'P_1', 'NAME (2)': 'P_2' });
});

test('words beside words are facts, unless their first line says that they are rows', async () => {
  const list = 'Operator,Ada\nLamp,D2\nMode,scan\nProbe,flow\n';
  const record = await read(list);
  expect(record.tables).toEqual([]);
  expect(meta(record)).toEqual({ Operator: 'Ada', Lamp: 'D2', Mode: 'scan', Probe: 'flow' });
  const rows = await read('Sample,Growth\nEC-1,positive\nEC-2,negative\nKP-4,positive\n');
  expect(rows.tables.map(({ count }) => count)).toEqual([3]);
});

test.each([
  ['tabs', '\t'],
  ['semicolons', ';'],
])('two words alone in a list of facts are names of columns if cells follow below them: %s', async (_, sign) => {
  const lines = ['Sample,S1', 'Operator,Ada', 'Lamp,D2', '', 'Peaks', 'Name,Size', '18S,1650,2210,41.2,19.8,7,8'];
  const facts = meta(
    await read(lines.map((line) => line.replaceAll(',', sign)).join('\n') + TABLE.replaceAll(',', sign)),
  );
  expect(facts).toMatchObject({ Sample: 'S1', Operator: 'Ada', Lamp: 'D2' });
  expect(facts).not.toHaveProperty('Name');
});

test('two words alone may not be a name and its value, which is said', async () => {
  const list = 'Sample\tS1\nOperator\tAda\nLamp\tD2\n';
  const { doubts } = await measured(`${list}\nMethod Date\tDetails${TABS}`);
  expect(doubts).toEqual(['line 5: "Method Date" and "Details" may not be a name and its value']);
  for (const fact of ['Scans\t12', 'Mode: scan', 'Sample Name\twater', 'Start\t2024-05-17'])
    expect((await measured(`${list}\n${fact}${TABS}`)).doubts).toEqual([]);
});

test('facts beside a section of rows are read, and the rows are no facts', async () => {
  const rows = Array.from({ length: 10 }, (_, n) => `B${n + 1}=1,${326 + n},0,730,1570,687`).join('\n');
  const parameters = 'P=340,1000.0,Time\nP=339,1.0,Load\nP=300,1000.0,Vex\n';
  const text = `[person]\nid=00142\nname=Ada\nheight=180\n\n[parameter]\nspace=0.060\n${parameters}\n[data]\n${rows}\n`;
  const { likely } = await measured(text);
  expect(meta(await read(text, likely()))).toEqual({ id: '00142', name: 'Ada', height: 180, space: 0.06 });
});

test('a unit between name and value', async () => {
  const { meta: facts } = await read(`Flow,mL/min,1.5\nTemp,[°C],25.5\nMode,scan\n${TABLE}`);
  expect([...facts].map(([name, { value, unit }]) => [name, value, unit])).toEqual([
    ['Flow', 1.5, 'mL/min'],
    ['Temp', 25.5, '°C'],
    ['Mode', 'scan', undefined],
  ]);
});

test('several names, numbers and units in one line', async () => {
  const lines = [
    '"Height", 69.3, "in", 176.0, "cm", "Weight", 156.2, "lb", 71.0, "kg"',
    '"Test Environment", "Insp. temp.", 23.6, "deg C", "Baro. pressure", 755.4, "mmHg"',
    '"STPD to BTPS", 1.218, "O2 Gain", 0.123, "CO2 Gain", 0.062',
    '"Depth", 4, "min", 21',
  ];
  const { meta: facts } = await read(`${lines.join('\n')}\n${TABLE}`);
  const shown = [...facts].map(([name, { value, unit }]) => `${name} = ${value} ${unit ?? ''}`.trim());
  expect(shown).toEqual(
    expect.arrayContaining([
      'Height = 69.3 in',
      'Height (2) = 176 cm',
      'Weight = 156.2 lb',
      'Weight (2) = 71 kg',
      'Insp. temp. = 23.6 deg C',
      'Baro. pressure = 755.4 mmHg',
      'STPD to BTPS = 1.218',
      'O2 Gain = 0.123',
    ]),
  );
  expect(shown.filter((fact) => /^(?:Depth = 4 min|in|cm|min)\b/.test(fact))).toEqual([]);
});

describe('a line with several names', () => {
  const tabbed = (text: string) => text.replaceAll('|', '\t') + TABS;

  test('is read as a whole if signs mark them', async () => {
    const text =
      'Flow :|1.0|ml/min\nColumn 1 :|Suprema A|Temperature :|30.0|C\nDetector 1 :|RI|Delay :|0.167|min\nSlope :|1.5|ml/g|univ. Slope :|0.5|ml/g\nVolume :|50|ul\n';
    const facts = meta(await read(tabbed(text)));
    expect(facts).toMatchObject({ 'Column 1': 'Suprema A', Temperature: 30, 'Detector 1': 'RI', Delay: 0.167 });
    expect(facts).toMatchObject({ Slope: 1.5, 'univ. Slope': 0.5, Volume: 50 });
    expect(Object.keys(facts).filter((name) => / \(?\d\)?$/.test(name))).toEqual(['Column 1', 'Detector 1']);
  });

  test('is read as a whole if other lines are such pairs', async () => {
    const lines = 'Batch|K3\nTitle|TPA|Test Mode|Compression\nSpeed|1.00 mm/s\nTarget|Strain\n';
    const facts = meta(await read(tabbed(`${lines}Date|28 February 2023|Time|10:33:05\n`)));
    expect(facts).toMatchObject({ Title: 'TPA', 'Test Mode': 'Compression' });
    expect(facts).not.toHaveProperty('Title (2)');
  });

  test('is no list of facts if it is the header of an empty table', async () => {
    const text = 'Flow|1.0|ml/min\nMode|scan\nLoop|20|50\n\nArea|Name|from|to|Unit\n\nLamp|D2\n';
    const facts = meta(await read(tabbed(text)));
    expect(facts).toMatchObject({ Flow: 1, Mode: 'scan', Lamp: 'D2' });
    expect(Object.keys(facts).filter((name) => name.startsWith('Area'))).toEqual([]);
  });
});

describe('no name is separated from its value by a sign within', () => {
  test.each([
    [
      'a unit',
      '#Device: D2\n#Rate: 10 Hz\n#Channel 1: Range: 500 mV/div Offset: 0 V\n#Channel 2: Range: 100 mV/div Offset: 1 V\n',
      /div/,
    ],
    [
      'braces',
      '# probe: neutron\n# angle: {min: 0.1, max: 1.5, unit: deg}\n# wave: {min: 3.0, max: 12.0, unit: nm}\n# mu: {mean: 0.2, unit: deg}\n# name: S1\n',
      /max|unit/,
    ],
    [
      'a time',
      'Codepage=UTF-8\nDataFile=a.eeg\nFormat=BINARY\nChannels=4\n\nNumber of channels: 4\nRate [Hz]: 500\n\nImpedance [kOhm] at 14:55:07 :\nFp1:          4\nCz:           7\nPz:           3\n',
      /at 14$/,
    ],
  ])('%s', async (_, text, cut) => {
    const facts = meta(await read(text + TABLE));
    expect(Object.keys(facts).length).toBeGreaterThan(1);
    expect(Object.keys(facts).filter((name) => cut.test(name))).toEqual([]);
  });

  test('brackets', async () => {
    const text =
      'Created: by jrk\nName: rg37\nLat:  35.04 Long: -106.5 Elev: 1630.00 m\nHeight:  0.00 cm\nMeter: A10\nWaves:               M2    S2     K1\nTime Offset (D h:m:s): 0 0:0:0\nSets:    8\nDrops:  120\n';
    expect(meta(await read(text + TABLE))).toMatchObject({ 'Time Offset (D h:m:s)': '0 0:0:0', Sets: 8 });
  });
});

test('a cell after a label has its name; signs and labels are no facts', async () => {
  const record = await read(`/\tSURVEY\n/\tClient:\tAda\n/\tSite:\tNorth\n${TABS}`);
  expect(meta(record)).toMatchObject({ Client: 'Ada', Site: 'North' });
  expect([...record.meta.values()].map(({ text }) => text)).not.toContain('/');
});

test('two blanks before a time or a unit do not end a value, and a second colon is no part of it', async () => {
  const facts = [
    'Acq On    : 06 Jun 2024  16:21        Vial : 6',
    'Operator  : Iris                      Inj  : 1',
    'Amount:      :    100.0  [ng/ul]      Line : 8',
  ];
  const record = await read(`${facts.join('\n')}\n\n  RT     Area\n 1.25  10.5\n 2.50  11.5\n 3.75  12.5\n`);
  expect(meta(record)).toMatchObject({ 'Acq On': '2024-06-06T16:21:00', Amount: 100, Vial: 6, Line: 8 });
  expect(record.meta.get('Amount')?.unit).toBe('ng/ul');
});

test('names that are counted are names, and a comma behind their number is no decimal mark', async () => {
  const list = 'ISTD Amount 1,1\nISTD Amount 2,1\nISTD Amount 3,1\nISTD Amount 4,1\n';
  const facts = `[Sample]\nOperator,Ada\nType,0:Unknown\nName,S1\n${list}Vial,7\n`;
  expect(Object.keys(meta(await read(facts + TABLE)))).toEqual([
    ...['Operator', 'Type', 'Name', 'ISTD Amount 1', 'ISTD Amount 2', 'ISTD Amount 3', 'ISTD Amount 4', 'Vial'],
  ]);
});

test('empty cells before a name are no part of it', async () => {
  const record = await read(` ,WARNING: the format may change.\n ,Operator: Ada\n ,Method: A7\n${TABLE}`);
  expect(Object.keys(meta(record))).toEqual(['WARNING', 'Operator', 'Method']);
});
