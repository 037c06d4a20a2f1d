import iconv from 'iconv-lite';
import { describe, expect, test } from 'vitest';
import { columns, read, refusal, rows } from '../support/reading.js';

const TABLE = { delimiter: ',', table: {} };
const TEXT = 'Probe,T (°C)\nMüller µ,21.5\n';
const READ = [{ Probe: 'Müller µ', T: 21.5 }];

describe('the text of a file', () => {
  test.each([
    ['UTF-8', 'utf-8', false],
    ['UTF-8 with a byte order mark', 'utf-8', true],
    ['UTF-16 with a byte order mark', 'utf-16le', true],
    ['UTF-16, the other way round', 'utf-16be', true],
    ['windows-1252', 'windows-1252', false],
  ])('%s is recognised without being told', async (_, encoding, addBOM) => {
    const record = await read(iconv.encode(TEXT, encoding, { addBOM }), TABLE);
    expect(rows(record)).toEqual(READ);
    expect(columns(record)).toEqual(['Probe', 'T [°C]']);
  });

  test.each(['shift_jis', 'cp437', 'utf-16le'])('%s is read where the mapping names it', async (encoding) => {
    const text = encoding === 'shift_jis' ? '試料,値\nあ,1\n' : 'Größe,n\nä,1\n';
    const record = await read(iconv.encode(text, encoding), { ...TABLE, encoding });
    expect(rows(record)).toEqual([encoding === 'shift_jis' ? { 試料: 'あ', 値: 1 } : { Größe: 'ä', n: 1 }]);
  });

  test('half a character at the end of UTF-16 is nothing', async () => {
    const bytes = iconv.encode('a,b\n1,2\n', 'utf-16le', { addBOM: true });
    expect(rows(await read(Buffer.concat([bytes, Buffer.from([0x0a])]), TABLE))).toEqual([{ a: 1, b: 2 }]);
  });

  test('byte order marks and zeros within the text mean nothing', async () => {
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

  test('lines may end in different ways, and places still count them', async () => {
    const error = await refusal('a,b\r\n1,2\r3,4\n5,x\r\r\n', {
      ...TABLE,
      table: { columns: { b: { type: 'number' } } },
    });
    expect(error.where).toMatchObject({ line: 4, column: 3 });
  });

  test('a newline that two pieces of a long file share is one', async () => {
    const row = `${'x'.repeat(7)},${'1'.repeat(6)}\r\n`;
    const many = 400_000 / row.length;
    const record = await read(`a,b\r\n${row.repeat(many)}`, TABLE);
    expect(record.tables[0]?.rows).toHaveLength(Math.floor(many));
  });

  test('rubbish named .csv is not text', async () => {
    const bytes = Uint8Array.from({ length: 4000 }, (_, n) => (n * 7919) % 256);
    expect((await refusal(bytes, TABLE)).message).toBe('the file is not text');
  });

  test('an archive named .csv is told to be one', async () => {
    const bytes = Buffer.from('PK\u0003\u0004rest of an archive');
    expect((await refusal(bytes, TABLE)).message).toContain('a zip archive');
  });

  test('UTF-16 without a mark is not guessed, and the hint is the line that reads it', async () => {
    const error = await refusal(iconv.encode('a,b\n1,2\n3,4\n', 'utf-16le'), TABLE);
    expect(error.hint).toContain('`encoding: utf-16le`');
  });

  test.each([
    ['no bytes at all', ''],
    ['only a mark', '\ufeff'],
    ['only blank lines', '\n \n\t\n'],
  ])('a file with %s is empty', async (_, text) => {
    expect((await refusal(text, TABLE)).message).toContain('the file is empty');
    expect((await refusal(text)).message).toContain('the file is empty');
  });
});
