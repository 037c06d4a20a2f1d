import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, found } from './support.js';
import { ERROR, eventually, inotifyWatches, WARN, watching } from './watching.js';

describe('the first scan', () => {
  test('offers what is there, in batches, and says that it was complete', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 600; n += 1) writeFileSync(join(folder, `${n}.csv`), '');
    const watcher = watching({ watch: folder });
    await watcher.start();
    expect(watcher.paths('scan')).toHaveLength(600);
    expect(watcher.offers.map(({ files }) => files.length)).toEqual([500, 100]);
    expect(watcher.scans).toEqual([{ complete: true, files: 600 }]);
    expect(watcher.states).toEqual(['present']);
    expect(watcher.logged).toEqual([]);
  });

  test('waits for the receiver, while what is dropped meanwhile is offered at once', async () => {
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
        offer: async (_files, origin) => {
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

  test('5,000 files take one inotify watch, and none once it has stopped', async () => {
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

describe('a bell', () => {
  test('offers a new file, a change, and what is moved in, with a fresh stamp', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    const path = join(folder, 'new.csv');
    writeFileSync(path, 'one');
    await eventually(() => expect(watcher.offers.at(-1)?.files).toEqual([found(path)]));
    appendFileSync(path, 'two');
    await eventually(() => expect(watcher.offers.at(-1)?.files).toEqual([found(path)]));
    utimesSync(path, 1000, 1000);
    await eventually(() => expect(watcher.offers.at(-1)?.files).toEqual([found(path)]));
    renameSync(path, join(folder, 'moved.csv'));
    await eventually(() => expect(watcher.paths('event')).toContain(join(folder, 'moved.csv')));
    expect(watcher.offers.every(({ origin }) => origin === 'event')).toBe(true);
  });

  test('offers nothing that does not match, nor a done-file', async () => {
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

  test.each([50, 300])('a burst of %i files loses none', async (count) => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    for (let n = 0; n < count; n += 1) writeFileSync(join(folder, `${n}.csv`), 'x');
    await eventually(() => expect(watcher.paths('event')).toHaveLength(count));
    expect(watcher.offers.length).toBeLessThan(count / 5);
  });

  test.each(['a b.csv', `it's "so".csv`, 'a\nb.csv', '[1]{2}(3).csv', '.hidden'])(
    'names the file %j',
    async (name) => {
      const folder = tempFolder();
      const watcher = watching({ watch: folder });
      await watcher.start();
      writeFileSync(join(folder, name), '');
      await eventually(() => expect(watcher.offers.at(-1)?.files).toEqual([found(join(folder, name))]));
    },
  );

  test('for a name that is not UTF-8 has the folder listed', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from('Mé.csv', 'latin1')]);
    writeFileSync(location, 'x');
    await eventually(() =>
      expect(watcher.offers.at(-1)?.files).toEqual([found(`${folder}/M\\xE9.csv`, location)]),
    );
  });

  test('a receiver that fails has the folder scanned instead', async () => {
    const folder = tempFolder();
    const offered: string[] = [];
    const watcher = watching(
      { watch: folder },
      {
        offer: async (files, origin) => {
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

describe('subfolders', () => {
  test('one that appears is listed and watched, and so is what lies below it', async () => {
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

  test('files dropped while the folders are still being made are found', async () => {
    const folder = tempFolder();
    const watcher = watching({ watch: folder });
    await watcher.start();
    for (let n = 0; n < 30; n += 1) {
      mkdirSync(join(folder, `${n}/sub`), { recursive: true });
      writeFileSync(join(folder, `${n}/sub/run.csv`), '');
    }
    await eventually(() => expect(watcher.paths('event')).toHaveLength(30));
  });

  test('one that is deleted and made anew is watched anew', async () => {
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

  test('one that is moved is followed under its new name', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'old'));
    const watcher = watching({ watch: folder });
    await watcher.start();
    renameSync(join(folder, 'old'), join(folder, 'new'));
    await pause(200);
    writeFileSync(join(folder, 'new/a.csv'), '');
    await eventually(() => expect(watcher.paths()).toEqual([join(folder, 'new/a.csv')]));
  });

  test('ignored and linked ones are neither listed nor watched', async () => {
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
      'a linked folder is not followed: watch what it leads to',
    ]);
  });

  test('one that may not be read makes the scan incomplete, is named once, and stops nothing', async () => {
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
        { complete: false, files: 1 },
        { complete: false, files: 1 },
      ]);
      expect(watcher.logged.filter(({ level }) => level === WARN)).toHaveLength(1);
    });
    chmodSync(join(folder, 'closed'), 0o700);
  });
});
