import { chmodSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, eventually, WARN, watching } from './support.js';

describe('a missing folder', () => {
  test('is reported and retried, then scanned and watched', async () => {
    const folder = join(tempFolder(), 'later');
    const watcher = watching({ watch: folder });
    await watcher.start();
    expect(watcher.states).toEqual(['missing']);
    expect(watcher.scans).toEqual([]);
    expect(watcher.logged).toMatchObject([{ level: WARN, reason: 'it does not exist' }]);

    mkdirSync(folder);
    writeFileSync(join(folder, 'a.csv'), '');
    await eventually(() => expect(watcher.paths('scan')).toEqual([join(folder, 'a.csv')]));
    expect(watcher.states).toEqual(['missing', 'present']);
    expect(watcher.logged.at(-1)?.msg).toBe('the folder is available again');
    writeFileSync(join(folder, 'b.csv'), '');
    await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'b.csv')]));
  });

  test('is noticed at once if it disappears while it is watched', async () => {
    const above = tempFolder();
    const folder = join(above, 'data');
    mkdirSync(folder);
    writeFileSync(join(folder, 'a.csv'), '');
    const watcher = watching({ watch: folder });
    await watcher.start();
    renameSync(folder, join(above, 'away'));
    await eventually(() => expect(watcher.states).toEqual(['present', 'missing']));
    renameSync(join(above, 'away'), folder);
    await eventually(() => expect(watcher.states).toEqual(['present', 'missing', 'present']));
    writeFileSync(join(folder, 'b.csv'), '');
    await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'b.csv')]));
  });

  test('is watched again if another folder takes its place', async () => {
    const above = tempFolder();
    const folder = join(above, 'data');
    mkdirSync(folder);
    const watcher = watching({ watch: folder });
    const neighbour = watching({ watch: folder });
    await Promise.all([watcher.start(), neighbour.start()]);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    await eventually(() => expect(watcher.scans.length).toBeGreaterThan(1));
    await eventually(() => expect(neighbour.scans.length).toBeGreaterThan(1));
    writeFileSync(join(folder, 'b.csv'), '');
    await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'b.csv')]));
    await eventually(() => expect(neighbour.paths('event')).toEqual([join(folder, 'b.csv')]));
  });
});

describe('a folder that cannot be read', () => {
  test('because a file has its name is reported once', async () => {
    const folder = join(tempFolder(), 'data');
    writeFileSync(folder, '');
    const watcher = watching({ watch: folder });
    await watcher.start();
    await watcher.rescan();
    await watcher.rescan();
    expect(watcher.states).toEqual(['unreadable']);
    expect(watcher.logged).toHaveLength(1);
    rmSync(folder);
    mkdirSync(folder);
    await watcher.rescan();
    expect(watcher.states).toEqual(['unreadable', 'present']);
  });

  test('because of its permissions is reported with that reason', async () => {
    const above = tempFolder();
    chmodSync(above, 0o755);
    const folder = join(above, 'closed');
    mkdirSync(folder, { mode: 0 });
    await asNobody(async () => {
      const watcher = watching({ watch: folder });
      await watcher.start();
      expect(watcher.states).toEqual(['unreadable']);
      expect(watcher.logged).toMatchObject([{ level: WARN, reason: 'permission denied' }]);
    });
    chmodSync(folder, 0o700);
  });
});
