import { utils, write } from '@e965/xlsx';
import { describe, expect, test } from 'vitest';
import { type ParseMapping, readingSchema } from '../../src/config/vocabulary.js';
import { byWords } from '../../src/learn/anchors.js';
import { columns, measured as measure, meta, read, refusal, rows } from '../support/reading.js';

const measured = async (text: string): Promise<ParseMapping> => (await measure(text)).mapping;

const SEPARATOR = { separator: ':' };
const HEADING = { cells: { heading: 1 } };
const XY = '\n400,0.043,1\n401,0.044,2\n402,0.045,3\n';

describe('measuring a file', () => {
  test.each([
    ['plain CSV', 'Sample,Abs,n\nS1,0.5,1\nS2,0.6,2\n', { delimiter: ',', table: {} }],
    ['tabs', 'Sample\tAbs\tn\nS1\t0.5\t1\nS2\t0.6\t2\n', { delimiter: 'tab', table: {} }],
    ['one row', 'Sample;Abs;n\nS1;0.5;1\n', { delimiter: ';', table: {} }],
    ['decimal comma', 'x;y\n0,1;0,44\n1;0,5\n1,234;7\n', { delimiter: ';', table: {}, decimal: ',' }],
    [
      'decimal comma among words',
      'Probe;n;KBE/ml\nW1;10;1,52E+03\nW2;10;verworfen\nW3;1;n.b.\nW4;1;4,7E+01\n',
      { delimiter: ';', table: {}, decimal: ',' },
    ],
    ['thousands', 'x;y\n1.5;2\n1,234.5;3\n', { delimiter: ';', table: {}, thousands: ',' }],
    ['units below the names', 'Rate,Stress,n\n[1/s],[Pa],\n0.1,5,1\n', { delimiter: ',', table: { units: 'nextRow' } }],
    ['a unit instead of a name', 'Day,mg/dL,n\nMo,102,1\nTu,98,2\n', { delimiter: ',', table: {} }],
    [
      'units after a slash, and after a blank',
      'No,Weight/g,Water/%,Drift ug/min\n1,0.51,0.23,12\n2,0.49,0.22,11\n',
      { delimiter: ',', table: { units: 'slash' } },
    ],
    [
      'names and values above each part',
      'Sweep;1\nf;Z\n1;12\n2;15\n\nSweep;2\nf;Z\n1;13\n2;16\n',
      {
        delimiter: ';',
        meta: { separator: ';' },
        table: { every: '/^Sweep;(?<Sweep>[^;]+?)[;\\s]*$/', header: 'f;Z' },
      },
    ],
    ['units after a slash', 'E/V,I/A\n-0.2,8e-6\n-0.3,6e-6\n', { delimiter: ',', table: { units: 'slash' } }],
    [
      'units beside the numbers',
      'Conc.,conc. units,Volume (uL),n\n5.2,ng/uL,2,1\n5.3,ng/uL,2,2\n',
      { delimiter: ',', table: { units: { column: 'conc. units' } } },
    ],
    [
      'units beside most of the numbers',
      'CO2,Unit,p,Unit,U,Unit,Peak,Unit\n406,ppm,989,mbar,3.35,V,2467,\n410,ppm,988,mbar,3.33,V,2466,\n',
      { delimiter: ',', table: { units: { column: 'Unit' } } },
    ],
    [
      'units beside half of the numbers',
      'CO2,Unit,Peak,Unit\n406,ppm,2467,\n410,ppm,2466,\n',
      { delimiter: ',', table: {} },
    ],
    ['words beside the numbers', 'Conc.,Unit,n\n5.2,first,1\n5.3,mg,2\n', { delimiter: ',', table: {} }],
    ['no header', '1,2\n3,4\n5,6\n', { delimiter: ',', table: { header: 'none' } }],
    [
      'names and values, then a table',
      `Operator: Ada\nMode: scan\n\nx,y,z${XY}`,
      { delimiter: ',', meta: { separator: ':' }, table: { header: 'x,y' } },
    ],
    [
      'a preamble cut like the table',
      `Plate,P1,\nLot,7,\n,,\nWell,Abs,n${XY}`,
      { delimiter: ',', meta: { separator: ',' }, table: { header: 'Well' } },
    ],
    [
      'two rows of names, and units',
      'a,a,b\nx,y,z\ns,V,A\n1,2,3\n4,5,6\n',
      { delimiter: ',', table: { headerRows: 2, units: 'nextRow' } },
    ],
    [
      'comments above',
      '# Name: Cu\n# Edge: K\n#energy   mu\n1.5   2.5\n2.5   3.5\n3.5   4.5\n',
      { delimiter: 'whitespace', comment: '#', meta: { separator: ':' }, table: { header: '#energy' } },
    ],
    [
      'words for no value',
      'well,a,b\nA1,NaN,1\nA2,2.5,OVRFLW\nA3,3,2\n',
      { delimiter: ',', missing: ['NaN', 'OVRFLW'], table: {} },
    ],
    ['something below', 'x,y,z\n1,2,3\n4,5,6\nEND OF DATA\n', { delimiter: ',', table: { until: 'END OF DATA' } }],
    ['a blank line below the names', 'x,y,z\n\n1,2,3\n4,5,6\n', { delimiter: ',', table: { until: 'eof' } }],
    ['blank lines everywhere', 'x,y,z\n\n1,2,3\n\n4,5,6\n\n7,8,9\n', { delimiter: ',', table: { until: 'eof' } }],
    [
      'a line between the names and the rows',
      'Version = 2,,\n,,\nDate,T,n\n,,\n[Data],,\n25/12/2026,1.5,1\n26/12/2026,1.6,2\n',
      {
        delimiter: ',',
        dates: { format: 'd/M/yyyy' },
        meta: { separator: '=' },
        table: { header: 'Date', skip: '[Data],,', until: 'eof' },
      },
    ],
    ['facts alone', 'Operator;Ada\nWeight (mg);5.3\nMode;x\n', { delimiter: ';', meta: { separator: ';' } }],
  ])('%s', async (_, text, mapping) => {
    const found = await measured(text);
    expect(found).toEqual(mapping);
    expect(readingSchema.safeParse(found).success).toBe(true);
    const { unread, ...record } = await read(text, found);
    await expect(read(text)).resolves.toMatchObject({
      tables: record.tables,
      unread: unread.map((each) => ({ ...each, kind: each.kind === 'left out' ? 'unread' : each.kind })),
    });
  });

  test('without a mapping, reads it with the measured one', async () => {
    const record = await read('Operator,Ada,\nStarted,25/12/2026 10:00,\n\nTime (s),U (V),n\n0,1.5,1\n1,1.6,2\n');
    const date = '2026-12-25T10:00:00';
    expect(meta(record)).toEqual({ Operator: 'Ada', Started: date, date });
    expect(columns(record)).toEqual(['Time [s]', 'U [V]', 'n']);
    expect(rows(record)).toEqual([
      { Time: 0, U: 1.5, n: 1 },
      { Time: 1, U: 1.6, n: 2 },
    ]);
  });

  test('accepts a stray word in a column of numbers', async () => {
    const text = 'well,a,b,c\nA1,1,2,3\nA2,oops,2,3\nA3,1,2,3\nA4,1,2,none of it\n';
    expect(rows(await read(text))).toHaveLength(4);
  });

  test('accepts rows without their last empty cells', async () => {
    const text = 'id,n,m,note\nA,1,2\nB,3,4,fine\nC,5,6\nD,7,8,\n';
    expect(rows(await read(text)).map(({ note }) => note)).toEqual([null, 'fine', null, null]);
  });

  test('accepts serial numbers with leading zeros', async () => {
    expect(rows(await read('id,n\n008,1.5\n009,2.5\n100,3.5\n')).map(({ id }) => id)).toEqual(['008', '009', 100]);
  });
});

describe('the date order', () => {
  const table = (...days: string[]) => `day,n,m\n${days.map((day, n) => `${day},${n},1`).join('\n')}\n`;

  test('is the one that fits all dates of the file', async () => {
    expect((await measured(table('03/04/2026', '13/04/2026'))).dates).toEqual({ format: 'dd/MM/yyyy' });
    expect((await measured(table('3/4/2026', '12/31/2026'))).dates).toEqual({ format: 'M/d/yyyy' });
    expect((await measured(table('2026-01-02'))).dates).toBeUndefined();
  });

  test('stays open if two fit, and dates stay text', async () => {
    const text = table('03/04/2026', '05/06/2026');
    expect((await measured(text)).dates).toBeUndefined();
    expect(rows(await read(text))[0]?.['day']).toBe('03/04/2026');
  });

  test('of an unambiguous date applies to the others', async () => {
    const text = `Started: 25/12/2026\n\n${table('03/04/2026 10:00')}`;
    expect((await measured(text)).dates).toEqual({ format: ['d/M/yyyy', 'dd/MM/yyyy HH:mm'] });
  });
});

describe('a file with several parts', () => {
  test('has two tables', async () => {
    const record = await read(`a,b,c${XY}\nd,e,f,g\n1,2,3,4\n5,6,7,8\n9,1,2,3\n`);
    expect(record.tables.map(({ count }) => count)).toEqual([3, 3]);
    expect(columns(record, 1)).toEqual(['d', 'e', 'f', 'g']);
  });

  test('has tables named by the lines above them', async () => {
    const record = await read(`Scan\na,b,c${XY}\nPeaks\nd,e,f\n1,2,3\n5,6,7\n9,1,2\n`);
    expect(record.tables.map(({ name }) => name)).toEqual(['Scan', 'Peaks']);
  });

  test('has one table of parts under titles, with the difference in a column', async () => {
    const text = `Name: S\n\n1) Heat\nt,T,w${XY}2) Hold\n403,0.05,4\n404,0.05,5\n405,0.05,6\n`;
    const record = await read(text);
    expect(rows(record)).toHaveLength(6);
    expect(
      rows(record)
        .map(({ section }) => section)
        .slice(2, 4),
    ).toEqual(['1) Heat', '2) Hold']);
  });

  test('has one row per well of a plate', async () => {
    const record = await read('Results\n,1,2,3,4\nA,0.1,0.2,0.3,0.4\nB,0.5,0.6,0.7,0.8\n');
    expect(rows(record)).toHaveLength(8);
    expect(rows(record)[5]).toEqual({ well: 'B2', Results: 0.6 });
  });

  test('has the wells of a plate with a line drawn under its header', async () => {
    const record = await read('Results\n,1,2,3,4\n,__________\nA,0.1,0.2,0.3,0.4\nB,0.5,0.6,0.7,0.8\n');
    expect(rows(record)).toHaveLength(8);
    expect(rows(record)[5]).toEqual({ well: 'B2', Results: 0.6 });
  });

  test('has a fact for a line without a name', async () => {
    const record = await read(`Linear Sweep\nSample: S1\nOperator: Ada\n\nx,y,z${XY}`);
    expect(meta(record)).toMatchObject({ heading: 'Linear Sweep', Sample: 'S1' });
  });

  test('has a date made of a day and a time', async () => {
    const record = await read(`Date: 25/12/2026\nTime: 10:11:12\nSample: S1\n\nx,y,z${XY}`);
    expect(meta(record)['date']).toBe('2026-12-25T10:11:12');
  });

  test('has a date from its name if it contains none', async () => {
    const record = await read(`x,y,z${XY}`, undefined, 'runs/scan_20261225_101112.csv');
    expect(meta(record)['date']).toBe('2026-12-25T10:11:12');
  });
});

describe('what a person must confirm', () => {
  test('is a doubt with the line to write, and no mapping has a guess', async () => {
    const text = `Date: 03/04/2026 3:04:05 PM\nSample: S1\n\nx,y,z${XY}`;
    const { mapping, likely, doubts } = await measure(text);
    expect([mapping.dates, likely().dates]).toEqual([undefined, undefined]);
    expect(doubts).toEqual([
      '03/04/2026 3:04:05 PM is ambiguous, so runs with such dates are quarantined. Write one of these under parse: dates: { format: "dd/MM/yyyy h:mm:ss a" } or dates: { format: "MM/dd/yyyy h:mm:ss a" }',
    ]);
  });
});

describe('measuring rejects', () => {
  test('ambiguous numbers, with the mappings to choose from', async () => {
    const error = await refusal('a;b;c\n1,234;x;1\n5,678;y;2\n');
    expect(error.where).toMatchObject({ line: 2, column: 1 });
    expect(error.hint).toContain('`parse: { delimiter: ;, table: {}, decimal: "," }`');
    expect(error.hint).toContain('`parse: { delimiter: ;, table: {}, thousands: "," }`');
  });

  test('a number that a spreadsheet damaged', async () => {
    const error = await refusal('a;b;c\n50.026184;x;1\n50.026.184;y;2\n');
    expect(error.message).toContain('50.026.184');
    expect(error.where?.line).toBe(3);
  });

  test('rows without a header', async () => {
    const error = await refusal('S1,0.5,1\nS2,0.6,2\nS3,0.7,3\n');
    expect(error.message).toContain('rows of a table without a header');
    expect(error.hint).toContain('`parse: { table: { header: none } }`');
  });

  test.each([
    ['at the top', 'a,b\nx,1\ny,2\n', ','],
    ['below facts', 'Name,S1\nOperator,Bob\n\na,b\nx,1\ny,2\n', ','],
    ['above another table', 'a,b\nx,1\ny,2\n\nc,d,e\nq,3,4\nr,5,6\ns,7,8\n', ','],
    ['with tabs', 'a\tb\nx\t1\ny\t2\n', 'tab'],
  ])('what can be a table of two columns or a list of facts, %s', async (_, text, separator) => {
    const error = await refusal(text);
    expect(error.message).toMatch(/two columns or a list of facts/);
    expect(error.hint).toContain(`separator: "${separator}"`);
  });

  test('facts with an ambiguous small table', async () => {
    await refusal('Name: S1\nOperator: Bob\n\na,b\nx,1\ny,2\n');
  });

  test('prose', async () => {
    expect((await refusal('Dear Ada,\nthe run failed.\nSee you: tomorrow\nBob\n')).message).toContain(
      'found no table and no list of facts',
    );
  });

  test('a file that cannot be read with the measured mapping, and shows that mapping', async () => {
    const error = await refusal(`x,y,z${XY}\n403,0.05,4\nfoo,bar,1\n`);
    expect(error.hint).toContain('`until: eof`');
    expect(error.hint).toContain('parse: { delimiter: ",", ');
  });
});

test('a header with a unit makes two columns a table', async () => {
  const record = await read('Sample,Weight (mg)\nS1,1.5\n');
  expect(record.tables[0]?.rows).toHaveLength(1);
  expect(record.tables[0]?.columns).toEqual([{ name: 'Sample' }, { name: 'Weight', unit: 'mg' }]);
});

test('40,000 equal elements are measured in one pass', async () => {
  const { mapping } = await measure(`<?xml version="1.0"?><a>${'<r>1</r>'.repeat(40_000)}</a>`);
  expect(mapping).toMatchObject({ format: 'xml', tables: { r: { columns: { value: '/a/r' } } } });
});

test('a very long line is not searched for facts', async () => {
  const line = (from: number) => Array.from({ length: 6 }, (_, n) => `Name ${from + n}: value`).join(', ');
  const { mapping } = await measure(`${line(0)}\n${line(6)}\n`);
  expect(mapping?.meta).toBeDefined();
  await expect(measure(`${`${line(0)}, `.repeat(20_000)}\n`)).rejects.toThrow('no list of facts in the file');
});

test('a file of thousands of small tables is refused at once', async () => {
  const plate = `\n,${Array.from({ length: 12 }, (_, n) => n + 1)}\nA,${Array.from({ length: 12 }, (_, n) => `0.${n + 11}`)}\n`;
  const start = process.cpuUsage();
  const error = await refusal(plate.repeat(2700));
  expect(error.message).toBe('the file seems to have 2700 tables, more than 500');
  const { user } = process.cpuUsage(start);
  expect(user).toBeLessThan(5_000_000);
  expect((await read(plate.repeat(20))).tables.length).toBeGreaterThan(0);
});

test('records of thousands of fields are refused before their cells are looked up', async () => {
  const start = process.cpuUsage();
  await measure(`H|\\^&\nP|1\n${`R|1${'|x^y'.repeat(12_000)}\n`.repeat(40)}L|1\n`).catch(() => undefined);
  expect(process.cpuUsage(start).user).toBeLessThan(3_000_000);
});

describe('a mapping finds lines by words that the next file has as well', () => {
  const table = 'x,y,z\n1,0.5,3\n2,0.6,4\n3,0.7,5\n';

  test.each<[string, string, ParseMapping]>([
    ['the title of the file', `Scan report\nMode: scan\nLamp: D2\n\n${table}`, { meta: [SEPARATOR, HEADING] }],
    [
      'a line below a fact',
      `Mode: scan\nLamp: D2\n\nFull spectrum\n\nGain: 3\n\n${table}`,
      { meta: [SEPARATOR, { after: 'Lamp', cells: { 'heading 2': 1 } }] },
    ],
    [
      'rows below a fact',
      'Mode: scan\nLamp: D2\nPoints: 4711\n1,0.5,3\n2,0.6,4\n3,0.7,5\n',
      { table: { header: 'none', after: 'Points' } },
    ],
    [
      'rows below a line of numbers',
      'Mode: scan\nLamp: D2\n2020-01-03 4711/12\n1,0.5,3\n2,0.6,4\n3,0.7,5\n',
      { table: { header: 'none', after: '/^\\d+-\\d+-\\d+ \\d+\\/\\d+/' } },
    ],
    [
      'names of which an earlier line has the first',
      `x: 4\nMode: scan\nSample: S1\n\nSample,A260,A280,Ratio\nS1,0.5,3,1\nS2,0.6,4,2\nS3,0.7,5,3\n`,
      { table: { header: 'Sample,A260' } },
    ],
    [
      'a plate below a fact',
      'Mode: scan\nLamp: D2\nBatch: B 17\n,1,2,3\nA,0.1,0.2,0.3\nB,0.4,0.5,0.6\n',
      { table: { header: ',1', grid: true } },
    ],
    ['the end of the rows', `${table}Signed 2020-03-04\n`, { table: { until: 'Signed' } }],
  ])('%s', async (_, text, mapping) => {
    expect(await measured(text)).toMatchObject(mapping);
  });

  test('a line of several pairs', () => {
    const lines = ['Read: once', 'Read speed: 5, Delay: 3', '5'].map((text, n) => ({
      number: n + 1,
      text,
      cells: [text],
    }));
    const file = { lines, raw: ({ text }: { text: string }) => text };
    expect(byWords({ line: 2, separator: ':' }, file)).toEqual({ line: 'Read speed', separator: ':' });
    expect(byWords({ line: 3, separator: ':' }, file)).toEqual({ line: 3, separator: ':' });
  });

  test('or by a number, if there are none', async () => {
    const mapping = await measured(`4711 A\n4712 B\nMode: scan\nLamp: D2\n\n${table}`);
    expect(mapping.meta).toContainEqual({ line: 2, match: '/(?<A2>\\S.*\\S)/' });
  });
});

test('the decimal comma of a plate is measured', async () => {
  const mapping = await measured(';1;2;3\nA;0,1;0,25;0,3\nB;0,4;0,5;0,6\n');
  expect(mapping).toMatchObject({ decimal: ',', table: { grid: true } });
});

test('comment marks can follow a title', async () => {
  const record = await read('Raw data\n# Sample: S1\n# Lamp: D2\n# Mode: scan\nx,y,z\n1,0.5,3\n2,0.6,4\n3,0.7,5\n');
  expect(meta(record)).toEqual({ heading: 'Raw data', Sample: 'S1', Lamp: 'D2', Mode: 'scan' });
});

test.each([
  [9, []],
  [32, [/Not in this mapping: "S31" and 1 further sheet\. If they have readings, .*sheet: "S31"/]],
])('the doubts say which of %d sheets were left out', async (count, expected) => {
  const book = utils.book_new();
  for (let n = 1; n <= count; n++)
    utils.book_append_sheet(
      book,
      utils.aoa_to_sheet([
        ['x', 'y', 'z'],
        [n, 2, 3],
        [4, 5, 6],
      ]),
      `S${n}`,
    );
  const { doubts, mapping } = await measure(write(book, { type: 'buffer', bookType: 'xlsx' }) as Uint8Array);
  expect(Object.keys(mapping.tables ?? {})).toHaveLength(Math.min(count, 30));
  expect(doubts).toEqual(expected.map((pattern) => expect.stringMatching(pattern)));
});

test('comment marks can repeat and can follow several titles', async () => {
  const record = await read(
    '#SAMPLE:PLA\n#SAMPLE MASS /mg:8.4\n##Temp./°C;Time/min;DSC/(mW/mg)\n30;44;0.1\n31;45;0.2\n',
  );
  expect(meta(record)).toEqual({ SAMPLE: 'PLA', 'SAMPLE MASS': 8.4 });
  expect(columns(record)).toEqual(['Temp. [°C]', 'Time [min]', 'DSC [mW/mg]']);
  const titled = await read(
    'Format = ASCII\nCreated by SPIP\n# x-pixels = 3\n# y-pixels = 3\n# gain = 5\n1 2 3\n4 5 6\n7 8 9\n',
  );
  expect(meta(titled)).toMatchObject({ 'x-pixels': 3, 'y-pixels': 3, gain: 5 });
  expect(titled.tables.map(({ count }) => count)).toEqual([3]);
});

test('empty cells at the start of a line are no comment mark', async () => {
  const text = ';;Scan 1;Scan 2\n;;line 1;line 2\nMain;0;0.1;0.2\nMain;1;0.3;0.4\nMain;2;0.5;0.6\n';
  expect(await measured(text)).not.toHaveProperty('comment');
});

test('a line between units and rows is no part of the names', async () => {
  const text =
    '"Time","AirT_Avg","RH","Rain_Tot"\n"TS","Deg C","%","mm"\n"","Avg","Smp","Tot"\n' +
    '"2022-08-03 10:10:00",18.4,71,0\n"2022-08-03 10:20:00",18.6,70,0.2\n"2022-08-03 10:30:00",18.7,69,0\n';
  expect(columns(await read(text))).toEqual(['Time', 'AirT_Avg [Deg C]', 'RH [%]', 'Rain_Tot [mm]']);
});

test('a label to the left of all columns is no name', async () => {
  const text =
    'Test:,Sweep 3\n\nInterval data:,Point,Frequency,Torque\n,,,\n,,[rad/s],[µN·m]\n,1,100,45\n,2,63,44\n,3,39,43\n';
  const record = await read(text);
  expect(columns(record).slice(1)).toEqual(['Point', 'Frequency [rad/s]', 'Torque [µN·m]']);
  expect(meta(record)).toEqual({ Test: 'Sweep 3' });
});

test('facts above rows of two columns are no names', async () => {
  const text =
    'Mode;ANALYZER;\nStart;10;Hz\nStop;40;Hz\ny-Unit;dBm;\nTrace 1;;\nValues;4;\n10;-81.2;\n20;-80.9;\n30;-10.2;\n40;-80.1;\n';
  const record = await read(text);
  expect(meta(record)).toMatchObject({ Start: 10, 'y-Unit': 'dBm', Values: 4 });
  expect(columns(record).slice(0, 2)).toEqual(['column 1', 'Y [dBm]']);
});
