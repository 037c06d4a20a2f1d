import iconv from 'iconv-lite';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { parse } from '../../src/parse/parse.js';
import { columns, read, refusal, rows } from '../support/reading.js';

afterEach(() => vi.restoreAllMocks());

const TABLE = { delimiter: ',', table: {} };
const TEXT = 'Probe,T (°C)\nMüller µ,21.5\n';
const READ = [{ Probe: 'Müller µ', T: 21.5 }];

describe('the text of a file', () => {
  test.each([
    ['UTF-8', 'utf-8', false],
    ['UTF-8 with a byte order mark', 'utf-8', true],
    ['UTF-16 with a byte order mark', 'utf-16le', true],
    ['big-endian UTF-16', 'utf-16be', true],
    ['windows-1252', 'windows-1252', false],
  ])('%s is detected', async (_, encoding, addBOM) => {
    const record = await read(iconv.encode(TEXT, encoding, { addBOM }), TABLE);
    expect(rows(record)).toEqual(READ);
    expect(columns(record)).toEqual(['Probe', 'T [°C]']);
  });

  test.each(['shift_jis', 'cp437', 'utf-16le'])('%s is read if the mapping names it', async (encoding) => {
    const text = encoding === 'shift_jis' ? '試料,値\nあ,1\n' : 'Größe,n\nä,1\n';
    const record = await read(iconv.encode(text, encoding), { ...TABLE, encoding });
    expect(rows(record)).toEqual([encoding === 'shift_jis' ? { 試料: 'あ', 値: 1 } : { Größe: 'ä', n: 1 }]);
  });

  test('half a character at the end of UTF-16 is dropped', async () => {
    const bytes = iconv.encode('a,b\n1,2\n', 'utf-16le', { addBOM: true });
    expect(rows(await read(Buffer.concat([bytes, Buffer.from([0x0a])]), TABLE))).toEqual([{ a: 1, b: 2 }]);
  });

  test('byte order marks and NULs within the text are dropped', async () => {
    const record = await read('\ufeffa,b\n\ufeff1,2\u0000\n3,4\ufeff', TABLE);
    expect(rows(record)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
  });

  test.each([
    ['LF', '\n'],
    ['CR LF', '\r\n'],
    ['CR', '\r'],
    ['CR CR LF', '\r\r\n'],
  ])('%s ends a line', async (_, newline) => {
    const record = await read(['a,b', '1,2', '3,4', ''].join(newline), TABLE);
    expect(rows(record)).toEqual([
      { a: 1, b: 2 },
      { a: 3, b: 4 },
    ]);
  });

  test('mixed line breaks keep line numbers exact', async () => {
    const error = await refusal('a,b\r\n1,2\r3,4\n5,x\r\r\n', {
      ...TABLE,
      table: { columns: { b: { type: 'number' } } },
    });
    expect(error.where).toMatchObject({ line: 4, column: 3 });
  });

  test('a line break across two chunks is one', async () => {
    const row = `${'x'.repeat(7)},${'1'.repeat(6)}\r\n`;
    const many = 400_000 / row.length;
    const record = await read(`a,b\r\n${row.repeat(many)}`, TABLE);
    expect(record.tables[0]?.rows).toHaveLength(Math.floor(many));
  });

  test('binary data named .csv are refused', async () => {
    const bytes = Uint8Array.from({ length: 4000 }, (_, n) => (n * 7919) % 256);
    expect((await refusal(bytes, TABLE)).message).toBe('the file is not text');
  });

  test('an archive named .csv is recognised', async () => {
    const bytes = Buffer.from('PK\u0003\u0004rest of an archive');
    expect((await refusal(bytes, TABLE)).message).toContain('a zip archive');
  });

  test.each(['utf-16le', 'utf-16be'])('%s without a byte order mark is recognised by its zeros', async (encoding) => {
    expect(rows(await read(iconv.encode(TEXT, encoding), TABLE))).toEqual(READ);
  });

  test.each([
    ['no bytes at all', ''],
    ['only a byte order mark', '\ufeff'],
    ['only blank lines', '\n \n\t\n'],
  ])('a file with %s is empty', async (_, text) => {
    expect((await refusal(text, TABLE)).message).toContain('the file is empty');
    expect((await refusal(text)).message).toContain('the file is empty');
  });
});

const CSV = { delimiter: ',', table: {} };
const long = (rows: number) => Buffer.from(`a,b,c\n${'1,2,3\n'.repeat(rows)}`);

describe('limits', () => {
  test('a file that is too large is not opened', async () => {
    const options = [withDefaults({ ...CSV, limits: { bytes: '1KB' } })];
    const content = (): AsyncIterable<Uint8Array> => ({
      [Symbol.asyncIterator]: () => expect.fail('the file was opened'),
    });
    const outcome = parse({ path: 'x', name: 'x', size: 2000, content }, options);
    await expect(outcome).rejects.toThrow('the file is too large: 2000 bytes, the limit is 1024 bytes');
  });

  test('a stream that becomes too large is not read to its end', async () => {
    const options = [withDefaults({ ...CSV, limits: { bytes: 100 } })];
    let pieces = 0;
    async function* content() {
      for (;;) {
        pieces++;
        yield new Uint8Array(60);
      }
    }
    await expect(parse({ path: 'x', name: 'x', content }, options)).rejects.toThrow(FileError);
    expect(pieces).toBe(2);
  });

  test('a stream is read like its bytes', async () => {
    async function* content() {
      yield Buffer.from('a,b\n1');
      yield Buffer.from(',2\n');
    }
    const record = await parse({ path: 'x', name: 'x', content }, [withDefaults(CSV)]);
    expect(record.tables[0]?.rows).toHaveLength(1);
  });

  test('too many rows', async () => {
    const error = await refusal(long(6), { ...CSV, limits: { rows: 5 } });
    expect(error.hint).toContain('`limits: { rows: 50 }`');
  });

  test('too many columns', async () => {
    const error = await refusal(`${'x,'.repeat(200_000)}x\n`, CSV);
    expect(error.message).toContain('200001 columns');
  });

  test('too much time', async () => {
    const error = await refusal(long(100_000), { ...CSV, limits: { seconds: '10ms' } });
    expect(error.message).toContain('longer than 0.01 s');
  });

  /** Each look at the clock takes this long. */
  const tickBy = (stepMs: number) => {
    let ms = 0;
    vi.spyOn(performance, 'now').mockImplementation(() => {
      ms += stepMs;
      return ms;
    });
  };

  test('a large file may take more time than a small one', async () => {
    tickBy(40_000);
    const content = long(10);
    const parseAs = (size: number, limits = {}) =>
      parse({ path: 'x', name: 'x', size, content }, [withDefaults({ ...CSV, limits })]);
    await expect(parseAs(1000)).rejects.toThrow('longer than 60 s');
    expect((await parseAs(200_000_000)).tables[0]?.count).toBe(10);
    await expect(parseAs(200_000_000, { seconds: '1m' })).rejects.toThrow('longer than 60 s');
  });

  test('the hint raises the limit that was exceeded', async () => {
    tickBy(500_000);
    const { hint } = await refusal(long(10), { ...CSV, limits: { seconds: '10m' } });
    expect(hint).toContain('`limits: { seconds: 3000 }`');
  });
});

describe('while a long file is read', () => {
  test('the event loop is not blocked', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await parse({ path: 'x', name: 'x', content: long(100_000) }, [withDefaults(CSV)]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
  });

  test('a signal aborts reading with its reason', async () => {
    const controller = new AbortController();
    const outcome = parse({ path: 'x', name: 'x', content: long(200_000) }, [withDefaults(CSV)], controller.signal);
    setTimeout(() => controller.abort(new Error('shutting down')), 5);
    await expect(outcome).rejects.toThrow('shutting down');
  });
});
