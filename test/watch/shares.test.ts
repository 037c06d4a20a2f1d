import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { mount, TMPFS } from '../support/mount.js';
import { tempFolder } from '../support/temp-folder.js';
import { rememberFolders, WARN, watching } from './support.js';

describe.each([
  ['another file system', () => TMPFS],
  ['a folder of the same one', () => ['--bind', tempFolder()]],
])('a folder where %s was mounted', (_what, args) => {
  test('is missing without its mount, also after a restart, until there is a file in it', async ({ skip }) => {
    const folder = tempFolder();
    const { folders, memory } = rememberFolders();
    const unmount = mount(folder, args(), skip);
    writeFileSync(join(folder, 'a.csv'), '');
    const first = watching({ watch: folder }, { memory });
    await first.start();
    unmount();
    await first.rescan();
    expect(first.states).toEqual(['present', 'missing']);
    await first.stop();
    const second = watching({ watch: folder }, { memory });
    await second.start();
    expect([second.states, second.scans]).toEqual([['missing'], []]);
    expect(second.logged).toMatchObject([
      { level: WARN, reason: expect.stringContaining(`nothing is mounted at ${folder}`) },
    ]);
    expect(folders.get(folder)).toEqual({ point: folder, isEmpty: false });
    writeFileSync(join(folder, 'b.csv'), '');
    await second.rescan();
    expect([second.states, second.scans]).toEqual([['missing', 'present'], [{ complete: true, files: 1 }]]);
    // From now on, it is a folder of this disk, which may be empty.
    rmSync(join(folder, 'b.csv'));
    await second.rescan();
    expect(second.states).toEqual(['missing', 'present']);
  });

  test('is missing if it comes back empty, until its files are there', async ({ skip }) => {
    const folder = tempFolder();
    const { memory } = rememberFolders();
    const unmount = mount(folder, args(), skip);
    writeFileSync(join(folder, 'a.csv'), '');
    const watcher = watching({ watch: folder }, { memory });
    await watcher.start();
    unmount();
    await watcher.rescan();
    mount(folder, TMPFS, skip);
    await watcher.rescan();
    expect(watcher.states).toEqual(['present', 'missing']);
    writeFileSync(join(folder, 'a.csv'), '');
    await watcher.rescan();
    expect(watcher.states).toEqual(['present', 'missing', 'present']);
    // Files that people remove while it is mounted are no reason for an alarm.
    rmSync(join(folder, 'a.csv'));
    await watcher.rescan();
    expect(watcher.states).toEqual(['present', 'missing', 'present']);
  });
});

test('a share that has come back empty is missing after a restart, too, and says so', async ({ skip }) => {
  const folder = tempFolder();
  const { memory } = rememberFolders();
  mount(folder, TMPFS, skip);
  writeFileSync(join(folder, 'a.csv'), '');
  const first = watching({ watch: folder }, { memory });
  await first.start();
  await first.stop();
  rmSync(join(folder, 'a.csv'));
  const second = watching({ watch: folder }, { memory });
  await second.start();
  expect(second.states).toEqual(['missing']);
  expect(second.logged).toMatchObject([{ reason: expect.stringContaining('had files, and is empty now') }]);
});
