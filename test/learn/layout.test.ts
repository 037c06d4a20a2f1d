import { describe, expect, test, vi } from 'vitest';
import { countColumns } from '../../src/learn/header.js';
import type { Body } from '../../src/learn/kinds.js';
import { isAxis } from '../../src/learn/numbered-names.js';

import { columns, measured as learnt, meta, read, refusal, rows } from '../support/reading.js';

const XY = 'x,y,z\n400,0.043,1\n401,0.044,2\n402,0.045,3\n';

describe('a date within a line', () => {
  test.each([
    ['behind a word', 'Performed 22.06.2020 10:31:55', '2020-06-22T10:31:55'],
    ['as the C library writes it', 'Acquired Fri Mar 15 16:22:41 2019', '2019-03-15T16:22:41'],
    ['with a zone behind it', 'Date and time:13.10.2021 08:15:42 (UTC+2)', '2021-10-13T08:15:42+02:00'],
    ['between two words', 'Scan done 17:02:35 on 15 January 2020 by ada', '2020-01-15T17:02:35'],
    ['in the name of another file', 'Raw file Scan_20230914_160142.tsv', '2023-09-14T16:01:42'],
  ])('%s is the date of the run if no fact is', async (_, line, date) => {
    expect(meta(await read(`${line}\n\n${XY}`))['date']).toBe(date);
  });

  test('is ignored if a fact is a date', async () => {
    const record = await read(`Printed 23.06.2020 10:00:00 by ada\nStarted: 22.06.2020 09:00\n\n${XY}`);
    expect(meta(record)['date']).toBe('2020-06-22T09:00:00');
  });

  test('is found in another file by the words before it', async () => {
    const { mapping } = await learnt(`Performed 22.06.2020 10:31:55\n\n${XY}`);
    const other = await read(`Performed 3.12.2021 9:05:00\n\n${XY}`, {
      ...mapping,
      dates: { format: 'd.M.yyyy H:mm:ss' },
    });
    expect(meta(other)['date']).toBe('2021-12-03T09:05:00');
  });

  test('that is ambiguous is a doubt; an ambiguous print date is ignored', async () => {
    const ambiguous = await learnt(`Performed 03/04/2020 10:31:55\n\n${XY}`);
    expect(ambiguous.mapping.dates).toBeUndefined();
    expect(ambiguous.doubts[0]).toContain(
      '03/04/2020 10:31:55 is ambiguous, so runs with such dates are quarantined. Write one of these under parse: dates: { format: "dd/MM/yyyy HH:mm:ss" } or dates: { format: "MM/dd/yyyy HH:mm:ss" }',
    );
    const printed = await read(`Printed 03/04/2020 10:31:55\n\n${XY}`);
    expect(meta(printed)).not.toHaveProperty('date');
  });

  test.each(['Firmware 3.12.08', 'Data C:\\runs\\2020-06-22\\a.dat', 'Ratio 1/20/2009x'])(
    'a version, path or ratio is not a date: %s',
    async (line) => {
      expect(meta(await read(`${line}\n\n${XY}`))).not.toHaveProperty('date');
    },
  );
});

test('a duration is not a time of day', async () => {
  const record = await read(`Date of run,2018-02-06,\nTime of run,30:25:37,\n,,\n${XY}`);
  expect(meta(record)['date']).toBe('2018-02-06');
});

describe('numbered channels', () => {
  const readings = ['0.1\t0.2\t0.3\t0.4\t0.5\t0.6', '1.1\t1.2\t1.3\t1.4\t1.5\t1.6', '2.1\t2.2\t2.3\t2.4\t2.5\t2.6'];
  const channels = '1\t2\t3\t4\t5\t6\n';
  const units = 'V\tV\tV\tV\tmA\tmA\n';
  const below = (first: readonly string[]) => first.map((cell, n) => `${cell}\t${readings[n]}\n`).join('');

  test.each([
    ['a time', `Time\t${channels}s\t${units}${below(['0.0', '0.5', '1.0'])}`, 'Time [s]'],
    ['nothing', `\t${channels}\t${units}${below(['0.0', '0.5', '1.0'])}`, 'column 1'],
    [
      'a date',
      `Channel\t${channels}Unit\t${units}${below(['2023-05-01 10:00', '2023-05-01 10:01', '2023-05-01 10:02'])}`,
      'Channel',
    ],
  ])('above units and below %s are names, not a plate', async (_, text, first) => {
    const record = await read(text);
    expect(columns(record)).toEqual([first, '1 [V]', '2 [V]', '3 [V]', '4 [V]', '5 [mA]', '6 [mA]']);
    expect(rows(record)).toHaveLength(3);
  });
});

test('channels with numbers and names above their units are names', async () => {
  const record = await read('Frame,Sub,1,2,EMG1\n,,V,V,mV\n1,0,0.11,0.21,3.5\n1,1,0.12,0.22,3.6\n1,2,0.13,0.23,3.7\n');
  expect(columns(record)).toEqual(['Frame', 'Sub', '1 [V]', '2 [V]', 'EMG1 [mV]']);
});

test('names with their values are not names of the values below them', async () => {
  const text = 'analyst 190061, mount GA6432, site Orange\nrun190061.pd, 2019-10-31, 11:19\n\n';
  const { mapping } = await learnt(`${text}mass,counts,error\n195,10,1\n204,20,2\n206,30,3\n`);
  expect(JSON.stringify(mapping)).not.toContain('nextRow');
});

test('quantities in lines and samples in columns are one table, whatever kinds of values it has', async () => {
  const record = await read(
    ';Probe 1;Probe 2\nMasse [g];1.2345;1.3456\nVolumen [mL];10.0;10.1\nBearbeiter;Meier;Meier\nPrüftag;2023-02-03;2023-02-04\n',
  );
  expect(columns(record)).toEqual(['quantity', 'Probe 1', 'Probe 2']);
  expect(rows(record).map(({ quantity }) => quantity)).toEqual(['Masse [g]', 'Volumen [mL]', 'Bearbeiter', 'Prüftag']);
  expect(record.tables).toHaveLength(1);
});

test('facts that name the columns further down are not the names of the columns', async () => {
  const facts =
    'TGA RESULT FILE\nOperator   jdoe\nSample     PLA-3\nSize       10.32 mg\nGas        N2\nSig1       Time (min)\nSig2       Heat (mW)\nSig3       Weight (mg)\nStartOfData\n';
  const { mapping } = await learnt(`${facts}0.00 25.10 10.3240\n0.01 25.20 10.3239\n0.02 25.35 10.3237\n`);
  expect(mapping).not.toHaveProperty('table');
});

describe('printed reports', () => {
  test('indented lines that start with different names are facts', async () => {
    const record = await read(
      [
        'Results of titration 42',
        '  Sample size      1.2034 g',
        '  Titrant          NaOH 0.1 mol/L',
        '  EP1              8.3421 mL      pH 8.42',
        '  EP2             12.0310 mL      pH 10.01',
        '  Content          5.678 %',
        '  Start time       2023-03-04 11:12:13',
        '  User             ada',
        '',
      ].join('\n'),
    );
    expect(meta(record)).toMatchObject({ 'Sample size': 1.2034, Content: 5.678, User: 'ada' });
    expect(record.tables).toEqual([]);
  });

  test('several facts in a line are separated by gaps', async () => {
    const record = await read(
      [
        'Acq. Operator   : SYSTEM             Seq. Line :   1',
        'Acq. Instrument : GC7890             Location  : Vial 101',
        'Dilution        :   1.0000           Inj       :   1',
        'Method          : FAME.M',
        '',
        'Peak   RetTime   Area',
        '   1     3.112   12.5',
        '   2     5.881   22.5',
        '   3     6.881   32.5',
      ].join('\n'),
    );
    expect(meta(record)).toMatchObject({
      'Acq. Instrument': 'GC7890',
      'Seq. Line': 1,
      Location: 'Vial 101',
      Dilution: 1,
      Method: 'FAME.M',
    });
    expect(rows(record)).toHaveLength(3);
  });

  test('rules between facts are ignored', async () => {
    const rule = '--------------------\n';
    const text = `${rule}MAKER\nMod.     M225S\nSerNo.   0029105388\n${rule}ID       LOT 4711\nL ID     QC-LAB\nN      +   12.40315 g\n${rule}${rule}`;
    expect(meta(await read(text))).toMatchObject({ 'Mod.': 'M225S', ID: 'LOT 4711', N: 12.40315 });
  });

  test('a name can end in a digit', async () => {
    const text = 'pH      7.41\npCO2    53.1 mmHg\nsO2     96.1 %\npO2     88.5 mmHg\ncK      4.1\n';
    expect(meta(await read(text))).toMatchObject({ sO2: 96.1, pO2: 88.5 });
  });
});

describe('titles', () => {
  test('a line above the only table is a fact', async () => {
    expect(meta(await read('"BSA 0.5 mg/mL - Raw"\n"nm","Abs"\n400,0.1\n399,0.2\n398,0.3\n'))).toEqual({
      heading: 'BSA 0.5 mg/mL - Raw',
    });
  });

  const plate = '<>\t1\t2\t3\t4\t5\t6\nA\t0.1\t0.2\t0.3\t0.4\t0.5\t0.6\nB\t1.1\t1.2\t1.3\t1.4\t1.5\t1.6\n';

  test('a temperature above a plate is not its label', async () => {
    const record = await read(`Mode\tAbsorbance\nDevice\tReader\n\t\tTemperature: 25.3 °C\n${plate}`);
    expect(rows(record)[0]).toEqual({ well: 'A1', value: 0.1 });
    expect(rows(record)).toHaveLength(12);
  });

  test('a title can be indented', async () => {
    const record = await read(`Mode\tAbsorbance\nDevice\tReader\n\t\tRaw data\n${plate}`);
    expect(rows(record)[0]).toEqual({ well: 'A1', 'Raw data': 0.1 });
  });

  test('plates with the same title are all read', async () => {
    const second = plate.replace(/\t(\d\.\d)/g, '\t2$1');
    const record = await read(`Results\n${plate}\nResults\n${second}`);
    expect(record.tables.map(({ count }) => count)).toEqual([12, 12]);
    expect(Object.values(rows(record, 1)[11] ?? {})).toEqual(['B6', 21.6]);
  });
});

describe('tables', () => {
  test('a repeated header does not end the table', async () => {
    const header = 'Line,Compound,RT,Area,Amount\n';
    const text = `By: Ada\nReport: 2\n\n${header}4,Glycol,12.8,14,\n${header}11,Formic,15.6,11,1.3\n${header}3,Acetic,17.2,11,0.8\n11,Acetic,16.6,37,0.2\n`;
    expect(rows(await read(text)).map(({ RT }) => RT)).toEqual([12.8, 15.6, 17.2, 16.6]);
  });

  test('wide rows are a table even if each starts with a different name', async () => {
    const text = [
      'Sample,,,Atrazine,,Simazine,',
      'Name,File,Level,RT,Conc.,RT,Conc.',
      'Cal 1,c1.d,1,6.021,1.031,5.442,0.988',
      'Cal 2,c2.d,2,6.022,4.917,5.440,5.061',
      'Well 7,s1.d,,6.019,0.412,5.441,0.077',
    ].join('\n');
    expect(rows(await read(text))).toHaveLength(3);
  });

  test('distant names are the line in which they differ', async () => {
    const text = 'Obs\tPhoto\tCond\tCi\nin\tout\tout\tout\n$DATA$\n1\t21.3\t0.18\t181\n2\t21.4\t0.19\t180\n';
    expect(columns(await read(text))).toEqual(['Obs', 'Photo', 'Cond', 'Ci']);
  });

  test('different numbers after a word can be column names', async () => {
    const record = await read(
      '"Filter:","600nm"\n"Reader:","C"\n\nTime,101,102,103\n00:00:10,0.11,0.12,0.13\n00:30:10,0.14,0.15,0.16\n01:00:10,0.17,0.18,0.19\n',
    );
    expect(columns(record)).toEqual(['Time', '101', '102', '103']);
    expect(rows(record)).toHaveLength(3);
    expect(meta(record)).toMatchObject({ Filter: 600, Reader: 'C' });
  });

  test('a line between two parts of a table is not a row', async () => {
    const part = (n: number) =>
      `[step]\nFlow sweep - ${n}\nStress\tRate\tT\nPa\t1/s\t°C\n1.2\t0.1\t25\n2.2\t0.2\t25\n3.2\t0.3\t25\n`;
    const record = await read(`Sample\tGel\nOperator\tlab\n${part(1)}${part(2)}`);
    expect(rows(record).map(({ Stress }) => Stress)).toEqual([1.2, 2.2, 3.2, 1.2, 2.2, 3.2]);
  });

  test('the third cell of a fact can be its unit', async () => {
    const text = `Norm;ISO 527\nTester;Huber\nMaterial;PA6\nSpeed;50;mm/min\n\n${XY.replaceAll(',', ';')}`;
    expect(meta(await read(text))['Speed']).toBe(50);
  });

  test('two cells of a line can be two facts', async () => {
    const text = `Device: infinite 200\t\t\tSerial: 1602001534\nMode\tscan\n\n${XY.replaceAll(',', '\t')}`;
    expect(meta(await read(text))).toMatchObject({ Device: 'infinite 200', Serial: 1602001534 });
  });
});

describe('trees', () => {
  test('many numbers in one text are a column', async () => {
    const record = await read(
      '<?xml version="1.0"?><scan><id>7</id><hkl>0 0 1</hkl><counts unit="cps">331 340 338 352 361 377 390</counts></scan>',
    );
    expect(columns(record)).toEqual(['counts [cps]']);
    expect(rows(record).map(({ counts }) => counts)).toEqual([331, 340, 338, 352, 361, 377, 390]);
    expect(meta(record)).toMatchObject({ 'scan id': 7, hkl: '0 0 1' });
  });

  test('a list of records that is the whole file is a table', async () => {
    const records = Array.from({ length: 50 }, (_, n) => ({ t: n, v: n / 2, s: 'ok' }));
    const record = await read(JSON.stringify(records));
    expect(meta(record)).toEqual({});
    expect(rows(record)).toEqual(records);
    expect(rows(await read(JSON.stringify([1.5, 2.5, 3.5])))).toEqual([{ value: 1.5 }, { value: 2.5 }, { value: 3.5 }]);
  });

  test('the date of a calibration is not the date of the run', async () => {
    const text = JSON.stringify({
      Instrument: { Calibration: { Date: '2020-01-02T10:00:00' } },
      Run: { Started: '2023-01-09T09:24:46' },
    });
    expect(meta(await read(text))['date']).toBe('2023-01-09T09:24:46');
  });

  test('a date is found after the maximum number of facts', async () => {
    const many = Object.fromEntries(Array.from({ length: 150 }, (_, n) => [`p${n}`, n]));
    const record = await read(JSON.stringify({ ...many, started: '2023-01-09T09:24:46' }));
    expect(meta(record)['date']).toBe('2023-01-09T09:24:46');
  });
});

describe('the delimiter', () => {
  test('is the one that yields tables, not the most frequent one', async () => {
    const preamble = 'Title: Scan, 2 nm, slow\nUser: Doe, Jane, Lab 4\nNote: a, b, c\nRef: x, y, z\n\n';
    const record = await read(
      `${preamble}nm      Abs      T\n400     0.1      80.1\n401     0.2      63.2\n402     0.3      50.3\n`,
    );
    expect(columns(record)).toEqual(['nm [nm]', 'Abs', 'T']);
    expect(rows(record)[2]).toEqual({ nm: 402, Abs: 0.3, T: 50.3 });
    expect(meta(record)['User']).toBe('Doe, Jane, Lab 4');
  });

  test('can differ between sections', async () => {
    const record = await read(
      'Unit: X9\nUser: Bob\n\n[Cal]\nLevel,Conc,Area\n1,0.5,101.2\n2,1.0,203.9\n\n[Data]\nTime\tU\tT\n0.0\t12.5\t25.1\n0.1\t12.7\t25.1\n0.2\t13.1\t25.2\n',
    );
    expect(record.tables.map(({ count }) => count)).toEqual([2, 3]);
    expect(rows(record, 0)[1]).toEqual({ Level: 2, Conc: 1, Area: 203.9 });
    expect(rows(record, 1)[2]).toEqual({ Time: 0.2, U: 13.1, T: 25.2 });
  });

  test('of facts stays that of the file if only a table needs another one', async () => {
    const record = await read(
      'Device;X9\nUser;Bob\nMethod;M1\nLot;L1\n\nTime    U       T\n0.0     12.5    25.1\n0.1     12.7    25.1\n0.2     13.1    25.2\n',
    );
    expect(meta(record)).toMatchObject({ Device: 'X9', User: 'Bob' });
    expect(rows(record)[2]).toEqual({ Time: 0.2, U: 13.1, T: 25.2 });
  });

  test('can be blanks around a plate', async () => {
    const record = await read(
      'User: ada\nAbsorbance @ 450\n\n        1      2      3\nA   0.101  0.102  0.103\nB   0.201  0.202  0.203\nC   0.301  0.302  0.303\n',
    );
    expect(rows(record)[5]).toMatchObject({ well: 'B3' });
    expect(Object.values(rows(record)[5] ?? {})).toContain(0.203);
    expect(rows(record)).toHaveLength(9);
  });

  test('is a list of column positions if splitting at spaces would shift the cells after an empty one', async () => {
    const text = [
      'Peak  RetTime  Name            Area      Height',
      '   1    1.234  Ethanol           1234.5    56.1',
      '   2    2.345                     234.5    16.1',
      '   3    3.456  Iso propanol      3234.5    76.1',
    ].join('\n');
    const record = await read(text);
    expect(rows(record)[1]).toEqual({ Peak: 2, RetTime: 2.345, Name: null, Area: 234.5, Height: 16.1 });
    const { mapping } = await learnt(text);
    const longer = await read(text.replace('  1234.5', '551234.5').replace('Ethanol  ', 'Ethanolic'), mapping);
    expect(rows(longer)[0]).toMatchObject({ Name: 'Ethanolic', Area: 551234.5 });
  });
});

describe('names of two columns', () => {
  const ROWS = Array.from({ length: 8 }, (_, n) => `${380 + n}nm\t${27 + n}.5`).join('\n');

  test('are not the first of many facts', async () => {
    const record = await read(`Model Name\tLI-180\nSerial Number\tA18\nPFD\t171.1\nLUX\t7366.7\n${ROWS}\n`);
    expect(columns(record).map((name) => name.replace(/ \[.*/, ''))).toEqual(['column 1', 'column 2']);
    expect(meta(record)).toMatchObject({ 'Model Name': 'LI-180', LUX: 7366.7 });
  });

  test('are not the last of many facts, above a title', async () => {
    const facts = 'Length,4000,\nLevel,1.67,\nSource,CH1,\nGain,5,\nTime, ,\nMode,Detail,\n';
    const record = await read(
      `${facts}Waveform Data,\n${Array.from({ length: 6 }, (_, n) => `-${n + 1}.5,3.2${n},`).join('\n')}\n`,
    );
    expect(columns(record).slice(0, 2)).toEqual(['column 1', 'column 2']);
    expect(meta(record)).toMatchObject({ Mode: 'Detail' });
  });
});

test('the same code above all columns is no name', async () => {
  const record = await read(
    `\n6:0  6:0  6:0\n${Array.from({ length: 5 }, (_, n) => `0.${n}  1.${n}  2.${n}`).join('\n')}\n`,
  );
  expect(columns(record)).toEqual(['column 1', 'column 2', 'column 3']);
});

test('a delimiter behind the last name is a column without a name', async () => {
  const { doubts } = await learnt('No;ALB;;TP;\n1;3.4;g/dL;5.8;g/dL\n2;3.5;g/dL;5.9;g/dL\n');
  expect(doubts.filter((doubt) => doubt.includes('cells, but the header'))).toEqual([]);
});

describe('names that cannot be assigned to columns', () => {
  const NAMES = ' peak  R.T.  corr.    % of\n   #   min  % max.   total\n';
  const ROWS = '  1   6.056 100.00  61.453\n  2   6.302  59.01  36.263\n  3  10.319   3.72   2.284\n';

  test('do not move to another column where the numbers do not end with them', async () => {
    const record = await read(`Sample : X1\nMethod : A\n\n${NAMES}${ROWS}`);
    expect(rows(record)).toHaveLength(3);
    expect(rows(record)[0]).toEqual({ 'peak #': 1, 'R.T. min': 6.056, 'corr. % max.': 100, '% of total': 61.453 });
  });

  test('are separated by their positions if they are aligned', async () => {
    const record = await read(`Sample : X1\nMethod : A\n\n${NAMES}${ROWS.replace('10.319', ' 9.319')}`);
    expect(columns(record)).toEqual(['peak #', 'R.T. min', 'corr. % max.', '% of total']);
    expect(rows(record)[0]).toMatchObject({ 'corr. % max.': 100, '% of total': 61.453 });
  });

  test('are not those of a fact: a colon is behind all names or none', async () => {
    const facts = [
      'Sample ID:\tSN-2772',
      'Temperature (°C):\t35.1907',
      'Run date:\t26.03.2022',
      'Expiry date:\t19.01.2020 00:49',
      'Instrument:\tblank',
      'Detector:\tnorth lab',
      'Weight (mg):\t43.7',
    ];
    const readings = Array.from({ length: 14 }, (_, n) => `S-${n + 10}\t${n}49.5\t1.77${n}`);
    const record = await read([...facts, 'Sample\tSignal (mV)\tAbsorbance (AU)', ...readings, ''].join('\n'));
    expect(record.tables.flatMap((table) => table.columns.map(({ name }) => name))).not.toContain('ID:');
    expect(meta(record)).toMatchObject({ 'Sample ID': 'SN-2772', Temperature: 35.1907 });
  });

  test('are not those of a line of facts above the header', async () => {
    const record = await read('Sample: X1,Operator: Ada,Lot: B\nTime,Force,Way\n1,2.5,3\n2,2.6,4\n3,2.7,5\n');
    expect(columns(record)).toEqual(['Time', 'Force', 'Way']);
  });
});

describe('numbers as names', () => {
  test.each([
    ['beside a word', 'Sample,450,500,550\nBlank,0.051,0.049,0.048\nS1,0.512,0.611,0.713\n', ['Sample', '450']],
    ['below an empty cell', ',450,500,550\nBlank,0.051,0.049,0.048\nS1,0.512,0.611,0.713\n', ['column 1', '450']],
    ['that count samples', 'No,1,2,3\npH,7.1,7.2,7.4\nTurbidity,5,6,7\n', ['quantity', '1']],
    ['a few among words', 'Sample,Ca,Mg,208,Sr\nS1,1.2,0.3,0.51,0.9\nS2,1.4,0.2,0.52,0.8\n', ['Sample', 'Ca']],
    ['two above decimals', 'Sample,260,280\nS1,0.51,0.27\nS2,0.52,0.28\n', ['Sample', '260']],
    ['one beside a word', 'Time,Glucose,350\n0.0,1.2,0.51\n0.5,1.4,0.52\n', ['Time', 'Glucose']],
    [
      'sizes among words',
      'No #,At,Mid,21.7,22.5,23.3,Sum\n1,09:38,,4.5,2.9,6.2,13\n2,09:41,,2.5,5.3,7.3,15\n',
      ['No #', 'At'],
    ],
    ['below a fact', 'Plate,P7\nRound,1,2,3\nClock [s],0,600,1200\nA1,0.51,0.52,0.55\n', ['Round', '1']],
    ['below a padded fact', 'Plate,P7,,\nRound,1,2,3\nClock [s],0,600,1200\nA1,0.51,0.52,0.55\n', ['Round', '1']],
    ['among words', 'Well,260,280,320,Ratio\nA1,0.051,0.049,0.048,1.1\nA2,0.5,0.3,0.1,1.6\n', ['Well', '260']],
  ])('%s', async (_, text, names) => {
    const record = await read(text);
    expect(columns(record).slice(0, 2)).toEqual(names);
    expect(rows(record)).toHaveLength(2);
  });

  test('are a row of readings if the rows below are similar', async () => {
    const record = await read('Name,a,b,c\nS0,1,2,3\nS1,4,6,8\nS2,7,7,9\n');
    expect(rows(record)).toHaveLength(3);
  });
});

test('a name in angle brackets is not XML', async () => {
  const record = await read(`<Identifier>: ABC\n<Operator>: Joe\n<Temp>: 21.5\n\n${XY}`);
  expect(Object.values(meta(record)).join()).toContain('ABC');
  expect(rows(record)).toHaveLength(3);
});

test('all tables of a file are found, or the doubts say that there are more', async () => {
  const tables = (count: number) =>
    Array.from(
      { length: count },
      (_, n) => `Part ${n}\nt (s),U${n} (V),T\n0,${n}.1,1\n1,${n}.2,2\n2,${n}.3,3\n\n`,
    ).join('');
  expect((await learnt(tables(60))).doubts).toEqual([]);
  expect((await read(tables(60))).tables).toHaveLength(60);
  expect((await learnt(tables(210))).doubts).toContainEqual(expect.stringContaining('at most 200 tables'));
});

describe('wells', () => {
  test('are the names of columns only on a plausible plate', async () => {
    const wide = (names: string[]) =>
      `time,${names.join()}\n1,${names.map((_, n) => n)}\n2,${names.map((_, n) => n + 1)}\n`;
    const plate = ['A1', 'A2', 'A3', 'B1', 'B2', 'B3'];
    expect((await learnt(wide(plate))).mapping.table).toHaveProperty('unpivot');
    for (const names of [
      ['H2', 'O2', 'N2', 'C1', 'C2', 'C3'],
      ['C1', 'C2', 'C3', 'C4', 'C5', 'C6'],
    ])
      expect((await learnt(wide(names))).mapping.table).not.toHaveProperty('unpivot');
  });

  test('are not the numbered columns of a long table', async () => {
    const lines = Array.from({ length: 50 }, (_, n) => `${n * 10},0.1,0.2,0.3`);
    const record = await read(`,1,2,3\n${lines.join('\n')}\n`);
    expect(record.tables.every(({ columns: names }) => names.every(({ name }) => name !== 'well'))).toBe(true);
  });
});

test('integers with dots are refused: a spreadsheet may have damaged fractions', async () => {
  const error = await refusal('a;b;c\n50.026.184;x;1\n50.027.013;y;2\n');
  expect(error.message).toContain('50.026.184');
  expect(rows(await read('a;b;c\n1.026.184,5;x;1\n1.027.013,5;y;2\n'))[0]).toMatchObject({ a: 1026184.5 });
});

test('the columns of rows are counted once, because wide rows are compared with all lines', () => {
  const kinds: Body['kinds'] = ['number', 'any', 'text'];
  const counting = vi.spyOn(kinds, 'filter');
  for (let line = 0; line < 3; line++) expect(countColumns({ from: 0, to: line, kinds })).toBe(2);
  expect(counting).toHaveBeenCalledTimes(1);
});

test('values one below the other, each with an empty cell beside it, are a table', async () => {
  const record = await read(`# counts\n${Array.from({ length: 12 }, (_, n) => `${n * 3}\t\n`).join('')}`);
  expect(record.tables.map(({ count }) => count)).toEqual([12]);
});

describe('lines with tabs and the same number of cells', () => {
  const line = (n: number): string =>
    `Paint ${n}\tSCI\t2016/02/22 11:02:0${n}\tMAV(8mm) UV100%\t${71.1 - n}\t${4.1 + n}\t${17.9 + n}`;

  test('have a header of words and numbers with one unit', async () => {
    const record = await read(
      ['Data Name\tGroup\tDate & Time\tCondition\t400nm\t420nm\t440nm', ...[1, 2, 3, 4].map(line)].join('\n'),
    );
    expect(columns(record)).toEqual(['Data Name', 'Group', 'Date & Time', 'Condition', '400nm', '420nm', '440nm']);
    expect(rows(record)[0]).toMatchObject({ 'Data Name': 'Paint 1', '400nm': 70.1, '440nm': 18.9 });
  });

  test('are never split at blanks, which shift the cells', async () => {
    const { mapping } = await learnt([line(7), ...[1, 2, 3, 4].map(line)].join('\n')).catch(() => ({
      mapping: undefined,
    }));
    expect(mapping?.delimiter ?? 'tab').toBe('tab');
  });
});

test('the first line of a log is no header', async () => {
  const line = (n: number) =>
    `2021-10-26 09:14:0${n}> SYSTEM : Step ${n} - start; ${n % 2 ? `Method file ${n}.hsl` : ''}`;
  const record = await read([1, 2, 3, 4, 5, 6].map(line).join('\n'));
  expect(columns(record)).toEqual(['column 1', 'column 2']);
  expect(rows(record)[0]).toEqual({
    'column 1': '2021-10-26 09:14:01> SYSTEM : Step 1 - start',
    'column 2': 'Method file 1.hsl',
  });
});

test.each([
  ['with units', ['Sample', '400nm', '420nm', '440nm']],
  ['without units', ['Sample', '400.5', '420.5', '440.5']],
])('an axis %s is compared with the first rows only', (_, cells) => {
  let looks = 0;
  const row = (number: number) => ({
    number,
    text: 'S,1.5,2.5,3.5',
    get cells() {
      looks++;
      return ['S', '1.5', '2.5', '3.5'];
    },
  });
  const head = { number: 1, text: cells.join(), cells };
  const lines = [head, ...Array.from({ length: 5000 }, (_, n) => row(n + 2))];
  isAxis(head, { from: 1, to: lines.length, kinds: ['text', 'number', 'number', 'number'] }, lines);
  expect(looks).toBeLessThan(200);
});

test('a table below the facts of a section in brackets is named after the section', async () => {
  const section = (name: string, rows: string) => `[Peak Table(${name})]\n# of Peaks,2\nPeak#,R.Time,Area\n${rows}\n`;
  const one = section('Detector A-Ch1', '1,2.5,100\n2,3.5,200\n');
  const single = await read(
    `[Sample]\nOperator,Ada\nVial,7\n\n${one}[Result]\nID#,Name,Conc.\n1,Glucose,2.5\n2,Lactate,3.5\n`,
  );
  expect(single.tables.map(({ name }) => name)).toEqual(['Peak Table Detector A-Ch1', 'Result']);
  const both = await read(`[Sample]\nOperator,Ada\nVial,7\n\n${one}${section('Detector B', '1,4.5,300\n2,5.5,400\n')}`);
  expect(rows(both).map(({ section: channel, Area }) => [channel, Area])).toEqual([
    ['A-Ch1', 100],
    ['A-Ch1', 200],
    ['B', 300],
    ['B', 400],
  ]);
});

test('settings that are padded to the width of the table are facts, with their units, above counted cycles', async () => {
  const settings = ['System,,,,pc5,', 'Target,,,,37,°C', 'Wavelength,,,,600,nm', 'Start Time,,,,27/02/2020 17:28,'];
  const cycles = ['Cycle Nr.,1,2,3,4,5', 'Time [s],0,600,1200,1800,2400', 'A1,0.09,0.10,0.12,0.15,0.19'];
  const record = await read(
    `${[...settings, ',,,,,', 'Flashes,,,,10,', 'Settle time,,,,50,ms', ',,,,,', ...cycles].join('\n')}\n`,
  );
  expect(meta(record)).toMatchObject({ System: 'pc5', Target: 37, Wavelength: 600, Flashes: 10, 'Settle time': 50 });
  expect(record.meta.get('Target')?.unit).toBe('°C');
  expect(rows(record).map((row) => [row['Cycle Nr.'], row['5']])).toEqual([
    ['Time [s]', 2400],
    ['A1', 0.19],
  ]);
});

test('a small table that is padded with empty cells has the names directly above it', async () => {
  const first = 'Lot,RP1Volts,RP2Volts,RP3Volts,,,,\nB1,3374.5,3371.2,3366.1,,,,\n,,,,,,,\n';
  const second = 'Lot,Gain,Offset,,,,,\nB1,1.5,0.2,,,,,\nB2,1.6,0.1,,,,,\n,,,,,,,\n';
  const last =
    'Time,Temp,Flow,Volts,Amps,Power,A,B\n0.1,20,3,5,0.1,0.5,1,2\n0.2,21,3,5,0.2,0.6,1,2\n0.3,22,3,5,0.3,0.7,1,2\n';
  const record = await read(`${first}${second}${last}`);
  expect(record.tables.map((_, n) => [columns(record, n).join(), rows(record, n).length])).toEqual([
    ['Lot,RP1Volts,RP2Volts,RP3Volts', 1],
    ['Lot,Gain,Offset', 2],
    ['Time,Temp,Flow,Volts [Volts],Amps [Amps],Power,A,B', 3],
  ]);
});
