import { readdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import picomatch from 'picomatch';
import { systemCode } from '../errors.js';

/** The files that an `include` glob names, seen from the file it stands in, in the order of their names. */
export function expandInclude(glob: string, from: string): string[] {
  const absolute = resolve(dirname(from), glob);
  const { base, isGlob } = picomatch.scan(absolute);
  if (!isGlob) return [absolute];
  const matches = picomatch(absolute);
  return filesBelow(base)
    .filter((file) => matches(file))
    .sort();
}

function filesBelow(folder: string): string[] {
  try {
    return readdirSync(folder, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() || entry.isSymbolicLink())
      .map((entry) => join(entry.parentPath, entry.name));
  } catch (error) {
    if (systemCode(error) === 'ENOENT') return [];
    throw error;
  }
}
