import { isUtf8 } from 'node:buffer';
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { type BigIntStats, constants } from 'node:fs';
import { atMost, systemClock } from '../clock.js';
import { type ErrorDetails, LabfeedError, systemCode } from '../errors.js';
import { change, HANG_MS, lstatOne, openWritable, type WritableFile } from '../system/disk.js';
import { isAbsent, NO_ANSWER } from './identify.js';
import { displayName } from './scan.js';

/** Names and calls of the file system for moving and deleting files. All paths are bytes: a name need not be UTF-8. */

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

export const nameOf = (path: Buffer): Buffer => path.subarray(path.lastIndexOf(SLASH) + 1);

export const inFolder = (folder: Buffer, name: string | Buffer): Buffer =>
  Buffer.concat([folder, Buffer.from(folder.at(-1) === SLASH ? '' : '/'), Buffer.from(name)]);

export const isInside = (path: Buffer, folder: Buffer): boolean => {
  const prefix = inFolder(folder, '');
  return path.length > prefix.length && path.subarray(0, prefix.length).equals(prefix);
};

/**
 * A file cannot be moved or deleted now. `folder`: the same applies to the other files of the instrument. `lasting`:
 * waiting does not change it.
 */
export class DisposalError extends LabfeedError {
  override readonly name = 'DisposalError';
  readonly scope: 'file' | 'folder' | 'lasting';

  constructor(scope: DisposalError['scope'], message: string, details?: ErrorDetails) {
    super(message, details);
    this.scope = scope;
  }
}

/** Something was written to the file since it was hashed, or it was removed. It is looked at again later. */
export class NotNow extends LabfeedError {
  override readonly name = 'NotNow';
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

const READ_ONLY_HINT =
  'mount it so that it can be written to; under systemd, name the watched folder and the target in ReadWritePaths';

function meaningOf(code: string): readonly [DisposalError['scope'], reason: string, hint: string] {
  const retries = 'labfeed tries again later';
  if (NO_ANSWER.has(code)) return ['folder', `the disk or share does not respond (${code})`, retries];
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return ['folder', `permission denied (${code})`, `let the user of labfeed write to the folder; ${retries}`];
    case 'EROFS':
      return ['folder', 'the file system is read-only', `${READ_ONLY_HINT}; ${retries}`];
    case 'ENOSPC':
    case 'EDQUOT':
      return ['folder', `there is no space left (${code})`, `free some space; ${retries}`];
    case 'EBUSY':
    case 'ETXTBSY':
      return ['file', `another program is using the file (${code})`, retries];
    case 'ENAMETOOLONG':
      return ['lasting', 'its name is too long', 'move the file yourself, or shorten its name'];
    case 'ENOTDIR':
      return ['folder', 'a part of the path is a file, not a folder', `check the path; ${retries}`];
    default:
      return ['file', code, retries];
  }
}

/** The names that are tried for one file. */
export const MAX_NUMBER = 10_000;

export const tooMany = (path: string) =>
  new DisposalError('file', `there are ${MAX_NUMBER} other files named like ${path}`, { hint: 'rename some of them' });

/** Fits every file system: encrypted ones allow fewer bytes than the usual 255. */
const MAX_NUMBERED_BYTES = 140;
const MAX_EXTENSION_BYTES = 20;
const DOT = 0x2e;

/** `run (2).csv`. A long name is cut between two characters. */
export function numbered(path: Buffer, n: number): Buffer {
  if (n === 1) return path;
  const name = nameOf(path);
  const dot = name.lastIndexOf(DOT);
  const stemEnd = dot > 0 && name.length - dot <= MAX_EXTENSION_BYTES ? dot : name.length;
  const ending = Buffer.concat([Buffer.from(` (${n})`), name.subarray(stemEnd)]);
  let end = Math.min(stemEnd, MAX_NUMBERED_BYTES - ending.length);
  const isContinuation = (byte = 0): boolean => (byte & 0xc0) === 0x80;
  while (end < stemEnd && end > 1 && isContinuation(name[end])) end -= 1;
  return inFolder(folderOf(path), Buffer.concat([name.subarray(0, end), ending]));
}

/** Not allowed for files of others that may not be written to, and unknown to FAT and some shares. */
export const NO_LINKS: ReadonlySet<string> = new Set(['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EMLINK']);

/** Renames a file within a file system. False, and nothing is changed, if a file has this name. */
export async function giveName(from: Buffer, to: Buffer): Promise<boolean> {
  try {
    await change('link', from, to);
  } catch (error) {
    const code = systemCode(error) ?? '';
    if (NO_LINKS.has(code)) return renameExclusively(from, to);
    if (code !== 'EEXIST') throw error;
    const [a, b] = [await statOf(from), await statOf(to)];
    // The link was made before a crash, or its answer from a share was lost.
    if (!a || !b || !isSameFile(a, b)) return false;
  }
  await syncFolder(folderOf(to));
  await change('unlink', from);
  return true;
}

/**
 * Node cannot ask for a rename that fails if the name is taken, but `mv -n` does (RENAME_NOREPLACE). Through xargs,
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
  if (!(await atMost(HANG_MS, systemClock, once(child, 'close')))) {
    child.kill('SIGKILL');
    child.unref();
    throw Object.assign(new Error('the share does not respond'), { code: 'ETIMEDOUT' });
  }
  if (!(await statOf(from))) return true;
  if (await statOf(to)) return false;
  throw new DisposalError('folder', `cannot rename ${display(from)}: ${problem.trim()}`, {
    hint: 'let the user of labfeed write to the folder',
  });
}

/** Inodes alone do not prove it: some file systems invent them. */
export const isSameFile = (a: BigIntStats, b: BigIntStats): boolean =>
  a.dev === b.dev && a.ino === b.ino && a.nlink > 1n && b.nlink === a.nlink && a.mtimeNs === b.mtimeNs;

/** Of the name itself, not of what a link leads to. Undefined if nothing has this name. */
export async function statOf(path: Buffer): Promise<BigIntStats | undefined> {
  try {
    return await lstatOne(path);
  } catch (error) {
    if (isAbsent(error)) return undefined;
    throw error;
  }
}

export async function withFile<T>(path: Buffer, act: (file: WritableFile) => Promise<T>): Promise<T> {
  // Non-blocking: opening a pipe would wait for a writer.
  const file = await openWritable(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    return await act(file);
  } finally {
    await file.close();
  }
}

/** Hashing one chunk blocks the event loop for about a millisecond. */
const CHUNK_BYTES = 1024 * 1024;

/** So that no sync of a slow share takes as long as if it hung. */
const SYNC_BYTES = 16 * CHUNK_BYTES;

/** Copies what is hashed, if there is a file for it, and syncs the copy. */
export async function hash(file: WritableFile, signal?: AbortSignal, into?: WritableFile): Promise<string> {
  const sha256 = createHash('sha256');
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0, synced = 0; ; ) {
    signal?.throwIfAborted();
    const bytesRead = await file.read(buffer, 0, CHUNK_BYTES, at);
    const bytes = buffer.subarray(0, bytesRead);
    sha256.update(bytes);
    if (bytesRead > 0) await into?.write(bytes);
    at += bytesRead;
    if (into && (bytesRead === 0 || at - synced >= SYNC_BYTES)) {
      await into.sync();
      synced = at;
    }
    if (bytesRead === 0) return sha256.digest('hex');
  }
}

/** Some network file systems cannot sync a folder: there, a rename is as durable as the server makes it. */
const CANNOT_SYNC: ReadonlySet<string> = new Set(['EINVAL', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EBADF', 'EISDIR']);

export async function syncFolder(path: Buffer): Promise<void> {
  const folder = await openWritable(path, constants.O_RDONLY).catch((error: unknown) => {
    // A folder that others may only write to.
    if (systemCode(error) !== 'EACCES') throw error;
  });
  if (!folder) return;
  try {
    await folder.sync();
  } catch (error) {
    if (!CANNOT_SYNC.has(systemCode(error) ?? '')) throw error;
  } finally {
    await folder.close();
  }
}
