import { describe, expect, test } from 'vitest';
import { findUnnamed } from '../../src/learn/anchors.js';
import { columns, measured, meta, read } from '../support/reading.js';

const TABLE = '\n\nx,y,z\n1,2,3\n4,5,6\n7,8,9\n';

describe('facts whose value is not to the right of their name', () => {
  test.each([
    [
      'after the value, behind a mark',
      '12.5 mL ! Injection volume\n0.5 mm ! Step size\nAda ! Operator\n3 ! Scans',
      { 'Injection volume': 12.5, 'Step size': 0.5, Operator: 'Ada', Scans: 3 },
    ],
    [
      'after the value, behind //',
      '2.23 mL/min // flow rate\n7.5 kPa  // pressure\n4 // scans',
      { 'flow rate': 2.23, pressure: 7.5, scans: 4 },
    ],
    [
      'after the value and blanks',
      '12.5 mL   injection volume\n0.5 mm    step size\n3         scans',
      { 'injection volume': 12.5, 'step size': 0.5, scans: 3 },
    ],
    [
      'after several values',
      '100 0.5 2.0 ! points, step, start\n4 7 ! gain offset',
      { points: 100, step: 0.5, start: 2, gain: 4, offset: 7 },
    ],
    [
      'in a comment above several values',
      '! points step start\n100\t0.5\t2.0\n! gain offset\n4\t7',
      { points: 100, step: 0.5, start: 2, gain: 4, offset: 7 },
    ],
    [
      'on the line above',
      '$SPEC_ID:\nS 17\n$REMARK:\none\ntwo\n$MODE:\nfast\n$LIVE_TIME:\n296',
      { SPEC_ID: 'S 17', MODE: 'fast', LIVE_TIME: 296 },
    ],
    [
      'in brackets above',
      '[Sample]\nS 17\n\n[Operator]\nAda\n\n[Scans]\n4',
      { Sample: 'S 17', Operator: 'Ada', Scans: 4 },
    ],
    [
      'in angle brackets above',
      '<Sample>\nS 17\n<Operator>\nAda\n<Scans>\n4',
      { Sample: 'S 17', Operator: 'Ada', Scans: 4 },
    ],
    [
      'in rows of names',
      'Operator,Gain,Mode\nAda,4,fast\n\nLamp,Slit (mm),Scans\nD2,0.5,12',
      { Operator: 'Ada', Gain: 4, Mode: 'fast', Lamp: 'D2', Slit: 0.5, Scans: 12 },
    ],
    [
      'on the line above without a mark, also below a heading',
      'DATE\n2024-03-05\nUSER NAME\nAda\nI [mA]\n1.00\nB [T]\n0.55\nRESULTS\nD_T\n0.1\nGain\n4',
      { DATE: '2024-03-05', 'USER NAME': 'Ada', I: 1, B: 0.55, D_T: 0.1, Gain: 4 },
    ],
    [
      'on the line above and indented, among sections',
      'Curve:\n  DSC-01\nResults:\nPeak: 112 mW\nOnset: 98 mW\nSample:\n  PE film, 10 mg',
      { Curve: 'DSC-01', Sample: 'PE film, 10 mg', Peak: 112, Onset: 98 },
    ],
    [
      'after a group and before its name',
      'TITLE,Ni film\nINFO,Quartz,HOLDER\nINFO,,COMMENT\nINFO,3.2,SAMPLE_MASS\nTYPE,Note,1\nTYPE,Time,2',
      { TITLE: 'Ni film', HOLDER: 'Quartz', COMMENT: null, SAMPLE_MASS: 3.2 },
    ],
    [
      'after a group and its name',
      'Head,H-12\nSysConst,AvgTime,4\nSysConst,Oxygen,21\nLeaf,Area,6',
      { Head: 'H-12', AvgTime: 4, Oxygen: 21, Area: 6 },
    ],
    ['in a row that says who measured', 'Operator,Gain,Mode\nAda,4,fast', { Operator: 'Ada', Gain: 4, Mode: 'fast' }],
  ])('%s', async (_, text, facts) => {
    const record = await read(text + TABLE);
    expect(meta(record)).toEqual(facts);
    expect(record.tables.map(({ count }) => count)).toEqual([3]);
    expect(record.unread.filter(({ readings = 0 }) => readings > 0)).toEqual([]);
  });

  test.each([
    ['a list of samples', 'No\tSample\n3\tblank\n1\tstandard\n2\tlysozyme\n'],
    ['counted samples', '1\tblank\n2\tstandard\n3\tlysozyme\n4\twater\n'],
    ['one sample', 'Sample,Method,Area,Height\nS1,fast,4.1,7.2\n\nx,y\n1,2\n3,4\n5,6\n7,8\n'],
  ])('%s is a table', async (_, text) => {
    const record = await read(text);
    expect([...record.meta.keys()]).toEqual([]);
    expect(record.tables.length).toBeGreaterThan(0);
  });

  test('names with an operator above other names are facts, whatever the first of them is', async () => {
    const text =
      'Sample Name    Lot    Date         Operator\nAlumina A16    0231   2022-05-04   MB\n' +
      'Temp    Time   Mass     Density\ndegC    h      g        g/cm3\n1450    2      12.301   3.81\n1500    2      12.298   3.88\n';
    const record = await read(text);
    expect(meta(record)).toEqual({ 'Sample Name': 'Alumina A16', Lot: '0231', Date: '2022-05-04', Operator: 'MB' });
    expect(columns(record)).toEqual(['Temp [degC]', 'Time [h]', 'Mass [g]', 'Density [g/cm3]']);
  });

  test('the type of each value is no value', async () => {
    const lines = [
      'TAG\tEISPOT',
      'TITLE\tLABEL\tScan',
      'NOTES\tLABEL\tdry',
      'PSTAT\tPSTAT\tIFC-21',
      'VDC\tPOTEN\t0.5\tF',
    ];
    const text = [...lines, 'FREQ\tQUANT\t1E5\tFreq', 'AREA\tQUANT\t0.196\tArea'].join('\n');
    expect(meta(await read(text + TABLE.replaceAll(',', '\t')))).toMatchObject({
      ...{ TAG: 'EISPOT', TITLE: 'Scan', NOTES: 'dry', PSTAT: 'IFC-21', VDC: 0.5, FREQ: 1e5, AREA: 0.196 },
    });
  });

  test('results of groups below facts are a table', async () => {
    const record = await read(
      'Run,17\nUser,Ada\nGroup,Analyte,Conc\nS1,Glucose,4.1\nS1,Lactate,2.2\nS2,Glucose,4.4\nS2,Lactate,2.1\n',
    );
    expect(meta(record)).toEqual({ Run: 17, User: 'Ada' });
    expect(record.tables.map(({ count }) => count)).toEqual([4]);
  });

  test('name and value in every other cell are no row of names', async () => {
    const text = `Analyzer 2900\tSN 12\nBatch\tFerm 22\tOperator\tAO\nRun\t17 Jan 2015\tPrinted\t19 Jan 2015\n${TABLE.replaceAll(',', '\t')}`;
    expect(meta(await read(text))).toMatchObject({ Batch: 'Ferm 22', Operator: 'AO' });
  });
});

describe('several pairs in a line, with single blanks between them', () => {
  test('are read if it is certain where a value ends', async () => {
    const text = `Site: north\nLat: 35.04 Long: -106.57 Elev: 1630 m Mode: fast\n${TABLE}`;
    expect(meta(await read(text))).toEqual({ Site: 'north', Lat: 35.04, Long: -106.57, Elev: 1630, Mode: 'fast' });
  });

  test('are left out where a word can belong to the value or to the next name', async () => {
    const text = `Site: north\nMode: fast\nLamp: D2\nGain: 5 Detector: CCD Pressure: 3.5 kPa Scans: 4\n${TABLE}`;
    expect(meta(await read(text))).toEqual({ Site: 'north', Mode: 'fast', Lamp: 'D2', Gain: 5, Scans: 4 });
    const two = `Site: north\nMode: fast\nLamp: D2\nDetector: CCD Pressure: 3.5 kPa\n${TABLE}`;
    expect([...(await read(two)).meta.keys()]).not.toContain('Detector');
    const { doubts } = await measured(two);
    expect(doubts.join()).toContain('"Detector" is left out');
  });

  test('end with the quotes of their values', async () => {
    const text = `'Id: "Zeolite 4A" Comment: "as made, dry" Anode: "Cu" Step: "0.5"\n${TABLE}`;
    expect(meta(await read(text))).toEqual({ Id: 'Zeolite 4A', Comment: 'as made, dry', Anode: 'Cu', Step: 0.5 });
  });

  test('a name with a sign of its own within a value is part of it', async () => {
    const text = `Serial: SN:2103\nLens: UPLSAPO 40X2 Aperture:0.95\nRatio: bead 1:10\n${TABLE}`;
    expect(meta(await read(text))).toEqual({
      Serial: 'SN:2103',
      Lens: 'UPLSAPO 40X2 Aperture:0.95',
      Ratio: 'bead 1:10',
    });
  });
});

describe('lines of a word and values', () => {
  const info = ['Quartz,HOLDER', 'SQM140,SERIAL_NUMBER', 'Release 1.1, Build 4,APPNAME', '11.1,MASS', 'Loop,MATERIAL'];
  const text = [
    ...['[Header]', '; QX3 Data File', 'TITLE,', 'FILEOPENED,3907.14,10/25/2023,3:00 pm', 'BYAPP,QX3,1.0,1.1'],
    ...info.map((each) => `INFO,${each}`),
    ...[
      'AXIS,X,2',
      'AXIS,Y1,5',
      'GROUP, A,2,3,4,5,6,8,9,10,11,14',
      'STARTGROUP, All',
      '[Data]',
      'x,y,z',
      '1,2,3',
      '4,5,6',
      '7,8,9',
      '',
    ],
  ].join('\n');

  test('of which one has a comma do not give a value the name of another', async () => {
    const record = await read(text);
    expect(meta(record)).toMatchObject({ HOLDER: 'Quartz', SERIAL_NUMBER: 'SQM140', MASS: 11.1, MATERIAL: 'Loop' });
    expect(Object.keys(meta(record))).not.toContain('Build 4');
  });

  test('in capital letters are the values of that word', () => {
    const lines = ['[Header]', 'TITLE,', 'BYAPP,QX3,1.0,10/25/2023', 'GROUP,A,2', 'GROUP,B,2'].map((each, n) => ({
      ...{ number: n + 1, text: each, cells: each.split(',') },
    }));
    const found = findUnnamed(lines.slice(0, 3), { lines, raw: ({ text: own }) => own, delimiter: ',' }, () => true);
    expect(found).toEqual([{ line: 'BYAPP', cells: { BYAPP: 2, 'BYAPP 3': 3, 'BYAPP 4': 4 } }]);
  });
});
