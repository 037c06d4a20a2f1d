import { stat } from 'node:fs/promises';
import { LabfeedError, systemCode } from './errors.js';
import type { IdentifiedFile } from './model.js';
import { identify } from './watch/identify.js';
import { stampOf } from './watch/stamp.js';

/** A file that a person names, taken as it is: who names it knows that nobody writes to it. */
export async function openSample(
  path: string,
  signal: AbortSignal = new AbortController().signal,
): Promise<IdentifiedFile> {
  const stats = await stat(path, { bigint: true }).catch((error: unknown) => {
    const message =
      systemCode(error) === 'ENOENT' ? 'there is no such file' : `cannot be read (${systemCode(error)})`;
    throw new LabfeedError(message, { where: { file: path }, cause: error });
  });
  if (!stats.isFile()) throw new LabfeedError('expected a file', { where: { file: path } });
  return identify({ path, location: path, ...stampOf(stats) }, { signal });
}
