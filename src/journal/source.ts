import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { setTimeout as delay } from 'node:timers/promises';

/** A share that hangs must not keep people's other requests waiting. */
const PATIENCE_MS = 3000;

export interface Source {
  /** Bytes that are not UTF-8 stand in it as `\xNN`. */
  readonly path: string;
  readonly size: number;
}

/** Whether a run's file is still where it was taken from, as far as its size tells. */
export const isStillThere = async (source: Source): Promise<boolean> =>
  (await patiently(() => atEither(source.path, async (place) => (await stat(place)).size === source.size))) ??
  false;

/** What is where a run's file was. */
export interface SourceState {
  readonly path: string;
  readonly has: 'nothing' | 'otherBytes' | 'itsBytes';
}

/**
 * The first of these places that has the run's bytes, or else what the first one has. Where that takes too long to find
 * out, they are taken to be there: whoever reads the file hashes it again.
 */
export async function findSource(
  { size, sha256 }: { readonly size: number; readonly sha256: string },
  paths: readonly [string, ...string[]],
): Promise<SourceState> {
  const states: SourceState[] = [];
  for (const path of paths) {
    const look = (): Promise<SourceState['has']> =>
      atEither(path, async (place) => {
        const found = await stat(place);
        if (!found.isFile() || found.size !== size) return 'otherBytes';
        return (await hashOf(place)) === sha256 ? 'itsBytes' : 'otherBytes';
      }).catch(() => 'nothing');
    const state = { path, has: (await patiently(look)) ?? 'itsBytes' } as const;
    if (state.has === 'itsBytes') return state;
    states.push(state);
  }
  return states[0] ?? { path: paths[0], has: 'nothing' };
}

/** Undefined where it takes too long. */
async function patiently<T>(look: () => Promise<T>): Promise<T | undefined> {
  const given = new AbortController();
  const patience = delay(PATIENCE_MS, undefined, { signal: given.signal }).catch(() => undefined);
  const found = await Promise.race([look().catch(() => undefined), patience]);
  given.abort();
  return found;
}

/** By its name, or by the bytes that the name stands for. */
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
