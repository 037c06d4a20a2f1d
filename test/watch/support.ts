import { type BigIntStats, statSync } from 'node:fs';
import type { Clock } from '../../src/clock.js';
import type { FoundFile } from '../../src/model.js';
import { createMatcher } from '../../src/watch/match.js';
import { type Listing, type ListOptions, list } from '../../src/watch/scan.js';

export const never = new AbortController().signal;

export const everything = createMatcher({ files: ['**/*'], ignore: [] });

/** A file as the listing would see it now. */
export function found(path: string, location: string | Buffer = path): FoundFile {
  const stats: BigIntStats = statSync(location, { bigint: true });
  return { path, location, size: Number(stats.size), mtimeNs: stats.mtimeNs, inode: stats.ino };
}

export async function listed(
  folder: string,
  options: Partial<ListOptions> = {},
): Promise<{ files: FoundFile[]; batches: number[]; listing: Listing }> {
  const files: FoundFile[] = [];
  const batches: number[] = [];
  const found = list(folder, { matcher: everything, signal: never, ...options });
  for (;;) {
    const next = await found.next();
    if (next.done) return { files, batches, listing: next.value };
    files.push(...next.value);
    batches.push(next.value.length);
  }
}

/** A clock that passes as fast as somebody sleeps, and lets the test act meanwhile. */
export function sleepingClock(
  during: (elapsedMs: number) => void = () => undefined,
): Clock & { sleeps: number[] } {
  let elapsed = 0;
  const sleeps: number[] = [];
  return {
    sleeps,
    now: () => elapsed,
    monotonic: () => elapsed,
    async sleep(ms, signal) {
      if (signal?.aborted) return;
      sleeps.push(ms);
      elapsed += ms;
      during(elapsed);
    },
  };
}

/** Permissions do not bind root: as somebody else, where the tests run as root. */
export async function asNobody<T>(work: () => Promise<T>): Promise<T> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    return await work();
  } finally {
    process.seteuid?.(0);
  }
}
