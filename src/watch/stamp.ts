import { type BigIntStats, stat } from 'node:fs';
import { systemCode } from '../errors.js';
import type { FileStamp } from '../model.js';

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
