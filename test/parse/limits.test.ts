import { describe, expect, test } from 'vitest';
import { withDefaults } from '../../src/config/vocabulary.js';
import { FileError } from '../../src/errors.js';
import { parse } from '../../src/parse/parse.js';
import { refusal } from '../support/reading.js';

const CSV = { delimiter: ',', table: {} };
const long = (rows: number) => Buffer.from(`a,b,c\n${'1,2,3\n'.repeat(rows)}`);

describe('limits', () => {
  test('a file that is too large is not even opened', async () => {
    const options = [withDefaults({ ...CSV, limits: { bytes: '1KB' } })];
    const content = (): AsyncIterable<Uint8Array> => ({
      [Symbol.asyncIterator]: () => expect.fail('the file was opened'),
    });
    const outcome = parse({ path: 'x', name: 'x', size: 2000, content }, options);
    await expect(outcome).rejects.toThrow('the file is larger than 1024 bytes: it has 2000 bytes');
  });

  test('one that turns out to be too large is not read to its end', async () => {
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

  test('a stream is read like the bytes that it holds', async () => {
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

  test('too long a time', async () => {
    const error = await refusal(long(100_000), { ...CSV, limits: { seconds: '10ms' } });
    expect(error.message).toContain('longer than 0.01 s');
  });
});

describe('while a long file is read', () => {
  test('others get their turn', async () => {
    let turns = 0;
    const timer = setInterval(() => turns++, 1);
    await parse({ path: 'x', name: 'x', content: long(100_000) }, [withDefaults(CSV)]);
    clearInterval(timer);
    expect(turns).toBeGreaterThan(5);
  });

  test('a signal stops it, with its reason', async () => {
    const controller = new AbortController();
    const outcome = parse(
      { path: 'x', name: 'x', content: long(200_000) },
      [withDefaults(CSV)],
      controller.signal,
    );
    setTimeout(() => controller.abort(new Error('shutting down')), 5);
    await expect(outcome).rejects.toThrow('shutting down');
  });
});
