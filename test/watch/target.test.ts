import fs, {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { FolderMemory, SeenFolder } from '../../src/system/mounts.js';
import { checkTarget, createFolders, isTargetThere, prepareTarget, requireMounted } from '../../src/watch/target.js';
import { faults, installFaults } from '../support/disk-faults.js';
import { tempFolder } from '../support/temp-folder.js';

function setUp() {
  const folder = tempFolder();
  const watch = join(folder, 'data');
  mkdirSync(watch);
  const seen = new Map<string, SeenFolder>();
  const memory: FolderMemory = {
    lastSeen: async (path) => seen.get(path),
    async see(path, where) {
      seen.set(path, where);
    },
  };
  const prepare = (path: string, wasUsed = false) =>
    prepareTarget(join(folder, path), { watch, memory, watched: [watch], wasUsed: async () => wasUsed });
  return { folder, watch, prepare, seen, memory };
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

test('a folder whose share is not mounted any more is refused, even if it is not empty and after a restart', async () => {
  const { folder, prepare, seen, memory } = setUp();
  const done = join(folder, 'done');
  const [file, other] = ['done/sub/a.csv', 'other/a.csv'].map((path) => Buffer.from(join(folder, path)));
  await prepare('done');
  expect(seen.get(done)).toMatchObject({ point: expect.any(String) });
  expect(await isTargetThere(file as Buffer, memory)).toBe(true);
  // Nobody knows.
  expect(await isTargetThere(other as Buffer, memory)).toBe(false);
  writeFileSync(join(done, 'a'), '');
  seen.set(done, { point: done, isEmpty: false });
  await expect(prepare('done', true)).rejects.toThrow(`nothing is mounted at ${done}`);
  expect(await isTargetThere(file as Buffer, memory)).toBe(false);
});

test('nothing is written to a watched folder to find out that it is one', async () => {
  const { watch, prepare } = setUp();
  await expect(prepare('data')).rejects.toThrow('it is in a watched folder');
  expect(readdirSync(watch)).toEqual([]);
});

test('folders that are created can be used by those who use the watched ones, whatever the umask', async () => {
  const { folder, watch, prepare } = setUp();
  mkdirSync(join(watch, 'a/b'), { recursive: true });
  const modes: [string, number][] = [
    ['', 0o755],
    ['a', 0o2775],
    ['a/b', 0o750],
  ];
  for (const [path, mode] of modes) chmodSync(join(watch, path), mode);
  const before = process.umask(0o077);
  try {
    await prepare('done');
    const root = Buffer.from(join(folder, 'done'));
    await createFolders(root, Buffer.from(join(folder, 'done/a/b/c.csv')), Buffer.from(watch));
  } finally {
    process.umask(before);
  }
  for (const [path, mode] of modes) expect(statSync(join(folder, 'done', path)).mode & 0o7777).toBe(mode);
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
  mkdirSync(join(watch, 'a/b'), { recursive: true });
  await createFolders(root, Buffer.from(join(folder, 'done/a/b/c.csv')), Buffer.from(watch));
  expect(lstatSync(join(folder, 'done/a/b')).isDirectory()).toBe(true);
  symlinkSync(watch, join(folder, 'done/x'));
  await expect(createFolders(root, Buffer.from(join(folder, 'done/x/c.csv')), Buffer.from(watch))).rejects.toThrow(
    'it is a file or a link',
  );
});

test('a folder that cannot be given to a group for good can still be used by others', async () => {
  installFaults();
  const { folder, watch, prepare } = setUp();
  chmodSync(watch, 0o2775);
  let calls = 0;
  faults.fail = (call) => (call === 'chmod' && ++calls === 1 ? 'EPERM' : undefined);
  const before = process.umask(0o077);
  try {
    await prepare('done');
  } finally {
    process.umask(before);
  }
  expect([calls, statSync(join(folder, 'done')).mode & 0o777]).toEqual([2, 0o775]);
});

test('a folder is looked at before the table of mounts is, so that an automounter mounts it', async () => {
  const { folder, watch, memory, prepare } = setUp();
  await prepare('done');
  const done = join(folder, 'done');
  const { dev } = statSync(done, { bigint: true });
  const real = { statSync: fs.statSync, readFileSync: fs.readFileSync };
  let seen: string[] = [];
  const statSyncSeen = (...args: Parameters<typeof fs.statSync>) => {
    if (args[0] === done) seen.push('folder');
    return real.statSync(...args);
  };
  const readFileSyncSeen = (...args: Parameters<typeof fs.readFileSync>) => {
    if (String(args[0]).includes('mountinfo')) seen.push('mounts');
    return real.readFileSync(...args);
  };
  Object.assign(fs, { statSync: statSyncSeen, readFileSync: readFileSyncSeen });
  syncBuiltinESMExports();
  onTestFinished(() => {
    Object.assign(fs, real);
    syncBuiltinESMExports();
  });
  const looks = [
    () => isTargetThere(Buffer.from(join(done, 'a.csv')), memory),
    () => requireMounted(done, dev, memory),
    () => checkTarget(done, [watch], memory),
  ];
  for (const look of looks) {
    seen = [];
    await look();
    expect(seen.indexOf('folder')).toBeGreaterThanOrEqual(0);
    expect(seen.lastIndexOf('mounts')).toBeGreaterThan(seen.indexOf('folder'));
  }
  await expect(requireMounted(done, dev + 1n, memory)).rejects.toThrow('another disk is mounted there');
});
