import { describe, expect, test } from 'vitest';
import { parsePath } from '../../src/parse/extract/path.js';
import { columns, meta, readAs, refusalAs, rows } from '../support/reading.js';

describe('a path', () => {
  const names = (written: string) => parsePath(written).steps.map(({ name, isDeep }) => (isDeep ? `/${name}` : name));

  test.each([
    ['/a/b', ['a', 'b']],
    ['//peak list/peak', ['/peak list', 'peak']],
    ['a//b/*/@id', ['a', '/b', '*', '@id']],
    ['3/5', ['3', '5']],
    ['.', []],
    ['/', []],
    ['//Flow [mL/min]/value', ['/Flow [mL/min]', 'value']],
    ['//"1/temperature_1/K"', ['/1/temperature_1/K']],
  ])('%s is split at slashes, but not within brackets or quotes', (written, expected) => {
    expect(names(written)).toEqual(expected);
  });

  test('conditions are in brackets and may contain slashes, blanks and quotes', () => {
    const [step] = parsePath('//Series[@name=OD / 600][kind="x"]/F').steps;
    expect(step?.name).toBe('Series');
    expect(step?.conditions.map(({ key, value }) => [key[0]?.name, value])).toEqual([
      ['@name', 'OD / 600'],
      ['kind', 'x'],
    ]);
  });

  test('is absolute only with a leading slash', () => {
    expect([parsePath('/a').isAbsolute, parsePath('//a').isAbsolute, parsePath('a').isAbsolute]).toEqual([
      true,
      true,
      false,
    ]);
  });
});

const NESTED = `<Experiment>
  <Instrument><Serial>S-77</Serial></Instrument>
  <Plate id="P1"><Operator>Ada</Operator>
    <Well pos="A1"><OD>0.11</OD></Well>
    <Well pos="A2"><OD>0.12</OD></Well>
  </Plate>
  <Plate id="P2"><Operator>Bob</Operator>
    <Well pos="A1"><OD>0.21</OD><Note>bubble</Note></Well>
  </Plate>
</Experiment>`;

describe('rows', () => {
  test('each match of a path is a row, and columns are relative to it', async () => {
    const record = await readAs('xml', NESTED, {
      table: { rows: '//Well', columns: { well: '@pos', od: 'OD' } },
    });
    expect(rows(record)).toEqual([
      { well: 'A1', od: 0.11 },
      { well: 'A2', od: 0.12 },
      { well: 'A1', od: 0.21 },
    ]);
  });

  test('an absolute path finds the value that belongs to the row, not the first in the file', async () => {
    const record = await readAs('xml', NESTED, {
      table: {
        rows: '//Well',
        columns: { plate: '//Plate/@id', operator: '//Operator', serial: '//Serial', od: '//OD' },
      },
    });
    expect(rows(record)).toEqual([
      { plate: 'P1', operator: 'Ada', serial: 'S-77', od: 0.11 },
      { plate: 'P1', operator: 'Ada', serial: 'S-77', od: 0.12 },
      { plate: 'P2', operator: 'Bob', serial: 'S-77', od: 0.21 },
    ]);
  });

  test('`..` is what contains the row, without its list, and `name()` the name', async () => {
    const text = '{"runs":{"R1":{"id":7,"points":[{"y":1},{"y":2}]},"R2":{"points":[{"y":3}]}}}';
    const columns = { run: '../name()', id: '../id', y: 'y' };
    expect(rows(await readAs('json', text, { table: { rows: '/runs/*/points', columns } }))).toEqual([
      { run: 'R1', id: 7, y: 1 },
      { run: 'R1', id: 7, y: 2 },
      { run: 'R2', id: null, y: 3 },
    ]);
    const quoted = '{"list":[{"..":1,"name()":2}]}';
    const own = { table: { rows: '/list', columns: { a: '".."', b: '"name()"' } } };
    expect(rows(await readAs('json', quoted, own))).toEqual([{ a: 1, b: 2 }]);
  });

  test('the items of arrays in a row are rows, and single values repeat', async () => {
    const text = '[{"id":"a","x":[1,2],"y":[3,4]},{"id":"b","x":5,"y":6},{"id":"c"}]';
    const table = { rows: '/', columns: { id: 'id', x: 'x', y: 'y' } };
    expect(rows(await readAs('json', text, { table }))).toEqual([
      { id: 'a', x: 1, y: 3 },
      { id: 'a', x: 2, y: 4 },
      { id: 'b', x: 5, y: 6 },
      { id: 'c', x: null, y: null },
    ]);
    const xml = '<a><s n="1"><y>1 2 3 4 5</y></s><s n="2"><y>6 7 8 9 10 11</y></s></a>';
    const curve = { rows: '//s', columns: { n: '@n', y: 'y' } };
    expect(rows(await readAs('xml', xml, { table: curve })).at(-1)).toEqual({ n: 2, y: 11 });
    const short = '<a><s><y>1 2 3</y></s><s><y>1 2 3 4 5</y></s></a>';
    const texts = await readAs('xml', short, { table: { rows: '//s', columns: { y: 'y' } } });
    expect(rows(texts)).toEqual([{ y: '1 2 3' }, { y: '1 2 3 4 5' }]);
  });

  test('arrays of different lengths in a row are refused', async () => {
    const table = { rows: '/', columns: { x: 'x', y: 'y' } };
    const { message } = await refusalAs('json', '[{"x":[1,2],"y":[3]}]', { table });
    expect(message).toBe('the arrays of this row differ in length: x has 2 values, y has 1');
  });

  test('without `columns`, the plain values of the rows are the columns', async () => {
    const record = await readAs('xml', NESTED, { table: { rows: '//Well' } });
    expect(rows(record)).toEqual([
      { pos: 'A1', OD: 0.11, Note: null },
      { pos: 'A2', OD: 0.12, Note: null },
      { pos: 'A1', OD: 0.21, Note: 'bubble' },
    ]);
  });

  test('a list of columns selects these in this order', async () => {
    const record = await readAs('xml', NESTED, { table: { rows: '//Well', columns: ['OD', '_', '@pos'] } });
    expect(columns(record)).toEqual(['OD', '@pos']);
  });

  test('`where` can test paths that are not columns, and `count` applies before it', async () => {
    const table = {
      rows: '//Well',
      columns: { od: 'OD' },
      where: { '//Plate/@id': 'P1', od: '/2$/' },
      count: 3,
    };
    expect(rows(await readAs('xml', NESTED, { table }))).toEqual([{ od: 0.12 }]);
  });

  test('`fill` takes the value above', async () => {
    const text = '[{"run":"R1","v":1},{"v":2},{"run":"R2","v":3},{"v":4}]';
    const record = await readAs('json', text, { table: { rows: '/', fill: 'run' } });
    expect(rows(record).map(({ run }) => run)).toEqual(['R1', 'R1', 'R2', 'R2']);
  });

  test('a date and a time in separate places are joined', async () => {
    const text = '<l><r><d>2026/03/04</d><t>10:20:30</t></r></l>';
    const mapping = {
      dates: { format: 'yyyy/MM/dd HH:mm:ss' },
      table: { rows: '//r', columns: { at: ['d', 't'] } },
    };
    expect(rows(await readAs('xml', text, mapping))).toEqual([{ at: '2026-03-04T10:20:30' }]);
  });

  test('types, missing and censored values are read as in lines', async () => {
    const text = '[{"id":"007","v":"< 5"},{"id":"008","v":"OVER"},{"id":"009","v":"7.50"}]';
    const record = await readAs('json', text, {
      missing: 'OVER',
      table: { rows: '/', columns: { id: 'id', v: 'v' } },
    });
    expect(rows(record)).toEqual([
      { id: '007', v: null, 'v text': '< 5' },
      { id: '008', v: null, 'v text': 'OVER' },
      { id: '009', v: 7.5, 'v text': null },
    ]);
    expect(record.tables[0]?.rows[2]?.[1]?.text).toBe('7.50');
  });

  test('a value of the wrong type is refused with its line', async () => {
    const table = { rows: '//Well', columns: { od: { from: '@pos', type: 'number' as const } } };
    const error = await refusalAs('xml', NESTED, { table });
    expect(error.message).toContain('"A1" is not a number');
    expect(error.where?.line).toBe(4);
  });

  test('missing rows are refused with the nearest name', async () => {
    const error = await refusalAs('xml', NESTED, { table: { rows: '//Wel' } });
    expect(error.message).toContain('`rows: //Wel`');
    expect(error.hint).toBe('did you mean "Well"?');
  });

  test('a column that no row has is refused with the nearest name', async () => {
    const error = await refusalAs('xml', NESTED, { table: { rows: '//Well', columns: { od: 'Od' } } });
    expect(error.message).toBe('there is no `Od` in any row');
    expect(error.hint).toBe('did you mean "OD"?');
  });

  test('an empty list is a table without rows', async () => {
    const record = await readAs('json', '{"n":0,"data":[]}', {
      facts: { n: '/n' },
      table: { rows: '/data' },
    });
    expect(record.tables[0]?.count).toBe(0);
  });

  test('too few rows are refused, by a number or by a fact', async () => {
    const text = '{"n":3,"data":[{"v":1},{"v":2}]}';
    for (const count of [3, '/n']) {
      const error = await refusalAs('json', text, { table: { rows: '/data', count } });
      expect(error.message).toBe('table readings has 2 rows instead of 3');
    }
  });
});

describe('units', () => {
  const one = (unit: string) => `{"data":[{"m":{"value":1.5,"unit":"mg"}},{"m":{"value":2.5,"unit":"${unit}"}}]}`;

  test('a value with its unit is one value, and the unit becomes that of the column', async () => {
    const record = await readAs('json', one('mg'), { table: { rows: '/data' } });
    expect(columns(record)).toEqual(['m [mg]']);
    expect(rows(record)).toEqual([{ m: 1.5 }, { m: 2.5 }]);
  });

  test('different units are in a column beside the values', async () => {
    const record = await readAs('json', one('g'), { table: { rows: '/data' } });
    expect(columns(record)).toEqual(['m', 'm unit']);
    expect(rows(record)).toEqual([
      { m: 1.5, 'm unit': 'mg' },
      { m: 2.5, 'm unit': 'g' },
    ]);
  });

  test('a unit can be elsewhere in the file or in each row', async () => {
    const text = '{"head":{"u":"nm"},"data":[{"v":1,"w":2,"x":"s"},{"v":3,"w":4,"x":"s"}]}';
    const record = await readAs('json', text, {
      table: {
        rows: '/data',
        columns: { v: { from: 'v', unit: { from: '/head/u' } }, w: { from: 'w', unit: { from: 'x' } } },
      },
    });
    expect(columns(record)).toEqual(['v [nm]', 'w [s]']);
  });

  test.each([
    ['an attribute', 'xml', '<r><T unit="K">300.0</T></r>'],
    ['attributes only', 'xml', '<r><T value="300.0" units="K"/></r>'],
    ['elements', 'xml', '<r><T><Value>300.0</Value><Unit>K</Unit></T></r>'],
    ['an object', 'json', '{"T":{"Value":300.0,"Unit":{"Name":"K"}}}'],
  ] as const)('of a fact: %s', async (_, format, text) => {
    const record = await readAs(format, text, { facts: { temperature: '//T' } });
    expect(record.meta.get('temperature')).toEqual({ value: 300, text: '300.0', unit: 'K' });
  });
});

describe('facts', () => {
  const text = '{"run":{"id":"R-1","date":"04.03.2026","steps":[{"name":"heat","T":60},{"name":"cool","T":4}]}}';

  test('are the first matches of paths', async () => {
    const record = await readAs('json', text, {
      facts: { id: '/run/id', first: '//name', second: '//steps/1/name', cold: '//steps[name=cool]/T' },
    });
    expect(meta(record)).toEqual({ id: 'R-1', first: 'heat', second: 'cool', cold: 4 });
  });

  test('have types and formats', async () => {
    const mapping = {
      facts: { date: { from: '//date', format: 'dd.MM.yyyy' }, id: { from: '//id', type: 'text' as const } },
    };
    expect(meta(await readAs('json', text, mapping))).toEqual({ date: '2026-03-04', id: 'R-1' });
  });

  test('that finders found are kept and can be selected by name', async () => {
    const record = await readAs('json', text, {
      meta: { in: 'name', match: '/^plate (?<Plate>\\d)/' },
      facts: { plate: 'Plate', both: ['Plate', '/run/id'] },
    });
    expect(meta(record)).toEqual({ Plate: 7, plate: 7, both: '7 R-1' });
  });

  test('that are missing are refused with the names at that place', async () => {
    const error = await refusalAs('json', text, { facts: { x: '/run/steps/0/temperature' } });
    expect(error.message).toBe('there is no `/run/steps/0/temperature`');
    expect(error.hint).toBe('the names there are: name, T');
  });

  test('that are not single values are refused', async () => {
    const error = await refusalAs('json', text, { facts: { x: '/run' } });
    expect(error.message).toBe('`/run` is not a single value');
    expect(error.hint).toBe('it contains: id, date, steps');
  });

  test('can give the time zone', async () => {
    const zoned = '{"zone":"Europe/Zurich","at":"2026-07-01 12:00:00"}';
    const record = await readAs('json', zoned, { dates: { zone: { from: '/zone' } }, facts: { at: '/at' } });
    expect(meta(record)).toEqual({ at: '2026-07-01T12:00:00+02:00' });
    const error = await refusalAs('json', zoned, { dates: { zone: { from: '/at' } }, facts: { at: '/at' } });
    expect(error.message).toContain('not a time zone');
  });

  test('that are not in a line are refused without a line number', async () => {
    const outcome = readAs('json', text, {
      meta: { in: 'name', match: '/^(?<Plate>.+)/' },
      facts: { plate: { from: 'Plate', type: 'number' } },
    });
    await expect(outcome).rejects.toMatchObject({ where: { file: 'runs/plate 7.txt' } });
    await expect(outcome).rejects.not.toMatchObject({ where: { line: 0 } });
  });

  test('a file without facts and rows is refused', async () => {
    expect((await refusalAs('json', text, {})).message).toBe('the mapping finds no facts and no rows');
  });
});

describe('a computed axis', () => {
  const axis = { start: 0, step: '//step', unit: 's' };

  test.each([
    ['of rows', { rows: '//y', columns: { t: axis, y: '.' } }],
    ['of parallel arrays', { columns: { t: axis, y: '//y' } }],
  ])('%s has its unit and no second column', async (_, table) => {
    const record = await readAs('json', '{"step":2,"y":[5,6,7]}', { table });
    expect(columns(record)).toEqual(['t [s]', 'y']);
    expect(rows(record)).toEqual([
      { t: 0, y: 5 },
      { t: 2, y: 6 },
      { t: 4, y: 7 },
    ]);
  });
});

describe('parallel arrays', () => {
  const text = '{"x":{"values":[1,2,3],"unit":"s"},"y":[0.10,0.20,0.30],"z":[1,2]}';

  test('are the columns of a table', async () => {
    const record = await readAs('json', text, {
      table: { columns: { time: { from: '/x/values', unit: { from: '/x/unit' } }, signal: '/y' } },
    });
    expect(columns(record)).toEqual(['time [s]', 'signal']);
    expect(rows(record)).toEqual([
      { time: 1, signal: 0.1 },
      { time: 2, signal: 0.2 },
      { time: 3, signal: 0.3 },
    ]);
  });

  test('a condition on a column that they do not have is refused', async () => {
    const table = { columns: { signal: '/y' }, where: { Signal: 0.1 } };
    const error = await refusalAs('json', text, { table });
    expect(error.message).toBe('there is no column "Signal"');
    expect(error.hint).toBe('did you mean "signal"?');
  });

  test('of unequal length are refused', async () => {
    const error = await refusalAs('json', text, { table: { columns: { y: '/y', z: '/z' } } });
    expect(error.message).toBe('the arrays of table readings differ in length: y has 3 values, z has 2');
  });

  test('several matches are refused, not concatenated', async () => {
    const error = await refusalAs('json', '[{"v":[1,2]},{"v":[3]}]', { table: { columns: { v: '//v' } } });
    expect(error.message).toBe('`//v` matches 2 lists');
    const record = await readAs('json', '[{"v":[1,2]},{"v":[3]}]', { table: { columns: { v: '/1/v' } } });
    expect(rows(record)).toEqual([{ v: 3 }]);
  });

  test.each([
    ['repeated elements', '<s><F>0.1</F><F>0.2</F></s>', '//F'],
    ['one element in each parent', '<s><p><F>0.1</F></p><p><F>0.2</F></p></s>', '//F'],
    ['numbers in one element', '<s><F>0.1 0.2</F></s>', '//F'],
    ['numbers separated by commas', '<s><F>0.1,0.2</F></s>', '//F'],
  ])('in XML: %s', async (_, xml, path) => {
    expect(rows(await readAs('xml', xml, { table: { columns: { f: path } } }))).toEqual([{ f: 0.1 }, { f: 0.2 }]);
  });

  test('a decimal comma does not separate numbers', async () => {
    const mapping = { decimal: ',' as const, table: { columns: { f: '//F' } } };
    expect(rows(await readAs('xml', '<F>1,5 2,5</F>', mapping))).toEqual([{ f: 1.5 }, { f: 2.5 }]);
  });

  test('a table without rows and columns is refused', async () => {
    expect((await refusalAs('json', text, { table: {} })).hint).toContain('rows: //Reading');
  });
});

describe('lists of lists and of values', () => {
  test('items of a row are numbered from 0', async () => {
    const record = await readAs('json', '{"d":[[1,"a"],[2,"b"]]}', {
      table: { rows: '/d', columns: { n: 0, s: 1 } },
    });
    expect(rows(record)).toEqual([
      { n: 1, s: 'a' },
      { n: 2, s: 'b' },
    ]);
  });

  test('items are numbered columns without `columns`', async () => {
    const record = await readAs('json', '{"d":[[1,"a"],[2,"b"]]}', { table: { rows: '/d' } });
    expect(columns(record)).toEqual(['column 1', 'column 2']);
  });

  test('values can be rows', async () => {
    const record = await readAs('json', '{"d":[1,2]}', { table: { rows: '/d', columns: { v: '.' } } });
    expect(rows(record)).toEqual([{ v: 1 }, { v: 2 }]);
    expect(rows(await readAs('json', '{"d":[1,2]}', { table: { rows: '/d' } }))).toEqual([{ value: 1 }, { value: 2 }]);
  });
});

describe('limits', () => {
  test('too many rows', async () => {
    const error = await refusalAs('json', '[{"v":1},{"v":2}]', { limits: { rows: 1 }, table: { rows: '/' } });
    expect(error.hint).toContain('`limits: { rows: 10 }`');
  });

  test('few columns in common', async () => {
    const error = await refusalAs('json', '[{"a":1,"b":2}]', {
      limits: { columns: 1 },
      table: { rows: '/' },
    });
    expect(error.message).toContain('more than 1 columns');
  });

  test('rows without common names are refused', async () => {
    const text = JSON.stringify(Array.from({ length: 20_000 }, (_, n) => ({ [`k${n % 9000}`]: n })));
    const error = await refusalAs('json', text, { table: { rows: '/' } });
    expect(error.message).toContain('few columns in common');
  });
});
