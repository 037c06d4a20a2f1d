import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { appendFileSync, chmodSync, renameSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { FileChangedError } from '../../src/errors.js';
import { FileBusyError, identify } from '../../src/watch/identify.js';
import { tempFolder } from '../support/temp-folder.js';
import { asNobody, found, never } from './support.js';

const MB = 1024 * 1024;
const sha256 = (bytes: Uint8Array) => createHash('sha256').update(bytes).digest('hex');

function dropped(content: string | Buffer): string {
  const path = join(tempFolder(), 'run.raw');
  writeFileSync(path, content);
  return path;
}

/** Hashing checks its signal before each chunk: the test acts before the second. */
function betweenChunks(act: () => void): AbortSignal {
  let checks = 0;
  return Object.assign(new AbortController().signal, {
    throwIfAborted() {
      checks += 1;
      if (checks === 2) act();
    },
  });
}

describe('identify hashes the whole content', () => {
  test.each([0, 1, 5, MB - 1, MB, MB + 1, 3 * MB + 7])('of %i bytes, and keeps them', async (size) => {
    const bytes = Buffer.alloc(size, 'run after run ');
    const path = dropped(bytes);
    const file = await identify(found(path), { signal: never });
    expect(file).toMatchObject({ ...found(path), sha256: sha256(bytes) });
    expect(Buffer.compare(Buffer.from(file.content ?? 'none'), bytes)).toBe(0);
  });

  test('of a large file without keeping it', async () => {
    const bytes = Buffer.alloc(5 * MB + 3, 'a long time series ');
    const file = await identify(found(dropped(bytes)), { signal: never, keepBytes: 5 * MB });
    expect(file.sha256).toBe(sha256(bytes));
    expect(file).not.toHaveProperty('content');
  });

  test('of a file whose name is not UTF-8', async () => {
    const folder = tempFolder();
    const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xe9])]);
    writeFileSync(location, 'x');
    const file = await identify(found(`${folder}/\\xE9`, location), { signal: never });
    expect(file).toMatchObject({ path: `${folder}/\\xE9`, location, sha256: sha256(Buffer.from('x')) });
  });
});

describe('identify detects changes since the file settled', () => {
  const bytes = Buffer.alloc(3 * MB, 'x');

  test.each([
    ['grows', (path: string) => appendFileSync(path, 'more')],
    ['is rewritten with the same size', (path: string) => writeFileSync(path, Buffer.alloc(3 * MB, 'y'))],
    ['is cut short', (path: string) => truncateSync(path, MB)],
    ['is deleted', (path: string) => rmSync(path)],
    [
      'is replaced by one of the same size and time',
      (path: string) => {
        writeFileSync(`${path}.new`, Buffer.alloc(3 * MB, 'y'));
        execFileSync('touch', ['-r', path, `${path}.new`]);
        renameSync(`${path}.new`, path);
      },
    ],
  ])('a file that %s while it is hashed is not identified', async (_what, act) => {
    for (const keepBytes of [0, 16 * MB]) {
      const path = dropped(bytes);
      const signal = betweenChunks(() => act(path));
      await expect(identify(found(path), { signal, keepBytes })).rejects.toThrow(FileChangedError);
    }
  });

  test('a file that was written to or deleted before it is opened', async () => {
    const path = dropped('one');
    const file = found(path);
    appendFileSync(path, 'two');
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
    rmSync(path);
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
  });

  test('a pipe in place of the file, which does not block', async () => {
    const path = dropped('one');
    const file = found(path);
    rmSync(path);
    execFileSync('mkfifo', [path]);
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
  });
});

test('a file without read permission can be identified once the permission is given', async () => {
  const path = dropped('one');
  chmodSync(join(path, '..'), 0o755);
  chmodSync(path, 0);
  const error = await asNobody(() => identify(found(path), { signal: never })).catch((reason: unknown) => reason);
  expect(error).toBeInstanceOf(FileBusyError);
  expect(error).toMatchObject({
    message: expect.stringMatching(
      /^the file cannot be read now: the user \S+ may not read it \(owner .+, mode 0000\)$/,
    ),
    hint: expect.stringMatching(/^run: chmod [ugo]\+r /),
    where: { file: path },
  });
  chmodSync(path, 0o600);
  expect(await identify(found(path), { signal: never })).toMatchObject({ size: 3 });
});

test('hashing ends when the signal is aborted', async () => {
  const path = dropped('one');
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(identify(found(path), { signal })).rejects.toThrow('enough');
});
