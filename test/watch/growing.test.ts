import { appendFileSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type Followed, look, readBlocks } from '../../src/watch/growing.js';
import { stampOf } from '../../src/watch/identify.js';
import { tempFolder } from '../support/temp-folder.js';

const fileAt = (path: string) => ({ path, location: path, ...stampOf(statSync(path, { bigint: true })) });

/** As if the lines up to this offset were taken. */
async function followed(path: string, offset: number): Promise<Followed> {
  return { ...(await readBlocks(fileAt(path), offset)), base: 0, offset, headerEnd: 2, low: undefined };
}

const bytesRead = (): number => Number(/^rchar: (\d+)$/m.exec(readFileSync('/proc/self/io', 'utf8'))?.[1]);

test('a file of 1 GB that grew by 1 KB costs a read of a few kilobytes', async () => {
  const path = join(tempFolder(), 'log');
  writeFileSync(path, 'a\nb\n');
  truncateSync(path, 2 ** 30 - 1);
  appendFileSync(path, '\n');
  const known = await followed(path, 2 ** 30);
  appendFileSync(path, `${'x'.repeat(1023)}\n`);
  const before = bytesRead();
  const seen = await look(fileAt(path), known);
  const read = bytesRead() - before;
  expect(seen).toMatchObject({ kind: 'lines', isLast: true, unfinished: 0 });
  expect(seen.kind === 'lines' && seen.bytes.length).toBe(1024);
  // The first 16 KB, the 4 KB before the offset, what is new, and the counter itself.
  expect(read).toBeLessThan(32 * 1024);
});

test('a file that begins as before, but not where it ended, was rewritten', async () => {
  const path = join(tempFolder(), 'log');
  const lines = (from: number) => Array.from({ length: 5000 }, (_, n) => `${from + n}\n`).join('');
  writeFileSync(path, lines(10_000) + lines(20_000));
  const known = await followed(path, 60_000);
  writeFileSync(path, `${lines(10_000) + lines(30_000)}more\n`);
  expect(await look(fileAt(path), known)).toMatchObject({ kind: 'other', how: 'rewritten', from: 0 });
});

test('a line that is longer than a batch is refused', async () => {
  const path = join(tempFolder(), 'log');
  writeFileSync(path, `a\n${'x'.repeat(100)}\n`);
  await expect(look(fileAt(path), await followed(path, 2), { maxBytes: 50 })).rejects.toThrow(/a line is longer than/);
});

test('a batch ends with a line, and says whether more follow', async () => {
  const path = join(tempFolder(), 'log');
  writeFileSync(path, 'a\nbb\ncc\nd');
  const seen = await look(fileAt(path), await followed(path, 2), { maxBytes: 5 });
  expect(seen).toMatchObject({ kind: 'lines', isLast: false });
  expect(seen.kind === 'lines' && String(seen.bytes)).toBe('bb\n');
  const rest = await look(fileAt(path), await followed(path, 5));
  expect(rest).toMatchObject({ kind: 'lines', isLast: true, unfinished: 1 });
});

test('a file that is truncated and written again while it is read is not read as parts of both', async () => {
  const path = join(tempFolder(), 'log');
  writeFileSync(path, 'a\nbb\ncc\n');
  const known = await followed(path, 5);
  const racing = {
    /** Read when the beginning and the end of what is known were compared, before the new lines are read. */
    get maxBytes() {
      truncateSync(path, 0);
      appendFileSync(path, 'a\nxx\nyyyyyyyyyyy\n');
      return 1000;
    },
  };
  await expect(look(fileAt(path), known, racing)).rejects.toThrow(/was truncated while it was read/);
});
