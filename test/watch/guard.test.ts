import { linkSync, mkdirSync, renameSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test, vi } from 'vitest';
import { FileError } from '../../src/errors.js';
import { createGuard } from '../../src/watch/guard.js';
import { contentOf, identify, stampOf } from '../../src/watch/identify.js';
import { tempFolder } from '../support/temp-folder.js';

const SECRET = 'sample,secret\na,1\n';

interface Scene {
  readonly folder: string;
  readonly elsewhere: string;
  /** Reads a file of the watched folder with these rules. */
  read(name: string, links?: readonly string[]): Promise<string>;
}

/** A watched folder, and a folder elsewhere with a file. */
function scene({ isLocal = true } = {}): Scene {
  const root = tempFolder();
  const [folder, elsewhere] = [join(root, 'watched'), join(root, 'elsewhere')];
  for (const one of [folder, elsewhere]) mkdirSync(one);
  writeFileSync(join(elsewhere, 'secret.csv'), SECRET);
  writeFileSync(join(root, 'api-key'), 'key');
  return {
    folder,
    elsewhere,
    async read(name, links = []) {
      const guard = createGuard({ folder, links, own: [join(root, 'api-key')] });
      const path = join(folder, name);
      const stamp = stampOf(statSync(path, { bigint: true }));
      const file = { path, location: path, ...stamp, isLocal };
      const { content } = await identify(file, { signal: new AbortController().signal, guard });
      return String(Buffer.from(content ?? ''));
    },
  };
}

const refusedWith = async (reading: Promise<string>): Promise<string> => {
  const error = await reading.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FileError);
  return (error as FileError).message;
};

describe.each([true, false])('a link in a watched folder (local disk: %s)', (isLocal) => {
  test('to a file elsewhere is refused', async () => {
    const { folder, elsewhere, read } = scene({ isLocal });
    symlinkSync(join(elsewhere, 'secret.csv'), join(folder, 'link.csv'));
    expect(await refusedWith(read('link.csv'))).toContain(`a link out of the watched folder, to ${elsewhere}`);
  });

  test('through a linked folder is refused', async () => {
    const { folder, elsewhere, read } = scene({ isLocal });
    symlinkSync(elsewhere, join(folder, 'sub'));
    expect(await refusedWith(read('sub/secret.csv'))).toContain('a link out of the watched folder');
  });

  test('to an allowed folder, or to a file of the same folder, is read', async () => {
    const { folder, elsewhere, read } = scene({ isLocal });
    symlinkSync(join(elsewhere, 'secret.csv'), join(folder, 'link.csv'));
    expect(await read('link.csv', [elsewhere])).toBe(SECRET);
    expect(await refusedWith(read('link.csv', [join(elsewhere, 'sub')]))).toContain('out of the watched folder');
    writeFileSync(join(folder, 'a.csv'), 'a');
    symlinkSync('a.csv', join(folder, 'b.csv'));
    expect(await read('b.csv')).toBe('a');
  });
});

test('a folder whose name starts with that of the watched folder is elsewhere', async () => {
  const { folder, read } = scene();
  mkdirSync(`${folder}-private`);
  writeFileSync(join(`${folder}-private`, 'a.csv'), SECRET);
  symlinkSync(join(`${folder}-private`, 'a.csv'), join(folder, 'a.csv'));
  await refusedWith(read('a.csv'));
});

test('a watched folder that is a link itself is read, wherever it leads later', async () => {
  const { folder, elsewhere, read } = scene();
  rmSync(folder, { recursive: true });
  symlinkSync(elsewhere, folder);
  expect(await read('secret.csv')).toBe(SECRET);
});

test.each([0, 1000])(
  'a hard link to a file of another user is refused unless it is allowed (as user %i)',
  async (user) => {
    const { folder, elsewhere, read } = scene();
    linkSync(join(elsewhere, 'secret.csv'), join(folder, 'link.csv'));
    const geteuid = vi
      .spyOn(process, 'geteuid')
      .mockReturnValue(user + (user > 0 && process.getuid?.() === user ? 1 : 0));
    try {
      expect(await refusedWith(read('link.csv'))).toContain('the file has 2 names (hard links)');
      expect(await read('link.csv', ['hard'])).toBe(SECRET);
    } finally {
      geteuid.mockRestore();
    }
  },
);

test('the key is refused as a file, as a link that is allowed, and as a hard link that is allowed', async () => {
  const { folder, read } = scene();
  const root = join(folder, '..');
  symlinkSync(join(root, 'api-key'), join(folder, 'soft'));
  linkSync(join(root, 'api-key'), join(folder, 'hard'));
  expect(await refusedWith(read('soft', [root]))).toContain('never filed');
  expect(await refusedWith(read('hard', ['hard']))).toContain('never filed');
});

test('a long file that was replaced by a link after it was hashed is not read', async () => {
  const { folder, elsewhere } = scene();
  const path = join(folder, 'long.csv');
  writeFileSync(path, 'harmless');
  const file = { path, location: path, ...stampOf(statSync(path, { bigint: true })) };
  const hashed = await identify(file, { signal: new AbortController().signal, keepBytes: 0 });
  renameSync(path, join(folder, 'moved.csv'));
  symlinkSync(join(elsewhere, 'secret.csv'), path);
  const read: Uint8Array[] = [];
  const reading = async () => {
    for await (const piece of (contentOf(hashed) as () => AsyncIterable<Uint8Array>)()) read.push(piece);
  };
  await expect(reading()).rejects.toThrow('the file has changed');
  expect(read).toEqual([]);
});

test('a file that gets the inode of a replaced own file is read', async () => {
  const { folder } = scene();
  const own = join(folder, '..', 'journal.db.live');
  const guard = createGuard({ folder, links: [], own: [own] });
  const read = async (name: string) => {
    const path = join(folder, name);
    const file = { path, location: path, ...stampOf(statSync(path, { bigint: true })) };
    return identify(file, { guard });
  };
  writeFileSync(own, 'status');
  writeFileSync(join(folder, 'a.csv'), 'a');
  await read('a.csv');
  // The same as a reused inode: the file that was an own file is now in the folder, and no longer an own file.
  renameSync(own, join(folder, 'b.csv'));
  writeFileSync(own, 'status');
  expect((await read('b.csv')).sha256).toBeTruthy();
});

describe('on a system without /proc', () => {
  /** `meanwhile`: between the opening of a file and the check of what was opened. */
  function withoutProc({ folder }: Scene, name: string, meanwhile = () => {}): Promise<string> {
    const guard = createGuard({ folder, links: [], own: [] }, () => {
      meanwhile();
      return undefined;
    });
    const path = join(folder, name);
    const file = { path, location: path, ...stampOf(statSync(path, { bigint: true })), isLocal: false };
    return identify(file, { guard }).then(({ content }) => String(Buffer.from(content ?? '')));
  }

  test('links that lead elsewhere are refused, others are read', async () => {
    const place = scene();
    writeFileSync(join(place.folder, 'a.csv'), 'a');
    symlinkSync('a.csv', join(place.folder, 'b.csv'));
    symlinkSync(join(place.elsewhere, 'secret.csv'), join(place.folder, 'link.csv'));
    symlinkSync(place.elsewhere, join(place.folder, 'sub'));
    expect(await withoutProc(place, 'a.csv')).toBe('a');
    expect(await withoutProc(place, 'b.csv')).toBe('a');
    expect(await refusedWith(withoutProc(place, 'link.csv'))).toContain('a link out of the watched folder');
    expect(await refusedWith(withoutProc(place, 'sub/secret.csv'))).toContain('a link out of the watched folder');
  });

  test('a file from elsewhere is not read although a harmless one takes its name after it was opened', async () => {
    const place = scene();
    const sub = join(place.folder, 'sub');
    symlinkSync(place.elsewhere, sub);
    const reading = withoutProc(place, 'sub/secret.csv', () => {
      rmSync(sub);
      mkdirSync(sub);
      writeFileSync(join(sub, 'secret.csv'), 'harmless');
    });
    expect(await refusedWith(reading)).toContain('it was replaced while it was opened');
  });
});
