import { describe, expect, test } from 'vitest';
import { columns, meta, read, refusal, rows } from '../support/reading.js';

const BLOCKS = { every: '/^(?<step>Step \\d)/', header: 'No' };
const table = (text: string, options: object) => read(text, { delimiter: ',', table: options });

describe('blocks of one table', () => {
  test('the header may be above the first block', async () => {
    const text = 'Lot,7\nNo,p\nStep 1\n1,5\n2,6\nStep 2\n3,7\n';
    expect(rows(await table(text, BLOCKS))).toEqual([
      { step: 'Step 1', No: 1, p: 5 },
      { step: 'Step 1', No: 2, p: 6 },
      { step: 'Step 2', No: 3, p: 7 },
    ]);
  });

  test('a block within a block keeps what the outer one captures, until the next outer one', async () => {
    const text = 'No,p\nCycle 1\nStep 1\n1,5\nStep 2\n2,6\nCycle 2\n3,7\nStep 3\n4,8\n';
    const every = ['/^Cycle (?<cycle>\\d)/', '/^Step (?<step>\\d)/'];
    const record = await table(text, { every, header: 'No' });
    expect(rows(record)).toEqual([
      { cycle: 1, step: 1, No: 1, p: 5 },
      { cycle: 1, step: 2, No: 2, p: 6 },
      { cycle: 2, step: null, No: 3, p: 7 },
      { cycle: 2, step: 3, No: 4, p: 8 },
    ]);
    expect(record.unread).toEqual([]);
  });

  test('a header above the first block is not a fact', async () => {
    const record = await read('Lot,7\n#No,p\nStep 1\n1,5\n2,6\n', {
      ...{ delimiter: ',', comment: '#', meta: { separator: ',', delimiter: ',' } },
      table: { ...BLOCKS, header: '#No', delimiter: '/,/' },
    });
    expect(meta(record)).toEqual({ Lot: 7 });
    expect(columns(record)).toEqual(['step', 'No', 'p']);
  });

  test('a block without a header uses the last one', async () => {
    const text = 'Step 1\nNo,p\n1,5\nStep 2\n2,6\nStep 3\nNo,q\n3,7\nStep 4\n4,8\n';
    expect(rows(await table(text, BLOCKS))).toEqual([
      { step: 'Step 1', No: 1, p: 5, q: null },
      { step: 'Step 2', No: 2, p: 6, q: null },
      { step: 'Step 3', No: 3, p: null, q: 7 },
      { step: 'Step 4', No: 4, p: null, q: 8 },
    ]);
  });

  test('a block without a header may be longer than the lines held back', async () => {
    const text = `Step 1\nNo,p\n1,5\nStep 2\n${'2,6\n'.repeat(300)}`;
    const record = await read(text, { delimiter: ',', meta: { separator: ',' }, table: BLOCKS });
    expect(rows(record)).toHaveLength(301);
    expect(meta(record)).toEqual({});
  });

  test('a block without a header ends like the others', async () => {
    const text = 'Step 1\nNo,p\n1,5\n\nStep 2\n2,6\n\nMean,x,y\nStep 3\n3,7\n';
    expect(rows(await table(text, BLOCKS)).map(({ No }) => No)).toEqual([1, 2, 3]);
    const until = { ...BLOCKS, until: 'Mean' };
    expect(rows(await table(text, until)).map(({ No }) => No)).toEqual([1, 2, 3]);
  });

  test('columns of blocks with different headers are joined by name', async () => {
    const text = 'Step 1\nNo,p (Pa),T\n1,5,30\nStep 2\nNo,T,U\n2,31,8\n';
    const record = await table(text, { every: '/^(?<step>Step \\d)/' });
    expect(columns(record)).toEqual(['step', 'No', 'p [Pa]', 'T', 'U']);
    expect(rows(record)).toEqual([
      { step: 'Step 1', No: 1, p: 5, T: 30, U: null },
      { step: 'Step 2', No: 2, p: null, T: 31, U: 8 },
    ]);
  });

  test('a row that is longer than the header of its block is refused', async () => {
    const text = 'Step 1\nx,y\n1,2\nStep 2\ny,z\n3,4,5\n';
    const error = await refusal(text, { table: { every: 'Step' } });
    expect(error.message).toBe('this row of table readings has 3 cells, but the header has 2');
    expect(error.where?.line).toBe(6);
  });

  test('each block may have two header rows and a units row', async () => {
    const text = 'Step 1\nT,Weight\n,net\ns,mg\n1,5\nStep 2\nT,Weight\n,net\ns,mg\n2,6\n';
    const record = await table(text, { every: 'Step', headerRows: 2, units: 'nextRow' });
    expect(columns(record)).toEqual(['T [s]', 'Weight net [mg]']);
    expect(rows(record)).toHaveLength(2);
  });

  test('without a header, columns are numbered', async () => {
    const text = 'Step 1\n1,5\nStep 2\n2,6\n';
    const record = await table(text, { ...BLOCKS, header: 'none', columns: ['No', 'p'] });
    expect(rows(record)).toEqual([
      { step: 'Step 1', No: 1, p: 5 },
      { step: 'Step 2', No: 2, p: 6 },
    ]);
  });

  test('groups of `after` become columns too', async () => {
    const text = 'Step 0\nx,y\n9,9\nRun R7\nStep 1\nNo,p\n1,5\n';
    const record = await table(text, { ...BLOCKS, after: '/^Run (?<run>\\w+)/' });
    expect(rows(record)).toEqual([{ step: 'Step 1', run: 'R7', No: 1, p: 5 }]);
  });

  test('a group that does not take part in the match is an empty cell', async () => {
    const text = 'Step 1 fast\nNo\n1\nStep 2\nNo\n2\n';
    const record = await read(text, { format: 'text', table: { every: '/^Step \\d ?(?<mode>\\w+)?/' } });
    expect(rows(record)).toEqual([
      { mode: 'fast', No: 1 },
      { mode: null, No: 2 },
    ]);
  });

  test('rows after the blank line that ended a block are refused', async () => {
    const text = 'Step 1\nNo,p\n1,5\n\n2,6\nStep 2\nNo,p\n3,7\n\nend,of,it\n';
    const error = await refusal(text, { delimiter: ',', table: BLOCKS });
    expect(error.where?.line).toBe(5);
    expect(error.hint).toContain('`until: eof`');
  });

  test('rows after a blank line are accepted if another table claims them', async () => {
    const text = 'a;b\n1;2\n\n3;4\n5;6\n';
    const record = await read(text, {
      delimiter: ',',
      tables: { first: { delimiter: ';' }, second: { after: 3, header: 'none', delimiter: ';' } },
    });
    expect(rows(record, 1)).toHaveLength(2);
  });
});

describe('lines counted from the end', () => {
  const text = 'a,b\n1,2\n3,4\nMean,3\nSD,1\n';

  test('end a table or a range of facts', async () => {
    expect(rows(await table(text, { until: -2 }))).toHaveLength(2);
    const record = await read(text, {
      delimiter: ',',
      meta: { after: -3, separator: ',' },
      table: { until: -2 },
    });
    expect(meta(record)).toEqual({ Mean: 3, SD: 1 });
  });

  test('can be skipped or selected', async () => {
    expect(rows(await table(text, { skip: [-1, -2] }))).toHaveLength(2);
    expect(rows(await table(text, { after: -3, header: 'none', columns: ['name', 'n'] }))).toEqual([
      { name: 'Mean', n: 3 },
      { name: 'SD', n: 1 },
    ]);
  });

  test('count a quoted line break as one line, in files of any length', async () => {
    const long = `a,b\n${'1,2\n'.repeat(2000)}"two\nlines",5\n`;
    const record = await read(long, {
      delimiter: ',',
      meta: { line: -1, separator: ',' },
      table: { until: -1 },
    });
    expect(meta(record)).toEqual({ 'two lines': 5 });
    expect(rows(record)).toHaveLength(2000);
  });

  test('before the first line are not found', async () => {
    expect((await refusal(text, { delimiter: ',', table: { after: -9 } })).message).toContain('`after: -9`');
  });
});

describe('`area`', () => {
  const text = 'Lot,7,,\n,x,y,note\n,1,2,a\n,3,4,b\n,5,6,c\n';

  test('limits a table, to its end or to a line', async () => {
    expect(rows(await table(text, { area: 'B2:C' }))).toEqual([
      { x: 1, y: 2 },
      { x: 3, y: 4 },
      { x: 5, y: 6 },
    ]);
    expect(rows(await table(text, { area: 'B2:D3' }))).toEqual([{ x: 1, y: 2, note: 'a' }]);
    expect(columns(await table(text, { area: 'c2:' }))).toEqual(['y', 'note']);
  });

  test('limits facts', async () => {
    const finder = { area: 'B2:C2', separator: 'cell' };
    expect(meta(await read(text, { delimiter: ',', meta: finder }))).toEqual({ x: 'y' });
  });

  test('counts lines as a spreadsheet does', async () => {
    const quoted = 'sep=,\n"Lot\n7",x\na,b\n1,2\n';
    const record = await read(quoted, { table: { area: 'A2:B' }, facts: { first: '=A2' } });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
    expect(meta(record)).toEqual({ first: 'a' });
  });
});

describe('`count`', () => {
  const text = 'Points,2\nx,y\n1,2\n3,4\n';
  const counted = (count: number | string, more = {}) => ({
    ...{ delimiter: ',', meta: { until: 'x', separator: ',' }, facts: { n: 'Points' } },
    table: { header: 'x', count, ...more },
  });

  test.each([2, 'Points', 'n', '=B1'])('accepts the right number of rows: %j', async (count) => {
    expect(rows(await read(text, counted(count)))).toHaveLength(2);
  });

  test.each([1, 3])('refuses a wrong number of rows: %j', async (count) => {
    const error = await refusal(text, counted(count));
    expect(error.message).toContain(`table readings has 2 rows instead of ${count}`);
  });

  test('counts rows before `where` and `unpivot`', async () => {
    expect(rows(await read(text, counted(2, { where: { x: 3 } })))).toHaveLength(1);
    expect(rows(await read(text, counted(2, { unpivot: '/^(?<axis>[xy])$/' })))).toHaveLength(4);
  });

  test('refuses a missing fact and a fact that is not a number', async () => {
    await expect(read(text, counted('Pionts'))).rejects.toThrow('no fact "Pionts"');
    await expect(read(text.replace('2\n', 'two\n'), counted('Points'))).rejects.toThrow('instead of two');
  });
});

const splitAtBlanks = (text: string) =>
  read(text, { delimiter: 'whitespace', table: { units: 'nextRow', skip: '/^-+$/' } });

describe('units below names in lines split at blanks', () => {
  test('are assigned by position if a column has none', async () => {
    const text = [
      '   Index       t      Ts   Value',
      '             [s]    [°C]    [mW]',
      '       0       0   120.0  -1.027',
      '       1       1   120.2  -1.037',
    ];
    expect(columns(await splitAtBlanks(text.join('\n')))).toEqual(['Index', 't [s]', 'Ts [°C]', 'Value [mW]']);
  });

  test('are not assigned if one is below no name or below two', async () => {
    const rows = '1 2 3\n4 5 6\n';
    const names = ['a', 'b', 'c'];
    expect(columns(await splitAtBlanks(`a  b    c\n     s\n${rows}`))).toEqual(names);
    expect(columns(await splitAtBlanks(`a b c\n  mg/mL\n${rows}`))).toEqual(names);
  });

  test('are assigned in order if every column has one', async () => {
    expect(columns(await splitAtBlanks('a b c\n      s V A\n1 2 3\n'))).toEqual(['a [s]', 'b [V]', 'c [A]']);
  });
});
