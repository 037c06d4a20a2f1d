import { realpathSync } from 'node:fs';
import { dirname, join, relative, resolve, sep } from 'node:path';
import type { Claim } from '../config/load.js';

/** The path as seen from a folder, with `/` between names; undefined where it is not in it. */
export function insideOf(folder: string, path: string): string | undefined {
  const inside = relative(folder, path);
  if (inside === '' || inside.startsWith('..') || inside === path) return undefined;
  return sep === '/' ? inside : inside.replaceAll(sep, '/');
}

/** The same file under the name by which an instrument's folder leads to it: people may come by a link. */
export function asWatched(path: string, claims: readonly Claim[]): string {
  if (claims.some(({ watch }) => insideOf(watch, path) !== undefined)) return path;
  const real = realOf(path);
  for (const { watch } of claims) {
    const inside = insideOf(realOf(watch), real);
    if (inside !== undefined) return join(watch, inside);
  }
  return path;
}

/** Of a file that is gone, the folder that it was in still leads somewhere. */
function realOf(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : resolve(realOf(above), relative(above, path));
  }
}
