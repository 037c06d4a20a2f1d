import { execFileSync } from 'node:child_process';
import {
  constants,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openFile, Share } from '../../src/system/disk.js';
import { tempFolder } from '../support/temp-folder.js';

/** A process as it is used for a share, here for a folder of the disk. */
function share(hangMs?: number): Share {
  const one = new Share(hangMs);
  onTestFinished(() => one.end());
  return one;
}

async function statsOf(one: Share, ...paths: string[]) {
  const results: unknown[] = [];
  await one.stats([...paths.keys()], paths, (index, result) => {
    results[index] = result;
  });
  return results;
}

test('another process sees a folder as this one does', async () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'sub'));
  writeFileSync(join(folder, 'a.csv'), 'a');
  symlinkSync('a.csv', join(folder, 'link'));
  const one = share();
  const entries = await one.entries(folder);
  expect(entries.map((entry) => [entry.name, entry.isFile(), entry.isDirectory(), entry.isSymbolicLink()])).toEqual(
    expect.arrayContaining([
      ['a.csv', true, false, false],
      ['sub', false, true, false],
      ['link', false, false, true],
    ]),
  );
  const [file, gone] = await statsOf(one, join(folder, 'a.csv'), join(folder, 'gone'));
  const here = statSync(join(folder, 'a.csv'), { bigint: true });
  expect(file).toMatchObject({
    size: 1n,
    mtimeNs: here.mtimeNs,
    ino: here.ino,
    dev: here.dev,
    nlink: 1n,
    uid: here.uid,
  });
  expect((file as typeof here).isFile()).toBe(true);
  expect((file as typeof here).isDirectory()).toBe(false);
  expect(gone).toMatchObject({ code: 'ENOENT' });
  expect(String(await one.realpath(join(folder, 'link')))).toBe(String(await one.realpath(join(folder, 'a.csv'))));
});

test('names that are not UTF-8 are bytes', async () => {
  const folder = tempFolder();
  writeFileSync(join(folder, 'a.csv'), '');
  const name = Buffer.from([0x62, 0xff]);
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), name]), '');
  const entries = await share().entries(folder);
  expect(entries.map((entry) => Buffer.from(entry.name)).sort(Buffer.compare)).toEqual([Buffer.from('a.csv'), name]);
  expect(await share().entries(Buffer.from(folder))).toHaveLength(2);
});

test('another process reads the bytes of a file as this one does', async () => {
  const path = join(tempFolder(), 'a.csv');
  const bytes = Buffer.from(Array.from({ length: 3000 }, (_, n) => n % 256));
  writeFileSync(path, bytes);
  linkSync(path, `${path}.b`);
  for (const file of [await share().open(path, constants.O_RDONLY), await openFile(path, constants.O_RDONLY)]) {
    const buffer = Buffer.alloc(3010);
    expect(await file.read(buffer, 10, 2000, 0)).toBe(2000);
    expect(await file.read(buffer, 2010, 5000 - 4000, 2000)).toBe(1000);
    expect(await file.read(buffer, 0, 10, 3000)).toBe(0);
    expect(buffer.subarray(10)).toEqual(bytes);
    expect([file.path, file.stats.nlink]).toEqual([path, 2n]);
    await file.close();
  }
});

test('another process changes names and writes files as this one does', async () => {
  const folder = tempFolder();
  const at = (name: string): Buffer => Buffer.from(join(folder, name));
  const one = share();
  const file = await one.open(at('a'), 'wx', 0o640);
  await file.write(Buffer.from('one, '));
  await file.write(Buffer.from('two'));
  await file.sync();
  await file.close();
  expect(readFileSync(at('a'), 'utf8')).toBe('one, two');
  await expect(one.open(at('a'), 'wx', 0o640)).rejects.toMatchObject({ code: 'EEXIST' });
  await one.change('link', [at('a'), at('b')]);
  expect(await one.lstat(at('b'))).toMatchObject({ nlink: 2n, size: 8n });
  await expect(one.change('link', [at('a'), at('b')])).rejects.toMatchObject({ code: 'EEXIST' });
  await one.change('rename', [at('a'), at('c')]);
  await one.change('unlink', [at('b')]);
  await one.change('utimes', [at('c'), 1e9, 1e9 + 0.5]);
  await one.change('chmod', [at('c'), 0o600]);
  await one.change('mkdir', [at('d')]);
  symlinkSync('c', at('e'));
  expect((await one.lstat(at('e'))).isSymbolicLink()).toBe(true);
  expect(readdirSync(folder)).toEqual(['c', 'd', 'e']);
  expect(statSync(at('c'))).toMatchObject({ mtimeMs: 1e12 + 500, mode: 0o100600 });
  await expect(one.change('rmdir', [at('c')])).rejects.toMatchObject({ code: 'ENOTDIR' });
  // A folder is synced, too.
  const opened = await one.open(folder, constants.O_RDONLY);
  await opened.sync();
  await opened.close();
});

test('calls that hang fail after a time, as do all others, until their process has ended', async () => {
  const folder = tempFolder();
  // Opening a pipe waits for somebody to write to it.
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  writeFileSync(join(folder, 'a.csv'), 'a');
  const one = share(8000);
  const file = await one.open(join(folder, 'a.csv'), constants.O_RDONLY);
  const since = performance.now();
  const hanging = Array.from({ length: 9 }, () => one.open(join(folder, 'pipe'), constants.O_RDONLY));
  const waiting = one.entries(folder);
  for (const call of [...hanging, waiting]) await expect(call).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  expect(performance.now() - since).toBeGreaterThan(7900);
  await expect(one.entries(folder)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  await expect(file.read(Buffer.alloc(1), 0, 1, 0)).rejects.toMatchObject({ code: 'ETIMEDOUT' });
  await file.close();
  await expect.poll(() => one.entries(folder).catch(() => []), { timeout: 60_000 }).toHaveLength(2);
});
