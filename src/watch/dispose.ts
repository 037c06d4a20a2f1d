import { isUtf8 } from 'node:buffer';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type BigIntStats, constants } from 'node:fs';
import { chmod, chown, type FileHandle, link, lstat, open, realpath, rename, unlink, utimes } from 'node:fs/promises';
import { extname } from 'node:path';
import { type ErrorDetails, LabfeedError, systemCode } from '../errors.js';
import { isAbsent, NO_ANSWER } from './identify.js';
import { PRIVATE_PREFIX } from './match.js';
import { displayName } from './scan.js';

/**
 * The file-system half of `source: move | delete`. A file is renamed to a private name in its folder and then hashed: what
 * was written to it after it was filed is found out, and what is written to its old path meanwhile is another file.
 * No step overwrites an existing file. All paths are bytes: a name need not be UTF-8.
 */

/** A file that was filed and is to be moved away or deleted. */
export interface FiledFile {
  /** For people. */
  readonly path: string;
  readonly location: Buffer;
  /** Unique in its folder, and the same after a crash: under this name, nobody else writes to the file. */
  readonly privateName: string;
}

/** With the id of the journal: several daemons can watch one share. */
export const privateNameOf = (journal: string, run: number, n: number): string =>
  `${PRIVATE_PREFIX}${journal}-${run}-${n}`;

const HEX = 'hex:';

/** The path as the journal stores it, and back. An absolute path does not begin like the bytes. */
export const toText = (location: string | Buffer): string =>
  typeof location === 'string' || isUtf8(location) ? String(location) : HEX + location.toString('hex');

export const toBytes = (text: string): Buffer =>
  text.startsWith(HEX) ? Buffer.from(text.slice(HEX.length), 'hex') : Buffer.from(text);

/** For people. */
export const display = (location: Buffer): string => (isUtf8(location) ? String(location) : displayName(location));

const SLASH = 0x2f;

export const folderOf = (path: Buffer): Buffer => path.subarray(0, Math.max(1, path.lastIndexOf(SLASH)));

const nameOf = (path: Buffer): Buffer => path.subarray(path.lastIndexOf(SLASH) + 1);

export const inFolder = (folder: Buffer, name: string | Buffer): Buffer =>
  Buffer.concat([folder, Buffer.from(folder.at(-1) === SLASH ? '' : '/'), Buffer.from(name)]);

const asideOf = ({ location, privateName }: FiledFile): Buffer => inFolder(folderOf(location), privateName);

/** Under this name, a file is copied to another file system, until the copy is complete. */
const copyOf = ({ privateName }: FiledFile, target: Buffer): Buffer =>
  inFolder(folderOf(target), `${privateName}.copy`);

/** A file cannot be moved or deleted now. `folder`: the same applies to the other files of the instrument. */
export class DisposalError extends LabfeedError {
  override readonly name = 'DisposalError';
  readonly scope: 'file' | 'folder';

  constructor(scope: 'file' | 'folder', message: string, details?: ErrorDetails) {
    super(message, details);
    this.scope = scope;
  }
}

/** Turns a system error into one that says what to do. Others pass. */
export async function explaining<T>(what: string, act: () => Promise<T>): Promise<T> {
  try {
    return await act();
  } catch (error) {
    const code = systemCode(error);
    if (error instanceof LabfeedError || code === undefined || !/^E[A-Z0-9]+$/.test(code)) throw error;
    const [scope, reason, hint] = meaningOf(code);
    throw new DisposalError(scope, `cannot ${what}: ${reason}`, { hint, cause: error });
  }
}

function meaningOf(code: string): readonly ['file' | 'folder', reason: string, hint: string] {
  const retries = 'labfeed tries again later';
  if (NO_ANSWER.has(code)) return ['folder', `the disk or share does not respond (${code})`, retries];
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return ['folder', `permission denied (${code})`, `let the user of labfeed write to the folder; ${retries}`];
    case 'EROFS':
      return ['folder', 'the file system is read-only', `mount it so that it can be written to; ${retries}`];
    case 'ENOSPC':
    case 'EDQUOT':
      return ['folder', `there is no space left (${code})`, `free some space; ${retries}`];
    case 'EBUSY':
    case 'ETXTBSY':
      return ['file', `another program is using the file (${code})`, retries];
    case 'ENAMETOOLONG':
      return ['file', 'its name is too long there', 'move the file yourself, or shorten its name'];
    case 'ENOTDIR':
      return ['folder', 'a part of the path is a file, not a folder', `check the path; ${retries}`];
    default:
      return ['file', code, retries];
  }
}

/** A file under its private name, as it was hashed. */
export interface HiddenFile extends FiledFile {
  readonly sha256: string;
  readonly identity: string;
  readonly size: number;
  readonly mtimeNs: bigint;
}

/** As a text. Device and inode alone are not enough: an inode is used again. */
export const identityOf = ({ device = 0n, inode, mtimeNs }: { device?: bigint; inode: bigint; mtimeNs: bigint }) =>
  `${device}:${inode}:${mtimeNs}`;

/**
 * Gives the file its private name. False if there is no file of this name. `known`: where an interrupted move may have
 * given it a second name.
 */
export function hide(file: FiledFile, known: Buffer | undefined): Promise<boolean> {
  const { path, location } = file;
  return explaining(`rename ${path}`, async () => {
    const stats = await statOf(location);
    if (!stats) return false;
    await refuseLinks(path, stats, known);
    const aside = asideOf(file);
    if (await statOf(aside)) throw new DisposalError('file', `${display(aside)} exists`, { hint: 'rename it' });
    const isRenamed = await rename(location, aside).then(
      () => true,
      (error: unknown) => {
        if (isAbsent(error)) return false;
        throw error;
      },
    );
    const hidden = isRenamed ? await statOf(aside) : undefined;
    if (hidden) await refuseLinks(path, hidden, known);
    return hidden !== undefined;
  });
}

/** Throws if a folder between the watched one and the file is a link: that could lead to a file from elsewhere. */
export function refuseLinkedFolders({ path, location }: FiledFile, watch: Buffer): Promise<void> {
  return explaining(`look for ${path}`, async () => {
    const real = async (folder: Buffer): Promise<Buffer> => Buffer.from(await realpath(folder, 'buffer'));
    const folder = folderOf(location);
    const expected = Buffer.concat([await real(watch), folder.subarray(watch.length)]);
    if (!expected.equals(await real(folder)))
      throw new DisposalError('file', `${path} is behind a link, so it is neither moved nor deleted`, {
        hint: 'watch the folder that the link leads to',
      });
  });
}

/** What a link leads to is elsewhere, and others use it; a file with two names is still there under the other one. */
async function refuseLinks(path: string, stats: BigIntStats, known: Buffer | undefined): Promise<void> {
  const hint = 'move or delete it yourself, or set `source: keep`';
  if (!stats.isFile())
    throw new DisposalError('file', `${path} is a link or no plain file, so it is neither moved nor deleted`, { hint });
  const other = stats.nlink === 2n && known ? await statOf(known) : undefined;
  if (stats.nlink > 1n && !(other && isSameFile(stats, other)))
    throw new DisposalError(
      'file',
      `${path} has ${stats.nlink} names (hard links), so it is neither moved nor deleted`,
      { hint },
    );
}

/** Hashes the file under its private name. */
export function inspect(file: FiledFile, signal: AbortSignal): Promise<HiddenFile> {
  return explaining(`read ${file.path}`, () =>
    withFile(asideOf(file), async (handle) => {
      const before = await handle.stat({ bigint: true });
      const sha256 = await hash(handle, signal);
      const { size, mtimeNs, ino: inode, dev: device } = await handle.stat({ bigint: true });
      const isQuiet = before.size === size && before.mtimeNs === mtimeNs;
      const identity = identityOf({ device, inode, mtimeNs });
      // What is being written to is not what was filed.
      return { ...file, sha256: isQuiet ? sha256 : '', identity, size: Number(size), mtimeNs };
    }),
  );
}

/** Gives the file its own name again, or the next free one. Returns its location; undefined if it is not hidden. */
export function putBack(file: FiledFile): Promise<Buffer | undefined> {
  const { path, location } = file;
  return explaining(`rename ${path} back from ${file.privateName}`, async () => {
    const aside = asideOf(file);
    if (!(await statOf(aside))) return undefined;
    for (let n = 1; n <= MAX_NUMBER; n++) {
      const to = numbered(location, n);
      if (!(await giveName(aside, to))) continue;
      // Before the journal forgets that the file was hidden.
      await syncFolder(folderOf(location));
      return to;
    }
    throw tooMany(path);
  });
}

/** The names that are tried for one file. */
const MAX_NUMBER = 10_000;

const tooMany = (path: string) =>
  new DisposalError('file', `there are ${MAX_NUMBER} other files named like ${path}`, { hint: 'rename some of them' });

const MAX_NAME_BYTES = 255;

/** `run (2).csv`. */
function numbered(path: Buffer, n: number): Buffer {
  if (n === 1) return path;
  const name = nameOf(path);
  const suffix = Buffer.from(` (${n})`);
  // Latin-1 keeps every byte.
  const extension = Buffer.from(extname(name.toString('latin1')), 'latin1');
  const stem = name.subarray(
    0,
    Math.min(name.length - extension.length, MAX_NAME_BYTES - suffix.length - extension.length),
  );
  return inFolder(folderOf(path), Buffer.concat([stem, suffix, extension]));
}

/** A free name at the target, or one where the same content is already. */
export function chooseTarget(file: HiddenFile, target: Buffer, signal: AbortSignal): Promise<Buffer> {
  return explaining(`read the files at ${display(target)}`, async () => {
    for (let n = 1; n <= MAX_NUMBER; n++) {
      const to = numbered(target, n);
      const there = await statOf(to);
      if (!there || (await hasContent(to, there, file, signal))) return to;
    }
    throw tooMany(display(target));
  });
}

async function hasContent(path: Buffer, stats: BigIntStats, { size, sha256 }: HiddenFile, signal: AbortSignal) {
  if (!stats.isFile() || Number(stats.size) !== size) return false;
  return (await withFile(path, (handle) => hash(handle, signal))) === sha256;
}

/** Whether a file with this content is at this path. */
export const isAt = (path: Buffer, sha256: string, signal: AbortSignal): Promise<boolean> =>
  explaining(`read ${display(path)}`, async () => {
    const stats = await statOf(path);
    return stats?.isFile() === true && (await withFile(path, (handle) => hash(handle, signal))) === sha256;
  });

export const exists = (path: Buffer): Promise<boolean> =>
  explaining(`look for ${display(path)}`, async () => (await statOf(path)) !== undefined);

/** Copies the file beside its target, if that is on another file system. A complete copy from before a crash is used. */
export function copyBeside(file: HiddenFile, target: Buffer, signal: AbortSignal): Promise<void> {
  return explaining(`copy ${file.path} to ${display(folderOf(target))}`, async () => {
    const [here, there] = [await lstat(asideOf(file), BIGINT), await statOf(folderOf(target))];
    if (here.dev !== there?.dev) await copy(file, target, signal);
  });
}

async function copy(file: HiddenFile, target: Buffer, signal: AbortSignal): Promise<void> {
  const to = copyOf(file, target);
  const there = await statOf(to);
  // The name is ours alone, and the file itself is still there: what is not a complete copy may go.
  if (there && !(await hasContent(to, there, file, signal))) await unlink(to);
  else if (there) return;
  try {
    await copyBytes(file, to, signal);
    if (!(await hasContent(to, await lstat(to, BIGINT), file, signal)))
      throw new DisposalError('folder', `the copy in ${display(folderOf(target))} has other bytes`, {
        hint: 'check the disk there',
      });
  } catch (error) {
    await unlink(to).catch(() => undefined);
    throw error;
  }
}

const copyBytes = (file: HiddenFile, to: Buffer, signal: AbortSignal): Promise<void> =>
  withFile(asideOf(file), async (from) => {
    const { mode, uid, gid, atime, mtime } = await from.stat();
    const into = await open(to, 'wx', 0o600);
    try {
      await hash(from, signal, into);
      await into.sync();
    } finally {
      await into.close();
    }
    // The copy belongs to whom the file did, as far as that is allowed.
    await chown(to, uid, gid).catch(() => undefined);
    await chmod(to, mode & 0o777);
    await utimes(to, atime, mtime);
  });

/** Removes the copy of a move that does not take place. */
export async function dropCopy(file: FiledFile, target: Buffer): Promise<void> {
  await unlink(copyOf(file, target)).catch((error: unknown) => {
    if (!isAbsent(error)) throw error;
  });
}

/** Moves the file from its private name. False if another file has taken the name meanwhile. */
export function moveTo(file: HiddenFile, target: Buffer, signal: AbortSignal): Promise<boolean> {
  return explaining(`move ${file.path} to ${display(target)}`, async () => {
    const there = await statOf(target);
    if (there && !(await hasContent(target, there, file, signal))) return false;
    if (there) {
      // From an earlier attempt, or somebody has put it there: its content must be on disk before the file goes.
      await withFile(target, (handle) => handle.sync());
      await dropCopy(file, target);
    } else {
      const isCopied = (await statOf(copyOf(file, target))) !== undefined;
      if (!(await (isCopied ? giveName(copyOf(file, target), target) : giveNameThere(file, target, signal))))
        return false;
    }
    await syncFolder(folderOf(target));
    if (await statOf(asideOf(file))) await remove(file);
    await syncFolder(folderOf(file.location));
    return true;
  });
}

/** Two mounts of one file system have the same device, but no links between them. */
async function giveNameThere(file: HiddenFile, target: Buffer, signal: AbortSignal): Promise<boolean> {
  try {
    return await giveName(asideOf(file), target);
  } catch (error) {
    if (systemCode(error) !== 'EXDEV') throw error;
    await copy(file, target, signal);
    return giveName(copyOf(file, target), target);
  }
}

/** Deletes the file under its private name. */
export const deleteHidden = (file: HiddenFile): Promise<void> =>
  explaining(`delete ${file.path}`, async () => {
    await remove(file);
    await syncFolder(folderOf(file.location));
  });

/** A program that still had the file open may have written to it since it was hashed. */
async function remove(file: HiddenFile): Promise<void> {
  const { size, mtimeNs } = await lstat(asideOf(file), BIGINT);
  if (Number(size) !== file.size || mtimeNs !== file.mtimeNs)
    throw new DisposalError('file', `${file.path} was written to while it was being moved or deleted`, {
      hint: 'it stays where it is, and is read again',
    });
  await unlink(asideOf(file));
}

/** Not allowed for files of others that may not be written to, and unknown to FAT and some shares. */
const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Renames a file within a file system. False, and nothing is changed, if a file has this name. */
async function giveName(from: Buffer, to: Buffer): Promise<boolean> {
  try {
    await link(from, to);
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (NO_LINKS.has(code)) return renameExclusively(from, to);
    if (code !== 'EEXIST') throw error;
    const [a, b] = [await statOf(from), await statOf(to)];
    // The link was made before a crash, or its answer from a share was lost.
    if (!a || !b || !isSameFile(a, b)) return false;
  }
  await syncFolder(folderOf(to));
  await unlink(from);
  return true;
}

/**
 * Node cannot ask for a rename that fails if the name is taken, but `mv -n` does (RENAME_NOREPLACE). By way of xargs,
 * because arguments of Node are UTF-8.
 */
async function renameExclusively(from: Buffer, to: Buffer): Promise<boolean> {
  if (await statOf(to)) return false;
  const child = spawn('xargs', ['-0', 'mv', '-nT', '--'], { stdio: ['pipe', 'ignore', 'pipe'] });
  let problem = '';
  child.stderr.on('data', (chunk: Buffer) => {
    problem += chunk;
  });
  child.stdin.on('error', () => undefined);
  child.stdin.end(Buffer.concat([from, Buffer.of(0), to, Buffer.of(0)]));
  await once(child, 'close');
  if (!(await statOf(from))) return true;
  if (await statOf(to)) return false;
  throw new DisposalError('folder', `cannot rename ${display(from)}: ${problem.trim()}`, {
    hint: 'let the user of labfeed write to the folder',
  });
}

/** Inodes alone do not prove it: some file systems invent them. */
const isSameFile = (a: BigIntStats, b: BigIntStats): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.nlink > 1n && b.nlink === a.nlink && a.mtimeNs === b.mtimeNs;

const BIGINT = { bigint: true } as const;

/** Of the name itself, not of what a link leads to. Undefined if nothing has this name. */
async function statOf(path: Buffer): Promise<BigIntStats | undefined> {
  try {
    return await lstat(path, BIGINT);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

async function withFile<T>(path: Buffer, act: (handle: FileHandle) => Promise<T>): Promise<T> {
  // Non-blocking: opening a pipe would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await act(handle);
  } finally {
    await handle.close();
  }
}

/** Hashing one chunk blocks the event loop for about a millisecond. */
const CHUNK_BYTES = 1024 * 1024;

/** Copies what is hashed, if there is a file for it. */
async function hash(handle: FileHandle, signal: AbortSignal, into?: FileHandle): Promise<string> {
  const sha256 = createHash('sha256');
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; ; ) {
    signal.throwIfAborted();
    const { bytesRead } = await handle.read(buffer, 0, CHUNK_BYTES, at);
    if (bytesRead === 0) return sha256.digest('hex');
    const bytes = buffer.subarray(0, bytesRead);
    sha256.update(bytes);
    await into?.writeFile(bytes);
    at += bytesRead;
  }
}

/** Some network file systems cannot sync a folder: there, a rename is as durable as the server makes it. */
const CANNOT_SYNC: ReadonlySet<string> = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EBADF', 'EISDIR']);

export async function syncFolder(path: Buffer): Promise<void> {
  const handle = await open(path, constants.O_RDONLY).catch((error: unknown) => {
    // A folder that others may only write to.
    if (systemCode(error) !== 'EACCES') throw error;
  });
  if (!handle) return;
  try {
    await handle.sync();
  } catch (error) {
    if (!CANNOT_SYNC.has(systemCode(error) ?? '')) throw error;
  } finally {
    await handle.close();
  }
}
