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

  test('have numbers in records of another standard', async () => {
    const { mapping } = await measured('H|\\^&|||Analyser\rX|1|a|2.5\rX|2|b|3.5\rX|3|c|4.5\r');
    expect(mapping).toMatchObject({ format: 'records', tables: { X: { columns: { 'field 4': '4' } } } });
  });
});
