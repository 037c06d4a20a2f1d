import { readFileSync } from 'node:fs';
import { crc32, deflateRawSync } from 'node:zlib';
import { type CellObject, CFB, utils, type WorkBook, write } from '@e965/xlsx';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type ParseMapping, withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { openSheets } from '../../src/parse/formats/workbook.js';
import { limitBacktracking } from '../../src/system/process.js';
import { childrenOf, peakMemoryOf } from '../support/child-processes.js';
import { mutations } from '../support/mutations.js';
import { opened, readOrRefuse } from '../support/reading.js';
import { until } from '../support/until.js';

const open = (bytes: Uint8Array, mapping: ParseMapping = {}) =>
  openSheets({ ...opened(bytes, 'runs/plate.xlsx'), options: withDefaults(mapping) });

const sheets = async (bytes: Uint8Array, mapping?: ParseMapping) => (await open(bytes, mapping)).sheets;

async function refusal(bytes: Uint8Array, mapping?: ParseMapping): Promise<FileError> {
  const outcome = await sheets(bytes, mapping).catch((error: unknown) => error);
  if (outcome instanceof FileError) return outcome;
  throw new Error('expected a refusal', { cause: outcome });
}

type Cell = string | number | boolean | null | CellObject;
const bookOf = (content: Record<string, Cell[][]>): WorkBook => {
  const book = utils.book_new();
  for (const [name, rows] of Object.entries(content)) {
    utils.book_append_sheet(book, utils.aoa_to_sheet(rows), name);
  }
  return book;
};
const bytesOf = (book: WorkBook, bookType: 'xlsx' | 'xls' = 'xlsx', compression = true): Uint8Array =>
  write(book, { type: 'buffer', bookType, compression });

const shown = (v: number, z: string): CellObject => ({ t: 'n', v, z });

describe.each(['xlsx', 'xls'] as const)('a workbook as .%s', (type) => {
  test('cells have their stored value, not the displayed one', async () => {
    const book = bookOf({
      'Plate 1': [
        ['Well', 'OD', 'ok'],
        [' A1 ', shown(0.1462, '0.00'), true],
        ['B1', shown(0.5, '0%'), false],
        ['C1', 12901000069, { t: 'e', v: 7 }],
        ['D1', 1.5e-7, { t: 'n', v: 3, f: '1+2' }],
      ],
    });
    expect(await sheets(bytesOf(book, type))).toEqual([
      {
        name: 'Plate 1',
        lines: [
          ['Well', 'OD', 'ok'],
          ['A1', '0.1462', 'true'],
          ['B1', '0.5', 'false'],
          ['C1', '12901000069', '#DIV/0!'],
          ['D1', '1.5e-7', '3'],
        ],
      },
    ]);
  });

  test('dates are ISO text, times and durations are clock times', async () => {
    const cells = [
      shown(46085, 'dd.mm.yyyy'),
      shown(46085.5, 'dd.mm.yyyy'),
      shown(46085.430902777778, 'm/d/yy h:mm'),
      shown(46085.25, 'h:mm'),
      shown(0.430902777778, 'h:mm:ss'),
      shown(1.2961, '[h]:mm:ss'),
      shown(59, 'yyyy-mm-dd'),
      shown(46085, '0.00'),
    ];
    const [sheet] = await sheets(bytesOf(bookOf({ S: [cells] }), type));
    expect(sheet?.lines[0]).toEqual([
      '2026-03-04',
      '2026-03-04T12:00:00',
      '2026-03-04T10:20:30',
      '2026-03-04T06:00:00',
      '10:20:30',
      '31:06:23.040',
      '1900-02-28',
      '46085',
    ]);
  });

  test('lines and cells keep their positions', async () => {
    const book = bookOf({
      S: [[null, 'B1'], [], [null, null, 'C3'], [], ['', null]],
      Empty: [[]],
      Last: [['x']],
    });
    expect(await sheets(bytesOf(book, type))).toEqual([
      { name: 'S', lines: [['', 'B1'], [], ['', '', 'C3']] },
      { name: 'Empty', lines: [] },
      { name: 'Last', lines: [['x']] },
    ]);
  });

  test('numbers get the decimal mark of the mapping', async () => {
    const bytes = bytesOf(bookOf({ S: [[1.5, '2.5']] }), type);
    expect((await sheets(bytes, { decimal: ',' }))[0]?.lines).toEqual([['1,5', '2.5']]);
  });

  test('the first of merged cells has the value', async () => {
    const book = bookOf({ S: [['a', null, 'c']] });
    const sheet = book.Sheets['S'];
    if (sheet) sheet['!merges'] = [{ s: { r: 0, c: 0 }, e: { r: 1, c: 1 } }];
    expect((await sheets(bytesOf(book, type)))[0]?.lines).toEqual([['a', '', 'c']]);
  });

  test('the 1904 date system gives the same dates', async () => {
    const book = bookOf({ S: [[shown(44623, 'yyyy-mm-dd')]] });
    book.Workbook = { WBProps: { date1904: true } };
    expect((await sheets(bytesOf(book, type)))[0]?.lines).toEqual([['2026-03-04']]);
  });
});

/** An archive with declared sizes, right or wrong. */
function zipOf(parts: Record<string, string | Buffer>, declare: (size: number) => number = (size) => size): Buffer {
  const locals: Buffer[] = [];
  const entries: Buffer[] = [];
  let at = 0;
  for (const [name, content] of Object.entries(parts)) {
    const packed = deflateRawSync(content);
    const numbers = [crc32(content), packed.length, declare(Buffer.byteLength(content))];
    const local = Buffer.alloc(30);
    local.writeUInt32LE(0x04034b50, 0);
    local.writeUInt16LE(8, 8);
    for (const [n, number] of numbers.entries()) local.writeUInt32LE(number, 14 + 4 * n);
    local.writeUInt16LE(name.length, 26);
    const entry = Buffer.alloc(46);
    entry.writeUInt32LE(0x02014b50, 0);
    entry.writeUInt16LE(8, 10);
    for (const [n, number] of numbers.entries()) entry.writeUInt32LE(number, 16 + 4 * n);
    entry.writeUInt16LE(name.length, 28);
    entry.writeUInt32LE(at, 42);
    locals.push(local, Buffer.from(name), packed);
    entries.push(entry, Buffer.from(name));
    at += 30 + name.length + packed.length;
  }
  const directory = Buffer.concat(entries);
  const end = Buffer.alloc(22);
  end.writeUInt32LE(0x06054b50, 0);
  end.writeUInt16LE(Object.keys(parts).length, 8);
  end.writeUInt16LE(Object.keys(parts).length, 10);
  end.writeUInt32LE(directory.length, 12);
  end.writeUInt32LE(at, 16);
  return Buffer.concat([...locals, directory, end]);
}

const relationships = 'http://schemas.openxmlformats.org/officeDocument/2006/relationships';
const main = 'http://schemas.openxmlformats.org/spreadsheetml/2006/main';

/** A workbook with one sheet, given as its XML. */
const handMade = (
  sheet: string | Buffer,
  declare?: (size: number) => number,
  others: Readonly<Record<string, string>> = {},
) =>
  zipOf(
    {
      '[Content_Types].xml':
        '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="xml" ContentType="application/xml"/><Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/><Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/></Types>',
      '_rels/.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="${relationships}/officeDocument" Target="xl/workbook.xml"/></Relationships>`,
      'xl/workbook.xml': `<workbook xmlns="${main}" xmlns:r="${relationships}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets></workbook>`,
      'xl/_rels/workbook.xml.rels': `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships"><Relationship Id="r1" Type="${relationships}/worksheet" Target="worksheets/sheet1.xml"/></Relationships>`,
      'xl/worksheets/sheet1.xml': sheet,
      ...others,
    },
    declare,
  );

const sheetXml = (rows: string, ref = 'A1') =>
  `<worksheet xmlns="${main}"><dimension ref="${ref}"/><sheetData>${rows}</sheetData></worksheet>`;

describe('what a workbook has beside the values of its cells is listed', () => {
  const one = sheetXml('<row r="1"><c r="A1"><f>1+2</f><v>3</v></c></row>');
  const withParts = async (...names: string[]) => {
    const others = Object.fromEntries(names.map((name) => [name, 'x']));
    return (await open(handMade(one, undefined, others))).extras.map(({ what }) => what);
  };

  test('pictures, charts, objects and shapes', async () => {
    expect(await withParts()).toEqual([]);
    expect(await withParts('docProps/core.xml', 'xl/printerSettings/printerSettings1.bin', 'xl/calcChain.xml')).toEqual(
      [],
    );
    const drawing = 'xl/drawings/drawing1.xml';
    expect(await withParts(drawing, 'xl/media/image1.png', 'xl/media/image2.emf')).toEqual(['2 pictures']);
    expect(await withParts(drawing, 'xl/charts/chart1.xml', 'xl/charts/style1.xml')).toEqual(['1 chart']);
    expect(await withParts('xl/embeddings/oleObject1.bin')).toEqual(['1 embedded object']);
    expect(await withParts(drawing)).toEqual(['1 drawing']);
  });

  test('formulas that have no value', async () => {
    for (const [cell, count] of [
      ['<f>1+2</f><v>3</v>', 0],
      ['<f>1+2</f>\n<v xml:space="preserve">3</v>', 0],
      ['<f>1+2</f>', 1],
      ['<f>1+2</f> <v/>', 1],
      ['<f>1+2</f><v></v>', 1],
    ] as const) {
      const { extras } = await open(handMade(sheetXml(`<row r="1"><c r="A1"><v>1</v></c><c r="B1">${cell}</c></row>`)));
      const listed = { kind: 'unread', sheet: 'S', what: '1 formula without a value' };
      expect(extras, cell).toEqual(count === 0 ? [] : [listed]);
    }
    const shared =
      '<c r="A1"><f t="shared" ref="A1:A2" si="0">B1</f></c></row><row r="2"><c r="A2"><f t="shared" si="0"/></c>';
    const { extras } = await open(handMade(sheetXml(`<row r="1">${shared}</row>`)));
    expect(extras).toEqual([{ kind: 'unread', sheet: 'S', what: '2 formulas without a value' }]);
  });

  test('notes, on empty cells too', async () => {
    const book = bookOf({ S: [['a', 'b']], T: [['c']] });
    const sheet = book.Sheets['S'];
    for (const cell of ['A1', 'D9']) if (sheet) sheet[cell] = { t: 'z', ...sheet[cell], c: [{ a: 'Ada', t: 'odd' }] };
    if (sheet) sheet['!ref'] = 'A1:D9';
    expect((await open(bytesOf(book))).extras).toEqual([{ kind: 'unread', sheet: 'S', what: '2 cell notes' }]);
  });

  test('objects of an .xls, but not the arrows of its filters', async () => {
    const object = (kind: number) => Buffer.from([0x5d, 0, 6, 0, 0x15, 0, 0x12, 0, kind, 0]);
    const archive = CFB.read(Buffer.from(bytesOf(bookOf({ S: [['a']] }), 'xls')), { type: 'buffer' });
    const stream = CFB.find(archive, 'Workbook');
    const content = Buffer.from(stream?.content ?? []);
    const added = [object(5), object(8), object(8), object(0x14), object(0x19), object(6)];
    // Before the end record of the only sheet.
    const changed = Buffer.concat([content.subarray(0, -4), ...added, content.subarray(-4)]);
    CFB.utils.cfb_add(archive, '/Workbook', changed);
    const { extras } = await open(CFB.write(archive, { type: 'buffer' }) as Buffer);
    expect(extras.map(({ what }) => what)).toEqual(['1 chart', '2 pictures', '1 drawing']);
  });
});

describe('malicious and damaged workbooks', () => {
  test('the declared size of a sheet takes no memory', async () => {
    const bytes = handMade(sheetXml('<row r="2"><c r="B2"><v>1</v></c></row>', 'A1:XFD1048576'));
    expect(await sheets(bytes)).toEqual([{ name: 'S', lines: [[], ['', '1']] }]);
  });

  test('a part that declares a large size is not unpacked', async () => {
    const bytes = handMade(sheetXml('<row r="1"><c r="A1"><v>1</v></c></row>'), () => 2 ** 30);
    expect((await refusal(bytes)).message).toContain('it is larger than 16 MB when unpacked');
  });

  test('many single cells far to the right are refused', async () => {
    const rows = Array.from({ length: 1000 }, (_, n) => `<row r="${n + 1}"><c r="XFD${n + 1}"><v>1</v></c></row>`);
    expect((await refusal(handMade(sheetXml(rows.join(''))))).message).toContain('span more than 10000000 cells');
  });

  test('a formula without a value is not an empty cell', async () => {
    const bytes = handMade(sheetXml('<row r="1"><c r="A1"><f>B1*2</f></c></row>'));
    expect((await sheets(bytes))[0]?.lines).toEqual([['=B1*2']]);
  });

  const bomb = Buffer.alloc(40 * 2 ** 20, ' ');

  test('a part that is large when unpacked is refused by its declared size', async () => {
    const error = await refusal(handMade(bomb));
    expect(error.message).toContain('it is larger than 16 MB when unpacked');
  });

  test('a part that declares a wrong size is not unpacked beyond the limit', async () => {
    const error = await refusal(handMade(bomb, () => 10));
    expect(error.message).toContain('it is larger than 16 MB when unpacked');
  });

  test('an archive without a workbook, and files that are not archives', async () => {
    expect((await refusal(zipOf({ 'a.csv': 'a,b' }))).message).toContain('not an .xlsx workbook');
    expect((await refusal(Buffer.from('a\tb\n'))).hint).toContain('format: delimited');
    const compound = Buffer.alloc(2048);
    compound.write('d0cf11e0a1b11ae1', 'hex');
    expect((await refusal(compound)).message).toContain('the workbook cannot be read');
    expect((await refusal(bytesOf(bookOf({ S: [[1]] })).slice(0, 500))).message).toContain('damaged or truncated');
  });

  test('a part whose checksum is not that of its content is refused', async () => {
    const bytes = bytesOf(bookOf({ S: [['a'], [0.2]] }), 'xlsx', false);
    const at = Buffer.from(bytes).indexOf('<v>0.2</v>');
    expect(at).toBeGreaterThan(0);
    expect((await sheets(bytes))[0]?.lines).toEqual([['a'], ['0.2']]);
    const changed = Buffer.from(bytes);
    changed.write('9', at + 3);
    const error = await refusal(changed);
    expect(error.message).toContain('xl/worksheets/sheet1.xml is damaged: the checksum');
    expect(error.hint).toContain('copy it from the instrument again');
  });

  test('reading is terminated at the time limit', async () => {
    const error = await refusal(bytesOf(bookOf({ S: [[1]] })), { limits: { seconds: '1ms' } });
    expect(error.message).toContain('longer than 0.001 s');
    expect(error.hint).toContain('limits: { seconds: 300 }');
  });

  test('a signal terminates reading', async () => {
    const file = opened(bytesOf(bookOf({ S: [[1]] })), 'runs/plate.xlsx');
    const reading = openSheets({ ...file, signal: AbortSignal.timeout(5) });
    await expect(reading).rejects.toThrow(/abort|timeout/i);
  });
});

const TABLE = Array.from({ length: 10 }, (_, n) => [`A${n}`, n * 1.5, shown(46085 + n, 'yyyy-mm-dd'), n % 2 === 0]);

test('a damaged byte that makes the library loop does not block the event loop', async () => {
  const bytes = Buffer.from(bytesOf(bookOf({ S: TABLE, T: [['x']] }), 'xls'));
  for (const [at, byte] of [
    [3265, 33],
    [2288, 33],
    [2324, 6],
  ] as const) {
    const damaged = Buffer.from(bytes);
    damaged[at] = byte;
    const started = performance.now();
    await readOrRefuse(sheets(damaged, { limits: { seconds: 1 } }));
    expect(performance.now() - started).toBeLessThan(5000);
  }
});

test.each(['sectors', 'directory entries'])(
  'an .xls whose %s form a loop is refused before it takes memory',
  async (what) => {
    const rows = Array.from({ length: 400 }, (_, n) => [`sample ${n}`, n * 1.5]);
    const bytes = Buffer.from(bytesOf(bookOf({ S: rows }), 'xls'));
    const sectorAt = (sector: number) => 512 * (sector + 1);
    const directory = sectorAt(bytes.readInt32LE(48));
    const stream = directory + bytes.subarray(directory).indexOf(Buffer.from('Workbook', 'utf16le'));
    const first = bytes.readInt32LE(stream + 116);
    // The second sector of the workbook leads back to itself, or the entry of the workbook has itself as a neighbour.
    if (what === 'sectors') bytes.writeInt32LE(first + 1, sectorAt(bytes.readInt32LE(76)) + 4 * (first + 1));
    else bytes.writeInt32LE((stream - directory) / 128, stream + 68);
    expect(stream).toBeGreaterThan(directory);
    const error = await sheets(bytes, { limits: { seconds: 1 } }).catch((reason: unknown) => reason);
    expect(error).toMatchObject({ message: expect.stringContaining('damaged or truncated') });
  },
);

/** Reading it takes tenths of a second. */
const wide = () => {
  const row = (n: number) => Array.from({ length: 100 }, (_, at) => `S${n} (${at})`);
  return bytesOf(bookOf({ S: Array.from({ length: 1000 }, (_, n) => row(n)) }));
};

test('a process that has ended while it waited is not the fault of the file', async () => {
  const bytes = bytesOf(bookOf({ S: [[1]] }));
  await sheets(bytes);
  for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGKILL');
  expect(await sheets(bytes)).toEqual([{ name: 'S', lines: [['1']] }]);
});

test('a workbook that ends the process in which it is read is refused, and the next one is read', async () => {
  // None that waits for a workbook.
  for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGKILL');
  await until('the others have ended', () => childrenOf(process.pid).length === 0);
  const reading = refusal(wide());
  await until('its process has started', () => childrenOf(process.pid).length > 0);
  for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGABRT');
  const error = await reading;
  expect(error.message).toContain('it takes too much memory');
  expect(error.hint).toContain('export it as .csv');
  expect(await sheets(bytesOf(bookOf({ S: [[1]] })))).toEqual([{ name: 'S', lines: [['1']] }]);
});

test('if its process cannot start, the file is not to blame, and no other process is ended for want of memory', async () => {
  for (const pid of childrenOf(process.pid)) process.kill(pid, 'SIGKILL');
  await until('the others have ended', () => childrenOf(process.pid).length === 0);
  const node = process.execPath;
  process.execPath = '/absent/node';
  const problem = await sheets(bytesOf(bookOf({ S: [[1]] }))).catch((error: unknown) => error);
  process.execPath = node;
  expect(problem).toMatchObject({ message: 'cannot start a process that reads workbooks' });
  expect(problem).not.toBeInstanceOf(FileError);
  await sheets(bytesOf(bookOf({ S: [[1]] })));
  const [pid = expect.fail('no process')] = childrenOf(process.pid);
  expect(readFileSync(`/proc/${pid}/oom_score_adj`, 'utf8').trim()).toBe('1000');
});

test('the limit on backtracking in expressions of mappings does not make workbooks large', async () => {
  limitBacktracking();
  const before = peakMemoryOf(process.pid);
  await sheets(wide());
  const [pid = expect.fail('no process')] = childrenOf(process.pid);
  expect(peakMemoryOf(pid) + peakMemoryOf(process.pid) - before).toBeLessThan(300e6);
});

test('a text without a length, in a damaged .xls, takes no memory', async () => {
  const bytes = Buffer.from(bytesOf(bookOf({ S: TABLE }), 'xls'));
  // The record at the end of the sheet becomes a text, which has no length.
  const end = bytes.lastIndexOf(Buffer.from([0x0a, 0, 0, 0]));
  bytes.writeUInt16LE(0x07, end);
  expect(end).toBeGreaterThan(512);
  const error = await sheets(bytes, { limits: { seconds: 10 } }).catch((reason: unknown) => reason);
  expect(error).toMatchObject({ message: expect.stringContaining('damaged or truncated') });
});

test.each(['xlsx', 'xls'] as const)('mutated .%s is read or refused in finite time', async (type) => {
  const base = bytesOf(bookOf({ S: TABLE, T: [['x']] }), type);
  await fc.assert(
    fc.asyncProperty(mutations(base), async (bytes) => {
      await readOrRefuse(sheets(bytes, { limits: { seconds: 2 } }));
    }),
    { numRuns: 6 },
  );
});

test('a workbook is unpacked once for all mappings with the same decimal mark', async () => {
  const sheet = utils.aoa_to_sheet([['x'], [1.5]]);
  const bytes = write({ SheetNames: ['A'], Sheets: { A: sheet } }, { type: 'buffer', bookType: 'xlsx' });
  const file = opened(bytes, 'runs/plate.xlsx');
  const { sheets } = await openSheets(file);
  expect((await openSheets({ ...file, options: withDefaults({ table: {} }) })).sheets).toBe(sheets);
  const other = await openSheets({ ...file, options: withDefaults({ decimal: ',' }) });
  expect(other.sheets[0]?.lines[1]).toEqual(['1,5']);
});
