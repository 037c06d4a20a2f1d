import fc from 'fast-check';
import iconv from 'iconv-lite';
import { describe, expect, test } from 'vitest';
import type { ParseMapping } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { meta, read, refusal, rows } from '../support/reading.js';

/** A stream of these chunks, from the beginning each time it is opened. */
const streamOf = (pieces: Iterable<string | Uint8Array>) =>
  async function* () {
    for (const piece of pieces) yield Buffer.from(piece as string);
  };

function* lines(rowsOf: (n: number) => string, count: number): Generator<string> {
  for (let n = 0; n < count; n += 1000) {
    yield Array.from({ length: Math.min(1000, count - n) }, (_, i) => `${rowsOf(n + i)}\n`).join('');
  }
}

describe('a long file that is read as a stream', () => {
  const COUNT = 40_000;
  const content = (row: (n: number) => string, header: string) => () =>
    streamOf([`${header}\n`, ...lines(row, COUNT)])();
  const csv = { delimiter: ',', table: {} };

  test('is counted and summarised, although few of its rows are kept', async () => {
    const row = (n: number) => `${n},${n % 2 ? '' : (n / 8).toFixed(3)},${n % 3 ? 'ok' : 'OVER'},x${n}`;
    const record = await read(content(row, 'n,half (mg),flag,name'), { ...csv, missing: 'OVER' });
    const [table] = record.tables;
    expect(table?.count).toBe(COUNT);
    expect(table?.rows.length).toBeGreaterThan(1000);
    expect(table?.rows.length).toBeLessThan(COUNT);
    expect(rows(record)[7]).toMatchObject({ n: 7, half: null, flag: 'ok', name: 'x7' });
    expect(table?.columns.map(({ name, summary }) => [name, summary])).toEqual([
      ['n', { n: COUNT, min: value('0'), median: 19_999.5, isMedianExact: true, max: value('39999') }],
      ['half', { n: COUNT / 2, min: value('0.000'), median: 2499.875, isMedianExact: true, max: value('4999.750') }],
      ['flag', undefined],
      ['flag text', undefined],
      ['name', undefined],
    ]);
    expect(table?.columns[1]?.unit).toBe('mg');
  });

  const value = (text: string) => ({ value: Number(text), text });

  test('has a summary of its computed axis', async () => {
    const record = await read(
      content((n) => `${n},a,b`, 'c,d,e'),
      {
        ...csv,
        table: { columns: { t: { start: 10, step: -0.5, unit: 's' } } },
      },
    );
    expect(record.tables[0]?.columns[0]).toMatchObject({
      name: 't',
      summary: { n: COUNT, min: { value: -19_989.5 }, max: { value: 10 }, isMedianExact: true },
    });
  });

  test('keeps few rows with `unpivot`', async () => {
    const record = await read(
      content((n) => `${n},${-n}`, 'A1,A2'),
      {
        ...csv,
        table: { unpivot: '/^(?<well>A\\d)$/' },
      },
    );
    const [table] = record.tables;
    expect(table?.count).toBe(2 * COUNT);
    expect(table?.rows.length).toBeLessThanOrEqual(50_000);
    expect(table?.columns.at(-1)?.summary).toMatchObject({
      n: 2 * COUNT,
      min: { value: -39_999 },
      max: { value: 39_999 },
    });
  });

  test('keeps few rows if each block has its own columns', async () => {
    const blocks = Array.from({ length: 300 }, (_, n) => `Step\na${n},b${n}\n${n},-${n}\n`);
    const record = await read(streamOf(blocks), { ...csv, table: { every: 'Step' } });
    const [table] = record.tables;
    expect(table?.count).toBe(300);
    expect(table?.columns).toHaveLength(600);
    expect((table?.rows.length ?? 0) * 600).toBeLessThanOrEqual(100_000);
    expect(table?.columns[0]?.summary).toMatchObject({ n: 1, median: 0 });
    expect(table?.columns.at(-2)?.summary).toMatchObject({ n: 1, median: 299 });
  });

  test('is refused for a value in a row that is not kept', async () => {
    const row = (n: number) => `${n};${n === COUNT - 2 ? '1,234' : '5'};;`;
    const error = await refusal(content(row, 'n;m;o;p'), { delimiter: ';', table: {} });
    expect(error.where).toMatchObject({ line: COUNT, column: 7 });
    expect(error.message).toContain('"1,234"');
  });

  test('has its last lines, and facts below its table', async () => {
    const text = () => streamOf([...lines((n) => `${n},1`, COUNT), '\nOperator: Ada\nlast\n'])();
    const record = await read(text, {
      delimiter: ',',
      meta: [{ separator: ':' }, { line: -1, cells: ['end'] }],
      table: { header: 'none', count: COUNT },
    });
    expect(meta(record)).toEqual({ Operator: 'Ada', end: 'last' });
  });

  test('is opened again for each alternative', async () => {
    const record = await read(
      content((n) => `${n},1`, 'a,b'),
      [
        { ...csv, when: 'never' },
        { ...csv, table: { header: 'never' } },
        { ...csv, when: '39999,1' },
      ],
    );
    expect(record.tables[0]?.count).toBe(COUNT);
  });
});

describe('an endless line', () => {
  test('is refused at its maximum length', async () => {
    let pieces = 0;
    async function* endless() {
      yield Buffer.from('a,b\n1,2\n');
      for (; pieces < 100; pieces++) yield Buffer.alloc(2 ** 20, 'x');
    }
    const error = await refusal(endless, { encoding: 'utf-8', delimiter: ',', table: {} });
    expect(error.message).toContain('line 3 is longer than 16 million characters');
    expect(error.where?.line).toBe(3);
    expect(pieces).toBeLessThan(20);
  });
});

describe('a file read in chunks is the same as read at once', () => {
  const MAPPINGS: readonly (ParseMapping | readonly ParseMapping[])[] = [
    { table: {} },
    { delimiter: ',', meta: { until: 'blank', separator: ':' }, table: { after: 'blank', until: 'eof' } },
    { delimiter: 'whitespace', comment: '#', table: { header: 'none', until: -1 } },
    { meta: [{ separator: 'cell' }, { line: -1, cells: ['last'] }], tables: {} },
    { delimiter: ',', table: { grid: true } },
    [
      { when: '/é/', delimiter: ',', table: {} },
      { delimiter: ';', decimal: ',', table: { units: 'nextRow' } },
      { table: {} },
    ],
  ];
  const cell = fc.constantFrom(
    '',
    '1',
    '2.5',
    '7,5',
    'a b',
    'Größe',
    '試料',
    'é: x',
    '"q, \n r"',
    '"',
    '#',
    '\u0000',
    '𝛼',
  );
  const line = fc
    .record({ cells: fc.array(cell, { maxLength: 4 }), sign: fc.constantFrom(',', ';', '  ', ': ') })
    .map(({ cells, sign }) => cells.join(sign));
  const text = fc
    .array(fc.record({ line, end: fc.constantFrom('\n', '\r\n', '\r', '\r\r\n', '') }), { maxLength: 12 })
    .map((parts) => parts.map((part) => part.line + part.end).join(''));
  const encoding = fc.constantFrom(
    ...[{ name: 'utf-8' }, { name: 'utf-8', addBOM: true }, { name: 'utf-16le', addBOM: true }],
    ...[{ name: 'utf-16be', addBOM: true }, { name: 'windows-1252' }],
    ...[
      { name: 'shift_jis', isTold: true },
      { name: 'utf-16', isTold: true },
      { name: 'gb18030', isTold: true },
    ],
  );
  const cuts = fc.array(fc.nat({ max: 400 }), { maxLength: 30 });

  /** The record or the refusal, for comparison. */
  const outcome = (
    content: Uint8Array | (() => AsyncIterable<Uint8Array>),
    mapping: ParseMapping | readonly ParseMapping[],
  ) =>
    read(content, mapping).then(
      (record) => ({ meta: [...record.meta], tables: record.tables }),
      (error: unknown) => {
        if (!(error instanceof FileError)) throw error;
        return { message: error.message, where: error.where, hint: error.hint };
      },
    );

  function piecesOf(bytes: Buffer, places: readonly number[]): Buffer[] {
    const ends = [...new Set([...places, bytes.length])].filter((place) => place <= bytes.length);
    ends.sort((a, b) => a - b);
    return ends.map((end, n) => bytes.subarray(ends[n - 1] ?? 0, end));
  }

  test('with any text, encoding and mapping', async () => {
    await fc.assert(
      fc.asyncProperty(
        text,
        encoding,
        fc.constantFrom(...MAPPINGS),
        cuts,
        async (written, { name, ...how }, given, places) => {
          const bytes = iconv.encode(written, name, how);
          const mapping = 'isTold' in how ? [given].flat().map((one) => ({ ...one, encoding: name })) : given;
          const pieces = piecesOf(bytes, places);
          expect(await outcome(streamOf(pieces), mapping)).toEqual(await outcome(bytes, mapping));
        },
      ),
      { numRuns: 120 },
    );
  });

  test('with binary content', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uint8Array({ maxLength: 300 }),
        fc.constantFrom(...MAPPINGS),
        cuts,
        async (written, mapping, places) => {
          const bytes = Buffer.from(written);
          expect(await outcome(streamOf(piecesOf(bytes, places)), mapping)).toEqual(await outcome(bytes, mapping));
        },
      ),
      { numRuns: 100 },
    );
  });

  test('byte by byte, with an unclosed quote and a two-byte line break', async () => {
    const bytes = iconv.encode('Größe,x\r\n"oops,1\r\r\n2,3\r4,5', 'utf-16le', { addBOM: true });
    const single = streamOf([...bytes].map((byte) => Uint8Array.of(byte)));
    const mapping = { delimiter: ',', table: {} };
    expect(await outcome(single, mapping)).toEqual(await outcome(bytes, mapping));
    expect(rows(await read(single, mapping)).at(-1)).toEqual({ Größe: 4, x: 5 });
  });
});
