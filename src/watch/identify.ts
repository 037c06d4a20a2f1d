import { createHash } from 'node:crypto';
import { type BigIntStats, close, constants, fstat, open, read, stat } from 'node:fs';
import { promisify } from 'node:util';
import { FileChangedError, systemCode } from '../errors.js';
import type { DiskFile, Hashed } from '../model.js';
import { FileBusyError } from './busy.js';
import { reasonOf } from './reason.js';
import { isAbsent, sameStamp, stampOf } from './stamp.js';

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
export function explained(file: DiskFile, error: unknown): unknown {
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
