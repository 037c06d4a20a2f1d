import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createMatcher } from '../../src/watch/match.js';
import { addUnmatched, type Unmatched } from '../../src/watch/scan.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, found, listed, watching } from './support.js';

const present = (files: number) => ({ state: 'present', files, empty: files === 0, unread: [], links: [] });

describe('a listing', () => {
  test('finds files in the folder and below it, with size, time and inode', async () => {
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

  test('finds only files that match, and does not enter ignored folders', async () => {
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

  test('reports files with private names, also with a name that is not UTF-8 and in folders below', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'sub'));
    const names = ['.labfeed-0a1b2c3d-a.csv', 'sub/.labfeed-0a1b2c3d-b.csv'].map((name) => join(folder, name));
    for (const name of names) writeFileSync(name, '');
    const bytes = Buffer.from(join(folder, '.labfeed-0a1b2c3d-caf\u00e9'), 'latin1');
    writeFileSync(bytes, '');
    const hidden: string[] = [];
    const { files } = await listed(folder, {
      matcher: createMatcher({ files: ['**/*'], ignore: ['**/.*'] }),
      hidden: (location) => hidden.push(Buffer.from(location).toString('latin1')),
    });
    expect(files).toEqual([]);
    expect(hidden.toSorted()).toEqual([...names, bytes.toString('latin1')].toSorted());
  });

  test('returns batches of at most 500 files, even across many folders', async () => {
    const folder = tempFolder();
    for (let n = 0; n < 40; n += 1) mkdirSync(join(folder, `d${n}`));
    for (let n = 0; n < 1240; n += 1) writeFileSync(join(folder, `d${n % 40}`, `${n}.csv`), '');
    const { files, batches } = await listed(folder);
    expect(new Set(files.map(({ path }) => path)).size).toBe(1240);
    expect(batches).toEqual([500, 500, 240]);
  });

  test('of an empty folder says that it is present and empty', async () => {
    expect((await listed(tempFolder())).listing).toEqual(present(0));
  });

  test('of a subfolder matches paths relative to the watched folder', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'a/b'), { recursive: true });
    writeFileSync(join(folder, 'a/b/x.csv'), '');
    const matcher = createMatcher({ files: ['a/b/*.csv'], ignore: [] });
    const { files } = await listed(folder, { under: 'a', matcher });
    expect(files.map(({ path }) => path)).toEqual([join(folder, 'a/b/x.csv')]);
  });

  test('ends when it is aborted', async () => {
    const aborted = AbortSignal.abort(new Error('enough'));
    await expect(listed(tempFolder(), { signal: aborted })).rejects.toThrow('enough');
  });
});

describe('file names', () => {
  test.each(['a b.csv', `it's "so".csv`, 'a\nb.csv', '[1]{2}(3).csv', '.hidden', 'ü – №.csv', '\u{fffd}.csv', 'a\\b'])(
    '%j',
    async (name) => {
      const folder = tempFolder();
      writeFileSync(join(folder, name), 'x');
      expect((await listed(folder)).files).toEqual([found(join(folder, name))]);
    },
  );

  test('bytes that are not UTF-8 are kept as bytes and shown as \\xNN', async () => {
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

  test('files in a folder whose name is not UTF-8 are found', async () => {
    const folder = tempFolder();
    const sub = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0x64, 0xff])]);
    mkdirSync(sub);
    const location = Buffer.concat([sub, Buffer.from('/ä.csv')]);
    writeFileSync(location, 'x');
    expect((await listed(folder)).files).toEqual([found(`${folder}/d\\xFF/ä.csv`, location)]);
  });
});

describe('links', () => {
  test('linked files are found; linked folders are reported and not followed', async () => {
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

describe('problems', () => {
  test('a folder that does not exist is missing', async () => {
    const { listing } = await listed(join(tempFolder(), 'none'));
    expect(listing).toEqual({ state: 'missing', reason: 'it does not exist' });
  });

  test('a file in place of the folder makes it unreadable', async () => {
    const file = join(tempFolder(), 'file');
    writeFileSync(file, '');
    expect((await listed(file)).listing).toMatchObject({ state: 'unreadable' });
  });

  test('a folder without read permission is unreadable', async () => {
    const folder = join(tempFolder(), 'closed');
    mkdirSync(folder, { mode: 0 });
    const { listing } = await asNobody(() => listed(folder));
    expect(listing).toEqual({ state: 'unreadable', reason: 'permission denied' });
    chmodSync(folder, 0o700);
  });

  test('a subfolder without read permission makes the listing incomplete, and the rest is listed', async () => {
    const folder = tempFolder();
    chmodSync(folder, 0o755);
    mkdirSync(join(folder, 'closed'), { mode: 0 });
    mkdirSync(join(folder, 'open'));
    writeFileSync(join(folder, 'open/a.csv'), '');
    const { files, listing } = await asNobody(() => listed(folder));
    expect(files).toHaveLength(1);
    expect(listing).toMatchObject({
      state: 'present',
      unread: [{ path: join(folder, 'closed'), reason: 'permission denied' }],
    });
    chmodSync(join(folder, 'closed'), 0o700);
  });

  test('files and folders that disappear during the listing are skipped', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'going'));
    writeFileSync(join(folder, 'a.csv'), '');
    writeFileSync(join(folder, 'b.csv'), '');
    // The first names are read before `enter` is called for `going`.
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

describe('unmatched files', () => {
  test('are counted by extension, without ignored files, done-files and files of other instruments', async () => {
    const folder = tempFolder();
    mkdirSync(join(folder, 'sub'));
    const names = ['a.tsv', 'a.tsv.done', 'b.csv', 'sub/c.CSV', 'readme', '~lock.csv', 'theirs.xml', 'z.log'];
    for (const name of names) writeFileSync(join(folder, name), '');
    const scans: Unmatched[] = [];
    const watcher = watching(
      {
        watch: folder,
        files: ['**/*.tsv'],
        ignore: ['**/~*'],
        ready: { doneFile: '{name}.done' },
      },
      {
        scanned: async ({ unmatched }) => void scans.push(unmatched),
        isOthers: (path) => path.endsWith('.xml'),
      },
    );
    await watcher.start();
    expect(scans).toEqual([
      new Map([
        ['.csv', { files: 2, example: join(folder, 'sub/c.CSV') }],
        ['', { files: 1, example: join(folder, 'readme') }],
        ['.log', { files: 1, example: join(folder, 'z.log') }],
      ]),
    ]);
  });

  test('with very many extensions are counted together', () => {
    const counts = new Map();
    for (let n = 0; n < 1000; n += 1) addUnmatched(counts, `/data/run.${n}`);
    expect(counts.size).toBeLessThan(60);
    expect([...counts.values()].reduce((sum, { files }) => sum + files, 0)).toBe(1000);
  });
});
