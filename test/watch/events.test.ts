import { chmodSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, onTestFinished, test } from 'vitest';
import { createFolderWatches, createPendingEvents, watchFolder } from '../../src/watch/events.js';
import { silentLog } from '../support/silent-log.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, eventually, inotifyWatches, never } from './support.js';

const folderOf = (path: string, id = '1') => ({ path, location: path, relative: '', id });

function someWatches(root: string) {
  const events: string[] = [];
  const watches = createFolderWatches({
    root,
    event: (folder, name) => void events.push(`${folder}/${name}`),
    slowMount: () => undefined,
    log: silentLog(),
    signal: never,
  });
  onTestFinished(() => watches.removeAll());
  return { ...watches, events };
}

describe('folder watches', () => {
  test('a folder that replaces a watched one is watched, even if another instrument still watches the old one', async () => {
    const folder = join(tempFolder(), 'data');
    mkdirSync(folder);
    const watches = someWatches(folder);
    const other = someWatches(folder);
    await Promise.all([watches.add(folderOf(folder, 'old')), other.add(folderOf(folder, 'old'))]);
    rmSync(folder, { recursive: true });
    mkdirSync(folder);
    await watches.add(folderOf(folder, 'new'));
    writeFileSync(join(folder, 'a.csv'), '');
    await eventually(() => expect(watches.events).toContain(join(folder, 'a.csv')));
    expect(watches.has(folderOf(folder, 'new'))).toBe(true);
    expect(watches.has(folderOf(folder, 'old'))).toBe(false);
  });

  test('a folder is removed with everything below it, and a scan removes every folder that it did not find', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    mkdirSync(join(folder, 'ab'));
    const before = inotifyWatches();
    const watches = someWatches(folder);
    for (const name of ['', '/a', '/a/b', '/ab']) await watches.add(folderOf(folder + name));
    expect(inotifyWatches() - before).toBe(4);
    watches.remove(join(folder, 'a'));
    await eventually(() => expect(inotifyWatches() - before).toBe(2));
    watches.beginScan();
    await watches.add(folderOf(folder));
    watches.endScan();
    await eventually(() => expect(inotifyWatches() - before).toBe(1));
  });

  test('an event in the parent of a missing folder ends the watch', async () => {
    const parent = tempFolder();
    const watches = someWatches(parent);
    const gone = folderOf(join(parent, 'gone'));
    await watches.add(gone);
    await pause(50);
    writeFileSync(join(parent, 'a.csv'), '');
    await eventually(() => expect(watches.has(gone)).toBe(false));
    expect(watches.events).toEqual([]);
  });
});

test('a watch that the system refuses ends with the error, and an error after closing has no effect', async () => {
  const parent = tempFolder();
  chmodSync(parent, 0o755);
  mkdirSync(join(parent, 'closed/data'), { recursive: true });
  chmodSync(join(parent, 'closed'), 0);
  const errors: unknown[] = [];
  const open = () =>
    watchFolder(join(parent, 'closed/data'), {
      event: () => undefined,
      ended: (error) => void errors.push(error),
    });
  await asNobody(async () => {
    const refused = open();
    await refused.ready;
    expect(errors).toMatchObject([{ code: 'EACCES' }]);
    refused.close();
    const closed = open();
    closed.close();
    await closed.ready;
    await pause(50);
    expect(errors).toHaveLength(1);
  });
  chmodSync(join(parent, 'closed'), 0o700);
});

describe('pending events', () => {
  test('are grouped by folder and name, and taken once', () => {
    const pending = createPendingEvents();
    pending.add('/a', 'x');
    pending.add('/a', 'x');
    pending.add('/b', 'y');
    expect(pending.take()).toEqual(
      new Map([
        ['/a', new Set(['x'])],
        ['/b', new Set(['y'])],
      ]),
    );
    expect(pending.take().size).toBe(0);
  });

  test('with too many names, or an unusable name, stand for the whole folder', () => {
    const pending = createPendingEvents();
    for (let n = 0; n < 2000; n += 1) pending.add('/few', String(n));
    for (let n = 0; n < 2001; n += 1) pending.add('/many', String(n));
    pending.add('/unnamed', undefined);
    pending.add('/unnamed', 'x');
    pending.add('/bytes', 'M\ufffd.csv');
    const { few, ...rest } = Object.fromEntries([...pending.take()].map(([folder, names]) => [folder.slice(1), names]));
    expect(few).toHaveProperty('size', 2000);
    expect(rest).toEqual({ many: 'all', unnamed: 'all', bytes: 'all' });
  });
});
