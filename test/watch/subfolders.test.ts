import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, eventually, inotifyWatches, WARN, watching } from './support.js';

describe('subfolders', () => {
  test('a new subfolder is listed and watched with everything below it', async () => {
    const folder = tempFolder();
    const made = tempFolder();
    mkdirSync(join(made, 'run.D/data'), { recursive: true });
    writeFileSync(join(made, 'run.D/a.csv'), '');
    writeFileSync(join(made, 'run.D/data/b.csv'), '');
    const watcher = watching({ watch: folder });
    await watcher.start();
    renameSync(join(made, 'run.D'), join(folder, 'run.D'));
    const expected = [join(folder, 'run.D/a.csv'), join(folder, 'run.D/data/b.csv')];
    await eventually(() => expect(watcher.paths('event')).toEqual(expected));
    writeFileSync(join(folder, 'run.D/data/c.csv'), '');
    await eventually(() => expect(watcher.paths('event')).toContain(join(folder, 'run.D/data/c.csv')));
  });

  test('a subfolder created during a scan stays watched after it', async () => {
    const folder = tempFolder();
    writeFileSync(join(folder, 'a.csv'), '');
    let release: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const byEvent: string[] = [];
    const watcher = watching(
      { watch: folder },
      {
        found: async (files, origin) => {
          if (origin === 'scan') await blocked;
          else byEvent.push(...files.map(({ path }) => path));
        },
      },
    );
    const started = watcher.start();
    await eventually(() => expect(watcher.states).toEqual(['present']));
    mkdirSync(join(folder, 'sub'));
    writeFileSync(join(folder, 'sub/b.csv'), '');
    await eventually(() => expect(byEvent).toContain(join(folder, 'sub/b.csv')));
    release();
    await started;
    writeFileSync(join(folder, 'sub/c.csv'), '');
    await eventually(() => expect(byEvent).toContain(join(folder, 'sub/c.csv')));
  });

  test('files written while their folders are being created are found', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    for (let n = 0; n < 30; n += 1) {
      mkdirSync(join(folder, `${n}/sub`), { recursive: true });
      writeFileSync(join(folder, `${n}/sub/run.csv`), '');
    }
    await eventually(() => expect(watcher.paths('event')).toHaveLength(30));
  });

  test('a subfolder that is deleted and created again is watched again', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'sub'));
    const before = inotifyWatches();
    const watcher = watching({ watch: folder });
    await watcher.start();
    for (const name of ['one', 'two', 'three']) {
      rmSync(join(folder, 'sub'), { recursive: true });
      mkdirSync(join(folder, 'sub'));
      await pause(150);
      writeFileSync(join(folder, 'sub', name), '');
      await eventually(() => expect(watcher.paths('event')).toContain(join(folder, 'sub', name)));
    }
    rmSync(join(folder, 'sub'), { recursive: true });
    await eventually(() => expect(inotifyWatches() - before).toBe(1));
  });

  test('a renamed subfolder is watched under its new name', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'old'));
    const watcher = watching({ watch: folder });
    await watcher.start();
    renameSync(join(folder, 'old'), join(folder, 'new'));
    await pause(200);
    writeFileSync(join(folder, 'new/a.csv'), '');
    await eventually(() => expect(watcher.paths()).toEqual([join(folder, 'new/a.csv')]));
  });

  test('a subfolder that is moved elsewhere is no longer watched', async () => {
    const folder = tempFolder();
    const elsewhere = tempFolder();
    mkdirSync(join(folder, 'sub/below'), { recursive: true });
    const before = inotifyWatches();
    const watcher = watching({ watch: folder });
    await watcher.start();
    expect(inotifyWatches() - before).toBe(3);
    renameSync(join(folder, 'sub'), join(elsewhere, 'sub'));
    await eventually(() => expect(inotifyWatches() - before).toBe(1));
  });

  test('ignored and linked subfolders are neither listed nor watched', async () => {
    const folder = tempFolder();
    const elsewhere = tempFolder();
    mkdirSync(join(folder, '.snapshot'));
    symlinkSync(elsewhere, join(folder, 'linked'));
    const before = inotifyWatches();
    const watcher = watching({ watch: folder, ignore: ['**/.*'] });
    await watcher.start();
    expect(inotifyWatches() - before).toBe(1);
    symlinkSync(elsewhere, join(folder, 'linked later'));
    writeFileSync(join(elsewhere, 'a.csv'), '');
    writeFileSync(join(folder, '.snapshot/a.csv'), '');
    writeFileSync(join(folder, 'b.csv'), '');
    await eventually(() => expect(watcher.paths()).toEqual([join(folder, 'b.csv')]));
    expect(watcher.logged.map(({ msg }) => msg)).toEqual([
      'symbolic links to folders are not followed: watch the target instead',
    ]);
  });

  test('a subfolder without read permission is reported once and does not keep the scan from being complete', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'closed'), { mode: 0 });
    writeFileSync(join(folder, 'a.csv'), '');
    await asNobody(async () => {
      const watcher = watching({ watch: folder });
      await watcher.start();
      await watcher.rescan();
      expect(watcher.paths()).toEqual([join(folder, 'a.csv')]);
      expect(watcher.scans).toEqual([
        { complete: true, files: 1 },
        { complete: true, files: 1 },
      ]);
      expect(watcher.logged.filter(({ level }) => level === WARN)).toHaveLength(1);
    });
    chmodSync(join(folder, 'closed'), 0o700);
  });
});
