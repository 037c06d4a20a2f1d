import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { reasonOf } from '../../src/watch/identify.js';
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
    expect(watcher.states).toEqual(['present', 'missing', 'missing']);
    expect(watcher.logged.at(-1)?.reason).toContain('had files, and is empty now');
    writeFileSync(join(folder, 'a.csv'), '');
    await watcher.rescan();
    expect(watcher.states).toEqual(['present', 'missing', 'missing', 'present']);
    // Files that people remove while it is mounted are no reason for an alarm.
    rmSync(join(folder, 'a.csv'));
    await watcher.rescan();
    expect(watcher.states).toEqual(['present', 'missing', 'missing', 'present']);
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

describe('how a folder is polled', () => {
  const NO_EVENTS = { ready: Promise.resolve(), close: () => undefined };

  async function polled(system: Parameters<typeof watching>[2], work?: (folder: string) => void) {
    const folder = tempFolder();
    const seen: unknown[] = [];
    const watcher = watching({ watch: folder, poll: 'auto' }, { polled: (one) => void seen.push(one) }, system);
    await watcher.start();
    for (let n = 0; n < 3; n++) {
      work?.(folder);
      await watcher.rescan();
    }
    return seen.at(-1);
  }

  let files = 0;
  const write = (folder: string): void => writeFileSync(join(folder, `${files++}.csv`), '');

  test.each([
    ['nfs4', 'network share (nfs4)'],
    [undefined, 'FUSE file system'],
  ])('on a mount that may hang (%s), every 10 s, without events', async (share, because) => {
    const slowMount = () => ({ id: '9', point: '/mnt/nas', share, mayHang: true });
    const watchFolder = () => expect.unreachable('a folder that may hang is watched');
    expect(await polled({ slowMount, watchFolder }, write)).toEqual({ everyMs: 10_000, because });
  });

  test('on a disk with events, every minute', async () => {
    expect(await polled({}, write)).toEqual({ everyMs: 60_000, because: undefined });
  });

  test('if files appear without events, every 10 s', async () => {
    const watchFolder = () => NO_EVENTS;
    expect(await polled({ watchFolder }, write)).toEqual({ everyMs: 10_000, because: 'no events for changes' });
  });

  test('if nothing changes, the lack of events says nothing', async () => {
    expect(await polled({ watchFolder: () => NO_EVENTS })).toEqual({ everyMs: 60_000, because: undefined });
  });
});

test('a stale handle is recognised, although Node has no name for it', () => {
  const stale = Object.assign(new Error('Unknown system error -116, stat'), { code: 'Unknown system error -116' });
  expect(reasonOf(stale)).toBe('the disk or share does not respond (ESTALE)');
});
