import { describe, expect, test } from 'vitest';
import { columns, read, rows } from '../support/reading.js';

describe('where a table is', () => {
  test('at the top, with its names in the first line, unless the mapping says otherwise', async () => {
    expect(rows(await read('\n\na,b\n1,x\n2,y\n', { table: {} }))).toEqual([
      { a: 1, b: 'x' },
      { a: 2, b: 'y' },
    ]);
  });

  test('below a line, until a line', async () => {
    const text = 'Lot,7\n[Data]\nx,y\n1,2\n\n3,4\n</Data>\n5,6\n';
    const record = await read(text, { delimiter: ',', table: { after: '[Data]', until: '</' } });
    expect(rows(record)).toEqual([
      { x: 1, y: 2 },
      { x: 3, y: 4 },
    ]);
  });

  test('a blank line, also one of bare delimiters, ends it', async () => {
    const record = await read('a,b\n1,2\n,\nMean,none,x\n', { delimiter: ',', table: {} });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
  });

  test('lines are named by number, from the end, by text, by pattern, or by any of these', async () => {
    const text = 'one\ntwo\n  a;b\n1;2\n3;4\nend\n';
    for (const after of [2, -5, 'two', '/^tw/', ['zero', 'two']]) {
      const record = await read(text, { delimiter: ';', table: { after, until: [-1, 'eof'] } });
      expect(rows(record)).toEqual([
        { a: 1, b: 2 },
        { a: 3, b: 4 },
      ]);
    }
  });

  test('a line with quotes is named by what a spreadsheet shows of it', async () => {
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

  test('every such line begins a block; its groups are columns, and a header once seen stays', async () => {
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

  test('blocks with other headers join by the names', async () => {
    const text = 'Group: A\nx,y\n1,2\n\nGroup: B\ny,z\n3,4\n';
    const record = await read(text, { delimiter: ',', table: { every: '/^Group: (?<group>.)/' } });
    expect(rows(record)).toEqual([
      { group: 'A', x: 1, y: 2, z: null },
      { group: 'B', x: null, y: 3, z: 4 },
    ]);
  });

  test('several tables have their own names; the first comes first', async () => {
    const text = '[B]\nx,y\n1,2\n\n[A]\nv\tw\n3\t4\n';
    const record = await read(text, {
      delimiter: ',',
      tables: { second: { after: '[B]' }, first: { after: '[A]', delimiter: 'tab' } },
    });
    expect(record.tables.map(({ name }) => name)).toEqual(['second', 'first']);
    expect(rows(record, 1)).toEqual([{ v: 3, w: 4 }]);
  });

  test('rows can be the lines of a certain form, as a balance prints them', async () => {
    const text = 'Ready\nS S     12.50 mg\nS D      9.99 mg\nS S     13.00 mg\n';
    const record = await read(text, { table: { rows: '/^S S +(?<weight>\\S+) (?<unit>\\w+)/' } });
    expect(rows(record)).toEqual([
      { weight: 12.5, unit: 'mg' },
      { weight: 13, unit: 'mg' },
    ]);
  });

  test("a spreadsheet's note about the delimiter is no line of the table", async () => {
    const record = await read('sep=;\na;b\n1;2\n', { table: {}, facts: { first: '=A1' } });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
    expect(record.meta.get('first')?.text).toBe('a');
  });
});

describe('the names of columns', () => {
  test('are joined downwards, without what is empty or repeated', async () => {
    const text = 'Time,Unsubtracted,T,T\n,Weight,T,low\n0,12.4,1,2\n';
    expect(columns(await read(text, { table: { headerRows: 2 } }))).toEqual([
      'Time',
      'Unsubtracted Weight',
      'T',
      'T low',
    ]);
  });

  test('are counted where the file has none, and columns that are empty as well are dropped', async () => {
    const text = ',Well,Cq,,\n7,A01,21.1,,\n,A02,21.2,x\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual([
      'column 1',
      'Well',
      'Cq',
      'column 4',
    ]);
    expect(columns(await read('1,2\n3,4\n', { delimiter: ',', table: { header: 'none' } }))).toEqual([
      'column 1',
      'column 2',
    ]);
  });

  test('that come again are counted, and a line break in one is a blank', async () => {
    const text = '"Plate\nPosition",Abs,Abs:,Abs\n1,2,3,4\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual([
      'Plate Position',
      'Abs',
      'Abs (2)',
      'Abs (3)',
    ]);
  });

  test('can stand in a comment', async () => {
    const text = '# note\n#freq  re\n1 2\n# in between\n3 4\n';
    const record = await read(text, { delimiter: 'whitespace', comment: '#', table: { header: '#freq' } });
    expect(rows(record)).toEqual([
      { freq: 1, re: 2 },
      { freq: 3, re: 4 },
    ]);
  });

  test('a header that comes again is no row', async () => {
    expect(rows(await read('a,b\n1,2\na,b\n3,4\n', { table: {} }))).toHaveLength(2);
  });
});

describe('units of columns', () => {
  test('stand in brackets at the end of the name of a column of numbers', async () => {
    const text = 'Time (s),U[V],Name (V),Cells (big),Empty (mg)\n1,2,x,3,\n';
    expect(columns(await read(text, { delimiter: ',', table: {} }))).toEqual([
      'Time [s]',
      'U [V]',
      'Name (V)',
      'Cells (big)',
      'Empty [mg]',
    ]);
  });

  test('after a slash, in the next row, or nowhere', async () => {
    expect(columns(await read('T/°C;date/time\n1;x\n', { table: { units: 'slash' } }))).toEqual([
      'T [°C]',
      'date/time',
    ]);
    expect(columns(await read('T,n\n[rad/s],\n1,2\n', { table: { units: 'nextRow' } }))).toEqual([
      'T [rad/s]',
      'n',
    ]);
    expect(columns(await read('T (s),n\n1,2\n', { table: { units: 'none' } }))).toEqual(['T (s)', 'n']);
  });

  test('in the next row also where there is no header', async () => {
    const text = 'file,x\nnm,A\n400,0.043\n';
    const record = await read(text, {
      delimiter: ',',
      table: { after: 1, header: 'none', units: 'nextRow', columns: ['wavelength', 'absorbance'] },
    });
    expect(columns(record)).toEqual(['wavelength [nm]', 'absorbance [A]']);
  });

  test('beside each number, where all have the same', async () => {
    const record = await read('a,b\n1 mg,1 mg\n2 mg,1 g\n', { table: {} });
    expect(columns(record)).toEqual(['a [mg]', 'b']);
    expect(record.tables[0]?.rows[1]?.[1]).toEqual({ value: 1, text: '1 g', unit: 'g' });
  });
});

describe('columns as you want them', () => {
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

  test('a list is exactly these, by name', async () => {
    const record = await read(text, { ...mapping, table: { columns: ['Flag', 'Weight (mg)'] } });
    expect(columns(record)).toEqual(['Flag', 'Weight [mg]']);
  });

  test('a list is exactly these, by position, where there is no header', async () => {
    const record = await read('1,2,3,4\n', {
      delimiter: ',',
      table: { header: 'none', columns: ['x', '_', 'z'] },
    });
    expect(rows(record)).toEqual([{ x: 1, z: 3 }]);
  });

  test('a unit is yours to give, or to point at', async () => {
    const record = await read('Unit: kPa\nx,y\n1,2\n', {
      delimiter: ',',
      meta: { separator: ':' },
      table: { header: 'x', columns: { x: { unit: 'mm' }, y: { unit: { from: 'Unit' } } } },
    });
    expect(columns(record)).toEqual(['x [mm]', 'y [kPa]']);
  });

  test('a text stays text where you say so', async () => {
    const record = await read('id,n\n1,2\n', { table: { columns: { id: { type: 'text' } } } });
    expect(record.tables[0]?.rows[0]).toEqual([
      { value: '1', text: '1' },
      { value: 2, text: '2' },
    ]);
  });
});

describe('rows as you want them', () => {
  test('some lines are none', async () => {
    const record = await read('a,b\n---\n1,2\nMEAN,2\nSTD,0\n', {
      delimiter: ',',
      table: { skip: ['MEAN', '/^(STD|-+)/'] },
    });
    expect(rows(record)).toEqual([{ a: 1, b: 2 }]);
  });

  test('an empty cell takes the one above, in the columns that say so', async () => {
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
  ])('where %j holds', async (where, kept) => {
    const text = 'name,Excluded,Area,ok\na,0,1.5,true\nb,1,,False\nc,1,n/a,x\nd,0,< 2,x\n';
    const record = await read(text, {
      delimiter: ',',
      missing: ['n/a'],
      table: { where, columns: { area: 'Area' } },
    });
    expect(rows(record).map(({ name }) => name)).toEqual(kept);
  });

  test('what has a text but no value keeps it in a column beside', async () => {
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

  test('there are as many as announced', async () => {
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
