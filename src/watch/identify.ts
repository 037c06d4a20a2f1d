import { createHash } from 'node:crypto';
import { type BigIntStats, close, constants, createReadStream, fstat, open, read, stat } from 'node:fs';
import { promisify } from 'node:util';
import { FileChangedError, LabfeedError, systemCode } from '../errors.js';
import type { DiskFile, FileStamp, Hashed } from '../model.js';

// A third less processor time for a small file than fs/promises, whose handles are made for more than this.
const disk = {
  open: promisify(open),
  fstat: promisify(fstat),
  read: promisify(read),
  stat: promisify(stat),
  close: promisify(close),
};

export const KEEP_BYTES = 16 * 1024 * 1024;
/** Large enough for few turns, small enough that hashing one holds nobody up: about a millisecond. */
const CHUNK_BYTES = 1024 * 1024;

export interface IdentifyOptions {
  readonly signal: AbortSignal;
  /** Files up to this size are handed on with their content. */
  readonly keepBytes?: number;
}

/**
 * Hashes the whole content of a file that has settled. What was hashed is what settled: the file is held
 * against that stamp when it is opened (which on a share asks the server anew) and after the last byte.
 */
export async function identify(
  file: DiskFile,
  { signal, keepBytes = KEEP_BYTES }: IdentifyOptions,
): Promise<DiskFile & Hashed> {
  const content = file.size <= keepBytes ? Buffer.allocUnsafeSlow(file.size) : undefined;
  let descriptor: number | undefined;
  try {
    // Without blocking: should a pipe have come to stand there, opening it would wait for a writer for ever.
    descriptor = await disk.open(file.location, constants.O_RDONLY | constants.O_NONBLOCK);
    mustBe(file, await disk.fstat(descriptor, { bigint: true }));
    const sha256 = await hash(descriptor, file, content, signal);
    // By its name, which finds out both: whether it was written to, and whether another took its place.
    mustBe(file, await disk.stat(file.location, { bigint: true }));
    return { ...file, sha256, ...(content && { content }) };
  } catch (error) {
    throw explained(file, error);
  } finally {
    if (descriptor !== undefined) await disk.close(descriptor);
  }
}

async function hash(
  descriptor: number,
  file: DiskFile,
  content: Buffer | undefined,
  signal: AbortSignal,
): Promise<string> {
  const sha256 = createHash('sha256');
  const buffer = content ?? Buffer.allocUnsafe(CHUNK_BYTES);
  for (let at = 0; at < file.size; ) {
    signal.throwIfAborted();
    const into = content ? at : 0;
    const most = Math.min(CHUNK_BYTES, file.size - at);
    const { bytesRead } = await disk.read(descriptor, buffer, into, most, at);
    if (bytesRead === 0) throw changed(file, 'it became shorter while it was read');
    sha256.update(buffer.subarray(into, into + bytesRead));
    at += bytesRead;
  }
  return sha256.digest('hex');
}

function mustBe(file: DiskFile, stats: BigIntStats): void {
  if (!stats.isFile() || !sameStamp(file, stampOf(stats))) {
    throw changed(file, 'it was written to, or replaced, since it held still');
  }
}

function changed(file: DiskFile, what: string, cause?: unknown): FileChangedError {
  return new FileChangedError(`the file is no longer the same: ${what}`, {
    where: { file: file.path },
    cause,
  });
}

/** What a failure to read a file means: that it was changed, or that it cannot be read now. */
function explained(file: DiskFile, error: unknown): unknown {
  const code = systemCode(error);
  // Not a matter of the disk: what was thrown above, the signal's reason, a fault of our own.
  if (code === undefined || !/^E[A-Z0-9]+$/.test(code)) return error;
  if (isAbsent(error) || code === 'ESTALE' || code === 'EISDIR') return changed(file, 'it is gone', error);
  return new FileBusyError(`the file cannot be read now: ${reasonOf(error)}`, {
    where: { file: file.path },
    hint: hintFor(code),
    cause: error,
  });
}

function hintFor(code: string): string {
  switch (code) {
    case 'EACCES':
    case 'EPERM':
      return 'let the user that labfeed runs as read it; it is tried again by itself';
    case 'EBUSY':
    case 'ETXTBSY':
    case 'EAGAIN':
      return "the instrument's software may still hold it; it is tried again by itself";
    default:
      return 'it is tried again by itself';
  }
}

/** The bytes that were hashed: those that were kept, or the file once more, as long as it is still the same. */
export const contentOf = (file: DiskFile & Hashed): Uint8Array | (() => AsyncIterable<Uint8Array>) =>
  file.content ?? (() => readAgain(file));

async function* readAgain(file: DiskFile & Hashed): AsyncGenerator<Uint8Array> {
  try {
    for await (const piece of createReadStream(file.location, { highWaterMark: 256 * 1024 })) yield piece;
  } catch (error) {
    throw explained(file, error);
  }
  const [stats] = await statAll([file.location]);
  if (stats === undefined || stats instanceof Error || !sameStamp(stampOf(stats), file)) {
    throw new FileChangedError('the file was changed while it was read', { where: { file: file.path } });
  }
}

export function stampOf({ size, mtimeNs, ino }: BigIntStats): FileStamp {
  return { size: Number(size), mtimeNs, inode: ino };
}

export function sameStamp(a: FileStamp, b: FileStamp): boolean {
  return a.size === b.size && a.mtimeNs === b.mtimeNs && a.inode === b.inode;
}

/** Tells folders apart. An inode alone does not do: a folder deleted and made anew often gets the same one. */
export function identityOf({ dev, ino, birthtimeNs }: BigIntStats): string {
  return `${dev}:${ino}:${birthtimeNs}`;
}

/** Whether an error says that there is nothing under this name (any more), rather than that it cannot be seen. */
export function isAbsent(error: unknown): boolean {
  const code = systemCode(error);
  return code === 'ENOENT' || code === 'ENOTDIR' || code === 'ELOOP';
}

/**
 * All at once, by callbacks: 50,000 stats take 0.25 s this way, 0.6 s in a window of 64, and 1.0 s as promises,
 * since each wake-up of the event loop then brings many answers.
 */
export function statAll(locations: readonly (string | Buffer)[]): Promise<(BigIntStats | Error)[]> {
  return new Promise((resolve) => {
    const results: (BigIntStats | Error)[] = new Array(locations.length);
    let left = locations.length;
    if (left === 0) resolve(results);
    locations.forEach((location, index) => {
      stat(location, { bigint: true }, (error, stats) => {
        results[index] = error ?? stats;
        left -= 1;
        if (left === 0) resolve(results);
      });
    });
  });
}

/** The file is there and cannot be read now: locked, forbidden, or on a share that does not answer. Try again later. */
export class FileBusyError extends LabfeedError {
  override readonly name = 'FileBusyError';
}

const NO_ANSWER = new Set([
  ...['EIO', 'ESTALE', 'ENOTCONN', 'ETIMEDOUT', 'EHOSTDOWN', 'EHOSTUNREACH', 'ENETDOWN', 'ENETUNREACH'],
  ...['ECONNABORTED', 'ECONNRESET', 'EREMOTEIO', 'ENODEV', 'ENXIO', 'ENOMEDIUM'],
]);

/** Why a folder or file could not be read, for people. */
export function reasonOf(error: unknown): string {
  const code = systemCode(error) ?? '';
  if (code === 'ENOENT') return 'it is not there';
  if (code === 'ENOTDIR') return 'it, or something above it, is a file and not a folder';
  if (code === 'EACCES' || code === 'EPERM') return 'this user may not read it';
  if (NO_ANSWER.has(code)) return `the disk or share does not answer (${code})`;
  return error instanceof Error ? error.message : String(error);
}
