import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMatcher } from '../../src/watch/match.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, found, listed } from './support.js';

const present = (files: number) => ({ state: 'present', files, empty: files === 0, unread: [], links: [] });

describe('the listing finds what there is', () => {
  test('files in the folder and below it, with size, time and inode', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, 'one.csv'), '1');
    writeFileSync(join(folder, 'a/b/two.csv'), '22');
    const { files, listing } = await listed(folder);
    expect(files.toSorted((x, y) => x.size - y.size)).toEqual([
      found(join(folder, 'one.csv')),
      found(join(folder, 'a/b/two.csv')),
    ]);
    expect(listing).toEqual(present(2));
  });

  test('only what matches, and nothing from folders that are pruned', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, '.snapshot'));
    writeFileSync(join(folder, '.snapshot/a.csv'), '');
    writeFileSync(join(folder, 'a.csv'), '');
    writeFileSync(join(folder, 'a.log'), '');
    const entered: string[] = [];
    const { files } = await listed(folder, {
      matcher: createMatcher({ files: ['**/*.csv'], ignore: ['**/.*'] }),
      enter: async ({ relative }) => entered.push(relative) > 0,
    });
    expect(files.map(({ path }) => path)).toEqual([join(folder, 'a.csv')]);
    expect(entered).toEqual(['']);
  });

  test('batches hold no more than 500, also across many folders', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 40; n += 1) mkdirSync(join(folder, `d${n}`));
    for (let n = 0; n < 1240; n += 1) writeFileSync(join(folder, `d${n % 40}`, `${n}.csv`), '');
    const { files, batches } = await listed(folder);
    expect(new Set(files.map(({ path }) => path)).size).toBe(1240);
    expect(batches).toEqual([500, 500, 240]);
  });

  test('few stats at once find the same', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 7; n += 1) writeFileSync(join(folder, `${n}.csv`), '');
    expect((await listed(folder, { parallel: 2 })).files).toHaveLength(7);
  });

  test('an empty folder is present and empty', async () => {
    expect((await listed(tempFolder())).listing).toEqual(present(0));
  });

  test('a part of the folder can be listed, with paths as seen from the whole', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, 'a/b/x.csv'), '');
    const matcher = createMatcher({ files: ['a/b/*.csv'], ignore: [] });
    const { files } = await listed(folder, { under: 'a', matcher });
    expect(files.map(({ path }) => path)).toEqual([join(folder, 'a/b/x.csv')]);
  });

  test('a listing that is aborted ends', async () => {
    const aborted = AbortSignal.abort(new Error('enough'));
    await expect(listed(tempFolder(), { signal: aborted })).rejects.toThrow('enough');
  });
});

describe('any name is a name', () => {
  test.each([
    'a b.csv',
    `it's "so".csv`,
    'a\nb.csv',
    '[1]{2}(3).csv',
    '.hidden',
    'ü – №.csv',
    '\u{fffd}.csv',
    'a\\b',
  ])('%j', async (name) => {
    const folder = tempFolder();
    writeFileSync(join(folder, name), 'x');
    expect((await listed(folder)).files).toEqual([found(join(folder, name))]);
  });

  test('bytes that are not UTF-8 are kept as bytes, and shown as \\xNN', async () => {
    const folder = tempFolder();
    const name = Buffer.from('Mé ü.csv', 'latin1');
    const location = Buffer.concat([Buffer.from(`${folder}/`), name]);
    writeFileSync(location, 'x');
    writeFileSync(join(folder, 'plain ü.csv'), 'y');
    const { files } = await listed(folder, { matcher: createMatcher({ files: ['*.csv'], ignore: [] }) });
    expect(files).toHaveLength(2);
    expect(files).toContainEqual(found(`${folder}/M\\xE9 \\xFC.csv`, location));
    expect(files).toContainEqual(found(join(folder, 'plain ü.csv')));
  });

  test('what lies in a folder whose name is not UTF-8 is found', async () => {
    const folder = tempFolder();
    const sub = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x64, 0xff])]);
    mkdirSync(sub);
    const location = Buffer.concat([sub, Buffer.from('/ä.csv')]);
    writeFileSync(location, 'x');
    expect((await listed(folder)).files).toEqual([found(`${folder}/d\\xFF/ä.csv`, location)]);
  });
});

describe('links', () => {
  test('a linked file is a file, a linked folder is named and not followed', async () => {
    const folder = tempFolder();
    const elsewhere = tempFolder();
    writeFileSync(join(elsewhere, 'real.csv'), 'x');
    symlinkSync(join(elsewhere, 'real.csv'), join(folder, 'link.csv'));
    symlinkSync(elsewhere, join(folder, 'linked'));
    symlinkSync(folder, join(folder, 'circle'));
    symlinkSync(join(folder, 'nowhere'), join(folder, 'dangling.csv'));
    symlinkSync(join(folder, 'self'), join(folder, 'self'));
    const { files, listing } = await listed(folder);
    expect(files).toEqual([found(join(folder, 'link.csv'))]);
    expect(listing).toMatchObject({ state: 'present', unread: [] });
    expect(listing.state === 'present' && listing.links.toSorted()).toEqual([
      join(folder, 'circle'),
      join(folder, 'linked'),
    ]);
  });
});

describe('what cannot be listed is said', () => {
  test('a folder that is not there is missing', async () => {
    const { listing } = await listed(join(tempFolder(), 'none'));
    expect(listing).toEqual({ state: 'missing', reason: 'it is not there' });
  });

  test('a file in the place of the folder makes it unreadable', async () => {
    const file = join(tempFolder(), 'file');
    writeFileSync(file, '');
    expect((await listed(file)).listing).toMatchObject({ state: 'unreadable' });
  });

  test('a folder that may not be read is unreadable', async () => {
    const folder = join(tempFolder(), 'closed');
    mkdirSync(folder, { mode: 0 });
    const { listing } = await asNobody(() => listed(folder));
    expect(listing).toEqual({ state: 'unreadable', reason: 'this user may not read it' });
    chmodSync(folder, 0o700);
  });

  test('a subfolder that may not be read makes the listing incomplete, and the rest is listed', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'closed'), { mode: 0 });
    mkdirSync(join(folder, 'open'));
    writeFileSync(join(folder, 'open/a.csv'), '');
    const { files, listing } = await asNobody(() => listed(folder));
    expect(files).toHaveLength(1);
    expect(listing).toMatchObject({
      state: 'present',
      unread: [{ path: join(folder, 'closed'), reason: 'this user may not read it' }],
    });
    chmodSync(join(folder, 'closed'), 0o700);
  });

  test('what vanishes while it is listed is passed over', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'going'));
    writeFileSync(join(folder, 'a.csv'), '');
    writeFileSync(join(folder, 'b.csv'), '');
    // One stat at a time, and the first batch of names is read before `enter` is asked about `going`.
    const { listing } = await listed(folder, {
      enter: async ({ relative }) => {
        if (relative === 'going') rmSync(join(folder, 'going'), { recursive: true });
        return true;
      },
      matcher: {
        ...createMatcher({ files: ['**/*'], ignore: [] }),
        takes(path) {
          if (path === 'a.csv') renameSync(join(folder, 'a.csv'), join(tempFolder(), 'a.csv'));
          return true;
        },
      },
    });
    expect(listing).toMatchObject({ state: 'present', files: 1, unread: [] });
  });
});
