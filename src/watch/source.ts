import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { systemClock } from '../clock.js';

/** A share that hangs must not keep other requests waiting. */
const MAX_WAIT_MS = 3000;

/** What is at the place that a run was read from. */
interface Source {
  readonly path: string;
  readonly has: 'nothing' | 'otherBytes' | 'itsBytes';
}

/** Whether a file is still where it was taken from, as far as its size tells. */
const isThere = async (file: { readonly path: string; readonly size: number }): Promise<boolean> =>
  (await inTime(() => atEither(file.path, async (place) => (await stat(place)).size === file.size))) ?? false;

/**
 * The first of these paths that has this content, or else what is at the first one. A path that does not answer in
 * time is assumed to have it: whoever reads the file hashes it again.
 */
async function find(
  content: { readonly size: number; readonly sha256: string },
  paths: readonly [string, ...string[]],
): Promise<Source> {
  const states: Source[] = [];
  for (const path of paths) {
    const has = (await inTime(() => contentAt(path, content))) ?? 'itsBytes';
    if (has === 'itsBytes') return { path, has };
    states.push({ path, has });
  }
  return states[0] ?? { path: paths[0], has: 'nothing' };
}

export const sourceProbe = { isThere, find };

const contentAt = (
  path: string,
  { size, sha256 }: { readonly size: number; readonly sha256: string },
): Promise<Source['has']> =>
  atEither(path, async (place) => {
    const found = await stat(place);
    if (!found.isFile() || found.size !== size) return 'otherBytes';
    return (await hashOf(place)) === sha256 ? 'itsBytes' : 'otherBytes';
  }).catch(() => 'nothing');

/** Undefined if it fails or takes too long. */
async function inTime<T>(look: () => Promise<T>): Promise<T | undefined> {
  const ended = new AbortController();
  const timeout = systemClock.sleep(MAX_WAIT_MS, ended.signal).then(() => undefined);
  const found = await Promise.race([look().catch(() => undefined), timeout]);
  ended.abort();
  return found;
}

/** By the name, or by the bytes that the name stands for: what is not UTF-8 is written as `\xNN`. */
const atEither = <T>(path: string, look: (place: string | Buffer) => Promise<T>): Promise<T> =>
  Promise.any((path.includes('\\x') ? [path, bytesOf(path)] : [path]).map(look));

async function hashOf(place: string | Buffer): Promise<string> {
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(place)) hash.update(chunk as Buffer);
  return hash.digest('hex');
}

function bytesOf(path: string): Buffer {
  const parts = path.split(/\\x([0-9A-F]{2})/);
  return Buffer.concat(parts.map((part, index) => Buffer.from(part, index % 2 === 0 ? 'utf8' : 'hex')));
}
