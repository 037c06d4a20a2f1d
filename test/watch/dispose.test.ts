import { createHash } from 'node:crypto';
import {
  existsSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { dispose, PRIVATE_PREFIX } from '../../src/watch/dispose.js';
import { tempFolder } from '../support/temp-folder.js';

const sha256 = (text: string) => createHash('sha256').update(text).digest('hex');
const PRIVATE = `${PRIVATE_PREFIX}7-1`;

/** A folder with one filed file, `a.csv`, and a folder for files that are done. */
function setUp(text = 'filed') {
  const folder = tempFolder();
  const [data, done] = [join(folder, 'data'), join(folder, 'done')];
  mkdirSync(data);
  const path = join(data, 'a.csv');
  writeFileSync(path, text);
  return {
    ...{ data, done, path, aside: join(data, PRIVATE) },
    target: join(done, 'sub/a.csv'),
    file: { path, sha256: sha256('filed'), privateName: PRIVATE },
  };
}

/** On another file system than the temporary folder, if there is one. */
function otherFileSystem(): string | undefined {
  try {
    const folder = mkdtempSync('/dev/shm/labfeed-');
    onTestFinished(() => rmSync(folder, { recursive: true }));
    return statSync(folder).dev === statSync(tempFolder()).dev ? undefined : folder;
  } catch {
    return undefined;
  }
}

describe('moving', () => {
  test('a filed file gets to its target, with its time, and nothing else is left', async () => {
    const { file, data, path, target } = setUp();
    utimesSync(path, 1e9, 1e9);
    expect(await dispose(file, target)).toEqual({ outcome: 'moved', to: target });
    expect(readFileSync(target, 'utf8')).toBe('filed');
    expect(statSync(target).mtimeMs).toBe(1e12);
    expect(readdirSync(data)).toEqual([]);
  });

  test('works across file systems', async () => {
    const other = otherFileSystem();
    if (other === undefined) return console.warn('/dev/shm is not another file system: not tried');
    const { file, data, path } = setUp();
    utimesSync(path, 1e9, 1e9);
    const target = join(other, 'a.csv');
    expect(await dispose(file, target)).toEqual({ outcome: 'moved', to: target });
    expect(readFileSync(target, 'utf8')).toBe('filed');
    expect(statSync(target).mtimeMs).toBe(1e12);
    expect([...readdirSync(data), ...readdirSync(other)]).toEqual(['a.csv']);
  });

  test('never overwrites: the next free name is taken', async () => {
    const { file, done, target } = setUp();
    mkdirSync(join(done, 'sub'), { recursive: true });
    writeFileSync(target, 'other');
    writeFileSync(join(done, 'sub/a (2).csv'), 'another');
    expect(await dispose(file, target)).toEqual({ outcome: 'moved', to: join(done, 'sub/a (3).csv') });
    expect(readFileSync(target, 'utf8')).toBe('other');
  });

  test.each([
    ['the target folder is a file', (done: string) => writeFileSync(done, '')],
    ['the target folder is read-only', (done: string) => mkdirSync(done, { mode: 0o500 })],
  ])('if %s, the file stays where it was, with an error that says so', async (name, spoil) => {
    // Root may write everywhere.
    if (process.geteuid?.() === 0 && name.includes('read-only')) return;
    const { file, data, done, path, target } = setUp();
    spoil(done);
    await expect(dispose(file, target)).rejects.toThrow(/^cannot move .*a\.csv to .* \(E/);
    expect(readFileSync(path, 'utf8')).toBe('filed');
    expect(readdirSync(data)).toEqual(['a.csv']);
  });
});

test('deleting removes the file', async () => {
  const { file, data } = setUp();
  expect(await dispose(file, undefined)).toEqual({ outcome: 'deleted' });
  expect(readdirSync(data)).toEqual([]);
});

for (const action of ['move', 'delete'] as const) {
  const targetOf = (scene: ReturnType<typeof setUp>) => (action === 'move' ? scene.target : undefined);

  test(`a byte that was not filed is never lost: a changed file is put back (${action})`, async () => {
    const scene = setUp('filed, and more');
    expect(await dispose(scene.file, targetOf(scene))).toEqual({ outcome: 'changed' });
    expect(readFileSync(scene.path, 'utf8')).toBe('filed, and more');
    expect(readdirSync(scene.data)).toEqual(['a.csv']);
  });

  test(`a file that is gone is reported as gone (${action})`, async () => {
    const scene = setUp();
    rmSync(scene.path);
    expect(await dispose(scene.file, targetOf(scene))).toEqual({ outcome: 'gone' });
  });

  test(`a link and the file that it points to stay (${action})`, async () => {
    const scene = setUp();
    renameSync(scene.path, join(scene.data, 'real.csv'));
    symlinkSync('real.csv', scene.path);
    await expect(dispose(scene.file, targetOf(scene))).rejects.toThrow('is a link, so it stays where it is');
    expect(readdirSync(scene.data).toSorted()).toEqual(['a.csv', 'real.csv']);
  });

  test(`after a crash with the file under its private name, it is completed, and a new file at the path stays (${action})`, async () => {
    const scene = setUp();
    renameSync(scene.path, scene.aside);
    writeFileSync(scene.path, 'the next run');
    const { outcome } = await dispose(scene.file, targetOf(scene));
    expect(outcome).toBe(action === 'move' ? 'moved' : 'deleted');
    expect(readFileSync(scene.path, 'utf8')).toBe('the next run');
    expect(readdirSync(scene.data)).toEqual(['a.csv']);
  });

  test(`a changed file that cannot go back to its path gets another name there (${action})`, async () => {
    const scene = setUp('filed, and more');
    renameSync(scene.path, scene.aside);
    writeFileSync(scene.path, 'the next run');
    expect(await dispose(scene.file, targetOf(scene))).toEqual({ outcome: 'changed' });
    expect(readFileSync(scene.path, 'utf8')).toBe('the next run');
    expect(readFileSync(join(scene.data, 'a (2).csv'), 'utf8')).toBe('filed, and more');
    expect(existsSync(scene.aside)).toBe(false);
  });
}

test('after a crash between the link and the removal of the private name, the file is moved once', async () => {
  const { file, data, done, path, aside, target } = setUp();
  renameSync(path, aside);
  mkdirSync(join(done, 'sub'), { recursive: true });
  linkSync(aside, target);
  expect(await dispose(file, target)).toEqual({ outcome: 'moved', to: target });
  expect(readdirSync(join(done, 'sub'))).toEqual(['a.csv']);
  expect(readdirSync(data)).toEqual([]);
});

test('after a crash that came after the move, the move is known', async () => {
  const { file, target } = setUp();
  await dispose(file, target);
  expect(await dispose(file, target)).toEqual({ outcome: 'moved', to: target });
});
