import fs, { appendFileSync, renameSync, utimesSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';
import { ERROR, eventually, found, inotifyWatches, watching } from './support.js';

describe('the first scan', () => {
  test('hands over existing files in batches and reports that it was complete', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 600; n += 1) writeFileSync(join(folder, `${n}.csv`), '');
    const watcher = watching({ watch: folder });
    await watcher.start();
    expect(watcher.paths('scan')).toHaveLength(600);
    expect(watcher.batches.map(({ files }) => files.length)).toEqual([500, 100]);
    expect(watcher.scans).toEqual([{ complete: true, files: 600 }]);
    expect(watcher.states).toEqual(['present']);
    expect(watcher.logged).toEqual([]);
  });

  test('waits for the receiver, while files that arrive meanwhile are handed over at once', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 600; n += 1) writeFileSync(join(folder, `${n}.csv`), '');
    let release: () => void = () => undefined;
    const blocked = new Promise<void>((resolve) => {
      release = resolve;
    });
    const origins: string[] = [];
    const watcher = watching(
      { watch: folder },
      {
        found: async (_files, origin) => {
          origins.push(origin);
          if (origin === 'scan') await blocked;
        },
      },
    );
    const started = watcher.start();
    await eventually(() => expect(origins).toEqual(['scan']));
    expect(watcher.states).toEqual(['present']);
    writeFileSync(join(folder, 'live.csv'), '');
    await eventually(() => expect(origins).toEqual(['scan', 'event']));
    release();
    await started;
    expect(origins).toEqual(['scan', 'event', 'scan']);
  });

  test('5,000 files need one inotify watch, and none after the watcher has stopped', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 5000; n += 1) writeFileSync(join(folder, `${n}.csv`), '');
    const before = inotifyWatches();
    const watcher = watching({ watch: folder });
    await watcher.start();
    expect(inotifyWatches() - before).toBe(1);
    await watcher.stop();
    await eventually(() => expect(inotifyWatches()).toBe(before));
  });
});

describe('file events', () => {
  test('hand over a new file, a change and a renamed file, with the current stamp', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    const path = join(folder, 'new.csv');
    writeFileSync(path, 'one');
    await eventually(() => expect(watcher.batches.at(-1)?.files).toEqual([found(path)]));
    appendFileSync(path, 'two');
    await eventually(() => expect(watcher.batches.at(-1)?.files).toEqual([found(path)]));
    utimesSync(path, 1000, 1000);
    await eventually(() => expect(watcher.batches.at(-1)?.files).toEqual([found(path)]));
    renameSync(path, join(folder, 'moved.csv'));
    await eventually(() => expect(watcher.paths('event')).toContain(join(folder, 'moved.csv')));
    expect(watcher.batches.every(({ origin }) => origin === 'event')).toBe(true);
  });

  test('hand over neither files that do not match nor done-files', async () => {
    const folder = tempFolder();
    const watcher = watching({
      watch: folder,
      files: ['**/*.csv*'],
      ignore: ['**/~*'],
      ready: { doneFile: '{name}.done' },
    });
    await watcher.start();
    for (const name of ['a.log', '~b.csv', 'c.csv.done', 'd.csv']) writeFileSync(join(folder, name), '');
    await eventually(() => expect(watcher.paths()).toContain(join(folder, 'd.csv')));
    expect(watcher.paths()).toEqual([join(folder, 'd.csv')]);
  });

  test.each([50, 300])('a burst of %i files is handed over completely', async (count) => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    for (let n = 0; n < count; n += 1) writeFileSync(join(folder, `${n}.csv`), 'x');
    await eventually(() => expect(watcher.paths('event')).toHaveLength(count));
    expect(watcher.batches.length).toBeLessThan(count / 5);
  });

  test.each(['a b.csv', `it's "so".csv`, 'a\nb.csv', '[1]{2}(3).csv', '.hidden'])('name the file %j', async (name) => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    writeFileSync(join(folder, name), '');
    await eventually(() => expect(watcher.batches.at(-1)?.files).toEqual([found(join(folder, name))]));
  });

  test('with a name that is not UTF-8 cause a listing of the folder', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('Mé.csv', 'latin1')]);
    writeFileSync(location, 'x');
    await eventually(() => expect(watcher.batches.at(-1)?.files).toEqual([found(`${folder}/M\\xE9.csv`, location)]));
  });

  test('do not make chokidar list the folder, which would use a whole core with many files', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    const listings = vi.spyOn(fs.promises, 'readdir');
    syncBuiltinESMExports();
    onTestFinished(() => {
      listings.mockRestore();
      syncBuiltinESMExports();
    });
    writeFileSync(join(folder, 'a.csv'), '');
    await eventually(() => expect(watcher.paths('event')).toEqual([join(folder, 'a.csv')]));
    expect(listings).not.toHaveBeenCalled();
  });

  test('cause a rescan if the receiver fails', async () => {
    const folder = tempFolder();
    const offered: string[] = [];
    const watcher = watching(
      { watch: folder },
      {
        found: async (files, origin) => {
          if (origin === 'event') throw new Error('the journal is busy');
          offered.push(...files.map(({ path }) => path));
        },
      },
    );
    await watcher.start();
    writeFileSync(join(folder, 'a.csv'), '');
    await eventually(() => expect(offered).toEqual([join(folder, 'a.csv')]));
    expect(watcher.logged.filter(({ level }) => level === ERROR).length).toBeGreaterThan(0);
  });
});
