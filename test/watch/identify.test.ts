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

/** Hashing asks its signal before each chunk: the test acts before the second. */
function betweenChunks(act: () => void): AbortSignal {
  let asked = 0;
  return Object.assign(new AbortController().signal, {
    throwIfAborted() {
      asked += 1;
      if (asked === 2) act();
    },
  });
}

describe('the whole content is hashed', () => {
  test.each([0, 1, 5, MB - 1, MB, MB + 1, 3 * MB + 7])('%i bytes, which are kept', async (size) => {
    const bytes = Buffer.alloc(size, 'run after run ');
    const path = dropped(bytes);
    const file = await identify(found(path), { signal: never });
    expect(file).toMatchObject({ ...found(path), sha256: sha256(bytes) });
    expect(Buffer.compare(Buffer.from(file.content ?? 'none'), bytes)).toBe(0);
  });

  test('a large file is hashed without being kept', async () => {
    const bytes = Buffer.alloc(5 * MB + 3, 'a long time series ');
    const file = await identify(found(dropped(bytes)), { signal: never, keepBytes: 5 * MB });
    expect(file.sha256).toBe(sha256(bytes));
    expect(file).not.toHaveProperty('content');
  });

  test('a file whose name is not UTF-8', async () => {
    const folder = tempFolder();
    const location = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xe9])]);
    writeFileSync(location, 'x');
    const file = await identify(found(`${folder}/\\xE9`, location), { signal: never });
    expect(file).toMatchObject({ path: `${folder}/\\xE9`, location, sha256: sha256(Buffer.from('x')) });
  });
});

describe('what was hashed is what settled', () => {
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

  test('a file that was written to, or is gone, before it is opened', async () => {
    const path = dropped('one');
    const file = found(path);
    appendFileSync(path, 'two');
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
    rmSync(path);
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
  });

  test('a pipe in the place of the file does not hold anybody up', async () => {
    const path = dropped('one');
    const file = found(path);
    rmSync(path);
    execFileSync('mkfifo', [path]);
    await expect(identify(file, { signal: never })).rejects.toThrow(FileChangedError);
  });
});

test('a file that may not be read is busy, not bad: it says what to do and can be tried again', async () => {
  const path = dropped('one');
  chmodSync(join(path, '..'), 0o755);
  chmodSync(path, 0);
  const error = await asNobody(() => identify(found(path), { signal: never })).catch(
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FileBusyError);
  expect(error).toMatchObject({
    message: 'the file cannot be read now: this user may not read it',
    where: { file: path },
  });
  chmodSync(path, 0o600);
  expect(await identify(found(path), { signal: never })).toMatchObject({ size: 3 });
});

test('hashing ends with the signal', async () => {
  const path = dropped('one');
  const signal = AbortSignal.abort(new Error('enough'));
  await expect(identify(found(path), { signal })).rejects.toThrow('enough');
});
