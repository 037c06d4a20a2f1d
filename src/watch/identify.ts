import { createHash } from 'node:crypto';
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync, statSync } from 'node:fs';
import { atMost, systemClock } from '../clock.js';
import { explain, FileChangedError, isForbidden, LabfeedError, systemCode } from '../errors.js';
import { type DiskFile, type FileStamp, type FoundFile, type Hashed, type IdentifiedFile, STAND_IN } from '../model.js';
import type { Copy } from '../spool.js';
import { isRemote, type OpenFile, openFile, pathOf, statOne } from '../system/disk.js';
import { explainPermission, type Guard } from './guard.js';

export const MAX_KEPT_BYTES = 16 * 1024 * 1024;
/** Hashing one chunk blocks the event loop for about a millisecond. */
const CHUNK_BYTES = 1024 * 1024;
/** Up to this size, reading a file of a local disk takes less time than handing the read to another thread. */
export const MAX_SMALL_BYTES = 128 * 1024;

/** Whether reading the file takes hardly any time. */
export const isSmall = ({ isLocal, size }: DiskFile): boolean => isLocal === true && size <= MAX_SMALL_BYTES;

/** Instead of a fingerprint: the same as long as the path and stamp are. */
export function standInFor({ path, size, mtimeNs }: Pick<DiskFile, 'path' | 'size' | 'mtimeNs'>): string {
  const hex = createHash('sha256').update(`${path}\0${size}\0${mtimeNs}`).digest('hex');
  return STAND_IN + hex.slice(STAND_IN.length);
}

/** A run with stand-ins for its fingerprints. */
export const withStandIns = ({ parts, ...run }: FoundFile): IdentifiedFile => ({
  ...run,
  sha256: standInFor(run),
  ...(parts && { parts: parts.map((part) => ({ ...part, sha256: standInFor(part) })) }),
});

export interface IdentifyOptions {
  readonly signal?: AbortSignal | undefined;
  /** Files up to this size are returned with their content. */
  readonly keepBytes?: number;
  /** Refuses files that must not be read. Absent for files that a person names. */
  readonly guard?: Guard | undefined;
  /** Gets the bytes that are hashed. */
  readonly copy?: Copy | undefined;
}

/**
 * Hashes the whole content of a settled file. The stamp is compared when the file is opened (on a share, that asks the
 * server) and after the last byte, so that the bytes that were hashed are those that settled.
 */
export async function identify(
  file: DiskFile,
  { signal, keepBytes = MAX_KEPT_BYTES, guard, copy }: IdentifyOptions = {},
): Promise<DiskFile & Hashed> {
  const content = file.size <= keepBytes ? Buffer.allocUnsafeSlow(file.size) : undefined;
  let opened: OpenFile | undefined;
  try {
    signal?.throwIfAborted();
    const small = content && isSmall(file) ? hashSmall(file, content, guard) : undefined;
    if (content && small !== undefined) {
      await copy?.write(content);
      return { sha256: small, content, ...file };
    }
    opened = await openGuarded(file, guard);
    mustBe(file, opened.stats);
    const sha256 = await hash(opened, file, { content, signal, copy });
    // By name, which detects both writing and replacement.
    mustBe(file, await mustStat(file.location));
    return { sha256, ...file, ...(content && { content }) };
  } catch (error) {
    throw explained(file, error);
  } finally {
    await opened?.close();
  }
}

async function mustStat(location: string | Buffer): Promise<BigIntStats> {
  const stats = await statOne(location);
  if (stats instanceof Error) throw stats;
  return stats;
}

const BIGINT = { bigint: true } as const;

/** Non-blocking: if a pipe has taken the file's place, opening it would wait for a writer. */
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK;

/** Opens a file that may be read, or what a link leads to that may be followed. */
async function openGuarded(file: DiskFile, guard: Guard | undefined): Promise<OpenFile> {
  if (!guard) return openFile(file.location, OPEN_FLAGS);
  const flags = OPEN_FLAGS | constants.O_NOFOLLOW;
  const opened = await openFile(file.location, flags).catch(async (error) => {
    if (systemCode(error) !== 'ELOOP') throw error;
    return openFile(await guard.follow(file), flags);
  });
  try {
    await guard.check(opened, file);
    return opened;
  } catch (error) {
    await opened.close();
    throw error;
  }
}

/** Reads as many of these bytes as there are. */
export type ReadBytes = (from: number, bytes: number) => Promise<Buffer>;

/**
 * Reads parts of a file that may change at any time. All parts are from the file that was opened, whatever its name
 * leads to by then.
 */
export async function readParts<T>(
  file: DiskFile,
  guard: Guard | undefined,
  use: (read: ReadBytes, stamp: FileStamp) => Promise<T>,
): Promise<T> {
  let opened: OpenFile | undefined;
  try {
    opened = await openGuarded(file, guard);
    const { stats, read } = opened;
    if (!stats.isFile()) throw changed(file, 'it is no longer a file');
    const readBytes: ReadBytes = async (from, bytes) => {
      const buffer = Buffer.allocUnsafeSlow(bytes);
      let length = 0;
      while (length < bytes) {
        const bytesRead = await read(buffer, length, bytes - length, from + length);
        if (bytesRead === 0) break;
        length += bytesRead;
      }
      return buffer.subarray(0, length);
    };
    return await use(readBytes, stampOf(stats));
  } catch (error) {
    throw explained(file, error);
  } finally {
    await opened?.close();
  }
}

/** The same without other threads. Undefined for a link, and for a file that may be refused. */
function hashSmall(file: DiskFile, content: Buffer, guard: Guard | undefined): string | undefined {
  const descriptor = openSmall(file, guard);
  if (descriptor === undefined) return undefined;
  try {
    const stats = fstatSync(descriptor, BIGINT);
    if (guard && !guard.admits({ path: pathOf(descriptor), stats })) return undefined;
    mustBe(file, stats);
    for (let at = 0; at < file.size; ) {
      const bytesRead = readSync(descriptor, content, at, file.size - at, at);
      if (bytesRead === 0) throw becameShorter(file);
      at += bytesRead;
    }
  } finally {
    closeSync(descriptor);
  }
  mustBe(file, statSync(file.location, BIGINT));
  return createHash('sha256').update(content).digest('hex');
}

function openSmall(file: DiskFile, guard: Guard | undefined): number | undefined {
  try {
    return openSync(file.location, guard ? OPEN_FLAGS | constants.O_NOFOLLOW : OPEN_FLAGS);
  } catch (error) {
    if (guard && systemCode(error) === 'ELOOP') return undefined;
    throw error;
  }
}

async function hash(
  { read }: OpenFile,
  file: DiskFile,
  { content, signal, copy }: { content: Buffer | undefined } & Pick<IdentifyOptions, 'signal' | 'copy'>,
): Promise<string> {
  const sha256 = createHash('sha256');
  const buffer = content ?? Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; at < file.size; ) {
    signal?.throwIfAborted();
    const into = content ? at : 0;
    const length = Math.min(CHUNK_BYTES, file.size - at);
    const bytesRead = await read(buffer, into, length, at);
    if (bytesRead === 0) throw becameShorter(file);
    const bytes = buffer.subarray(into, into + bytesRead);
    sha256.update(bytes);
    await copy?.write(bytes);
    at += bytesRead;
  }
  return sha256.digest('hex');
}

const becameShorter = (file: DiskFile) => changed(file, 'it became shorter while it was being read');

function mustBe(file: DiskFile, stats: BigIntStats): void {
  if (!stats.isFile() || !sameStamp(file, stampOf(stats))) {
    throw changed(file, 'it was written to or replaced after it was considered complete');
  }
}

function changed(file: DiskFile, what: string, cause?: unknown): FileChangedError {
  return new FileChangedError(`the file has changed: ${what}`, {
    where: { file: file.path },
    cause,
  });
}

/** Turns a system error into an error that says whether the file has changed or cannot be read now. */
function explained(file: DiskFile, error: unknown): unknown {
  const code = systemCode(error);
  // Not a system error: thrown above, by the signal, or by a bug.
  if (code === undefined || !/^E[A-Z0-9]+$/.test(code)) return error;
  if (isAbsent(error) || code === 'ESTALE' || code === 'EISDIR') return changed(file, 'it no longer exists', error);
  const { reason, hint } = isForbidden(code)
    ? explainPermission(file.path)
    : { reason: reasonOf(error), hint: hintFor(code) };
  return new FileBusyError(`the file cannot be read now: ${reason}`, {
    where: { file: file.path },
    hint,
    cause: error,
  });
}

function hintFor(code: string): string {
  switch (code) {
    case 'EBUSY':
    case 'ETXTBSY':
    case 'EAGAIN':
      return "the instrument's software may still have it open; labfeed retries automatically";
    default:
      return 'labfeed retries automatically';
  }
}

/** The bytes that were hashed: from memory, or from the file if it has not changed since. */
export const contentOf = (file: DiskFile & Hashed): Uint8Array | (() => AsyncIterable<Uint8Array>) =>
  file.content ?? (() => readAgain(file));

async function* readAgain(file: DiskFile & Hashed): AsyncGenerator<Uint8Array> {
  let opened: OpenFile | undefined;
  try {
    opened = await openFile(file.location, OPEN_FLAGS);
    // The name may be a link to another file by now.
    mustBe(file, opened.stats);
    yield* chunksOf(opened);
  } catch (error) {
    throw explained(file, error);
  } finally {
    await opened?.close();
  }
  const stats = await statOne(file.location);
  if (stats instanceof Error || !sameStamp(stampOf(stats), file)) {
    throw changed(file, 'it was written to or replaced while it was being read');
  }
}

/** All bytes of a file. */
async function* chunksOf({ read }: OpenFile): AsyncGenerator<Buffer> {
  for (let at = 0; ; ) {
    const chunk = Buffer.allocUnsafeSlow(READ_BYTES);
    const bytesRead = await read(chunk, 0, chunk.length, at);
    if (bytesRead === 0) return;
    at += bytesRead;
    yield chunk.subarray(0, bytesRead);
  }
}

/** Looking for secrets in a chunk takes a few milliseconds. */
const READ_BYTES = 128 * 1024;

export function stampOf(stats: BigIntStats): FileStamp & Pick<DiskFile, 'isLocal'> {
  const { size, mtimeNs, ctimeNs, ino, dev } = stats;
  const isLocal = isLocalDisk(dev) && !isRemote(stats);
  return { size: Number(size), mtimeNs, ctimeNs, inode: ino, device: dev, isLocal };
}

/** Shares and other file systems without a disk have devices with the major number 0. */
const isLocalDisk = (dev: bigint): boolean => ((dev >> 8n) & 0xfffn) !== 0n;

export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.inode === b.inode;
}

/** The inode alone is not enough: a folder that is deleted and created again often gets the same one. */
export function folderIdentity({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}

/** Whether an error says that nothing has this name, rather than that it cannot be seen. */
export function isAbsent(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP';
}

/** The file exists but cannot be read now: locked, forbidden, or on a share that does not respond. */
export class FileBusyError extends LabfeedError {
  override readonly name = 'FileBusyError';
}

export const NO_ANSWER: ReadonlySet<string> = new Set([
  ...['EIO', 'ESTALE', 'ENOTCONN', 'ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETUNREACH'],
  ...['ECONNABORTED', 'ECONNRESET', 'EREMOTEIO', 'ENODEV', 'ENXIO', 'ENOMEDIUM'],
]);

export const NO_RESPONSE = 'the disk or share does not respond';

/** Why a folder or file cannot be read, for messages. */
export function reasonOf(error: unknown): string {
  const code = systemCode(error) ?? '';
  if (code === 'ENOENT') return 'it does not exist';
  if (code === 'ENOTDIR') return 'it or one of its parents is a file, not a folder';
  if (isForbidden(code)) return 'permission denied';
  if (NO_ANSWER.has(code)) return `${NO_RESPONSE} (${code})`;
  return explain(error);
}

/** A share that hangs must not delay requests about other runs. */
const MAX_PROBE_MS = 3000;

/** What is at a path that a run was read from. */
interface SourceState {
  readonly path: string;
  readonly has: 'nothing' | 'otherBytes' | 'itsBytes';
}

interface Content {
  readonly size: number;
  readonly sha256: string;
}

interface Stamped {
  readonly path: string;
  readonly size: number;
  readonly mtimeNs?: bigint | undefined;
}

/** Checks the files that runs were read from. */
export const sourceProbe = {
  /** Whether a file is still there, judged by its size and, if that is known, its time. */
  isThere: async ({ path, size, mtimeNs }: Stamped): Promise<boolean> =>
    (await inTime(
      atEither(path, async (place) => {
        const found = await mustStat(place);
        return Number(found.size) === size && (mtimeNs === undefined || found.mtimeNs === mtimeNs);
      }),
    )) ?? false,

  /**
   * The first of these paths that has this content, otherwise what is at the first one. A path that does not respond
   * in time is assumed to have it: the reader hashes the file again.
   */
  async find(content: Content, paths: readonly [string, ...string[]]): Promise<SourceState> {
    const states: SourceState[] = [];
    for (const path of paths) {
      const has = (await inTime(contentAt(path, content))) ?? 'itsBytes';
      if (has === 'itsBytes') return { path, has };
      states.push({ path, has });
    }
    return states[0] ?? { path: paths[0], has: 'nothing' };
  },
};

const contentAt = (path: string, { size, sha256 }: Content): Promise<SourceState['has']> =>
  atEither(path, async (place) => {
    const found = await mustStat(place);
    if (!found.isFile() || Number(found.size) !== size) return 'otherBytes';
    if (sha256.startsWith(STAND_IN))
      return standInFor({ path, size, mtimeNs: found.mtimeNs }) === sha256 ? 'itsBytes' : 'otherBytes';
    const opened = await openFile(place, OPEN_FLAGS);
    return (await hashOf(opened).finally(opened.close)) === sha256 ? 'itsBytes' : 'otherBytes';
  }).catch(() => 'nothing');

async function hashOf(opened: OpenFile): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of chunksOf(opened)) hash.update(chunk);
  return hash.digest('hex');
}

/** The bytes of an open file. */
interface OpenContent {
  read(): AsyncIterable<Uint8Array>;
  close(): Promise<void>;
}

/**
 * Opens the file at a path if it has this content. Links need no check: whatever is there has the bytes that were accepted
 * before.
 */
export const openContent = (path: string, { size, sha256 }: Content): Promise<OpenContent | undefined> =>
  atEither(path, async (place) => {
    const opened = await openFile(place, OPEN_FLAGS);
    try {
      const { stats, close } = opened;
      if (!stats.isFile() || Number(stats.size) !== size) throw new Error('another file');
      if ((await hashOf(opened)) === sha256) return { read: () => chunksOf(opened), close };
      throw new Error('other content');
    } catch (error) {
      await opened.close();
      throw error;
    }
  }).catch(() => undefined);

/** Undefined if it fails or takes too long. */
const inTime = <T>(probe: Promise<T>): Promise<T | undefined> =>
  atMost(MAX_PROBE_MS, systemClock, probe).catch(() => undefined);

/** Whether nothing is at this path any more. A path that does not respond in time may still have its file. */
export const isGone = async (path: string): Promise<boolean> =>
  (await inTime(
    atEither(path, mustStat).then(
      () => false,
      (error: unknown) => [error, ...(error instanceof AggregateError ? error.errors : [])].every(isGoneError),
    ),
  )) ?? false;

const isGoneError = (error: unknown): boolean => error instanceof AggregateError || isAbsent(error);

/** At the path as text, or at the bytes that it stands for: bytes that are not UTF-8 are written as `\xNN`. */
const atEither = <T>(path: string, probe: (place: string | Buffer) => Promise<T>): Promise<T> =>
  Promise.any((path.includes('\\x') ? [path, bytesOf(path)] : [path]).map(probe));

function bytesOf(path: string): Buffer {
  const parts = path.split(/\\x([0-9A-F]{2})/);
  return Buffer.concat(parts.map((part, index) => Buffer.from(part, index % 2 === 0 ? 'utf8' : 'hex')));
}
