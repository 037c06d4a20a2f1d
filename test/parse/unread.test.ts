import { utils, write } from '@e965/xlsx';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { parseRun } from '../../src/mapping/mapping.js';
import type { FileRecord, Unread } from '../../src/model.js';
import { read, readAs, refusal } from '../support/reading.js';

const shown = ({ unread }: FileRecord): string[] =>
  unread.map(({ kind, file, sheet, from, to, columns, what }) =>
    [kind, what, file, sheet, ...(from === undefined ? [] : [from === to ? from : `${from}-${to}`]), ...(columns ?? [])]
      .filter((part) => part !== undefined)
      .join(' '),
  );

const unreadIn = async (text: string, mapping?: ParseMapping) => shown(await read(text, mapping));

const TABLE = 'Time,Temp\n1,20.5\n2,20.6\n3,20.7\n';

describe('lines', () => {
  test('the header, rows, facts, blank and drawn lines are read', async () => {
    expect(await unreadIn(`Operator: Ada\n-----\n\n${TABLE}`)).toEqual([]);
    expect(await unreadIn(`# Operator: Ada\n# Mode: x\n${TABLE}`)).toEqual([]);
    expect(await unreadIn(`${TABLE}Time,Temp\n4,20.8\n`, { table: {} })).toEqual([]);
  });

  test('all lines of a row in a drawn box are not, if the row is not', async () => {
    const rows = ['Sum │ 6.0 ', 'of  │     '].map((row) => `│ ${row}│`);
    const text = [
      '┌─────┬─────┐',
      '│ A   │ 1.0 │',
      '├─────┼─────┤',
      '│ B   │ 2.0 │',
      '├─────┼─────┤',
      ...rows,
      '└─────┴─────┘',
    ];
    const mapping = { delimiter: '│', table: { header: 'none', skip: 'Sum' } } as const;
    expect(await unreadIn(text.join('\n'), mapping)).toEqual(['left out 6-7']);
  });

  test('lines that are neither facts nor rows are not', async () => {
    expect(await unreadIn(`${TABLE}\nChecked by nobody\nin "particular\nat all"\n`, { table: {} })).toEqual([
      'unread 6-8',
    ]);
    expect(await unreadIn(`# a note\n${TABLE}`, { comment: '#', table: {} })).toEqual(['unread 1']);
  });

  test('weights with units, and rows of which only the first cells are a fact, look like readings', async () => {
    const weights = 'ID          LAB 3\nN      +     12.3 g\nN      +      9.8 g\nN      +     11.1 g\n';
    const { unread } = await read(`${TABLE}\n${weights}`, { table: { until: 'ID' } });
    expect(unread.map(({ readings }) => readings).filter(Boolean)).toEqual([3]);
    const partly = await read('A01,x,1,2,3\nA02,x,4,5,6\nA03,x,7,8,9\n', { meta: { separator: ',', value: 2 } });
    expect(partly.unread).toMatchObject([{ kind: 'partly read', from: 1, to: 3, readings: 3 }]);
  });

  test('coefficients of a calibration do not look like readings', async () => {
    const readingsIn = async (...lines: readonly string[]) =>
      (await read(`Device;HX-5\n${lines.join('\n')}\n`, { delimiter: ';', meta: { separator: ';' } })).unread.filter(
        ({ readings }) => readings,
      );
    const named = (name: string) => Array.from({ length: 12 }, (_, n) => `${name}${n};52${n}.75`);
    expect(await readingsIn(...named('coefs_a'))).toEqual([]);
    expect(await readingsIn(...named('S-'))).not.toEqual([]);
    const powers = ['C1;0.0023;1.2E-5;3.3E-8', 'C2;0.0024;-1.1E-5;3.1E-8', 'C3;0.0025;1.3E-5;3.0E-8'];
    expect(await readingsIn(...powers)).toEqual([]);
    for (const rest of [';0;0', '00;30;1', ';0.1;0.002'])
      expect(await readingsIn(...[12, 9, 7].map((n) => `S-${n};${n}${rest}`))).not.toEqual([]);
    expect(
      await readingsIn(...powers.map((line) => line.replace('1.2E-5', '1.2E-3').replace('E-5', 'E-3'))),
    ).not.toEqual([]);
  });

  test('what the mapping leaves out is listed as such', async () => {
    expect(await unreadIn(`${TABLE}ERROR 7\n4,20.8\n`, { table: { skip: 'ERROR' } })).toEqual(['left out 5']);
    expect(await unreadIn(TABLE, { table: { where: { Time: [1, 3] } } })).toEqual(['left out 3']);
    expect(await unreadIn(TABLE, { table: { columns: ['Time'] } })).toEqual(['left out Temp']);
    expect(await unreadIn('1,2,3\n4,5,6\n', { table: { header: 'none', columns: ['a', '_'] } })).toEqual([
      'left out column 2 column 3',
    ]);
    expect(await unreadIn('a,b\n1,2\n', { table: { columns: ['a'], header: 'first' } })).toEqual(['left out b']);
    expect(await unreadIn('a,b\n1,\n', { table: { columns: ['a'] } })).toEqual([]);
  });

  test('a line of which only some words are read is listed', async () => {
    const text = 'Plate 7 Mode kinetic\nRun 5 by Ada\nt,y\n1,2\n';
    const meta = [
      { line: 1, match: '/Plate (?<plate>\\d+)/' },
      { line: 2, match: '/(?<run>.+)/' },
    ];
    expect(await unreadIn(text, { delimiter: ',', meta, table: { header: 't' } })).toEqual(['partly read 1']);
    const rows = { delimiter: ',', table: { rows: '/^S (?<weight>\\S+)/' } };
    expect(await unreadIn('S 1.5 stable\nS 1.6\n', rows)).toEqual(['partly read 1']);
  });

  test('a marker is read if it says no more than the pattern and what it captures', async () => {
    const text = 'Step 1\nt,y\n1,2\nStep 2 at noon\nt,y\n3,4\n';
    expect(await unreadIn(text, { table: { every: '/^Step (?<step>\\d+)/' } })).toEqual(['unread 4']);
    expect(await unreadIn(text, { table: { every: '/^Step (?<step>.+)/' } })).toEqual([]);
    expect(await unreadIn('[Data]\nt,y\n1,2\n', { table: { after: '[Data]' } })).toEqual([]);
    expect(await unreadIn('[Data] 7\nt,y\n1,2\n', { table: { after: '[Data]' } })).toEqual(['unread 1']);
  });

  test('values on the next line, cells by reference, plates and areas', async () => {
    const pairs = { meta: { separator: 'nextLine', until: 3 }, table: { header: 't' } };
    expect(await unreadIn('Sample\nA7\nt,y\n1,2\n', pairs)).toEqual([]);
    expect(await unreadIn('Sample,A7\nt,y\n1,2\n', { facts: { s: '=B1', n: '=A1' }, table: { header: 't' } })).toEqual(
      [],
    );
    expect(await unreadIn('Sample,A7\nt,y\n1,2\n', { facts: { s: '=B1' }, table: { header: 't' } })).toEqual([
      'partly read 1',
    ]);
    expect(await unreadIn(',1,2,,\nA,5,6,OD,odd\nB,7,8,OD,\n', { table: { grid: true } })).toEqual(['partly read 2']);
    expect(await unreadIn('a,b,c\n1,2,3\n', { table: { area: 'A1:B9' } })).toEqual(['left out 1-2']);
  });

  test('a header above the first block is read although it is recognised late', async () => {
    const text = 't,y\nStep 1\n1,2\nStep 2\n3,4\n';
    expect(await unreadIn(text, { table: { every: '/^Step \\d$/', header: 't' } })).toEqual(['unread 2', 'unread 4']);
    expect(await unreadIn(text, { table: { every: '/^Step (?<n>\\d)$/', header: 't' } })).toEqual([]);
  });
});

describe('other sources', () => {
  test('sheets and rows of a workbook', async () => {
    const book = utils.book_new();
    const add = (name: string, rows: unknown[][]) => utils.book_append_sheet(book, utils.aoa_to_sheet(rows), name);
    add('Data', [['t', 'y'], [1, 2], [3, 4], [], ['checked by nobody']]);
    add('Notes', [['it rained']]);
    add('Old', [['it was hidden']]);
    book.Workbook = { Sheets: [{}, {}, { Hidden: 1 }] };
    utils.cell_add_comment(book.Sheets['Data']?.['A2'], 'odd');
    const bytes: Uint8Array = write(book, { type: 'buffer', bookType: 'xlsx' });
    const record = await readAs('xlsx', bytes, { table: {} });
    expect(shown(record)).toEqual(['unread Data 5', 'unread Notes', 'unread Old', 'unread 1 cell note Data']);
  });

  test('values of JSON and XML', async () => {
    const json = '{\n"sample": "A",\n"gain": { "value": 5,\n"unit": "dB" },\n"rows": [\n{ "t": 1,\n"y": 2 }]\n}';
    const mapping = { facts: { gain: '/gain' }, table: { rows: '/rows', columns: { t: 't' } } };
    expect(shown(await readAs('json', json, mapping))).toEqual(['left out 2', 'left out 7']);
    expect(await unreadIn(json)).toEqual([]);
    const xml = '<a>\n<!-- by Ada -->\n<b id="1">x</b>\n<c>y</c>\n</a>';
    expect(shown(await readAs('xml', xml, { facts: { b: '/a/b', c: '/a/c' } }))).toEqual(['left out 2-3']);
    expect(shown(await readAs('xml', xml, { facts: { b: '/a/b', c: '/a/c', id: '/a/b/@id' } }))).toEqual([
      'left out 2',
    ]);
  });

  test('all lines of a text in XML', async () => {
    const xml = '<a>\n<b>\n1\n2\n</b>\n<c>y</c>\n<!-- by\nAda -->\n</a>';
    expect(shown(await readAs('xml', xml, { facts: { c: '/a/c' } }))).toEqual(['left out 2-5', 'left out 7-8']);
    expect(shown(await readAs('xml', xml, { facts: { b: '/a/b', c: '/a/c' } }))).toEqual(['left out 7-8']);
  });

  test('fields, components and repeated values of records', async () => {
    const text = 'H|\\^&|||Lab\nP|1|Ada^Byron\nR|1|K^1|5\\6\nR|2|Na|7\n';
    const mapping = {
      facts: { lab: '/H/5', who: '/P/3/1' },
      table: { rows: 'R', columns: { n: '2', test: '3', value: '4' } },
    };
    expect(shown(await readAs('records', text, mapping))).toEqual(['left out 2-3']);
  });

  test('comments of JCAMP-DX and what is outside its blocks', async () => {
    const text = 'by hand\n##TITLE= t $$ a note\n##PEAK TABLE= (XY..XY)\n1,2\n##END=\nthe end\n';
    expect(shown(await readAs('jcamp', text, {}))).toEqual(['unread 1-2', 'unread 6']);
  });

  test('a file whose content is not read, and files of a run that the mapping does not name', async () => {
    expect(shown(await readAs('none', 'x', { meta: { in: 'name', match: '/(?<n>\\d)/' } }))).toEqual(['left out']);
    const part = (name: string, text: string) => ({
      ...{ path: `runs/7/${name}`, name, relativePath: name },
      content: Buffer.from(text),
    });
    const parts = [part('a.csv', `${TABLE}\nodd\n`), part('b.png', 'x')];
    const run = { path: 'runs/7', name: '7', content: new Uint8Array(), parts };
    const { withDefaults } = await import('../../src/config/vocabulary.js');
    const record = await parseRun(run, [withDefaults({ main: 'a.csv', table: {} })]);
    expect(shown(record)).toEqual(['unread a.csv 6', 'left out b.png']);
  });
});

test('an odd line among rows is not taken for the end of the table', async () => {
  for (const more of ['', '5,20.9\n6,21.0\n']) {
    const error = await refusal(`${TABLE}ERROR,at,all,times\n4,20.8\n${more}`);
    expect(error.message).toBe('the rows end above this line, but line 6 looks like another row');
    expect(error.where?.line).toBe(5);
  }
});

describe('a row that is longer than its header is refused', () => {
  const odd = 'ERROR,99.9,overload,retry\n';
  test.each([
    ['among few rows', `Time,Temp\n1,20.5\n2,20.6\n${odd}4,20.8\n`, 4, 4, 2],
    ['among many rows', `${TABLE}${odd}4,20.8\n5,20.9\n6,21.0\n`, 5, 4, 2],
    ['as the last row', `${TABLE}${odd}`, 5, 4, 2],
    ['as the first row', 'Time,Temp\n1,20.5,7,8\n2,20.6\n3,20.7\n', 2, 4, 2],
    ['by one cell', 'Time,Temp\n1,20.5\n2,20.6,9\n3,20.7\n', 3, 3, 2],
    ['below names of samples', 'Sample,T,p\na,20,1\nb,20,2\nc,20,2\nERR,99,7,x,y,z\nd,2,3\n', 5, 6, 3],
  ])('%s', async (_, text, line, cells, columns) => {
    for (const mapping of [undefined, { table: {} }]) {
      const error = await refusal(text, mapping);
      expect(error.message).toMatch(`has ${cells} cells, but the header has ${columns}`);
      expect(error.where?.line).toBe(line);
    }
  });

  test('and can be left out as the message says', async () => {
    const { hint = '' } = await refusal(`${TABLE}${odd}`);
    const [, skip = ''] = /`parse: \{ table: \{ skip: "([^"]+)" \} \}`/.exec(hint) ?? [];
    expect(await unreadIn(`${TABLE}${odd}`, { table: { skip } })).toEqual(['left out 5']);
  });

  test('but not a sentence, the header of another table, a fact or trailing delimiters', async () => {
    expect(await unreadIn('t T\n1 20.5\n2 20.6\n3 20.7\nMeasured by Ada on Monday\n')).toEqual(['unread 5']);
    expect(await unreadIn(`${TABLE}nm,400,410,420\n1,2,3,4\n2,3,4,5\n3,4,5,6\n`)).toEqual([]);
    expect(await unreadIn('Operator,Ada\nGain,3\nOffset,4\nRange,1,10,V\n')).toEqual([]);
    expect(await unreadIn('Time,Temp\n1,20.5,,\n', { table: {} })).toEqual([]);
    expect(await unreadIn('Time,Temp\n1,20.5,,\n2,20.6,,\n3,20.7,,\n')).toEqual([]);
  });
});

/** Every word in the facts and tables of a record. */
function wordsOf({ meta, tables }: FileRecord): ReadonlySet<string> {
  const texts = [
    ...[...meta].flatMap(([name, { text, unit = '' }]) => [name, text, unit]),
    ...tables.flatMap(({ name, columns, rows }) => [
      name,
      ...columns.flatMap((column) => [column.name, column.unit ?? '']),
      ...rows.flatMap((row) => row.map(({ text }) => text)),
    ]),
  ];
  return new Set(texts.flatMap((text) => text.match(/[\p{L}\p{N}]+/gu) ?? []));
}

const isListed = (unread: readonly Unread[], line: number): boolean =>
  unread.some(({ from, to, columns }) => columns || from === undefined || (line >= from && line <= (to ?? from)));

/** Names in JSON are no values. */
const NAMES: ReadonlySet<string> = new Set(['a', 'b', 'unit', 'value', 'name', 'rows']);

/** Reads a text whose words are all different. Each is then in the record, or its line is listed as unread. */
async function expectAccounted(text: string, mapping?: ParseMapping): Promise<void> {
  const record = await read(text, mapping).catch((error: unknown) => {
    if (!(error instanceof FileError)) throw error;
    return undefined;
  });
  if (!record) return;
  const known = wordsOf(record);
  for (const [n, line] of text.split('\n').entries()) {
    const lost = (line.match(/[\p{L}\p{N}]+/gu) ?? []).filter(
      (word) => !NAMES.has(word) && !known.has(word) && !known.has(Number(word).toString()),
    );
    if (lost.length > 0 && !isListed(record.unread, n + 1))
      throw new Error(`line ${n + 1} of ${JSON.stringify(text)} is lost: ${lost}`);
  }
}

/** Replaces each `w` with a new word and each `9` with a new number. */
function unique(lines: readonly string[]): string {
  let n = 100;
  return lines.map((line) => line.replace(/[w9]/g, (kind) => (kind === 'w' ? `word${n++}` : `${n++}`))).join('\n');
}

const someLines = fc.array(
  fc.oneof(
    { weight: 4, arbitrary: fc.constant('9,9,9') },
    fc.constantFrom(
      'w,w,w',
      'w: w',
      'w = 9',
      'w',
      'w w w',
      '',
      '-----',
      '9,9',
      '9,9,9,9',
      'w,9,9',
      '# w: w',
      ',9,',
      '[w]',
      'w;w',
      '9',
    ),
  ),
  { maxLength: 25 },
);

test('without a mapping, every word of a text is read or its line is listed', async () => {
  await fc.assert(
    fc.asyncProperty(someLines, (lines) => expectAccounted(unique(lines))),
    { numRuns: 100 },
  );
});

test('with a mapping, every word of a text is read or its line is listed', async () => {
  const mappings = fc.constantFrom<ParseMapping>(
    { delimiter: ',', table: {} },
    { delimiter: ',', comment: '#', meta: { separator: ':' }, table: { header: '/,.*,/', until: 'eof' } },
    {
      delimiter: ',',
      meta: [{ separator: '=' }, { line: 2, cells: ['a', '_', 'b'] }],
      table: { after: 2, skip: '/;/' },
    },
    {
      delimiter: ',',
      meta: { separator: 'cell' },
      table: { every: '/^\\[(?<s>.+)\\]/', header: 'none', columns: ['a', '_', 'c'] },
    },
    { delimiter: ',', table: { rows: '/^(?<a>\\d+),(?<b>\\d+)/' } },
    { delimiter: ',', table: { header: 'none', until: 'eof', where: { 'column 2': ['any'] } } },
  );
  await fc.assert(
    fc.asyncProperty(someLines, mappings, (lines, mapping) => expectAccounted(unique(lines), mapping)),
    { numRuns: 100 },
  );
});

test('the unit of an array of words is listed', async () => {
  await expectAccounted('[\n{ "a": {\n"name": "flow",\n"a": ["word1"],\n"unit": "word2" } } ]');
});

test('every value of JSON is read or its line is listed', async () => {
  const { tree } = fc.letrec((tie) => ({
    leaf: fc.constantFrom('w', '9'),
    tree: fc.oneof(
      { maxDepth: 4 },
      tie('leaf'),
      fc.array(tie('tree'), { maxLength: 4 }),
      fc.dictionary(fc.constantFrom(...NAMES), tie('tree'), { maxKeys: 4 }),
    ),
  }));
  await fc.assert(
    fc.asyncProperty(tree, (value) => {
      let n = 100;
      const text = JSON.stringify(value, (_, leaf) => (leaf === 'w' ? `word${n++}` : leaf === '9' ? n++ : leaf), 1);
      return expectAccounted(text);
    }),
    { numRuns: 100 },
  );
});
