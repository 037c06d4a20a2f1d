import { createHash } from 'node:crypto';
import { FileChangedError } from '../errors.js';
import type { DiskFile, FoundFile, Hashed, IdentifiedFile, Part } from '../model.js';
import { type IdentifyOptions, identify, KEEP_BYTES } from './identify.js';
import { type Glance, isSame } from './settle.js';

export interface IdentifyAllOptions extends IdentifyOptions {
  look(run: FoundFile): Promise<Glance>;
}

/**
 * Hashes every file of a run that has settled, and holds the run against what settled once more: a file that came
 * meanwhile belongs to it. As many contents are handed on as are kept of a single file.
 */
export async function identifyAll(
  run: FoundFile,
  { look, signal, keepBytes = KEEP_BYTES }: IdentifyAllOptions,
): Promise<IdentifiedFile> {
  const parts: (DiskFile & Part & Hashed)[] = [];
  let left = keepBytes;
  for (const part of run.parts ?? []) {
    const hashed = await identify(part, { signal, keepBytes: left });
    if (hashed.content) left -= hashed.size;
    parts.push({ ...part, ...hashed });
  }
  const now = await look(run);
  if (typeof now === 'string' || now.lacks !== undefined || !isSame(now, run)) {
    throw new FileChangedError('the run is no longer the same: a file was added, taken away or written to', {
      where: { file: run.path },
    });
  }
  return { ...run, sha256: hashOf(parts), parts };
}

/** As `sha256sum` would print them in the order of their names, so that anybody can compute it again. */
function hashOf(parts: readonly (Part & Hashed)[]): string {
  const lines = parts
    .map(({ role, sha256 }) => ({
      role: Buffer.from(role),
      line: `${sha256}  ${role.replace(/[\\\n]/g, '\\$&')}\n`,
    }))
    .sort((a, b) => Buffer.compare(a.role, b.role))
    .map(({ line }) => line);
  return createHash('sha256').update(lines.join('')).digest('hex');
}
