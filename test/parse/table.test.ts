import { describe, expect, test } from 'vitest';
import { columns, meta, read, refusal, rows } from '../support/reading.js';

describe('the place of a table', () => {
  test('is the top of the file, with the header in the first line, by default', async () => {
    expect(rows(await read('\n\na,b\n1,x\n2,y\n', { table: {} }))).toEqual([
      { a: 1, b: 'x' },
      { a: 2, b: 'y' },
    ]);
  });

  test('is between `after` and `until`', async () => {
    const text = 'Lot,7\n[Data]\nx,y\n1,2\n\n3,4\n</Data>\n5,6\n';
    const record = await read(text, { delimiter: ',', table: { after: '[Data]', until: '</' } });
    expect(rows(record)).toEqual([
      { x: 1, y: 2 },
      { x: 3, y: 4 },
    ]);
  });

  test('ends at a blank line, or at a line of only delimiters', async () => {
    const record = await read('a,b\n1,2\n,\nMean,none,x\n', { delimiter: ',', table: {} });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
  });

  test('is given by line number, from the end, by text, by pattern, or by a list of these', async () => {
    const text = 'one\ntwo\n  a;b\n1;2\n3;4\nend\n';
    for (const after of [2, -5, 'two', '/^tw/', ['zero', 'two']]) {
      const record = await read(text, { delimiter: ';', table: { after, until: [-1, 'eof'] } });
      expect(rows(record)).toEqual([
        { a: 1, b: 2 },
        { a: 3, b: 4 },
      ]);
    }
  });

  test('is given without the quotes of a first cell', async () => {
    const record = await read('"x","y"\n"Date/Time","n"\n"noon","1"\n', {
      delimiter: ',',
      table: { header: 'Date/Time' },
    });
    expect(rows(record)).toEqual([{ 'Date/Time': 'noon', n: 1 }]);
    const other = await read("x,y\n'a, b',n\n'c, d',1\n", {
      delimiter: ',',
      quote: "'",
      table: { header: 'a, b' },
    });
    expect(rows(other)).toEqual([{ 'a, b': 'c, d', n: 1 }]);
  });

  test('`every` starts blocks, its groups are columns, and the header applies to all', async () => {
    const text = 'No,p/kPa\nADS\n1,0.5\n2,0.6\nDES\n1,0.7\n';
    const record = await read(text, {
      delimiter: ',',
      table: { every: '/^(?<branch>ADS|DES)$/', header: 'No', units: 'slash' },
    });
    expect(columns(record)).toEqual(['branch', 'No', 'p [kPa]']);
    expect(rows(record)).toEqual([
      { branch: 'ADS', No: 1, p: 0.5 },
      { branch: 'ADS', No: 2, p: 0.6 },
      { branch: 'DES', No: 1, p: 0.7 },
    ]);
  });

  test('a block that has only the facts that stand above the header of others has no rows', async () => {
    const section = (name: string, count: number) => `[Peaks(${name})]\n# of Peaks,${count}\n`;
    const text = `${section('A', 1)}No,RT\n1,0.5\n\n${section('B', 0)}\n${section('C', 1)}No,RT\n1,0.7\n`;
    const table = { every: '/^\\[Peaks\\((?<channel>.+?)\\)\\]$/', header: 'No' };
    const record = await read(text, { delimiter: ',', meta: { separator: ',' }, table });
    expect(rows(record)).toEqual([
      { channel: 'A', No: 1, RT: 0.5 },
      { channel: 'C', No: 1, RT: 0.7 },
    ]);
    expect(meta(record)).toEqual({ '# of Peaks': 1, '# of Peaks (2)': 0, '# of Peaks (3)': 1 });
  });

  test('columns of blocks with different headers are joined by name', async () => {
    const text = 'Group: A\nx,y\n1,2\n\nGroup: B\ny,z\n3,4\n';
    const record = await read(text, { delimiter: ',', table: { every: '/^Group: (?<group>.)/' } });
    expect(rows(record)).toEqual([
      { group: 'A', x: 1, y: 2, z: null },
      { group: 'B', x: null, y: 3, z: 4 },
    ]);
  });

  test('several tables have their names and order from the mapping', async () => {
    const text = '[B]\nx,y\n1,2\n\n[A]\nv\tw\n3\t4\n';
    const record = await read(text, {
      delimiter: ',',
      tables: { second: { after: '[B]' }, first: { after: '[A]', delimiter: 'tab' } },
    });
    expect(record.tables.map(({ name }) => name)).toEqual(['second', 'first']);
    expect(rows(record, 1)).toEqual([{ v: 3, w: 4 }]);
  });

  test('rows can be lines that match a pattern', async () => {
    const text = 'Ready\nS S     12.50 mg\nS D      9.99 mg\nS S     13.00 mg\n';
    const record = await read(text, { table: { rows: '/^S S +(?<weight>\\S+) (?<unit>\\w+)/' } });
    expect(rows(record)).toEqual([
      { weight: 12.5, unit: 'mg' },
      { weight: 13, unit: 'mg' },
    ]);
  });

  test('a `sep=` line is not part of the table', async () => {
    const record = await read('sep=;\na;b\n1;2\n', { table: {}, facts: { first: '=A1' } });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
    expect(record.meta.get('first')?.text).toBe('a');
  });
});

describe('column names', () => {
  test('of several header rows are joined, without empty and repeated cells', async () => {
    const text = 'Time,Unsubtracted,T,T\n,Weight,T,low\n0,12.4,1,2\n';
    expect(columns(await read(text, { table: { headerRows: 2 } }))).toEqual([
      'Time',
      'Unsubtracted Weight',
      'T',
      'T low',
    ]);
  });

  test('that repeat in the last header row have the names and the unit of their group', async () => {
    const text = 'Run 5,,Area (mAU),,RT (s),,\nTime,Sample,H2,O2,H2,O2,Note\n0,A,1,2,3,4,x\n';
    const record = await read(text, { table: { headerRows: 2 } });
    const names = ['Area H2 [mAU]', 'Area O2 [mAU]', 'RT H2 [s]', 'RT O2 [s]'];
    expect(columns(record)).toEqual(['Time', 'Sample', ...names, 'Note']);
    expect(rows(record)[0]).toMatchObject({ 'Area O2': 2, 'RT H2': 3 });
  });

  test.each([
    ['in the middle above', ',,North,,,South,,'],
    ['at the start of', ',North,,,South,,,'],
    ['at the end of', ',,,North,,,South,'],
  ])('that repeat in blocks have the title that stands %s their block', async (_, titles) => {
    const names = ['x', 'y', 'z'];
    const text = `${titles}\nTime,x,y,z,x,y,z,Note\n0,1,2,3,4,5,6,ok\n`;
    expect(columns(await read(text, { table: { headerRows: 2 } }))).toEqual([
      ...['Time', ...names.map((name) => `North ${name}`), ...names.map((name) => `South ${name}`), 'Note'],
    ]);
  });

  test('that repeat in blocks have no title if two stand above one block', async () => {
    const text = ',North,,South,,,,\nTime,x,y,z,x,y,z,Note\n0,1,2,3,4,5,6,ok\n';
    expect(columns(await read(text, { table: { headerRows: 2 } })).join()).not.toMatch(/North|South/);
  });

  test('are numbered if missing, and unnamed empty columns are dropped', async () => {
    const text = ',Well,Cq,,\n7,A01,21.1,,\n,A02,21.2,x\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual(['column 1', 'Well', 'Cq', 'column 4']);
    expect(columns(await read('1,2\n3,4\n', { delimiter: ',', table: { header: 'none' } }))).toEqual([
      'column 1',
      'column 2',
    ]);
  });

  test('that repeat are numbered, and line breaks become spaces', async () => {
    const text = '"Plate\nPosition",Abs,Abs:,Abs\n1,2,3,4\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual([
      'Plate Position',
      'Abs',
      'Abs (2)',
      'Abs (3)',
    ]);
  });

  test('can be in a comment', async () => {
    const text = '# note\n#freq  re\n1 2\n# in between\n3 4\n';
    const record = await read(text, { delimiter: 'whitespace', comment: '#', table: { header: '#freq' } });
    expect(rows(record)).toEqual([
      { freq: 1, re: 2 },
      { freq: 3, re: 4 },
    ]);
  });

  test('a repeated header is not a row', async () => {
    expect(rows(await read('a,b\n1,2\na,b\n3,4\n', { table: {} }))).toHaveLength(2);
  });
});

describe('column units', () => {
  test('are in brackets at the end of the name of a numeric column', async () => {
    const text = 'Time (s),U[V],Name (V),Cells (big),Empty (mg)\n1,2,x,3,\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual([
      'Time [s]',
      'U [V]',
      'Name (V)',
      'Cells (big)',
      'Empty [mg]',
    ]);
  });

  test('are not cut at the slash within them, and 1 is none', async () => {
    const text = 'Flow mln/min,Rate xtk/min,Time/min,Cycle / 1,Step / 1\n1,2,3,4,rest\n';
    expect(columns(await read(text, { table: { units: 'slash' } }))).toEqual([
      'Flow [mln/min]',
      'Rate xtk/min',
      'Time [min]',
      'Cycle',
      'Step',
    ]);
  });

  test('are after a slash, in the next row, or absent', async () => {
    expect(columns(await read('T/°C;date/time\n1;x\n', { table: { units: 'slash' } }))).toEqual([
      'T [°C]',
      'date/time',
    ]);
    expect(columns(await read('T,n\n[rad/s],\n1,2\n', { table: { units: 'nextRow' } }))).toEqual(['T [rad/s]', 'n']);
    expect(columns(await read('T (s),n\n1,2\n', { table: { units: 'none' } }))).toEqual(['T (s)', 'n']);
  });

  test('are in brackets in all columns of a row: other words are the rest of a name', async () => {
    const record = await read('RT,ISTD,Amt/Area\n[min],used,ratio\n1,1,2\n', { table: { units: 'nextRow' } });
    expect(columns(record)).toEqual(['RT [min]', 'ISTD used', 'Amt/Area ratio']);
    const bare = await read('RT,Signal\nmin,foo\n1,1\n', { table: { units: 'nextRow' } });
    expect(columns(bare)).toEqual(['RT [min]', 'Signal [foo]']);
  });

  test('are in the next row even without a header', async () => {
    const text = 'file,x\nnm,A\n400,0.043\n';
    const record = await read(text, {
      delimiter: ',',
      table: { after: 1, header: 'none', units: 'nextRow', columns: ['wavelength', 'absorbance'] },
    });
    expect(columns(record)).toEqual(['wavelength [nm]', 'absorbance [A]']);
  });

  test('a cell that spreadsheets show as text is read without its signs', async () => {
    const record = await read('Well,Code\nA1,"=""0012"""\nA2,="B-13"\n', { table: {} });
    expect(rows(record).map(({ Code }) => Code)).toEqual(['0012', 'B-13']);
  });

  test('are taken from the numbers if all are equal', async () => {
    const record = await read('a,b\n1 mg,1 mg\n2 mg,1 g\n', { table: {} });
    expect(columns(record)).toEqual(['a [mg]', 'b']);
    expect(record.tables[0]?.rows[1]?.[1]).toEqual({ value: 1, text: '1 g', unit: 'g' });
  });
});

describe('`columns`', () => {
  const text = 'Date,Time,Weight (mg),Flag\n24/01/2020,13:37:22,1.5,1\n25/01/2020,01:37:22,2.5,0\n';
  const mapping = { delimiter: ',', dates: { format: 'dd/MM/yyyy HH:mm:ss' } };

  test('a map renames in place, types, adds, and keeps the rest', async () => {
    const record = await read(text, {
      ...mapping,
      table: {
        columns: {
          mass: 'Weight',
          when: ['Date', 'Time'],
          Flag: { type: 'boolean' },
          day: { from: 1, format: 'dd/MM/yyyy' },
          lot: '=A1',
        },
      },
    });
    expect(columns(record)).toEqual(['day', 'Time', 'mass [mg]', 'Flag', 'when', 'lot']);
    expect(rows(record)[0]).toEqual({
      day: '2020-01-24',
      Time: '13:37:22',
      mass: 1.5,
      Flag: true,
      when: '2020-01-24T13:37:22',
      lot: 'Date',
    });
  });

  test('a list selects by name', async () => {
    const record = await read(text, { ...mapping, table: { columns: ['Flag', 'Weight (mg)'] } });
    expect(columns(record)).toEqual(['Flag', 'Weight [mg]']);
  });

  test('a list selects by position without a header', async () => {
    const record = await read('1,2,3,4\n', {
      delimiter: ',',
      table: { header: 'none', columns: ['x', '_', 'z'] },
    });
    expect(rows(record)).toEqual([{ x: 1, z: 3 }]);
  });

  test('a unit is given or looked up', async () => {
    const record = await read('Unit: kPa\nx,y\n1,2\n', {
      delimiter: ',',
      meta: { separator: ':' },
      table: { header: 'x', columns: { x: { unit: 'mm' }, y: { unit: { from: 'Unit' } } } },
    });
    expect(columns(record)).toEqual(['x [mm]', 'y [kPa]']);
  });

  test('`type: text` keeps text', async () => {
    const record = await read('id,n\n1,2\n', { table: { columns: { id: { type: 'text' } } } });
    expect(record.tables[0]?.rows[0]).toEqual([
      { value: '1', text: '1' },
      { value: 2, text: '2' },
    ]);
  });
});

describe('rows between blanks', () => {
  const NAMES = 'Name      Alpha     Beta      Gamma\n';
  const WHOLE = 'S1        1.0       2.0       3.0\n';
  const gapIn = async (text: string, delimiter: 'spaces' | 'whitespace' = 'spaces') =>
    rows(await read(text, { delimiter, table: {} })).at(-1);

  test('are aligned: a missing cell is the one whose column has blanks', async () => {
    const last = { Name: 'S2', Alpha: 1.5, Beta: null, Gamma: 3.5 };
    const row = 'S2        1.5                 3.5\n';
    expect(await gapIn(`${NAMES}${WHOLE}${row}`)).toEqual(last);
    expect(await gapIn(`${NAMES}${WHOLE}${row}`, 'whitespace')).toEqual(last);
    expect(rows(await read(`${NAMES}${WHOLE}${row}${WHOLE}`))[1]).toEqual(last);
  });

  test('are refused if a cell is below two columns', async () => {
    const error = await refusal(`${NAMES}${WHOLE.repeat(3)}S2 dup 7 1.5       2.5       3.5\n`, {
      delimiter: 'spaces',
      table: {},
    });
    expect(error.message).toContain('this row has 3 cells, but the header has 4, and it is not clear which is missing');
  });

  test('that are not aligned lack only the last cells', async () => {
    expect(await gapIn('a bc def\n1 2 x\n10 20 y\n100 300\n', 'whitespace')).toEqual({ a: 100, bc: 300, def: null });
  });
});

describe('rows', () => {
  test('`skip` drops lines', async () => {
    const record = await read('a,b\n---\n1,2\nMEAN,2\nSTD,0\n', {
      delimiter: ',',
      table: { skip: ['MEAN', '/^(STD|-+)/'] },
    });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
  });

  test('`fill` takes the value above', async () => {
    const record = await read('Plate,Well,n\nP1,A1,\n,A2,5\nP2,A3,\n', { table: { fill: ['Plate'] } });
    expect(rows(record).map(({ Plate, n }) => [Plate, n])).toEqual([
      ['P1', null],
      ['P1', 5],
      ['P2', null],
    ]);
  });

  test.each([
    [{ Excluded: 0 }, ['a', 'd']],
    [{ name: '/^[ab]$/' }, ['a', 'b']],
    [{ name: 'b' }, ['b']],
    [{ name: ['b', 'c'] }, ['b', 'c']],
    [{ area: 'any' }, ['a', 'd']],
    [{ Area: 'any', Excluded: 0 }, ['a', 'd']],
    [{ ok: true }, ['a']],
  ])('`where: %j`', async (where, kept) => {
    const text = 'name,Excluded,Area,ok\na,0,1.5,true\nb,1,,False\nc,1,n/a,x\nd,0,< 2,x\n';
    const record = await read(text, {
      delimiter: ',',
      missing: ['n/a'],
      table: { where, columns: { area: 'Area' } },
    });
    expect(rows(record).map(({ name }) => name)).toEqual(kept);
  });

  test('texts without a value are kept in an adjacent column', async () => {
    const record = await read('well,abs,conc\nA1,2.100,5\nA2,OVRFLW,< 20.00\nA3,,7\n', {
      delimiter: ',',
      missing: ['OVRFLW'],
      table: {},
    });
    expect(columns(record)).toEqual(['well', 'abs', 'abs text', 'conc', 'conc text']);
    expect(rows(record)).toEqual([
      { well: 'A1', abs: 2.1, 'abs text': null, conc: 5, 'conc text': null },
      { well: 'A2', abs: null, 'abs text': 'OVRFLW', conc: null, 'conc text': '< 20.00' },
      { well: 'A3', abs: null, 'abs text': null, conc: 7, 'conc text': null },
    ]);
    expect(record.tables[0]?.rows[0]?.[1]?.text).toBe('2.100');
  });

  test('`count` accepts the right number of rows', async () => {
    const text = 'Points: 2\nx,y\n1,2\n3,4\n';
    for (const count of [2, 'Points']) {
      const record = await read(text, {
        delimiter: ',',
        meta: { separator: ':' },
        table: { header: 'x', count },
      });
      expect(rows(record)).toHaveLength(2);
    }
  });
});
