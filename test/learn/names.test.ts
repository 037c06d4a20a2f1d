import { describe, expect, test } from 'vitest';
import { pairsInCells } from '../../src/learn/pieces.js';
import { columns, measured, meta, read, refusal, rows } from '../support/reading.js';

/** No value has the name of another, and no value is made of several cells. */

const TABLE = '\nx,y,z\n1,2,3\n4,5,6\n7,8,9\n';

describe('a small table directly below facts', () => {
  test.each([
    ['with units in its names', 'Sample;Weight (g);Water (%)\nS1;0.512;2.41\nS2;0.498;2.40\n', 2],
    ['with names of quantities', 'Sample;Abs;Conc;Remark\nBlank;0.001;0.0;ok\nUnknown;0.402;1.9;ok\n', 2],
    ['with names of samples', 'Analyte;S1;S2\nGlucose;12.4;3.1\nFructose;11.2;2.9\nSucrose;8.1;1.2\n', 3],
    ['with numbered rows', 'No.;Name;Area;Height\n1;caffeine;184.2;30.2\n2;theobromine;102.1;15.5\n', 2],
  ])('%s is a table', async (_, table, count) => {
    const record = await read(`Instrument;Photometer\nOperator;Ada\n${table}`);
    expect(meta(record)).toEqual({ Instrument: 'Photometer', Operator: 'Ada' });
    expect(columns(record).join()).toBe(columns(await read(table, { delimiter: ';', table: {} })).join());
    expect(rows(record)).toHaveLength(count);
  });

  test('is a list of facts without names of columns', async () => {
    const record = await read('Operator,Ada\nTemp,25.1,°C\nSpeed,400,rpm\nPressure,1.2,bar\n');
    expect(meta(record)).toEqual({ Operator: 'Ada', Temp: 25.1, Speed: 400, Pressure: 1.2 });
    expect(record.tables).toEqual([]);
  });

  test('can have names for name, value and unit, and values of several kinds', async () => {
    const record = await read('Operator,Ada\nParameter,Value,Unit\nVoltage,12.1,V\nMode,auto,\nSpeed,400,rpm\n');
    expect(meta(record)).toEqual({ Operator: 'Ada' });
    expect(rows(record)).toEqual([
      { Parameter: 'Voltage', Value: 12.1, Unit: 'V' },
      { Parameter: 'Mode', Value: 'auto', Unit: null },
      { Parameter: 'Speed', Value: 400, Unit: 'rpm' },
    ]);
  });

  test('has no header that is one of several records', async () => {
    const text = 'INFO,Quartz,HOLDER\nINFO,SQUID,UNITS\nTYPE,COMMENT,1\nTYPE,TIME,2\nAXIS,X,3\n';
    const record = await read(text + TABLE);
    expect(record.tables.flatMap((each) => each.columns.map(({ name }) => name)).join()).not.toContain('SQUID');
  });
});

describe('further cells of a fact', () => {
  test('after an empty cell are another name and its value', async () => {
    const text =
      'Report,,,,,\nProduct,Metformin 500 mg,,Batch,MF-22,\nMedium,Buffer,,Analyst,R. Mehta,\nVolume (mL),900,,Speed,75,rpm\nNotes,,,Lot,L7,\n\n';
    const table =
      'Time (min),V1,V2,V3,V4,V5\n5,22.1,23.4,21.8,22.9,22.4\n10,48.9,50.2,47.5,49.8,49.0\n15,71.0,72.8,69.9,71.5,71.2\n';
    const record = await read(text + table);
    expect(meta(record)).toMatchObject({ Product: 'Metformin 500 mg', Batch: 'MF-22', Analyst: 'R. Mehta', Lot: 'L7' });
    expect(record.meta.get('Speed')).toMatchObject({ value: 75, unit: 'rpm' });
    expect(record.meta.get('Notes')?.value ?? null).toBeNull();
    const message = ['H|1||A.2|20120509', 'OBR|1||H2O-0001|wbc~rbc'].map((line, n) => ({
      number: n + 1,
      text: line,
      cells: line.split('|'),
    }));
    expect(pairsInCells(message, '|').filter(({ finder }) => finder.value === 'each')).toEqual([]);
  });

  test('with names of their own are not read twice', async () => {
    const text =
      'ID: 2023-07   Mode: WB\nDate: 2023/04/11  Time: 14:05\nWBC    7.2   g/dL\nRBC    4.8   g/dL\nHGB    14.2  g/dL\nHCT    42.7  %\n';
    expect(Object.keys(meta(await read(text)))).not.toContain('ID: 2023-07');
    expect((await measured(text)).doubts.join()).not.toContain('ID');
  });

  test('are values of their own, with their units', async () => {
    const text =
      'Sample,X-12\nGains,1,2,4\nRange,0,100,nm\nLens,50,mm,ok\nProgram,xP,,3D\nBeads,7,Min events,100,Per bead\n';
    expect(meta(await read(text + TABLE))).toEqual({
      ...{ Sample: 'X-12', Gains: 1, 'Gains (2)': 2, 'Gains (3)': 4, Range: 0, 'Range (2)': 100 },
      ...{ Lens: 50, Program: 'xP', 'Program (2)': '3D', Beads: 7 },
    });
    const { meta: facts } = await read(text + TABLE);
    expect([facts.get('Range (2)')?.unit, facts.get('Lens')?.unit]).toEqual(['nm', 'mm']);
  });

  test('are part of it in a text with commas', async () => {
    const text = 'Sample,X-12\nRemark,dried, weighed, then cooled\nLot,7\n';
    expect(meta(await read(text + TABLE))).toMatchObject({ Remark: 'dried,weighed,then cooled' });
  });

  test('are facts beside it', async () => {
    const text = 'Run,17 Jan 2015\nBatch,B 22,Operator,Ada\nConstants,Time,4,Oxygen,21\nSegments,1,Size,5002\n';
    const facts = meta(await read(text + TABLE));
    expect(facts).toMatchObject({ Batch: 'B 22', Operator: 'Ada', Segments: 1, Size: 5002 });
    expect(facts).toMatchObject({ 'Constants Time': 4, 'Constants Oxygen': 21 });
    expect(facts).not.toHaveProperty('Constants');
    expect(facts).not.toHaveProperty('Batch (2)');
  });

  test('are a lone sign before the number', async () => {
    const text = 'User ID  Ada\nN   +  12.345 g\nT   -   1.200 g\nG   +  13.545 g\n';
    expect(meta(await read(text))).toMatchObject({ N: 12.345, T: -1.2, G: 13.545 });
  });
});

describe('names that are more or fewer than the cells of the rows', () => {
  const DATA = '0,20.1,1013\n1,20.2,1014\n2,20.3,1012\n';

  test.each([
    ['one of them is empty', 'Time,Temp,,Pressure\n'],
    ['there is one more', 'Time,Temp,Humidity,Pressure\n'],
    ['there is one less', 'Time,Temp\n'],
  ])('name no column: %s', async (_, names) => {
    const record = await read(names + DATA);
    expect(rows(record)[0]).toEqual({ 'column 1': 0, 'column 2': 20.1, 'column 3': 1013 });
    expect(meta(record)).toEqual({});
    const { doubts } = await measured(names + DATA);
    expect(doubts.join()).toContain('line 1: the names cannot be assigned to the columns');
  });

  test('name the columns if only a remark is missing, or if a delimiter ends the line', async () => {
    expect(columns(await read(`Time,Temp,Pressure,Comment\n${DATA}`)).slice(0, 3)).toEqual([
      'Time',
      'Temp',
      'Pressure',
    ]);
    for (const above of ['', 'Operator: Ada\nMode: scan\n\n'])
      expect(columns(await read(`${above}Time,Temp,Pressure,\n${DATA}`))).toEqual(['Time', 'Temp', 'Pressure']);
    expect(columns(await read(`Time,Temp,Pressure\n${DATA.replaceAll('\n', ',\n')}`))).toEqual([
      ...['Time', 'Temp', 'Pressure'],
    ]);
  });

  test('do not make facts of rows with names of their own', async () => {
    const record = await read('\tTemp\tPressure\nS1\t20.1\t1013\nS2\t20.2\t1014\nS3\t20.3\t1012\n');
    expect(rows(record)[0]).toEqual({ 'column 1': 'S1', Temp: 20.1, Pressure: 1013 });
  });

  test('a row without one of its cells is refused if its last number is like those of the next column', async () => {
    const text = 'Time,Temp,Humidity,Pressure\n0,20.1,45,1013\n1,20.2,1014\n2,20.3,44,1012\n3,20.3,45,1011\n';
    expect((await refusal(text)).message).toBe('this row has 3 cells, but the header has 4');
    expect(rows(await read(text.replace('1,20.2,1014', '1,20.2,46')))).toHaveLength(4);
  });
});

describe('names in two lines', () => {
  test('are joined if one line has what the other lacks', async () => {
    const record = await read(',,Li,Pb\nList,Label,,\n1,Blank,0.1,0.2\n2,Std,1.1,1.2\n3,River,2.1,2.2\n');
    expect(columns(record)).toEqual(['List', 'Label', 'Li', 'Pb']);
  });

  test('are joined if the upper ones are groups', async () => {
    const record = await read('UV,,Cond,\nmL,AU,mL,mS\n0.1,1,0.1,15\n0.2,2,0.2,16\n0.3,3,0.3,17\n');
    expect(columns(record)).toEqual(['UV mL', 'AU [AU]', 'Cond mL', 'mS [mS]']);
    expect(meta(record)).toEqual({});
  });

  test('are joined if names repeat and the upper lines have their groups, whatever the method is called', async () => {
    const text = (method: string) =>
      [
        `${method},SampleName,Conc,,,Area,,`,
        'Detectors,,A,,B,A,,B',
        'Time,,H2,O2,CO2,H2,O2,CO2',
        ...[1, 2, 3, 4].map((n) => `2026-03-0${n} 10:00:00,S${n},0.${n},1.${n},2.${n},1${n},2${n},3${n}`),
      ].join('\n');
    const names = ['Conc A H2', 'Conc A O2', 'Conc B CO2', 'Area A H2', 'Area A O2', 'Area B CO2'];
    expect(columns(await read(`Sample list\n\n${text('cal_0317')}\n`))).toEqual(['Time', 'SampleName', ...names]);
    const { mapping } = await measured(`Sample list\n\n${text('cal_0317')}\n`);
    expect(mapping).toMatchObject({ table: { header: '/^[^,]*,SampleName/', headerRows: 3 } });
  });

  test('are not joined with facts above names that repeat', async () => {
    const record = await read('Operator,Ada,,\nt,y,t,y\n0,1,0,2\n1,2,1,3\n2,3,2,4\n');
    expect(columns(record)).toEqual(['t', 'y', 't (2)', 'y (2)']);
  });

  test('name no column if they are above blanks that do not separate them', async () => {
    const text = [
      '             Temp   Hi   Low   Wind Wind',
      'Time          Out  Temp  Temp Speed  Run',
      '-----------------------------------------',
      ' 0.5         11.2  11.5  10.9   1.6  2.1',
      ' 1.5         11.5  11.8  11.2   1.6  2.2',
      ' 2.5         11.8  12.1  11.5   1.6  2.3',
    ].join('\n');
    const names = columns(await read(text));
    expect(names).toHaveLength(6);
    expect(names).not.toContain('Temp');
  });
});

describe('a sheet with a column for each sample', () => {
  test('is not one with a column for each replicate', async () => {
    const text =
      'Sample,Replicate 1,Replicate 2,Replicate 3\n"A, 10 µM",98.1,97.5,99.0\n"A, 1 µM",56.2,55.1,57.3\nDMSO,0.5,-0.3,0.1\n';
    expect(columns(await read(text))[0]).toBe('Sample');
  });

  test.each([
    ['Operator;Ada\nSample;1;2;3;4;5;6;7\npH;7.1;7.2;7.0;7.1;7.1;7.1;7.2\nTemp (°C);25;25;25;25;25;25;26\n'],
    ['Operator;Ada\n\nSample;S1;S2;S3\npH;7.1;7.2;7.0\nTemp (°C);25.1;25.2;25.0\nNote;ok;ok;cloudy\n'],
    ['Operator;Ada\nSample;1;2;3\nDate;2024-03-15;2024-03-15;2024-03-16\npH;7.1;7.2;7.0\nTemp (°C);25;25;25\n'],
    ['Operator;Ada\n\n;1;2;3\npH;7.1;7.2;7.0\nTemp (°C);25.1;25.2;25.0\nCond;1.2;1.3;1.1\n'],
  ])('is a table of quantities, not a plate and not facts: %j', async (text) => {
    const record = await read(text);
    const [first = '', ...others] = columns(record);
    expect(Object.keys(meta(record)).filter((name) => name !== 'date')).toEqual(['Operator']);
    expect(others[0]).toMatch(/^S?1$/);
    const pH = rows(record).find((row) => row[first] === 'pH');
    expect(others.slice(0, 3).map((name) => pH?.[name])).toEqual([7.1, 7.2, 7]);
  });

  test('is a table of samples if the columns are replicates', async () => {
    const record = await read('Sample;1;2;3\nBlank;0.1;0.2;0.1\nRiver;1.1;1.2;1.1\nLake;2.1;2.2;2.1\n');
    expect(columns(record)).toEqual(['Sample', '1', '2', '3']);
  });

  test('is a plate if its rows have letters', async () => {
    const record = await read(';1;2;3;4;5;6\nA;0.1;0.2;0.3;0.4;0.5;0.6\nB;1.1;1.2;1.3;1.4;1.5;1.6\n');
    expect(rows(record)[1]).toEqual({ well: 'A2', value: 0.2 });
  });
});

describe('no fact is', () => {
  test.each([
    [
      'a date',
      '14-Mar-2019      11:07\nMod.       X225\nSerNo.     0026410\nL ID       QC\nS ID       TAB\n',
      '14-Mar-2019',
    ],
    ['the name of a section', 'MetaData,,\nForce,3,mg\nLength,1000,µm\nSpeed,30,s\n', 'MetaData'],
    ['the start or end of a section', '*RAS_DATA_START\nSample: X\nLamp: D2\n', 'A1'],
  ])('%s', async (_, text, name) => {
    expect(meta(await read(text + TABLE))[name] ?? null).toBeNull();
  });

  test('a date further down, or a drawn line', async () => {
    const text = 'Mod.       X225\nSerNo.     0026410\nL ID       QC\nS ID       TAB\n-----\n14-Mar-2019      11:15\n';
    const facts = meta(await read(text + TABLE.replaceAll(',', '  ')));
    expect(facts).toMatchObject({ 'Mod.': 'X225', 'S ID': 'TAB' });
    expect(facts).not.toHaveProperty('14-Mar-2019');
    expect(Object.values(facts)).not.toContain('-----');
  });

  test('a cell of a line between blank lines, which is no table', async () => {
    const record = await read(`Lot,7\n\nSamples,7,Min Events,100,Per Bead\n\nResults\n\nRun,5\n\n${TABLE}`);
    expect(record.tables).toHaveLength(1);
    expect(columns(record)).toEqual(['x', 'y', 'z']);
  });

  test('a part of a sentence', async () => {
    const text = 'Sample: X\nThe sample was measured at 20,0 °C in PBS pH 7,4.\nLamp: D2\n';
    expect(JSON.stringify(meta(await read(text + TABLE)))).not.toMatch(/measured at 20"/);
  });

  test('a value without its end', async () => {
    const text = 'Method: DSC\nModule: DSC1/700/1012  B843213577\nLamp: D2\n';
    expect(meta(await read(text + TABLE))).toMatchObject({ Module: 'DSC1/700/1012  B843213577' });
  });
});

test('a row of words for no value belongs to the table', async () => {
  const record = await read(
    'Well\tTest\tResult\tFlag\nA1\tGlucose\t4.1\t\nA2\tGlucose\t3.9\t\nA3\tLactate\t-----\tABORT\n',
  );
  expect(rows(record)).toHaveLength(3);
  expect(meta(record)).toEqual({});
});

test('numbers with a blank between thousands are not the names of columns', async () => {
  const text =
    'No,Kind,Li,Pb\n1,conc,0.1 ppb,0.2 ppb\n,loss,1.1 %,1.2 %\n,raw,12 331 cps,20 112 cps\n2,conc,1.2 ppb,1.3 ppb\n,loss,2.1 %,2.2 %\n';
  const record = await read(text);
  expect(columns(record)).toEqual(['No', 'Kind', 'Li', 'Pb']);
  expect(rows(record)).toHaveLength(5);
});

test('a table with a line of units is not a sheet with a column for each sample', async () => {
  const text = 'Peak,RT,Area,Height\nno.,min,counts,mV\nA,1.2,33,4\nB,2.2,31,5\nC,3.2,30,6\n';
  expect(columns(await read(text)).slice(1)).toEqual(['RT [min]', 'Area [counts]', 'Height [mV]']);
});

describe('units below the names', () => {
  test('can be those of a few columns', async () => {
    const text = 'Type\tSample\tT\tSize\tIndex\tCell\n\t\t°C\td.nm\t\t\nZ\tA 1\t25.0\t121.3\t0.1\tglass\n';
    const names = ['Type', 'Sample', 'T [°C]', 'Size [d.nm]', 'Index', 'Cell'];
    expect(columns(await read(`${text}Z\tA 2\t25.0\t120.7\t0.2\tglass\n`))).toEqual(names);
  });

  test('stand below their names in lines split at blanks', async () => {
    const text = [
      'Name      Method     Mass      Carbon     Operator',
      '                     (g)       (%)',
      '--------------------------------------------------',
      'Blank     Steel      1.0000    0.00012    RK',
      'JSS 15    Steel      0.9981    0.3412     RK',
      'Heat 8    Steel      1.0101    0.1120     RK',
    ].join('\n');
    expect(columns(await read(text))).toEqual(['Name', 'Method', 'Mass [g]', 'Carbon [%]', 'Operator']);
  });

  test('belong to names in two lines, in all sections', async () => {
    const section = (title: string) => [
      title,
      'Pressure   Gas        p/p0     Total      Sample',
      '           Density             Weight',
      '(mbar)     (g/cc)              (mg)       (°C)',
      '------------------------------------------------',
      '-.7        0.000000   0.00     8.9674     27.03',
      '19.9       0.000023   0.00     8.9716     20.02',
      '39.8       0.000046   0.01     8.9722     20.00',
      '',
    ];
    const record = await read([...section('Scan 1'), ...section('Scan 2')].join('\n'));
    expect(columns(record)).toEqual([
      ...['section', 'Pressure [mbar]', 'Gas Density [g/cc]', 'p/p0', 'Total Weight [mg]', 'Sample [°C]'],
    ]);
    expect(rows(record)).toHaveLength(6);
    expect(rows(record)[0]).toEqual({
      ...{ section: 'Scan 1', Pressure: -0.7, 'Gas Density': 0, 'p/p0': 0, 'Total Weight': 8.9674, Sample: 27.03 },
    });
  });
});

test('units can be beside several columns of numbers', async () => {
  const same = 'Sample;Size;Unit;R1;Unit\nA;1.02;g;45.2;ppm\nB;1.03;g;44.8;ppm\nC;1.01;g;45.9;ppm\n';
  expect(columns(await read(same))).toEqual(['Sample', 'Size [g]', 'Unit', 'R1 [ppm]', 'Unit (2)']);
  const other = same.replace('Unit', 'Size unit').replace('R1;Unit', 'R1;R1 unit');
  expect(columns(await read(other))).toEqual(['Sample', 'Size [g]', 'Size unit', 'R1 [ppm]', 'R1 unit']);
  const words = columns(await read(same.replaceAll('ppm', 'pump')));
  expect(words).toEqual(['Sample', 'Size', 'Unit', 'R1', 'Unit (2)']);
});

test('sections with differently spaced names are one table', async () => {
  const one =
    'Curve 1\nSample   Signal   Mass\nS-01     402.2    26.1\nS-02     268.9    2.6\nS-03     437.0    38.2\n';
  const two = one
    .replaceAll(/ {4}(?=\d)/g, '      ')
    .replace('Signal   ', 'Signal     ')
    .replace('Curve 1', 'Curve 2');
  const record = await read(`${one}\n${two}`);
  expect(record.tables.map(({ count }) => count)).toEqual([6]);
  expect(rows(record)[3]).toEqual({ section: 'Curve 2', Sample: 'S-01', Signal: 402.2, Mass: 26.1 });
});

test('a fact above a plate is not the label of its readings', async () => {
  const plate = (cell: (n: number) => string) =>
    [',1,2,3,', ...['A', 'B'].map((row) => `${row},${[1, 2, 3].map(cell).join()},`)].join('\n');
  const record = await read(`Results\n${plate((n) => `0.${n}`)}\n\nPlatemap:\nGroup,,,,1\n${plate(() => '-')}\n`);
  expect(columns(record)).toEqual(['well', 'Results']);
  expect(rows(record)[0]).toEqual({ well: 'A1', Results: 0.1 });
});

describe('a line of names is no fact', () => {
  test('if it repeats the header of a table', async () => {
    const part = 'Line#,Compound,RT [min],Area\n3,A,12.8,14276.0\n4,B,12.9,13065.8\n';
    const record = await read(`Operator,Ada\nSite,Lab 3\n\n${part}${part}${part}`);
    expect(meta(record)).toEqual({ Operator: 'Ada', Site: 'Lab 3' });
    expect(rows(record)).toHaveLength(6);
  });

  test('if it names events and their times', async () => {
    const record = await read('Run log\nEvent,Time\nStarted,2020-06-29 10:05:44\nPlate in,2020-06-29 10:05:58\n');
    expect(Object.keys(meta(record))).not.toContain('Event');
    expect(rows(record).map(({ Event }) => Event)).toEqual(['Started', 'Plate in']);
  });

  test('if it names only the first columns of counted rows', async () => {
    const text = 'No.,Result,,,\n1,ok,12.1,5.1,9\n2,ok,12.2,5.0,9\n3,bad,12.4,5.2,8\n4,ok,12.2,5.1,9\n';
    const record = await read(`Operator,Ada\nSite,Lab 3\n${text}`);
    expect(meta(record)).toEqual({ Operator: 'Ada', Site: 'Lab 3' });
    expect(rows(record)).toHaveLength(4);
  });
});

describe('facts', () => {
  test('behind an empty cell are no table', async () => {
    const names = ',Sample:,Cement\n,Operator:,hz\n,Site:,IFB\n,File:,C-M.SMP\n';
    const dates = ',Start:,2012-10-02,,Weight:,2.184 g\n,Next:,2012-10-03,,Type:,Blank\n,End:,2012-10-15,,Neg:,No\n';
    const record = await read(`${names}\n${dates}\n${TABLE}`);
    expect(meta(record)).toMatchObject({ Sample: 'Cement', Operator: 'hz', Weight: 2.184, Type: 'Blank', Neg: 'No' });
    expect(record.tables).toHaveLength(1);
  });

  test('are not cut from a sentence at its first comma', async () => {
    const text = 'Comment(Start):\n steel coupon, 3.5% NaCl, 24 h\nInstrument: 1260\nSweep: log\nArea: 1.5\n';
    expect(Object.keys(meta(await read(text + TABLE))).join()).not.toContain('coupon');
  });

  test('with short names stand side by side', async () => {
    const record = await read(`VC:2f31bd SV:2.1.3   SN:12-0117\n${TABLE}`);
    expect(meta(record)).toEqual({ VC: '2f31bd', SV: '2.1.3', SN: '12-0117' });
  });

  test('of one quoted cell are several values', async () => {
    const text = '"Type=Results 3"\n"Gain=620\t570"\n"Focus=0"\n"Creator=Pro 4"\n';
    expect(meta(await read(text + TABLE.replaceAll(',', '\t')))).toMatchObject({
      Gain: 620,
      'Gain (2)': 570,
      Focus: 0,
    });
  });
});

describe('no value has a label or a unit as its name or value', () => {
  test('if label and type stand before the value', async () => {
    const text =
      'start_mass\tStart Mass [AMU]\t\tint\t1.0\ndwell\tDwell Time [ms]\t\tint\t64\nrate\tRate\t\tdouble\t1.5\n';
    expect(meta(await read(text + TABLE.replaceAll(',', '\t')))).toEqual({ start_mass: 1, dwell: 64, rate: 1.5 });
  });

  test('if a unit and a date follow a value', async () => {
    const text = 'Station\tA\n\nData Header:\tTime:\t412.5\tSec\t2020-11-30 13:22:47\n';
    const facts = meta(await read(text + TABLE.replaceAll(',', '\t')));
    expect(facts).toMatchObject({ 'Data Header Time': 412.5 });
    expect(Object.keys(facts).join()).not.toContain('Sec');
  });

  test('in a list of units', async () => {
    const text = JSON.stringify({ samples: [{ Temp: 21.5 }, { Temp: 22.5 }], units: { Temp: '°C' } });
    expect(meta(await read(text))).toEqual({ 'units Temp': '°C' });
  });
});

describe('names of columns', () => {
  test('can have empty cells between them that the rows lack', async () => {
    const text = 'Wave\t\tIntensity\n1801.04\t1240.33\n1799.98\t1238.91\n1798.92\t1241.00\n1797.86\t1243.55\n';
    expect(columns(await read(text))).toEqual(['Wave', 'Intensity']);
  });

  test('can stand above a ratio of units with blanks', async () => {
    const text =
      'Slit: Bandpass\t3.00 nm\nExit Slit: Bandpass\t2.00 nm\nPark\t350 nm\nLamp\tXe\n\nWavelength\tIntensity\nnm\tCPS / MicroAmps\n380\t12033.4\n381\t12450.1\n382\t13002.9\n';
    const record = await read(text);
    expect(columns(record)).toEqual(['Wavelength [nm]', 'Intensity [CPS / MicroAmps]']);
    expect(meta(record)).toEqual({ 'Slit: Bandpass': 3, 'Exit Slit: Bandpass': 2, Park: 350, Lamp: 'Xe' });
  });

  test('can start with that of the rows and a colon', async () => {
    const text =
      'Sample:,Live | Freq. of Parent,CD3+ | Count\nA1.fcs,42.3,12044\nA2.fcs,39.8,11210\nA3.fcs,44.0,13012\n';
    expect(columns(await read(text))).toEqual(['Sample', 'Live | Freq. of Parent', 'CD3+ | Count']);
    expect((await measured(text)).doubts).toEqual([]);
  });

  test.each([
    [
      'a path',
      'Source\tC:\\Data\\a.qmp\nExported\t03.02.2021 15:41:20\nStarted\t03.02.2021 13:02:11\nEnded\t03.02.2021 14:40:55\n',
    ],
    ['a time of day', 'Start\tSep 03\t2014 04:28:17 PM\n200\tPoints\t\n20\tPoints per AMU\t\n4\tNoise\t\n'],
  ])('are not in a line with %s', async (_, text) => {
    const record = await read(text + TABLE.replaceAll(',', '\t'));
    const names = record.tables.flatMap((table) => table.columns.map(({ name }) => name)).join();
    expect(names).not.toMatch(/qmp|2014|Source|Start/);
  });

  test('are not joined with fewer names above them', async () => {
    const text = 'Title,A\nRange,100 C fs,1 V fs\nRemark,top,shunt\nDate,Time,CH1[°C],CH2[V]\n';
    const row = (n: number) => `2023-09-21,13:40:0${n},23.${n},0.3${n}\n`;
    expect(columns(await read(text + row(1) + row(2) + row(3))).slice(0, 4)).toEqual([
      'Date',
      'Time',
      'CH1 [°C]',
      'CH2 [V]',
    ]);
  });
});

describe('a unit', () => {
  test('is not another name of a column', async () => {
    const text = 'Number,Date,CH1,CH2,CH3,CH4,Alarm\nNO.,Time,degC,degC,N,N,A1234\n';
    const row = (n: number) => `${n},2020-06-02 14:11:0${n},24.${n},23.${n},12.${n},13.${n},LLLL\n`;
    const names = columns(await read(text + row(1) + row(2) + row(3)));
    expect(names).toEqual(['Number', 'Date', 'CH1 [degC]', 'CH2 [degC]', 'CH3 [N]', 'CH4 [N]', 'Alarm']);
  });

  test('before several columns of numbers is not that of the column before it', async () => {
    const text = 'No,Sample,Live 1,Units,Mg,Al\n1,S1,54.1,%,0.31,0.62\n2,S2,54.2,%,0.33,0.64\n3,S3,54.3,%,0.35,0.66\n';
    expect(columns(await read(text))).toEqual(['No', 'Sample', 'Live 1', 'Units', 'Mg', 'Al']);
  });

  test('is not that of a ratio left of it', async () => {
    const text = 'Analyte,Conc. Mean,Conc. RSD,Unit\nLi,1.28,2.41,ug/L\nMn,18.2,1.1,ug/L\nPb,0.35,1.9,ug/L\n';
    expect(columns(await read(text))).toEqual(['Analyte', 'Conc. Mean', 'Conc. RSD', 'Unit']);
  });
});

test.each([
  ['no value among greater numbers', ['0.4', '-9999.00', '0.6'], [0.4, null, 0.6]],
  ['a value among similar numbers', ['-9000.5', '-9999.00', '-10000.5'], [-9000.5, -9999, -10000.5]],
])('-9999.00 is %s', async (_, cells, values) => {
  const record = await read(`t,CO2,T\n${cells.map((cell, n) => `${n},${cell},2${n}.5`).join('\n')}\n`);
  expect(rows(record).map(({ CO2 }) => CO2)).toEqual(values);
});
