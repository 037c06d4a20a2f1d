import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mutations } from '../support/mutations.js';
import { meta, readAs, readOrRefuse, refusalAs, rows } from '../support/reading.js';

const ASTM = [
  'H|\\^&|||Analyser^1.2|Lab Street 1^Town||||||P|LIS2-A2|20260304102030',
  'P|1||PID-7||Doe^Jane',
  'O|1|S-001^A||^^^GLU\\^^^UREA|R',
  'R|1|^^^GLU|5.41|mmol/L||N||F||ann^bob',
  'R|2|^^^UREA|< 2.0|mmol/L',
  'C|1|I|checked &F& seen&S&twice',
  'O|2|S-002^B||^^^GLU|R',
  'R|1|^^^GLU|6.02|mmol/L',
  'L|1|N',
];

const MAPPING = {
  dates: { format: 'yyyyMMddHHmmss' },
  facts: { analyser: '/H/5/1', version: '/H/5/2', date: '/H/14', comment: '/C/4' },
  table: { rows: 'R', columns: { sample: '/O/3/1', patient: '/P/4', test: '3/4', value: 4, unit: 5 } },
};

const READ = [
  { sample: 'S-001', patient: 'PID-7', test: 'GLU', value: 5.41, 'value text': null, unit: 'mmol/L' },
  { sample: 'S-001', patient: 'PID-7', test: 'UREA', value: null, 'value text': '< 2.0', unit: 'mmol/L' },
  { sample: 'S-002', patient: 'PID-7', test: 'GLU', value: 6.02, 'value text': null, unit: 'mmol/L' },
];

const checksum = (text: string) => {
  const sum = [...text].reduce((total, sign) => total + sign.charCodeAt(0), 0) % 256;
  return sum.toString(16).toUpperCase().padStart(2, '0');
};

const framed = (records: readonly string[]) =>
  `\x05${records
    .map((record, n) => {
      const text = `${(n + 1) % 8}${record}\r\x03`;
      return `\x02${text}${checksum(text)}\r\n`;
    })
    .join('')}\x04`;

describe('ASTM records', () => {
  test('belong to the nearest parent record above them', async () => {
    const record = await readAs('records', ASTM.join('\r'), MAPPING);
    expect(rows(record)).toEqual(READ);
    expect(meta(record)).toEqual({
      analyser: 'Analyser',
      version: 1.2,
      date: '2026-03-04T10:20:30',
      comment: 'checked | seen^twice',
    });
  });

  test.each([
    ['lines that end in LF', ASTM.join('\n')],
    ['lines that end in CR LF', ASTM.join('\r\n')],
    ['frames with numbers and checksums', framed(ASTM)],
    ['numbers without their frames', ASTM.map((record, n) => `${(n + 1) % 8}${record}`).join('\r\n')],
    ['other delimiters', ASTM.join('\r').replaceAll('|', '!').replaceAll('^', '*').replaceAll('\\', '~')],
  ])('%s are read alike', async (_, text) => {
    expect(rows(await readAs('records', text, MAPPING))).toEqual(READ);
  });

  test('a record that continues in the next frame is one record', async () => {
    const [first, second] = ['1H|\\^&\rR|1|^^^GL\x17', '2U|5.4|mmol/L\r\x03'];
    const text = `\x02${first}${checksum(first)}\r\n\x02${second}${checksum(second)}\r\n`;
    const record = await readAs('records', text, {
      table: { rows: 'R', columns: { test: '3/4', value: 4 } },
    });
    expect(rows(record)).toEqual([{ test: 'GLU', value: 5.4 }]);
  });

  test('a frame with a wrong checksum is refused with its line', async () => {
    const damaged = framed(ASTM).replace('5.41', '5.47');
    const line = ASTM.findIndex((record) => record.includes('5.41')) + 1;
    await expect(readAs('records', damaged, MAPPING)).rejects.toMatchObject({
      message: expect.stringContaining('has a wrong checksum'),
      where: { line },
    });
  });

  test.each([
    ['CR LF', (text: string) => text.replace(/\r(?!\n)/g, '\r\n')],
    ['LF', (text: string) => text.replace(/\r\n?/g, '\n')],
  ])('frames saved with %s line breaks are valid', async (_, save) => {
    expect(rows(await readAs('records', save(framed(ASTM)), MAPPING))).toEqual(READ);
  });

  test('the first of repeated values is read, and omitted fields are empty', async () => {
    const record = await readAs('records', ASTM.join('\r'), {
      table: { rows: 'O', columns: { test: '5/4', priority: 6, more: 25, part: '3/9' } },
    });
    expect(rows(record)[0]).toEqual({ test: 'GLU', priority: 'R', more: null, part: null });
  });

  test('without `columns`, all fields are columns named by their paths', async () => {
    const record = await readAs('records', 'H|\\^&\rR|1|^^^GLU|5.4\rR|2||6', { table: { rows: 'R' } });
    expect(rows(record)).toEqual([
      { 'R/2': 1, 'R/3': '^^^GLU', 'R/4': 5.4 },
      { 'R/2': 2, 'R/3': null, 'R/4': 6 },
    ]);
  });
});

const HL7 = [
  'MSH|^~\\&|LIS|Lab|EHR||20260304102030||ORU^R01|42|P|2.5',
  'PID|1||7^^^Ward&2&L||Doe^Jane',
  'OBR|1|||CBC^Blood count',
  'OBX|1|NM|RBC^Erythrocytes||4.06|10*12/L',
  'OBX|2|ST|NOTE^Note||a\\F\\b \\T\\ c\\.br\\d||""',
  'OBX|3|NM|X^Y||1~2|g',
];

describe('HL7 messages', () => {
  const mapping = {
    dates: { format: 'yyyyMMddHHmmss' },
    facts: {
      separator: '/MSH/1',
      signs: '/MSH/2',
      date: '/MSH/7',
      type: '/MSH/9',
      event: '/MSH/9/2',
      ward: '/PID/3/4/2',
    },
    table: { rows: 'OBX', columns: { panel: '/OBR/4/2', id: 1, test: '3/2', value: 5, unit: 6, range: 7 } },
  };

  test('fields are numbered as in the standard', async () => {
    const record = await readAs('records', HL7.join('\r'), mapping);
    expect(meta(record)).toEqual({
      separator: '|',
      signs: '^~\\&',
      date: '2026-03-04T10:20:30',
      type: 'ORU^R01',
      event: 'R01',
      ward: 2,
    });
    expect(rows(record)).toEqual([
      { panel: 'Blood count', id: 1, test: 'Erythrocytes', value: 4.06, unit: '10*12/L', range: null },
      { panel: 'Blood count', id: 2, test: 'Note', value: 'a|b & c\nd', unit: null, range: null },
      { panel: 'Blood count', id: 3, test: 'Y', value: 1, unit: 'g', range: null },
    ]);
  });

  test('transmission marks are removed', async () => {
    const record = await readAs('records', `\x0b${HL7.join('\r')}\r\x1c\r`, mapping);
    expect(record.tables[0]?.count).toBe(3);
  });

  test('a second message has its own delimiters', async () => {
    const text = [...HL7.slice(0, 4), 'MSH#*~\\&#LIS', 'OBR#1###U*Urine', 'OBX#1#NM#PH*pH##7.1'].join('\r');
    const record = await readAs('records', text, {
      table: { rows: 'OBX', columns: { panel: '/OBR/4/2', v: 5 } },
    });
    expect(rows(record)).toEqual([
      { panel: 'Blood count', v: 4.06 },
      { panel: 'Urine', v: 7.1 },
    ]);
  });
});

describe('other records', () => {
  const TEXT = [
    'Sample title',
    'Setup, Sweep 1',
    'Parameter, Device, B-7',
    'Parameter, "Stop, late", 5',
    'Value, -5, 1.5E-05',
    'Value, -4, 1.6E-05',
  ].join('\n');

  test('fields are numbered from 1, and conditions select records', async () => {
    const record = await readAs('records', TEXT, {
      delimiter: ', ',
      facts: {
        setup: '/Setup/2',
        device: '/Parameter[2=Device]/3',
        stop: '/Parameter[2=Stop, late]/3',
        title: '=A1',
      },
      table: { rows: 'Value', columns: { v: 2, i: 3 } },
    });
    expect(meta(record)).toEqual({ setup: 'Sweep 1', device: 'B-7', stop: 5, title: 'Sample title' });
    expect(rows(record)).toEqual([
      { v: -5, i: 1.5e-5 },
      { v: -4, i: 1.6e-5 },
    ]);
  });

  test('the delimiter is detected', async () => {
    const text = '0\t2026-03-04\tANALYSER\n40\t1\tS1\t  2.45\n40\t2\tS1\t  6.3\n';
    const record = await readAs('records', text, {
      facts: { device: '/0/3' },
      table: { rows: '40', columns: { sample: 3, value: 4 } },
    });
    expect(meta(record)).toEqual({ device: 'ANALYSER' });
    expect(rows(record)).toEqual([
      { sample: 'S1', value: 2.45 },
      { sample: 'S1', value: 6.3 },
    ]);
  });

  test('fields of one type can be a list', async () => {
    const record = await readAs('records', TEXT, { delimiter: ', ', table: { columns: { v: '/Value/2' } } });
    expect(rows(record)).toEqual([{ v: -5 }, { v: -4 }]);
  });
});

describe('missing records are refused', () => {
  test.each([
    ['a type', { facts: { x: '/Q/2' } }, 'there is no Q record', 'the record types are: H, P, O, R, C, L'],
    ['a type of rows', { table: { rows: 'RR' } }, 'there is no RR record', 'the record types are'],
    ['a field', { facts: { x: '/H/name' } }, '`/H/name` is not a field', '`/H/3/1`'],
    ['a condition', { facts: { x: '/R[4=9]/3' } }, 'no R record matches', 'the record types are'],
    ['a parent above the rows', { table: { rows: 'P', columns: { x: '/O/3' } } }, 'none is at or above the rows', ''],
  ])('%s', async (_, mapping, message, hint) => {
    const error = await refusalAs('records', ASTM.join('\r'), mapping);
    expect(error.message).toContain(message);
    expect(error.hint).toContain(hint);
  });

  test('any content is read or refused', async () => {
    expect((await refusalAs('records', '\r\r \r', MAPPING)).message).toContain('no records');
  });
});

test('mutated records are read or refused', async () => {
  const bases = [framed(ASTM), HL7.join('\r')].map((text) => Buffer.from(text, 'latin1'));
  for (const base of bases) {
    await fc.assert(
      fc.asyncProperty(mutations(base), async (bytes) => {
        await readOrRefuse(readAs('records', bytes, MAPPING));
        await readOrRefuse(readAs('records', bytes, { table: { rows: 'OBX' } }));
      }),
      { numRuns: 120 },
    );
  }
});
