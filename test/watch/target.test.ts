import { existsSync, lstatSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createFolders, prepareTarget } from '../../src/watch/target.js';
import { tempFolder } from '../support/temp-folder.js';

function setUp() {
  const folder = tempFolder();
  const watch = join(folder, 'data');
  mkdirSync(watch);
  const prepare = (path: string, wasUsed = false) =>
    prepareTarget(join(folder, path), { watched: [watch], wasUsed: async () => wasUsed });
  return { folder, watch, prepare };
}

test('a missing folder is created if its parent exists', async () => {
  const { folder, prepare } = setUp();
  await prepare('done');
  expect(existsSync(join(folder, 'done'))).toBe(true);
  await prepare('done');
});

test('a missing folder is not created without its parent: that may be a share which is not mounted', async () => {
  const { folder, prepare } = setUp();
  await expect(prepare('share/done')).rejects.toThrow(/the folder .*\/share does not exist/);
  expect(existsSync(join(folder, 'share'))).toBe(false);
});

test('a folder that had files before and is missing now is not created again', async () => {
  const { folder, prepare } = setUp();
  await expect(prepare('done', true)).rejects.toThrow('it no longer exists');
  expect(existsSync(join(folder, 'done'))).toBe(false);
});

test('a file is no folder', async () => {
  const { folder, prepare } = setUp();
  writeFileSync(join(folder, 'done'), '');
  await expect(prepare('done')).rejects.toThrow('it is a file, not a folder');
});

test.each(['link', 'link/below'])('a folder that leads into a watched one is refused: %s', async (path) => {
  const { folder, watch, prepare } = setUp();
  mkdirSync(join(watch, 'below'));
  symlinkSync(watch, join(folder, 'link'));
  await expect(prepare(path)).rejects.toThrow('it is in a watched folder');
});

test('a link to a folder that is not watched is followed', async () => {
  const { folder, prepare } = setUp();
  mkdirSync(join(folder, 'real'));
  symlinkSync(join(folder, 'real'), join(folder, 'done'));
  await prepare('done');
});

test('subfolders are created, but not through a link', async () => {
  const { folder, watch } = setUp();
  const root = Buffer.from(join(folder, 'done'));
  mkdirSync(root);
  await createFolders(root, Buffer.from(join(folder, 'done/a/b/c.csv')));
  expect(lstatSync(join(folder, 'done/a/b')).isDirectory()).toBe(true);
  symlinkSync(watch, join(folder, 'done/x'));
  await expect(createFolders(root, Buffer.from(join(folder, 'done/x/c.csv')))).rejects.toThrow(
    'it is a file or a link',
  );
});
