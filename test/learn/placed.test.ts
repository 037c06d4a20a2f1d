import { describe, expect, test } from 'vitest';
import { measured, meta, read } from '../support/reading.js';

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

  test('a name with a sign of its own within a value is part of it', async () => {
    const text = `Serial: SN:2103\nLens: UPLSAPO 40X2 Aperture:0.95\nRatio: bead 1:10\n${TABLE}`;
    expect(meta(await read(text))).toEqual({
      Serial: 'SN:2103',
      Lens: 'UPLSAPO 40X2 Aperture:0.95',
      Ratio: 'bead 1:10',
    });
  });
});
