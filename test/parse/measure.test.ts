import { describe, expect, test } from 'vitest';
import { type ParseMapping, readingSchema } from '../../src/config/vocabulary.js';
import { measure } from '../../src/parse/measure/measure.js';
import { createRefuse } from '../../src/parse/refuse.js';
import { columns, meta, read, refusal, rows } from './reading.js';

const pace = { due: () => false, rest: async () => {} };

const measured = async (text: string): Promise<ParseMapping> =>
  measure({
    path: 'x',
    name: 'x',
    texts: text.replace(/\n$/, '').split('\n'),
    refuse: createRefuse('x'),
    pace,
  });

const XY = '\n400,0.043,1\n401,0.044,2\n402,0.045,3\n';

describe('without a mapping, a file is measured', () => {
  test.each([
    ['plain CSV', 'Sample,Abs,n\nS1,0.5,1\nS2,0.6,2\n', { delimiter: ',', table: {} }],
    ['tabs', 'Sample\tAbs\tn\nS1\t0.5\t1\nS2\t0.6\t2\n', { delimiter: 'tab', table: {} }],
    ['one row', 'Sample;Abs;n\nS1;0.5;1\n', { delimiter: ';', table: {} }],
    ['decimal comma', 'x;y\n0,1;0,44\n1;0,5\n1,234;7\n', { delimiter: ';', table: {}, decimal: ',' }],
    ['thousands', 'x;y\n1.5;2\n1,234.5;3\n', { delimiter: ';', table: {}, thousands: ',' }],
    [
      'units below the names',
      'Rate,Stress,n\n[1/s],[Pa],\n0.1,5,1\n',
      { delimiter: ',', table: { units: 'nextRow' } },
    ],
    ['units after a slash', 'E/V,I/A\n-0.2,8e-6\n-0.3,6e-6\n', { delimiter: ',', table: { units: 'slash' } }],
    ['no header', '1,2\n3,4\n5,6\n', { delimiter: ',', table: { header: 'none' } }],
    [
      'names and values, then a table',
      `Operator: Ada\nMode: scan\n\nx,y,z${XY}`,
      { delimiter: ',', meta: { separator: ':' }, table: { header: 'x,y,z' } },
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
    ['something below', 'x,y,z\n1,2,3\n4,5,6\nEND OF DATA\n', { delimiter: ',', table: { until: 4 } }],
    ['a blank line below the names', 'x,y,z\n\n1,2,3\n4,5,6\n', { delimiter: ',', table: { until: 'eof' } }],
    [
      'blank lines everywhere',
      'x,y,z\n\n1,2,3\n\n4,5,6\n\n7,8,9\n',
      { delimiter: ',', table: { until: 'eof' } },
    ],
    [
      'a line between the names and the rows',
      'Version = 2,,\n,,\nDate,T,n\n,,\n[Data],,\n25/12/2026,1.5,1\n26/12/2026,1.6,2\n',
      {
        delimiter: ',',
        dates: { format: 'd/M/yyyy' },
        meta: { separator: '=' },
        table: { header: 'Date', skip: [5], until: 'eof' },
      },
    ],
    ['facts alone', 'Operator;Ada\nWeight (mg);5.3\nMode;x\n', { delimiter: ';', meta: { separator: ';' } }],
  ])('%s', async (_, text, mapping) => {
    const found = await measured(text);
    expect(found).toEqual(mapping);
    expect(readingSchema.safeParse(found).success).toBe(true);
    await expect(read(text)).resolves.toEqual(await read(text, found));
  });

  test('and read with what was found', async () => {
    const record = await read(
      'Operator,Ada,\nStarted,25/12/2026 10:00,\n\nTime (s),U (V),n\n0,1.5,1\n1,1.6,2\n',
    );
    expect(meta(record)).toEqual({ Operator: 'Ada', Started: '2026-12-25T10:00:00' });
    expect(columns(record)).toEqual(['Time [s]', 'U [V]', 'n']);
    expect(rows(record)).toEqual([
      { Time: 0, U: 1.5, n: 1 },
      { Time: 1, U: 1.6, n: 2 },
    ]);
  });

  test('a stray word in a column of numbers ends no table', async () => {
    const text = 'well,a,b,c\nA1,1,2,3\nA2,oops,2,3\nA3,1,2,3\nA4,1,2,none of it\n';
    expect(rows(await read(text))).toHaveLength(4);
  });

  test('rows may leave out what is empty at their end', async () => {
    const text = 'id,n,m,note\nA,1,2\nB,3,4,fine\nC,5,6\nD,7,8,\n';
    expect(rows(await read(text)).map(({ note }) => note)).toEqual([null, 'fine', null, null]);
  });

  test('serial numbers with zeros before them are read among others', async () => {
    expect(rows(await read('id,n\n008,1.5\n009,2.5\n100,3.5\n')).map(({ id }) => id)).toEqual([
      '008',
      '009',
      100,
    ]);
  });
});

describe('the order of dates', () => {
  const table = (...days: string[]) => `day,n,m\n${days.map((day, n) => `${day},${n},1`).join('\n')}\n`;

  test('is what all dates of the file allow', async () => {
    expect((await measured(table('03/04/2026', '13/04/2026'))).dates).toEqual({ format: 'dd/MM/yyyy' });
    expect((await measured(table('3/4/2026', '12/31/2026'))).dates).toEqual({ format: 'M/d/yyyy' });
    expect((await measured(table('2026-01-02'))).dates).toBeUndefined();
  });

  test('stays open where two fit: then dates are texts', async () => {
    const text = table('03/04/2026', '05/06/2026');
    expect((await measured(text)).dates).toBeUndefined();
    expect(rows(await read(text))[0]?.['day']).toBe('03/04/2026');
  });

  test('of a clear date tells how the others are meant', async () => {
    const text = `Started: 25/12/2026\n\n${table('03/04/2026 10:00')}`;
    expect((await measured(text)).dates).toEqual({ format: ['dd/MM/yyyy HH:mm', 'd/M/yyyy'] });
  });
});

describe('what measuring cannot decide is refused', () => {
  test('numbers that read two ways, with the whole mapping that settles it', async () => {
    const error = await refusal('a;b;c\n1,234;x;1\n5,678;y;2\n');
    expect(error.where).toMatchObject({ line: 2, column: 1 });
    expect(error.hint).toContain('`parse: { delimiter: ;, table: {}, decimal: "," }`');
    expect(error.hint).toContain('`parse: { delimiter: ;, table: {}, thousands: "," }`');
  });

  test('a number that a spreadsheet ruined', async () => {
    const error = await refusal('a;b;c\n50.026184;x;1\n50.026.184;y;2\n');
    expect(error.message).toContain('50.026.184');
    expect(error.where?.line).toBe(3);
  });

  test('a second table', async () => {
    const error = await refusal(`a,b,c${XY}\nd,e,f,g\n1,2,3,4\n5,6,7,8\n9,1,2,3\n`);
    expect(error.message).toContain('more than one table');
    expect(error.where?.line).toBe(2);
  });

  test('a table that other lines break off', async () => {
    const error = await refusal(`x,y,z${XY}Section 2\n403,0.05,4\n404,0.05,5\n`);
    expect(error.message).toContain('stops here and goes on below');
    expect(error.hint).toContain('Section 2');
  });

  test('rows that nothing names', async () => {
    const error = await refusal('S1,0.5,1\nS2,0.6,2\nS3,0.7,3\n');
    expect(error.message).toContain('no line above names their columns');
    expect(error.hint).toContain('`parse: { table: { header: none } }`');
  });

  test('a plate', async () => {
    expect((await refusal(',1,2,3,4,5,6\nA,1,2,3,4,5,6\nB,1,2,3,4,5,6\nC,1,2,3,4,5,6\n')).message).toContain(
      'plate',
    );
  });

  test.each([
    ['xml', '<?xml version="1.0"?>\n<a><b>1</b></a>\n'],
    ['json', '{ "a": [1, 2],\n "b": 3 }\n'],
    ['jcamp', '##TITLE=x\n##JCAMP-DX=4.24\n'],
    ['records', 'H|\\^&|||x\nP|1\n'],
    ['records', 'MSH|^~\\&|LAB\nPID|1\n'],
  ])('a file that looks like %s', async (format, text) => {
    expect((await refusal(text)).message).toContain(`format: ${format}`);
  });

  test.each([
    ['at the top', 'a,b\nx,1\ny,2\n'],
    ['with times', 'time,v\n12:30:01,1\n'],
    ['below facts', 'Name,S1\nOperator,Bob\n\na,b\nx,1\ny,2\n'],
    ['above another table', 'a,b\nx,1\ny,2\n\nc,d,e\nq,3,4\nr,5,6\ns,7,8\n'],
  ])('what can be a small table of two columns or names with values, %s', async (_, text) => {
    const error = await refusal(text);
    expect(error.message).toMatch(/two columns, or names with values|more than one table/);
    expect(error.hint).toContain('`');
  });

  test('facts of which some would be lost', async () => {
    await refusal('Name: S1\nOperator: Bob\n\na,b\nx,1\ny,2\n');
  });

  test('prose', async () => {
    expect((await refusal('Dear Ada,\nthe run failed.\nSee you: tomorrow\nBob\n')).message).toContain(
      'no table and no list',
    );
  });

  test('whatever reading then refuses is told with the mapping that was used', async () => {
    const error = await refusal(`x,y,z${XY}\n403,0.05,4\nfoo,bar,1\n`);
    expect(error.hint).toContain('`until: eof`');
    expect(error.hint).toContain('parse: { delimiter: ",", ');
  });
});

test('a header that names a unit makes two columns a table, however short', async () => {
  const record = await read('Sample,Weight (mg)\nS1,1.5\n');
  expect(record.tables[0]?.rows).toHaveLength(1);
  expect(record.tables[0]?.columns).toEqual([{ name: 'Sample' }, { name: 'Weight', unit: 'mg' }]);
});
