import { createHash } from 'node:crypto';
import { constants, createReadStream } from 'node:fs';
import { copyFile, link, lstat, mkdir, open, rename, stat, unlink, utimes } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { LabfeedError, systemCode } from '../errors.js';
import { isAbsent } from './identify.js';

/** A file that was filed and is to be moved away or deleted. */
export interface FiledFile {
  readonly path: string;
  readonly sha256: string;
  /** Unique in its folder, the same after a crash: under this name, nobody else writes to the file. */
  readonly privateName: string;
}

/** What became of it. `changed`: it no longer had the content that was filed, so it is back where it was. */
export type Disposed =
  | { readonly outcome: 'moved'; readonly to: string }
  | { readonly outcome: 'deleted' | 'gone' | 'changed' };

/** Names that labfeed gives to files while it disposes of them. They are never taken for runs. */
export const PRIVATE_PREFIX = '.labfeed-';

/**
 * Moves a file to a path, or deletes it if there is none. The file is first renamed, and then hashed under the new name:
 * what was written to it after it was filed is found out, and what is written to its old path meanwhile is another file.
 * No existing file is ever overwritten. After a crash between any two steps, calling it again completes it.
 */
export async function dispose(file: FiledFile, target: string | undefined): Promise<Disposed> {
  const aside = join(dirname(file.path), file.privateName);
  if (!(await exists(aside))) {
    await refuseLink(file.path);
    const isRenamed = await rename(file.path, aside).then(
      () => true,
      (error: unknown) => {
        if (isAbsent(error)) return false;
        throw cannot(`rename ${file.path}`, error);
      },
    );
    if (!isRenamed) return alreadyMoved(file, target);
  }
  if ((await hashOf(aside)) !== file.sha256) {
    await place(aside, file.path, undefined);
    return { outcome: 'changed' };
  }
  if (target === undefined) {
    await unlink(aside).catch((error: unknown) => putBack(aside, file.path, `delete ${file.path}`, error));
    return { outcome: 'deleted' };
  }
  try {
    await mkdir(dirname(target), { recursive: true });
    return { outcome: 'moved', to: await place(aside, target, file.sha256) };
  } catch (error) {
    return putBack(aside, file.path, `move ${file.path} to ${target}`, error);
  }
}

/** Puts a file back that a crash has left under its private name. */
export async function undispose({ path, privateName }: FiledFile): Promise<void> {
  const aside = join(dirname(path), privateName);
  if (await exists(aside)) await place(aside, path, undefined);
}

/** The file that a link points to is elsewhere, and others may need it. */
async function refuseLink(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats && !stats.isFile()) throw new LabfeedError(`${path} is a link, so it stays where it is`);
}

/** A crash may have come after the move. */
async function alreadyMoved({ sha256 }: FiledFile, target: string | undefined): Promise<Disposed> {
  const isThere = target !== undefined && (await hashOf(target).catch(() => undefined)) === sha256;
  return isThere ? { outcome: 'moved', to: target } : { outcome: 'gone' };
}

/** The file is where it was, so that nothing depends on the next attempt. */
async function putBack(aside: string, path: string, what: string, error: unknown): Promise<never> {
  await place(aside, path, undefined);
  throw cannot(what, error);
}

const cannot = (what: string, error: unknown): LabfeedError =>
  new LabfeedError(`cannot ${what} (${systemCode(error) ?? (error instanceof Error ? error.message : error)})`, {
    hint: 'check the permissions and the free space of both folders; labfeed tries again in an hour',
    cause: error,
  });

/**
 * Gives the file this name, or the next free one: `run (2).csv`. A file of the same content that is there already, from
 * before a crash, counts as this one if its hash is given.
 */
async function place(from: string, to: string, sha256: string | undefined): Promise<string> {
  for (let n = 1; ; n++) {
    const name = n === 1 ? to : numbered(to, n);
    try {
      await linkOrCopy(from, name);
    } catch (error) {
      if (systemCode(error) !== 'EEXIST') throw error;
      if (sha256 === undefined || (await hashOf(name).catch(() => undefined)) !== sha256) continue;
    }
    await syncFolder(dirname(name));
    await unlink(from);
    return name;
  }
}

const numbered = (path: string, n: number): string =>
  join(dirname(path), `${basename(path, extname(path))} (${n})${extname(path)}`);

const NO_LINKS = new Set(['EXDEV', 'EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Fails with EEXIST if there is a file of this name. Across file systems, a copy gets its name when it is complete. */
async function linkOrCopy(from: string, to: string): Promise<void> {
  try {
    return await link(from, to);
  } catch (error) {
    if (!NO_LINKS.has(systemCode(error) ?? '')) throw error;
  }
  if (await exists(to)) throw Object.assign(new Error('the file exists'), { code: 'EEXIST' });
  const copy = join(dirname(to), `${basename(from)}.copy`);
  await unlink(copy).catch(() => undefined);
  try {
    await copyFile(from, copy, constants.COPYFILE_EXCL);
    const { atime, mtime } = await stat(from);
    await utimes(copy, atime, mtime);
    await syncFile(copy);
    if ((await hashOf(copy)) !== (await hashOf(from))) throw new Error('the copy has other bytes');
    // A file system without links has no way to rename without overwriting: it was checked just before.
    await link(copy, to).catch(async (error: unknown) => {
      if (!NO_LINKS.has(systemCode(error) ?? '') || (await exists(to))) throw error;
      await rename(copy, to);
    });
  } finally {
    await unlink(copy).catch(() => undefined);
  }
}

async function hashOf(path: string): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

const exists = (path: string): Promise<boolean> =>
  lstat(path).then(
    () => true,
    () => false,
  );

async function syncFile(path: string): Promise<void> {
  const handle = await open(path);
  await handle.sync().finally(() => handle.close());
}

/** Some network file systems cannot sync a folder. */
const syncFolder = (path: string): Promise<void> => syncFile(path).catch(() => undefined);
