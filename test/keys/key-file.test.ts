import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openKeyFile } from '../../src/keys/rotate.js';
import { tempFolder } from '../support/temp-folder.js';

const isRoot = process.geteuid?.() === 0;
const modeOf = (path: string): number => statSync(path).mode & 0o777;

test('a key is written with mode 0600, whatever mode the old file had', () => {
  const path = join(tempFolder(), 'api-key');
  openKeyFile(path).write('first');
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['first\n', 0o600]);
  chmodSync(path, 0o644);
  openKeyFile(path).write('second');
  expect([readFileSync(path, 'utf8'), modeOf(path)]).toEqual(['second\n', 0o600]);
});

test('the old key stays until the new one has replaced it', () => {
  const path = join(tempFolder(), 'api-key');
  writeFileSync(path, 'old\n');
  const seen: string[] = [];
  const file = openKeyFile(path, (from) => {
    seen.push(readFileSync(path, 'utf8'), readFileSync(from, 'utf8'));
    throw new Error('no more disk');
  });
  expect(() => file.write('new')).toThrow(/cannot write the key.*no more disk/);
  expect(seen).toEqual(['old\n', 'new\n']);
  expect(readFileSync(path, 'utf8')).toBe('old\n');
  expect(existsSync(`${path}.new`)).toBe(false);
});

test('a temporary file left by a crash is removed', () => {
  const path = join(tempFolder(), 'api-key');
  writeFileSync(`${path}.new`, 'half a k');
  openKeyFile(path).write('whole');
  expect(readFileSync(path, 'utf8')).toBe('whole\n');
  expect(existsSync(`${path}.new`)).toBe(false);
});

test('a link stays a link, and its target is replaced or created', () => {
  const folder = tempFolder();
  mkdirSync(join(folder, 'secrets'));
  const link = join(folder, 'api-key');
  symlinkSync(join('secrets', 'key'), link);
  for (const key of ['first', 'second']) {
    const file = openKeyFile(link);
    expect(file.path).toBe(join(folder, 'secrets', 'key'));
    file.write(key);
    expect(lstatSync(link).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(folder, 'secrets', 'key'), 'utf8')).toBe(`${key}\n`);
  }
});

test('a folder or a missing folder is refused before a key is created', () => {
  const folder = tempFolder();
  expect(() => openKeyFile(folder)).toThrow(/it is a folder/);
  expect(() => openKeyFile(join(folder, 'gone', 'api-key'))).toThrow(/ENOENT/);
});

test.runIf(isRoot)('root keeps the owner of the file, and gives a new file to the owner of the folder', () => {
  const folder = tempFolder();
  const path = join(folder, 'api-key');
  chownSync(folder, 1234, 1235);
  openKeyFile(path).write('first');
  expect(statSync(path)).toMatchObject({ uid: 1234, gid: 1235 });
  chownSync(path, 4321, 4322);
  openKeyFile(path).write('second');
  expect(statSync(path)).toMatchObject({ uid: 4321, gid: 4322 });
});

test.runIf(isRoot)(
  'a file of root that a group may read is refused, because mode 0600 would lock out the daemon',
  () => {
    const path = join(tempFolder(), 'api-key');
    writeFileSync(path, 'old\n');
    chownSync(path, 0, 1235);
    chmodSync(path, 0o640);
    expect(() => openKeyFile(path)).toThrow(/readable by a group/);
    expect(readFileSync(path, 'utf8')).toBe('old\n');
  },
);
