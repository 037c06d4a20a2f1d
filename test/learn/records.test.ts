import { describe, expect, test } from 'vitest';
import { columns, measured, meta, read, rows } from '../support/reading.js';

/** Records of analysers have numbers for their fields. The standards have names. */

const OBX = (n: number, name: string, value: string, unit: string) =>
  `OBX|${n}|NM|${n}0-1^${name}^LN||${value}|${unit}||N|||F`;
const HL7 = [
  'MSH|^~\\&|Sysmex|Lab|LIS||20260201102030+0100||ORU^R01|42|P|2.5',
  'PID|1||7^^^1||DUCK^DONALD||19241010|M',
  OBX(1, 'WBC', '5.1', '10^9/L'.replace('^', '*')),
  OBX(2, 'HCT', '40.1', '%'),
].join('\r');

const R = (n: number, test: string, value: string, unit = 'mmol/L') => `R|${n}|^^^${test}|${value}|${unit}||N||F`;
const LIS2 = [
  'H|\\^&|||Analyser|||||LIS||P|1|20260201102030',
  'O|1|S1||^^^GLU',
  R(1, 'GLU', '5.41'),
  R(2, 'NA', '141'),
  'L|1|N',
];

describe('fields of records', () => {
  test('have the names of HL7, and values have their units', async () => {
    const record = await read(HL7);
    expect(meta(record)).toMatchObject({
      'sending application': 'Sysmex',
      'message time': '2026-02-01T10:20:30+01:00',
      'birth date': 19241010,
    });
    expect(columns(record)).toContain('observation');
    expect(rows(record)[0]).toMatchObject({ observation: 'WBC', value: 5.1, 'value unit': '10*9/L' });
    expect(columns(record)).not.toContain('unit');
  });

  test('have the names of LIS2-A2, and a unit that is the same in all rows is that of the column', async () => {
    const record = await read(LIS2.join('\r'));
    expect(meta(record)).toMatchObject({ sender: 'Analyser', 'specimen id': 'S1' });
    expect(columns(record)).toEqual(['sequence', 'test', 'value [mmol/L]', 'flags', 'status']);
  });

  test('stay columns if a unit has several parts or is not known', async () => {
    const parts = LIS2.map((line) => line.replace('mmol/L', 'mmol^L'));
    expect(columns(await read(parts.join('\r')))).toContain('unit 1');
  });

  test('can be words in one component and numbers with a unit in another', async () => {
    const results = ['R|1|^^^HIV^Load|^1009.64|copies/mL', 'R|2|^^^HIV^Virus|POS^|', 'R|3|^^^HIV^Control|PASS^|'];
    const record = await read(
      ['H|@^\\|7||PC^1.0|||||LIS||P|1394-97|20260201102030', 'O|1|S1||^^^HIV', ...results, 'L|1|N'].join('\r'),
    );
    expect(rows(record)).toMatchObject([{ 'value 2': 1009.64 }, { 'value 1': 'POS' }, { 'value 1': 'PASS' }]);
    expect(columns(record)).toContain('value 2 [copies/mL]');
  });

  test('have numbers in records of another standard', async () => {
    const { mapping } = await measured('H|\\^&|||Analyser\rX|1|a|2.5\rX|2|b|3.5\rX|3|c|4.5\r');
    expect(mapping).toMatchObject({ format: 'records', tables: { X: { columns: { 'field 4': '4' } } } });
  });
});

describe('a log of a borehole', () => {
  const log = (version: string, well: string, rows: string) =>
    `~Version\n VERS.  ${version} : LOG STANDARD\n WRAP.  NO : ONE LINE PER STEP\n~Well\n#MNEM.UNIT  DATA  DESCRIPTION\nSTRT .M  670.5 : START: TOP\nNULL .  -999.25 : NO VALUE\n${well}~Curves\n DEPT.M : 1 DEPTH\n DT .US/M  60 520 32 : 2 SONIC\n~Parameters\n BHT .DEGC  35.5 : TEMPERATURE\n MUD . GEL : TYPE\n~Other\n Tool no. 4 stopped at 10:30\n~A  DEPTH  DT\n${rows}`;
  const ROWS = '670.5  123.4\n670.0  -999.2500\n669.5  125.4\n';
  const facts = { STRT: 670.5, NULL: -999.25, WELL: 'A 2', TIME: '13:45:00', BHT: 35.5, MUD: 'GEL' };

  test.each([
    ['2.0', 'WELL .  A 2 :WELL NAME\nTIME .  13:45:00 :TIME\n'],
    ['1.2', 'WELL .  WELL NAME: A 2\nTIME .  TIME: 13:45:00\n'],
  ])('has values before their descriptions, or after them in the well of version 1.2: %s', async (version, well) => {
    const record = await read(log(version, well, ROWS));
    expect(meta(record)).toEqual({ VERS: Number(version), WRAP: 'NO', ...facts });
    expect(record.meta.get('BHT')?.unit).toBe('DEGC');
    expect(columns(record).slice(0, 2)).toEqual(['DEPT [M]', 'DT [US/M]']);
    expect(rows(record).map((row) => Object.values(row).slice(0, 2))).toEqual([
      [670.5, 123.4],
      [670, null],
      [669.5, 125.4],
    ]);
  });

  test('has columns without names if one of them is also a parameter', async () => {
    const record = await read(log('2.0', '', ROWS).replace(' MUD . GEL', ' DT . 12'));
    expect(columns(record).slice(0, 2)).toEqual(['column 1', 'column 2']);
  });

  test('has no table if its rows are wrapped', async () => {
    const { mapping, doubts } = await measured(log('2.0', '', '670.5\n 123.4\n670.0\n 124.4\n'));
    expect(mapping.table).toBeUndefined();
    expect(doubts.join()).toContain('below ~A');
  });
});

describe('results of several specimens', () => {
  const result = (n: number) => `R|1|^^^GLU|${90 + n}|mg/dL||N||F`;

  test('have the patient and the specimen that they belong to', async () => {
    const lines = [1, 2].flatMap((n) => [`P|${n}||PID-${n}`, `O|${n}|S-${n}`, result(n)]);
    const record = await read(['H|\\^&|||Analyser', ...lines, 'L|1|N'].join('\n'));
    const results = record.tables.findIndex(({ name }) => name === 'R');
    expect(
      rows(record, results).map((row) => [row['laboratory patient id'], row['specimen id'], row['value']]),
    ).toEqual([
      ['PID-1', 'S-1', 91],
      ['PID-2', 'S-2', 92],
    ]);
  });

  test('have no specimen if one of them stands directly below a patient', async () => {
    const lines = ['P|1||PID-1', 'O|1|S-1', result(1), 'O|2|S-2', result(2), 'P|2||PID-2', result(3)];
    const record = await read(['H|\\^&|||Analyser', ...lines, 'L|1|N'].join('\n'));
    const results = record.tables.findIndex(({ name }) => name === 'R');
    expect(columns(record, results)).not.toContain('specimen id');
    expect(rows(record, results).at(-1)).toMatchObject({ 'laboratory patient id': 'PID-2', value: 93 });
  });
});

test('a field with several values is no fact, because only the first would be read', async () => {
  const lines = ['P|1||PID-1', 'O|1|S-1||^^^685\\^^^678\\^^^712|R', 'R|1|^^^700|5.1|mmol/L||N||F'];
  const record = await read(['H|\\^&|||Analyser', ...lines, 'L|1|N'].join('\n'));
  expect(meta(record)).toMatchObject({ 'laboratory patient id': 'PID-1', 'specimen id': 'S-1' });
  expect(Object.values(meta(record)).join()).not.toContain('685');
});
