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
export async function isStillThere({ path, size }: Source): Promise<boolean> {
  const given = new AbortController();
  const patience = delay(PATIENCE_MS, false, { signal: given.signal }).catch(() => false);
  const look = Promise.any([path, bytesOf(path)].map(async (place) => (await stat(place)).size === size));
  const isThere = await Promise.race([look.catch(() => false), patience]);
  given.abort();
  return isThere;
}

function bytesOf(path: string): Buffer {
  const parts = path.split(/\\x([0-9A-F]{2})/);
  return Buffer.concat(parts.map((part, index) => Buffer.from(part, index % 2 === 0 ? 'utf8' : 'hex')));
}
